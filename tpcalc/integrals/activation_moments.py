"""Gaussian averages of one activation, as the mean-field recursion needs them.

Of numbers with errors (``Kernels``), and at many variances and covariances at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import ArrayLike

from tpcalc.arrays import Array
from tpcalc.errors import EvaluationError, NotDifferentiable
from tpcalc.functions import Expr, Var
from tpcalc.functions.fn import derivative
from tpcalc.functions.form import degree
from tpcalc.integrals import exact
from tpcalc.integrals.average import evaluated
from tpcalc.integrals.bounded import EPS, Bounded, bounded
from tpcalc.integrals.given import OfActivation
from tpcalc.integrals.quadrature.carried import Carried
from tpcalc.integrals.quadrature.gap import carried_gap, gap
from tpcalc.integrals.quadrature.layer import direct_gap, layer_moments, prepared
from tpcalc.results import Method

SMALL = 1e-6  # relative errors up to here are carried by derivatives
CLOSE = 1e-10
Number = Bounded | float


@dataclass(frozen=True)
class Kernels(OfActivation):
    """Averages of tau(s) and tau(s) tau(t) for centred Gaussians of variance q and covariance c.

    They take the variance q and the gap v = q - c, never c itself: where inputs are all but equal,
    v is many orders smaller than q and q - c would be noise.

    Args:
        tau: The activation: a name, ``tp.tanh``, a formula or a function of expressions.

    Source: Schoenherr, The nonlinearity coefficient, sections 5.3 and 5.4.

    Example:
        >>> from tpcalc.activations.entries import lookup
        >>> relu = Kernels(lookup("relu").fn.expr)
        >>> relu.second(Bounded(2.0)).value, relu.slope(Bounded(2.0)).value
        (1.0, 0.5)
        >>> round(relu.gap(1.0, 1e-20).value * 1e20, 9)
        0.5
    """

    @cached_property
    def _slope(self) -> Expr:
        return derivative(self.tau, Var(0))

    @cached_property
    def _on_nodes(self) -> bool:
        """Whether nodes of a lattice cost less than the many terms of closed forms."""
        pair = prepared(self.tau)
        return pair is not None and pair.smooth and exact.terms((self._slope, self._slope)) > 1

    def mean(self, q: Number) -> Bounded:
        """E tau(s).

        Args:
            q: The variance of s.
        """
        return self._one((self.tau,), "mean", q)

    def second(self, q: Number) -> Bounded:
        """E tau(s)^2.

        Args:
            q: The variance of s.
        """
        return self._one((self.tau, self.tau), "square", q)

    def slope(self, q: Number) -> Bounded:
        """E tau'(s)^2.

        Args:
            q: The variance of s.
        """
        return self._one((self._slope, self._slope), "slope", q)

    def slope_cosine(self, q: Number) -> Bounded:
        """(E tau'(s))^2 / E tau'(s)^2: how alike slopes are in layers of independent weights.

        Args:
            q: The variance of s.

        Source: Yang, Yu, Zhu, Hayou, Tensor Programs VI, section 8: 1 of linear functions, 1/2 of
            relu, 0 of even ones, whose gradients in neighbouring blocks are least alike.

        Example:
            >>> Kernels("relu").slope_cosine(1.0).value, Kernels("abs").slope_cosine(1.0).value
            (0.5, 0.0)
        """
        mean, square = average(self._slope, bounded(q)), self.slope(q)
        return mean * mean / square

    def gap(self, q: Number, v: Number) -> Bounded:
        """E tau(s)^2 - E tau(s) tau(t), accurate relative to itself however small v is.

        Args:
            q: The variance of s and t.
            v: The variance less the covariance.
        """
        q, v = bounded(q), bounded(v)
        if v.value == 0 and v.error == 0:
            return Bounded(0.0)
        delta = min(v.value, 2 * q.value)
        if _surely(q) and _surely(v):
            found = carried_gap(self.tau, q.value, delta)
            error = found.error + abs(found.by_variance) * q.error + abs(found.by_gap) * v.error
            return _with_method(found.value, error, Method.QUADRATURE, q, v)
        return _moved(lambda qs, vs: gap(self.tau, qs, np.minimum(vs, 2 * qs)), q, v)

    def product(self, p: Number, q: Number, c: Number) -> Bounded:
        """E tau(s) tau(t) for variances p, q and covariance c.

        Args:
            p: The variance of s.
            q: That of t.
            c: Their covariance.
        """
        return self._two(self.tau, p, q, c)

    def slope_product(self, p: Number, q: Number, c: Number) -> Bounded:
        """E tau'(s) tau'(t), the derivative of ``product`` in c.

        Args:
            p: The variance of s.
            q: That of t.
            c: Their covariance.
        """
        return self._two(self._slope, p, q, c)

    def _one(self, factors: tuple[Expr, ...], name: str, q: Number) -> Bounded:
        q = bounded(q)
        if _surely(q) and (self._on_nodes or not exact.supported(factors)):
            moments = layer_moments(self.tau, q.value)
            if moments is not None:
                found: Carried = getattr(moments, name)
                error = found.error + abs(found.by_variance) * q.error
                return _with_method(found.value, error, Method.QUADRATURE, q)
        return _at_variance(factors, q)

    def _two(self, factor: Expr, p: Number, q: Number, c: Number) -> Bounded:
        p, q, c = map(bounded, (p, q, c))
        found = _by_gap(factor, p, q, c)
        if found is not None:
            return found
        return _moved(lambda ps, qs, cs: products(factor, ps, qs, cs), p, q, c)


def average(expr: Expr, q: Bounded) -> Bounded:
    """E f(s) for a centred Gaussian s.

    Example:
        >>> average(Var(0) ** 4, Bounded(2.0)).value
        12.0
    """
    return _at_variance((expr,), q)


def _surely(number: Bounded) -> bool:
    """Whether a number is positive, and its error so small that derivatives carry it."""
    return bool(number.value > 0 and number.error <= SMALL * number.value)


def _at_variance(factors: tuple[Expr, ...], q: Bounded) -> Bounded:
    """E f_1(s) f_2(s) ...; a small error of the variance is carried by a difference quotient."""
    known = _homogeneous(factors) if q.value > 0 else None
    if known is None:
        return _computed(factors, q)
    unit, power = known
    return unit * q.power(power) if power else unit


@lru_cache(maxsize=1024)
def _homogeneous(factors: tuple[Expr, ...]) -> tuple[Bounded, Fraction] | None:
    """The same at the variance 1, and the power of the variance in it, where it is one."""
    degrees = [degree(factor) for factor in factors]
    if None in degrees:
        return None
    return _computed(factors, Bounded(1.0)), sum(filter(None, degrees), Fraction(0)) / 2


def _computed(factors: tuple[Expr, ...], q: Bounded) -> Bounded:
    size = len(factors)
    if q.error == 0:
        found = evaluated(factors, [[q.value] * size for _ in range(size)])
        return _with_method(float(found.value), float(found.error), found.method, q)
    step = max(q.error, SMALL * q.value)
    qs = np.array([q.value, q.value + step])
    found = evaluated(factors, [[qs] * size for _ in range(size)])
    value = np.broadcast_to(found.value, 2)
    error = float(np.broadcast_to(found.error, 2)[0])
    error += abs(float(value[1]) - float(value[0])) * (q.error / step)
    return _with_method(float(value[0]), error, found.method, q)


def _by_gap(factor: Expr, p: Bounded, q: Bounded, c: Bounded) -> Bounded | None:
    """E f(s) f(t) for one variance as E f(s)^2 less the gap, where that is the fast way."""
    if p.value != q.value or exact.supported((factor, factor)):
        return None
    if not (_surely(p) and _surely(q) and abs(c.value) < q.value and c.error <= SMALL * q.value):
        return None
    pair, moments = prepared(factor), layer_moments(factor, q.value)
    if pair is None or moments is None:
        return None
    delta, square = q.value - c.value, moments.square
    found = direct_gap(pair, q.value, delta)
    if found is None:
        return None
    # Both variances are one number here, so each has half of the derivative in it.
    turn = abs(square.by_variance - found.by_variance - found.by_gap) / 2
    error = square.error + found.error + EPS * (square.value + found.value)
    error += turn * (p.error + q.error) + abs(found.by_gap) * (c.error + EPS * delta)
    return _with_method(square.value - found.value, error, Method.QUADRATURE, p, q, c)


def _moved(function: Callable[..., Bounded], *given: Bounded) -> Bounded:
    """A function of arrays, with what it changes by where one number each is moved by its error."""
    values = np.array([part.value for part in given])
    steps = np.diag([part.error for part in given])
    computed = function(*np.concatenate([values[:, None], values[:, None] + steps], axis=1))
    values = np.broadcast_to(computed.value, (len(given) + 1,))
    error = float(np.broadcast_to(computed.error, values.shape)[0])
    error += float(np.abs(values[1:] - values[0]).sum())
    return _with_method(float(values[0]), error, computed.method, *given)


def _with_method(value: float, error: float, method: Method, *given: Bounded) -> Bounded:
    worst = max((method, *(part.method for part in given)))
    return Bounded(value, error, worst) + bounded(0.0)


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
