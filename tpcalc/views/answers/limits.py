"""What limits, finite networks and both together say."""

from __future__ import annotations

from dataclasses import replace

from tpcalc.results import Comparison, FiniteTable, LimitTable
from tpcalc.views.answers.ranges import readable
from tpcalc.views.numbers import ERRORS
from tpcalc.views.tables import (
    alone_tables,
    bounded,
    comparison_table,
    exploded_line,
    finite_table,
    slope_tables,
    unfitted,
    worst,
)
from tpcalc.views.traces import gather
from tpcalc.views.view import Judgement, Part, View, view

_MANY, _WORST = 24, 8  # rows, from which on the largest differences come first


@view.register
def _(table: LimitTable) -> View:
    errors = (ERRORS,) if bounded(gather(table, None, None)) else ()
    part = Part("limit", "Limits", "", readable(table))
    said = _exploded(table)
    return View("Limits", said, "", (part,), (*errors, *table.notes), table.provenance)


@view.register
def _(table: FiniteTable) -> View:
    part = Part("finite", "Finite networks", "", (finite_table(table),))
    return View("Finite networks", None, "", (part,), table.notes, table.provenance)


@view.register
def _(comparison: Comparison) -> View:
    part = compared(comparison)
    part = replace(part, tables=(*part.tables, *alone_tables(comparison)))
    said = _exploded(comparison)
    return View("Comparison", said, "", (part,), comparison.notes, comparison.provenance)


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
