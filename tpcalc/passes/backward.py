"""Backward pass: reverse-mode differentiation of scalars of a program.

Adjoints are true gradients with respect to coordinates: the adjoint of a vector is d f / d x_a for
each a, so a moment contributes a factor 1/(size) with its power of n written out.

Of a block the adjoint is one for each cell. It may lack an axis of the block, along which it is
then constant; what an operand does not vary along is summed, so that a gradient is never larger
than what it is a gradient of.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import prod
from typing import Any

from tpcalc.errors import LimitError, NotDifferentiable
from tpcalc.exponents import as_ex
from tpcalc.functions import Fn, Par, Var
from tpcalc.functions.expr import Expr, add, const, mul
from tpcalc.functions.fn import product
from tpcalc.functions.numbers import Number
from tpcalc.passes.sums import Term, cell, ratio, total
from tpcalc.program.base import Table, reached, references
from tpcalc.program.nodes import (
    Data,
    Input,
    Kind,
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
from tpcalc.program.program import Builder
from tpcalc.program.rules import Level, Rules
from tpcalc.program.types import Axes


@dataclass(frozen=True)
class Gradients:
    """Gradients of a scalar."""

    # for each matrix the pairs (row vector r, column vector c) whose outer products r c^T add up to
    # its gradient, summed over the finite axes that the matrix lacks
    matrices: Mapping[Ref, tuple[tuple[Ref, Ref], ...]]
    # for each vector or scalar node that the scalar depends on, its gradient node
    adjoints: Mapping[Ref, Ref]

    def of(self, ref: Ref) -> tuple[tuple[Ref, Ref], ...] | Ref | None:
        """The gradient by a node, a matrix or not; None: there is none."""
        return self.matrices.get(ref) or self.adjoints.get(ref)


@dataclass
class _Sweep:
    builder: Builder
    active: Sequence[bool]
    vector_terms: dict[Ref, list[Term]] = field(default_factory=lambda: defaultdict(list))
    scalar_terms: dict[Ref, list[Ref | None]] = field(default_factory=lambda: defaultdict(list))
    matrices: dict[Ref, list[tuple[Ref, Ref]]] = field(default_factory=lambda: defaultdict(list))

    def axes(self, *refs: Ref | None) -> Axes:
        """The finite axes of what is computed of nodes."""
        return tuple(
            {pair: None for ref in refs if ref is not None for pair in self.builder.type(ref).axes}
        )

    def lost(self, own: Axes, parts: Axes, region: Axes) -> tuple[tuple[str, ...], int]:
        """The axes of a region that an operand lacks: those to sum over, and how often the rest."""
        kept, held = dict(own), dict(parts)
        over = tuple(name for name, _ in region if name not in kept and name in held)
        return over, prod(k for name, k in region if name not in kept and name not in held)

    def summed(self, item: Ref | None, axes: Axes) -> tuple[Ref | None, int]:
        """Something summed over those of some axes that it has, and how many cells the rest are."""
        held = dict(self.axes(item))
        over = tuple(name for name, _ in axes if name in held)
        if item is not None and over:
            item = self.builder.add(LinComb((Fraction(1),), (None,), (item,), (over,)))
        return item, prod(size for name, size in axes if name not in held)

    def cell(self, item: Ref | None, axis: str, place: int) -> Ref | None:
        """A cell of something along an axis; what lacks the axis is the same in every cell."""
        return None if item is None else cell(self.builder, item, axis, place)

    def to_vector(
        self,
        ref: Ref,
        number: Fraction | float,
        scalar: Ref | None,
        item: Ref,
        region: Axes,
    ) -> None:
        if self.active[ref]:
            over, times = self.lost(self.axes(ref), self.axes(scalar, item), region)
            self.vector_terms[ref].append((number * times, scalar, item, over))

    def to(self, ref: Ref, item: Ref | None, region: Axes) -> None:
        """Add to the adjoint of a vector or scalar; None is the number 1."""
        if self.builder.type(ref).kind is Kind.SCALAR:
            self.to_scalar(ref, item, region)
        else:
            assert item is not None, "the number 1 is no vector"
            self.to_vector(ref, Fraction(1), None, item, region)

    def to_scalar(self, ref: Ref, item: Ref | None, region: Axes) -> None:
        if not self.active[ref]:
            return
        over, times = self.lost(self.axes(ref), self.axes(item), region)
        if over:
            assert item is not None, "the number 1 has no axes"
            item = self.builder.add(LinComb((Fraction(times),), (None,), (item,), (over,)))
        elif times != 1:
            item = self.product(Fraction(times), item)
        self.scalar_terms[ref].append(item)

    def vector_adjoint(self, ref: Ref) -> Ref | None:
        terms = self.vector_terms.get(ref)
        return total(self.builder, terms) if terms else None

    def scalar_adjoint(self, ref: Ref) -> tuple[bool, Ref | None]:
        """(whether there is one, its node; None for the number 1)."""
        terms = self.scalar_terms.get(ref)
        if not terms:
            return False, None
        if len(terms) == 1:
            return True, terms[0]
        refs = tuple(term for term in terms if term is not None)
        ones = len(terms) - len(refs)
        total = add((const(ones), *(Par(i) for i in range(len(refs)))))
        return True, self.builder.add(Nonlin(Fn(total, 0, len(refs)), (), refs))

    def product(self, number: Number, *factors: Ref | None) -> Ref:
        """A number times scalars; None stands for the number 1."""
        refs = tuple(factor for factor in factors if factor is not None)
        if number == 1 and len(refs) == 1:
            return refs[0]
        expr = mul((const(number), *(Par(index) for index in range(len(refs)))))
        return self.builder.add(Nonlin(Fn(expr, 0, len(refs)), (), refs))

    def total(self, fn: Fn, vectors: tuple[Ref, ...], scalars: tuple[Ref, ...]) -> Ref:
        """The sum over coordinates: size times moment."""
        fn, keep_v, keep_s = fn.compact()
        if not keep_v:
            keep_v, fn = (0,), Fn(fn.expr, 1, fn.scalars)
        moment = self.builder.add(
            Moment(fn, tuple(vectors[i] for i in keep_v), tuple(scalars[i] for i in keep_s))
        )
        return self.builder.add(
            Scale(self.product(ratio(self.builder, vectors[0]), moment), as_ex(1))
        )

    def apply(self, fn: Fn, vectors: tuple[Ref, ...], scalars: tuple[Ref, ...]) -> Ref | None:
        """A coordinatewise function; None where it is identically 0."""
        if fn.is_zero:
            return None
        compact, keep_v, keep_s = fn.compact()
        if compact.expr == Var(0):
            return vectors[keep_v[0]]
        if not keep_v:
            keep_v, compact = (0,), Fn(compact.expr, 1, compact.scalars)
        return self.builder.add(
            Nonlin(compact, tuple(vectors[i] for i in keep_v), tuple(scalars[i] for i in keep_s))
        )


def backward(
    builder: Builder,
    outputs: Sequence[tuple[Ref, Ref | None]],
    parameters: Sequence[Ref],
    given: Container[Ref] = (),
) -> Gradients:
    """Append the gradient of sum_k seed_k * output_k to a program.

    Given nodes do not depend on the parameters, but for these themselves.

    Source: Hajjar, Chizat, Giraud, equations (2.3) and Appendix A, derived here for any program.
    """
    wanted = set(parameters)
    order, active = _below(builder, (ref for ref, _ in outputs), wanted, given)
    sweep = _Sweep(builder, active)
    for output, seed in outputs:
        sweep.to_scalar(output, seed, builder.type(output).axes)
    adjoints: dict[Ref, Ref] = {}
    for ref in reversed(order):
        if not active[ref]:
            continue
        kind = builder.type(ref).kind
        if kind is Kind.MATRIX:
            continue
        line = builder.line = builder.line_of(ref)
        if kind is Kind.VECTOR:
            adjoint = sweep.vector_adjoint(ref)
            found = adjoint is not None
        else:
            found, adjoint = sweep.scalar_adjoint(ref)
        if not found:
            continue
        if adjoint is not None:
            adjoints[ref] = adjoint
        elif ref in wanted:  # a gradient that is the number 1
            adjoints[ref] = sweep.product(1)
        node = builder.node(ref)
        try:
            BACKWARD_RULES.rule(type(node), f"%{ref}")(node, ref, [adjoint], sweep)
        except NotDifferentiable as error:
            raise NotDifferentiable(
                error.message,
                where=f"%{ref}{f' at {line}' if line else ''} in a backward pass",
                hint=error.hint,
            ) from None
    builder.line = None
    matrices = {ref: tuple(pairs) for ref, pairs in sweep.matrices.items()}
    return Gradients(matrices, adjoints)


def _below(
    builder: Builder, tops: Iterable[Ref], wanted: Container[Ref], given: Container[Ref]
) -> tuple[list[Ref], list[bool]]:
    """What outputs are made of, in order, and of all nodes whether they rest on a parameter."""

    def below(ref: Ref) -> tuple[Ref, ...]:
        return references(builder.node(ref)) if ref not in given else ()

    order, active = sorted(reached(tops, below)), [False] * len(builder)
    for ref in order:
        active[ref] = ref in wanted or any(active[r] for r in below(ref))
    return order, active


def _leaf(node: Any, ref: Ref, adjoint: list[Any], sweep: _Sweep) -> None:
    """Inputs: nothing before them."""


def _matmul(node: MatMul, ref: Ref, adjoint: list[Any], sweep: _Sweep) -> None:
    bar: Ref = adjoint[0]
    region = sweep.builder.type(ref).axes
    if sweep.active[node.matrix]:
        pair = (node.vector, bar) if node.transpose else (bar, node.vector)
        sweep.matrices[node.matrix].append(pair)
    if sweep.active[node.vector]:
        back = sweep.builder.add(MatMul(node.matrix, bar, not node.transpose))
        sweep.to_vector(node.vector, Fraction(1), None, back, region)


def _rename(node: Rename, ref: Ref, adjoint: list[Any], sweep: _Sweep) -> None:
    bar: Ref | None = adjoint[0]
    held = {name for name, _ in sweep.axes(bar)}
    names = tuple((new, old) for old, new in node.names if new in held)
    if bar is not None and names:
        bar = sweep.builder.add(Rename(bar, names))
    sweep.to(node.of, bar, sweep.builder.type(node.of).axes)


def _stack(node: Stack, ref: Ref, adjoint: list[Any], sweep: _Sweep) -> None:
    builder = sweep.builder
    bar: Ref | None = adjoint[0]
    for place, of in enumerate(node.of):
        if not sweep.active[of]:
            continue
        own = sweep.cell(bar, node.axis, place)
        region = tuple(pair for pair in builder.type(ref).axes if pair[0] != node.axis)
        sweep.to(of, own, region)


def _nonlin(node: Nonlin, ref: Ref, adjoint: list[Any], sweep: _Sweep) -> None:
    _through(node, adjoint[0], sweep, sweep.builder.type(ref).axes)


def _through(node: Nonlin, bar: Any, sweep: _Sweep, region: Axes) -> None:
    """A function of vectors, or of scalars alone."""
    if not node.vectors:
        _scalar_fn(node, bar, sweep, region)
        return
    carry = Fn(Var(0), 1)
    for index, vector in enumerate(node.vectors):
        if sweep.active[vector]:
            item = sweep.apply(
                product(carry, node.fn.by(index)), (bar, *node.vectors), node.scalars
            )
            if item is not None:
                sweep.to_vector(vector, Fraction(1), None, item, region)
    for index, scalar in enumerate(node.scalars):
        if sweep.active[scalar]:
            slope = product(carry, node.fn.by_scalar(index))
            if not slope.is_zero:
                item = sweep.total(slope, (bar, *node.vectors), node.scalars)
                sweep.to_scalar(scalar, item, region)


def _rows(node: RowNonlin, ref: Ref, adjoint: list[Any], sweep: _Sweep) -> None:
    """Of what a row gives, its adjoint, and the sum of their products along the row."""
    builder, type_ = sweep.builder, sweep.builder.type(ref)
    if dict(type_.axes)[node.along] == 1:
        return  # the only cell of a row is a constant
    bar = sweep.product(1) if adjoint[0] is None else adjoint[0]
    wide = type_.kind is Kind.VECTOR
    slots: list[Expr] = [(Var if wide else Par)(k) for k in range(3)]

    def made(expr: Expr, *refs: Ref) -> Ref:
        fn = Fn(expr, len(refs)) if wide else Fn(expr, 0, len(refs))
        return builder.add(Nonlin(fn, *((refs, ()) if wide else ((), refs))))

    parts = made(slots[0] * slots[1], ref, bar)
    total = builder.add(LinComb((Fraction(1),), (None,), (parts,), ((node.along,),)))
    own = made(node.row.adjoint(slots[0], slots[1], slots[2]), ref, bar, total)
    sweep.to(node.of, own, type_.axes)


def _lincomb(node: LinComb, ref: Ref, adjoint: list[Any], sweep: _Sweep) -> None:
    bar: Ref | None = adjoint[0]
    result = sweep.builder.type(ref)
    for number, scalar, vector, summed in node.terms:
        inner = tuple(pair for pair in sweep.axes(scalar, vector) if pair[0] in summed)
        outer = tuple(pair for pair in result.axes if pair[0] not in summed)
        # The result may have an axis with a name that the term is summed over: other cells.
        own, times = sweep.summed(bar, tuple(pair for pair in result.axes if pair[0] in summed))
        number, region = number * times, (*outer, *inner)
        if result.kind is Kind.SCALAR:
            _product(number, [scalar, vector], own, region, sweep)
            continue
        assert own is not None
        sweep.to_vector(vector, number, scalar, own, region)
        if scalar is not None and sweep.active[scalar]:
            pair = Fn(const(number) * Var(0) * Var(1), 2)
            sweep.to_scalar(scalar, sweep.total(pair, (vector, own), ()), region)


def _product(
    number: Number, factors: list[Ref | None], bar: Ref | None, region: Axes, sweep: _Sweep
) -> None:
    """A term of a combination of scalars: each factor gets the others times the adjoint."""
    for place, factor in enumerate(factors):
        if factor is None or not sweep.active[factor]:
            continue
        others = (*factors[:place], *factors[place + 1 :], bar)
        refs = [other for other in others if other is not None]
        over, times = sweep.lost(sweep.axes(factor), sweep.axes(*refs), region)
        if over and len(refs) == 2 and _IS_GIVEN(sweep.builder.node(refs[0])):
            # Where given numbers choose cells, the sum chooses them back: no product of all cells.
            terms = (number * times,), (refs[0],), (refs[1],), (over,)
            sweep.scalar_terms[factor].append(sweep.builder.add(LinComb(*terms)))
        else:
            sweep.to_scalar(factor, sweep.product(number, *others), region)


_IS_GIVEN: Table[bool] = Table({Data: lambda node: True}, lambda node: False)


def _moment(node: Moment, ref: Ref, adjoint: list[Any], sweep: _Sweep) -> None:
    bar: Ref | None = adjoint[0]
    share, region = 1 / ratio(sweep.builder, node.vectors[0]), sweep.builder.type(ref).axes
    for index, vector in enumerate(node.vectors):
        if sweep.active[vector]:
            item = sweep.apply(node.fn.by(index), node.vectors, node.scalars)
            if item is not None:
                small = sweep.builder.add(Scale(item, as_ex(-1)))
                sweep.to_vector(vector, share, bar, small, region)
    for index, scalar in enumerate(node.scalars):
        if sweep.active[scalar]:
            slope = node.fn.by_scalar(index)
            if not slope.is_zero:
                item = sweep.builder.add(Moment(slope, node.vectors, node.scalars))
                sweep.to_scalar(scalar, sweep.product(1, bar, item), region)


def _scalar_fn(node: Nonlin, bar: Ref | None, sweep: _Sweep, region: Axes) -> None:
    for index, scalar in enumerate(node.scalars):
        if sweep.active[scalar]:
            slope = node.fn.by_scalar(index)
            if slope.is_zero:
                continue
            expr: Expr = slope.expr
            refs = node.scalars
            if bar is not None:
                expr, refs = expr * Par(slope.scalars), (*node.scalars, bar)
            item = sweep.builder.add(Nonlin(Fn(expr, 0, len(refs)), (), refs))
            sweep.to_scalar(scalar, item, region)


def _scale(node: Scale, ref: Ref, adjoint: list[Any], sweep: _Sweep) -> None:
    # A product of one factor is the factor, also where that is a vector.
    item = sweep.builder.add(Scale(sweep.product(1, adjoint[0]), node.n_power, node.depth_power))
    sweep.to(node.of, item, sweep.builder.type(ref).axes)


_TABLE: dict[type, Callable[[Any, Ref, list[Any], _Sweep], None]] = {
    Data: _leaf,
    Input: _leaf,
    Rename: _rename,
    Stack: _stack,
    MatMul: _matmul,
    Nonlin: _nonlin,
    RowNonlin: _rows,
    LinComb: _lincomb,
    Moment: _moment,
    Scale: _scale,
}

BACKWARD_RULES: Rules[Any, _Sweep] = Rules(
    "backward",
    _TABLE,
    gaps={
        OuterNonlin: "a backward pass through an outer function (an entrywise optimizer's update): "
        "differentiate the forward pass, before updates are applied.",
    },
    refusal=LimitError,
    level=Level.BLOCKS,
)
