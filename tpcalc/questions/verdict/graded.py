"""Graded bounds: how large the parts of a quantity may be, and which sign flips each may feel.

A bound is a list of parts (exponent, coset): the quantity is a sum of terms O(n^exponent), each
with characters in its coset. A term whose coset does not hold 0 has mean 0, so its average is
smaller by n^(1/2). Nothing is said about which terms are there: every operation may only add
parts and enlarge cosets, so what is small here is small.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar

from tpcalc.errors import NotDifferentiable
from tpcalc.exponents.coset import ALL, EVEN, Coset, Lattice
from tpcalc.functions import Call, Const, Expr, Fn, Par, Var, const
from tpcalc.functions.expr import Add, Mul, Pow, walk
from tpcalc.functions.form import Quotient, quotient
from tpcalc.functions.tape import evaluate

Bound = tuple[tuple[Fraction, Coset], ...]
Split = tuple[Bound, Bound]  # a value and a change: what is meant is their sum

ZERO, HALF = Fraction(0), Fraction(1, 2)


class Unbounded(Exception):
    """No bound is known: an argument explodes, or a function has no known growth."""


@dataclass
class Bounds:
    """The operations on bounds.

    Example:
        >>> bounds = Bounds()
        >>> u, v = bounds.lattice.single(0), bounds.lattice.single(1)
        >>> x = ((Fraction(0), u), (Fraction(-1, 2), v))
        >>> bounds.size(bounds.average(bounds.product(x, ((Fraction(0), v),))))
        Fraction(-1, 2)
    """

    lattice: Lattice = field(default_factory=Lattice)  # holds the cosets
    # Parts that are smaller than the largest by more are one part without a coset.
    floor: ClassVar[Fraction] = Fraction(4)

    def reduced(self, parts: Iterable[tuple[Fraction, Coset]]) -> Bound:
        """The canonical form: parts that no other part covers, largest first."""
        by_coset: dict[Coset, Fraction] = {}
        for power, coset in parts:
            known = by_coset.get(coset)
            if known is None or power > known:
                by_coset[coset] = power
        if len(by_coset) < 2:
            return tuple((power, coset) for coset, power in by_coset.items())
        floor = max(by_coset.values()) - self.floor
        levels: dict[Fraction, list[Coset]] = {}
        for coset, power in by_coset.items():
            levels.setdefault(power, []).append(coset if power >= floor else ALL)
        kept: list[tuple[Fraction, Coset]] = []
        larger: dict[int, set[int]] = {}  # of more than one character: the others hold themselves
        holds, dimension = self.lattice.holds, self.lattice.dimension
        for power in sorted(levels, reverse=True):
            own: list[Coset] = []
            # Only what has more directions can hold another: what is held need not be asked later.
            for c in sorted(set(levels[power]), key=dimension, reverse=True):
                if not holds(larger, c):
                    own.append(c)
                    if c[1] != EVEN[1]:
                        larger.setdefault(c[1], set()).add(c[0])
            kept += [(power, c) for c in sorted(own)]
        return tuple(kept)

    def size(self, bound: Bound) -> Fraction | None:
        """The largest exponent; None for 0."""
        return bound[0][0] if bound else None

    def sum(self, *bounds: Bound) -> Bound:
        """The bound on a sum.

        Args:
            bounds: Those of its terms.
        """
        present = {id(bound): bound for bound in bounds if bound}
        if len(present) < 2:
            return next(iter(present.values()), ())
        return self.reduced(part for bound in present.values() for part in bound)

    def product(self, a: Bound, b: Bound) -> Bound:
        """The bound on a product.

        Args:
            a: Of one factor.
            b: Of the other.
        """
        join = self.lattice.product
        return self.reduced((p + q, join(c, d)) for p, c in a for q, d in b)

    def shift(self, bound: Bound, by: Fraction) -> Bound:
        """The bound times n^by."""
        return tuple((power + by, coset) for power, coset in bound) if by else bound

    def average(self, bound: Bound) -> Bound:
        """The bound on the average over the coordinates."""
        zero = self.lattice.has_zero
        powers = [power if zero(coset) else power - HALF for power, coset in bound]
        return ((max(powers), EVEN),) if powers else ()

    def hull(self, bound: Bound) -> Coset:
        """One coset that holds those of all parts."""
        total = bound[0][1]
        for _, coset in bound[1:]:
            total = self.lattice.hull(total, coset)
        return total

    def function(self, expr: Expr, arguments: Mapping[Expr, Split]) -> Split:
        """The bound on a function, and on how far a change of its arguments moves it.

        Args:
            expr: The function, over ``Var`` and ``Par``.
            arguments: For each argument the bounds on its value and on its change.

        Raises:
            Unbounded: None is known.

        Source: Hajjar, Chizat, Giraud, Appendix B.2; Taylor's formula.
        """
        if isinstance(expr, Const):
            return (((ZERO, EVEN),) if expr.value != 0 else ()), ()
        if isinstance(expr, Var | Par):
            return arguments[expr]
        if isinstance(expr, Add):
            parts = [self.function(term, arguments) for term in expr.terms]
            return self.sum(*(v for v, _ in parts)), self.sum(*(c for _, c in parts))
        if isinstance(expr, Mul):
            found, factors = quotient(expr), expr.factors
            bounded = [] if found is None else [self._ratio(found, arguments)]
            factors = factors if found is None else found.others
            return self._multiplied([*bounded, *(self.function(f, arguments) for f in factors)])
        if isinstance(expr, Pow):
            base = self.function(expr.base, arguments)
            if expr.exponent.denominator != 1 or expr.exponent < 1:
                return self.root(expr, base)
            return self._multiplied([base] * int(expr.exponent))
        assert isinstance(expr, Call)
        value, change = self.function(expr.arg, arguments)
        degree = expr.atom.facts.homogeneity
        if degree is not None and _number(degree) < 0:
            return self.root(expr, (value, change))
        for bound in (value, change):
            if bound and bound[0][0] > 0 and degree != 0:
                raise Unbounded
        return self._value(expr, value), self._change(expr, value, change)

    def root(self, expr: Pow | Call, base: Split) -> Split:
        """A negative or fractional power: its base may be near 0."""
        raise Unbounded

    def _ratio(self, quotient: Quotient, arguments: Mapping[Expr, Split]) -> Split:
        """A sum over the root of squares: bounded, and odd in all of its arguments together."""
        parts = [self.function(root, arguments) for root, _, _ in quotient.parts]
        value = self.sum(*(value for value, _ in parts))
        moved = self.sum(*(change for _, change in parts))

        def bound(inner: Bound) -> Bound:
            if not inner:
                return ()
            # Beside what is added to the root it is no larger than what is above.
            power = ZERO if quotient.shift == const(0) else min(ZERO, inner[0][0])
            return ((power, self.hull(inner)),)

        return bound(value), bound(self.sum(value, moved)) if moved else ()

    def _multiplied(self, factors: list[Split]) -> Split:
        value, change = factors[0]
        for v, c in factors[1:]:
            change = self.sum(
                self.product(value, c), self.product(change, v), self.product(change, c)
            )
            value = self.product(value, v)
        return value, change

    def _value(self, expr: Call, bound: Bound) -> Bound:
        """A function of one variable: of the largest parts, and what the others change of it."""
        start = _at_zero(expr)
        if not bound:
            return ((ZERO, EVEN),) if start else ()
        lead = bound[0][0]
        first = tuple(part for part in bound if part[0] == lead)
        others = bound[len(first) :]
        facts = expr.atom.facts
        coset = self._applied(expr, first)
        if facts.homogeneity is not None:
            own: Bound = ((_number(facts.homogeneity) * lead, coset),)
        elif lead == 0:
            own = ((ZERO, coset),)
        elif 0.0 in facts.kinks and not _tame_slope(expr):
            own = ((ZERO, coset),)  # it may jump where the argument tends
        else:
            constant: Bound = ((ZERO, EVEN),) if start else ()
            if 0.0 in facts.kinks or facts.slope_at_zero is None or not _smooth(expr):
                own = self.sum(constant, ((lead, coset),))
            else:
                order = 3 if facts.parity == "odd" else 2
                linear = first if facts.slope_at_zero else ()
                own = self.sum(constant, linear, ((order * lead, coset),))
        return self.sum(own, self._change(expr, first, others)) if others else own

    def _change(self, expr: Call, value: Bound, change: Bound) -> Bound:
        """How far a change of its argument moves a function of one variable."""
        if not change:
            return ()
        coset = self._applied(expr, (*value, *change))
        degree = expr.atom.facts.homogeneity
        by = change[0][0]
        if value and by >= value[0][0] and not _at_zero(expr):  # the change is what leads
            return self.sum(self._value(expr, self.sum(value, change)), self._value(expr, value))
        slope = _slope(expr)
        if degree is not None and _number(degree) < 1:
            at = max(by, value[0][0]) if value else by
            return ((_number(degree) * at, coset),)
        if slope is None or not _tame(slope):
            return ((ZERO, coset),)
        if degree is not None:  # of degree 1 or more: Lipschitz on the scale of its argument
            at = max(by, value[0][0]) if value else by
            return ((by + (_number(degree) - 1) * at, coset),)
        if not _smooth(expr):
            return ((by, coset),)
        tangent, _ = self.function(slope, {Var(0): (value, ())})
        return self.sum(self.product(tangent, change), ((2 * by, coset),))

    def _applied(self, expr: Call, bound: Bound) -> Coset:
        """The coset of a function of one variable."""
        inner = self.hull(bound)
        parity = expr.atom.facts.parity
        if parity == "odd":
            return inner
        return self.lattice.even(inner) if parity == "even" else self.lattice.span(inner)


def _number(degree: object) -> Fraction:
    """A degree of homogeneity that is a number."""
    with suppress(ValueError):
        return Fraction(str(degree))
    raise Unbounded


def _at_zero(expr: Call) -> bool:
    """Whether the function is not 0 at 0."""
    return bool(float(evaluate(Fn(expr.atom(const(0)), 0), [])) != 0)


def _slope(expr: Call) -> Expr | None:
    with suppress(NotDifferentiable):
        return expr.atom.differentiate(Var(0))
    return None


def _tame(expr: Expr) -> bool:
    """Whether a function grows no faster than a power."""
    return all(
        part.exponent >= 1
        if isinstance(part, Pow)
        else part.atom.facts.growth is not None
        if isinstance(part, Call)
        else True
        for part in walk(expr)
    )


def _tame_slope(expr: Call) -> bool:
    slope = _slope(expr)
    return slope is not None and _tame(slope)


def _smooth(expr: Call) -> bool:
    """Whether its second derivative grows no faster than a power, without kinks on the way."""
    slope = _slope(expr)
    if slope is None or expr.atom.facts.kinks:
        return False
    for part in walk(slope):
        if isinstance(part, Call) and (part.atom.facts.kinks or not _tame_slope(part)):
            return False
    return _tame(slope)
