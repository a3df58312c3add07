"""Numbers as they are written, read exactly: ``0.2`` is 1/5, ``1e400`` is refused at once."""

from __future__ import annotations

import re
from fractions import Fraction
from math import isfinite
from numbers import Rational, Real

from tpcalc.errors import StudyError, short

MOST = 2**63 - 1  # of whole numbers
_DIGITS = 300
RANGE = f"in the range of a float: 0, or 5e-324 to 1.8e308 in size, of at most {_DIGITS} digits"
_POWER = 330  # of ten: beyond it are no floats, and a power is slow to write out
_WHOLE = re.compile(r"[+-]?\d+", re.ASCII)
_QUOTIENT = re.compile(r"([+-]?\d+)\s*/\s*(\d+)", re.ASCII)
_DECIMAL = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE]([+-]?\d+))?", re.ASCII)


def exact(value: object, *, what: str) -> Fraction:
    """A number or its text as the fraction it was meant to be.

    Example:
        >>> exact("0.2", what="slope"), exact(0.2, what="slope")
        (Fraction(1, 5), Fraction(1, 5))
        >>> exact("1e9999999", what="a")
        Traceback (most recent call last):
        ...
        tpcalc.errors.StudyError: TPC100 a is 1e9999999; it must be finite, in the range of a \
float: 0, or 5e-324 to 1.8e308 in size, of at most 300 digits.
    """
    found = _fraction(value)
    if found is None:
        raise StudyError(
            f"{what} must be a number, not {short(repr(value))}.",
            hint="Write it as 2, 0.2, 1/5 or 1e-3.",
        )
    if isinstance(found, bool) or not _is_float(found):
        shown = short(str(value)) if isinstance(value, str | float) else "a larger number"
        raise StudyError(f"{what} is {shown}; it must be finite, {RANGE}.")
    return found


def whole(text: str) -> int | None:
    """A whole number that is written; None where this is none, or a longer one.

    Example:
        >>> whole("12"), whole(" -3 "), whole("1.5"), whole("9" * 5000)
        (12, -3, None, None)
    """
    text = text.strip()
    return int(text) if _WHOLE.fullmatch(text) and len(text) <= _DIGITS else None


def count(number: int, noun: str) -> str:
    """A number of things.

    Example:
        >>> count(1, "step"), count(2, "step")
        ('1 step', '2 steps')
    """
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _fraction(value: object) -> Fraction | bool | None:
    """A fraction; None where this is no number; False where one is too large to be read."""
    if isinstance(value, bool):
        return None
    if isinstance(value, Rational):
        return Fraction(int(value.numerator), int(value.denominator))
    if isinstance(value, Real):
        # The shortest decimal that is this float is the one that was meant.
        return Fraction(repr(float(value))) if isfinite(value) else None
    return _read(value.strip()) if isinstance(value, str) else None


def _read(text: str) -> Fraction | bool | None:
    quotient, decimal = _QUOTIENT.fullmatch(text), _DECIMAL.fullmatch(text)
    if quotient is None and decimal is None:
        return None
    if len(text) > 2 * _DIGITS or (decimal and _long(decimal)):
        return False
    try:
        return Fraction(text.replace(" ", ""))
    except ZeroDivisionError:
        return None


def _long(decimal: re.Match[str]) -> bool:
    power = decimal[1] or "0"
    return len(power) > len("-330") + 1 or abs(int(power)) > _POWER + _DIGITS


def _is_float(number: Fraction) -> bool:
    try:
        return (float(number) != 0) is (number != 0)
    except OverflowError:
        return False
