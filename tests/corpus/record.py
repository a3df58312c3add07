"""What the present tree answers to a run, as plain data, and the files it is kept in.

A record holds nothing of the classes of a program: names of outputs, numbers and words. Nodes are
numbered by how a program is stored, so their numbers are left out of reasons and formulas. What may
change with the language of programs is apart: ``nodes`` and ``text``.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tpcalc as tp
from tests.corpus.runs import SEED, Run
from tpcalc.errors import TpcalcError
from tpcalc.results import Estimate

__all__ = ["Record", "answered", "file_of", "load", "write"]

Record = dict[str, Any]

FOLDER = Path(__file__).parent / "records"
SMALL = 30  # programs of so many nodes are kept as text
DEEP = 4  # entries deeper than this are one line each

_NODE = re.compile(r"%\d+")
_LINE = re.compile(r" at [^ ,:;()]+\.py:\d+")
_SAMPLED = re.compile(r"\(particles: [^()]*\)")
_DIGITS = re.compile(r"-?\d[\d.]*(e[+-]?\d+)?")
_TERM = re.compile(r"is not covered \(.*\): ")
_UNNAMED = re.compile(r"\bv\d+\b")


def answered(run: Run, seed: int = SEED) -> Record:
    """All that is recorded of a run."""
    found: Record = {}
    if run.program is not None:
        program = run.program()
        found["nodes"] = len(program.nodes)
        found["text"] = _text(program)
        found["orders"] = _orders(program, run.orders)
        found["limits"] = _limits(program, run.limit, seed)
    if run.kernel is not None:
        found["kernel"] = _kernel(run.kernel(seed))
    return found


def words(text: str) -> str:
    """A sentence without what depends on how a program is stored, or on draws."""
    if text.startswith("not covered:"):  # then comes a line of the program; limits have the reason
        return "not covered"
    text = _TERM.sub("is not covered: ", _LINE.sub("", _NODE.sub("%", text)))
    return _SAMPLED.sub(lambda found: _DIGITS.sub("#", found[0]), text)


def formula(text: str | None) -> str | None:
    """A formula in which nodes without a name are numbered by where they first stand."""
    if text is None:
        return None
    seen: dict[str, str] = {}
    return _UNNAMED.sub(lambda at: seen.setdefault(at[0], f"v#{len(seen) + 1}"), text)


# --------------------------------------------------------------------------------- questions


def _text(program: tp.Program) -> Record:
    text = str(program)
    found: Record = {"sha256": hashlib.sha256(text.encode()).hexdigest()}
    if len(program.nodes) <= SMALL:
        found["lines"] = text.splitlines()
    return found


def _orders(program: tp.Program, options: Mapping[str, Any]) -> Record:
    try:
        found = tp.orders(program, **options)
    except TpcalcError as error:
        return {"error": _error(error)}
    outputs = {
        name: {
            "power": str(order.exponent),
            "reason": words(order.reason),
            "status": order.status,
            "strict": order.strict,
        }
        for name, order in found.items()
    }
    return {"outputs": outputs, "region": list(found.region.lines)}


def _limits(program: tp.Program, options: Mapping[str, Any], seed: int) -> Record:
    try:
        limit = tp.limit(program, seed=seed, formulas=True, **options)
    except TpcalcError as error:
        return {"error": _error(error)}
    table = limit.table
    outputs: Record = {}
    for row in table.scalars:
        outputs[row.name] = {
            "formula": formula(row.formula and row.formula.text),
            "n_power": str(row.n_power),
            "note": row.note,
            "value": _number(row.estimate),
            "value as a formula": limit[row.name].formula,
        }
    for one in table.vectors:
        outputs[one.name] = {
            "formula": formula(one.formula and one.formula.text),
            "mean": _number(one.mean),
            "n_power": str(one.n_power),
            "second moment": _number(one.second_moment),
        }
    for lost in table.uncovered:
        outputs[lost.name] = {
            "code": lost.code,
            "n_power": str(lost.n_power),
            "not covered": words(lost.reason),
            "vector": lost.vector,
        }
    exploded = words(table.exploded.text) if table.exploded else None
    notes = [words(note) for note in table.notes]
    return {"exploded": exploded, "notes": notes, "outputs": outputs}


def _number(estimate: Estimate) -> Record:
    found: Record = {
        "error": estimate.stderr,
        "method": estimate.method.value,
        "status": estimate.status.name,
        "value": estimate.value,
    }
    if estimate.replicates:
        found["replicates"] = estimate.replicates
    if estimate.std is not None:
        found["std"], found["std error"] = estimate.std, estimate.std_error
    return found


def _kernel(kernel: tp.Kernel) -> Record:
    """The first entries of each kernel."""
    found: Record = {
        "coincident error": kernel.coincident_error,
        "error": kernel.error,
        "independent": kernel.independent,
        "method": kernel.method.value,
        "notes": [words(note) for note in kernel.notes],
        "shape": list(kernel.shape),
    }
    for kind in kernel.kinds:
        entries = kernel.matrix(kind)[:3, :3]
        found[kind] = {f"{i},{j}": float(x) for (i, j), x in _entries(entries) if i <= j}
    return found


def _entries(matrix: Any) -> Any:
    return (((i, j), x) for i, row in enumerate(matrix) for j, x in enumerate(row))


def _error(error: TpcalcError) -> Record:
    return {"code": error.code, "message": words(error.message)}


# ------------------------------------------------------------------------------------- files


def file_of(family: str) -> Path:
    """The file of a family."""
    return FOLDER / f"{family}.json"


def load(family: str) -> dict[str, Record]:
    """The records of a family by name of the run."""
    found: dict[str, Record] = json.loads(file_of(family).read_text(encoding="utf-8"))
    return found


def write(family: str, records: Mapping[str, Record]) -> None:
    """Write the records of a family: sorted, one line for each answer."""
    FOLDER.mkdir(exist_ok=True)
    file_of(family).write_text(_pretty(dict(records), 0) + "\n", encoding="utf-8")


def _pretty(value: Any, depth: int) -> str:
    """JSON with sorted keys; an answer, a sentence or a number is one line."""
    pad, end = " " * (depth + 1), " " * depth
    if isinstance(value, dict) and depth < DEEP and value:
        parts = [f"{pad}{json.dumps(k)}: {_pretty(value[k], depth + 1)}" for k in sorted(value)]
        return "{\n" + ",\n".join(parts) + f"\n{end}}}"
    if isinstance(value, list) and len(value) > 1 and isinstance(value[0], str):
        return "[\n" + ",\n".join(pad + json.dumps(x) for x in value) + f"\n{end}]"
    return json.dumps(value, sort_keys=True)
