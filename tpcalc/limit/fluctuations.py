"""The law of averages that are 0 by symmetry: the central limit of start vectors and of hats.

``n^(1/2) (1/d) sum u g`` is Gaussian where u is a centred start vector and g does not depend on
it: given g, it is a sum over the entries of u. So is ``n^(1/2) (1/d) g^T What x``, a sum over the
entries of W, where g holds no product ``W y`` and x no product ``W^T z``. Numbers may depend on u
or on W: they tend to constants, and the average is 0 whatever these are. Coordinates of functions
of start vectors alone are independent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import product

from tpcalc.functions import Const, Expr, Fn, Par, Var
from tpcalc.functions.expr import Add, Mul, const, mul, substitute
from tpcalc.limit.building import is_hidden
from tpcalc.limit.context import Context, Piece
from tpcalc.limit.graph import Apply, Combine, Fluctuation, LRef, Product, Rows, ScalarApply, Start
from tpcalc.limit.pieces import collected

__all__ = ["fluctuation"]

ZERO = Fraction(0)
MOST = 64  # terms of a product of sums
Opaque = tuple[Fn, tuple[LRef, ...], tuple[LRef, ...]]  # a function of vectors and scalars


@dataclass(frozen=True, slots=True)
class _Term:
    """A product of a number, of scalars, of vectors, and of functions that are no products."""

    number: Fraction | float
    scalars: tuple[LRef, ...]
    vectors: tuple[LRef, ...]
    rest: tuple[Opaque, ...]

    def times(self, other: _Term, without: int) -> _Term:
        """The product, with one vector of this term left out."""
        return _Term(
            self.number * other.number,
            self.scalars + other.scalars,
            (*self.vectors[:without], *self.vectors[without + 1 :], *other.vectors),
            self.rest + other.rest,
        )


def fluctuation(context: Context, piece: Piece, dim: str) -> LRef | None:
    """The scalar that n^(1/2) times an average tends to; None where no law of it is known.

    Args:
        context: The graph under construction.
        piece: The function that is averaged. Its sums and products, and those of its vectors, are
            multiplied out until each term is a start vector or a hat times what it is independent
            of.
        dim: The dimension class of the average.
    """
    left = _terms(piece.fn, piece.vectors, piece.scalars)
    found: list[tuple[_Term, list[_Base]]] = []
    while left:
        term = _scaled(context, left.pop())
        bases = _bases(context, term)
        if bases:
            found.append((term, bases))
            continue
        inner = _opened(context, term)
        if not inner or len(found) + len(left) + len(inner) > MOST:
            return _of_starts(context, piece, dim)
        left += inner
    if not found:
        return None
    return context.scalar_sum([_gaussian(context, *one, dim) for one in found])


def _of_starts(context: Context, piece: Piece, dim: str) -> LRef | None:
    """The fluctuation of a function of start vectors alone: its coordinates are independent."""
    loose = map(context.is_loose, (*piece.vectors, *piece.scalars))
    if any(context.sides[v] for v in piece.vectors) or any(loose) or is_hidden(piece.fn):
        return None
    if not piece.vectors or not context.parity.zero_mean(piece.fn, piece.vectors):
        return None
    fn, keep_v, keep_s = piece.fn.compact()
    vectors = tuple(piece.vectors[i] for i in keep_v)
    part = Piece(ZERO, fn, vectors, tuple(piece.scalars[i] for i in keep_s))
    return context.add(Fluctuation(Rows(dim), (_vector(context, part, dim),)), None)


def _vector(context: Context, piece: Piece, dim: str) -> LRef:
    """The node of a function of vectors."""
    if piece.fn.expr == Var(0):
        return piece.vectors[0]
    return context.add(Apply(piece.fn, piece.vectors, piece.scalars), dim)


def _terms(fn: Fn, vectors: Sequence[LRef], scalars: Sequence[LRef]) -> list[_Term]:
    """A function as a sum of products."""
    return [
        _Term(
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


def _scaled(context: Context, term: _Term) -> _Term:
    """A term with the numbers of vectors that are multiples of others in front."""
    for place, vector in enumerate(term.vectors):
        node = context.nodes[vector]
        if isinstance(node, Combine) and len(node.vectors) == 1:
            scalars = tuple(scalar for scalar in node.scalars if scalar is not None)
            inner = _Term(node.numbers[0], scalars, node.vectors, ())
            return _scaled(context, term.times(inner, place))
    return term


def _opened(context: Context, term: _Term) -> list[_Term] | None:
    """A term with one of its vectors multiplied out; None: none is a sum or a product."""
    for place, vector in enumerate(term.vectors):
        node = context.nodes[vector]
        if isinstance(node, Combine):
            parts = zip(node.numbers, node.scalars, node.vectors, strict=True)
            return [
                term.times(_Term(number, () if s is None else (s,), (x,), ()), place)
                for number, s, x in parts
            ]
        if isinstance(node, Apply) and isinstance(node.fn.expr, Add | Mul):
            inner = _terms(node.fn, node.vectors, node.scalars)
            return [term.times(other, place) for other in inner]
    return None


_Base = tuple[LRef, int]  # a vector that the others of a term are independent of, or that below
# its product, and the place of the one or the other


def _bases(context: Context, term: _Term) -> list[_Base]:
    """What the other vectors are independent of: start vectors first, then products in order.

    Of products those come first whose matrix is a root already: fewer of two roots may be
    correlated. With g of start vectors alone ``g.(W u)`` is ``u.(W^T g)``, too.
    """
    if any(is_hidden(fn) for fn, _, _ in term.rest):  # a gate may be decided by the vector itself
        return []
    below = [vector for _, vectors, _ in term.rest for vector in vectors]
    found: list[tuple[int, int, LRef, int]] = []
    for place, vector in enumerate(term.vectors):
        node = context.nodes[vector]
        others = [*term.vectors[:place], *term.vectors[place + 1 :], *below]
        through = isinstance(node, Product) and not any(context.sides[other] for other in others)
        inner = node.vector if isinstance(node, Product) and through else vector
        start = context.nodes[inner]
        if isinstance(start, Start):
            own = context.root(start)
            centred = context.program.group[start.group].mean[start.index] == 0
            if centred and not any(own & context.roots[other] for other in others):
                found.append((3 if through else 0, place, inner, place))
        if isinstance(node, Product) and node.matrix not in context.orthogonal:
            own = context.side(node.matrix, node.transpose)
            back = context.side(node.matrix, not node.transpose)
            held = any(own & context.sides[other] for other in others)
            if not held and not back & context.sides[node.vector]:
                rank = 1 if context.family(node.matrix) in context.families else 2
                found.append((rank, context.root(node.matrix), vector, place))
    return [base[2:] for base in sorted(found)]


def _chosen(
    context: Context, term: _Term, bases: list[_Base], dim: str
) -> tuple[Fluctuation, Fraction]:
    """The fluctuation of a term, with a factor: one that is there already, else the first."""
    found = []
    for base, place in bases:
        vector, start = context.nodes[term.vectors[place]], context.nodes[base]
        others = replace(term, vectors=(*term.vectors[:place], *term.vectors[place + 1 :]))
        partner = _partner(context, others, term.vectors[place], dim)
        if not isinstance(vector, Product):
            assert isinstance(start, Start)
            found.append((Fluctuation(start, (partner,)), Fraction(1)))
            continue
        other = context.dims[vector.vector]
        assert other is not None
        ratio = {dim.name: dim.ratio for dim in context.program.dims}
        share = ratio[other] / ratio[dim]  # of averages over the other side
        if isinstance(start, Start):
            back = Product(vector.matrix, not vector.transpose, partner)
            if back in context.known or not found:
                found.append((Fluctuation(start, (context.add(back, other),)), share))
        elif vector.transpose:
            found.append((Fluctuation(vector.matrix, (vector.vector, partner)), share))
        else:
            found.append((Fluctuation(vector.matrix, (partner, vector.vector)), Fraction(1)))
    return next((one for one in found if one[0] in context.known), found[0])


def _gaussian(context: Context, term: _Term, bases: list[_Base], dim: str) -> LRef:
    """The scalar of a term."""
    found, share = _chosen(context, term, bases, dim)
    number = term.number * share
    fixed = [part for part in term.rest if not part[1]]
    scalars = [*term.scalars, context.add(found, None)]
    factors: list[Expr] = [const(number), *(Par(i) for i in range(len(scalars)))]
    for fn, _, own in fixed:
        moved: dict[Expr, Expr] = {Par(i): Par(len(scalars) + i) for i in range(len(own))}
        factors.append(substitute(fn.expr, moved))
        scalars += own
    one = collected(Piece(ZERO, Fn(mul(factors), 0, len(scalars)), (), tuple(scalars)))
    assert one is not None
    alone = one.fn.expr == Par(0)
    return one.scalars[0] if alone else context.add(ScalarApply(one.fn, one.scalars), None)


def _partner(context: Context, term: _Term, base: LRef, dim: str) -> LRef:
    """The vector of a product of vectors and functions; of none of them the constant 1."""
    rest = [part for part in term.rest if part[1]]
    vectors = list(term.vectors)
    scalars: list[LRef] = []
    factors: list[Expr] = [Var(i) for i in range(len(vectors))]
    for fn, own_v, own_s in rest:
        moved: dict[Expr, Expr] = {Var(i): Var(len(vectors) + i) for i in range(len(own_v))}
        moved |= {Par(i): Par(len(scalars) + i) for i in range(len(own_s))}
        factors.append(substitute(fn.expr, moved))
        vectors += own_v
        scalars += own_s
    if not vectors:
        return context.add(Apply(Fn(const(1), 1), (base,)), dim)
    fn = Fn(mul(factors), len(vectors), len(scalars))
    one = collected(Piece(ZERO, fn, tuple(vectors), tuple(scalars)))
    assert one is not None
    return _vector(context, one, dim)
