"""Which vectors are sampled jointly: those whose coordinates some instruction reads together.

The layers of a network meet in products with random matrices alone, and what these take from the
other side are averages. So a layer has samples of its own: each is an integral over its own
Gaussians, with the first dimensions of a quasi-random sequence, which are the best ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from tpcalc.engine.instructions import Multiply, Noise, Outer, Script, vector_inputs, vector_outputs


@dataclass(frozen=True)
class Joint:
    """The groups of vectors that have joint samples."""

    # the space of each group; groups are in the order of spaces, then of registers
    spaces: tuple[str, ...]
    vectors: tuple[int, ...]  # the group of each vector register (-1: no instruction writes it)
    images: dict[tuple[str, bool], int]  # the group of the images of each (matrix, transpose) side


def joint(script: Script) -> Joint:
    """Group the vectors of a script.

    What is returned with its coordinates is one group on each space: callers read it together.

    Example:
        >>> from tpcalc.engine.instructions import Matrix, Space, Starts
        >>> steps = Starts("n", (0.0,), None, (0,)), Multiply("W", False, (0,), (1,))
        >>> found = joint(Script((Space("n"),), (Matrix("W", "n", "n"),), steps, ("n",) * 2, 0,
        ...     ("", ""), ()))
        >>> found.vectors, found.images
        ((0, 1), {('W', False): 1, ('W', True): 0})
    """
    pairs: list[tuple[int, int]] = []

    def meet(registers: Iterable[int]) -> None:
        first: dict[str, int] = {}
        pairs.extend((first.setdefault(script.vector_space[one], one), one) for one in registers)

    meet(script.vectors)
    sides: dict[tuple[str, bool], list[int]] = {}
    kept: dict[str, list[int]] = {}
    for step in script.instructions:
        if isinstance(step, Multiply):
            for transpose, found in ((False, step.out), (True, step.vectors)):
                sides.setdefault((step.matrix, transpose != step.transpose), []).extend(found)
        elif isinstance(step, Outer):  # pairs of samples: each side is averaged on its own
            meet((*step.rows, *step.out))
            meet((*step.cols, *step.vectors))
        elif isinstance(step, Noise):
            kept.setdefault(step.family, []).extend(step.vectors)
        else:
            meet((*vector_inputs(step), *vector_outputs(step)))
    for registers in (*sides.values(), *kept.values()):
        meet(registers)
    leaders = _leaders(len(script.vector_space), pairs)
    order = {space.name: index for index, space in enumerate(script.spaces)}
    roots = sorted(
        {leaders[v] for step in script.instructions for v in vector_outputs(step)},
        key=lambda root: (order[script.vector_space[root]], root),
    )
    place = {root: index for index, root in enumerate(roots)}
    return Joint(
        tuple(script.vector_space[root] for root in roots),
        tuple(place.get(leader, -1) for leader in leaders),
        {side: place[leaders[registers[0]]] for side, registers in sides.items()},
    )


def _leaders(size: int, pairs: Sequence[tuple[int, int]]) -> list[int]:
    """For each register the first one of its group."""
    ones, others = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    graph = csr_array((np.ones(len(ones), dtype=bool), (ones, others)), shape=(size, size))
    labels = connected_components(graph, directed=False)[1]
    first: list[int] = np.unique(labels, return_index=True)[1][labels].tolist()
    return first
