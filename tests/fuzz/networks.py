"""Networks of finite width of a program: what its outputs are there, with explicit matrices."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tests.numpy_run import draw, run
from tpcalc.program.nodes import Kind
from tpcalc.program.program import Program

__all__ = ["BIG", "SMALL", "Data", "Values", "sample"]

Values = NDArray[np.float64]
SMALL, BIG = 0, 1  # the widths of a case, and those that confirm what looks wrong there


@dataclass(frozen=True)
class Data:
    """One output at one width, an entry for each network.

    Args:
        width: n.
        first: A scalar; of a vector the average of its coordinates.
        second: Its square; of a vector the average of the squares of its coordinates.
    """

    width: int
    first: Values
    second: Values


def plan(program: Program, level: int) -> list[tuple[int, int]]:
    """Widths, and how many networks of each; fewer where matrices are formed."""
    families = program.families.values()
    laws = {family.law for family in families if family.type.kind is Kind.MATRIX}
    if "orthogonal" in laws:
        return [[(64, 48), (512, 32)], [(192, 64), (1280, 48)]][level]
    if laws:
        return [[(128, 64), (1024, 32)], [(512, 96), (4096, 48)]][level]
    return [[(2**10, 64), (2**14, 64)], [(2**13, 128), (2**17, 96)]][level]


def sample(program: Program, level: int, seed: int) -> dict[str, tuple[Data, Data]]:
    """Every output at the widths of a level, of networks drawn afresh."""
    kinds = {name: program.types[ref].kind for name, ref in program.outputs}
    found: dict[str, list[Data]] = {name: [] for name in kinds}
    for width, count in plan(program, level):
        drawn: dict[str, list[tuple[float, float]]] = {name: [] for name in kinds}
        for index in range(count):
            rng = np.random.default_rng([seed, level, width, index])
            with np.errstate(all="ignore"):
                for name, value in run(program, width, draw(program, width, rng)).items():
                    vector = kinds[name] is Kind.VECTOR
                    square = value * value
                    parts = (np.mean(value), np.mean(square)) if vector else (value, square)
                    drawn[name].append((float(parts[0]), float(parts[1])))
        for name, pairs in drawn.items():
            first, second = np.array(pairs).T
            found[name].append(Data(width, first, second))
    return {name: (small, large) for name, (small, large) in found.items()}
