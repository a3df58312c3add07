"""A number with a bound on its error, on floats and on arrays.

The error is kept in two parts, ``relative * |value| + absolute``. Products, quotients and roots,
and sums of numbers of one sign, have a relative error that is the same for every entry of an array,
and so costs nothing; only where numbers cancel an array of errors is needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite, sqrt
from typing import Any, overload

from tpcalc.errors import EvaluationError

# A little more than half the distance of floats at 1, for the rounding of the bounds themselves.
LEAST = 5e-324  # the smallest number above 0: nothing is divided by 0
UNIT = 1.13e-16
# Factors that round nothing.
EXACT = (1.0, 0.5, 0.25, -1.0, -0.5)


class Ball:
    """A value and its error."""

    __array_ufunc__ = None  # numpy leaves the operators to this class
    __slots__ = ("absolute", "clean", "positive", "relative", "value")

    def __init__(
        self, value: Any, relative: float = 0.0, absolute: Any = 0.0, positive: bool = False
    ) -> None:
        self.value = value
        self.relative = relative
        self.absolute = absolute
        self.positive = positive
        self.clean = type(absolute) is float and absolute == 0.0  # the error is relative alone

    def error(self) -> Any:
        """The bound."""
        if self.clean:
            return self.relative * abs(self.value)
        if self.relative == 0.0:
            return self.absolute
        return self.relative * abs(self.value) + self.absolute

    @overload
    def __add__(self, other: Ball | int) -> Ball: ...

    @overload
    def __add__(self, other: Any) -> Any: ...

    def __add__(self, other: Any) -> Any:
        if type(other) is int:
            if other == 0:
                return self
            other = Ball(float(other), positive=other > 0)
        return total((self, other))

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        if type(other) is int:
            return self + -other
        rounding = UNIT
        absolute = abs(self.value) * (self.relative + rounding)
        absolute = absolute + abs(other.value) * (other.relative + rounding)
        if not self.clean:
            absolute = absolute + self.absolute
        if not other.clean:
            absolute = absolute + other.absolute
        return Ball(self.value - other.value, 0.0, absolute)

    def __rsub__(self, other: Any) -> Any:
        return -1 * self + other

    def __neg__(self) -> Ball:
        return Ball(-self.value, self.relative, self.absolute)

    @overload
    def __mul__(self, other: Ball) -> Ball: ...

    @overload
    def __mul__(self, other: Any) -> Any: ...

    def __mul__(self, other: Any) -> Any:
        if type(other) is int:
            return self._times(other)
        value = self.value * other.value
        relative = self.relative + other.relative
        relative += self.relative * other.relative
        if not (type(other.value) is float and other.value in EXACT and other.relative == 0.0):
            relative += UNIT
        absolute: Any = 0.0
        if not (self.clean and other.clean):
            absolute = self._spread(other)
        return Ball(value, relative, absolute, self.positive and other.positive)

    __rmul__ = __mul__

    def _spread(self, other: Ball) -> Any:
        """The absolute error of a product."""
        absolute: Any = 0.0
        if not other.clean:
            absolute = abs(self.value) * other.absolute * (1 + self.relative)
        if not self.clean:
            more = abs(other.value) * self.absolute * (1 + other.relative)
            absolute = more if other.clean else absolute + more + self.absolute * other.absolute
        return absolute

    def _times(self, number: int) -> Any:
        if number == 0:
            return 0
        if number == 1:
            return self
        size = abs(number)
        relative = self.relative if size in (1, 2, 4) else self.relative + UNIT
        absolute = self.absolute if size == 1 or self.clean else self.absolute * size
        value = self.value * number
        positive = self.positive and number > 0
        if type(value) is float and self.clean:  # a lone float shows its sign
            positive = value >= 0.0
        return Ball(value, relative, absolute, positive)


def total(terms: Sequence[Ball]) -> Ball:
    """The sum of some balls; the error covers any order of adding."""
    value = terms[0].value
    for term in terms[1:]:
        value = value + term.value
    rounding = (len(terms) - 1) * UNIT
    if all(term.positive for term in terms):
        relative = max(term.relative for term in terms) * (1 + rounding) + rounding
        absolute: Any = 0.0
        for term in terms:
            if not term.clean:
                absolute = absolute + term.absolute
        return Ball(value, relative, absolute, True)
    absolute = 0.0
    for term in terms:
        own = abs(term.value) * (term.relative + rounding)
        absolute = absolute + (own if term.clean else own + term.absolute)
    return Ball(value, 0.0, absolute)


def ulps(count: float) -> float:
    """The relative error of a function that is right to so many units in the last place."""
    return 2.0 * UNIT * count


def root(x: Ball) -> Ball:
    """The square root of a number that is not negative."""
    import numpy as np

    value = sqrt(x.value) if type(x.value) is float else np.sqrt(x.value)
    relative = 0.5 * x.relative * (1 + x.relative) + UNIT
    if x.clean:
        return Ball(value, relative, 0.0, True)
    absolute = np.minimum(np.sqrt(x.absolute), x.absolute / np.maximum(value, LEAST))
    return Ball(value, relative, absolute * (1 + x.relative), True)


def quotient(x: Ball, y: Ball) -> Ball:
    """The quotient x / y for y >= 0, and 0 where y is 0."""
    import numpy as np

    value: Any
    if type(x.value) is float and type(y.value) is float:
        value = x.value / y.value if y.value != 0.0 else 0.0
    else:
        value = x.value / y.value
        if type(y.value) is float:
            value = value if y.value != 0.0 else np.zeros_like(x.value)
        elif not y.value.all():
            value = np.where(y.value == 0.0, 0.0, value)
    relative = (x.relative + y.relative) * (1 + 2 * y.relative) + UNIT
    absolute: Any = 0.0
    if not (x.clean and y.clean):
        size = np.abs(y.value)
        least = size * (1 - y.relative) - y.absolute
        shift = x.absolute + np.abs(value) * y.absolute * (1 + x.relative)
        absolute = np.where(least > 0, shift / np.maximum(least, 5e-324), np.inf)
        absolute = np.where(size == 0.0, np.where(y.absolute == 0.0, 0.0, np.inf), absolute)
    return Ball(value, relative, absolute, x.positive)


def better(one: Ball, other: Ball) -> Ball:
    """Of two values for the same number the one with the lower bound, entry by entry."""
    import numpy as np

    first, second = one.error(), other.error()
    lower = ~(second >= first) & ~np.isnan(second)  # also where the first is no number
    if not np.ndim(lower):
        return Ball(other.value, 0.0, second) if lower else one
    return Ball(np.where(lower, other.value, one.value), 0.0, np.where(lower, second, first))


def finite_error(error: Any) -> Any:
    """An error bound with infinity where it is not a number, and room for underflow."""
    import numpy as np

    if not np.ndim(error):
        return float(error) * 1.001 + 1e-300 if isfinite(error) else float("inf")
    found = error * 1.001
    found += 1e-300
    if not found.size or isfinite(found.max()):  # the largest of some that are no numbers is none
        return found
    return np.where(np.isnan(found), np.inf, found)


def no_covariance() -> EvaluationError:
    """The error about a matrix that is none of covariances."""
    return EvaluationError(
        "a covariance is larger than the variances allow: the matrix is not one of covariances.",
        hint="|cov(u, v)| is at most sqrt(var(u) var(v)).",
    )


def infinite() -> EvaluationError:
    """The error about an integral that is infinite."""
    return EvaluationError(
        "the expectation of an exponential of a square is infinite: the variance is too large for "
        "it.",
        hint="exp(a z^2) needs 2 a Var(z) < 1.",
    )
