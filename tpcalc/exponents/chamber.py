"""Chambers: exponents compared at a sample point, with the region where the answer holds.

A derivation asks nothing about a symbolic exponent but its sign. Each answer is read off the sample
point and recorded, so at any other point that satisfies the record the same derivation would give
the same formulas: the record is the region where they hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from tpcalc.exponents.ex import Ex, as_ex

Power = Fraction | Ex


def _plain(value: Ex) -> Power:
    constant = value.constant
    return value if constant is None else constant


def plus(a: Power, b: Power) -> Power:
    """The sum of two exponents; numbers stay plain fractions.

    Example:
        >>> plus(Ex.symbol("a"), -Ex.symbol("a"))
        Fraction(0, 1)
    """
    if isinstance(a, Fraction) and isinstance(b, Fraction):
        return a + b
    return _plain(as_ex(a) + as_ex(b))


def minus(a: Power, b: Power) -> Power:
    """The difference of two exponents.

    Example:
        >>> minus(Fraction(1), Fraction(1, 2))
        Fraction(1, 2)
    """
    if isinstance(a, Fraction) and isinstance(b, Fraction):
        return a - b
    return _plain(as_ex(a) - as_ex(b))


def times(a: Power, b: Power) -> Power:
    """The product of two exponents (a degree of homogeneity times a power).

    Example:
        >>> times(Fraction(2), Fraction(1, 2))
        Fraction(1, 1)
    """
    if isinstance(a, Fraction) and isinstance(b, Fraction):
        return a * b
    return _plain(as_ex(a) * as_ex(b))


@dataclass(frozen=True)
class Region:
    """A conjunction of polynomial conditions on the symbols.

    Example:
        >>> region = Region((Ex.symbol("a") - Fraction(1, 2),))
        >>> region.lines, region.contains({"a": Fraction(1)})
        (('-1/2 + a > 0',), True)
    """

    # polynomials g with g > 0, each divided by the size of one coefficient
    positive: tuple[Ex, ...] = ()
    zero: tuple[Ex, ...] = ()  # polynomials g with g = 0

    @property
    def lines(self) -> tuple[str, ...]:
        """The conditions in print."""
        return (*(f"{g} = 0" for g in self.zero), *(f"{g} > 0" for g in self.positive))

    @property
    def symbols(self) -> frozenset[str]:
        """The symbols that occur."""
        return frozenset(name for g in (*self.positive, *self.zero) for name in g.symbols)

    def contains(self, point: Mapping[str, Fraction]) -> bool:
        """Whether a point satisfies all conditions."""
        return all(g.at(point) > 0 for g in self.positive) and all(
            g.at(point) == 0 for g in self.zero
        )


def joined(regions: Iterable[Region]) -> Region:
    """Where the conditions of all regions hold.

    Example:
        >>> a = Region((Ex.symbol("a"),))
        >>> joined([a, Region(zero=(Ex.symbol("b"),)), a]).lines
        ('b = 0', 'a > 0')
    """
    every = tuple(regions)
    return Region(
        tuple(dict.fromkeys(g for region in every for g in region.positive)),
        tuple(dict.fromkeys(g for region in every for g in region.zero)),
    )


class Chamber:
    """The sample point of a derivation and what was decided at it.

    Example:
        >>> chamber = Chamber({"a": Fraction(3, 4)})
        >>> chamber.sign(1 - 2 * Ex.symbol("a")), chamber.region.lines
        (-1, ('-1/2 + a > 0',))
    """

    def __init__(self, point: Mapping[str, Fraction] | None = None) -> None:
        self.point: dict[str, Fraction] = dict(point or {})
        self._positive: dict[Ex, None] = {}
        self._zero: dict[Ex, None] = {}
        self._known: dict[Ex, int] = {}

    def sign(self, value: Power) -> int:
        """The sign of an exponent at the sample point; recorded unless it is a number."""
        if isinstance(value, Fraction):
            return (value > 0) - (value < 0)
        known = self._known.get(value)
        if known is None:
            known = self._known[value] = self._decide(value)
        return known

    def _decide(self, value: Ex) -> int:
        if value.constant is not None:
            return self.sign(value.constant)
        here = value.at(self.point)
        size = value.terms[-1][1]  # one fixed coefficient: a condition is recorded once
        if here == 0:
            self._zero[value / size] = None
            return 0
        sign = 1 if here > 0 else -1
        self._positive[value * sign / abs(size)] = None
        return sign

    def at(self, value: Power) -> Fraction:
        """The value at the sample point, for sorting; what depends on it must ask ``sign``."""
        return value if isinstance(value, Fraction) else value.at(self.point)

    @property
    def region(self) -> Region:
        """Where every comparison made so far has the same answer."""
        return Region(tuple(self._positive), tuple(self._zero))
