"""Textbook means of one Gaussian, and by them means of two: an independent way to every number.

E f(U) g(V) is the integral over U of f(u) E[g(V) | U = u]; the inner mean is a formula of one
variable, the outer one is integrated numerically on panels around every kink. The formulas are
written twice over: with numpy for many covariances, with mpmath for the bounds of the error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from math import sqrt
from typing import Any

import mpmath as mp
import numpy as np
from scipy import special
from unit.integrals.quadrature.test_one_variable import TRUTH

from tpcalc.activations.entries import lookup
from tpcalc.functions import Expr, Fn, Var
from tpcalc.functions.fn import derivative
from tpcalc.functions.tape import evaluate

SELU_ALPHA, SELU_SCALE = 1.6732632423543772, 1.0507009873554805


class Double:
    """numpy and scipy."""

    exp, sqrt, sin, cos = np.exp, np.sqrt, np.sin, np.cos
    erf = special.erf
    where = staticmethod(np.where)

    @staticmethod
    def cdf(x: Any) -> Any:
        return special.ndtr(x)

    @staticmethod
    def tail(weight: Any, x: Any) -> Any:
        """exp(weight) Phi(x)."""
        with np.errstate(over="ignore", invalid="ignore"):
            low = 0.5 * special.erfcx(-x / sqrt(2)) * np.exp(weight - x * x / 2)
            return np.where(x < 0, low, np.exp(np.minimum(weight, 700)) * special.ndtr(x))


class Many:
    """mpmath."""

    exp, sqrt, sin, cos, erf = mp.exp, mp.sqrt, mp.sin, mp.cos, mp.erf

    @staticmethod
    def where(test: bool, one: Any, other: Any) -> Any:
        return one if test else other

    @staticmethod
    def cdf(x: Any) -> Any:
        return mp.erfc(-x / mp.sqrt(2)) / 2

    @staticmethod
    def tail(weight: Any, x: Any) -> Any:
        return mp.exp(weight) * mp.erfc(-x / mp.sqrt(2)) / 2


def _density(X: Any, x: Any) -> Any:
    return X.exp(-x * x / 2) / X.sqrt(2 * mp.pi if X is Many else 2 * np.pi)


def _relu(X: Any, m: Any, s: Any) -> Any:
    return m * X.cdf(m / s) + s * _density(X, m / s)


def _elu_slope(X: Any, m: Any, s: Any, alpha: Any) -> Any:
    return X.cdf(m / s) + alpha * X.tail(m + s * s / 2, -(m + s * s) / s)


def _elu(X: Any, m: Any, s: Any, alpha: Any) -> Any:
    left = X.tail(m + s * s / 2, -(m + s * s) / s) - X.cdf(-m / s)
    return _relu(X, m, s) + alpha * left


def _bump(X: Any, m: Any, s: Any) -> Any:
    wide = 1 + 2 * s * s
    return X.exp(-m * m / wide) / X.sqrt(wide)


def _gelu(X: Any, m: Any, s: Any) -> Any:
    wide = X.sqrt(1 + s * s)
    return m * X.cdf(m / wide) + s * s / wide * _density(X, m / wide)


def _gelu_slope(X: Any, m: Any, s: Any) -> Any:
    wide = X.sqrt(1 + s * s)
    return X.cdf(m / wide) + m / wide**3 * _density(X, m / wide)


def _cube(X: Any, m: Any, s: Any) -> Any:
    return (m**3 + 3 * m * s * s) * X.cdf(m / s) + (m * m * s + 2 * s**3) * _density(X, m / s)


def _scaled(number: float, mean: Callable[..., Any]) -> Callable[..., Any]:
    return lambda X, m, s: number * mean(X, m, s)


ERF_SLOPE = 2 / sqrt(np.pi)
MEANS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "identity": lambda X, m, s: m,
    "square": lambda X, m, s: m * m + s * s,
    "step": lambda X, m, s: X.cdf(m / s),
    "sign": lambda X, m, s: X.erf(m / s / X.sqrt(2)),
    "relu": _relu,
    "relu^2": lambda X, m, s: (m * m + s * s) * X.cdf(m / s) + m * s * _density(X, m / s),
    "relu^3": _cube,
    "abs": lambda X, m, s: m * X.erf(m / s / X.sqrt(2)) + 2 * s * _density(X, m / s),
    "leaky_relu:1/4": lambda X, m, s: m / 4 + _relu(X, m, s) * 3 / 4,
    "elu": lambda X, m, s: _elu(X, m, s, 1),
    "elu:1/2": lambda X, m, s: _elu(X, m, s, 0.5),
    "elu_slope": lambda X, m, s: _elu_slope(X, m, s, 1),
    "elu_slope:2": lambda X, m, s: _elu_slope(X, m, s, 2),
    "selu": _scaled(SELU_SCALE, lambda X, m, s: _elu(X, m, s, SELU_ALPHA)),
    "selu_slope": _scaled(SELU_SCALE, lambda X, m, s: _elu_slope(X, m, s, SELU_ALPHA)),
    "erf": lambda X, m, s: X.erf(m / X.sqrt(1 + 2 * s * s)),
    "erf'": _scaled(ERF_SLOPE, _bump),
    "normal_cdf": lambda X, m, s: X.cdf(m / X.sqrt(1 + s * s)),
    "normal_pdf": lambda X, m, s: _density(X, m / X.sqrt(1 + s * s)) / X.sqrt(1 + s * s),
    "gelu": _gelu,
    "gelu'": _gelu_slope,
    "gaussian": _bump,
    "gaussian'": lambda X, m, s: -2 * m / (1 + 2 * s * s) * _bump(X, m, s),
    "sin": lambda X, m, s: X.exp(-s * s / 2) * X.sin(m),
    "cos": lambda X, m, s: X.exp(-s * s / 2) * X.cos(m),
    "exp": lambda X, m, s: X.exp(m + s * s / 2),
}
KINKED = {"step", "sign", "relu", "relu^2", "relu^3", "abs", "leaky_relu:1/4"}
KINKED |= {"elu", "elu:1/2", "elu_slope", "elu_slope:2", "selu", "selu_slope"}


def function(name: str) -> Expr:
    """The activation of that name, or with a dash its derivative."""
    if name.endswith("'"):
        return derivative(lookup(name[:-1]).fn.expr, Var(0))
    return lookup(name).fn.expr


@dataclass(frozen=True)
class Two:
    """A pair of Gaussians."""

    means: tuple[float, float]
    variances: tuple[float, float]
    covariance: float

    @property
    def rows(self) -> list[list[float]]:
        (first, second), c = self.variances, self.covariance
        return [[first, c], [c, second]]


def determinant(pair: Two) -> Fraction:
    """The determinant of the covariance matrix, exactly."""
    first, second = map(Fraction, pair.variances)
    return first * second - Fraction(pair.covariance) ** 2


LADDER = [0.0, *(sign * 2.0**k for k in range(-3, 6) for sign in (-1, 1)), -40.0, 40.0]


def _marks(pair: Two, rest: float) -> list[float]:
    """Ends of panels in units of the first deviation: around both kinks, at both their scales."""
    (m1, m2), (q1, _), c = pair.means, pair.variances, pair.covariance
    s1, slope = sqrt(q1), c / sqrt(q1)
    marks = [-38.0, 38.0, *(float(k) for k in range(-12, 13, 2))]
    marks += [-m1 / s1 + w * scale for w in LADDER for scale in (1 / s1, 1e-3 / s1, 0.1)]
    if slope:
        at = -m2 / slope
        scales = (rest / abs(slope), 1 / abs(slope), 0.1)
        marks += [at + w * scale for w in LADDER for scale in scales]
    inside = sorted({mark for mark in marks if -38 <= mark <= 38})
    return [inside[0]] + [b for a, b in pairwise(inside) if b - a > 1e-15]


@lru_cache(maxsize=1)
def _legendre() -> tuple[Any, Any]:
    return np.polynomial.legendre.leggauss(20)


def mean_of_pair(f: str, g: str, pair: Two) -> float:
    """E f(U) g(V), to about 1e-14 of its scale."""
    (m1, m2), (q1, _), c = pair.means, pair.variances, pair.covariance
    s1 = sqrt(q1)
    rest = sqrt(float(determinant(pair) / Fraction(q1)))  # as a float it would be lost
    marks = np.array(_marks(pair, rest))
    nodes, weights = _legendre()
    half = np.diff(marks)[:, None] / 2
    t = (marks[:-1, None] + half + half * nodes).ravel()
    w = (half * weights).ravel() * np.exp(-t * t / 2) / sqrt(2 * np.pi)
    u, v = m1 + s1 * t, m2 + (c / s1) * t
    inner = MEANS[g](Double, v, rest) if rest else evaluate(Fn(function(g), 1), [v])
    return float(np.sum(w * evaluate(Fn(function(f), 1), [u]) * inner))


def size_of(f: str, mean: float, variance: float) -> float:
    """sqrt(E f^2)."""
    s = sqrt(variance)
    marks = np.array(_marks(Two((mean, 0.0), (variance, 1.0), 0.0), 1.0))
    nodes, weights = _legendre()
    half = np.diff(marks)[:, None] / 2
    t = (marks[:-1, None] + half + half * nodes).ravel()
    w = (half * weights).ravel() * np.exp(-t * t / 2) / sqrt(2 * np.pi)
    return sqrt(float(np.sum(w * evaluate(Fn(function(f), 1), [mean + s * t]) ** 2)))


@lru_cache(maxsize=1)
def _many_nodes() -> list[tuple[Any, Any]]:
    """Gauss-Legendre nodes to 40 digits, by Newton's method."""
    out = []
    with mp.workdps(40):
        for start in _legendre()[0]:
            x = mp.mpf(float(start))
            for _ in range(3):
                before, now = mp.legendre(19, x), mp.legendre(20, x)
                slope = 20 * (before - x * now) / (1 - x * x)
                x -= now / slope
            out.append((x, 2 / ((1 - x * x) * slope * slope)))
    return out


def precise(f: str, g: str, pair: Two) -> Any:
    """The same to more than 20 digits; slow."""
    with mp.workdps(30):
        (m1, m2), (q1, _), c = pair.means, pair.variances, mp.mpf(pair.covariance)
        exact = determinant(pair)
        rest = mp.sqrt(mp.mpf(exact.numerator) / mp.mpf(exact.denominator) / q1)
        s1 = mp.sqrt(q1)
        marks = _marks(pair, float(rest))
        total = mp.mpf(0)
        for low, high in pairwise(marks):
            half = (mp.mpf(high) - mp.mpf(low)) / 2
            for node, weight in _many_nodes():
                t = low + half * (1 + node)
                inner = MEANS[g](Many, m2 + c / s1 * t, rest)
                total += half * weight * VALUES[f](m1 + s1 * t) * inner * _density(Many, t)
        return total


KNOWN = ("step", "relu", "relu^3", "abs", "elu", "erf", "gelu", "sin", "cos")
VALUES: dict[str, Callable[[Any], Any]] = {name: TRUTH[name] for name in KNOWN} | {
    "elu_slope": lambda z: mp.mpf(1) if z > 0 else mp.exp(z),
    "gelu'": lambda z: mp.ncdf(z) + z * mp.npdf(z),
    "gaussian": lambda z: mp.exp(-z * z),
}


def covariances(rng: np.random.Generator, count: int) -> Iterator[Two]:
    """Random pairs, every extreme among them."""
    rhos = [1.0, -1.0, 1 - 1e-12, -1 + 1e-6, 0.999, -0.9, 0.5, 0.0, 1e-4]
    sizes = [1.0, 1.0, 0.3, 2.7, 10.0, 1e-12, 1e-3, 1e6]
    for i in range(count):
        q1 = float(sizes[i % len(sizes)])
        q2 = q1 if rng.random() < 0.5 else float(rng.choice([1.0, 0.4, 3.0]))
        rho = rhos[i % len(rhos)] if rng.random() < 0.8 else float(rng.uniform(-1, 1))
        c = rho * q1 if q1 == q2 else rho * sqrt(q1) * sqrt(q2)
        while determinant(Two((0.0, 0.0), (q1, q2), c)) < 0:  # beyond the largest covariance
            c = float(np.nextafter(c, 0.0))
        means = (0.0, 0.0)
        if rng.random() < 0.5:
            means = (float(rng.normal()) * sqrt(q1), float(rng.normal()) * sqrt(q2))
        yield Two(means, (q1, q2), c)
