"""Scalars that stay random: affine functions of independent families of Gaussian scalars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import starmap
from typing import Any, Generic, TypeVar

from tpcalc.evaluate.closure.gaussians import affine
from tpcalc.functions import Call, Expr, Par, Var
from tpcalc.functions.expr import Add, Mul, Pow, substitute, walk
from tpcalc.integrals.demand import Unknown
from tpcalc.integrals.field import Values
from tpcalc.limit.graph import (
    Expect,
    Fluctuation,
    LimitGraph,
    LNode,
    LRef,
    Product,
    Root,
    Rows,
    Start,
    Twice,
    fluctuation_of,
    start_of,
)
from tpcalc.program.base import Table, references
from tpcalc.program.nodes import Input, LinComb, Nonlin

T = TypeVar("T")


def random_nodes(graph: LimitGraph) -> frozenset[LRef]:
    """The nodes that depend on a scalar that stays random.

    By structure: a node is a monomial in random scalars times what does not depend on them, or it
    is taken to be random. What is normalised loses its monomial, and is not random.

    Example:
        >>> from tpcalc.program.nodes import Family
        >>> random_nodes(LimitGraph((Input(Family.scalar("b")),), (), (None,), (), (), ()))
        frozenset({0})
    """
    found: list[_Monomial | None] = []
    for ref, node in enumerate(graph.nodes):
        found.append(_MONOMIALS(node, ref, found))
    return frozenset(ref for ref, monomial in enumerate(found) if monomial != ONE)


@dataclass(frozen=True, slots=True)
class _Monomial:
    """A product of powers of sizes |s| of random scalars, and of the signs of some of them."""

    sizes: frozenset[tuple[LRef, Fraction]] = frozenset()
    signs: frozenset[LRef] = frozenset()

    def times(self, other: _Monomial) -> _Monomial:
        total = dict(self.sizes)
        for base, power in other.sizes:
            total[base] = total.get(base, Fraction(0)) + power
        return _Monomial(
            frozenset(pair for pair in total.items() if pair[1] != 0), self.signs ^ other.signs
        )

    def power(self, exponent: Fraction, signs: bool) -> _Monomial:
        """A power of the sizes, with the signs or without."""
        sizes = frozenset((base, own * exponent) for base, own in self.sizes if exponent != 0)
        return _Monomial(sizes, self.signs if signs else frozenset())


ONE = _Monomial()
Real = Fraction | float
_Found = Sequence[_Monomial | None]


def _of_function(node: Nonlin | Expect, ref: LRef, found: _Found) -> _Monomial | None:
    return _factor(node.fn.expr, _all(node.vectors, found), _all(node.scalars, found))


def _of_sum(node: LinComb, ref: LRef, found: _Found) -> _Monomial | None:
    pairs = zip(node.scalars, node.vectors, strict=True)
    return _same([_product([ONE if s is None else found[s], found[v]]) for s, v in pairs])


def _itself(ref: LRef) -> _Monomial:
    return _Monomial(frozenset({(ref, Fraction(1))}), frozenset({ref}))


# What a node holds of random scalars as a factor; None: it depends on them in another way. A
# product with a matrix is linear, its correction too: c Z^y with c = E[dZ^x / d hat] takes the
# monomial of y out and that of x in.
_MONOMIALS: Table[_Monomial | None] = Table(
    {
        Input: lambda node, ref, found: _itself(ref),
        Fluctuation: lambda node, ref, found: _product([_itself(ref), *_all(node.vectors, found)]),
        Product: lambda node, ref, found: found[node.vector],
        Nonlin: _of_function,
        Expect: _of_function,
        LinComb: _of_sum,
    },
    lambda node, ref, found: ONE if all(found[r] == ONE for r in references(node)) else None,
)


def _all(refs: Sequence[LRef], found: _Found) -> _Found:
    return [found[ref] for ref in refs]


def _same(terms: _Found) -> _Monomial | None:
    """The monomial that all terms of a sum share."""
    return terms[0] if len(set(terms)) == 1 else None


def _product(factors: _Found) -> _Monomial | None:
    total = ONE
    for factor in factors:
        if factor is None:
            return None
        total = total.times(factor)
    return total


def _factor(expr: Expr, vectors: _Found, scalars: _Found) -> _Monomial | None:
    if isinstance(expr, Var):
        return vectors[expr.index]
    if isinstance(expr, Par):
        return scalars[expr.index]
    if isinstance(expr, Add):
        return _same([_factor(term, vectors, scalars) for term in expr.terms])
    if isinstance(expr, Mul):
        return _product([_factor(factor, vectors, scalars) for factor in expr.factors])
    if not isinstance(expr, Pow | Call):
        return ONE
    inner = _factor(expr.base if isinstance(expr, Pow) else expr.arg, vectors, scalars)
    if inner is None or inner == ONE:
        return inner
    if isinstance(expr, Pow):
        degree: object = expr.exponent
        whole = expr.exponent.denominator == 1
        parity = ("odd" if expr.exponent % 2 else "even") if whole else "none"
    else:
        degree, parity = expr.atom.facts.homogeneity, expr.atom.facts.parity
    if (inner.sizes and not isinstance(degree, Fraction)) or (inner.signs and parity == "none"):
        return None
    known = degree if isinstance(degree, Fraction) else Fraction(1)
    return inner.power(known, signs=parity == "odd")


@dataclass(frozen=True)
class Spread(Generic[T]):
    """An affine function of random scalars."""

    parts: Mapping[LRef, T]  # the coefficient of each of them
    mean: T  # the constant


class Chance(Generic[T]):
    """Means and covariances of scalars that stay random.

    Source: Hajjar, Chizat, Giraud, Lemma C.3 (Gaussian outputs at the start).
    """

    def __init__(self, closure: Values[T]) -> None:
        self.closure = closure
        self.random = random_nodes(closure.graph)
        self._spreads: dict[LRef, Spread[T] | Unknown] = {}

    def spread(self, ref: LRef) -> Spread[T]:
        """A scalar as an affine function of random ones.

        Args:
            ref: Its node.

        Raises:
            Unknown: It is no affine function of them, or something that it holds is unknown.
        """
        if ref not in self._spreads:
            try:
                self._spreads[ref] = self._spread(ref)
            except Unknown as reason:
                self._spreads[ref] = reason
        found = self._spreads[ref]
        if isinstance(found, Unknown):
            raise found
        return found

    def _spread(self, ref: LRef) -> Spread[T]:
        if ref not in self.random:
            return Spread({}, self.closure.scalar(ref))
        return _SPREADS(self.closure.graph.nodes[ref], ref, self)

    def _applied(self, node: Nonlin) -> Spread[T]:
        field = self.closure.field
        hidden: dict[Expr, Expr] = {
            Par(i): Var(s) if s in self.random else Par(s) for i, s in enumerate(node.scalars)
        }
        form = affine(substitute(node.fn.expr, hidden))
        if form is None:
            raise Unknown("a function of a random scalar that is not affine")
        parts: dict[LRef, list[list[T]]] = {}
        means = [[self._number(form[1])]]
        for place, expr in form[0]:
            factor, inner = self._number(expr), self.spread(place)
            means.append([factor, inner.mean])
            for base, coefficient in inner.parts.items():
                parts.setdefault(base, []).append([factor, coefficient])
        return Spread({base: field.total(own) for base, own in parts.items()}, field.total(means))

    def covariance(self, left: LRef, right: LRef) -> T:
        """The covariance of two scalars.

        Args:
            left: The node of one.
            right: The node of the other.

        Raises:
            Unknown: One of them is no affine function of random scalars.
        """
        inner = self.closure.inner
        terms = self.terms(left, right)
        return self.closure.field.total([[*own, *starmap(inner, pairs)] for own, pairs in terms])

    def terms(self, left: LRef, right: LRef) -> list[tuple[list[T], list[tuple[LRef, LRef]]]]:
        """The covariance of two scalars as a sum: factors, and x, y of others E Z^x Z^y."""
        a, b = self.spread(left), self.spread(right)
        found = []
        for p, own in a.parts.items():
            for q, other in b.parts.items():
                base = self._base(p, q)
                if base is not None:
                    found.append(([own, other, *base[0]], base[1]))
        return found

    def _base(self, left: LRef, right: LRef) -> tuple[list[T], list[tuple[LRef, LRef]]] | None:
        """The covariance of two scalars of the graph; None where they are independent."""
        graph, field = self.closure.graph, self.closure.field
        a, b = fluctuation_of(graph.nodes[left]), fluctuation_of(graph.nodes[right])
        if (left, right) in graph.apart or (right, left) in graph.apart:
            raise Unknown("fluctuating averages may be correlated, and are drawn independently")
        if a is None or b is None:  # a draw
            return ([], []) if left == right else None
        values = _SHARED(a.root, b.root, graph)
        if values is None:
            return None
        factors = [field.number(value) for value in values if value != 1]
        return factors, list(zip(a.vectors, b.vectors, strict=True))

    def _number(self, expr: Expr) -> T:
        """The value of an expression of scalars that are not random."""
        values = {
            part.index: self.closure.scalar(part.index)
            for part in walk(expr)
            if isinstance(part, Par)
        }
        return self.closure.field.function(expr, values)


def _gaussian(ref: LRef, std: Real, mean: Real, chance: Chance[T]) -> Spread[T]:
    number = chance.closure.field.number
    return Spread({ref: number(std)}, number(mean))


def _no_spread(node: LNode, ref: LRef, chance: Chance[T]) -> Spread[T]:
    raise Unknown("an average over coordinates that depends on a random scalar")


_SPREADS: Table[Spread[Any]] = Table(
    {
        Input: lambda node, ref, chance: _gaussian(
            ref, node.family.std, node.family.means[0], chance
        ),
        Fluctuation: lambda node, ref, chance: _gaussian(ref, 1, 0, chance),
        Nonlin: lambda node, ref, chance: chance._applied(node),
    },
    _no_spread,
)

_Factors = list[Real] | None


def _of_starts(root: Start, other: Root, graph: LimitGraph) -> _Factors:
    start = start_of(other)
    if start is None or root.group != start.group:
        return None
    group = next(group for group in graph.groups if group.name == root.group)
    i, j = root.index, start.index
    shared = Fraction(i == j) if group.cov is None else group.cov[i][j]
    return None if shared == 0 else [shared, 1 / _ratio(graph, group.dim)]


def _of_rows(root: Rows, other: Root, graph: LimitGraph) -> _Factors:
    return [1 / _ratio(graph, root.dim)] if root == other else None


def _of_twice(root: Twice, other: Root, graph: LimitGraph) -> _Factors:
    read, out = _sides(graph, root.matrix)[:: 1 if root.transpose else -1]
    return [read**2 / out / 2] if root == other else None


def _of_matrix(root: str, other: Root, graph: LimitGraph) -> _Factors:
    rows, cols = _sides(graph, root)
    return [cols / rows] if root == other else None


def _ratio(graph: LimitGraph, dim: str) -> Fraction:
    return next(own.ratio for own in graph.dims if own.name == dim)


def _sides(graph: LimitGraph, matrix: str) -> tuple[Fraction, Fraction]:
    """The ratios of the rows and of the columns of a matrix."""
    rows, cols = next((row, col) for name, row, col in graph.matrices if name == matrix)
    return _ratio(graph, rows), _ratio(graph, cols)


# Factors of the covariance of two fluctuations, by the root of the first; None: it is 0.
_SHARED: Table[_Factors] = Table(
    {Start: _of_starts, Rows: _of_rows, Twice: _of_twice, str: _of_matrix}
)
