"""Series in the width: what a quantity is at large n, by the powers written in the program.

A value is ``sum_k n^(p_k) c_k + rest``: growth exponents p_k, largest first, nodes c_k of the limit
graph that are of order one, and a bound on the rest. The identity is exact at finite n; the limit
is taken of the nodes only. ``Ranking.depth`` says how far below the leading power terms are kept.

The rest is bounded in three parts. ``rest`` may be anywhere. ``soft`` moves a vector only on a
vanishing share of its coordinates (a gate that flips): it counts for sizes, but it does not hide
the next term where the leading ones are exactly 0. ``drift`` is in the terms themselves: a scalar
in a coefficient stands for its value at finite n, and the bound says how far that is from the
limit; it counts only where terms with the same limit cancel, a part of a coefficient included: no
term stands for what is left of them at finite n.

Exponents are compared through a ``Chamber`` only, so with symbols in them every comparison that a
result rests on is on record. What a result does not need is not compared: of the terms that are
dropped only their distance to the leading one is asked. Sums and products are those of series whose
coefficients are expressions of numbered arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Generic, TypeVar

from tpcalc.exponents.chamber import Chamber, Power, minus, plus
from tpcalc.functions.expr import Add, Const, Expr, Mul, add, const, mul

T = TypeVar("T")
ZERO = Fraction(0)
# Adds coefficients: None where all of them cancels; and whether a part of them does.
Merge = Callable[[list[T]], tuple[T | None, bool]]


class NeedsMore(Exception):
    """A rest is as large as what is asked; keep more terms and try again."""


@dataclass(frozen=True, slots=True)
class Rest:
    """A bound on what was dropped: O(n^power), o(n^power) if strict; power None: no bound.

    The power is that of the mean square. What lives on a vanishing share of the coordinates is
    larger there: ``peak`` bounds it everywhere, and is None where it is no larger.
    """

    power: Power | None
    strict: bool = False
    peak: Power | None = None

    def shift(self, by: Power | None) -> Rest:
        """The bound times n^by (None: times something without a bound)."""
        if self.power is None or by is None:
            return UNBOUNDED
        peak = None if self.peak is None else plus(self.peak, by)
        return Rest(plus(self.power, by), self.strict, peak)


UNBOUNDED = Rest(None)


@dataclass(frozen=True, slots=True)
class Series(Generic[T]):
    """Powers of n with their coefficients, largest first, and bounds on the rest (None: no rest).

    ``shape`` numbers the powers and the bounds within one derivation (``Context.shape``).
    """

    terms: tuple[tuple[Power, T], ...]
    rest: Rest | None = None
    soft: Rest | None = None
    drift: Rest | None = None
    shape: int | None = field(default=None, compare=False, repr=False)

    @property
    def is_zero(self) -> bool:
        """Whether the quantity is identically 0."""
        return not self.terms and self.rest is None and self.soft is None

    @property
    def lead(self) -> Power | None:
        """A power that bounds the quantity; None: identically 0, or (with a rest) no bound.

        As a factor of a bound it counts with its peak, because mean squares do not multiply.
        """
        if self.terms:
            return self.terms[0][0]
        bound = self.rest or self.soft
        if bound is None:
            return None
        return bound.power if bound.peak is None else bound.peak

    def shift(self, by: Power) -> Series[T]:
        """The series times n^by."""
        if by == ZERO:
            return self
        rest = None if self.rest is None else self.rest.shift(by)
        soft = None if self.soft is None else self.soft.shift(by)
        drift = None if self.drift is None else self.drift.shift(by)
        terms = tuple((plus(power, by), item) for power, item in self.terms)
        return Series(terms, rest, soft, drift)

    def bounded_by(self, rest: Rest | None) -> Rest | None:
        """The bound on this series times something bounded by ``rest``."""
        if rest is None or self.is_zero:
            return None
        return rest.shift(self.lead)


@dataclass
class Remainder:
    """What is left of a sum of series: bounds of the three kinds, in their order."""

    rests: list[Rest] = field(default_factory=list)
    softs: list[Rest] = field(default_factory=list)
    drifts: list[Rest] = field(default_factory=list)

    @classmethod
    def flat(cls, of: Series[Any]) -> Remainder:
        """What is left of a scalar: nothing in it is soft."""
        found = cls()
        found.add(of.rest, None, of.drift)
        found.add(of.soft)
        return found

    def add(
        self, rest: Rest | None = None, soft: Rest | None = None, drift: Rest | None = None
    ) -> None:
        """Add bounds, where there are any."""
        for bounds, own in ((self.rests, rest), (self.softs, soft), (self.drifts, drift)):
            if own is not None:
                bounds.append(own)

    def product(self, a: Series[Any], b: Series[Any]) -> None:
        """Add what is left of a product."""
        for one, other in ((a, b), (b, a)):
            self.add(*map(other.bounded_by, (one.rest, one.soft, one.drift)))

    def settle(self) -> None:
        """What cancels in the limit is left over at finite n."""
        self.rests, self.drifts = self.rests + self.drifts, []


@dataclass(frozen=True)
class Ranking:
    """How terms are compared and which are kept."""

    chamber: Chamber  # decides and records comparisons
    depth: Power  # terms down to this power of n below the leading one are kept

    @property
    def reach(self) -> Fraction:
        """How far below the leading power that is at the sample point."""
        return self.chamber.at(self.depth)

    def larger(self, a: Rest | None, b: Rest | None) -> Rest | None:
        """The larger of two bounds."""
        if a is None or b is None:
            return a if b is None else b
        if a is b:
            return a
        if a.power is None or b.power is None:
            return UNBOUNDED
        if a.peak != b.peak:
            return self._peaked(a, b)
        if isinstance(a.power, Fraction) and isinstance(b.power, Fraction):
            if a.power == b.power:
                return Rest(a.power, a.strict and b.strict)
            return a if a.power > b.power else b
        sign = self.chamber.sign(minus(a.power, b.power))
        if sign == 0:
            return Rest(a.power, a.strict and b.strict)
        return a if sign > 0 else b

    def _peaked(self, a: Rest, b: Rest) -> Rest:
        """The larger of two bounds, with the larger of their peaks."""
        assert a.power is not None and b.power is not None
        tops = [bound.power if bound.peak is None else bound.peak for bound in (a, b)]
        assert tops[0] is not None and tops[1] is not None
        first = self.chamber.sign(minus(tops[0], tops[1])) >= 0
        found = self.larger(Rest(a.power, a.strict), Rest(b.power, b.strict))
        assert found is not None
        return Rest(found.power, found.strict, tops[0] if first else tops[1])

    def covers(self, rest: Rest | None, power: Power) -> bool:
        """Whether the rest may be as large as n^power."""
        if rest is None:
            return False
        if rest.power is None:
            return True
        sign = self.chamber.sign(minus(rest.power, power))
        return sign > 0 or (sign == 0 and not rest.strict)

    def leading(self, series: Series[T]) -> tuple[Power, T] | None:
        """The leading term; None for an identical zero."""
        if series.is_zero:
            return None
        if not series.terms:
            raise NeedsMore
        power, _ = series.terms[0]
        if self.covers(series.rest, power) or self.covers(series.soft, power):
            raise NeedsMore
        return series.terms[0]

    def bound(self, series: Series[T]) -> Rest | None:
        """A bound on a whole series; None for an identical zero."""
        out: Rest | None = None
        for rest in (series.rest, series.soft):
            out = self.larger(out, rest)
        if series.terms:
            out = self.larger(out, Rest(series.terms[0][0]))
        return out

    def keep(
        self,
        terms: Mapping[Power, T],
        left: Remainder,
        merge: Merge[T],
    ) -> Series[T]:
        """The terms that count: within ``depth`` of the largest and above every rest."""
        bounds, gentle, inner = left.rests, left.softs, left.drifts
        if any(rest.power is None for rest in (*bounds, *gentle)):
            return Series((), UNBOUNDED)
        if not terms:
            return Series((), self._largest(bounds + gentle))
        if len(terms) == 1:
            groups, dropped = [list(terms)], None
        elif all(isinstance(power, Fraction) for power in (self.depth, *terms)):
            groups, dropped = self._numbers(terms)
        else:
            groups, dropped = self._symbols(terms)
        lead = groups[0][0]
        rest = self._joined(bounds if dropped is None else [*bounds, dropped], lead)
        kept: list[tuple[Power, T]] = []
        for group in groups:
            if self.covers(rest, group[0]):
                break
            items = [terms[power] for power in group]
            item, lost = (items[0], False) if len(items) == 1 else merge(items)
            if item is None or (lost and inner):  # what cancels is left over at finite n
                others = {power: terms[power] for power in terms if power not in group}
                others |= {} if item is None else {group[0]: item}
                return self.keep(others, Remainder([*bounds, *inner], gentle), merge)
            kept.append((group[0], item))
        soft = self._joined(gentle, lead)
        if not kept or self.covers(soft, lead):
            return Series((), self._largest([b for b in (rest, soft, Rest(lead)) if b]))
        return Series(tuple(kept), rest, soft, self._joined(inner, lead))

    def as_factor(self, scalar: Series[T]) -> Series[T]:
        """A scalar as a factor of vectors: its leading terms stand for its value at finite n."""
        if not scalar.terms or scalar.rest is None or scalar.rest.power is None:
            return scalar
        bounds = [scalar.rest, *(Rest(power) for power, _ in scalar.terms[1:2])]
        if scalar.drift is not None:
            bounds.append(scalar.drift)
        drift = self._joined(bounds, scalar.terms[0][0])
        return Series(scalar.terms[:1], None, None, drift)

    def whole(self, series: Series[T]) -> Series[T]:
        """The series of a scalar: nothing in it is soft."""
        if series.soft is None:
            return series
        return self.keep(dict(series.terms), Remainder.flat(series), one)

    def spread(self, series: Series[T]) -> Series[T]:
        """What a matrix multiplies: nothing in it is soft, and nothing has a peak."""
        left = Remainder.flat(series)
        if not left.rests:
            return series
        left.rests = [Rest(bound.power, bound.strict) for bound in left.rests]
        return self.keep(dict(series.terms), left, one)

    def _largest(self, bounds: list[Rest]) -> Rest | None:
        out: Rest | None = None
        for rest in bounds:
            out = self.larger(out, rest)
        return out

    def _joined(self, bounds: list[Rest], lead: Power) -> Rest | None:
        """One bound for all; of those below the depth that is kept only this is asked."""
        if len(bounds) < 2 or all(isinstance(rest.power, Fraction) for rest in bounds):
            return self._largest(bounds)
        floor = minus(lead, self.depth)
        high = [rest for rest in bounds if self.covers(rest, floor)]
        if high:
            return self._largest(high)
        peaked = any(rest.peak is not None for rest in bounds)
        return Rest(floor, strict=True, peak=lead if peaked else None)

    def _numbers(self, terms: Iterable[Power]) -> tuple[list[list[Power]], Rest | None]:
        ordered = sorted((p for p in terms if isinstance(p, Fraction)), reverse=True)
        floor = ordered[0] - self.reach
        kept: list[list[Power]] = [[power] for power in ordered if power >= floor]
        return kept, Rest(ordered[len(kept)]) if len(kept) < len(ordered) else None

    def _symbols(self, terms: Iterable[Power]) -> tuple[list[list[Power]], Rest | None]:
        """Powers in groups that are equal at the sample point, largest first."""
        sign = self.chamber.sign
        left = list(terms)
        groups: list[list[Power]] = []
        dropped: Rest | None = None
        lead = max(left, key=self.chamber.at)
        if self.depth:
            near = [p for p in left if sign(minus(plus(p, self.depth), lead)) >= 0]
            if len(near) < len(left):
                dropped = Rest(plus(lead, -self.depth), strict=True)
            left = near
        while left:
            lead = max(left, key=self.chamber.at)
            signs = [sign(minus(lead, power)) for power in left]
            groups.append([power for power, s in zip(left, signs, strict=True) if s == 0])
            left = [power for power, s in zip(left, signs, strict=True) if s > 0]
            if left and not self.depth:
                return groups, Rest(lead, strict=True)
        return groups, dropped


def one(items: list[T]) -> tuple[T | None, bool]:
    """The terms of one series have different powers already."""
    (item,) = items
    return item, False


DENSE, FAR, BELOW = 2, 3, 4  # what is known of an argument and the kinks of a function
Terms = Series[Expr]


@dataclass(frozen=True, slots=True)
class Explosion:
    """A function that is not homogeneous, of an argument that grows: only a bound is left."""

    where: str
    text: str
    power: Power


@dataclass(frozen=True, slots=True)
class Asked:
    """A question about the arguments of an expansion."""

    # "clear": has an expression of vectors a law without mass at the points? "told": can samples
    # tell where it is exactly there? "rounded": is it a sum whose terms may cancel but for
    # rounding? "gated": is an argument exactly 0 where all of its terms are, whatever its rest?
    # "positive": is an expression above 0, and has its inverse all moments? "nonzero", "away": what
    # the expansion rests on of scalars
    kind: str
    expr: Expr  # over the fresh arguments
    points: tuple[float, ...] = (0.0,)
    power: Fraction = Fraction(1)  # of "nonzero" the power that is taken
    # whether the function is continuous there and not homogeneous, so that a number near a point
    # need not be told from it
    gentle: bool = False


@dataclass(frozen=True, slots=True)
class Setting:
    """What an expansion needs to know besides the series.

    Args:
        ranking: How powers are compared and how many terms are kept.
        ask: Answers a question about the arguments, and records what the answer rests on: 0 no,
            1 yes, ``DENSE`` yes and the density there is bounded, ``FAR`` yes and nothing of it is
            near, ``BELOW`` the same, and it is a negative number.
        positive: Fresh vector arguments that stay away from 0.
        where: The node, for messages.
        exploded: Collects what was asked of arguments that explode.
        fresh: Numbers for values that are not followed.
    """

    ranking: Ranking
    ask: Callable[[Asked], int]
    positive: frozenset[Expr]
    where: str
    exploded: list[Explosion]
    fresh: Iterator[int]


def summed(parts: list[Terms], setting: Setting) -> Terms:
    """The sum of series."""
    pieces = [(exponent, piece) for part in parts for exponent, piece in part.terms]
    left = Remainder()
    for part in parts:
        left.add(part.rest, part.soft, part.drift)
    return _collected(pieces, left, setting)


def multiplied(a: Terms, b: Terms, setting: Setting) -> Terms:
    """The product of two series."""
    if a.is_zero or b.is_zero:
        return Series(())
    pieces: list[tuple[Power, Expr]] = []
    lost = False
    for p, x in a.terms:
        for q, y in b.terms:
            piece = mul((x, y))
            lost = lost or (isinstance(piece, Const) and {type(x), type(y)} != {Const})
            pieces.append((plus(p, q), piece))
    left = Remainder()
    left.product(a, b)
    return _collected(pieces, left, setting, lost=lost)


def _collected(
    pieces: Iterable[tuple[Power, Expr]],
    left: Remainder,
    setting: Setting,
    *,
    lost: bool = False,
) -> Terms:
    """Terms with equal powers added; what cancels in the limit is left over at finite n.

    But for numbers: a term that is a number is that number at finite n, too.
    """
    total: dict[Power, Expr] = {}
    for exponent, piece in pieces:
        if exponent in total:
            found = add((total[exponent], piece))
            lost = lost or (bool(left.drifts) and _cancels((total[exponent], piece), found))
            total[exponent] = found
        else:
            total[exponent] = piece
    total = {exponent: piece for exponent, piece in total.items() if piece != const(0)}
    if lost:
        left.settle()
    return setting.ranking.keep(total, left, _merged)


def _cancels(pieces: Iterable[Expr], total: Expr) -> bool:
    """Whether terms of a sum cancel."""
    return not set().union(*map(_monomials, pieces)) <= _monomials(total)


def _monomials(expr: Expr) -> set[tuple[Expr, ...]]:
    """The terms of a sum without their numbers, as factors; not those that are numbers."""
    terms = expr.terms if isinstance(expr, Add) else (expr,)
    factors = (term.factors if isinstance(term, Mul) else (term,) for term in terms)
    return {tuple(f for f in group if not isinstance(f, Const)) for group in factors} - {()}


def _merged(pieces: list[Expr]) -> tuple[Expr | None, bool]:
    total = add(pieces)
    return None if total == const(0) else total, _cancels(pieces, total)


def is_null(piece: Terms) -> bool:
    """Whether a series is identically 0."""
    bounded = any(bound is not None for bound in (piece.rest, piece.soft, piece.drift))
    return piece.is_zero or (not bounded and all(expr == const(0) for _, expr in piece.terms))
