"""a d - b c and sums of nearly opposite numbers, without loss.

Covariances are taken to be exactly the floats that are given, so a determinant of them is a number
of its own: it is computed with the rounding errors of the products (Dekker's algorithm) and is
right to a few units in the last place however close two variables are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tpcalc.errors import EvaluationError
from tpcalc.integrals.exact.ball import UNIT, Ball, total

SPLIT = 134217729.0  # 2^27 + 1
# Outside of this the errors of products underflow or overflow.
SMALLEST, LARGEST = 1e-140, 1e140
# A covariance that is larger than the variances allow by no more than this is taken as the largest
# that they do allow.
SLACK = 1e-9


def _parts(x: Any) -> tuple[Any, Any]:
    scaled = SPLIT * x
    high = scaled - (scaled - x)
    return high, x - high


def _two_product(x: Any, y: Any) -> tuple[Any, Any]:
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

    if a.relative or d.relative or b.relative or c.relative:
        return _rounded(a * d - b * c, definite)
    if not (a.clean and b.clean and c.clean and d.clean):
        return _rounded(a * d - b * c, definite)
    left, left_error = _two_product(a.value, d.value)
    right, right_error = _two_product(b.value, c.value)
    low, lower = _two_sum(left_error, -right_error)
    value = ((left - right) + low) + lower
    absolute: Any = 0.0
    if not all(_moderate(x.value) for x in (a, d, b, c)):
        size = np.abs(left) + np.abs(right)
        absolute = np.where((size < LARGEST) & (size > SMALLEST), 0.0, 4 * UNIT * size)
        absolute = absolute + np.where(size < LARGEST, 1e-300, np.inf)
    found = Ball(value, 4 * UNIT, absolute, definite)
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


def _rounded(ball: Ball, definite: bool) -> Ball:
    if definite:
        ball.positive = True
        if type(ball.value) is float:
            ball.value = max(ball.value, 0.0)
        else:
            import numpy as np

            ball.value = np.maximum(ball.value, 0.0)
    return ball


def _cut(ball: Ball, size: Any) -> Ball:
    """What cannot be negative, cut off at 0."""
    import numpy as np

    value = ball.value
    negative = value < 0 if type(value) is float else bool(value.size and value.min() < 0)
    if negative:
        if np.any(value < -SLACK * size - ball.absolute):
            raise EvaluationError(
                "a covariance is larger than the variances allow: the matrix is not one of "
                "covariances.",
                hint="|cov(u, v)| is at most sqrt(var(u) var(v)).",
            )
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
