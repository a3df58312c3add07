"""Values of coordinatewise functions, where numpy has no fast loop as compiled polynomials."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from tpcalc.arrays import Array
from tpcalc.engine.crew import share
from tpcalc.engine.kernels_compile import bits, exact, inlined, number, polynomial
from tpcalc.functions import Fn
from tpcalc.functions.tape import NumpySpace, lower, run

CHUNK = 2**14  # samples handled at once

ROUND = 1.5 * 2.0**52  # added to a number, leaves its whole part in the last bits
LOG2_HIGH, LOG2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10  # log 2 in two parts
FAR = 20.0  # tanh is 1 in float64
# (e^r - 1 - r) / r^2, by Taylor's series
_exponential = polynomial(*(1.0 / math.factorial(k) for k in range(13, 1, -1)))


@inlined
def _tanh(x: float) -> Any:
    """The hyperbolic tangent by exp(-2 |x|) - 1, relative error 4e-16; NaN stays NaN.

    The exponential is a power of two times a Taylor polynomial on [-log(2) / 2, log(2) / 2].
    """
    size = abs(x)
    size = FAR if size > FAR else size
    near = -2.0 * size / math.log(2.0) + ROUND
    whole = near - ROUND
    power = number((bits(near) + 1023) << 52)
    r = (-2.0 * size - whole * LOG2_HIGH) - whole * LOG2_LOW
    series = _exponential(r) * r * r + r
    less = power * series + (power - 1.0)
    return math.copysign(less / (2.0 + less), x)


@exact
def _tanhs(given: Array, out: Array) -> None:
    for t in range(given.size):
        out[t] = _tanh(given[t])


def _tanh_of(given: Any) -> Any:
    if not isinstance(given, np.ndarray):
        return np.tanh(given)
    given = np.ascontiguousarray(given, dtype=np.float64)
    out = np.empty(given.shape)
    _tanhs(given.reshape(-1), out.reshape(-1))
    return out


@lru_cache(maxsize=1)
def compiled_space() -> NumpySpace:
    """The namespace of numpy with what is compiled here.

    Example:
        >>> float(abs(compiled_space().tanh(np.array([0.5])) - np.tanh(0.5))[0]) < 1e-15
        True
    """
    space = NumpySpace()
    vars(space)["tanh"] = _tanh_of
    return space


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
