"""Parameters of catalogue entries as exact numbers: ``0.2`` is 1/5."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from math import isfinite
from numbers import Rational, Real

from tpcalc.errors import StudyError

__all__ = ["exact"]

_QUOTIENT = re.compile(r"([+-]?\d{1,300})\s*/\s*(\d{1,300})", re.ASCII)
# Decimal exponents beyond this are outside the range of a float, and slow to expand.
_LARGEST = 330


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
