"""Directions in which a vector is steep: given all others it has a density, bounded or not.

A function of one Gaussian whose slope is almost nowhere 0 has a density (Bouleau and Hirsch). So a
slope times a product with a matrix has one, and a sum of such terms where one term alone holds the
direction. The slope is almost nowhere 0 where its factors are positive by their form, or analytic
functions, not 0 everywhere, of a vector that has a density itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise

import numpy as np

from tpcalc.errors import NotDifferentiable, ScaleError
from tpcalc.functions import Call, Const, Expr, Fn, Par, Var
from tpcalc.functions.expr import Add, Mul, Pow, substitute, walk
from tpcalc.functions.fn import derivative
from tpcalc.functions.form import least
from tpcalc.functions.tape import evaluate
from tpcalc.limit.building import Building, is_hidden
from tpcalc.limit.graph import LRef, Product, Start, Starts, Total
from tpcalc.limit.law import Density, Laws, of_others
from tpcalc.limit.parity import union
from tpcalc.program.base import Table
from tpcalc.program.nodes import LinComb, Nonlin

MOST = 32  # terms of a sum, and products with one side of a matrix, that are looked at
CLEAR = 1e-6  # of a function at a point: more than rounding
NEAR = (-1.3, -0.7, -0.1, 0.1, 0.7, 1.3)  # of a kink, or of 0: a piece without one has some of them


@dataclass(frozen=True, slots=True)
class _Found:
    """Directions in which a vector is steep, those of them that are certainly new, and images."""

    shown: int = 0
    sure: int = 0
    images: frozenset[LRef] = frozenset()


NONE = _Found()


@dataclass
class Steep:
    """The steep directions of the vectors of a graph under construction."""

    context: Building  # the graph
    laws: Laws  # what forms say of bounded densities
    certain: Callable[[LRef], bool]  # whether a node is certainly not 0
    _known: list[_Found] = field(default_factory=list)
    _bringing: dict[int, LRef] = field(default_factory=dict)  # what first brought a direction
    _used: dict[tuple[str, bool], list[LRef]] = field(default_factory=dict)  # what was multiplied

    def proves(self, ref: LRef) -> bool:
        """Whether forms prove that a vector has a density, bounded or not."""
        found = self._found(ref)
        return bool(found.sure or found.images) or self._is_proved(ref)

    def sources(self, ref: LRef) -> tuple[LRef, ...]:
        """What brought the directions in which a vector is steep, if they are new."""
        shown = self._found(ref).shown
        return tuple(source for bit, source in self._bringing.items() if bit & shown)

    def is_apart(self, ref: LRef, others: Sequence[LRef]) -> bool:
        """Whether it is proved that a vector has a density, whatever some others are.

        An other that has one whatever the rest is leaves the law of the rest as it is, up to a
        positive factor, so that it may be left out (Bayes).
        """
        found = self._found(ref)
        if not (found.sure or found.images):
            return False
        if self._is_free(ref, others):
            return True
        left = list(others)
        for other in others:
            beside = [ref, *(one for one in left if one != other)]
            if self._is_free(other, beside):
                left.remove(other)
        return len(left) < len(others) and self._is_free(ref, left)

    def _is_free(self, ref: LRef, others: Sequence[LRef]) -> bool:
        """Whether a vector is steep in a direction that some others do not feel."""
        found = self._own(ref, union([self.laws.smooth_of(other) for other in others]), others)
        return bool(found.sure or found.images)

    def _is_proved(self, ref: LRef) -> bool:
        return self.laws.density(ref) is Density.PROVED

    def _found(self, ref: LRef) -> _Found:
        for here in range(len(self._known), ref + 1):
            vector = self.context.dims[here] is not None
            made = _FOUND(self.context.nodes[here], self, here) if vector else NONE
            self._known.append(made)
        return self._known[ref]

    def _own(self, ref: LRef, felt: int, others: Sequence[LRef]) -> _Found:
        """The directions of a vector that others, which feel some, feel by jumps alone."""
        found = self._found(ref)
        images = found.images
        if images:
            left = [other for other in others if self.laws.smooth_of(other)]
            images = frozenset(image for image in images if self.laws.is_new_image(image, left))
        return _Found(found.shown & ~felt, found.sure & ~felt, images)

    def _owns(self, vectors: Sequence[LRef]) -> Iterator[_Found]:
        """The same of each of some vectors beside the others."""
        felt = of_others([self.laws.smooth_of(vector) for vector in vectors])
        for place, vector in enumerate(vectors):
            yield self._own(vector, felt[place], [*vectors[:place], *vectors[place + 1 :]])

    def _of_start(self, ref: LRef) -> _Found:
        return _Found(images=frozenset({ref})) if self.laws.image_varies(ref) else NONE

    def _of_block(self, ref: LRef) -> _Found:
        """All cells of a block of start vectors, or of sums of them, share one direction."""
        bits = self.context.parity.depends[ref] if self._is_proved(ref) else 0
        return _Found(bits, bits)

    def _of_product(self, node: Product, ref: LRef) -> _Found:
        own = self.context.parity.own[ref]
        if own:
            self._bringing.setdefault(own, ref)
        used = self._used.setdefault((node.matrix, node.transpose), [])
        new = self._is_proved(ref) or (
            node.matrix not in self.context.orthogonal
            and len(used) < MOST
            and self.is_apart(node.vector, used)
        )
        used.append(node.vector)
        return _Found(own, own if new else 0)

    def _of_sum(self, node: LinComb, ref: LRef) -> _Found:
        """The directions of one term that no other term feels."""
        if self.laws.is_image(ref):
            return self._of_start(ref)
        if len(node.vectors) > MOST:
            return NONE
        found = NONE
        for scalar, own in zip(node.scalars, self._owns(node.vectors), strict=True):
            if own != NONE and (scalar is None or self.certain(scalar)):
                found = _joined(found, own)
        return found

    def _of_function(self, node: Nonlin) -> _Found:
        """The directions of one argument that no other feels, by which the slope is nowhere 0."""
        found = NONE
        for place, own in enumerate(self._owns(node.vectors)):
            if own != NONE and self._has_slope(node, place):
                found = _joined(found, own)
        return found

    def _has_slope(self, node: Nonlin, place: int) -> bool:
        """Whether it is proved that the slope by an argument is almost nowhere 0."""
        needs = _needs(node.fn, place)
        if needs is None or not all(self.proves(node.vectors[i]) for i in needs[0]):
            return False
        numbers = (Fn(number, node.fn.vectors, node.fn.scalars).compact() for number in needs[1])
        return all(
            self.certain(self.context.scalar(fn, [node.scalars[i] for i in kept]))
            for fn, _, kept in numbers
        )


def _joined(one: _Found, other: _Found) -> _Found:
    return _Found(one.shown | other.shown, one.sure | other.sure, one.images | other.images)


_FOUND: Table[_Found] = Table(
    {
        Start: lambda node, steep, ref: steep._of_start(ref),
        **dict.fromkeys((Starts, Total), lambda node, steep, ref: steep._of_block(ref)),
        Product: lambda node, steep, ref: steep._of_product(node, ref),
        LinComb: lambda node, steep, ref: steep._of_sum(node, ref),
        Nonlin: lambda node, steep, ref: steep._of_function(node),
    },
    lambda node, steep, ref: NONE,
)


_Needs = tuple[tuple[int, ...], tuple[Expr, ...]]


@lru_cache(maxsize=2**12)
def _needs(fn: Fn, place: int) -> _Needs | None:
    """What makes the slope of a function by an argument almost nowhere 0; None: nothing shown.

    Vector arguments that must have densities, and functions of scalar ones that must not be 0.
    """
    calls = (part for part in walk(fn.expr) if isinstance(part, Call))
    if is_hidden(fn) or not all(part.atom.facts.analytic for part in calls):
        return None  # the slope of others may be a surrogate
    try:
        slope = derivative(fn.expr, Var(place))
    except NotDifferentiable:
        return None
    places, numbers = [], []
    for factor in slope.factors if isinstance(slope, Mul) else (slope,):
        parts = {part for part in walk(factor) if isinstance(part, Var | Par)}
        vectors = [part for part in parts if isinstance(part, Var)]
        if _is_positive(factor):
            continue
        if parts and not vectors:
            numbers.append(factor)
        elif len(parts) == 1 and _is_analytic(factor, vectors[0]):
            places.append(vectors[0].index)
        else:
            return None
    return tuple(places), tuple(numbers)


def _is_positive(expr: Expr) -> bool:
    """Whether an expression is nowhere 0 by its form."""
    if isinstance(expr, Const):
        return expr.value != 0
    if isinstance(expr, Call):
        return expr.atom.facts.tame
    if isinstance(expr, Pow):
        return _is_positive(expr.base)
    if isinstance(expr, Add):
        return all(least(term) >= 0 for term in expr.terms) and any(map(_is_positive, expr.terms))
    return isinstance(expr, Mul) and all(map(_is_positive, expr.factors))


def _is_analytic(expr: Expr, argument: Var) -> bool:
    """Whether a function of one argument is analytic between kinks, and 0 on no piece."""
    kinks = set[float]()
    for part in walk(expr):
        if isinstance(part, Pow) and not (_is_whole(part) or _is_positive(part.base)):
            return False
        if isinstance(part, Call):
            facts = part.atom.facts
            if not facts.analytic or (facts.kinks and part.arg != argument):
                return False
            kinks |= {*facts.kinks}
    ends = [-np.inf, *sorted(kinks), np.inf]
    marks = sorted(kinks) or [0.0]
    points = np.array([mark + step for mark in marks for step in NEAR])
    at = Fn(substitute(expr, {argument: Var(0)}), 1)
    try:
        with np.errstate(all="ignore"):  # outside of a domain
            values = np.asarray(evaluate(at, [points]), dtype=float) + np.zeros_like(points)
    except ScaleError:  # it holds a symbol
        return False
    there = points[np.isfinite(values) & (np.abs(values) > CLEAR)]
    return all(bool(np.any((there > low) & (there < high))) for low, high in pairwise(ends))


def _is_whole(part: Pow) -> bool:
    return part.exponent > 0 and part.exponent.denominator == 1
