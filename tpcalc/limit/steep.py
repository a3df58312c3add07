"""Directions in which a vector is steep: given all others it has a density, bounded or not.

A function of one Gaussian whose slope is almost nowhere 0 has a density (Bouleau and Hirsch). So a
slope times a product with a matrix has one, and a sum of such terms where one term alone holds the
direction. The slope is almost nowhere 0 where its factors are positive by their form, or analytic
functions, not 0 everywhere, of a vector that has a density itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from tpcalc.errors import NotDifferentiable
from tpcalc.functions import Call, Const, Expr, Fn, Par, Var
from tpcalc.functions.expr import Add, Mul, Pow, substitute, walk
from tpcalc.functions.fn import derivative
from tpcalc.functions.least import least
from tpcalc.functions.tape import evaluate
from tpcalc.limit.building import Building, is_hidden
from tpcalc.limit.graph import LRef, Product, Start, Starts, Total
from tpcalc.limit.law import Density, Laws
from tpcalc.program.base import Table
from tpcalc.program.nodes import LinComb, Nonlin

__all__ = ["Steep", "Steepness"]

MOST = 32  # terms of a sum, and products with one side of a matrix, that are looked at
CLEAR = 1e-6  # of a function at a point: more than rounding
NEAR = (-1.3, -0.7, -0.1, 0.1, 0.7, 1.3)  # of a kink, or of 0: a piece without one has some of them


@dataclass(frozen=True, slots=True)
class Steepness:
    """What forms say of a vector.

    Args:
        proved: Whether they prove that it has a density.
        sources: What brought the directions in which it is steep, if these are new, and if what its
            slopes rest on has densities.
    """

    proved: bool = False
    sources: tuple[LRef, ...] = ()


@dataclass(frozen=True, slots=True)
class _Found:
    """Directions of a vector that are its own, those of them that are proved, and images."""

    shown: int = 0
    sure: int = 0
    images: frozenset[LRef] = frozenset()


NONE = _Found()


@dataclass
class Steep:
    """The steep directions of the vectors of a graph under construction.

    Args:
        context: The graph.
        laws: What forms say of bounded densities.
        certain: Whether a node is certainly not 0.
    """

    context: Building
    laws: Laws
    certain: Callable[[LRef], bool]
    _known: list[_Found] = field(default_factory=list)
    _bringing: dict[int, LRef] = field(default_factory=dict)  # what first brought a direction
    _used: dict[tuple[str, bool], list[LRef]] = field(default_factory=dict)  # what was multiplied

    def of(self, ref: LRef) -> Steepness:
        """What forms say of the density of a vector, bounded or not.

        Args:
            ref: Its node.
        """
        found = self._found(ref)
        proved = bool(found.sure or found.images) or self._is_proved(ref)
        sources = (source for bit, source in self._bringing.items() if bit & found.shown)
        return Steepness(proved, tuple(sources))

    def is_apart(self, ref: LRef, others: Sequence[LRef]) -> bool:
        """Whether it is proved that a vector has a density, whatever some others are.

        Args:
            ref: Its node.
            others: Other vectors.
        """
        found = self._own(ref, others)
        return bool(found.sure or found.images)

    def _is_proved(self, ref: LRef) -> bool:
        return self.laws.density(ref) is Density.PROVED

    def _found(self, ref: LRef) -> _Found:
        for here in range(len(self._known), ref + 1):
            vector = self.context.dims[here] is not None
            made = _FOUND(self.context.nodes[here], self, here) if vector else NONE
            self._known.append(made)
        return self._known[ref]

    def _own(self, ref: LRef, others: Sequence[LRef]) -> _Found:
        """The directions of a vector that some others feel by jumps alone."""
        found = self._found(ref)
        if found == NONE:
            return NONE
        felt = 0
        for other in others:
            felt |= self.laws.smooth_of(other)
        left = [other for other in others if self.laws.smooth_of(other)] if found.images else []
        images = (image for image in found.images if self.laws.images.is_new(image, left))
        return _Found(found.shown & ~felt, found.sure & ~felt, frozenset(images))

    def _of_start(self, ref: LRef) -> _Found:
        return _Found(images=frozenset({ref})) if self.laws.images.varies(ref) else NONE

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
        if self.laws.images.is_one(ref):
            return self._of_start(ref)
        if len(node.vectors) > MOST:
            return NONE
        found = NONE
        for place, (scalar, vector) in enumerate(zip(node.scalars, node.vectors, strict=True)):
            own = self._own(vector, [*node.vectors[:place], *node.vectors[place + 1 :]])
            if own != NONE and (scalar is None or self.certain(scalar)):
                found = _joined(found, own)
        return found

    def _of_function(self, node: Nonlin) -> _Found:
        """The directions of one argument that no other feels, by which the slope is nowhere 0."""
        found = NONE
        for place, vector in enumerate(node.vectors):
            own = self._own(vector, [*node.vectors[:place], *node.vectors[place + 1 :]])
            sure = None if own == NONE else self._slope(node, place)
            if sure is not None:
                found = _joined(found, own if sure else _Found(own.shown))
        return found

    def _slope(self, node: Nonlin, place: int) -> bool | None:
        """Whether it is proved that a slope is almost nowhere 0; None: forms do not show it."""
        needs = _needs(node.fn, place)
        if needs is None:
            return None
        for number in needs.numbers:
            fn, _, kept = Fn(number, node.fn.vectors, node.fn.scalars).compact()
            if not self.certain(self.context.scalar(fn, [node.scalars[i] for i in kept])):
                return None
        laws = [self.of(node.vectors[i]) for i in needs.places]
        if not all(law.proved or law.sources for law in laws):
            return None
        return all(law.proved for law in laws)


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


@dataclass(frozen=True, slots=True)
class _Needs:
    """What a slope that is almost nowhere 0 rests on.

    Args:
        places: Vector arguments that must have densities.
        numbers: Functions of scalar arguments that must not be 0.
    """

    places: tuple[int, ...]
    numbers: tuple[Expr, ...]


@lru_cache(maxsize=2**12)
def _needs(fn: Fn, place: int) -> _Needs | None:
    """What makes the slope of a function by an argument almost nowhere 0; None: nothing shown."""
    if is_hidden(fn):
        return None
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
    return _Needs(tuple(places), tuple(numbers))


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
        if isinstance(part, Pow) and not (part.exponent > 0 and part.exponent.denominator == 1):
            if not _is_positive(part.base):
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
    values = np.broadcast_to(np.asarray(evaluate(at, [points]), dtype=float), points.shape)
    there = points[np.abs(values) > CLEAR]
    return all(
        bool(np.any((there > low) & (there < high)))
        for low, high in zip(ends, ends[1:], strict=False)
    )
