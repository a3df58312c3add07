"""``derive``: Program -> LimitGraph, by the Master Theorem with the powers of n taken out.

Every node of the program gets a ``Series`` in n whose coefficients are limit-graph nodes. Nothing
is dropped except by its explicit power, and what was dropped is remembered (``Series.cut``), so an
answer that depends on it is refused or derived again with more terms, never silently wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from tpcalc.errors import LimitError, ScaleError
from tpcalc.functions import Const, Expr, Fn, Par, Var, const
from tpcalc.functions.expr import Add, Mul, mul
from tpcalc.limit.graph import (
    Apply,
    Combine,
    Draw,
    Expect,
    Fluctuation,
    LimitGraph,
    LNode,
    LRef,
    Number,
    OuterExpect,
    Product,
    ScalarApply,
    Start,
    Target,
    graph_refs,
)
from tpcalc.limit.series import NeedsMore, Series, expand, larger, truncate
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
    Scale,
    ScalarFn,
)
from tpcalc.program.program import Program
from tpcalc.program.rules import Rules, interpret

__all__ = ["LIMIT_RULES", "derive"]

HALF, ZERO = Fraction(1, 2), Fraction(0)
Value = Series[LRef]
_DEPTHS = (ZERO, HALF)


def derive(program: Program, values: Mapping[str, Fraction] | None = None) -> LimitGraph:
    """The limit graph of a program.

    Args:
        program: The program; all its outputs are derived.
        values: Numbers for the symbols in exponents.

    Returns:
        The graph, with for each output the power of n it carries and its node.

    Raises:
        ScaleError: A vector that is not of order one enters a function that is not a polynomial,
            or a scalar grows with n.
        LimitError: A rule is missing (orthogonal matrices), or first-order terms are not enough.

    Source: Hajjar, Chizat, Giraud, Theorem B.1 (Yang's Master Theorem), for the rules.
    """
    for depth in _DEPTHS:
        context = _Context(program, depth, dict(values or {}))
        try:
            found = interpret(program, LIMIT_RULES, context)
            targets = tuple(
                (name, context.target(found[ref], name)) for name, ref in program.outputs
            )
        except NeedsMore:
            continue
        return context.finish(targets)
    raise LimitError(
        "an output depends on terms that are smaller by n^(-1) or more than the leading ones, "
        "which this version does not expand.",
        hint="Check the powers of n; run the program at finite width with tp.simulate.",
    )


@dataclass
class _Context:
    """The graph under construction."""

    program: Program
    depth: Fraction
    values: dict[str, Fraction]
    nodes: list[LNode] = field(default_factory=list)
    dims: list[str | None] = field(default_factory=list)
    roots: list[frozenset[str]] = field(default_factory=list)
    known: dict[LNode, LRef] = field(default_factory=dict)
    templates: dict[object, Series[Expr]] = field(default_factory=dict)

    def add(self, node: LNode, dim: str | None) -> LRef:
        found = self.known.get(node)
        if found is not None:
            return found
        self.nodes.append(node)
        self.dims.append(dim)
        self.roots.append(self._roots(node))
        self.known[node] = len(self.nodes) - 1
        return len(self.nodes) - 1

    def _roots(self, node: LNode) -> frozenset[str]:
        """Names of all random inputs that the finite-width value of a node depends on."""
        out: frozenset[str] = frozenset().union(*(self.roots[ref] for ref in graph_refs(node)))
        if isinstance(node, Start):
            return out | {_start_root(self.program, node.group, node.index)}
        if isinstance(node, Product):
            return out | {f"matrix {node.matrix}"}
        if isinstance(node, Fluctuation):
            return out | {_start_root(self.program, node.group, node.index)}
        return out | {f"scalar {node.name}"} if isinstance(node, Draw) else out

    def number(self, value: Fraction | float) -> LRef:
        return self.add(Number(value), None)

    def target(self, value: Any, name: str) -> Target:
        if value is None:
            raise LimitError("a matrix cannot be an output.", where=name)
        lead = value.leading()
        if lead is None:
            return Target(ZERO, None)
        power, node = lead
        if self.dims[node] is None and power > 0:
            raise ScaleError(
                f"the scalar {name} grows like n^({power}) as its powers of n are written, unless "
                "its moment vanishes.",
                where=self.program.place(self.program.ref(name)),
                hint="Check the powers of n (learning-rate exponents included).",
            )
        return Target(power, node)

    def finish(self, targets: tuple[tuple[str, Target], ...]) -> LimitGraph:
        """Keep what the outputs need."""
        needed = [False] * len(self.nodes)
        for _, target in targets:
            # A scalar that vanishes by its power needs no number.
            if target.node is not None and not (
                self.dims[target.node] is None and target.power < 0
            ):
                needed[target.node] = True
        for ref in range(len(self.nodes) - 1, -1, -1):
            if needed[ref]:
                for other in graph_refs(self.nodes[ref]):
                    needed[other] = True
        new: dict[LRef, LRef] = {}
        nodes: list[LNode] = []
        dims: list[str | None] = []
        for ref, node in enumerate(self.nodes):
            if needed[ref]:
                new[ref] = len(nodes)
                nodes.append(_renamed(node, new))
                dims.append(self.dims[ref])
        kept = tuple(
            (name, Target(t.power, None if t.node is None else new.get(t.node)))
            for name, t in targets
        )
        matrices = tuple(
            (node.name, node.rows, node.cols)
            for node in self.program.nodes
            if isinstance(node, InputMatrix)
        )
        return LimitGraph(
            tuple(nodes), kept, tuple(dims), self.program.dims, self.program.groups, matrices
        )


def _start_root(program: Program, group: str, index: int) -> str:
    """Members of a group with a covariance count as one random input."""
    return f"start {group}" if program.group[group].cov is not None else f"start {group} {index}"


def _renamed(node: LNode, new: Mapping[LRef, LRef]) -> LNode:
    from dataclasses import replace

    if isinstance(node, Product | Fluctuation):
        return replace(node, vector=new[node.vector])
    if isinstance(node, Apply | Expect):
        return replace(
            node,
            vectors=tuple(new[ref] for ref in node.vectors),
            scalars=tuple(new[ref] for ref in node.scalars),
        )
    if isinstance(node, Combine):
        return replace(
            node,
            scalars=tuple(None if ref is None else new[ref] for ref in node.scalars),
            vectors=tuple(new[ref] for ref in node.vectors),
        )
    if isinstance(node, OuterExpect):
        return replace(
            node,
            rows=tuple(new[ref] for ref in node.rows),
            cols=tuple(new[ref] for ref in node.cols),
            scalars=tuple(new[ref] for ref in node.scalars),
            vector=new[node.vector],
        )
    if isinstance(node, ScalarApply):
        return replace(node, scalars=tuple(new[ref] for ref in node.scalars))
    return node


@dataclass(frozen=True, slots=True)
class _Piece:
    """A term of an expanded function: an expression over the listed limit nodes."""

    power: Fraction
    fn: Fn
    vectors: tuple[LRef, ...]
    scalars: tuple[LRef, ...]


def _expanded(
    context: _Context, fn: Fn, vectors: Sequence[Value], scalars: Sequence[Value], ref: Ref
) -> tuple[list[_Piece], Fraction | None]:
    """Substitute series into a function; one template serves all arguments of the same shape."""
    shape = tuple(
        (tuple(power for power, _ in value.terms), value.cut) for value in (*vectors, *scalars)
    )
    key = (fn, shape)
    found = context.templates.get(key)
    if found is None:
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
        place = context.program.place(ref)
        found = expand(fn.expr, arguments, context.depth, where=place)
        context.templates[key] = found
    all_vectors = tuple(node for value in vectors for _, node in value.terms)
    all_scalars = tuple(node for value in scalars for _, node in value.terms)
    pieces = []
    for power, expr in found.terms:
        compact, keep_v, keep_s = Fn(expr, len(all_vectors), len(all_scalars)).compact()
        pieces.append(
            _Piece(
                power,
                compact,
                tuple(all_vectors[i] for i in keep_v),
                tuple(all_scalars[i] for i in keep_s),
            )
        )
    return pieces, found.cut


def _input_vector(node: InputVector, ref: Ref, values: list[Any], context: _Context) -> Value:
    group = context.program.group[node.group]
    return Series(((ZERO, context.add(Start(node.group, node.index), group.dim)),))


def _input_matrix(node: InputMatrix, ref: Ref, values: list[Any], context: _Context) -> None:
    if node.law != "gaussian":
        raise LimitError(
            f"the matrix {node.name!r} is orthogonal; the limit rules of this version cover "
            "Gaussian matrices only.",
            where=context.program.place(ref),
            hint="Run it at finite width: tp.simulate(program, widths=..., backend='dense').",
        )


def _input_scalar(node: InputScalar, ref: Ref, values: list[Any], context: _Context) -> Value:
    if node.std != 0:
        return Series(((ZERO, context.add(Draw(node.name, node.value, node.std), None)),))
    return Series(((ZERO, context.number(node.value)),)) if node.value != 0 else Series(())


def _matmul(node: MatMul, ref: Ref, values: list[Any], context: _Context) -> Value:
    matrix = context.program.nodes[node.matrix]
    assert isinstance(matrix, InputMatrix)
    dim = matrix.cols if node.transpose else matrix.rows
    x: Value = values[node.vector]
    terms = tuple(
        (power + HALF, context.add(Product(matrix.name, node.transpose, item), dim))
        for power, item in x.terms
    )
    return Series(terms, None if x.cut is None else x.cut + HALF)


def _dim(context: _Context, ref: Ref) -> str:
    return context.program.types[ref].dims[0]


def _nonlin(node: Nonlin, ref: Ref, values: list[Any], context: _Context) -> Value:
    pieces, cut = _expanded(
        context, node.fn, [values[r] for r in node.vectors], [values[r] for r in node.scalars], ref
    )
    dim = _dim(context, ref)
    total: dict[Fraction, LRef] = {}
    for piece in pieces:
        if not piece.vectors:  # a constant vector: keep one vector argument for the dimension
            anchor = next((item for r in node.vectors for _, item in values[r].terms), None)
            if anchor is None:
                raise LimitError(
                    f"{node.fn.text} of vectors that are identically 0 is a constant vector.",
                    where=context.program.place(ref),
                    hint="Write the constant as a scalar.",
                )
            fn = Fn(piece.fn.expr, 1, piece.fn.scalars)
            total[piece.power] = context.add(Apply(fn, (anchor,), piece.scalars), dim)
        elif piece.fn.expr == Var(0):
            total[piece.power] = piece.vectors[0]
        else:
            total[piece.power] = context.add(Apply(piece.fn, piece.vectors, piece.scalars), dim)
    return Series(tuple(sorted(total.items(), key=lambda item: -item[0])), cut)


def _lincomb(node: LinComb, ref: Ref, values: list[Any], context: _Context) -> Value:
    terms: dict[Fraction, dict[tuple[LRef | None, LRef], Fraction | float]] = {}
    cut: Fraction | None = None
    one: Series[LRef | None] = Series(((ZERO, None),))
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
                bucket = terms.setdefault(p + q, {})
                pair = (coefficient, item)
                bucket[pair] = bucket.get(pair, Fraction(0)) + factor
        if s.cut is not None and v.lead is not None:
            cut = larger(cut, s.cut + v.lead)
        if v.cut is not None and s.lead is not None:
            cut = larger(cut, v.cut + s.lead)
    clean = {
        power: {pair: number for pair, number in bucket.items() if number != 0}
        for power, bucket in terms.items()
    }
    kept = truncate({power: bucket for power, bucket in clean.items() if bucket}, cut, context.depth)
    dim = _dim(context, ref)
    return Series(
        tuple((power, _combined(context, bucket, dim)) for power, bucket in kept.terms), kept.cut
    )


def _combined(
    context: _Context, bucket: Mapping[tuple[LRef | None, LRef], Fraction | float], dim: str
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


def _moment(node: Moment, ref: Ref, values: list[Any], context: _Context) -> Value:
    vectors = [values[r] for r in node.vectors]
    pieces, cut = _expanded(context, node.fn, vectors, [values[r] for r in node.scalars], ref)
    dim = _dim(context, node.vectors[0])
    total: dict[Fraction, list[tuple[LRef | None, LRef | None]]] = {}
    for piece in pieces:
        for power, scalar, item in _expectations(context, piece, dim):
            total.setdefault(power, []).append((scalar, item))
    sums = {power: _scalar_sum(context, items) for power, items in total.items()}
    return truncate(sums, cut, context.depth)


def _scalar_sum(context: _Context, items: Sequence[tuple[LRef | None, LRef | None]]) -> LRef:
    """Sum of products (coefficient node or None) * (scalar node or None)."""
    refs: list[LRef] = []
    total: Expr = const(0)
    for pair in items:
        term: Expr = const(1)
        for item in pair:
            if item is not None:
                if item not in refs:
                    refs.append(item)
                term = term * Par(refs.index(item))
        total = total + term
    if total == Par(0):
        return refs[0]
    return context.add(ScalarApply(Fn(total, 0, len(refs)), tuple(refs)), None)


def _expectations(
    context: _Context, piece: _Piece, dim: str
) -> list[tuple[Fraction, LRef | None, LRef | None]]:
    """The moment of one piece as terms (power, coefficient, scalar node).

    A summand ``c u g`` with u a centred start vector on which nothing else in it depends has mean 0
    exactly and fluctuates: it is n^(-1/2) times a Gaussian, linear in g.
    """
    summands = piece.fn.expr.terms if isinstance(piece.fn.expr, Add) else (piece.fn.expr,)
    smooth: list[Expr] = []
    out: list[tuple[Fraction, LRef | None, LRef | None]] = []
    for summand in summands:
        found = _fluctuation(context, summand, piece, dim)
        if found is None:
            smooth.append(summand)
        else:
            out.append((piece.power - HALF, *found))
    if smooth:
        expr = smooth[0] if len(smooth) == 1 else Add(tuple(smooth))
        fn, keep_v, keep_s = Fn(expr, piece.fn.vectors, piece.fn.scalars).compact()
        vectors = tuple(piece.vectors[i] for i in keep_v)
        scalars = tuple(piece.scalars[i] for i in keep_s)
        if not vectors:  # the moment of a constant
            node = context.add(ScalarApply(fn, scalars), None)
        else:
            node = context.add(Expect(fn, vectors, scalars), None)
        out.append((piece.power, None, node))
    return out


def _fluctuation(
    context: _Context, summand: Expr, piece: _Piece, dim: str
) -> tuple[LRef | None, LRef] | None:
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
        root = _start_root(context.program, start.group, start.index)
        if any(root in context.roots[other] for other in others):
            continue
        scalars = tuple(piece.scalars[i] for i in keep_s)
        if fn.expr == Var(0):
            argument = others[0]
        elif others:
            argument = context.add(Apply(fn, others, scalars), dim)
        else:  # u alone, times a number: a constant vector argument
            anchor = piece.vectors[factor.index]
            argument = context.add(Apply(Fn(fn.expr, 1, fn.scalars), (anchor,), scalars), dim)
        return None, context.add(Fluctuation(start.group, start.index, argument), None)
    return None


def _outer(node: OuterNonlin, ref: Ref, values: list[Any], context: _Context) -> Value:
    refs = (*node.rows, *node.cols)
    plain = [values[r] for r in refs] + [values[r] for r in node.scalars]
    x: Value = values[node.vector]
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


def _scalar_fn(node: ScalarFn, ref: Ref, values: list[Any], context: _Context) -> Value:
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


def _scale(node: Scale, ref: Ref, values: list[Any], context: _Context) -> Value:
    if node.depth_power.terms:
        raise ScaleError(
            f"L^({node.depth_power}) in front of a node: the limit of the depth is not taken.",
            where=context.program.place(ref),
            hint="Write the number of layers as a number.",
        )
    value: Value = values[node.of]
    return value.shift(node.n_power.at(context.values))


_TABLE: dict[type, Callable[[Any, Ref, list[Any], _Context], Any]] = {
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

LIMIT_RULES: Rules[Any, _Context] = Rules("limit", _TABLE)
