"""Tables as records: what is shown, apart from how (page, Markdown, terminal, notebook)."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tpcalc.names import Name
from tpcalc.results import (
    Comparison,
    ComparisonRow,
    Explosion,
    FiniteTable,
    LimitTable,
    Method,
    SlopeRow,
)
from tpcalc.views.labels import index, quantity, symbol
from tpcalc.views.numbers import (
    Measure,
    count,
    mean_of,
    measured,
    over_seeds,
    score,
    scores,
    spread,
    typeset,
    with_power,
)
from tpcalc.views.traces import Trace, gather

MISSED = "† the error target was not met: raise max_samples or rel_error."
_FEW = 10  # rows of a table that is never cut
_SIGNS = {"#": "number", "~": "sentence", "`": "name"}
_STATISTICS = {"value": "value", "mean": "mean", "second_moment": "mean square"}


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell."""

    text: str
    # text, number (right-aligned), name (a name of the program) or sentence (which may be broken)
    kind: str = "text"
    tone: str = ""  # "", warn or bad


@dataclass(frozen=True, slots=True)
class Table:
    """A captioned table; ``note`` stands below it.

    ``detail`` says that a reader with little room can do without it.
    """

    caption: str
    head: tuple[Cell, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""
    detail: bool = False

    @classmethod
    def of(
        cls,
        caption: str,
        head: Sequence[Cell | str | bool | None],
        rows: Iterable[Sequence[Cell | str]],
        note: str = "",
        detail: bool = False,
    ) -> Table:
        """A table of texts, each of the kind of its column; cells stand as they are.

        The sign that a head begins with says of what kind its column is: ``#`` numbers, ``~``
        sentences, `` ` `` names of the program. A column is left out whose head is None or False,
        or begins with ``?`` where no row has it.
        """
        lines = [*map(tuple, rows)]
        columns = [*zip(*lines, strict=True)] if lines else [()] * len(head)
        shown = [one for pair in zip(head, columns, strict=True) if (one := _column(*pair))]
        body = tuple(zip(*(cells for _, cells in shown), strict=True))
        return cls(caption, tuple(top for top, _ in shown), body, note, detail)

    def cut(self, most: int | None) -> tuple[tuple[tuple[Cell, ...], ...], int]:
        """At most so many rows, the first and the last of them, and how many are left out.

        A table of a few rows stays whole.
        """
        if most is None or len(self.rows) <= max(most, _FEW):
            return self.rows, 0
        left = len(self.rows) - most
        last = most // 3
        gap = (Cell("..."), *(Cell("") for _ in self.head[1:]))
        return (*self.rows[: most - last], gap, *self.rows[len(self.rows) - last :]), left


def _column(
    top: Cell | str | bool | None, cells: Sequence[Cell | str]
) -> tuple[Cell, tuple[Cell, ...]] | None:
    """The head of a column and its cells, where it is shown."""
    if top is None or isinstance(top, bool):
        return None
    if isinstance(top, Cell):
        head, kind = top, top.kind
    else:
        text = top.removeprefix("?")
        kind = _SIGNS.get(text[:1], "text")
        head = Cell(text[kind != "text" :], "number" if kind == "number" else "text")
    made = tuple(one if isinstance(one, Cell) else Cell(one, kind) for one in cells)
    lacks = isinstance(top, str) and top[:1] == "?" and not any(one.text for one in made)
    return None if lacks else (head, made)


def sentence(text: str) -> Cell:
    """A cell that holds a sentence."""
    return Cell(text, "sentence")


def only(cell: Cell, shown: bool) -> Cell | None:
    """The head of a column that not every table of its kind has."""
    return cell if shown else None


def texts(*names: str) -> tuple[Cell, ...]:
    """The heads of columns of texts."""
    return tuple(map(Cell, names))


def numbers(*names: str) -> tuple[Cell, ...]:
    """The heads of columns of numbers."""
    return tuple(map(number, names))


def number(text: str, tone: str = "") -> Cell:
    """A cell that holds a number."""
    return Cell(text, "number", tone)


def name(text: str) -> Cell:
    """A cell that holds a name of the program."""
    return Cell(text, "name")


def spelled(cell: Cell) -> str:
    """A cell within HTML."""
    text = html.escape(cell.text)
    if cell.kind == "name":
        return f"<code>{text}</code>" if text else ""
    return typeset(text) if cell.kind in ("number", "sentence") else text


def missed_note(traces: Iterable[Trace]) -> str:
    """The footnote that explains †, where a table has one."""
    return MISSED if any(trace.limit and trace.limit.missed for trace in traces) else ""


def bounded(traces: Iterable[Trace]) -> bool:
    """Whether the error of a limit is a bound from quadrature."""
    return any(
        trace.limit is not None
        and trace.limit.method == Method.QUADRATURE.value
        and trace.limit.stderr != 0
        for trace in traces
    )


def limit_cell(trace: Trace) -> Cell:
    """The limit of a trace; an empty cell where it has none."""
    if trace.limit is None:
        return number("")
    sign = symbol(trace.key) if trace.statistic == "value" else ""
    tone = "warn" if trace.limit.missed else ""
    text = measured(trace.limit, sign)
    return number(text if text == "0" else with_power(text, trace.n_power), tone)


def z_cell(z: float) -> Cell:
    """A z-score; ``warn`` beyond 3, ``bad`` beyond 5 or where it is not a number."""
    size = abs(z)
    return number(score(z), "" if size <= 3 else "warn" if size <= 5 else "bad")


def limit_tables(table: LimitTable) -> tuple[Table, ...]:
    """Scalars and vectors of a limit, one row a result."""
    traces = gather(table, None, None)
    scalars = [trace for trace in traces if trace.statistic == "value"]
    means = [trace for trace in traces if trace.statistic == "mean"]
    squares = {trace.name: trace for trace in traces if trace.statistic == "second_moment"}
    made = [uncovered_table(table)] if table.uncovered else []
    if scalars:
        rows = ((t.name, limit_cell(t), _method(t)) for t in scalars)
        head = ("`Name", "#Limit", "Method")
        made.append(Table.of("Limits of scalars", head, rows, missed_note(scalars)))
    if means:
        pairs = ((mean, squares[mean.name]) for mean in means)
        lines = ((m.name, limit_cell(m), limit_cell(s), _method(s)) for m, s in pairs)
        both = ("`Name", "#Mean", "#Mean square", "Method")
        note = missed_note([*means, *squares.values()])
        made.append(Table.of("Limits of vectors", both, lines, note))
    return tuple(made)


def exploded_line(exploded: Explosion | None) -> tuple[str, ...]:
    """What to know first of the limits of a training run that explodes."""
    if exploded is None:
        return ()
    when = f"at {exploded.when}"
    return (
        f"Unstable: {exploded.fact} {when}. What grows is shown after its power of n is taken out.",
    )


def uncovered_table(found: LimitTable | Comparison) -> Table:
    """Outputs without a limit: where the calculus ends, and why; those of one cause in one row.

    What is lost in steps after an explosion for other causes than those before has that one cause.
    """
    causes: dict[tuple[str, str, str], list[str]] = {}
    end = found.exploded
    for row in found.uncovered:
        cause = (row.node, row.term, row.reason)
        if end is not None and end.precedes(row.name) and cause not in causes:
            cause = ("", "", f"it belongs to a step after the explosion at {end.when}: {end.fact}")
        causes.setdefault(cause, []).append(row.name)
    body = ((", ".join(names), *cause) for cause, names in causes.items())
    return Table.of("Not covered", ("~Names", "`Node", "`Term", "~Reason"), body)


def alone_tables(comparison: Comparison) -> tuple[Table, ...]:
    """What a comparison holds of outputs without a limit: why, and their finite values."""
    if not comparison.uncovered:
        return ()
    made = [uncovered_table(comparison)]
    if comparison.alone:
        shown = _finite(
            "Finite networks alone", FiniteTable(comparison.alone, (), 0, "", comparison.provenance)
        )
        made.append(shown)
    return tuple(made)


def finite_table(table: FiniteTable) -> Table:
    """Averages over seeds, one row a result and width."""
    return _finite(f"Finite networks ({table.backend})", table)


def _finite(caption: str, table: FiniteTable) -> Table:
    rows = []
    for trace in gather(None, table, None):
        sign = symbol(trace.key) if trace.statistic == "value" else ""
        own = trace.name, _STATISTICS.get(trace.statistic, trace.statistic)
        for point in trace.points:
            mean, sd = measured(point.mean, sign), over_seeds(point.sd, point.seeds)
            rows.append((*own, count(point.width), mean, sd, str(point.seeds)))
    head = ("`Name", "Statistic", "#Width", "#Mean over seeds", "#sd over seeds", "#Seeds")
    return Table.of(caption, head, rows)


def comparison_table(rows: Iterable[ComparisonRow], caption: str) -> Table:
    """Limit against finite widths, one row a result and width."""
    shown: list[tuple[Cell | str, ...]] = []
    seeds = 0
    for row in rows:
        seeds, key = max(seeds, row.seeds), Name.tabled(row.name)
        sign = symbol(key) if row.statistic == "value" else ""
        method = row.method.value if row.method else ""
        centre = Measure(row.limit, row.limit_stderr, method)
        finite = Measure(row.mean, row.stderr, Method.FINITE.value)
        words = [measured(centre, sign), measured(finite, sign)]
        if row.limit_std is not None:
            words = [f"{mean_of(centre)}, sd = {spread(row.limit_std, row.limit_std_error)}"]
            sd = "" if row.finite_std is None else f", sd = {over_seeds(row.finite_std, row.seeds)}"
            words.append(mean_of(finite) + sd)
        shown.append((*_named(key, row.statistic), count(row.width), *words, z_cell(row.z)))
    head = ("Quantity", "#Step", "#Input", "#Width", "#Limit", "#Finite, mean over seeds", "#z")
    return Table.of(caption, head, shown, scores(seeds) if seeds else "")


def _named(key: Name, statistic: str) -> tuple[Cell, str, str]:
    """The quantity of a row, its step and its input."""
    words = Cell(quantity(key, statistic), "text" if key.step is not None else "name")
    return words, "" if key.step is None else str(key.step), index(key)


def worst(comparison: Comparison, most: int = 8) -> tuple[ComparisonRow, ...]:
    """The rows with the largest differences in standard errors, largest first."""

    def size(row: ComparisonRow) -> float:
        return abs(row.z) if row.z == row.z else float("inf")

    return tuple(sorted(comparison.rows, key=size, reverse=True)[:most])


def slope_tables(slopes: Iterable[SlopeRow]) -> tuple[Table, ...]:
    """Fitted exponents of the error in n; no table where none was fitted."""
    fitted = tuple(slopes)
    if all(slope.slope is None for slope in fitted):
        return ()
    caption = "Slope of log |finite − limit| (root mean square over seeds) against log n"
    head = ("Quantity", "#Step", "#Input", "#Slope", "#95 % interval", "?Remark")
    return (Table.of(caption, head, map(_slope_row, fitted)),)


def unfitted(slopes: Iterable[SlopeRow]) -> tuple[str, ...]:
    """Why there is no table of slopes."""
    rows = tuple(slopes)
    if not rows or slope_tables(rows):
        return ()
    reasons = dict.fromkeys(slope.note for slope in rows if slope.note)
    return (f"No slopes were fitted: {'; '.join(reasons) or 'too few widths'}.",)


def _slope_row(slope: SlopeRow) -> tuple[Cell | str, ...]:
    bounded = slope.low is not None and slope.high is not None
    return (
        *_named(Name.tabled(slope.name), slope.statistic),
        "" if slope.slope is None else f"{slope.slope:.2f}",
        f"{slope.low:.2f} to {slope.high:.2f}" if bounded else "",
        slope.note,
    )


def _method(trace: Trace) -> str:
    return trace.limit.method if trace.limit else ""
