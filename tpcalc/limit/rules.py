"""The limit rule of every node type: the Master Theorem on series in n."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from tpcalc.errors import LimitError, ScaleError
from tpcalc.functions import Const, Expr, Fn, Par, Var
from tpcalc.functions.expr import Add, Mul, add, mul
from tpcalc.limit.context import Context, Piece, Template, start_root
from tpcalc.limit.graph import (
    Apply,
    Combine,
    Draw,
    Expect,
    Fluctuation,
    LRef,
    Number,
    OuterExpect,
    Product,
    ScalarApply,
    Start,
)
from tpcalc.limit.series import Series, Setting, expand, larger, truncate
from tpcalc.program.nodes import (
    InputMatrix,
    InputScalar,
    InputVector,
    LinComb,
    MatMul,
    Moment,
    Nonlin,
    OuterNonlin,
    Ref,
    ScalarFn,
    Scale,
)
from tpcalc.program.rules import Rules

__all__ = ["LIMIT_RULES"]

HALF, ZERO = Fraction(1, 2), Fraction(0)
Value = Series[LRef]


def _expanded(
    context: Context, fn: Fn, vectors: Sequence[Value], scalars: Sequence[Value], ref: Ref
) -> tuple[list[Piece], Fraction | None]:
    """Substitute series into a function; one template serves all arguments of the same shape."""
    all_vectors = tuple(node for value in vectors for _, node in value.terms)
    smooth = tuple(context.smooth[node] for node in all_vectors)
    key = (fn, tuple(context.shape(value) for value in (*vectors, *scalars)), smooth)
    found = context.templates.get(key)
    if found is None:
        found = context.templates[key] = _template(context, fn, vectors, scalars, ref)
    all_scalars = tuple(node for value in scalars for _, node in value.terms)
    pieces = [
        Piece(
            part.power,
            part.fn,
            tuple(all_vectors[i] for i in part.vectors),
            tuple(all_scalars[i] for i in part.scalars),
        )
        for part in found.parts
    ]
    return pieces, found.cut


def _template(
    context: Context, fn: Fn, vectors: Sequence[Value], scalars: Sequence[Value], ref: Ref
) -> Template:
    """The expansion of a function, over numbered terms of its arguments' series."""
    arguments: dict[Expr, Series[Expr]] = {}
    fresh_vector = fresh_scalar = 0
    for index, value in enumerate(vectors):
        terms: list[tuple[Fraction, Expr]] = []
        for power, _ in value.terms:
            terms.append((power, Var(fresh_vector)))
            fresh_vector += 1
        arguments[Var(index)] = Series(tuple(terms), value.cut)
    for index, value in enumerate(scalars):
        terms = []
        for power, _ in value.terms:
            terms.append((power, Par(fresh_scalar)))
            fresh_scalar += 1
        arguments[Par(index)] = Series(tuple(terms), value.cut)
    dense = (node for value in vectors for _, node in value.terms)
    smooth = frozenset(Var(i) for i, node in enumerate(dense) if context.smooth[node])
    setting = Setting(context.depth, smooth, context.program.place(ref))
    found = expand(fn.expr, arguments, setting)
    parts = []
    for power, expr in found.terms:
        compact, keep_v, keep_s = Fn(expr, fresh_vector, fresh_scalar).compact()
        parts.append(Piece(power, compact, keep_v, keep_s))
    return Template(tuple(parts), found.cut)


def _input_vector(node: InputVector, ref: Ref, values: list[Any], context: Context) -> Value:
    group = context.program.group[node.group]
    return Series(((ZERO, context.add(Start(node.group, node.index), group.dim)),))


def _input_matrix(node: InputMatrix, ref: Ref, values: list[Any], context: Context) -> None:
    if node.law != "gaussian":
        raise LimitError(
            f"the matrix {node.name!r} is orthogonal; the limit rules of this version cover "
            "Gaussian matrices only.",
            where=context.program.place(ref),
            hint="Run it at finite width: tp.simulate(program, widths=..., backend='dense').",
        )


def _input_scalar(node: InputScalar, ref: Ref, values: list[Any], context: Context) -> Value:
    if node.std != 0:
        return Series(((ZERO, context.add(Draw(node.name, node.value, node.std), None)),))
    return Series(((ZERO, context.number(node.value)),)) if node.value != 0 else Series(())


def _matmul(node: MatMul, ref: Ref, values: list[Any], context: Context) -> Value:
    matrix = context.program.nodes[node.matrix]
    assert isinstance(matrix, InputMatrix)
    dim = matrix.cols if node.transpose else matrix.rows
    x: Value = values[node.vector]
    if not x.terms and dim not in context.anchors:
        # The product is 0, but functions that are constant on its dimension need a vector there.
        source = context.anchors[matrix.rows if node.transpose else matrix.cols]
        context.add(Product(matrix.name, node.transpose, source), dim)
    terms = tuple(
        (power + HALF, context.add(Product(matrix.name, node.transpose, item), dim))
        for power, item in x.terms
    )
    return Series(terms, None if x.cut is None else x.cut + HALF)


def _dim(context: Context, ref: Ref) -> str:
    return context.program.types[ref].dims[0]


def _nonlin(node: Nonlin, ref: Ref, values: list[Any], context: Context) -> Value:
    pieces, cut = _expanded(
        context, node.fn, [values[r] for r in node.vectors], [values[r] for r in node.scalars], ref
    )
    dim = _dim(context, ref)
    total: dict[Fraction, LRef] = {}
    for piece in pieces:
        if not piece.vectors:  # a constant vector: keep one vector argument for the dimension
            anchor = context.anchors[dim]
            fn = Fn(piece.fn.expr, 1, piece.fn.scalars)
            total[piece.power] = context.add(Apply(fn, (anchor,), piece.scalars), dim)
        elif piece.fn.expr == Var(0):
            total[piece.power] = piece.vectors[0]
        else:
            total[piece.power] = context.add(Apply(piece.fn, piece.vectors, piece.scalars), dim)
    return Series(tuple(sorted(total.items(), key=lambda item: -item[0])), cut)


def _lincomb(node: LinComb, ref: Ref, values: list[Any], context: Context) -> Value:
    terms: dict[Fraction, dict[tuple[LRef | None, LRef], Fraction | float]] = {}
    cut: Fraction | None = None
    one: Series[LRef | None] = Series(((ZERO, None),))
    last: Fraction | None = None
    bucket: dict[tuple[LRef | None, LRef], Fraction | float] = {}
    for number, scalar, vector in zip(node.numbers, node.scalars, node.vectors, strict=True):
        if number == 0:
            continue
        s: Series[Any] = one if scalar is None else values[scalar]
        v: Value = values[vector]
        for p, coefficient in s.terms:
            factor = number
            if coefficient is not None:
                given = context.nodes[coefficient]
                if isinstance(given, Number):  # a plain number belongs to the numbers
                    factor, coefficient = number * given.value, None
            for q, item in v.terms:
                power = p + q if p and q else p or q
                if power is not last and power != last:  # most terms share one power
                    last, bucket = power, terms.setdefault(power, {})
                pair = (coefficient, item)
                known = bucket.get(pair)
                bucket[pair] = factor if known is None else known + factor
        if s.cut is not None and v.lead is not None:
            cut = larger(cut, s.cut + v.lead)
        if v.cut is not None and s.lead is not None:
            cut = larger(cut, v.cut + s.lead)
    clean = {
        power: {pair: number for pair, number in bucket.items() if number != 0}
        for power, bucket in terms.items()
    }
    kept = truncate(
        {power: bucket for power, bucket in clean.items() if bucket}, cut, context.depth
    )
    dim = _dim(context, ref)
    return Series(
        tuple((power, _combined(context, bucket, dim)) for power, bucket in kept.terms), kept.cut
    )


def _combined(
    context: Context, bucket: Mapping[tuple[LRef | None, LRef], Fraction | float], dim: str
) -> LRef:
    if len(bucket) == 1:
        ((scalar, vector), number) = next(iter(bucket.items()))
        if scalar is None and number == 1:
            return vector
    pairs = list(bucket)
    return context.add(
        Combine(
            tuple(bucket[pair] for pair in pairs),
            tuple(scalar for scalar, _ in pairs),
            tuple(vector for _, vector in pairs),
        ),
        dim,
    )


def _moment(node: Moment, ref: Ref, values: list[Any], context: Context) -> Value:
    vectors = [values[r] for r in node.vectors]
    pieces, cut = _expanded(context, node.fn, vectors, [values[r] for r in node.scalars], ref)
    dim = _dim(context, node.vectors[0])
    total: dict[Fraction, list[LRef]] = {}
    for piece in pieces:
        for power, item in _expectations(context, piece, dim):
            total.setdefault(power, []).append(item)
    sums = {power: _scalar_sum(context, items) for power, items in total.items()}
    return truncate(sums, cut, context.depth)


def _scalar_sum(context: Context, items: Sequence[LRef]) -> LRef:
    if len(items) == 1:
        return items[0]
    refs = list(dict.fromkeys(items))
    total = add(Par(refs.index(item)) for item in items)
    return context.add(ScalarApply(Fn(total, 0, len(refs)), tuple(refs)), None)


def _expectations(context: Context, piece: Piece, dim: str) -> list[tuple[Fraction, LRef]]:
    """The moment of one piece as terms (power, scalar node).

    A summand ``c u g`` with u a centred start vector on which nothing else in it depends has mean 0
    exactly and fluctuates: it is n^(-1/2) times a Gaussian, linear in g.
    """
    piece = _inlined(context, piece)
    if not any(isinstance(context.nodes[v], Start) for v in piece.vectors) and piece.vectors:
        return [(piece.power, context.add(Expect(piece.fn, piece.vectors, piece.scalars), None))]
    summands = piece.fn.expr.terms if isinstance(piece.fn.expr, Add) else (piece.fn.expr,)
    smooth: list[Expr] = []
    out: list[tuple[Fraction, LRef]] = []
    for summand in summands:
        found = _fluctuation(context, summand, piece, dim)
        if found is None:
            smooth.append(summand)
        else:
            out.append((piece.power - HALF, found))
    if smooth:
        expr = smooth[0] if len(smooth) == 1 else Add(tuple(smooth))
        fn, keep_v, keep_s = Fn(expr, piece.fn.vectors, piece.fn.scalars).compact()
        vectors = tuple(piece.vectors[i] for i in keep_v)
        scalars = tuple(piece.scalars[i] for i in keep_s)
        if not vectors:  # the moment of a constant
            node = context.add(ScalarApply(fn, scalars), None)
        else:
            node = context.add(Expect(fn, vectors, scalars), None)
        out.append((piece.power, node))
    return out


def _inlined(context: Context, piece: Piece) -> Piece:
    """The average of a vector that is a function: the function itself may show a start vector."""
    if piece.fn.expr == Var(0):
        node = context.nodes[piece.vectors[0]]
        if isinstance(node, Apply):
            return Piece(piece.power, node.fn, node.vectors, node.scalars)
    return piece


def _fluctuation(context: Context, summand: Expr, piece: Piece, dim: str) -> LRef | None:
    factors = summand.factors if isinstance(summand, Mul) else (summand,)
    for place, factor in enumerate(factors):
        if not isinstance(factor, Var):
            continue
        start = context.nodes[piece.vectors[factor.index]]
        if not isinstance(start, Start):
            continue
        group = context.program.group[start.group]
        if group.mean[start.index] != 0:
            continue
        rest = mul((*factors[:place], *factors[place + 1 :]))
        fn, keep_v, keep_s = Fn(rest, piece.fn.vectors, piece.fn.scalars).compact()
        others = tuple(piece.vectors[i] for i in keep_v)
        root = context.bit(start_root(context.program, start.group, start.index))
        if any(root & context.roots[other] for other in others):
            continue
        scalars = tuple(piece.scalars[i] for i in keep_s)
        if fn.expr == Var(0):
            argument = others[0]
        elif others:
            argument = context.add(Apply(fn, others, scalars), dim)
        else:  # u alone, times a number: a constant vector argument
            anchor = piece.vectors[factor.index]
            argument = context.add(Apply(Fn(fn.expr, 1, fn.scalars), (anchor,), scalars), dim)
        return context.add(Fluctuation(start.group, start.index, argument), None)
    return None


def _outer(node: OuterNonlin, ref: Ref, values: list[Any], context: Context) -> Value:
    refs = (*node.rows, *node.cols)
    plain = [values[r] for r in refs] + [values[r] for r in node.scalars]
    x: Value = values[node.vector]
    if x.lead is None:
        return x
    if any(value.lead != 0 or len(value.terms) != 1 for value in plain) or len(x.terms) != 1:
        raise ScaleError(
            "an outer function of vectors that are not of order one as written.",
            where=context.program.place(ref),
            hint="Write the powers of n so that its arguments are of order one.",
        )
    cut: Fraction | None = x.cut
    for value in plain:
        cut = larger(cut, None if value.cut is None else value.cut + x.terms[0][0])
    rows, cols = len(node.rows), len(node.cols)
    items = [value.terms[0][1] for value in plain]
    made = OuterExpect(
        node.fn,
        tuple(items[:rows]),
        tuple(items[rows : rows + cols]),
        tuple(items[rows + cols :]),
        x.terms[0][1],
    )
    return Series(((x.terms[0][0], context.add(made, _dim(context, ref))),), cut)


def _scalar_fn(node: ScalarFn, ref: Ref, values: list[Any], context: Context) -> Value:
    pieces, cut = _expanded(context, node.fn, [], [values[r] for r in node.scalars], ref)
    terms = []
    for piece in pieces:
        if piece.fn.expr == Par(0):
            item = piece.scalars[0]
        elif isinstance(piece.fn.expr, Const):
            item = context.number(piece.fn.expr.value)
        else:
            item = context.add(ScalarApply(piece.fn, piece.scalars), None)
        terms.append((piece.power, item))
    return Series(tuple(terms), cut)


def _scale(node: Scale, ref: Ref, values: list[Any], context: Context) -> Value:
    if node.depth_power.terms:
        raise ScaleError(
            f"L^({node.depth_power}) in front of a node: the limit of the depth is not taken.",
            where=context.program.place(ref),
            hint="Write the number of layers as a number.",
        )
    value: Value = values[node.of]
    return value.shift(node.n_power.at(context.values))


_TABLE: dict[type, Callable[[Any, Ref, list[Any], Context], Any]] = {
    InputVector: _input_vector,
    InputMatrix: _input_matrix,
    InputScalar: _input_scalar,
    MatMul: _matmul,
    Nonlin: _nonlin,
    LinComb: _lincomb,
    Moment: _moment,
    OuterNonlin: _outer,
    ScalarFn: _scalar_fn,
    Scale: _scale,
}

LIMIT_RULES: Rules[Any, Context] = Rules("limit", _TABLE)
