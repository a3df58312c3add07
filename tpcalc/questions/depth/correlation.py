"""How what a block adds is correlated along the depth, read off the matrices that it is made of.

A part of a term is a product of factors whose correlation falls with the distance of two blocks: a
Gaussian product with a matrix as the law of that matrix, a power of it as a power of the law. Sums
over the depth follow from the slowest part.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product

from tpcalc.exponents import Ex
from tpcalc.exponents.chamber import Chamber
from tpcalc.functions import Atom, Call, Expr, Var
from tpcalc.functions.expr import Add, Mul, Pow, walk
from tpcalc.limit.context import Context
from tpcalc.limit.graph import LNode, LRef, Product, Start, function_of, product_of
from tpcalc.passes.block import CARRY, SEED
from tpcalc.program.base import Table, reached, references
from tpcalc.program.nodes import LinComb, Nonlin

HALF, ONE = Fraction(1, 2), Fraction(1)
FACTORS = 3  # of a part: what has more is correlated less, and adds nothing to a sum
Part = tuple[str, ...]
Parts = frozenset[Part]
BULK: Parts = frozenset({()})
STREAM = (CARRY, SEED)


@dataclass
class Correlation:
    """The parts of the terms of a generic block."""

    context: Context  # the derivation of the block
    # for what the block draws the mu of a correlation like distance^(-mu), by name; None: it is
    # summable
    laws: Mapping[str, Ex | None]
    chamber: Chamber  # compares sums
    logs: bool = False  # whether a sum had a logarithm besides its power
    _parts: dict[LRef, Parts] = field(default_factory=dict)

    def parts(self, ref: LRef) -> Parts:
        """The parts of a vector; ``()`` is what is alike in all blocks."""
        if ref not in self._parts:
            self._parts[ref] = _PARTS(self.context.nodes[ref], self)
        return self._parts[ref]

    @property
    def independent(self) -> bool:
        """Whether all blocks are independent of each other."""
        return all(mu is None for mu in self.laws.values())

    def walk(self, ref: LRef) -> Ex:
        """The power of L of the sum of L terms that the block's own matrices make random."""
        if self.independent:
            return Ex.number(HALF)
        return self._walk(part for part in self.parts(ref) if part)

    def aside(self, ref: LRef) -> Ex | None:
        """The same of its fluctuations of size n^(-1/2), where a matrix meets its transpose.

        The average that this correction is made of is 0 in the limit of the width. At a finite one
        it is not, and is correlated along the depth as what it is made of.
        """
        if self.independent:
            return None
        found = set[Part]()
        for own in below(self.context, ref):
            node = product_of(self.context.nodes[own])
            if node is not None and self._meets(node):
                found |= {p for p in self.parts(node.vector) if p and node.matrix not in p}
        return self._walk(found) if found else None

    def roughness(self, ref: LRef) -> Fraction:
        """How fast functions of the stream change with it: by a mean square |dx|^(2 theta), theta.

        1 of what is Lipschitz; a function with a jump, as the slope of relu, differs on a share
        |dx| of the coordinates: 1/2.
        """
        for own in below(self.context, ref):
            found = function_of(self.context.nodes[own])
            calls = () if found is None else walk(found.fn.expr)
            if any(isinstance(one, Call) and _jumps(one.atom) for one in calls):
                return HALF
        return ONE

    def _meets(self, node: Product) -> bool:
        """Whether a matrix is applied to what holds a function of a product with its transpose."""
        for ref in below(self.context, node.vector):
            inner = product_of(self.context.nodes[ref])
            if inner is not None and (inner.matrix, inner.transpose) == (
                node.matrix,
                not node.transpose,
            ):
                return True
        return False

    def _walk(self, parts: Iterable[Part]) -> Ex:
        """Half the largest power of the variance of a sum over all pairs of blocks.

        A part with one factor is a sum of the numbers of the law itself, which may cancel: of
        fractional noise L^(2H) of any H. Of a product the diagonal is left at least.
        """
        found = set(parts)
        most: Ex | None = None
        for part in sorted(found):
            power = self._variance(part, found)
            if most is None or self.chamber.sign(power - most) > 0:
                most = power
        return Ex.number(HALF) if most is None else HALF * most

    def _variance(self, part: Part, others: set[Part]) -> Ex:
        """The power of L of the variance of the sum of one part.

        A product falls faster than each of its factors: beside such a part its diagonal is left.
        """
        mus = [mu for name in part if (mu := self.laws.get(name)) is not None]
        smaller = any(len(one) < len(part) and not Counter(one) - Counter(part) for one in others)
        if len(mus) < len(part) or smaller:
            return Ex.number(ONE)
        power = 2 - sum(mus, Ex())
        if len(part) == 1:
            return power
        sign = self.chamber.sign(power - 1)
        self.logs = self.logs or sign == 0
        return power if sign > 0 else Ex.number(ONE)

    def of(self, expr: Expr, vectors: tuple[LRef, ...]) -> Parts:
        """The parts of a function."""
        if isinstance(expr, Var):
            return self.parts(vectors[expr.index])
        if isinstance(expr, Add):
            return frozenset().union(*(self.of(term, vectors) for term in expr.terms))
        if isinstance(expr, Mul):
            found = BULK
            for factor in expr.factors:
                found = _times(found, self.of(factor, vectors))
            return found
        if not isinstance(expr, Pow | Call):
            return BULK
        own = self.of(expr.base if isinstance(expr, Pow) else expr.arg, vectors)
        return _powers(own, _parity(expr))


def below(context: Context, ref: LRef) -> set[LRef]:
    """A vector with all that it is made of."""

    def vectors(one: LRef) -> Iterable[LRef]:
        return (own for own in references(context.nodes[one]) if context.dims[own] is not None)

    return reached([ref], vectors)


def _jumps(atom: Atom) -> bool:
    return bool(atom.facts.kinks) and atom.jumps


def _times(left: Parts, right: Parts) -> Parts:
    pairs = (tuple(sorted(a + b)) for a, b in product(left, right))
    return frozenset(pair for pair in pairs if len(pair) <= FACTORS)


def _powers(own: Parts, parity: str) -> Parts:
    """Of a function that is not linear: all powers that it may hold."""
    square = _times(own, own)
    odd, even = own | _times(square, own), BULK | square
    return {"odd": odd, "even": even}.get(parity, odd | even)


def _parity(expr: Pow | Call) -> str:
    if isinstance(expr, Call):
        return str(expr.atom.facts.parity)
    if expr.exponent.denominator != 1:
        return ""
    return "odd" if expr.exponent % 2 else "even"


def _all(node: LNode, own: Correlation) -> Parts:
    """What is made in a way that has no rule: any function of what it is made of."""
    refs = [ref for ref in references(node) if own.context.dims[ref] is not None]
    return _powers(frozenset().union(BULK, *map(own.parts, refs)), "")


_PARTS: Table[Parts] = Table(
    {
        Start: lambda node, own: BULK if node.group in STREAM else frozenset({(node.group,)}),
        Product: lambda node, own: _times(frozenset({(node.matrix,)}), own.parts(node.vector)),
        Nonlin: lambda node, own: own.of(node.fn.expr, node.vectors),
        LinComb: lambda node, own: frozenset().union(*map(own.parts, node.vectors)),
    },
    _all,
)
