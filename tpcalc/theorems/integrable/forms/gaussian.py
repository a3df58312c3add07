"""Expectations of the first two passes: Gaussians, and Gaussians pushed along a gated direction.

After one step a preactivation is Y + theta D sigma'(X): X is what it was on the training input, Y
what it was on the query, and D comes from the backward pass, independent of both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import copysign, sqrt

from tpcalc.activations.entries import REGISTRY
from tpcalc.errors import EvaluationError
from tpcalc.evaluate.expect import expect
from tpcalc.functions import Expr, Var, const
from tpcalc.functions.expr import substitute
from tpcalc.functions.form import degree
from tpcalc.integrals.bounded import Bounded, bounded, kept, through
from tpcalc.results import Estimate
from tpcalc.theorems.integrable.forms.nonlinearity import Nonlinearity, number_at

STEP = REGISTRY["step"]()
PDF, CDF = REGISTRY["normal_pdf"](), REGISTRY["normal_cdf"]()
ONE = const(1)
ZERO = Bounded(0.0)
DEGENERATE = 1e-14  # below this share of its variance, Y is taken to be a multiple of X
HEAVY = 2  # above this degree samples miss the tails that carry the mean


@dataclass(frozen=True, slots=True)
class Pair:
    """The covariance of two centred Gaussians X and Y."""

    first: Bounded  # E X^2
    both: Bounded  # E X Y
    second: Bounded  # E Y^2

    @staticmethod
    def single(variance: Bounded) -> Pair:
        """X alone; Y is 0."""
        return Pair(variance, ZERO, ZERO)


@dataclass(frozen=True, slots=True)
class Push:
    """What a step adds to Y: theta D sigma'(X), with a Gaussian D independent of X and Y."""

    theta: Bounded  # the factor
    variance: Bounded  # of D
    mean: Bounded = ZERO  # of D


@dataclass(frozen=True, slots=True)
class _Floats:
    """A pair and a push as floats."""

    first: float
    both: float
    second: float
    theta: float
    variance: float
    mean: float

    @property
    def same(self) -> bool:
        return self.first == self.both == self.second

    @property
    def table(self) -> list[list[float]]:
        """The covariance of (X, Y), by rounding no larger than one may be."""
        most = sqrt(max(self.first, 0.0) * max(self.second, 0.0))
        both = copysign(min(abs(self.both), most), self.both)
        return [[self.first, both], [both, self.second]]


def single_mean(expr: Expr, variance: Bounded) -> Bounded:
    """E f(X) for a centred Gaussian X."""
    return through(lambda v: expect(_function(expr), max(v, 0.0)), variance)


def shifted_mean(sigma: Nonlinearity, mean: Bounded, spread: Bounded, shift: Bounded) -> Bounded:
    """E[(U + s) sigma(a + b U)] for a standard Gaussian U."""

    def make(a: float, b: float, s: float) -> Estimate:
        return expect(lambda u: (u + s) * sigma(a + b * u))

    return through(make, mean, spread, shift)


def pair_mean(outer: Expr, inner: Expr, pair: Pair) -> Bounded:
    """E f(X) g(Y)."""
    if pair.first == pair.both == pair.second:
        return single_mean(outer * inner, pair.first)

    def make(first: float, both: float, second: float) -> Estimate:
        return _pair(outer, inner, _Floats(first, both, second, 0.0, 0.0, 0.0), 0.0)

    return through(make, pair.first, pair.both, pair.second)


def pushed_mean(
    outer: Expr, inner: Expr, gate: Nonlinearity, pair: Pair, push: Push, seed: int = 0
) -> Bounded:
    """E f(X) g(Y + theta D sigma'(X))."""
    evaluate = _route(outer, inner, gate, seed)
    same = pair.first == pair.both == pair.second

    def make(first: float, both: float, second: float, *rest: float) -> Estimate:
        return evaluate(_Floats(first, both, second, *rest))

    def tied(variance: float, *rest: float) -> Estimate:
        return evaluate(_Floats(variance, variance, variance, *rest))

    rest = (push.theta, push.variance, push.mean)
    if same:
        return through(tied, pair.first, *rest)
    return through(make, pair.first, pair.both, pair.second, *rest)


def _route(
    outer: Expr, inner: Expr, gate: Nonlinearity, seed: int
) -> Callable[[_Floats], Estimate]:
    """The way to evaluate: by the sides of a gate that is constant on each, or given X."""
    p, q = gate.degree, degree(inner)
    if p == 1:
        return lambda at: _sides(outer, inner, gate, at)
    whole = p is not None and p.denominator == 1 and q is not None and q.denominator == 1
    if p is not None and p > 1 and whole and q is not None and q >= 0:
        return lambda at: _given_first(outer, inner, gate, at)
    if p is not None and p > HEAVY:
        raise EvaluationError(
            f"{gate.text} has degree {p}: there is no quadrature for it, and samples miss the "
            "tails that carry its moments.",
            hint="Take a whole degree, or one up to 2.",
        )
    return lambda at: _nested(outer, inner, gate, at, seed)


def _sides(outer: Expr, inner: Expr, gate: Nonlinearity, at: _Floats) -> Estimate:
    """The gate is one number for X > 0 and another for X < 0."""
    slopes = (gate.right, -gate.left)
    if slopes[0] == slopes[1]:
        return _pushed_pair(outer, inner, at, slopes[0])
    total = ZERO
    for side, slope in zip((1, -1), slopes, strict=True):
        if number_at(outer, float(side)) == 0.0 and degree(outer) is not None:
            continue
        part = outer * STEP(side * Var(0))
        total = total + bounded(_pushed_pair(part, inner, at, slope))
    return total.estimate()


def _pushed_pair(outer: Expr, inner: Expr, at: _Floats, slope: float) -> Estimate:
    """Where the gate is a number, Y and its push are one Gaussian."""
    step = at.theta * slope
    if step == 0:
        return _pair(outer, inner, at, 0.0)
    second = at.second + kept(step * step * at.variance, at.variance)
    moved = _Floats(at.first, at.both, second, 0.0, 0.0, 0.0)
    return _pair(outer, inner, moved, step * at.mean)


def _pair(outer: Expr, inner: Expr, at: _Floats, mean: float) -> Estimate:
    if at.same:
        moved = substitute(inner, {Var(0): Var(0) + mean})
        return expect(_function(outer * moved), at.first)
    if at.second == 0:
        return expect(_function(outer * number_at(inner, mean)), at.first)
    second = substitute(inner, {Var(0): Var(1)})
    return expect(_function(outer * second, 2), at.table, mean=[0.0, mean])


def _given_first(outer: Expr, inner: Expr, gate: Nonlinearity, at: _Floats) -> Estimate:
    """Given X the argument of a power is Gaussian, and the mean of a power of it is known."""
    p = gate.degree
    assert p is not None
    slope = at.both / at.first
    left = 0.0 if at.same else max(at.second - slope * at.both, 0.0)
    if left > DEGENERATE * at.second:
        return _conditional(outer, inner, gate, at, left)
    if p == 2 or slope == 0:
        return _scaled(outer, inner, gate, at)
    # The ratio of mean to spread has no bound near X = 0: a little independent noise bounds it.
    near, far = (
        bounded(_conditional(outer, inner, gate, at, scale * DEGENERATE * at.second))
        for scale in (100.0, 200.0)
    )
    moved = abs(far.value - near.value)
    return (near + Bounded(0.0, 2 * moved, near.method)).estimate()


def _conditional(
    outer: Expr, inner: Expr, gate: Nonlinearity, at: _Floats, left: float
) -> Estimate:
    """The integral over X alone; ``left`` is the variance of Y given X."""
    p, slope = gate.degree, at.both / at.first
    assert p is not None
    q = degree(inner)
    assert q is not None
    up, down = number_at(inner, 1.0), number_at(inner, -1.0)
    total, h = ZERO, Var(0)
    for side, tilt in _half_lines(outer, gate, at):
        mean = side * slope * h + tilt * at.mean * h ** (p - 1)
        spread = (left + tilt * tilt * at.variance * h ** (2 * p - 2)) ** Fraction(1, 2)
        power = up * _positive_power(mean, spread, int(q))
        power = power + down * _positive_power(-mean, spread, int(q))
        expr = substitute(outer, {h: side * h}) * STEP(h) * power
        total = total + bounded(expect(_function(expr), at.first))
    return total.estimate()


def _scaled(outer: Expr, inner: Expr, gate: Nonlinearity, at: _Floats) -> Estimate:
    """Y is a multiple of X or 0: all of the argument is a power of X times a Gaussian."""
    p, q = gate.degree, degree(inner)
    assert p is not None and q is not None
    total, h = ZERO, Var(0)
    for side, tilt in _half_lines(outer, gate, at):
        mean = side * at.both / at.first + tilt * at.mean
        own = substitute(outer, {h: side * h}) * h ** ((p - 1) * q) * STEP(h)
        moved = kept(tilt * tilt * at.variance, tilt and at.variance)
        rest = expect(_function(inner), moved, mean=mean)
        total = total + bounded(expect(_function(own), at.first)) * bounded(rest)
    return total.estimate()


def _half_lines(outer: Expr, gate: Nonlinearity, at: _Floats) -> Iterator[tuple[int, float]]:
    """The half-lines on which the outer function is not 0, and what the push is a multiple of."""
    assert gate.degree is not None
    for side in (1, -1):
        if number_at(outer, float(side)) != 0.0 or degree(outer) is None:
            slope = gate.right if side > 0 else -gate.left
            yield side, float(gate.degree) * slope * at.theta


def _positive_power(mean: Expr, spread: Expr, most: int) -> Expr:
    """E (m + s U)_+^q: from q = 0 and 1 by m M_{q-1} + (q - 1) s^2 M_{q-2}."""
    ratio = mean / spread
    below, own = CDF(ratio), mean * CDF(ratio) + spread * PDF(ratio)
    if most == 0:
        return below
    for q in range(2, most + 1):
        below, own = own, mean * own + (q - 1) * spread**2 * below
    return own


def _nested(outer: Expr, inner: Expr, gate: Nonlinearity, at: _Floats, seed: int) -> Estimate:
    """X, Y and D together: what no integral of one or two functions covers is sampled."""
    if at.theta == 0 or (at.variance == 0 and at.mean == 0):
        return _pair(outer, inner, at, 0.0)
    x, kick = Var(0), at.theta * gate.slope
    if at.same or at.second == 0:
        start = x if at.same else const(0)
        expr = outer * substitute(inner, {x: start + kick * Var(1)})
        table = [[at.first, 0.0], [0.0, at.variance]]
        return expect(_function(expr, 2), table, mean=[0.0, at.mean], seed=seed)
    (first, both), (_, second) = at.table
    expr = outer * substitute(inner, {x: Var(1) + kick * Var(2)})
    cov = [[first, both, 0.0], [both, second, 0.0], [0.0, 0.0, at.variance]]
    return expect(_function(expr, 3), cov, mean=[0.0, 0.0, at.mean], seed=seed)


def _function(expr: Expr, count: int = 1) -> Callable[..., Expr]:
    """An expression as a function of as many arguments, as ``expect`` takes it."""
    if count == 1:
        return lambda x: substitute(expr, {Var(0): x})
    if count == 2:
        return lambda x, y: substitute(expr, {Var(0): x, Var(1): y})
    return lambda x, y, z: substitute(expr, {Var(0): x, Var(1): y, Var(2): z})
