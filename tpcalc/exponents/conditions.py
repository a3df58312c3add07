"""Regions inside a box: their conditions as affine forms, and which of them can be left out."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

from tpcalc.errors import ScaleError
from tpcalc.exponents.chamber import Region
from tpcalc.exponents.ex import Ex, as_ex
from tpcalc.exponents.polytope import Form, Polytope, primitive

Signs = Mapping[Form, int]  # the sign that each form must have

# The faces of a box, 3 to the power of its dimension, are covered one by one.
_MOST_SYMBOLS = 4


@dataclass(frozen=True)
class Axes:
    """The symbols of a diagram and the interval of each.

    Example:
        >>> axes = Axes.of({"a": (0, 1), "c": (-1, 1)})
        >>> axes.signs(Region((1 - 2 * Ex.symbol("a"),)))
        {(-1, 2, 0): -1}
    """

    names: tuple[str, ...]  # the symbols, in the order of the coordinates
    sides: tuple[tuple[Fraction, Fraction], ...]  # the ends of each closed interval

    @staticmethod
    def of(box: Mapping[str, tuple[Fraction | float, Fraction | float]]) -> Axes:
        """The axes of a box.

        Args:
            box: The two ends of the interval of each symbol.

        Raises:
            ScaleError: No symbol, too many symbols, or an interval that is none.
        """
        if not box:
            raise ScaleError(
                "a diagram needs the interval of at least one symbol.",
                hint="Give one, as in box={'a': (0, 1), 'c': (-1, 1)}.",
            )
        if len(box) > _MOST_SYMBOLS:
            raise ScaleError(
                f"a diagram in {len(box)} symbols ({', '.join(box)}) has too many faces; "
                f"at most {_MOST_SYMBOLS} are covered.",
                hint="Give numbers in place of the others.",
            )
        names = tuple(str(Ex.symbol(name)) for name in box)  # each in its one spelling
        return Axes(names, tuple(_interval(name, ends) for name, ends in box.items()))

    def faces(self) -> Iterator[Polytope]:
        """The open faces of the box, itself first; every point lies in exactly one."""
        choices = [((low, high), (low, low), (high, high)) for low, high in self.sides]
        faces = [Polytope.box(sides) for sides in itertools.product(*choices)]
        yield from sorted(faces, key=lambda face: -face.dimension)

    def point(self, values: Iterable[Fraction]) -> dict[str, Fraction]:
        """Coordinates by the names of their symbols."""
        return dict(zip(self.names, values, strict=True))

    def signs(self, region: Region) -> dict[Form, int]:
        """The conditions of a region as signs of affine forms."""
        signs: dict[Form, int] = {}
        for g, sign in (*((g, 0) for g in region.zero), *((g, 1) for g in region.positive)):
            if g.constant is not None:
                continue  # true or false everywhere: a region has its own point in it
            _add(signs, self.form(g), sign)
        return signs

    def form(self, g: Ex) -> Form:
        """A polynomial of degree 1 as an affine form, up to a positive factor."""
        foreign = sorted(g.symbols - set(self.names))
        if foreign:
            raise ScaleError(
                f"the condition on {g} holds {', '.join(foreign)}, of which the box says nothing.",
                hint=f"Give an interval or a number for {', '.join(foreign)}.",
            )
        curved = [monomial for monomial, _ in g.terms if sum(power for _, power in monomial) > 1]
        if curved:
            raise _not_affine(g, [dict(monomial) for monomial in curved])
        known = dict(g.terms)
        zero = Fraction(0)
        return primitive(
            [known.get((), zero), *(known.get(((name, 1),), zero) for name in self.names)]
        )

    def polynomial(self, form: Form) -> Ex:
        """An affine form as a polynomial."""
        total = as_ex(Fraction(form[0]))
        for name, number in zip(self.names, form[1:], strict=True):
            total = total + number * Ex.symbol(name)
        lead = total.terms[-1][1]
        return total / abs(lead)  # as a chamber records it

    def conditions(self, shape: Polytope) -> Region:
        """The shortest conditions that describe a polytope."""
        return Region(
            tuple(self.polynomial(form) for form in shape.facets),
            tuple(self.polynomial(form) for form in shape.zeros),
        )


def _interval(
    name: str, ends: tuple[Fraction | float, Fraction | float]
) -> tuple[Fraction, Fraction]:
    hint = f"Write two numbers, the smaller first, as in {{{name!r}: (0, 1)}}."
    try:
        first, last = ends
        low, high = as_ex(first).constant, as_ex(last).constant
    except (TypeError, ValueError):
        raise ScaleError(f"{ends!r} is not an interval for {name}.", hint=hint) from None
    if low is None or high is None or low > high:
        raise ScaleError(f"{name} from {first} to {last} is not an interval.", hint=hint)
    if low == high:
        raise ScaleError(
            f"the interval of {name} is the single number {low}.",
            hint=f"Give {name} this number and leave it out of the box.",
        )
    return low, high


def _not_affine(g: Ex, monomials: list[dict[str, int]]) -> ScaleError:
    """Name the symbol to fix: the one in most of the products, the highest power first."""
    names = sorted({name for monomial in monomials for name in monomial})
    power = {name: max(monomial.get(name, 0) for monomial in monomials) for name in names}
    often = {name: sum(name in monomial for monomial in monomials) for name in names}
    structural = max(names, key=lambda name: (power[name] > 1, often[name]))
    others = [name for name in names if name != structural]
    also = f" (or {', '.join(others)})" if others and power[structural] == 1 else ""
    return ScaleError(
        f"the boundary {g} = 0 is curved in the symbols of the box; a diagram has flat ones only.",
        hint=f"Give a number for {structural}{also}, as in values={{{structural!r}: 2}}.",
    )


def _add(signs: dict[Form, int], form: Form, sign: int) -> None:
    """Record a condition; a form and its negative are one key."""
    if next(number for number in form[1:] if number != 0) < 0:
        form, sign = tuple(-number for number in form), -sign
    signs[form] = sign


def signs_of(shape: Polytope) -> dict[Form, int]:
    """The conditions that describe a polytope.

    Example:
        >>> signs_of(Polytope.box([(Fraction(0), Fraction(1))]))
        {(0, 1): 1, (-1, 1): -1}
    """
    signs: dict[Form, int] = {}
    for form in shape.zeros:
        _add(signs, form, 0)
    for form in shape.facets:
        _add(signs, form, 1)
    return signs


def meet(piece: Polytope, signs: Signs) -> Polytope | None:
    """The part of a polytope where forms have given signs, or None where it is empty."""
    part: Polytope | None = piece
    for form, sign in signs.items():
        if part is None:
            break
        part = part.part(form, sign)
    return part


def without(piece: Polytope, signs: Signs) -> Iterator[Polytope]:
    """Disjoint polytopes that together are what ``meet`` leaves of a polytope."""
    rest: Polytope | None = piece
    for form, sign in signs.items():
        if rest is None:
            return
        for other in (-1, 1, 0):
            part = rest.part(form, other) if other != sign else None
            if part is not None:
                yield part
        rest = rest.part(form, sign)
