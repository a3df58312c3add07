"""What limits depend on, corrections of products, what initial weights add, equal programs."""

from __future__ import annotations

from tpcalc.results import (
    CorrectionTable,
    DependencyRow,
    DependencyTable,
    Equivalence,
    Independence,
    InitialWeightTable,
)
from tpcalc.views.answers.orders import size
from tpcalc.views.numbers import count, plain, score, shown
from tpcalc.views.tables import Table, name, number, numbers, only, sentence, texts
from tpcalc.views.view import Judgement, Part, View, view

_DEGREE = "Degree d: bounded by a polynomial of degree d in Gaussians."
_STAYS = {True: "vanishes", False: "stays", None: "not decided"}


def _on(row: DependencyRow) -> str:
    if not row.known:
        return row.note
    if not row.on:
        return "nothing: a constant" if row.vector else "nothing: a number"
    return ", ".join(f"{own} (?)" if own in row.doubtful else own for own in row.on)


def _moments(degree: str | None) -> str:
    return "not proved finite" if degree is None else f"finite (degree {degree})"


@view.register
def _(found: DependencyTable) -> View:
    head = (*texts("Z of"), number("Size"), *texts("Is a function of", "Moments"))
    rows = (
        (name(row.name), size(row.n, row.status), sentence(_on(row)), _moments(row.degree))
        for row in sorted(found.rows, key=lambda row: row.known)
    )
    laws = ((name(one.name), sentence(one.law)) for one in found.gaussians if one.law != one.name)
    tables = (
        Table.of("Gaussians that limits are functions of", head, rows, _DEGREE),
        Table.of("What these Gaussians are", texts("Gaussian", "What it is"), laws),
    )
    part = Part("dependencies", "Dependencies", "", tuple(table for table in tables if table.rows))
    return View("Dependencies", None, "", (part,), found.notes, found.provenance)


@view.register
def _(found: Independence) -> View:
    said = "independent" if found.proved else "not provably independent"
    reasons = [f"both depend on {a}" for a, b in found.shared if a == b]
    reasons += [f"{a} and {b} may be correlated" for a, b in found.shared if a != b]
    headline = f"{found.first} and {found.second}: {said}"
    level = "good" if found.proved else "warn"
    return View(
        "Independence", Judgement(level, headline, (*reasons, *filter(None, (found.note,))))
    )


@view.register
def _(found: CorrectionTable) -> View:
    rows = ((name(row.name), sentence(row.text)) for row in found.rows)
    table = Table.of("Corrections of products", texts("Product", "Correction"), rows)
    part = Part("corrections", table.caption, "", (table,))
    return View(table.caption, None, "", (part,), (), found.provenance)


@view.register
def _(found: InitialWeightTable) -> View:
    rows = (
        (
            name(row.name),
            name(row.part_of),
            "not known" if row.n is None else size(row.n, row.status),
            _STAYS[row.vanishes],
            _moments(row.degree),
        )
        for row in found.rows
    )
    head = (*texts("Term", "In"), number("Relative size"), *texts("In the limit", "Second moment"))
    table = Table.of("What initial weights add", head, rows, _DEGREE)
    part = Part("weights", table.caption, "", (table,))
    return View(table.caption, None, "", (part,), found.notes, found.provenance)


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
            shown(row.left),
            shown(row.right),
            "" if row.z is None else score(row.z),
        )
        for row in found.rows
    )
    widths = ", ".join(map(count, found.widths))
    note = f"Networks of width {widths}, {found.seeds} of each." if widths else ""
    part = Part("equivalence", "Outputs", "", (Table.of("Outputs", head, rows, note),))
    return View("Equivalence", said, "", (part,), found.notes, found.provenance)
