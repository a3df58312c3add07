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
from tpcalc.views.tables import Table
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
    head = ("`Z of", "#Size", "~Is a function of", "Moments")
    rows = (
        (row.name, size(row.n, row.status), _on(row), _moments(row.degree))
        for row in sorted(found.rows, key=lambda row: row.known)
    )
    laws = ((one.name, one.law) for one in found.gaussians if one.law != one.name)
    tables = (
        Table.of("Gaussians that limits are functions of", head, rows, _DEGREE),
        Table.of("What these Gaussians are", ("`Gaussian", "~What it is"), laws),
    )
    return View.of(found, "Dependencies", Part("dependencies", "Dependencies", "", tables))


@view.register
def _(found: Independence) -> View:
    said = "independent" if found.proved else "not provably independent"
    reasons = [f"both depend on {a}" for a, b in found.shared if a == b]
    reasons += [f"{a} and {b} may be correlated" for a, b in found.shared if a != b]
    headline = f"{found.first} and {found.second}: {said}"
    why = (*reasons, *filter(None, (found.note,)))
    return View("Independence", Judgement("good" if found.proved else "warn", headline, why))


@view.register
def _(found: CorrectionTable) -> View:
    rows = ((row.name, row.text) for row in found.rows)
    table = Table.of("Corrections of products", ("`Product", "~Correction"), rows)
    return View.of(found, table.caption, Part("corrections", table.caption, "", (table,)))


@view.register
def _(found: InitialWeightTable) -> View:
    rows = (
        (
            row.name,
            row.part_of,
            "not known" if row.n is None else size(row.n, row.status),
            _STAYS[row.vanishes],
            _moments(row.degree),
        )
        for row in found.rows
    )
    head = ("`Term", "`In", "#Relative size", "In the limit", "Second moment")
    table = Table.of("What initial weights add", head, rows, _DEGREE)
    return View.of(found, table.caption, Part("weights", table.caption, "", (table,)))


_FINITE = {True: "equal, up to rounding", False: "different", None: "no network was run"}
_SAME = {"same graph", "equal within errors"}


@view.register
def _(found: Equivalence) -> View:
    relations = dict.fromkeys(row.relation for row in found.rows)
    headline = f"Networks: {_FINITE[found.at_finite_width]}; limits: {', '.join(relations)}"
    said = Judgement("good" if relations.keys() <= _SAME else "warn", headline)
    head = ("`Output", "Networks", "#Largest relative difference", "?#Slope in n", "Limits")
    rows = (
        (
            row.name,
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
    table = Table.of("Outputs", (*head, "?#First", "?#Second", "?#z"), rows, note)
    return View.of(found, "Equivalence", Part("equivalence", "Outputs", "", (table,)), said=said)
