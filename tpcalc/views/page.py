"""Reports: one self-contained HTML page, or Markdown, from records alone."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from html.entities import html5
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from tpcalc import checks
from tpcalc.doors.write import put
from tpcalc.errors import StudyError
from tpcalc.results import Card, Contrast, Formula
from tpcalc.views.content import compose
from tpcalc.views.numbers import typeset
from tpcalc.views.panels import Figure
from tpcalc.views.record import FIELDS, ReportInput
from tpcalc.views.tables import Cell, spelled
from tpcalc.views.view import View

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup


# What a page may hold of a formula that comes from elsewhere.
_ELEMENTS = re.compile(
    "math|mfrac|mi|mn|mo|mover|mpadded|mphantom|mroot|mrow|ms|mspace|msqrt|mstyle|msub|msubsup|msup"
    "|mtable|mtd|mtext|mtr|munder|munderover|mmultiscripts|mprescripts|none"
)
_ATTRIBUTES = re.compile(
    "accent|accentunder|columnspan|displaystyle|fence|form|largeop|linethickness|lspace|mathvariant"
    "|maxsize|minsize|movablelimits|rowspan|rspace|scriptlevel|separator|stretchy|symmetric|width"
)
_XML_ENTITIES = frozenset({"amp", "lt", "gt", "quot", "apos"})
_RAISED = frozenset({"i", "sub", "sup"})
_LONGEST = 200_000


def formula_html(formula: Formula) -> str:
    """A formula as MathML; as escaped text where it has no MathML that can be shown.

    Example:
        >>> formula_html(Formula("x^2", mathml="<msup><mi>x</mi><mn>2</mn></msup>"))
        '<math display="block"><msup><mi>x</mi><mn>2</mn></msup></math>'
        >>> formula_html(Formula("a < b"))
        '<code>a &lt; b</code>'
    """
    shown = _clean(formula.mathml) if formula.mathml else ""
    return shown or f"<code>{html.escape(formula.text)}</code>"


def formula_line(formula: Formula) -> str:
    """A formula within a line of text, of letters that are raised and lowered; or its text.

    Example:
        >>> formula_line(Formula("x^2", html="<i>x</i><sup onclick='no'>2</sup>"))
        '<i>x</i><sup>2</sup>'
    """
    if formula.html and "<!" not in formula.html and len(formula.html) < _LONGEST:
        with suppress(ElementTree.ParseError, RecursionError):
            return _raised(ElementTree.fromstring(f"<p>{formula.html}</p>"), 0)
    return html.escape(formula.text)


def _raised(element: ElementTree.Element, depth: int) -> str:
    if depth > 200:
        raise RecursionError
    inner = html.escape(element.text or "")
    for child in element:
        inner += _raised(child, depth + 1) + html.escape(child.tail or "")
    return f"<{element.tag}>{inner}</{element.tag}>" if element.tag in _RAISED else inner


def formula_markdown(formula: Formula) -> str:
    """A formula as LaTeX between dollars; as code where it has none.

    Example:
        >>> formula_markdown(Formula("x^2", latex="x^{2}")), formula_markdown(Formula("x^2"))
        ('$$x^{2}$$', '`x^2`')
    """
    latex = " ".join(formula.latex.split())
    if latex and "$" not in latex:
        return f"$${latex}$$"
    return f"`{' '.join(formula.text.split()).replace('`', chr(39))}`"


def _clean(mathml: str) -> str:
    """MathML that holds only known elements and attributes; empty if it cannot be read."""
    if "<!" in mathml or len(mathml) > _LONGEST:
        return ""  # a document type may define entities without end
    text = re.sub(r"&(\w+);", _entity, mathml)
    text = re.sub(r"<\?.*?\?>", "", text, flags=re.S)
    text = re.sub(r'\sxmlns(?::\w+)?="[^"]*"', "", text)
    try:
        root = ElementTree.fromstring(f"<mrow>{text}</mrow>")
        body = "".join(_element(child, 0) for child in root)
    except (ElementTree.ParseError, RecursionError):
        return ""
    return f'<math display="block">{body}</math>' if body else ""


def _entity(match: re.Match[str]) -> str:
    if match[1] in _XML_ENTITIES:
        return match[0]
    return html5.get(f"{match[1]};", match[0])


def _element(element: ElementTree.Element, depth: int) -> str:
    if depth > 200:
        raise RecursionError
    name = element.tag.rpartition("}")[2].rpartition(":")[2]
    children = [_element(child, depth + 1) for child in element]
    if name == "mfenced":
        return _fenced(element, children)
    if name == "semantics":
        return children[0] if children else ""
    if not _ELEMENTS.fullmatch(name):
        return ""
    content = html.escape(element.text or "", quote=False) if not children else ""
    inner = content + "".join(children)
    if name == "math":  # the outer element is written by the caller
        return f"<mrow>{inner}</mrow>"
    attributes = "".join(
        f' {key}="{html.escape(value)}"'
        for key, value in sorted(element.attrib.items())
        if _ATTRIBUTES.fullmatch(key)
    )
    return f"<{name}{attributes}>{inner}</{name}>"


def _fenced(element: ElementTree.Element, children: list[str]) -> str:
    """Browsers no longer know ``mfenced``; brackets and commas are written out."""
    opening = html.escape(element.get("open", "("))
    closing = html.escape(element.get("close", ")"))
    inner = "<mo>,</mo>".join(children)
    return f"<mrow><mo>{opening}</mo>{inner}<mo>{closing}</mo></mrow>"


_HTML_ROWS = 2000
_MARKDOWN_ROWS = 200
PROGRAM_LINES = 400
"""Lines of a program text that a report shows."""
_FORMULAS = 40
_MARKDOWN_SIGNS = str.maketrans({sign: "\\" + sign for sign in "\\`*_[]<>|#"})


def render_html(report: ReportInput | View) -> str:
    """One self-contained page: no script, and nothing loaded from elsewhere.

    Example:
        >>> from tpcalc.results import Estimate, LimitTable, Method, Provenance, ScalarRow
        >>> row = ScalarRow("f[0,0]", Estimate(0.25, 0.0, Method.EXACT))
        >>> limit = LimitTable((row,), (), Provenance("0.1.0", "ab12"))
        >>> page = render_html(ReportInput("Start", limit=limit))
        >>> "<title>Start</title>" in page, "<script" in page
        (True, False)
    """
    return _rendered(report, "html", _HTML_ROWS)


def render_markdown(report: ReportInput | View) -> str:
    """The same report as Markdown: the tables and formulas, without the plots.

    Example:
        >>> from tpcalc.results import Estimate, LimitTable, Method, Provenance, ScalarRow
        >>> row = ScalarRow("f[0,0]", Estimate(0.25, 0.0, Method.EXACT))
        >>> limit = LimitTable((row,), (), Provenance("0.1.0", "ab12"))
        >>> print(render_markdown(ReportInput("Start", limit=limit)).splitlines()[0])
        # Start
    """
    return _rendered(report, "md", _MARKDOWN_ROWS).strip() + "\n"


def _rendered(report: ReportInput | View, kind: str, most: int) -> str:
    shown = compose(report) if isinstance(report, ReportInput) else report
    template = _environment(kind).get_template(f"page.{kind}.j2")
    return template.render(content=shown, most=most, lines=PROGRAM_LINES, formulas=_FORMULAS)


def write(report: ReportInput | View, path: str | Path) -> Path:
    """Write a report; the suffix says what kind.

    Example:
        >>> import tempfile
        >>> from tpcalc.results import Estimate, LimitTable, Method, Provenance, ScalarRow
        >>> row = ScalarRow("f[0,0]", Estimate(0.25, 0.0, Method.EXACT))
        >>> limit = LimitTable((row,), (), Provenance("0.1.0", "ab12"))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write(ReportInput("Start", limit=limit), Path(folder) / "start.md").name
        'start.md'
    """
    target = Path(path)
    renderers = {".html": render_html, ".md": render_markdown}
    renderer = renderers.get(target.suffix.lower())
    if renderer is None:
        raise StudyError(
            f"a report is written as .html or .md, not as {target.suffix or 'a bare name'!r}.",
            where=str(target),
            hint=f"Call it {target.stem or 'report'}.html or {target.stem or 'report'}.md.",
        )
    return put(target, renderer(report), "report")


def _pictures(figure: Figure, key: str) -> tuple[Markup, ...]:
    """The panels of a figure as elements of the page."""
    from markupsafe import Markup

    from tpcalc.views.plots import draw

    # Our own drawings, whose words are escaped where they are made.
    panels = enumerate(figure.panels)
    return tuple(Markup(draw(panel, f"{key}-{index}")) for index, panel in panels)


@cache
def _environment(kind: str) -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("tpcalc.views", "templates"),
        autoescape=kind == "html",
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    if kind == "html":
        own: dict[str, Callable[..., str]] = {"cell": spelled, "formula": formula_html}
        own |= {"numbers": _numbers, "said": _said}
        environment.filters |= {name: _safe(spell) for name, spell in own.items()}
        environment.filters["pictures"] = _pictures
    else:
        plain = {"cell": _cell_markdown, "formula": formula_markdown, "line": _line}
        environment.filters |= {**plain, "fence": _fence}
    return environment


def _safe(spell: Callable[..., str]) -> Callable[..., Markup]:
    """What a filter makes, which is no text to be escaped."""
    from markupsafe import Markup

    return lambda *given: Markup(spell(*given))


def _numbers(text: str) -> str:
    text = html.escape(text).replace(" ± ", "\u00a0±\u00a0").replace(" = ", "\u00a0=\u00a0")
    return typeset(text)


def _said(line: str, formulas: Sequence[tuple[str, Formula]]) -> str:
    """A line about a program, whose formula is spelled for a page."""
    for _, formula in formulas:
        rest = line.removeprefix(formula.text)
        if formula.html and (rest == "." or rest.startswith(" for ")):
            return formula_line(formula) + _numbers(rest)
    return _numbers(line)


def _line(text: str) -> str:
    return " ".join(text.split()).translate(_MARKDOWN_SIGNS)


def _cell_markdown(cell: Cell) -> str:
    if cell.kind == "name" and cell.text:
        # Within code only the bar needs care, because it ends a cell.
        return "`" + cell.text.replace("`", "'").replace("|", "\\|") + "`"
    text = _line(cell.text)
    return f"**{text}**" if cell.tone == "bad" and text else text


def _fence(text: str) -> str:
    """A fence of backticks longer than any within the text."""
    fence = "```"
    while fence in text:
        fence += "`"
    return fence


_ANSWERS = (
    "tp.limit, tp.simulate, tp.compare, tp.orders, tp.check, tp.solve, tp.phases, tp.kernel or "
    "tp.card"
)


def report(results: Any, path: str | Path, *, title: str = "Infinite-width limit") -> Path:
    """Write a report.

    Args:
        results: A limit, a simulation, a comparison, orders, a verdict, learning-rate exponents,
            a phase diagram, a kernel, or two cards (``tp.Contrast``): one of them, or several in
            a list. A card stands for its verdict, orders, theorems and limits.
        path: A file ending in ``.html`` (one self-contained page) or ``.md``.
        title: The heading.

    Returns:
        The path.

    Raises:
        StudyError: Something that is not a result, the same kind twice, or a path that cannot be
            written.

    Example:
        >>> from tpcalc.results import Estimate, LimitTable, Method, Provenance, ScalarRow
        >>> row = ScalarRow("f[0,0]", Estimate(0.25, 0.0, Method.EXACT))
        >>> table = LimitTable((row,), (), Provenance("0.1.0", "ab12"))
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     report(table, Path(folder) / "start.md").name
        'start.md'
    """
    checks.file(path)
    parts: dict[str, Any] = {}
    given = results if isinstance(results, list | tuple) else [results]
    for result in [part for one in given for part in _parts(one)]:
        table = getattr(result, "table", result)
        kind = FIELDS.get(type(table))
        if kind is None:
            raise StudyError(
                f"{type(result).__name__} is not a result.",
                where="report",
                hint=f"Give what {_ANSWERS} returns.",
            )
        if kind in parts:
            raise StudyError(f"two results of the same kind ({kind}).", where="report")
        parts[kind] = table
    write(ReportInput(title, **parts), path)
    return Path(path)


def _parts(result: Any) -> list[Any]:
    """The answers that a result is made of; two cards bring those of the first."""
    if isinstance(result, Contrast):
        return [*_parts(result.left), result]
    if isinstance(result, Card):
        parts = (result.check, result.orders, result.theorems, result.limit)
        return [part for part in parts if part is not None]
    return [result]
