"""Averages of an activation and its derivatives at pairs of Gaussians, for many pairs at once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tpcalc.arrays import Array
from tpcalc.errors import EvaluationError
from tpcalc.evaluate.closure.gaussians import is_odd
from tpcalc.functions import Expr, Var
from tpcalc.functions.expr import mul
from tpcalc.integrals.bounded import Bounded
from tpcalc.integrals.demand import Unknown
from tpcalc.integrals.numeric import Numeric
from tpcalc.integrals.slopes import jumps, slope

PROPORTIONAL = 1e-14


class Pairs(NamedTuple):
    """Centred Gaussians (z, w), as arrays."""

    one: Array  # variances of z
    two: Array  # variances of w
    both: Array  # their covariances


def proportional(pairs: Pairs) -> NDArray[np.bool_]:
    """Where two Gaussians are one but for a number in front, up to rounding."""
    most = pairs.one * pairs.two
    return most - pairs.both**2 <= PROPORTIONAL * most


@dataclass(frozen=True)
class Averages:
    """V of phi, each with a bound on its error for covariances that are the floats given.

    Source: Tensor Programs VI, Definition E.1 (where V^(i,j) is corrected), section F.1.

    Example:
        >>> from tpcalc.activations.entries import lookup
        >>> relu = Averages(lookup("relu").fn.expr)
        >>> pairs = Pairs(*(np.array([x]) for x in (1.0, 1.0, 0.0)))
        >>> [round(float(part.value[0]), 6) for part in relu.forward(pairs)]
        [0.0, 0.25]
    """

    phi: Expr  # the activation, a function of Var(0)

    @cached_property
    def _first(self) -> Expr:
        return slope(self.phi, Var(0))

    @cached_property
    def _second(self) -> Expr:
        return slope(self._first, Var(0))

    @property
    def kinked(self) -> bool:
        """Whether phi' jumps, so that averages of phi'' are infinite where z and w are equal."""
        return jumps(self._first, Var(0))

    def mean(self, variance: Array, order: int = 0) -> Bounded:
        """E phi(z), or that of a slope.

        Args:
            variance: Variances of z.
            order: Of the slope: 1 of phi', 2 of phi''.
        """
        return _one(getattr(self, ("phi", "_first", "_second")[order]), variance)

    def product(self, pairs: Pairs) -> Bounded:
        """E phi(z) phi(w).

        Args:
            pairs: The Gaussians.
        """
        return _two(self.phi, self.phi, pairs)

    def slopes(self, pairs: Pairs) -> Bounded:
        """V11 = E phi'(z) phi'(w)."""
        return _two(self._first, self._first, pairs)

    def covariance(self, pairs: Pairs) -> Bounded:
        """Vc = Cov(phi(z), phi(w)).

        Args:
            pairs: The Gaussians.
        """
        return self.product(pairs) - self.mean(pairs.one) * self.mean(pairs.two)

    def forward(self, pairs: Pairs) -> tuple[Bounded, Bounded]:
        """Vc and V11: what a forward pass needs."""
        return self.covariance(pairs), self.slopes(pairs)

    def backward(self, pairs: Pairs) -> tuple[Bounded, Bounded, Bounded]:
        """V22, V2c = E phi''(z) (phi(w) - E phi(w)) and V31 = E phi'''(z) phi'(w)."""
        if self.kinked and np.any(proportional(pairs)):
            raise EvaluationError(
                "the limit of a backward pass takes E phi''(z) phi''(w), which is infinite where "
                "phi' jumps and two samples stay proportional.",
                hint="Take inputs of which no two are proportional, or numbers of blocks.",
            )
        twice = _two(self._second, self._second, pairs)
        mixed = _two(self._second, self.phi, pairs)
        mixed = mixed - _one(self._second, pairs.one) * self.mean(pairs.two)
        return twice, mixed, self._third(twice, pairs)

    def own(self, variance: Array) -> Bounded:
        """V2c of a Gaussian with itself."""
        alone = _one(mul((self._second, self.phi)), variance)
        return alone - _one(self._second, variance) * self.mean(variance)

    def _third(self, twice: Bounded, pairs: Pairs) -> Bounded:
        """E phi'''(z) phi'(w); by parts where phi'' holds deltas, which have no slope."""
        if not self.kinked:
            return _two(slope(self._second, Var(0)), self._first, pairs)
        inner = _two(Var(0) * self._second, self._first, pairs)
        return (inner - twice * pairs.both) / pairs.one


def _one(factor: Expr, variance: Array) -> Bounded:
    if is_odd(factor):
        return Bounded(np.zeros_like(variance), 0.0)
    return _integral([factor], [[variance]])


def _two(first: Expr, second: Expr, pairs: Pairs) -> Bounded:
    most = np.sqrt(pairs.one * pairs.two)
    both = np.clip(pairs.both, -most, most)
    return _integral([first, second], [[pairs.one, both], [both, pairs.two]])


def _integral(factors: list[Expr], cov: list[list[Array]]) -> Bounded:
    rows = [[Bounded(part, 0.0) for part in row] for row in cov]
    zero = [Bounded(0.0)] * len(factors)
    try:
        found = Numeric(follow=False).integral(factors, zero, rows)
    except Unknown as reason:
        raise EvaluationError(
            f"the recursion in depth needs an average that has no value: {reason}.",
            hint="Take a smooth activation, or inputs that differ from step to step.",
        ) from reason
    value = np.broadcast_to(found.value, cov[0][0].shape)
    return Bounded(value, found.error, found.method)
