"""Numbers as floats and arrays with error bounds."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from math import isfinite, pi, pow, sqrt
from typing import Any

from tpcalc.errors import EvaluationError
from tpcalc.functions import Expr, const
from tpcalc.functions.atoms import Call
from tpcalc.functions.expr import Add, Const, Mul, Pow
from tpcalc.integrals.exact import halflines, quadrants, rays
from tpcalc.integrals.exact.ball import (
    UNIT,
    Ball,
    better,
    infinite,
    no_covariance,
    quotient,
    root,
    total,
    ulps,
)
from tpcalc.integrals.exact.piece import level
from tpcalc.integrals.exact.weighted import Corner, weighted

SPLIT = 134217729.0  # 2^27 + 1
# Outside of this the errors of products underflow or overflow.
SMALLEST, LARGEST = 1e-140, 1e140
# A covariance that is larger than the variances allow by no more than this is taken as the largest
# that they do allow.
SLACK = 1e-9

LARGEST_WHOLE = 1 << 53


def ball(x: Any) -> Ball:
    """A number of the rules as a ball."""
    if isinstance(x, Ball):
        return x
    return Ball(float(x), 0.0, 0.0, x >= 0)


class Floats:
    """The number system of balls; Python integers are exact.

    Example:
        >>> FLOATS.total([1, Ball(0.5)]).value
        1.5
    """

    def constant(self, expr: Expr) -> Any:
        return constant(expr)

    def fraction(self, value: Fraction) -> Any:
        return _fraction(value)

    def total(self, terms: Sequence[Any]) -> Any:
        kept = [term for term in terms if not (type(term) is int and term == 0)]
        if len(kept) > 1:
            return total([ball(term) for term in kept])
        return kept[0] if kept else 0

    def close_total(self, terms: Sequence[Any]) -> Any:
        kept = [ball(term) for term in terms if not (type(term) is int and term == 0)]
        return close_sum(kept) if len(kept) > 1 else kept[0] if kept else 0

    def over(self, x: Any, y: Any) -> Any:
        if type(y) is int and y == 1:
            return x
        if type(x) is int and x == 0:
            return 0
        return quotient(ball(x), ball(y))

    def minor(self, a: Any, d: Any, b: Any, c: Any, definite: bool) -> Any:
        left = a * d
        right = b * c
        if type(right) is int and right == 0:
            return left
        if type(left) is int and left == 0:
            return -1 * right
        return determinant(ball(a), ball(d), ball(b), ball(c), definite)

    def tilted(self, square: Any, variance: Any) -> Any:
        if (type(square) is int and square == 0) or (type(variance) is int and variance == 0):
            return 1
        found = 1 + (-2 * square) * variance
        if not found.positive:
            least = found.value - found.error()
            if not (least > 0 if type(least) is float else (least > 0).all()):
                raise infinite()
            found.positive = True
        return found

    def root(self, x: Any) -> Any:
        return x if type(x) is int and x in (0, 1) else root(ball(x))

    def exponential(self, weight: Any) -> Any:
        return 1 if type(weight) is int and weight == 0 else halflines.exponential(ball(weight))

    def wave(self, kind: str, phase: Any) -> Any:
        import numpy as np

        if type(phase) is int and phase == 0:
            return 1 if kind == "cos" else 0
        x = ball(phase)
        value = np.cos(x.value) if kind == "cos" else np.sin(x.value)
        return Ball(value, ulps(4), x.error())

    def per_root_tau(self, count: int) -> Any:
        return 1 if count == 0 else _root_tau(count)

    def known_side(self, kind: str, mean: Any) -> Any:
        if type(mean) is int:
            sign = (mean > 0) - (mean < 0)
            return sign if kind == "sign" else _fraction(Fraction(1 + sign, 2))
        return halflines.side(kind, mean)

    def half(self, kind: str, weights: tuple[Any, Any], mean: Any, variance: Any) -> Any:
        if type(mean) is int and mean == 0:
            if kind == "sign":
                return 0
            return _fraction(Fraction(1, 2)) * self.exponential(weights[0])
        height = halflines.standard(ball(mean), root(ball(variance)))
        if type(weights[0]) is int and weights[0] == 0:
            return halflines.half(kind, height)
        if kind == "sign":
            return self.exponential(weights[0]) * halflines.half(kind, height)
        return halflines.tail(ball(weights[0]), height, ball(weights[1]))

    def quarter(
        self, kinds: tuple[str, str], weights: tuple[Any, ...], means: Any, entries: Any
    ) -> Any:
        first, second, covariance, minor = entries
        weight = weights[0]
        plain = type(weight) is int and weight == 0
        if type(covariance) is int:  # independent
            one = self.half(kinds[0], (0, 0), means[0], first)
            return one * self.half(
                kinds[1], weights[::2] if plain else (weight, weights[2]), means[1], second
            )
        if kinds == ("sign", "step"):
            return self.quarter(
                ("step", "sign"), _turned(weights), means[::-1], (second, first, covariance, minor)
            )
        centred = all(type(mean) is int and mean == 0 for mean in means)
        if kinds == ("step", "sign"):
            found = self._step_and_sign(weights, means, entries)
            if plain or centred or not halflines.heavy(ball(weight)):
                return found
            alone = self.half("step", (weight, weights[1]), means[0], first)
            both = self.quarter(("step", "step"), weights, means, entries)
            return better(found, ball(self.total([2 * both, -1 * alone])))
        if centred:
            found = quadrants.angle(kinds[0], ball(covariance), ball(minor))
            return found * self.exponential(weight)
        pair = quadrants.Pair.of(
            ball(means[0]), ball(means[1]), *(ball(entry) for entry in entries)
        )
        if kinds[0] == "sign":
            return self.exponential(weight) * quadrants.signs(pair)
        if plain:
            return quadrants.steps(pair)
        corner = Corner(*(ball(entry) for entry in weights))
        return weighted(pair, corner.scaled(ball(first), ball(second), ball(minor)))

    def _step_and_sign(self, weights: tuple[Any, ...], means: Any, entries: Any) -> Ball:
        """Step = (1 + sign) / 2."""
        alone = self.half("sign", (weights[0], 0), means[1], entries[1])
        both = self.quarter(("sign", "sign"), weights, means, entries)
        return ball(_fraction(Fraction(1, 2)) * self.total([alone, both]))

    def ramps(self, entries: Any) -> Any:
        _, _, covariance, minor = entries
        return quadrants.ramps(ball(covariance), ball(minor))

    def power(self, exponent: Fraction, variance: Any) -> Any:
        return rays.single(exponent, ball(variance))

    def powers(self, exponents: tuple[Fraction, Fraction], entries: Any) -> Any:
        return rays.double(exponents, *(ball(entry) for entry in entries))


def _turned(weights: tuple[Any, ...]) -> tuple[Any, ...]:
    """Weights with the two half-lines in the other order."""
    if len(weights) == 1:
        return weights
    weight, first, second, corner, drift, back = weights
    return (weight, second, first, corner, back, drift)


@lru_cache(maxsize=512)
def _fraction(value: Fraction) -> Any:
    if value.denominator == 1:
        return int(value)
    near = float(value)
    return Ball(near, 0.0 if Fraction(near) == value else UNIT, 0.0, near > 0)


@lru_cache(maxsize=64)
def _root_tau(count: int) -> Ball:
    return Ball(sqrt(2 * pi) ** -count, 4 * UNIT * count, 0.0, True)


FLOATS = Floats()


@lru_cache(maxsize=4096)
def constant(expr: Expr) -> Any:
    """A constant expression as a ball, or as a Python integer where it is one."""
    if isinstance(expr, Const):
        value = Fraction(expr.value)
        if value.denominator == 1 and abs(value) < LARGEST_WHOLE:
            return int(value)
        near = float(value)
        return Ball(near, 0.0 if Fraction(near) == value else UNIT, 0.0, near >= 0)
    found = _ball(expr)
    if not isfinite(found.value):
        raise EvaluationError(f"the constant {expr.text} leaves the range of floats.")
    return found


def _known(expr: Expr) -> Ball:
    found = constant(expr)
    return found if isinstance(found, Ball) else Ball(float(found), positive=found >= 0)


def _ball(expr: Expr) -> Ball:
    if isinstance(expr, Add):
        return total([_known(term) for term in expr.terms])
    if isinstance(expr, Mul):
        out = _known(expr.factors[0])
        for factor in expr.factors[1:]:
            out = out * _known(factor)
        return out
    if isinstance(expr, Pow):
        base, exponent = _known(expr.base), float(expr.exponent)
        value = pow(base.value, exponent)
        error = base.error() / max(abs(base.value), 5e-324)
        spread = abs(exponent) * error * (1 + 4 * error * (1 + abs(exponent)))
        return Ball(value, 4 * UNIT + spread, 0.0, base.value > 0)
    value = level(expr)
    found = Ball(value, 16 * UNIT, 0.0, value > 0)
    if isinstance(expr, Call):
        argument = _known(expr.arg)
        error = argument.error()
        if error > 0:
            ends = [level(expr.atom(const(argument.value + way * error))) for way in (-1, 1)]
            found.absolute = 4 * max(abs(end - value) for end in ends) + 4 * UNIT * abs(value)
    return found


def _parts(x: Any) -> tuple[Any, Any]:
    scaled = SPLIT * x
    high = scaled - (scaled - x)
    return high, x - high


def two_product(x: Any, y: Any) -> tuple[Any, Any]:
    """The product as a sum of two floats, exactly.

    Source: Dekker, A floating-point technique for extending the available precision, section 5.
    """
    value = x * y
    x_high, x_low = _parts(x)
    y_high, y_low = (x_high, x_low) if y is x else _parts(y)
    error = ((x_high * y_high - value) + x_high * y_low + x_low * y_high) + x_low * y_low
    return value, error


def _two_sum(x: Any, y: Any) -> tuple[Any, Any]:
    value = x + y
    back = value - x
    return value, (x - (value - back)) + (y - back)


def determinant(a: Ball, d: Ball, b: Ball, c: Ball, definite: bool) -> Ball:
    """The number a d - b c; a definite one is cut off at 0."""
    import numpy as np

    given = a.relative or d.relative or b.relative or c.relative
    if given or not (a.clean and b.clean and c.clean and d.clean):
        found = a * d - b * c
        return _cut(found, np.inf) if definite else found
    left, left_error = two_product(a.value, d.value)
    right, right_error = two_product(b.value, c.value)
    low, lower = _two_sum(left_error, -right_error)
    value = ((left - right) + low) + lower
    absolute: Any = 0.0
    if not all(_moderate(x.value) for x in (a, d, b, c)):
        size = np.abs(left) + np.abs(right)
        absolute = np.where((size < LARGEST) & (size > SMALLEST), 0.0, 4 * UNIT * size)
        absolute = absolute + np.where(size < LARGEST, 1e-300, np.inf)
    found = Ball(value, 4 * UNIT, absolute)
    return _cut(found, left) if definite else found


def _moderate(x: Any) -> bool:
    """Whether products of such numbers, and the errors of these, neither underflow nor overflow.

    Zeros do no harm.
    """
    if type(x) is float:
        return x == 0.0 or 1e-60 < abs(x) < 1e60
    import numpy as np

    size = np.abs(x)
    if not size.size or (size.max() < 1e60 and size.min() > 1e-60):
        return True
    return bool(np.all((size < 1e60) & ((size > 1e-60) | (size == 0.0))))


def _cut(ball: Ball, size: Any) -> Ball:
    """What cannot be negative, cut off at 0."""
    import numpy as np

    value, ball.positive = ball.value, True
    if value < 0 if type(value) is float else bool((value < 0).any()):
        if np.any(value < -SLACK * size - ball.absolute):
            raise no_covariance()
        ball.value = 0.0 if type(value) is float else np.maximum(value, 0.0)
    return ball


def close_sum(terms: Sequence[Ball]) -> Ball:
    """The sum of numbers that nearly cancel; exact ones lose nothing."""
    if any(term.relative or not term.clean for term in terms):
        return total(terms)
    value, error, size = terms[0].value, 0.0, abs(terms[0].value)
    for term in terms[1:]:
        value, lost = _two_sum(value, term.value)
        error = error + lost
        size = size + abs(term.value)
    return Ball(value + error, UNIT, 4 * len(terms) * UNIT * UNIT * size)
