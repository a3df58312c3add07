"""Blocks of numbers told by their ends: where a table of each of them is more than one can read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tpcalc.results import LimitTable
from tpcalc.results.data import grouped
from tpcalc.views.tables import (
    Cell,
    Table,
    limit_cell,
    limit_tables,
    missed_note,
    name,
    numbers,
    texts,
    uncovered_table,
)
from tpcalc.views.traces import Trace, gather

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
            columns = numbers("How many", "Smallest", "Largest")
            head = (*texts("Names"), *columns, *texts("Method"))
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
    return name(title), str(len(group)), limit_cell(first), limit_cell(last), method


def _size(trace: Trace) -> float:
    """What the numbers of a block are ordered by: a standard deviation where they are random."""
    assert trace.limit is not None
    return trace.limit.value if trace.limit.sd is None else trace.limit.sd
