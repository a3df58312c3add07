"""The limit rule of every node type: the Master Theorem on series in n."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from tpcalc.errors import LimitError, ScaleError, TpcalcError, Undecided
from tpcalc.functions import Fn, Var
from tpcalc.limit.apart import apart, in_front, parted
from tpcalc.limit.chains import composed
from tpcalc.limit.context import Context, Piece
from tpcalc.limit.gates import vanishes_exactly
from tpcalc.limit.graph import LRef, Product, Start
from tpcalc.limit.isometry import known_product
from tpcalc.limit.moments import moment
from tpcalc.limit.outer import outer
from tpcalc.limit.pieces import Value, expanded
from tpcalc.limit.scalars import scalar_fn
from tpcalc.limit.series import UNBOUNDED, Rest, Series
from tpcalc.limit.views import number_of
from tpcalc.orders.chamber import Power, plus
from tpcalc.program.nodes import (
    Data,
    Input,
    LinComb,
    MatMul,
    Moment,
    Nonlin,
    OuterNonlin,
    Ref,
    Scale,
)
from tpcalc.program.rules import Rules
from tpcalc.program.views import lincomb_of, matrix_of

__all__ = ["LIMIT_RULES"]

HALF, ZERO = Fraction(1, 2), Fraction(0)
ROUNDING = 1e-14


def _data(node: Data, ref: Ref, values: list[Any], context: Context) -> Value:
    (value,) = node.values
    return Series(((ZERO, context.number(value)),)) if value != 0 else Series(())


def _input(node: Input, ref: Ref, values: list[Any], context: Context) -> Value | None:
    family = node.family
    if len(family.width) == 2:
        return None  # its products have the rules
    if family.width:
        start = Start(family.name, node.index)
        item = context.add(start, family.dim)  # also of a vector that is 0, for its dimension
        if family.means[node.index] == 0 and not context.varies(start):
            return Series(())
        return Series(((ZERO, item),))
    if family.std == 0:
        return _data(Data(family.name, family.means), ref, values, context)
    return Series(((ZERO, context.add(node, None)),))


def _matmul(node: MatMul, ref: Ref, values: list[Any], context: Context) -> Value:
    matrix = matrix_of(context.program.nodes, node)
    dim, other = matrix.family.width[::-1] if node.transpose else matrix.family.width
    x: Value = values[node.vector]
    if not x.terms and dim not in context.anchors:
        # The product is 0, but functions that are constant on its dimension need a vector there.
        source = context.anchors[other]
        context.add(Product(matrix.name, node.transpose, source), dim)
    x = context.ranking.spread(x)  # what moves few coordinates of x moves all of W x
    apply = _haar_product if matrix.family.law == "orthogonal" else _product
    found = (
        (power, apply(context, matrix.name, node.transpose, ref, dim)) for power, ref in x.terms
    )
    terms = tuple((power, item) for power, item in found if item is not None)
    return Series(terms, x.rest, x.soft, x.drift).shift(HALF)


def _product(context: Context, matrix: str, transpose: bool, item: LRef, dim: str) -> LRef | None:
    """W x; of a sum of vectors that were all multiplied before, the sum of the products."""
    whole = context.known.get(Product(matrix, transpose, item))
    if whole is not None:
        return whole
    opened = parted(context, item)
    if opened is not None:
        bucket: Bucket = {}
        for number, scalar, vector in opened:
            pair = scalar, context.add(Product(matrix, transpose, vector), dim)
            bucket[pair] = _added(bucket.get(pair, Fraction(0)), number)
        bucket = _opened(context, bucket)
        return _combined(context, bucket, dim) if bucket else None
    node = lincomb_of(context.nodes[item])
    if node is not None:
        parts = [context.known.get(Product(matrix, transpose, vector)) for vector in node.vectors]
        known = [part for part in parts if part is not None]
        if len(known) == len(parts):
            return context.add(LinComb(node.numbers, node.scalars, tuple(known)), dim)
    return context.add(Product(matrix, transpose, item), dim)


def _haar_product(
    context: Context, matrix: str, transpose: bool, item: LRef, dim: str
) -> LRef | None:
    """The same for a Haar matrix, which undoes its transpose; None where all of it cancels."""
    node = lincomb_of(context.nodes[item]) or LinComb((Fraction(1),), (None,), (item,))
    bucket: Bucket = {}
    left: Bucket = {}
    undone = False
    for number, scalar, vector in zip(node.numbers, node.scalars, node.vectors, strict=True):
        product = Product(matrix, transpose, vector)
        found = known_product(context, product)
        if found is None:
            left[scalar, vector] = _added(left.get((scalar, vector), Fraction(0)), number)
            continue
        undone = undone or context.nodes[found[1]] != product
        pair = (scalar, found[1])
        bucket[pair] = _added(bucket.get(pair, Fraction(0)), number * found[0])
    if left and not undone:
        return context.add(Product(matrix, transpose, item), dim)
    if left:
        rest = _combined(context, left, context.dims[item] or dim)
        bucket[None, context.add(Product(matrix, transpose, rest), dim)] = Fraction(1)
    bucket = _opened(context, bucket)
    return _combined(context, bucket, dim) if bucket else None


def _nonlin(node: Nonlin, ref: Ref, values: list[Any], context: Context) -> Value:
    if not node.vectors:
        return scalar_fn(node, ref, values, context)
    fn, vectors, scalars = composed(context.program, node.fn, node.vectors, node.scalars)
    pieces, bounds = expanded(
        context,
        fn,
        [values[r] for r in vectors],
        [context.ranking.as_factor(values[r]) for r in scalars],
        ref,
        lambda index: vanishes_exactly(vectors[index], values, context),
    )
    dim = context.dim(ref)
    total: dict[Power, LRef] = {}
    for piece in pieces:
        bucket = {
            (s, _applied(context, part, dim)): Fraction(1)
            for random, part in apart(context, piece)
            for s, part in (in_front(context, random, part),)
        }
        if bucket:
            total[piece.power] = _combined(context, bucket, dim)
    return Series(tuple(total.items()), bounds.rest, bounds.soft, bounds.drift)


def _applied(context: Context, piece: Piece, dim: str) -> LRef:
    """The vector of a function."""
    if not piece.vectors:  # a constant vector: keep one vector argument for the dimension
        fn = Fn(piece.fn.expr, 1, piece.fn.scalars)
        return context.add(Nonlin(fn, (context.anchors[dim],), piece.scalars), dim)
    if piece.fn.expr == Var(0):
        return piece.vectors[0]
    return context.add(Nonlin(piece.fn, piece.vectors, piece.scalars), dim)


Pair = tuple[LRef | None, LRef]
Bucket = dict[Pair, Fraction | float]


def _lincomb(node: LinComb, ref: Ref, values: list[Any], context: Context) -> Value:
    terms: dict[Power, Bucket] = {}
    rests: list[Rest | None] = []
    softs: list[Rest | None] = []
    drifts: list[Rest | None] = []
    one: Series[LRef | None] = Series(((ZERO, None),))
    seen: set[tuple[int, int]] = set()  # bounds hang on the shapes alone
    last: Power | None = None
    bucket: Bucket = {}
    for number, scalar, vector in zip(node.numbers, node.scalars, node.vectors, strict=True):
        if number == 0:
            continue
        s: Series[Any] = one if scalar is None else context.ranking.as_factor(values[scalar])
        v: Value = values[vector]
        for p, coefficient in s.terms:
            factor = number
            if coefficient is not None:
                given = number_of(context.nodes[coefficient])
                if given is not None:  # a plain number belongs to the numbers
                    factor, coefficient = number * given.value, None
            for q, item in v.terms:
                power = plus(p, q) if p and q else p or q
                if power is not last and power != last:  # most terms share one power
                    last, bucket = power, terms.setdefault(power, {})
                known = bucket.get((coefficient, item))
                bucket[coefficient, item] = factor if known is None else _added(known, factor)
        shapes = -1 if scalar is None else context.shape(values[scalar]), context.shape(v)
        if shapes not in seen:
            seen.add(shapes)
            rests += [v.bounded_by(s.rest), s.bounded_by(v.rest)]
            softs += [v.bounded_by(s.soft), s.bounded_by(v.soft)]
            drifts += [v.bounded_by(s.drift), s.bounded_by(v.drift)]
    flat = {power: _flat(context, bucket) for power, bucket in terms.items()}
    if any(map(_cancels, flat.values())):
        rests, drifts = rests + drifts, []  # what cancels in the limit is left over at finite n
    kept = context.ranking.keep(
        {power: bucket for power, found in flat.items() if (bucket := _nonzero(found))},
        rests,
        softs,
        drifts,
        lambda buckets: _merged(context, buckets),
    )
    dim = context.dim(ref)
    combined = tuple((power, _combined(context, bucket, dim)) for power, bucket in kept.terms)
    return Series(combined, kept.rest, kept.soft, kept.drift)


def _opened(context: Context, bucket: Bucket) -> Bucket:
    """A bucket without zeros; sums that share terms are opened, so that these cancel."""
    return _nonzero(_flat(context, bucket))


def _nonzero(bucket: Bucket) -> Bucket:
    return {pair: number for pair, number in bucket.items() if number != 0}


def _cancels(bucket: Bucket) -> bool:
    return any(number == 0 for number in bucket.values())


def _flat(context: Context, bucket: Bucket) -> Bucket:
    """A bucket whose sums that share terms are opened; the number of what cancels is 0."""
    clean = _nonzero(bucket)
    inner = [vector for _, vector in clean]
    for scalar, vector in clean:
        if scalar is None and (node := lincomb_of(context.nodes[vector])) is not None:
            inner += node.vectors
    if len(set(inner)) == len(inner):  # nothing is shared
        return bucket
    total: Bucket = {}
    for (scalar, vector), number in bucket.items():
        node = lincomb_of(context.nodes[vector])
        if number == 0 or scalar is not None or node is None:
            total[scalar, vector] = _added(total.get((scalar, vector), Fraction(0)), number)
            continue
        for factor, own, item in zip(node.numbers, node.scalars, node.vectors, strict=True):
            total[own, item] = _added(total.get((own, item), Fraction(0)), number * factor)
    return total if _nonzero(total) == clean else _flat(context, total)


def _added(a: Fraction | float, b: Fraction | float) -> Fraction | float:
    """The sum of two numbers; what is left of floats by rounding only is 0."""
    if isinstance(a, Fraction) and isinstance(b, Fraction):
        return a + b
    total = float(a) + float(b)
    return total if abs(total) > ROUNDING * (abs(float(a)) + abs(float(b))) else Fraction(0)


def _merged(context: Context, buckets: list[Bucket]) -> tuple[Bucket | None, bool]:
    total: Bucket = {}
    for bucket in buckets:
        for pair, number in bucket.items():
            total[pair] = _added(total.get(pair, Fraction(0)), number)
    flat = _flat(context, total)
    return _nonzero(flat) or None, _cancels(flat)


def _combined(
    context: Context, bucket: Mapping[tuple[LRef | None, LRef], Fraction | float], dim: str
) -> LRef:
    if len(bucket) == 1:
        ((scalar, vector), number) = next(iter(bucket.items()))
        if scalar is None and number == 1:
            return vector
    pairs = list(bucket)
    return context.add(
        LinComb(
            tuple(bucket[pair] for pair in pairs),
            tuple(scalar for scalar, _ in pairs),
            tuple(vector for _, vector in pairs),
        ),
        dim,
    )


def _scale(node: Scale, ref: Ref, values: list[Any], context: Context) -> Value:
    if node.depth_power.terms:
        raise ScaleError(
            f"L^({node.depth_power}) in front of a node: the limit of the depth is not taken.",
            where=context.program.place(ref),
            hint="Write the number of layers as a number.",
        )
    value: Value = values[node.of]
    power = node.n_power.put(context.values)
    constant = power.constant
    return value.shift(power if constant is None else constant)


_TABLE: dict[type, Callable[[Any, Ref, list[Any], Context], Any]] = {
    Data: _data,
    Input: _input,
    MatMul: _matmul,
    Nonlin: _nonlin,
    LinComb: _lincomb,
    Moment: moment,
    OuterNonlin: outer,
    Scale: _scale,
}


def _lost(error: TpcalcError, ref: Ref, context: Context) -> Value:
    """A node that no rule covers: nothing is known of it, and what does not need it goes on."""
    if isinstance(error, Undecided) or not isinstance(error, LimitError | ScaleError):
        raise error
    context.uncovered[ref] = error
    return Series((), UNBOUNDED)


LIMIT_RULES: Rules[Any, Context] = Rules("limit", _TABLE, lost=_lost)
