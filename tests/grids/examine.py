"""One cell: which of its outputs have a limit, and what stands against the others."""

from __future__ import annotations

import time
import traceback
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import tpcalc as tp
from tests.clock import OutOfTime, cpu_time
from tests.grids.cells import Cell
from tpcalc.errors import LimitError, ScaleError, TpcalcError
from tpcalc.results import Name, NotCovered

__all__ = ["BROKEN", "COVERED", "KINDS", "NUMBERS", "RISES", "examine", "kind"]

COVERED, REFUSED, RISES, EXPLODES, NUMBERS, BROKEN = ".", "K", "G", "X", "E", "!"
KINDS = {
    REFUSED: "not covered",
    RISES: "a scalar grows with n",
    EXPLODES: "the argument of a function explodes",
    NUMBERS: "covered, and its numbers leave the floating-point range or cannot be evaluated",
    BROKEN: "no answer within the time limit, or an error of the program",
}
# What is covered does not depend on samples; where numbers are not told by few, the default is run.
FEW = {"samples": 64, "replicates": 2, "threads": 1}


def examine(cell: Cell, seconds: float) -> dict[str, Any]:
    """A line of the file of results.

    Args:
        cell: The settings.
        seconds: CPU time for its answer.
    """
    started = time.process_time()
    found: dict[str, Any] = {"cell": asdict(cell), "outputs": 0, "refused": []}
    try:
        with cpu_time(seconds):
            program = cell.program()
            found["outputs"] = len(program.outputs)
            rows = _uncovered(program, FEW)
            if any(kind_of(row) == NUMBERS for row in rows):
                rows = _uncovered(program, {"threads": 1})
        found["refused"] = _grouped(rows)
    except OutOfTime:
        found |= {"note": f"no answer within {seconds:g} s of CPU time"}
    except Exception:
        found |= {"note": traceback.format_exc(limit=-6)}
    return found | {"seconds": round(time.process_time() - started, 2)}


def _uncovered(program: tp.Program, budget: Mapping[str, int]) -> tuple[NotCovered, ...]:
    try:
        return tp.limit(program, **budget).table.uncovered
    except TpcalcError as error:  # not one output is covered
        name = program.outputs[0][0]
        return (NotCovered(name, error.where or "", "", error.message, code=error.code),)


def kind_of(row: NotCovered) -> str:
    """What a row is: K, G, X or E."""
    if row.code == ScaleError.code and "explodes" in row.reason:
        return EXPLODES
    if row.code == ScaleError.code and "grows" in row.reason:
        return RISES
    return REFUSED if row.code in (LimitError.code, ScaleError.code) else NUMBERS


def kind(line: Mapping[str, Any]) -> str:
    """What became of a cell: from the step of a true explosion on, nothing is a refusal."""
    if "note" in line:
        return BROKEN
    rows = [(_step(name), group["kind"]) for group in line["refused"] for name in group["outputs"]]
    first = min((step for step, found in rows if found in (RISES, EXPLODES)), default=None)
    kinds = [
        found for step, found in rows if first is None or step < first or found in (RISES, EXPLODES)
    ]
    return next((one for one in (REFUSED, RISES, EXPLODES, NUMBERS) if one in kinds), COVERED)


def _step(name: str) -> int:
    return Name.tabled(name).step or 0


def _grouped(rows: tuple[NotCovered, ...]) -> list[dict[str, Any]]:
    """Rows of one cause together."""
    groups: dict[tuple[str, str, str], dict[str, Any]] = {}
    for row in rows:
        group = groups.setdefault(
            (row.term, row.reason, row.code),
            {
                "kind": kind_of(row),
                "outputs": [],
                "node": row.node,
                "term": row.term,
                "code": row.code,
                "reason": row.reason,
                "bound": row.bound,
            },
        )
        group["outputs"].append(row.name)
    return list(groups.values())
