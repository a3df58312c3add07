"""The limit rule of every node type: the Master Theorem on series in n."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from math import prod
from typing import Any

import numpy as np

from tpcalc.errors import LimitError, ScaleError, TpcalcError, Undecided
from tpcalc.exponents.chamber import Power, plus
from tpcalc.functions import Fn
from tpcalc.functions.fn import SQUARE
from tpcalc.limit.apart import apart, in_front, parted
from tpcalc.limit.axes import NeedsCells
from tpcalc.limit.certainty import known_product
from tpcalc.limit.chains import composed
from tpcalc.limit.classes import Uneven, by_class, cells_of, classes, leaf, stacked
from tpcalc.limit.context import Context, Piece
from tpcalc.limit.factors import vector_of
from tpcalc.limit.gates import vanishes_exactly
from tpcalc.limit.graph import LRef, Product, Start, Starts, Total, number_of
from tpcalc.limit.outer import outer
from tpcalc.limit.pieces import Value, expanded
from tpcalc.limit.scalars import moment, scalar_fn
from tpcalc.limit.series import UNBOUNDED, Remainder, Rest, Series
from tpcalc.limit.zeros import zeros_of_term
from tpcalc.program.base import lincomb_of, matrix_of
from tpcalc.program.nodes import (
    Data,
    Family,
    Input,
    LinComb,
    MatMul,
    Moment,
    Nonlin,
    OuterNonlin,
    Ref,
    Rename,
    RowNonlin,
    Scale,
    Stack,
)
from tpcalc.program.rules import Level, Rules

HALF, ZERO = Fraction(1, 2), Fraction(0)
ROUNDING = 1e-14


def _data(node: Data, ref: Ref, values: list[Any], context: Context) -> Any:
    if node.axes:
        if not any(node.values):
            return Series(())
        same = context.given.setdefault((node.values, node.axes), node)  # names tell nothing apart
        return leaf(Series(((ZERO, context.add(same, None)),)), node.axes, context)
    (value,) = node.values
    return Series(((ZERO, context.number(value)),)) if value != 0 else Series(())


def _input(node: Input, ref: Ref, values: list[Any], context: Context) -> Any:
    family = node.family
    if len(family.width) == 2:
        return None  # its products have the rules
    if family.width:
        block = bool(family.axes) and node.cell is None
        if block and len(family.axes) == 1 and context.divided(family.axes):
            return _members(family, context)
        start = Start(family.name, node.index)
        context.starts.setdefault(family.name, block)
        if context.starts[family.name] is not block:
            raise NeedsCells(f"{family.name} is read as a block and member by member")
        own: Start | Starts = Starts(family.name) if block else start
        item = context.add(own, family.dim)  # also of a vector that is 0, for its dimension
        cells = range(family.size) if block else (node.index,)
        if not any(family.means[k] or context.varies(replace(start, index=k)) for k in cells):
            return Series(())
        return Series(((ZERO, item),))
    if family.axes and node.cell is None:
        parts = [family.part(index) for index in range(family.size)]
        if any(part.std != 0 for part in parts):
            return Series(((ZERO, context.add(node, None)),))
        return _data(Data(family.name, family.means, family.axes), ref, values, context)
    if family.std == 0:
        return _data(Data(family.name, family.means), ref, values, context)
    return Series(((ZERO, context.add(node, None)),))


def _members(family: Family, context: Context) -> Any:
    """A block of start vectors that is divided: those of different classes have their own signs."""
    if context.starts.setdefault(family.name, False):
        raise NeedsCells(f"{family.name} is read as a block and member by member")
    items = tuple(
        context.add(Start(family.name, index), family.dim) for index in range(family.size)
    )
    if not any(
        family.means[k] or context.varies(Start(family.name, k)) for k in range(family.size)
    ):
        return Series(())
    ((axis, _),) = family.axes
    whole = context.add(Stack(items, axis), family.dim)
    return leaf(Series(((ZERO, whole),)), family.axes, context)


def _matmul(node: MatMul, ref: Ref, values: list[Any], context: Context) -> Value:
    matrix = matrix_of(context.program.nodes, node)
    dim, other = matrix.family.width[::-1] if node.transpose else matrix.family.width
    if matrix.family.axes:
        context.starts.setdefault(matrix.family.name, matrix.cell is None)
        if context.starts[matrix.family.name] is not (matrix.cell is None):
            raise NeedsCells(f"{matrix.family.name} is read as a block and matrix by matrix")
    x: Value = values[node.vector]
    if not x.terms and dim not in context.anchors:
        # The product is 0, but functions that are constant on its dimension need a vector there.
        source = context.anchors[other]
        context.add(Product(matrix.name, node.transpose, source), dim)
    for _, item in x.terms:
        context.claim_mean(Piece(ZERO, SQUARE, (item,), ()), ref)
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
            pair = scalar, context.add(Product(matrix, transpose, vector), dim), ()
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
            left[scalar, vector, ()] = _added(left.get((scalar, vector, ()), Fraction(0)), number)
            continue
        undone = undone or context.nodes[found[1]] != product
        pair = (scalar, found[1], ())
        bucket[pair] = _added(bucket.get(pair, Fraction(0)), number * found[0])
    if left and not undone:
        return context.add(Product(matrix, transpose, item), dim)
    if left:
        rest = _combined(context, left, context.dims[item] or dim)
        bucket[None, context.add(Product(matrix, transpose, rest), dim), ()] = Fraction(1)
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
        bucket: Bucket = {
            (s, _applied(context, part, dim), ()): Fraction(1)
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
        return context.add(Nonlin(fn, (context.single(dim),), piece.scalars), dim)
    return vector_of(context, piece, dim)


Pair = tuple[LRef | None, LRef, tuple[str, ...]]  # with the axes that it is summed over
Bucket = dict[Pair, Fraction | float]


def _lincomb(  # noqa: C901 (one loop for all terms: most of a derivation is spent here)
    node: LinComb, ref: Ref, values: list[Any], context: Context
) -> Value:
    terms: dict[Power, Bucket] = {}
    left = Remainder()
    one: Series[LRef | None] = Series(((ZERO, None),))
    seen: set[tuple[int, int]] = set()  # bounds hang on the shapes alone
    last: Power | None = None
    bucket: Bucket = {}
    for number, scalar, v, over in _summed(node, values, context):
        if number == 0:
            continue
        s: Series[Any] = one if scalar is None else context.ranking.as_factor(scalar)
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
                own: tuple[str, ...] = ()
                if over:
                    own, times = _along(context, coefficient, item, over)
                    factor = factor * times
                    if _is_zero(context, coefficient, item, own):
                        left.rests += filter(None, _left(context, (s, coefficient), (v, item)))
                        continue
                known = bucket.get((coefficient, item, own))
                bucket[coefficient, item, own] = factor if known is None else _added(known, factor)
        shapes = -1 if scalar is None else context.shape(scalar), context.shape(v)
        if shapes not in seen:
            seen.add(shapes)
            left.product(s, v)
    flat = {power: _flat(context, bucket) for power, bucket in terms.items()}
    if any(map(_cancels, flat.values())):
        left.settle()
    kept = context.ranking.keep(
        {power: bucket for power, found in flat.items() if (bucket := _nonzero(found))},
        left,
        lambda buckets: _merged(context, buckets),
    )
    dim = context.dim(ref) if context.program.types[ref].width else None
    for _, bucket in kept.terms if dim is not None and context.updated else ():
        _check_updates(context, bucket, values)
    combined = tuple((power, _combined(context, bucket, dim)) for power, bucket in kept.terms)
    return Series(combined, kept.rest, kept.soft, kept.drift)


def _summed(
    node: LinComb, values: Any, context: Context
) -> Iterator[tuple[Fraction | float, Value | None, Value, tuple[tuple[str, int], ...]]]:
    """The terms of a sum with the axes they are summed over; one for each class of cells."""
    types = context.program.types
    for place, (number, scalar, vector) in enumerate(
        zip(node.numbers, node.scalars, node.vectors, strict=True)
    ):
        names = node.over[place] if node.over else ()
        refs = (vector,) if scalar is None else (scalar, vector)
        if not names:
            yield number, None if scalar is None else values[scalar], values[vector], ()
            continue
        sizes = {name: size for ref in refs for name, size in types[ref].axes}
        for cells, _, counts in classes(refs, values, names, context):
            held = {name: counts.get(name, sizes[name]) for name in names}
            factor = None if scalar is None else cells[scalar]
            yield number, factor, cells[vector], tuple(held.items())


def _along(
    context: Context, scalar: LRef | None, item: LRef, over: tuple[tuple[str, int], ...]
) -> tuple[tuple[str, ...], int]:
    """The axes of a sum that a term has, and how often it stands there along the others."""
    held = {name for r in (scalar, item) if r is not None for name, _ in context.axes[r]}
    times = prod(size for name, size in over if name not in held)
    return tuple(name for name, _ in over if name in held), times


def _check_updates(context: Context, bucket: Bucket, values: Any) -> None:
    """Start vectors of a block that have updates, and others that have none, are apart."""
    for scalar, vector, over in bucket if len(bucket) > 1 else ():
        axes, zeros = zeros_of_term(scalar, vector, over, context.axes, context.zeros)
        for place, (name, _) in enumerate(axes if zeros is not None else ()):
            if name in context.updated and zeros is not None:
                others = tuple(k for k in range(len(axes)) if k != place)
                found: list[bool] = np.all(zeros, axis=others).tolist()
                if len(set(found)) > 1:
                    number, cells = cells_of(values, name, context.updated[name], context)
                    marks = ((number, zero) for zero in found)
                    raise Uneven(name, dict(zip(cells, marks, strict=True)), leaves=True)


def _left(
    context: Context, scalar: tuple[Value, LRef | None], vector: tuple[Value, LRef]
) -> Iterator[Rest | None]:
    """What is left at finite n of a product with a leading term that is exactly 0."""
    for (one, ref), (other, _) in ((scalar, vector), (vector, scalar)):
        if ref is not None and context.zeros(ref) is not None:
            yield other.bounded_by(one.drift)


def _is_zero(context: Context, scalar: LRef | None, item: LRef, over: tuple[str, ...]) -> bool:
    """Whether a term of a sum over axes is exactly 0 in every cell."""
    _, zeros = zeros_of_term(scalar, item, over, context.axes, context.zeros)
    return zeros is not None and bool(zeros.all())


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
    inner = [vector for _, vector, _ in clean]
    for scalar, vector, over in clean:
        if scalar is None and not over and (node := lincomb_of(context.nodes[vector])) is not None:
            inner += node.vectors
    if len(set(inner)) == len(inner):  # nothing is shared
        return bucket
    total: Bucket = {}
    for pair, number in bucket.items():
        scalar, vector, over = pair
        node = lincomb_of(context.nodes[vector])
        if number == 0 or scalar is not None or node is None or over:
            total[pair] = _added(total.get(pair, Fraction(0)), number)
            continue
        for factor, own, item in zip(node.numbers, node.scalars, node.vectors, strict=True):
            key = own, item, ()
            total[key] = _added(total.get(key, Fraction(0)), number * factor)
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


def _combined(context: Context, bucket: Bucket, dim: str | None) -> LRef:
    if len(bucket) == 1:
        ((scalar, vector, over), number) = next(iter(bucket.items()))
        if scalar is None and number == 1 and not over:
            return vector
    numbers = tuple(bucket.values())
    scalars = tuple(scalar for scalar, _, _ in bucket)
    vectors = tuple(vector for _, vector, _ in bucket)
    summed = tuple(own for _, _, own in bucket)
    node = Total(numbers, scalars, vectors, summed) if any(summed) else None
    return context.add(node or LinComb(numbers, scalars, vectors), dim)


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


def _rename(node: Rename, ref: Ref, values: list[Any], context: Context) -> Value:
    new = dict(node.names)

    def moved(item: LRef) -> LRef:
        names = tuple((old, new[old]) for old, _ in context.axes[item] if old in new)
        return context.add(Rename(item, names), context.dims[item]) if names else item

    value: Value = values[node.of]
    terms = tuple((power, moved(item)) for power, item in value.terms)
    return Series(terms, value.rest, value.soft, value.drift)


_TABLE: dict[type, Callable[[Any, Ref, list[Any], Context], Any]] = {
    Data: _data,
    Input: _input,
    MatMul: by_class(_matmul),
    Nonlin: by_class(_nonlin),
    LinComb: by_class(_lincomb),
    Moment: by_class(moment),
    OuterNonlin: by_class(outer),
    Rename: by_class(_rename),
    Scale: by_class(_scale),
    Stack: stacked,
}
_GAPS: dict[type, str] = {RowNonlin: "passes.rows writes it as functions of the cells of a row"}


def _lost(error: TpcalcError, ref: Ref, context: Context) -> Value:
    """A node that no rule covers: nothing is known of it, and what does not need it goes on."""
    if isinstance(error, Undecided) or not isinstance(error, LimitError | ScaleError):
        raise error
    context.uncovered[ref] = error
    return Series((), UNBOUNDED)


LIMIT_RULES: Rules[Any, Context] = Rules("limit", _TABLE, _GAPS, level=Level.BLOCKS, lost=_lost)
