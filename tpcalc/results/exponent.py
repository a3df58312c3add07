"""Exponents of sizes n^e and L^e: exact, and written and read here alone."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from tpcalc.exponents import Ex, as_ex, parse_ex

_INFINITE = {"": 0, "oo": 1, "-oo": -1}


@dataclass(frozen=True, slots=True)
class Exponent:
    """The exponent e of a size n^e or L^e.

    Args:
        exact: A polynomial in symbols with rational coefficients; None: it is none.
        infinite: -1: the size is identically 0 (-oo); 1: nothing is known of it (oo).

    Example:
        >>> str(Exponent.number(Fraction(-1, 2))), str(Exponent(None, -1)), str(Exponent())
        ('-1/2', '-oo', '')
        >>> Exponent.of("1/2 - a").size("n"), Exponent.number(0).size("L")
        ('n^(1/2 - a)', '1')
    """

    exact: Ex | None = None
    infinite: int = 0

    @staticmethod
    def number(value: Fraction | int | Ex) -> Exponent:
        """An exponent that is known."""
        return Exponent(as_ex(value))

    @staticmethod
    def of(text: str) -> Exponent:
        """Read an exponent from a file; in memory it is a record."""
        return Exponent(None, _INFINITE[text]) if text in _INFINITE else Exponent(parse_ex(text))

    def __str__(self) -> str:
        if self.exact is not None:
            return str(self.exact)
        return next(text for text, sign in _INFINITE.items() if sign == self.infinite)

    @property
    def is_zero(self) -> bool:
        """Whether what has this size is identically 0."""
        return self.infinite < 0

    @property
    def constant(self) -> Fraction | None:
        """The exponent, where it is a number."""
        return None if self.exact is None else self.exact.constant

    def size(self, base: str, unknown: str = "?") -> str:
        """The size as a power of ``"n"`` or ``"L"``."""
        if self.exact is None:
            return "0" if self.is_zero else unknown
        return f"{base}^({self})" if self.exact != Ex() else "1"

    def raised(self, base: str) -> str:
        """A power of ``"n"`` or ``"L"`` with as few brackets as can be."""
        whole = self.constant is not None and self.constant.denominator == 1
        return f"{base}^{self}" if whole else f"{base}^({self})"

    def __neg__(self) -> Exponent:
        return Exponent(None if self.exact is None else -self.exact, -self.infinite)

    @property
    def squared(self) -> Exponent:
        """That of the square."""
        return self if self.exact is None else Exponent(2 * self.exact)


ZERO = Exponent(None, -1)  # of what is identically 0
UNKNOWN = Exponent(None, 1)
PLAIN = Exponent(Ex())
NONE = Exponent()
