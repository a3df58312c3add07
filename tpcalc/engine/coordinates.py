"""Values of coordinatewise functions, some samples at a time: a few arrays stay in cache."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tpcalc.arrays import Array
from tpcalc.engine.crew import share
from tpcalc.engine.kernels_functions import compiled_space
from tpcalc.functions import Fn
from tpcalc.functions.tape import lower, run

CHUNK = 2**14  # samples handled at once


def coordinatewise(
    fn: Fn,
    arrays: Sequence[Array],
    numbers: Sequence[Array],
    take: Callable[[slice, slice, Any], None],
) -> None:
    """Hand over the values of a function."""
    tape, space = lower(fn), compiled_space()
    replicates, size = arrays[0].shape
    height, length = max(1, CHUNK // size), min(size, CHUNK)
    parts = [
        (slice(r, min(r + height, replicates)), slice(start, min(start + length, size)))
        for r in range(0, replicates, height)
        for start in range(0, size, length)
    ]

    def work(own: slice) -> None:
        with np.errstate(all="ignore"):  # each thread has its own
            for rows, part in parts[own]:
                given = [*(array[rows, part] for array in arrays), *(n[rows] for n in numbers)]
                take(rows, part, run(tape, space, given))

    share(len(parts), arrays[0].size, work)
