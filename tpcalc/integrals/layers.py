"""Gaussian averages of one activation at many variances and covariances at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from tpcalc.arrays import Array
from tpcalc.errors import EvaluationError, NotDifferentiable
from tpcalc.functions import Expr, Var
from tpcalc.functions.fn import derivative
from tpcalc.integrals import exact
from tpcalc.integrals.activation_moments import average
from tpcalc.integrals.average import evaluated
from tpcalc.integrals.bounded import EPS, Bounded
from tpcalc.integrals.quadrature.gap import gap
from tpcalc.results import Method

CLOSE = 1e-10


def means(factors: tuple[Expr, ...], q: Array) -> Bounded:
    """E f_1(s) f_2(s) ... for a centred Gaussian s, at each of many variances.

    Example:
        >>> import numpy as np
        >>> from tpcalc.functions import Var
        >>> means((Var(0), Var(0)), np.array([1.0, 4.0])).value.tolist()
        [1.0, 4.0]
    """
    qs, size = np.asarray(q, dtype=np.float64), len(factors)
    found = _evaluated(factors, [[qs] * size for _ in range(size)])
    value, error = (np.broadcast_to(part, qs.shape) for part in (found.value, found.error))
    return Bounded(value, error, found.method)


def products(factor: Expr, p: ArrayLike, q: ArrayLike, c: ArrayLike) -> Bounded:
    """E f(s) f(t) for variances p, q and covariances c; one of too large a size is cut to fit.

    Example:
        >>> import numpy as np
        >>> from tpcalc.functions import Var
        >>> one = np.array([1.0])
        >>> products(Var(0), one, one, 0.25 * one).value.tolist()
        [0.25]
    """
    ps, qs, cs = np.broadcast_arrays(*(np.asarray(x, dtype=np.float64) for x in (p, q, c)))
    limit = np.sqrt(ps * qs)
    cs = np.clip(cs, -limit, limit)
    return _evaluated((factor, factor), [[ps, cs], [cs, qs]])


def gaps(factor: Expr, q: ArrayLike, v: ArrayLike, close: float = CLOSE) -> Bounded:
    """E f(s)^2 - E f(s) f(t) for variances q and covariances q - v, with small relative errors.

    Example:
        >>> import numpy as np
        >>> from tpcalc.activations.entries import lookup
        >>> found = gaps(lookup("relu").fn.expr, np.array([1.0, 1.0]), np.array([1e-20, 1.0]))
        >>> found.value.round(6).tolist(), round(float(found.value[0]) * 1e20, 9)
        ([0.0, 0.340845], 0.5)
    """
    qs, vs = np.broadcast_arrays(np.asarray(q, dtype=np.float64), np.asarray(v, dtype=np.float64))
    vs = np.minimum(vs, 2 * qs)
    if not exact.supported((factor, factor)):
        return gap(factor, qs, vs)
    # A difference of closed forms costs little; where it loses digits, it is an integral.
    square, product = means((factor, factor), qs), products(factor, qs, qs, qs - vs)
    value = np.array(square.value - product.value, dtype=np.float64)
    lost = EPS * (np.abs(square.value) + np.abs(product.value))
    lost = lost + np.abs(value) * EPS * qs / np.where(vs > 0, vs, np.inf)  # q - v is rounded
    error = np.array(square.error + product.error + lost, dtype=np.float64)
    left = error > close * np.abs(value)
    if left.any():
        found = gap(factor, qs[left], vs[left])
        value[left], error[left] = found.value, found.error
        return Bounded(value, error, found.method)
    return Bounded(value, error, square.method)


def square_growth(tau: Expr, q: Bounded) -> Bounded:
    """The derivative of E tau(s)^2 by the variance of s, also where tau has kinks.

    Source: Gaussian integration by parts: d/dq E tau(s)^2 = E tau(s) tau'(s) s / q.

    Example:
        >>> from tpcalc.functions import Var
        >>> square_growth(Var(0) ** 2, Bounded(2.0)).value
        12.0
    """
    try:
        inner = average(tau * derivative(tau, Var(0)) * Var(0), q)
    except (NotDifferentiable, EvaluationError):
        weighted = average(tau**2 * Var(0) ** 2, q) / q
        inner = (weighted - average(tau**2, q)) * 0.5
    return inner / q


def method_of(factors: tuple[Expr, ...]) -> Method:
    """How averages of such a product are found.

    Example:
        >>> from tpcalc.functions import Var
        >>> method_of((Var(0), Var(0))).value
        'exact'
    """
    return Method.EXACT if exact.supported(factors) else Method.QUADRATURE


def _evaluated(factors: tuple[Expr, ...], cov: list[list[Array]]) -> Bounded:
    found = evaluated(factors, cov)
    value = np.asarray(found.value, dtype=np.float64)
    return Bounded(value, np.broadcast_to(found.error, value.shape), found.method)
