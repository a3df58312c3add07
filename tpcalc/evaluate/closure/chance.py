"""Scalars that stay random: affine functions of independent families of Gaussian scalars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Generic, TypeVar

from tpcalc.evaluate.closure.demand import Unknown
from tpcalc.evaluate.closure.field import Values
from tpcalc.evaluate.closure.products import affine
from tpcalc.functions import Call, Expr, Par, Var
from tpcalc.functions.expr import Add, Mul, Pow, substitute, walk
from tpcalc.limit.graph import (
    Apply,
    Combine,
    Draw,
    Expect,
    Fluctuation,
    LimitGraph,
    LNode,
    LRef,
    Product,
    Rows,
    ScalarApply,
    Start,
    Twice,
)
from tpcalc.program.base import references

__all__ = ["Chance", "Spread", "random_nodes"]

T = TypeVar("T")


def random_nodes(graph: LimitGraph) -> frozenset[LRef]:
    """The nodes that depend on a scalar that stays random.

    By structure: a node is a monomial in random scalars times what does not depend on them, or it
    is taken to be random. What is normalised loses its monomial, and is not random.

    Args:
        graph: A limit graph.

    Example:
        >>> random_nodes(LimitGraph((Draw("b", 0, 1),), (), (None,), (), (), ()))
        frozenset({0})
    """
    found: list[_Monomial | None] = []
    for ref, node in enumerate(graph.nodes):
        found.append(_monomial(ref, node, found))
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
_Found = Sequence[_Monomial | None]


def _monomial(ref: LRef, node: LNode, found: _Found) -> _Monomial | None:
    """What a node holds of random scalars as a factor; None: it depends on them in another way.

    A product with a matrix is linear, its correction too: c Z^y with c = E[dZ^x / d hat] takes the
    monomial of y out and that of x in.
    """
    if isinstance(node, Draw | Fluctuation):
        if isinstance(node, Draw) and node.std == 0:
            return ONE
        own = _Monomial(frozenset({(ref, Fraction(1))}), frozenset({ref}))
        vectors = node.vectors if isinstance(node, Fluctuation) else ()
        return _product([own, *_all(vectors, found)])
    if isinstance(node, Product):
        return found[node.vector]
    if isinstance(node, Apply | Expect):
        return _factor(node.fn.expr, [found[v] for v in node.vectors], _all(node.scalars, found))
    if isinstance(node, ScalarApply):
        return _factor(node.fn.expr, [], _all(node.scalars, found))
    if isinstance(node, Combine):
        pairs = zip(node.scalars, node.vectors, strict=True)
        return _same([_product([ONE if s is None else found[s], found[v]]) for s, v in pairs])
    return ONE if all(found[other] == ONE for other in references(node)) else None


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
    """An affine function of random scalars.

    Args:
        parts: The coefficient of each of them.
        mean: The constant.
    """

    parts: Mapping[LRef, T]
    mean: T


class Chance(Generic[T]):
    """Means and covariances of scalars that stay random.

    Args:
        closure: The values of everything else in the graph.

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
        field, node = self.closure.field, self.closure.graph.nodes[ref]
        if ref not in self.random:
            return Spread({}, self.closure.scalar(ref))
        if isinstance(node, Draw):
            return Spread({ref: field.number(node.std)}, field.number(node.value))
        if isinstance(node, Fluctuation):
            return Spread({ref: field.number(1)}, field.number(0))
        if not isinstance(node, ScalarApply):
            raise Unknown("an average over coordinates that depends on a random scalar")
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
        terms = []
        for factors, pairs in self.terms(left, right):
            terms.append([*factors, *(self.closure.inner(*pair) for pair in pairs)])
        return self.closure.field.total(terms)

    def terms(self, left: LRef, right: LRef) -> list[tuple[list[T], list[tuple[LRef, LRef]]]]:
        """The covariance of two scalars as a sum: factors, and x, y of others E Z^x Z^y.

        Args:
            left: The node of one.
            right: The node of the other.

        Raises:
            Unknown: One of them is no affine function of random scalars.
        """
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
        a, b = graph.nodes[left], graph.nodes[right]
        if (left, right) in graph.apart or (right, left) in graph.apart:
            raise Unknown("fluctuating averages may be correlated, and are drawn independently")
        if isinstance(a, Draw) or isinstance(b, Draw):
            return ([], []) if left == right else None
        assert isinstance(a, Fluctuation) and isinstance(b, Fluctuation)
        ratio = {dim.name: dim.ratio for dim in graph.dims}
        if not isinstance(a.root, Start) or not isinstance(b.root, Start):
            if a.root != b.root:
                return None
            if isinstance(a.root, Rows):
                rate = [field.number(1 / ratio[a.root.dim])] if ratio[a.root.dim] != 1 else []
                return rate, [(a.vectors[0], b.vectors[0])]
            twice = a.root if isinstance(a.root, Twice) else None
            matrix = twice.matrix if twice else a.root
            rows, cols = next((row, col) for name, row, col in graph.matrices if name == matrix)
            values: list[Fraction | float] = [ratio[cols] / ratio[rows]]
            if twice:
                out, read = (cols, rows) if twice.transpose else (rows, cols)
                values = [ratio[read] ** 2 / ratio[out] / 2]
        elif a.root.group != b.root.group:
            return None
        else:
            group = next(group for group in graph.groups if group.name == a.root.group)
            i, j = a.root.index, b.root.index
            shared = Fraction(i == j) if group.cov is None else group.cov[i][j]
            if shared == 0:
                return None
            values = [shared, 1 / ratio[group.dim]]
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
