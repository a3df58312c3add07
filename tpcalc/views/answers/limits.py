"""What limits, finite networks and both together say."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tpcalc.results import Comparison, FiniteTable, LimitTable
from tpcalc.results.data import grouped
from tpcalc.views.numbers import ERRORS
from tpcalc.views.tables import (
    Cell,
    Table,
    alone_tables,
    bounded,
    comparison_table,
    exploded_line,
    finite_table,
    limit_cell,
    limit_tables,
    missed_note,
    slope_tables,
    uncovered_table,
    unfitted,
    worst,
)
from tpcalc.views.traces import Trace, gather
from tpcalc.views.view import Judgement, Part, View, view

_MOST = 500
_NOTE = (
    "Blocks of numbers are told by their ends: --json prints each, and limit.array(pattern) holds "
    "the values and errors of a block."
)


def readable(table: LimitTable) -> tuple[Table, ...]:
    """Limits one by one, or blocks of them by their ends where there are more than hundreds."""
    if len(table.scalars) + len(table.vectors) <= _MOST:
        return limit_tables(table)
    lost = (uncovered_table(table),) if table.uncovered else ()
    return (*lost, *_ranges(gather(table, None, None)))


def _ranges(traces: Iterable[Trace]) -> tuple[Table, ...]:
    """Scalars, and vectors by their mean squares: one row for what has one pattern and method."""
    shown = [one for one in traces if one.statistic != "mean" and one.limit is not None]
    groups = grouped(shown, _kind)
    made = []
    for statistic, caption in (("value", "scalars"), ("second_moment", "mean squares of vectors")):
        chosen = [group for kind, group in groups.items() if kind[0] == statistic]
        if chosen:
            head = ("`Names", "#How many", "#Smallest", "#Largest", "Method")
            missed = missed_note(trace for group in chosen for trace in group)
            made.append(Table.of(f"Limits of {caption}", head, map(_row, chosen), missed))
    last = made[-1]
    return (*made[:-1], replace(last, note="\n".join(filter(None, (_NOTE, last.note)))))


def _kind(trace: Trace) -> tuple[str, ...]:
    """What traces of one row share; the statistic first."""
    assert trace.limit is not None
    random = "random" if trace.limit.sd is not None else ""
    return trace.statistic, _pattern(trace), str(trace.n_power), trace.limit.method, random


def _pattern(trace: Trace) -> str:
    return trace.name if trace.key.input is None else trace.key.pattern


def _row(group: list[Trace]) -> tuple[Cell | str, ...]:
    ordered = sorted(group, key=_size)
    first, last = ordered[0], ordered[-1]
    title = first.name if len(group) == 1 else _pattern(first)
    method = first.limit.method if first.limit else ""
    return title, str(len(group)), limit_cell(first), limit_cell(last), method


def _size(trace: Trace) -> float:
    """What the numbers of a block are ordered by: a standard deviation where they are random."""
    assert trace.limit is not None
    return trace.limit.value if trace.limit.sd is None else trace.limit.sd


_MANY, _WORST = 24, 8  # rows, from which on the largest differences come first


@view.register
def _(table: LimitTable) -> View:
    errors = (ERRORS,) if bounded(gather(table, None, None)) else ()
    part = Part("limit", "Limits", "", readable(table))
    found = View.of(table, "Limits", part, said=_exploded(table))
    return replace(found, notes=(*errors, *table.notes))


@view.register
def _(table: FiniteTable) -> View:
    part = Part("finite", "Finite networks", "", (finite_table(table),))
    return View.of(table, "Finite networks", part)


@view.register
def _(comparison: Comparison) -> View:
    part = compared(comparison)
    part = replace(part, tables=(*part.tables, *alone_tables(comparison)))
    return View.of(comparison, "Comparison", part, said=_exploded(comparison))


def compared(comparison: Comparison) -> Part:
    """What a limit and finite networks have in common."""
    rows = comparison.rows
    tables = list(slope_tables(comparison.slopes))
    if len(rows) > _MANY:
        title = f"The {_WORST} largest differences of {len(rows)}"
        tables.append(comparison_table(worst(comparison, _WORST), title))
    tables.append(comparison_table(rows, "Limit and finite networks"))
    title = "Limit against finite networks"
    return Part("comparison", title, _lead(comparison), tuple(tables))


def _lead(comparison: Comparison) -> str:
    drawn = any(row.limit_std is not None for row in comparison.rows)
    text = "Where the limit is random, z compares means; the standard deviations stand beside."
    return " ".join([text] * drawn + [*unfitted(comparison.slopes)])


def _exploded(found: LimitTable | Comparison) -> Judgement | None:
    return next((Judgement("bad", line) for line in exploded_line(found.exploded)), None)
