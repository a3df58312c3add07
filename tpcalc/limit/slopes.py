"""What a vector knows of the products with one side of a matrix: its mean slopes by their hats."""

from __future__ import annotations

from fractions import Fraction

from tpcalc.errors import NotDifferentiable
from tpcalc.functions import Expr, Fn, Par, Var
from tpcalc.functions.expr import add, const, mul, substitute, walk
from tpcalc.functions.fn import own_derivative
from tpcalc.limit.apart import apart
from tpcalc.limit.chains import opened
from tpcalc.limit.context import Context, Piece
from tpcalc.limit.graph import Expect, LRef, Product
from tpcalc.limit.views import product_of, the_product
from tpcalc.program.base import Table
from tpcalc.program.nodes import LinComb, Nonlin

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
    expr = opened(context, Var(vector), lambda ref: _is_open(context, ref, side))
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
        expr = opened(context, whole, lambda ref: _is_open(context, ref, side))
    return expr


def _is_open(context: Context, ref: LRef, side: int) -> bool:
    return bool(context.sides[ref] & side) and _HAS_FORMULA(context.nodes[ref])


_HAS_FORMULA: Table[bool] = Table(
    dict.fromkeys((Nonlin, LinComb), lambda node: True), lambda node: False
)
_SIDES: Table[tuple[str, bool] | None] = Table(
    {Product: lambda node: (node.matrix, node.transpose)}, lambda node: None
)
