"""Parameters of catalogue entries as exact numbers: ``0.2`` is 1/5."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from math import isfinite, isqrt, sqrt
from numbers import Rational, Real

from tpcalc.errors import StudyError

__all__ = ["exact", "root", "rooted", "squared"]

_QUOTIENT = re.compile(r"([+-]?\d{1,300})\s*/\s*(\d{1,300})", re.ASCII)
# Decimal exponents beyond this are outside the range of a float, and slow to expand.
_LARGEST = 330
# Denominators up to which a power of a number is looked for among the fractions.
_DENOMINATOR = 64
_DIGITS = 120  # of a root that is not rational, in bits


def exact(value: object, *, what: str) -> Fraction:
    """A number or its text as the fraction it was meant to be.

    Args:
        value: An integer, a fraction, a float, or text such as ``"0.2"``, ``"1/5"``, ``"1e-3"``.
        what: What the number is, for messages.

    Raises:
        StudyError: It is no finite number in the range of a float.

    Example:
        >>> exact("0.2", what="slope"), exact(0.2, what="slope")
        (Fraction(1, 5), Fraction(1, 5))
    """
    found = _fraction(value)
    if found is not None:
        try:
            float(found)
        except OverflowError:
            raise StudyError(f"{what} is outside the range of a float.") from None
        return found
    raise StudyError(
        f"{what} must be a number, not {value!r}.",
        hint="Write it as 2, 0.2, 1/5 or 1e-3.",
    )


def _fraction(value: object) -> Fraction | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, Rational):
        return Fraction(int(value.numerator), int(value.denominator))
    if isinstance(value, Real):
        # The shortest decimal that is this float is the one that was meant.
        return Fraction(repr(float(value))) if isfinite(value) else None
    return _read(value.strip()) if isinstance(value, str) else None


def _read(text: str) -> Fraction | None:
    quotient = _QUOTIENT.fullmatch(text)
    if quotient is not None:
        over = int(quotient[2])
        return Fraction(int(quotient[1]), over) if over else None
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    if not number.is_finite() or abs(number.adjusted()) > _LARGEST:
        return None
    return Fraction(number)


def root(base: Fraction | int, power: Fraction = Fraction(1, 2)) -> Fraction | float:
    """A power of a positive number: exact where it is rational, else a float.

    Args:
        base: The number.
        power: The power; the square root by default.

    Raises:
        OverflowError: It is outside the range of a float.

    Example:
        >>> root(Fraction(9, 4)), root(4, Fraction(-1, 2)), round(root(2), 6)
        (Fraction(3, 2), Fraction(1, 2), 1.414214)
    """
    base = Fraction(base)
    found: Fraction | float | None = None
    if power.denominator <= _DENOMINATOR and abs(power.numerator) <= _DENOMINATOR**2:
        # In lowest terms, so that the root of the base itself is rational or the power is not.
        over = _whole_root(base.numerator, power.denominator)
        under = _whole_root(base.denominator, power.denominator)
        if over is not None and under is not None:
            found = Fraction(over, under) ** power.numerator
    if found is None:
        found = sqrt(base) if power == Fraction(1, 2) else float(base) ** float(power)
    size = float(found)  # raises where an exact number is too large
    if not isfinite(size) or size == 0:
        raise OverflowError
    return found


def _whole_root(number: int, degree: int) -> int | None:
    """The whole number whose power is this one; None if there is none."""
    if degree == 1:
        return number
    if degree == 2:
        found = isqrt(number)
    else:
        low, high = 0, 1 << (number.bit_length() // degree + 1)
        while low < high:  # the largest one whose power is not above
            middle = (low + high + 1) // 2
            low, high = (middle, high) if middle**degree <= number else (low, middle - 1)
        found = low
    return found if found**degree == number else None


def rooted(square: Fraction | float) -> Fraction | float:
    """A root that ``squared`` takes back to the number, to its last digit.

    Args:
        square: A positive number.

    Example:
        >>> rooted(Fraction(9, 4)), squared(rooted(0.5)), squared(rooted(0.1 + 0.2))
        (Fraction(3, 2), Fraction(1, 2), 0.30000000000000004)
    """
    exact = Fraction(square)
    found = root(exact)
    if squared(found) == square:
        return found
    digits = max(0, _DIGITS - (exact.numerator.bit_length() - exact.denominator.bit_length()) // 2)
    return Fraction(isqrt((exact.numerator << 2 * digits) // exact.denominator), 1 << digits)


def squared(number: Fraction | float) -> Fraction | float:
    """A square; where a number is the root of a simple one but for rounding, that one.

    Args:
        number: The number.

    Example:
        >>> squared(2**0.5), squared(Fraction(1, 2))
        (Fraction(2, 1), Fraction(1, 4))
    """
    if isinstance(number, float):
        simple = Fraction(number * number).limit_denominator(10**6)
        return simple if simple and sqrt(simple) == abs(number) else number * number
    found = Fraction(number) ** 2
    if found.denominator < 1 << _DIGITS:
        return found
    simple = found.limit_denominator(10**6)
    return simple if abs(simple - found) * 2 ** (_DIGITS // 2) < found else float(found)
