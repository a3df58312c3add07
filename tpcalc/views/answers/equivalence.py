"""How far two programs are the same."""

from __future__ import annotations

from tpcalc.results import Equivalence, Estimate
from tpcalc.views.numbers import Measure, count, measured, plain, score
from tpcalc.views.tables import Table, name, number, numbers, only, texts
from tpcalc.views.view import Judgement, Part, View, view

_FINITE = {True: "equal, up to rounding", False: "different", None: "no network was run"}
_SAME = {"same graph", "equal within errors"}


@view.register
def _(found: Equivalence) -> View:
    relations = dict.fromkeys(row.relation for row in found.rows)
    headline = f"Networks: {_FINITE[found.at_finite_width]}; limits: {', '.join(relations)}"
    said = Judgement("good" if relations.keys() <= _SAME else "warn", headline)
    computed = any(row.left is not None for row in found.rows)
    head = (
        *texts("Output", "Networks"),
        number("Largest relative difference"),
        only(number("Slope in n"), any(row.slope is not None for row in found.rows)),
        *texts("Limits"),
        *(only(cell, computed) for cell in numbers("First", "Second", "z")),
    )
    rows = (
        (
            name(row.name),
            _FINITE[row.equal],
            plain(max(row.gaps), 2) if row.gaps else "",
            "" if row.slope is None or row.slope.slope is None else f"{row.slope.slope:.2f}",
            row.relation,
            _limit(row.left),
            _limit(row.right),
            "" if row.z is None else score(row.z),
        )
        for row in found.rows
    )
    widths = ", ".join(map(count, found.widths))
    note = f"Networks of width {widths}, {found.seeds} of each." if widths else ""
    part = Part("equivalence", "Outputs", "", (Table.of("Outputs", head, rows, note),))
    return View("Equivalence", said, "", (part,), found.notes, found.provenance)


def _limit(found: Estimate | None) -> str:
    return "" if found is None else measured(Measure.of(found))
