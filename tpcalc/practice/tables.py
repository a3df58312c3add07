"""Tables that were printed, read once, and what the theory says of each of their networks."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from math import isnan, log
from pathlib import Path
from typing import Any

from tpcalc import checks
from tpcalc.meanfield.nonlinearity import coefficient
from tpcalc.meanfield.notation.macro_layers import MacroLayers
from tpcalc.meanfield.recursion import propagate
from tpcalc.practice.study_a import words_of
from tpcalc.practice.study_b import study_b
from tpcalc.results import Estimate, Method
from tpcalc.results.scales import PrintedRow, PrintedTable

Row = Mapping[str, Any]
ONE = Estimate(1.0, 0.0, Method.EXACT)
OF_ROWS = ("data", "nlc", "lbias", "note")  # cells that are no arguments of macro-layers


@cache
def _printed() -> Mapping[str, Any]:
    return tomllib.loads(Path(__file__).with_name("tables.toml").read_text(encoding="utf-8"))


@cache
def table(name: str) -> PrintedTable:
    """A table of the thesis: coefficients that were measured, beside the theory, row by row.

    Args:
        name: ``"A.1"``, networks of study A, or ``"A.2"``, of study B without skips and with
            activations of mean 0, beside chains of their activations.

    Returns:
        The rows of which all cells can be read, each with whether it agrees.

    Raises:
        UnknownName: There is no such table.

    Source: Schoenherr, The nonlinearity coefficient, tables A.1 and A.2.

    Example::

        tp.signal.practice.table("A.1").agree
    """
    checks.one_of("table", name, THEORY)
    own, reasons = _printed()[name], _printed()["notes"]
    factors = {key: own[key] for key in ("nlc", "bias") if key in own}
    named = [dict(zip(own["columns"], row, strict=True)) for row in own["rows"]]
    rows = [
        _row(row, words, nlc, bias, factors)
        for row, (words, nlc, bias) in zip(
            named, THEORY[name](named, own.get("batch", 0)), strict=True
        )
    ]
    within = ", ".join(f"{key} {value:g}" for key, value in factors.items())
    notes = [f"Numbers agree within the factors {within}."]
    notes += [f"Batch norm is of {own['batch']} inputs."] if "batch" in own else []
    known = dict.fromkeys(row["note"] for row in named if row.get("note"))
    notes += [f"{note}: {reasons[note]}." for note in known]
    agree = sum(row.word == "agrees" for row in rows)
    return PrintedTable(name, own["title"], agree, tuple(rows), tuple(notes))


def _row(
    row: Row, words: str, nlc: Estimate, bias: Estimate, factors: Mapping[str, float]
) -> PrintedRow:
    printed = {"nlc": row["nlc"], "bias": row.get("lbias", float("nan"))}
    found = {"nlc": nlc.value, "bias": bias.value}
    off = [
        key
        for key, factor in factors.items()
        if not isnan(printed[key]) and abs(log(found[key] / printed[key])) > log(factor)
    ]
    reasons = filter(None, (*off, row.get("note")))
    word = f"off: {', '.join(reasons)}" if off else "agrees"
    return PrintedRow(words, printed["nlc"], nlc, printed["bias"], bias, word)


Theory = tuple[str, Estimate, Estimate]


def _study_a(rows: list[dict[str, Any]], batch: int) -> Iterator[Theory]:
    for row in rows:
        design = MacroLayers(**{key: cell for key, cell in row.items() if key not in OF_ROWS})
        states = propagate(design.network(batch).read)
        bias = states[-1].shared.estimate()
        yield f"{row['data']}: {words_of(design)}", coefficient(states[0], states[-1]), bias


def _study_b(rows: list[dict[str, Any]], batch: int) -> Iterator[Theory]:
    methods = list(dict.fromkeys(row["method"] for row in rows))
    known = {(own.method, own.amount): own for own in study_b(methods=methods) if own.fit == "both"}
    for row in rows:
        own = known[row["method"], row["amount"]]
        yield f"{row['method']}, l = {row['amount']:.4g}, norm {row['norm']}", own.product, ONE


THEORY: dict[str, Callable[[list[dict[str, Any]], int], Iterator[Theory]]] = {
    "A.1": _study_a,
    "A.2": _study_b,
}
"""What the theory says of the rows of each table: words, the coefficient, LBIAS."""
