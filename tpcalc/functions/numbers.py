"""Numbers of expressions: exact (Fraction) or float, computed exactly and rounded once."""

from __future__ import annotations

from contextlib import suppress
from fractions import Fraction
from math import isfinite, isqrt, sqrt
from numbers import Rational, Real

from tpcalc.errors import ProgramError

Number = Fraction | float


def number_text(value: Number) -> str:
    """Print a number so that it reads back the same: ``1/2``, ``0.3``.

    Example:
        >>> number_text(Fraction(-1, 2)), number_text(0.1)
        ('-1/2', '0.1')
    """
    return str(as_number(value)) if isinstance(value, Rational) else repr(float(value))


def is_finite(value: object) -> bool:
    """Whether this is a real number in the range of a float."""
    if type(value) is Fraction and value.numerator.bit_length() < 1000:  # the common case, fast
        return True
    try:
        return isinstance(value, Real) and isfinite(value)
    except OverflowError:  # an integer or fraction beyond the range of a float
        return False


def finite(value: Number) -> Number:
    """The number itself; a zero becomes exact."""
    if type(value) is Fraction and value.numerator.bit_length() < 1000:  # the common case, fast
        return value
    if not is_finite(value):
        raise ProgramError(
            "a constant of an expression is not a finite number in the range of a float.",
            hint="Rescale it, or write large factors as powers of n.",
        )
    return Fraction(0) if value == 0 else as_number(value)


def as_number(value: Number | int | Real) -> Number:
    """Any real number: integers and fractions become exact (numpy's integers too)."""
    if isinstance(value, Fraction):
        return value
    if isinstance(value, Rational):
        return Fraction(int(value.numerator), int(value.denominator))
    return float(value)


def rational(value: float) -> Fraction:
    """A float as the fraction it was meant to be: 0.1 is 1/10 where both are the same float.

    Example:
        >>> rational(0.1)
        Fraction(1, 10)
    """
    if not isfinite(value):
        raise ProgramError(f"an exponent must be finite, not {value}.")
    simple = Fraction(value).limit_denominator(10**6)
    return simple if float(simple) == value else Fraction(value)


def rounded(total: Fraction, exact: bool) -> Number:
    """A number computed exactly, as a float where a float went in."""
    if exact:
        return total
    try:
        return float(total)
    except OverflowError:
        return float("inf")  # refused by ``finite``, with its message


def whole_power(value: Number, exponent: int) -> Number:
    """A nonzero number to a whole power.

    Example:
        >>> whole_power(Fraction(2, 3), -2)
        Fraction(9, 4)
    """
    if isinstance(value, Fraction):
        size = max(abs(value.numerator), value.denominator).bit_length() - 1
        if size * abs(exponent) <= 4096:  # larger ones are beyond every float
            return value**exponent
    else:
        with suppress(OverflowError):
            return float(value**exponent)
    raise ProgramError(
        f"the number {number_text(value)} to the power {exponent} leaves the range of a float.",
        hint="Rescale it, or write large factors as powers of n.",
    )


# Denominators up to which a power of a number is looked for among the fractions.
_DENOMINATOR = 64


def root(base: Fraction | int, power: Fraction = Fraction(1, 2)) -> Fraction | float:
    """A power of a positive number: exact where it is rational, else a float.

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
