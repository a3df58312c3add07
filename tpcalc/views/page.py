"""Reports: one self-contained HTML page, or Markdown, from records alone."""

from __future__ import annotations

import html
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from tpcalc.doors.write import put
from tpcalc.errors import StudyError
from tpcalc.results import Formula
from tpcalc.views.content import Content, compose, content_of
from tpcalc.views.mathml import formula_html, formula_line, formula_markdown
from tpcalc.views.numbers import typeset
from tpcalc.views.panels import Figure
from tpcalc.views.record import ReportInput
from tpcalc.views.tables import Cell
from tpcalc.views.view import View

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

_HTML_ROWS = 2000
_MARKDOWN_ROWS = 200
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
    template = _environment("html").get_template("page.html.j2")
    return template.render(content=_content(report, _HTML_ROWS))


def render_markdown(report: ReportInput | View) -> str:
    """The same report as Markdown: the tables and formulas, without the plots.

    Example:
        >>> from tpcalc.results import Estimate, LimitTable, Method, Provenance, ScalarRow
        >>> row = ScalarRow("f[0,0]", Estimate(0.25, 0.0, Method.EXACT))
        >>> limit = LimitTable((row,), (), Provenance("0.1.0", "ab12"))
        >>> print(render_markdown(ReportInput("Start", limit=limit)).splitlines()[0])
        # Start
    """
    template = _environment("md").get_template("page.md.j2")
    return template.render(content=_content(report, _MARKDOWN_ROWS)).strip() + "\n"


def _content(report: ReportInput | View, most_rows: int) -> Content:
    lay_out = compose if isinstance(report, ReportInput) else content_of
    return lay_out(report, most_rows)  # type: ignore[arg-type]


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
        environment.filters |= {
            "cell": _cell_html,
            "formula": _formula_html,
            "numbers": _numbers,
            "pictures": _pictures,
            "said": _said,
        }
    else:
        environment.filters |= {
            "cell": _cell_markdown,
            "formula": formula_markdown,
            "line": _line,
            "fence": _fence,
        }
    return environment


def _cell_html(cell: Cell) -> Markup:
    from markupsafe import Markup

    text = html.escape(cell.text)
    if cell.kind == "name":
        return Markup(f"<code>{text}</code>" if text else "")
    return Markup(typeset(text) if cell.kind in ("number", "sentence") else text)


def _formula_html(formula: Formula) -> Markup:
    from markupsafe import Markup

    return Markup(formula_html(formula))


def _numbers(text: str) -> Markup:
    from markupsafe import Markup

    text = html.escape(text).replace(" ± ", "\u00a0±\u00a0").replace(" = ", "\u00a0=\u00a0")
    return Markup(typeset(text))


def _said(line: str, formulas: Sequence[tuple[str, Formula]]) -> Markup:
    """A line about a program, whose formula is spelled for a page."""
    from markupsafe import Markup

    for _, formula in formulas:
        rest = line.removeprefix(formula.text)
        if formula.html and (rest == "." or rest.startswith(" for ")):
            return Markup(formula_line(formula)) + _numbers(rest)
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
