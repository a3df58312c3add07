"""Results in the terminal, as rich tables.

``rich`` is imported when a table is made, so that importing this module costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tpcalc.results import (
    Comparison,
    DepthExperiment,
    DepthOrders,
    DepthTable,
    DepthVerdict,
    Experiment,
    Explosion,
    FiniteTable,
    Kernel,
    LimitTable,
    Nonlinearity,
    OrderTable,
    PhaseDiagram,
    Sheets,
    Signal,
    Solution,
    Theorems,
    Verdict,
)
from tpcalc.views.depth import depth_rows, depth_tables, depth_values, judge_depth
from tpcalc.views.depth_experiment import (
    depth_experiment_lead,
    depth_experiment_tables,
    judge_depth_experiment,
)
from tpcalc.views.experiment import experiment_summary, experiment_tables, judge_experiment
from tpcalc.views.kernel import judge_kernel, kernel_summary, kernel_tables
from tpcalc.views.nonlinearity import (
    ends_of,
    judge_nonlinearity,
    nonlinearity_summary,
    nonlinearity_tables,
)
from tpcalc.views.numbers import ERRORS
from tpcalc.views.orders import order_lines, order_tables, region_lines, solution_tables
from tpcalc.views.ranges import readable
from tpcalc.views.regimes import check_tables, judged, phase_lead, phase_tables
from tpcalc.views.sheet import judge_sheets, sheet_summary, sheet_tables
from tpcalc.views.signal import judge_signal, signal_sections, signal_summary, signal_tables
from tpcalc.views.tables import (
    Cell,
    Table,
    alone_tables,
    bounded,
    comparison_table,
    exploded_line,
    finite_table,
    slope_tables,
    unfitted,
    worst,
)
from tpcalc.views.theorems import answer_table, contradictions, theorem_lead
from tpcalc.views.traces import gather
from tpcalc.views.verdict import Verdict as Judgement

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, Group, RenderResult
    from rich.table import Table as RichTable
    from rich.text import Text

# Numbers with a remark, which may go on a second line.
_WRAPPED = ("Limit", "Finite, mean over seeds")
_GAP, _EDGE = 3, 1  # blanks between columns and at the sides
_TONES = {"": "", "warn": "yellow", "bad": "bold red"}
_LEVELS = {
    "good": "bold green",
    "limit": "bold blue",
    "warn": "bold yellow",
    "bad": "bold red",
    "info": "bold",
}


def limit_group(table: LimitTable, most: int | None = None) -> Group:
    """Limits for ``rich.console.Console.print``.

    Example:
        >>> from rich.console import Console
        >>> from tpcalc.results import Estimate, Method, Provenance, ScalarRow
        >>> row = ScalarRow("f[1,0]", Estimate(0.31841, 0.0012, Method.PARTICLES))
        >>> console = Console(width=60, color_system=None)
        >>> with console.capture() as capture:
        ...     console.print(limit_group(LimitTable((row,), (), Provenance("0", "ab"))))
        >>> "f[1,0]   0.3184 ± 0.0012   particles" in capture.get()
        True
    """
    errors = (ERRORS,) if bounded(gather(table, None, None)) else ()
    return _group(readable(table), (*errors, *table.notes), most, _first(table.exploded))


def finite_group(table: FiniteTable, most: int | None = None) -> Group:
    """Averages at finite widths for ``rich.console.Console.print``."""
    return _group((finite_table(table),), table.notes, most)


def comparison_group(
    comparison: Comparison, limit: LimitTable | None = None, most: int | None = None
) -> Group:
    """A comparison for ``rich.console.Console.print``; z beyond 3 is yellow, beyond 5 red."""
    rows, caption = comparison.rows, "Limit and finite networks"
    if most is not None and len(rows) > most:
        caption = f"The {most} largest differences of {len(rows)}"
        rows = worst(comparison, most)
    tables = [comparison_table(rows, caption, limit), *slope_tables(comparison.slopes)]
    tables += alone_tables(comparison)
    notes = (*comparison.notes, *unfitted(comparison.slopes))
    return _group(tables, notes, most, _first(comparison.exploded))


def orders_group(table: OrderTable, most: int | None = None) -> Group:
    """Orders for ``rich.console.Console.print``, with the region where they hold."""
    notes = (*order_lines(table), *table.notes)
    return _group(order_tables(table), notes, most)


def check_group(
    found: Verdict,
    measured: OrderTable | None = None,
    most: int | None = None,
    theorems: Theorems | None = None,
) -> Group:
    """A verdict for ``rich.console.Console.print``: the headline, what decides, the tables."""
    lead, more = _verdict(judged(found), theorems)
    tables = [*check_tables(found), *(order_tables(measured) if measured else ()), *more]
    notes = (*region_lines(found.region, ()), *found.notes, *(measured.notes if measured else ()))
    return _group(tables, tuple(dict.fromkeys(notes)), most, lead)


def _verdict(said: Judgement, theorems: Theorems | None) -> tuple[list[Text], list[Table]]:
    """A verdict with what decides, and what theorems say of the network beside it."""
    from rich.text import Text

    lead = [Text(said.headline, style=_LEVELS[said.level])]
    lead += [Text(f"- {reason}") for reason in said.reasons]
    if theorems is None or not theorems.rows:
        return lead, []
    lead.append(Text(theorem_lead(theorems)))
    return lead, [answer_table(theorems), *contradictions(theorems)]


def depth_group(
    found: DepthVerdict, most: int | None = None, *, theorems: Theorems | None = None
) -> Group:
    """A verdict on the depth for ``rich.console.Console.print``."""
    lead, more = _verdict(judge_depth(found), theorems)
    notes = (*region_lines(found.region, ()), *found.notes)
    return _group([*depth_tables(found), *more], notes, most, lead)


def depth_orders_group(found: DepthOrders, most: int | None = None) -> Group:
    """Orders in the depth for ``rich.console.Console.print``."""
    notes = (*region_lines(found.region, ()), *found.notes)
    return _group((depth_rows(found.rows),), notes, most)


def depth_limit_group(found: DepthTable, most: int | None = None) -> Group:
    """A run at several depths for ``rich.console.Console.print``."""
    return _group(depth_values(found), found.notes, most)


def solution_group(solution: Solution, most: int | None = None) -> Group:
    """Learning-rate exponents for ``rich.console.Console.print``."""
    notes = (*region_lines(solution.region, solution.point), *solution.notes)
    return _group(solution_tables(solution), notes, most)


def phases_group(diagram: PhaseDiagram, most: int | None = None) -> Group:
    """The cells of a phase diagram for ``rich.console.Console.print``."""
    from rich.text import Text

    return _group(phase_tables(diagram), diagram.notes, most, [Text(phase_lead(diagram))])


def _told(
    judge: Callable[[Any], Judgement],
    summary: Callable[[Any], str],
    tables: Callable[[Any], Iterable[Table]],
    notes: Callable[[Any], tuple[str, ...]] = lambda found: found.notes,
) -> Callable[..., Group]:
    """What shows an answer: in a few words, a sentence about it, what speaks for it, the tables."""

    def group(found: Any, most: int | None = None) -> Group:
        from rich.text import Text

        said = judge(found)
        head = [Text(said.headline, style=_LEVELS[said.level]), Text(summary(found))]
        lead = [*head, *(Text(f"- {reason}") for reason in said.reasons)]
        return _group(tables(found), notes(found), most, lead)

    return group


def _signal_notes(found: Signal) -> tuple[str, ...]:
    return (*(part.lead for part in signal_sections(found) if part.lead), *found.notes)


# Answers for ``rich.console.Console.print``; ``most``: rows shown of each table, all if None.
kernel_group = _told(judge_kernel, kernel_summary, kernel_tables)
sheet_group = _told(judge_sheets, sheet_summary, sheet_tables, lambda found: ())
signal_group = _told(judge_signal, signal_summary, signal_tables, _signal_notes)
nonlinearity_group = _told(
    judge_nonlinearity,
    nonlinearity_summary,
    lambda found: map(ends_of, nonlinearity_tables(found)),
)
depth_experiment_group = _told(
    judge_depth_experiment, depth_experiment_lead, depth_experiment_tables
)
experiment_group = _told(judge_experiment, experiment_summary, experiment_tables)


SHOWN: dict[type, Callable[..., Group]] = {
    LimitTable: limit_group,
    FiniteTable: finite_group,
    Comparison: comparison_group,
    OrderTable: orders_group,
    Verdict: check_group,
    DepthVerdict: depth_group,
    DepthOrders: depth_orders_group,
    DepthTable: depth_limit_group,
    Solution: solution_group,
    PhaseDiagram: phases_group,
    Kernel: kernel_group,
    Sheets: sheet_group,
    Signal: signal_group,
    Nonlinearity: nonlinearity_group,
    DepthExperiment: depth_experiment_group,
    Experiment: experiment_group,
}
"""What shows an answer of a type; more that it takes is given by name."""


def _first(exploded: Explosion | None) -> list[Text]:
    from rich.text import Text

    return [Text(line, style=_LEVELS["bad"]) for line in exploded_line(exploded)]


def _group(
    tables: Iterable[Table],
    notes: tuple[str, ...],
    most: int | None,
    lead: Iterable[Text] = (),
) -> Group:
    from rich.console import Group
    from rich.text import Text

    return Group(
        *lead,
        *(_Fitted(table, most) for table in tables),
        *(Text(note, style="dim") for note in notes),
    )


@dataclass(frozen=True, slots=True)
class _Fitted:
    """A table that takes the room it is given, and cuts nothing that it shows.

    Args:
        table: The table.
        most: Rows shown; all if None.
    """

    table: Table
    most: int | None

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        rows = self.table.rows[: self.most]
        shown = len(self.table.head)
        # A matrix is shown in as many columns as fit; of other tables each column is needed.
        if all(cell.kind == "number" for cell in self.table.head):
            while shown > 2 and _needed(self.table.head[:shown], rows) > options.max_width:
                shown -= 1
        whole = _needed(self.table.head[:shown], rows) <= options.max_width
        yield _rich(self.table, rows, shown, whole)


def _needed(head: tuple[Cell, ...], rows: tuple[tuple[Cell, ...], ...]) -> int:
    """Columns of a terminal that a table takes where its numbers stay on one line."""
    from rich.cells import cell_len

    widths = []
    for index, title in enumerate(head):
        cells = [title, *(row[index] for row in rows)]
        parts = [[cell.text] if _kept(title) else cell.text.split() or [""] for cell in cells]
        widths.append(max(cell_len(word) for words in parts for word in words))
    return sum(widths) + _GAP * (len(widths) - 1) + 2 * _EDGE


def _kept(title: Cell) -> bool:
    return title.kind == "number" and title.text not in _WRAPPED


def _rich(table: Table, rows: tuple[tuple[Cell, ...], ...], shown: int, whole: bool) -> RichTable:
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    below = [
        f"{left} more {what}."
        for left, what in (
            (len(table.rows) - len(rows), "rows"),
            (len(table.head) - shown, "columns" if len(table.head) - shown > 1 else "column"),
        )
        if left
    ]
    words = "\n".join(part for part in (" ".join(below), table.note) if part)
    made = RichTable(
        title=Text(table.caption, style="bold"),
        title_justify="left",
        caption=Text(words) if words else None,
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
    )
    for cell in table.head[:shown]:
        # Numbers stay whole while they fit; where the terminal is narrow, words give way first.
        made.add_column(
            Text(cell.text),
            justify="right" if cell.kind == "number" else "left",
            no_wrap=whole and _kept(cell),
            overflow="fold",
        )
    for row in rows:
        made.add_row(*map(_text, row[:shown]))
    return made


def _text(cell: Cell) -> Text:
    from rich.text import Text

    return Text(cell.text, style=_TONES[cell.tone])
