"""Averaged functions as sums of products: numbers, vectors, and what is no product itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import product

from tpcalc.functions import Const, Expr, Fn, Par, Var
from tpcalc.functions.expr import Add, Mul, const, mul, substitute
from tpcalc.limit.context import Context, Piece
from tpcalc.limit.graph import LRef, Product, Start, Starts, product_of
from tpcalc.limit.pieces import collected
from tpcalc.program.base import Table
from tpcalc.program.nodes import LinComb, Nonlin

ZERO = Fraction(0)
MOST = 64  # terms of a product of sums
Opaque = tuple[Fn, tuple[LRef, ...], tuple[LRef, ...]]  # a function of vectors and scalars


@dataclass(frozen=True, slots=True)
class Term:
    """A product of a number, of scalars, of vectors, and of functions that are no products."""

    number: Fraction | float
    scalars: tuple[LRef, ...]
    vectors: tuple[LRef, ...]
    rest: tuple[Opaque, ...]

    def times(self, other: Term, without: int) -> Term:
        """The product, with one vector of this term left out."""
        return Term(
            self.number * other.number,
            self.scalars + other.scalars,
            (*self.vectors[:without], *self.vectors[without + 1 :], *other.vectors),
            self.rest + other.rest,
        )


def terms(fn: Fn, vectors: Sequence[LRef], scalars: Sequence[LRef]) -> list[Term]:
    """A function as a sum of products."""
    return [
        Term(
            number,
            tuple(scalars[i] for i in pars),
            tuple(vectors[i] for i in places),
            tuple(
                (short, tuple(vectors[i] for i in keep_v), tuple(scalars[i] for i in keep_s))
                for short, keep_v, keep_s in rest
            ),
        )
        for number, pars, places, rest in _products(fn)
    ]


Parsed = tuple[Fraction | float, tuple[int, ...], tuple[int, ...], tuple[Opaque, ...]]


@lru_cache(maxsize=2**12)
def _products(fn: Fn) -> tuple[Parsed, ...]:
    """The terms of a function: number, which scalars, which vectors, and the other factors."""
    found = []
    for term in fn.expr.terms if isinstance(fn.expr, Add) else (fn.expr,):
        factors = term.factors if isinstance(term, Mul) else (term,)
        for chosen in product(*(f.terms if isinstance(f, Add) else (f,) for f in factors)):
            flat = [g for f in chosen for g in (f.factors if isinstance(f, Mul) else (f,))]
            number: Fraction | float = Fraction(1)
            pars, places, rest = [], [], []
            for factor in flat:
                if isinstance(factor, Const):
                    number *= factor.value
                elif isinstance(factor, Par):
                    pars.append(factor.index)
                elif isinstance(factor, Var):
                    places.append(factor.index)
                else:
                    rest.append(Fn(factor, fn.vectors, fn.scalars).compact())
            found.append((number, tuple(pars), tuple(places), tuple(rest)))
            if len(found) > MOST:
                return ((Fraction(1), (), (), (fn.compact(),)),)
    return tuple(found)


def scaled(context: Context, term: Term) -> Term:
    """A term with the numbers of vectors that are multiples of others in front."""
    for place, vector in enumerate(term.vectors):
        node = product_of(context.nodes[vector])
        found = multiple(context, vector if node is None else node.vector)
        if found is None:
            continue
        if node is not None:
            moved = context.add(replace(node, vector=found.vectors[0]), context.dims[vector])
            found = replace(found, vectors=(moved,))
        return scaled(context, term.times(found, place))
    return term


def multiple(context: Context, vector: LRef) -> Term | None:
    """A vector that is a multiple of another; None: it is none."""
    return _MULTIPLES(context.nodes[vector])


def _single(node: LinComb) -> Term | None:
    if len(node.vectors) != 1:
        return None
    scalars = tuple(scalar for scalar in node.scalars if scalar is not None)
    return Term(node.numbers[0], scalars, node.vectors, ())


def _linear(node: Nonlin) -> Term | None:
    if len(node.vectors) != 1:
        return None
    found = terms(node.fn, node.vectors, node.scalars)
    alone = len(found) == 1 and found[0].vectors == node.vectors and not found[0].rest
    return found[0] if alone else None


_MULTIPLES: Table[Term | None] = Table({LinComb: _single, Nonlin: _linear}, lambda node: None)


def opened(context: Context, term: Term) -> list[Term] | None:
    """A term with one of its vectors multiplied out; None: none is a sum or a product."""
    for place, vector in enumerate(term.vectors):
        parts = _PARTS(context.nodes[vector])
        if parts is not None:
            return [term.times(part, place) for part in parts]
    return None


def _parts_of_sum(node: LinComb) -> list[Term]:
    parts = zip(node.numbers, node.scalars, node.vectors, strict=True)
    return [Term(number, () if s is None else (s,), (x,), ()) for number, s, x in parts]


def _parts_of_function(node: Nonlin) -> list[Term] | None:
    if not isinstance(node.fn.expr, Add | Mul):
        return None
    return terms(node.fn, node.vectors, node.scalars)


_PARTS: Table[list[Term] | None] = Table(
    {LinComb: _parts_of_sum, Nonlin: _parts_of_function}, lambda node: None
)


def has_bare_term(context: Context, fn: Fn, vectors: Sequence[LRef]) -> bool:
    """Whether a function, multiplied out, has a term without start vectors and products."""
    parts = (places for _, _, places, _ in _products(fn))
    return any(all([_is_bare(context, vectors[i]) for i in places]) for places in parts)


def _is_bare(context: Context, vector: LRef) -> bool:
    """The same of a vector."""
    bare = context.bare
    for ref in range(len(bare), vector + 1):  # arguments first
        bare.append(_BARE(context.nodes[ref], context))
    return bare[vector]


def _is_bare_function(node: Nonlin, context: Context) -> bool:
    opens = isinstance(node.fn.expr, Add | Mul)
    return not opens or has_bare_term(context, node.fn, node.vectors)


_BARE: Table[bool] = Table(
    {
        Start: lambda node, context: False,
        Starts: lambda node, context: not context.members(node),
        Product: lambda node, context: False,
        LinComb: lambda node, context: any(context.bare[v] for v in node.vectors),
        Nonlin: _is_bare_function,
    },
    lambda node, context: True,
)


def vector_of(context: Context, piece: Piece, dim: str) -> LRef:
    """The node of a function of vectors."""
    if piece.fn.expr == Var(0):
        return piece.vectors[0]
    return context.add(Nonlin(piece.fn, piece.vectors, piece.scalars), dim)


def in_front(context: Context, term: Term, share: Fraction, *found: LRef) -> LRef:
    """The product of some scalars with those of a term, and with its number."""
    fixed = [part for part in term.rest if not part[1]]
    one = _multiplied(term.number * share, (*term.scalars, *found), (), fixed)
    return context.scalar(one.fn, one.scalars)


def partner(context: Context, term: Term, base: LRef, dim: str) -> LRef:
    """The vector of a product of vectors and functions; of none of them the constant 1."""
    rest = [part for part in term.rest if part[1]]
    if not term.vectors and not rest:
        return context.add(Nonlin(Fn(const(1), 1), (base,)), dim)
    return vector_of(context, _multiplied(Fraction(1), (), term.vectors, rest), dim)


def _multiplied(
    number: Fraction | float,
    scalars: tuple[LRef, ...],
    vectors: tuple[LRef, ...],
    parts: Sequence[Opaque],
) -> Piece:
    """The product of a number, scalars, vectors and functions."""
    factors: list[Expr] = [const(number), *map(Par, range(len(scalars)))]
    factors += map(Var, range(len(vectors)))
    for fn, own_v, own_s in parts:
        moved: dict[Expr, Expr] = {Var(i): Var(len(vectors) + i) for i in range(len(own_v))}
        moved |= {Par(i): Par(len(scalars) + i) for i in range(len(own_s))}
        factors.append(substitute(fn.expr, moved))
        vectors, scalars = vectors + own_v, scalars + own_s
    found = collected(Piece(ZERO, Fn(mul(factors), len(vectors), len(scalars)), vectors, scalars))
    assert found is not None
    return found
