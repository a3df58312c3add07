"""Runs whose numbers leave the floating-point range: what is there before they do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from tpcalc.arrays import Array
from tpcalc.errors import Exploded
from tpcalc.program.program import Program, prune

Results = dict[tuple[str, str], Array]


@dataclass(frozen=True)
class Overflow:
    """The first output that a run cannot give, and the error it ended with."""

    name: str
    error: Exploded


def before_overflow(
    run: Callable[[Program], Results], program: Program
) -> tuple[Results, Overflow | None]:
    """The results of a run up to the first output that it cannot give."""
    try:
        return run(program), None
    except Exploded as error:
        outputs = sorted(program.outputs, key=lambda output: output[1])
        found: Results = {}
        known, largest = 0, len(outputs) - 1  # of so many outputs there are numbers
        while known < largest:
            middle = (known + largest + 1) // 2
            try:
                found, known = run(_first(program, outputs[:middle])), middle
            except Exploded:
                largest = middle - 1
        return found, Overflow(outputs[known][0], error)


def _first(program: Program, outputs: list[tuple[str, int]]) -> Program:
    """The part of a program that some outputs need, with the outputs in its own order."""
    names = {name for name, _ in outputs}
    return prune(replace(program, outputs=tuple(o for o in program.outputs if o[0] in names)))
