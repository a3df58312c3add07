"""Gaussian averages of one activation, as the mean-field recursion needs them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tpcalc.errors import EvaluationError
from tpcalc.evaluate import exact, quadrature
from tpcalc.evaluate.bounded import Bounded, bounded
from tpcalc.evaluate.computed import Computed
from tpcalc.evaluate.quadrature.gap import gap
from tpcalc.functions import Expr, Var
from tpcalc.functions.fn import derivative
from tpcalc.results import Method

__all__ = ["Kernels", "average"]

Array = Any


@dataclass(frozen=True)
class Kernels:
    """Averages of tau(s) and tau(s) tau(t) for centred Gaussians of variance q and covariance c.

    They take the variance q and the gap v = q - c, never c itself: where inputs are all but equal,
    v is many orders smaller than q and q - c would be noise.

    Args:
        tau: The activation, an expression of ``Var(0)``.

    Source: Schoenherr, The nonlinearity coefficient, sections 5.3 and 5.4.

    Example:
        >>> from tpcalc.catalog.activations import lookup
        >>> relu = Kernels(lookup("relu").fn.expr)
        >>> relu.second(Bounded(2.0)).value, relu.slope(Bounded(2.0)).value
        (1.0, 0.5)
        >>> round(relu.gap(Bounded(1.0), Bounded(1e-20)).value * 1e20, 9)
        0.5
    """

    tau: Expr

    @cached_property
    def _slope(self) -> Expr:
        return derivative(self.tau, Var(0))

    def mean(self, q: Bounded) -> Bounded:
        """E tau(s).

        Args:
            q: The variance of s.
        """
        return self._one((self.tau,), q)

    def second(self, q: Bounded) -> Bounded:
        """E tau(s)^2.

        Args:
            q: The variance of s.
        """
        return self._one((self.tau, self.tau), q)

    def slope(self, q: Bounded) -> Bounded:
        """E tau'(s)^2.

        Args:
            q: The variance of s.
        """
        return self._one((self._slope, self._slope), q)

    def gap(self, q: Bounded, v: Bounded) -> Bounded:
        """E tau(s)^2 - E tau(s) tau(t), accurate relative to itself however small v is.

        Args:
            q: The variance of s and t.
            v: The variance less the covariance.
        """
        qs = np.array([q.value, q.value + q.error, q.value])
        vs = np.array([v.value, v.value, v.value + v.error])
        if v.value == 0 and v.error == 0:
            return Bounded(0.0)
        found = gap(self.tau, qs, np.minimum(vs, 2 * qs))
        return _moved(found, Method.QUADRATURE, q, v)

    def product(self, p: Bounded, q: Bounded, c: Bounded) -> Bounded:
        """E tau(s) tau(t) for variances p, q and covariance c.

        Args:
            p: The variance of s.
            q: That of t.
            c: Their covariance.
        """
        return self._two(self.tau, p, q, c)

    def slope_product(self, p: Bounded, q: Bounded, c: Bounded) -> Bounded:
        """E tau'(s) tau'(t), the derivative of ``product`` in c.

        Args:
            p: The variance of s.
            q: That of t.
            c: Their covariance.
        """
        return self._two(self._slope, p, q, c)

    def _one(self, factors: tuple[Expr, ...], q: Bounded) -> Bounded:
        qs = np.array([q.value, q.value + q.error])
        size = len(factors)
        return _evaluated(factors, [[qs] * size for _ in range(size)], q)

    def _two(self, factor: Expr, p: Bounded, q: Bounded, c: Bounded) -> Bounded:
        ps = np.array([p.value, p.value + p.error, p.value, p.value])
        qs = np.array([q.value, q.value, q.value + q.error, q.value])
        cs = np.array([c.value, c.value, c.value, c.value + c.error])
        limit = np.sqrt(ps * qs)
        cs = np.clip(cs, -limit, limit)
        return _evaluated((factor, factor), [[ps, cs], [cs, qs]], p, q, c)


def average(expr: Expr, q: Bounded) -> Bounded:
    """E f(s) for a centred Gaussian s.

    Args:
        expr: f, a function of ``Var(0)``.
        q: The variance of s.

    Example:
        >>> average(Var(0) ** 4, Bounded(2.0)).value
        12.0
    """
    return _evaluated((expr,), [[np.array([q.value, q.value + q.error])]], q)


def _evaluated(factors: tuple[Expr, ...], cov: list[list[Array]], *given: Bounded) -> Bounded:
    """An expectation at numbers that carry errors: the first entry, and each number moved."""
    means = [0.0] * len(factors)
    ways: list[tuple[Method, Any, Callable[..., Computed | None]]] = [
        (Method.EXACT, exact.supported, exact.expectation),
        (Method.QUADRATURE, quadrature.supported, quadrature.expectation),
    ]
    for method, supported, expectation in ways:
        if supported(factors):
            found = expectation(factors, means, cov)
            if found is not None:
                return _moved(found, method, *given)
    raise EvaluationError(
        f"no quadrature takes averages of {factors[0].text}.",
        hint="Use an activation whose kinks are declared.",
    )


def _moved(found: Computed, method: Method, *given: Bounded) -> Bounded:
    values = np.broadcast_to(found.value, (len(given) + 1,))
    error = float(np.broadcast_to(found.error, values.shape)[0])
    error += float(np.abs(values[1:] - values[0]).sum())
    worst = max((method, *(part.method for part in given)), key=list(Method).index)
    return Bounded(float(values[0]), error, worst) + bounded(0.0)
