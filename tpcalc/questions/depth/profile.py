"""What closed recursions say along the depth, as arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from tpcalc.errors import EvaluationError
from tpcalc.integrals.bounded import Bounded
from tpcalc.recursions.kets import Kets, Recursion
from tpcalc.results import DepthArray, DepthGap

KETS = ("inputs", "outputs", "coefficients")
ARRAYS = ("features", "gradients", "preactivations", "distances", *KETS)
AVERAGED = "streams are functions of the first and last weights there, of no Gaussians of blocks."
KERNEL = ("p", "i", "j")
SPREAD = ("p", "q", "i", "j")
ENDS = ("ket", "p", "i", "feature")
GAMMA = ("ket", "base", "p", "q", "i", "j")


def profile(
    recursion: Recursion, depth: str, route: str, places: Sequence[float]
) -> Iterator[DepthArray | DepthGap]:
    """The arrays of a run, and those that are lacking."""
    if not places:
        return
    shares = tuple(recursion.at(place) for place in places)
    moved = recursion.trunk.count - recursion.trunk.batch  # samples with an adjoint

    def made(name: str, axes: tuple[str, ...], parts: list[Bounded], *shape: int) -> DepthArray:
        size = (*shape, len(places), *parts[0].value.shape)
        values = np.array([one.value for one in parts]).reshape(size)
        errors = np.array([np.broadcast_to(one.error, one.value.shape) for one in parts])
        errors = errors.reshape(size)
        return DepthArray(name, depth, axes, shares, values, errors, parts[0].method, route)

    yield made("features", KERNEL, [recursion.features(place) for place in places])
    yield made("gradients", KERNEL, [_first(recursion.gradients(place), moved) for place in places])
    try:
        yield made("preactivations", KERNEL, [recursion.preactivations(place) for place in places])
    except EvaluationError as error:  # they may grow with the depth
        yield DepthGap(depth, error.told, "preactivations")
    apart = [recursion.distances(*sorted((one, two))) for one in places for two in places]
    yield made("distances", SPREAD, apart, len(places))
    if not isinstance(recursion, Kets):
        yield from (DepthGap(depth, AVERAGED, name) for name in KETS)
        return
    ends = [recursion.ends(place) for place in places]
    for side, name in enumerate(("inputs", "outputs")):
        parts = [_of_ket(ket, end[side][ket], moved) for ket in (0, 1) for end in ends]
        yield made(name, ENDS, parts, 2)
    grid = [recursion.coefficients(one, two) for one in places for two in places]
    sides = [(ket, base) for ket in (0, 1) for base in (0, 1)]
    parts = [_of_ket(ket, one[ket][base], moved) for ket, base in sides for one in grid]
    yield made("coefficients", GAMMA, parts, 2, 2, len(places))


def _of_ket(ket: int, answer: Bounded, moved: int) -> Bounded:
    """What is in x, or in dx where it is followed: NaN of samples that have no adjoint."""
    if ket == 0:
        return answer
    value, error = answer.value.copy(), np.array(np.broadcast_to(answer.error, answer.value.shape))
    value[moved:] = error[moved:] = np.nan
    return Bounded(value, error, answer.method)


def _first(kernel: Bounded, count: int) -> Bounded:
    error = np.broadcast_to(kernel.error, kernel.value.shape)
    return Bounded(kernel.value[:count, :count], error[:count, :count], kernel.method)
