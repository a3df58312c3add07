"""Reports: one self-contained HTML page, or Markdown, from records alone."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tpcalc.errors import StudyError
from tpcalc.results import Formula
from tpcalc.views.content import compose
from tpcalc.views.depth_experiment import depth_experiment_figures
from tpcalc.views.depth_plot import depth_figures
from tpcalc.views.experiment_plot import draw_experiment, experiment_figures
from tpcalc.views.kernel_plot import draw_kernel, kernel_figure
from tpcalc.views.mathml import formula_html, formula_line, formula_markdown
from tpcalc.views.nonlinearity_plot import nonlinearity_figures
from tpcalc.views.numbers import typeset
from tpcalc.views.panels import Figure, error_figure, feature_figure, output_figure
from tpcalc.views.phase_plot import draw_phases, phase_figure
from tpcalc.views.record import ReportInput
from tpcalc.views.sheet_plot import draw_sheets, sheet_figure
from tpcalc.views.signal_plot import draw_signal, signal_figures
from tpcalc.views.tables import Cell
from tpcalc.views.traces import Trace, gather

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

_Drawer = Callable[[Any, str], tuple[str, ...]]
_HTML_ROWS = 2000
_MARKDOWN_ROWS = 200
_MARKDOWN_SIGNS = str.maketrans({sign: "\\" + sign for sign in "\\`*_[]<>|#"})


def render_html(report: ReportInput) -> str:
    """One self-contained page: no script, and nothing loaded from elsewhere.

    Example:
        >>> from tpcalc.results import Estimate, LimitTable, Method, Provenance, ScalarRow
        >>> row = ScalarRow("f[0,0]", Estimate(0.25, 0.0, Method.EXACT))
        >>> limit = LimitTable((row,), (), Provenance("0.1.0", "ab12"))
        >>> page = render_html(ReportInput("Start", limit=limit))
        >>> "<title>Start</title>" in page, "<script" in page
        (True, False)
    """
    traces = gather(report.limit, report.finite, report.comparison)
    drawn = _drawn(report, traces)
    template = _environment("html").get_template("page.html.j2")
    return template.render(
        content=compose(report, traces, _HTML_ROWS, frozenset(drawn)),
        figures={key: figure for key, (figure, _) in drawn.items()},
        pictures={key: pictures for key, (_, pictures) in drawn.items()},
    )


def render_markdown(report: ReportInput) -> str:
    """The same report as Markdown: the tables and formulas, without the plots.

    Example:
        >>> from tpcalc.results import Estimate, LimitTable, Method, Provenance, ScalarRow
        >>> row = ScalarRow("f[0,0]", Estimate(0.25, 0.0, Method.EXACT))
        >>> limit = LimitTable((row,), (), Provenance("0.1.0", "ab12"))
        >>> print(render_markdown(ReportInput("Start", limit=limit)).splitlines()[0])
        # Start
    """
    traces = gather(report.limit, report.finite, report.comparison)
    template = _environment("md").get_template("page.md.j2")
    return template.render(content=compose(report, traces, _MARKDOWN_ROWS)).strip() + "\n"


def write(report: ReportInput, path: str | Path) -> Path:
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
    if not target.parent.is_dir():
        raise StudyError(
            f"the folder {str(target.parent)!r} does not exist.",
            where=str(target),
            hint="Create it, or choose another.",
        )
    text = renderer(report)
    try:
        target.write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise StudyError(
            f"the report could not be written: {error.strerror or error}.",
            where=str(target),
            hint="Choose a place where you may write.",
        ) from error
    return target


# Of each answer the figures by section, and what draws them where panels alone do not tell.
_FIGURES: dict[str, tuple[Callable[[Any], Mapping[str, Figure | None]], _Drawer | None]] = {
    "phases": (
        lambda found: {"phases": phase_figure(found)},
        lambda found, key: (draw_phases(found, key),),
    ),
    "kernel": (lambda found: {"kernel": kernel_figure(found)}, draw_kernel),
    "sheet": (lambda found: {"sheet": sheet_figure(found)}, draw_sheets),
    "depths": (depth_figures, None),
    "experiment": (experiment_figures, draw_experiment),
    "blocks": (depth_experiment_figures, None),
    "nonlinearity": (nonlinearity_figures, None),
    "signal": (signal_figures, draw_signal),
}


def _drawn(
    report: ReportInput, traces: tuple[Trace, ...]
) -> dict[str, tuple[Figure, tuple[Markup, ...]]]:
    """The figures with their pictures, by the key of their section."""
    from markupsafe import Markup

    end = report.limit.exploded if report.limit is not None else None
    if end is not None:  # numbers of later steps leave no room for earlier ones
        traces = tuple(trace for trace in traces if not end.precedes(trace.name))
    inputs = report.input_names
    of_traces = {
        "outputs": output_figure(traces, inputs),
        "features": feature_figure(traces, inputs),
        "comparison": error_figure(traces, report.comparison, inputs),
    }
    found = {key: (figure, _panels(key, figure)) for key, figure in of_traces.items() if figure}
    for field, (figures, drawer) in _FIGURES.items():
        answer = getattr(report, field)
        for key, figure in figures(answer).items() if answer is not None else ():
            if figure is not None:
                found[key] = figure, drawer(answer, key) if drawer else _panels(key, figure)
    # Our own drawings, whose words are escaped where they are made.
    return {key: (figure, tuple(map(Markup, svgs))) for key, (figure, svgs) in found.items()}


def _panels(key: str, figure: Figure) -> tuple[str, ...]:
    from tpcalc.views.plots import draw

    return tuple(draw(panel, f"{key}-{index}") for index, panel in enumerate(figure.panels))


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
