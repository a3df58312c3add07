"""Parameters of catalogue entries as exact numbers: ``0.2`` is 1/5."""

from __future__ import annotations

import re
from fractions import Fraction
from math import isqrt, sqrt

from tpcalc.doors.numbers import exact
from tpcalc.errors import ScaleError, StudyError
from tpcalc.exponents import Ex, as_ex, parse_ex
from tpcalc.functions.numbers import root

_DIGITS = 120  # of a root that is not rational, in bits


def exponent(value: object, *, what: str) -> Ex:
    """An exponent: a number, its text, or a text with symbols (``"1 - alpha"``).

    Example:
        >>> str(exponent("1 - alpha", what="gamma")), str(exponent(0.5, what="gamma"))
        ('1 - alpha', '1/2')
    """
    if isinstance(value, Ex):
        return value
    try:
        return as_ex(exact(value, what=what))
    except StudyError as error:
        if not isinstance(value, str) or not re.search(r"[A-Za-z_]", value):
            raise
        try:
            found = parse_ex(value)
        except ScaleError:
            raise error from None
        if found.symbols & {"n", "L"}:
            raise StudyError(
                f"{what} is {value!r}: n and L are the bases of powers.",
                hint="Call a symbol otherwise: alpha.",
            ) from None
        return found


def rooted(square: Fraction | float) -> Fraction | float:
    """A root that ``squared`` takes back to the number, to its last digit.

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
