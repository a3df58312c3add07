"""The law of averages that are 0 by symmetry: the central limit of start vectors and of hats.

``n^(1/2) (1/d) sum u g`` is Gaussian where u is a centred start vector and g does not depend on
it: given g, it is a sum over the entries of u. So is ``n^(1/2) (1/d) g^T What x``, a sum over the
entries of W, where g holds no product ``W y`` and x no product ``W^T z``. Numbers may depend on u
or on W: they tend to constants, and the average is 0 whatever these are. Coordinates of functions
of start vectors alone are independent.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction

from tpcalc.errors import NotDifferentiable
from tpcalc.functions import Expr, Fn, Par, Var
from tpcalc.functions.expr import add, const, mul, substitute, walk
from tpcalc.functions.fn import INNER, own_derivative
from tpcalc.limit import chains
from tpcalc.limit.apart import apart
from tpcalc.limit.building import is_hidden
from tpcalc.limit.context import Context, Piece
from tpcalc.limit.factors import (
    MOST,
    Term,
    has_bare_term,
    in_front,
    multiple,
    opened,
    partner,
    scaled,
    terms,
    vector_of,
)
from tpcalc.limit.graph import (
    Expect,
    Fluctuation,
    LNode,
    LRef,
    Product,
    Rows,
    Start,
    Starts,
    Twice,
    product_of,
    the_product,
)
from tpcalc.limit.parity import union
from tpcalc.program.base import Table
from tpcalc.program.nodes import LinComb, Nonlin, Stack

Slope = tuple[LRef, ...]  # a product, and the scalars whose product is the mean slope by its hat


def is_told(context: Context, node: Product) -> bool:
    """Whether the vector of a product holds products with the other side of its matrix."""
    back = context.side(node.matrix, not node.transpose)
    return bool(back & context.sides[node.vector])


def slopes(context: Context, vector: LRef, matrix: str, transpose: bool) -> list[Slope] | None:
    """The mean slopes of a vector by the hats of products; None where they are not known.

    They are the coefficients of its correction, but for the ratio of the dimension classes. One
    that is 0 by symmetry is left out.
    """
    nodes = context.nodes
    expr = _written(context, vector, context.side(matrix, transpose), (matrix, transpose))
    if expr is None:
        return None
    found: list[Slope] = []
    for ref in sorted({part.index for part in walk(expr) if isinstance(part, Var)}):
        node = product_of(nodes[ref])
        if node is None or _SIDES(node) != (matrix, transpose):
            continue
        if is_told(context, node):
            return None
        try:
            slope = own_derivative(expr, Var(ref))
        except NotDifferentiable:
            return None
        fn, keep_v, keep_s = Fn(slope, len(nodes), len(nodes)).compact()
        for front, part in apart(context, Piece(Fraction(0), fn, keep_v, keep_s)):
            if not part.vectors:
                mean = context.add(Nonlin(part.fn, (), part.scalars), None)
            elif context.parity.zero_mean(part.fn, part.vectors):
                continue
            else:
                mean = context.add(Expect(part.fn, part.vectors, part.scalars), None)
            found.append((ref, mean) if front is None else (ref, front, mean))
    return found


def _written(context: Context, vector: LRef, side: int, by: tuple[str, bool]) -> Expr | None:
    """A vector as a function of hats; what knows nothing of a side is left as it is."""
    nodes, ratios = context.nodes, {dim.name: dim.ratio for dim in context.program.dims}
    expr = chains.opened(context, Var(vector), lambda ref: _is_open(context, ref, side))
    done: set[LRef] = set()
    while expr is not None:
        known = {p.index for p in walk(expr) if isinstance(p, Var)} - done
        told = [ref for ref in known if context.sides[ref] & side and _SIDES(nodes[ref]) != by]
        if not told:
            break
        ref = max(told)  # its correction holds earlier ones only
        node = product_of(nodes[ref])
        dim = None if node is None else context.dims[node.vector]
        if node is None or dim is None:
            return None
        done.add(ref)
        if not is_told(context, node):
            continue
        found = slopes(context, node.vector, node.matrix, not node.transpose)
        if found is None:
            return None
        terms: list[Expr] = [Var(ref)]
        for product, *factors in found:
            read = the_product(nodes[product])
            terms.append(mul((const(ratios[dim]), *map(Par, factors), Var(read.vector))))
        whole = substitute(expr, {Var(ref): add(terms)})
        expr = chains.opened(context, whole, lambda ref: _is_open(context, ref, side))
    return expr


def _is_open(context: Context, ref: LRef, side: int) -> bool:
    return bool(context.sides[ref] & side) and _HAS_FORMULA(context.nodes[ref])


_HAS_FORMULA: Table[bool] = Table(
    dict.fromkeys((Nonlin, LinComb), lambda node: True), lambda node: False
)
_SIDES: Table[tuple[str, bool] | None] = Table(
    {Product: lambda node: (node.matrix, node.transpose)}, lambda node: None
)


ZERO = Fraction(0)
DEEP = 6  # matrices of one chain of products


def fluctuation(context: Context, piece: Piece, dim: str) -> LRef | None:
    """The scalar that n^(1/2) times an average tends to; None where no law of it is known."""
    if has_bare_term(context, piece.fn, piece.vectors):  # seen before all is multiplied out
        return _of_starts(context, piece, dim)
    left = terms(piece.fn, piece.vectors, piece.scalars)
    found: list[tuple[Term, list[_Base]]] = []
    own: list[LRef] = []
    while left:
        term = scaled(context, left.pop())
        bases = _bases(context, term)
        loose = context.preferred is not None and _family(context, bases) not in context.preferred
        if bases and not (loose and _is_hiding(context, term, bases[0])):
            lower = _lowered(context, term, bases, dim) if loose else None
            if lower is None:
                found.append((term, bases))
            else:
                own.append(lower)
            continue
        inner = opened(context, term)
        whole = None
        thorough = not inner and context.preferred is not None  # these take many products
        if thorough and context.parity.zero_mean(piece.fn, piece.vectors):
            whole = _of_hats(context, term, dim) or _of_told(context, term, dim)
        if whole is not None:
            own.append(whole)
            continue
        if not inner or len(found) + len(left) + len(inner) > MOST:
            return _of_starts(context, piece, dim)
        left += inner
    own += [_gaussian(context, *one, dim) for one in found]
    return context.scalar_sum(own) if own else None


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
    return context.add(Fluctuation(Rows(dim), (vector_of(context, part, dim),)), None)


_Base = tuple[LRef, int]  # a vector that the others of a term are independent of, or that below
# its product, and the place of the one or the other


def _bases(context: Context, term: Term) -> list[_Base]:
    """What the other vectors are independent of: start vectors first, then products in order.

    Of products those come first whose matrix is a root already: fewer of two roots may be
    correlated. ``g.(W u)`` is ``u.(W^T g)``, too, whatever g holds of W. Where some roots are
    preferred, they come first, then the first matrix that serves, and start vectors last.
    """
    if any(is_hidden(fn) for fn, _, _ in term.rest):  # a gate may be decided by the vector itself
        return []
    below = [vector for _, vectors, _ in term.rest for vector in vectors]
    found: list[tuple[int, int, LRef, int]] = []
    for place, vector in enumerate(term.vectors):
        node = product_of(context.nodes[vector])
        others = [*term.vectors[:place], *term.vectors[place + 1 :], *below]
        inner = vector if node is None else node.vector
        starts = _roots_of(context, inner, others)
        if starts:
            own = union(context.root(start) for start in starts)
            centred = all(context.program.group[s.group].means[s.index] == 0 for s in starts)
            if centred and not any(own & context.roots[other] for other in others):
                rank = _rank(context, context.family(starts[0]), 0 if inner == vector else 3)
                found.append((rank, own, inner, place))
        if node is not None and node.matrix not in context.orthogonal:
            own = context.side(node.matrix, node.transpose)
            back = context.side(node.matrix, not node.transpose)
            held = any(own & context.sides[other] for other in others)
            if not held and not back & context.sides[node.vector]:
                rank = _rank(context, context.family(node.matrix), 2)
                found.append((rank, context.root(node.matrix), vector, place))
    return [base[2:] for base in sorted(found)]


def _roots_of(context: Context, ref: LRef, others: Sequence[LRef]) -> tuple[Start, ...]:
    """The start vectors of a node that may be roots, of a block where it meets no cell by cell."""
    found, axes = context.members(context.nodes[ref]), context.axes[ref]
    apart = others and not any({*axes} & {*context.axes[other]} for other in others)
    return found if not axes or apart else ()


def _rank(context: Context, family: str, kind: int) -> int:
    """Of a root: start vectors are of the kind 0, matrices 2, start vectors behind one 3."""
    if context.preferred is None:
        return kind if kind == 0 or family not in context.families else kind - 1
    return 0 if family in context.preferred else 1 if kind == 2 else 2


def _family(context: Context, bases: list[_Base]) -> str:
    """The family of the first root."""
    return _FAMILIES(context.nodes[bases[0][0]], context) if bases else ""


_FAMILIES: Table[str] = Table(
    {
        Product: lambda node, context: context.family(node.matrix),
        Start: lambda node, context: context.family(node),
        Starts: lambda node, context: context.family(context.members(node)[0]),
    },
    lambda node, context: "",
)


def _chosen(context: Context, term: Term, bases: list[_Base], dim: str) -> tuple[LNode, Fraction]:
    """The fluctuation of a term, with a factor: one that is there already, else the first.

    Of a block of start vectors it is one for each of them.
    """
    found = list[tuple[LNode, Fraction]]()
    for base, place in bases:
        vector = product_of(context.nodes[term.vectors[place]])
        starts = context.members(context.nodes[base])
        others = replace(term, vectors=(*term.vectors[:place], *term.vectors[place + 1 :]))
        own = partner(context, others, term.vectors[place], dim)
        if vector is None:
            found.append((_for_each(context, base, starts, own), Fraction(1)))
            continue
        other = context.dims[vector.vector]
        assert other is not None
        ratio = {dim.name: dim.ratio for dim in context.program.dims}
        share = ratio[other] / ratio[dim]  # of averages over the other side
        if starts:
            back = Product(vector.matrix, not vector.transpose, own)
            if back in context.known or not found:
                behind = context.add(back, other)
                found.append((_for_each(context, base, starts, behind), share))
        elif vector.transpose:
            found.append((Fluctuation(vector.matrix, (vector.vector, own)), share))
        else:
            found.append((Fluctuation(vector.matrix, (own, vector.vector)), Fraction(1)))
    known = (one for one in found if one[0] in context.known)
    return found[0] if context.preferred is not None else next(known, found[0])


def _for_each(context: Context, base: LRef, starts: Sequence[Start], own: LRef) -> LNode:
    """The fluctuation of a vector with a start vector, or a block of those with several."""
    drawn = [Fluctuation(start, (own,)) for start in starts]
    axes = context.axes[base]
    if not axes:
        return drawn[0]
    return Stack(tuple(context.add(one, None) for one in drawn), axes[0][0])


def _lowered(context: Context, term: Term, bases: list[_Base], dim: str) -> LRef | None:
    """The fluctuation of (W v) g as that of v (W^T g), where that makes it one of a root in use."""
    for base, place in bases:
        node = product_of(context.nodes[base])
        if node is None or base != term.vectors[place]:
            continue
        if not _is_linear(context, node.vector, context.root(node.matrix)):
            continue
        found = _turned(context, term, node, place, dim)
        if found is not None:
            return found
    return None


def _of_told(context: Context, term: Term, dim: str) -> LRef | None:
    """The fluctuation of (W y) g, where y knows of W, as that of y (W^T g); None: it has no law."""
    for place, vector in enumerate(term.vectors):
        node = product_of(context.nodes[vector])
        if node is not None and is_told(context, node):
            found = _turned(context, term, node, place, dim)
            if found is not None:
                return found
    return None


def _turned(context: Context, term: Term, node: Product, place: int, dim: str) -> LRef | None:
    """The fluctuation of (W v) g as that of v (W^T g), on the other side of the matrix.

    Of one average each matrix is turned once, as turning it again would lead back.
    """
    other, base = context.dims[node.vector], term.vectors[place]
    if other is None or node.matrix in context.orthogonal:
        return None
    if node.matrix in context.turning or len(context.turning) == DEEP:
        return None
    rest = replace(term, vectors=(*term.vectors[:place], *term.vectors[place + 1 :]))
    back = Product(node.matrix, not node.transpose, partner(context, rest, base, dim))
    pair = node.vector, context.add(back, other)
    context.turning.add(node.matrix)
    found = fluctuation(context, Piece(ZERO, INNER, pair, ()), other)
    context.turning.remove(node.matrix)
    if found is None:
        return None
    ratio = {one.name: one.ratio for one in context.program.dims}
    return in_front(context, term, ratio[other] / ratio[dim], found)


def _is_hiding(context: Context, term: Term, base: _Base) -> bool:
    """Whether a term of which a matrix is the root holds sums of hats of roots before it."""
    node = product_of(context.nodes[base[0]])
    if node is None or base[0] != term.vectors[base[1]]:
        return False
    sums = (v for v in term.vectors if product_of(context.nodes[v]) is None)
    return any(_is_linear(context, vector, context.root(node.matrix)) for vector in sums)


def _is_chain(context: Context, term: Term) -> bool:
    """Whether another matrix than that of its products may be the root of a term."""
    if len(term.vectors) + len(term.rest) == 1:
        return True
    return any(
        _is_linear(context, node.vector, context.root(node.matrix))
        for node in _products(context, term.vectors)
    ) or any(
        _is_hiding(context, term, base)
        for base in zip(term.vectors, range(len(term.vectors)), strict=True)
    )


def _products(context: Context, vectors: Sequence[LRef]) -> Iterator[Product]:
    """The products among some vectors."""
    return (one for one in map(product_of, (context.nodes[v] for v in vectors)) if one is not None)


def _is_linear(context: Context, vector: LRef, root: int) -> bool:
    """Whether a vector is a sum of products with matrices that come before a root."""
    return _LINEAR(context.nodes[vector], context, vector, root)


def _is_early(node: Product, context: Context, vector: LRef, root: int) -> bool:
    return node.matrix not in context.orthogonal and context.root(node.matrix) < root


def _is_linear_sum(node: LinComb, context: Context, vector: LRef, root: int) -> bool:
    return all(_is_linear(context, part, root) for part in node.vectors)


def _is_linear_multiple(node: LNode, context: Context, vector: LRef, root: int) -> bool:
    found = multiple(context, vector)
    return found is not None and _is_linear(context, found.vectors[0], root)


_LINEAR: Table[bool] = Table({Product: _is_early, LinComb: _is_linear_sum}, _is_linear_multiple)


def _gaussian(context: Context, term: Term, bases: list[_Base], dim: str) -> LRef:
    """The scalar of a term."""
    found, share = _chosen(context, term, bases, dim)
    drawn = context.add(found, None)
    if len({_family(context, [base]) for base in bases}) == 1 and not _is_chain(context, term):
        context.forced[drawn] = _family(context, bases)
    return in_front(context, term, share, drawn)


def _of_hats(context: Context, term: Term, dim: str) -> LRef | None:
    """The fluctuation of the average of two products with one matrix; None: its law is not known.

    Given the products What^T y that x depends on, What is fresh but for what it did to these y. The
    average of (What w)(What x) fluctuates by that of the hats, by that of w x, and by that of
    w (What^T y) with the mean slope of x by What^T y, where w knows nothing of What^T.
    """
    if len(term.vectors) != 2 or any(vectors for _, vectors, _ in term.rest):
        return None
    pair = list(_products(context, term.vectors))
    if len(pair) < 2 or pair[0].matrix in context.orthogonal:
        return None
    one, two = sorted(pair, key=lambda node: is_told(context, node))
    if one.matrix != two.matrix or one.transpose != two.transpose or is_told(context, one):
        return None
    w, x, other = one.vector, two.vector, context.dims[one.vector]
    held = context.side(one.matrix, one.transpose) & (context.sides[w] | context.sides[x])
    zero = context.parity.zero_mean(INNER, (w, x))
    if other is None or held or not zero or context.missing[w] or context.missing[x]:
        return None
    moved = slopes(context, x, one.matrix, not one.transpose)
    inner = _below(context, w, x, other)
    if moved is None or inner is None:
        return None
    ratios = {found.name: found.ratio for found in context.program.dims}
    read, share = ratios[other], ratios[other] / ratios[dim]
    root = Twice(one.matrix, one.transpose)
    hats = (context.add(Fluctuation(root, vectors), None) for vectors in ((w, x), (x, w)))
    parts = [in_front(context, term, Fraction(1), each) for each in hats]
    parts.append(in_front(context, term, read, inner))
    for back, *slope in moved:
        linear = _below(context, w, back, other)
        if linear is None:
            return None
        parts.append(in_front(context, term, read * share, linear, *slope))
    return context.scalar_sum(parts)


def _below(context: Context, left: LRef, right: LRef, dim: str) -> LRef | None:
    """The fluctuation of a product of vectors without their matrix: there all may be turned."""
    held, context.turning = context.turning, set()
    found = fluctuation(context, Piece(ZERO, INNER, (left, right), ()), dim)
    context.turning = held
    return found
