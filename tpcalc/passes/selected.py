"""The outputs of a program that are wanted, by names and patterns of outputs and of their cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

from tpcalc.errors import EvaluationError, UnknownName
from tpcalc.names import cell_name, fits
from tpcalc.program.program import Program, prune


def cells(program: Program, name: str, outputs: Sequence[str] | None = None) -> list[str]:
    """The names of the cells of an output, or of those that are wanted."""
    axes = program.types[program.ref(name)].axes
    found = [cell_name(name, cell) for cell in product(*(range(size) for _, size in axes))]
    if outputs is None or not axes:
        return found
    return [own for own in found if any(fits(one, p) for p in outputs for one in (name, own))]


def selected(program: Program, outputs: Sequence[str] | None) -> Program:
    """The program with the outputs that are wanted, and what they need."""
    if not program.outputs:
        raise EvaluationError("the program has no outputs.", hint="Name results with t.output.")
    if outputs is None:
        return program
    owner = {cell: name for name, _ in program.outputs for cell in (name, *cells(program, name))}
    names: set[str] = set()
    for pattern in outputs:
        found = {name for cell, name in owner.items() if fits(cell, pattern)}
        if not found:
            raise UnknownName("output", pattern, list(owner))
        names |= found
    kept = tuple((name, ref) for name, ref in program.outputs if name in names)
    return prune(replace(program, outputs=kept))


def matching(names: Sequence[str], wanted: bool | Sequence[str]) -> list[str]:
    """The names that are wanted: all, none, or those that fit a pattern."""
    if isinstance(wanted, bool):
        return list(names) if wanted else []
    return [name for name in names if any(fits(name, pattern) for pattern in wanted)]
