"""Many one-dimensional integrals at once, refined until a bound on their errors is small."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from tpcalc.arrays import Array
from tpcalc.integrals.quadrature.nodes import gauss_legendre
from tpcalc.integrals.quadrature.panels import Panels, split

EPS = float(np.finfo(np.float64).eps)
NOISE = 64 * EPS
FINEST = 4e-12  # of the size of a variable at an anchor: its rounding is seen at that distance
ROUNDED = EPS / FINEST
CHUNK = 4096  # panels evaluated at a time
FEW = 20  # panels among which the allowed error is shared at least


class Integrals(NamedTuple):
    """Arrays over problems."""

    value: Array  # the integrals
    error: Array  # bounds on their errors; not finite where there is no value
    size: Array  # the integrals of the absolute values


class Sampled(NamedTuple):
    """An integrand on panels."""

    values: Array  # at the nodes, of shape (panels, nodes)
    # bounds on the errors of these values, of that shape; 0.0 where they are exact
    doubt: Array | float


class Work:
    """Panels that all integrals within one may take together."""

    def __init__(self, panels: int) -> None:
        self.left = panels

    @property
    def done(self) -> bool:
        """Whether there are none left."""
        return self.left < 0

    def spend(self, panels: int) -> None:
        """Take some of them."""
        self.left -= panels


class Effort(NamedTuple):
    """When to stop."""

    tolerance: float = 4e-13  # of an integral, relative to the larger of its size and its scale
    rounds: int = 40  # of refinement
    most: int = 4096  # panels of one problem in one round
    work: Work | None = None  # what may be spent; where that is not enough, there is no value


INNER = Effort(tolerance=1e-13, rounds=24, most=256)
Inner = Callable[[Panels, Effort], tuple[Array, Integrals]]
"""A factor at the nodes of panels, and the integrals that it is multiplied with."""


def integrate_twice(
    inner: Inner,
    cover: Panels,
    scale: Array,
    lean: Array | None,
    outer: Effort,
    limits: tuple[int, int],
) -> Integrals:
    """Integrate integrals over the panels of every problem.

    ``limits`` are panels of inner integrals for each problem, and outer panels taken at a time.
    """
    most, size = limits
    work = Work(most * len(scale))

    def values(part: Panels) -> Sampled:
        if work.done:
            return Sampled(*np.full((2, *part.offsets.shape), np.inf))
        front, found = inner(part, INNER._replace(work=work))
        value, error = (own.reshape(front.shape) for own in (found.value, found.error))
        return Sampled(front * value, np.abs(front) * error)

    def integrand(whole: Panels) -> Sampled:
        starts = range(0, len(whole.problem), size)
        parts = [values(whole.at(slice(start, start + size))) for start in starts]
        return Sampled(*map(np.concatenate, zip(*parts, strict=True)))

    return integrate(integrand, cover, scale, lean, outer)


def integrate(
    integrand: Callable[[Panels], Sampled],
    cover: Panels,
    scale: Array,
    lean: Array | None,
    effort: Effort,
) -> Integrals:
    """Integrate over the panels of every problem."""
    count = len(scale)
    value, error, size = np.zeros(count), np.zeros(count), np.zeros(count)
    allowed = scale
    for stage in range(effort.rounds + 1):
        if effort.work is not None:
            effort.work.spend(len(cover.problem))
            if effort.work.done:
                return Integrals(*(np.full(count, np.inf) for _ in Integrals._fields))
        part = _panel_sums(integrand, cover, lean)
        problem = cover.problem
        if stage == 0:
            own = np.bincount(problem, part.size, count)
            held = np.bincount(problem, minlength=count)
            allowed = effort.tolerance * np.maximum(own, scale) / np.maximum(held, FEW)
        bad = (part.judged > allowed[problem]) & (part.judged > part.noise)
        bad &= cover.upper - cover.lower > cover.finest
        if bad.any():
            crowded = np.bincount(problem[bad], minlength=count) > effort.most
            bad &= ~crowded[problem]
        if stage == effort.rounds:
            bad[:] = False
        kept = ~bad
        home = problem[kept]
        value += np.bincount(home, part.value[kept], count)
        error += np.bincount(home, part.error[kept], count)
        size += np.bincount(home, part.size[kept], count)
        if not bad.any():
            break
        cover = split(cover.at(bad))
    return Integrals(value, error, size)


class _Sums(NamedTuple):
    value: Array
    size: Array
    judged: Array
    noise: Array
    error: Array


def _panel_sums(integrand: Callable[[Panels], Sampled], cover: Panels, lean: Array | None) -> _Sums:
    total = len(cover.problem)
    if total <= CHUNK:
        return _chunk_sums(integrand, cover, lean)
    parts = [
        _chunk_sums(integrand, cover.at(slice(start, start + CHUNK)), lean)
        for start in range(0, total, CHUNK)
    ]
    return _Sums(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def _chunk_sums(integrand: Callable[[Panels], Sampled], cover: Panels, lean: Array | None) -> _Sums:
    rule = gauss_legendre()
    values, doubt = integrand(cover)
    half = 0.5 * (cover.upper - cover.lower)
    magnitude = np.abs(values)
    size = half * (magnitude @ rule.weights)
    judged = half * np.abs(values @ rule.judges).max(axis=1)
    noise = NOISE * half * magnitude.max(axis=1)
    # Offsets are rounded relative to themselves, and the anchor moves the density alone.
    offset = np.maximum(np.abs(cover.lower), np.abs(cover.upper))
    travel = np.abs(values[:, 1:] - values[:, :-1]).sum(axis=1)
    moved = EPS * np.abs(cover.anchor) + ROUNDED * cover.finest
    shift = offset if lean is None else offset + np.abs(cover.anchor) + lean[cover.problem]
    rounding = EPS * (8.0 * size + shift * travel)
    rounding += moved * (np.abs(cover.anchor) + offset) * size
    error = judged + rounding
    if not isinstance(doubt, float):
        unsure = half * (doubt @ rule.weights)
        error, noise = error + unsure, noise + unsure
    return _Sums(half * (values @ rule.weights), size, judged, noise, error)
