"""Backward pass: reverse-mode differentiation of scalars of a program.

Adjoints are true gradients with respect to coordinates: the adjoint of a vector is d f / d x_a for
each a, so a moment contributes a factor 1/(size) with its power of n written out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from tpcalc.errors import LimitError, NotDifferentiable
from tpcalc.functions import Fn, Par, Var
from tpcalc.functions.expr import Expr, add, const
from tpcalc.functions.fn import product
from tpcalc.orders import as_ex
from tpcalc.program.base import references
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
    Scale,
)
from tpcalc.program.program import Builder
from tpcalc.program.rules import Rules

__all__ = ["BACKWARD_RULES", "Gradients", "backward"]

Term = tuple[Fraction | float, Ref | None, Ref]


@dataclass(frozen=True)
class Gradients:
    """Gradients of a scalar.

    Args:
        matrices: For each matrix the pairs (row vector r, column vector c) whose outer products
            r c^T add up to its gradient.
        adjoints: For each vector or scalar node that the scalar depends on, its gradient node.
    """

    matrices: Mapping[Ref, tuple[tuple[Ref, Ref], ...]]
    adjoints: Mapping[Ref, Ref]


@dataclass
class _Sweep:
    builder: Builder
    active: Sequence[bool]
    vector_terms: dict[Ref, list[Term]] = field(default_factory=lambda: defaultdict(list))
    scalar_terms: dict[Ref, list[Ref | None]] = field(default_factory=lambda: defaultdict(list))
    matrices: dict[Ref, list[tuple[Ref, Ref]]] = field(default_factory=lambda: defaultdict(list))

    def ratio(self, vector: Ref) -> Fraction:
        return self.builder.dim_of(self.builder.type(vector).width[0]).ratio

    def to_vector(self, ref: Ref, number: Fraction | float, scalar: Ref | None, item: Ref) -> None:
        if self.active[ref]:
            self.vector_terms[ref].append((number, scalar, item))

    def to_scalar(self, ref: Ref, item: Ref | None) -> None:
        if self.active[ref]:
            self.scalar_terms[ref].append(item)

    def vector_adjoint(self, ref: Ref) -> Ref | None:
        terms = self.vector_terms.get(ref)
        if not terms:
            return None
        if len(terms) == 1 and terms[0][0] == 1 and terms[0][1] is None:
            return terms[0][2]
        numbers, scalars, vectors = zip(*terms, strict=True)
        return self.builder.add(LinComb(numbers, scalars, vectors))

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

    def times(self, left: Ref | None, right: Ref) -> Ref:
        if left is None:
            return right
        return self.builder.add(Nonlin(Fn(Par(0) * Par(1), 0, 2), (), (left, right)))

    def total(self, fn: Fn, vectors: tuple[Ref, ...], scalars: tuple[Ref, ...]) -> Ref:
        """The sum over coordinates: size times moment."""
        fn, keep_v, keep_s = fn.compact()
        if not keep_v:
            keep_v, fn = (0,), Fn(fn.expr, 1, fn.scalars)
        moment = self.builder.add(
            Moment(fn, tuple(vectors[i] for i in keep_v), tuple(scalars[i] for i in keep_s))
        )
        ratio = self.ratio(vectors[0])
        if ratio != 1:
            moment = self.builder.add(Nonlin(Fn(Par(0) * const(ratio), 0, 1), (), (moment,)))
        return self.builder.add(Scale(moment, as_ex(1)))

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
) -> Gradients:
    """Append the gradient of sum_k seed_k * output_k to a program.

    Args:
        builder: Holds the forward pass; the backward pass is appended.
        outputs: Scalar nodes with their seeds (scalar nodes; None for 1).
        parameters: Matrices, vectors and scalars to differentiate by.

    Returns:
        The gradients, as nodes of the builder.

    Raises:
        NotDifferentiable: A function on the way has no derivative; the message names its node.
        LimitError: An outer function on the way.

    Source: Hajjar, Chizat, Giraud, equations (2.3) and Appendix A, derived here for any program.
    """
    size = len(builder)
    active = [False] * size
    wanted = set(parameters)
    for ref in range(size):
        active[ref] = ref in wanted or any(active[r] for r in references(builder.node(ref)))
    sweep = _Sweep(builder, active)
    for output, seed in outputs:
        sweep.to_scalar(output, seed)
    adjoints: dict[Ref, Ref] = {}
    for ref in range(size - 1, -1, -1):
        if not active[ref]:
            continue
        kind = builder.type(ref).kind
        if kind is Kind.MATRIX:
            continue
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
            adjoints[ref] = builder.add(Nonlin(Fn(const(1), 0, 0), (), ()))
        node = builder.node(ref)
        try:
            BACKWARD_RULES.table[type(node)](node, ref, [adjoint], sweep)
        except NotDifferentiable as error:
            raise NotDifferentiable(
                error.message, where=f"%{ref} in a backward pass", hint=error.hint
            ) from None
    matrices = {ref: tuple(pairs) for ref, pairs in sweep.matrices.items()}
    return Gradients(matrices, adjoints)


def _leaf(node: Any, ref: Ref, adjoint: list[Any], sweep: _Sweep) -> None:
    """Inputs: nothing before them."""


def _matmul(node: MatMul, ref: Ref, adjoint: list[Any], sweep: _Sweep) -> None:
    bar: Ref = adjoint[0]
    if sweep.active[node.matrix]:
        pair = (node.vector, bar) if node.transpose else (bar, node.vector)
        sweep.matrices[node.matrix].append(pair)
    if sweep.active[node.vector]:
        back = sweep.builder.add(MatMul(node.matrix, bar, not node.transpose))
        sweep.to_vector(node.vector, Fraction(1), None, back)


def _nonlin(node: Nonlin, ref: Ref, adjoint: list[Any], sweep: _Sweep) -> None:
    if not node.vectors:
        _scalar_fn(node, adjoint[0], sweep)
        return
    bar: Ref = adjoint[0]
    carry = Fn(Var(0), 1)
    for index, vector in enumerate(node.vectors):
        if sweep.active[vector]:
            item = sweep.apply(
                product(carry, node.fn.by(index)), (bar, *node.vectors), node.scalars
            )
            if item is not None:
                sweep.to_vector(vector, Fraction(1), None, item)
    for index, scalar in enumerate(node.scalars):
        if sweep.active[scalar]:
            slope = product(carry, node.fn.by_scalar(index))
            if not slope.is_zero:
                sweep.to_scalar(scalar, sweep.total(slope, (bar, *node.vectors), node.scalars))


def _lincomb(node: LinComb, ref: Ref, adjoint: list[Any], sweep: _Sweep) -> None:
    bar: Ref = adjoint[0]
    for number, scalar, vector in zip(node.numbers, node.scalars, node.vectors, strict=True):
        sweep.to_vector(vector, number, scalar, bar)
        if scalar is not None and sweep.active[scalar]:
            pair = Fn(const(number) * Var(0) * Var(1), 2)
            sweep.to_scalar(scalar, sweep.total(pair, (vector, bar), ()))


def _moment(node: Moment, ref: Ref, adjoint: list[Any], sweep: _Sweep) -> None:
    bar: Ref | None = adjoint[0]
    share = 1 / sweep.ratio(node.vectors[0])
    for index, vector in enumerate(node.vectors):
        if sweep.active[vector]:
            item = sweep.apply(node.fn.by(index), node.vectors, node.scalars)
            if item is not None:
                small = sweep.builder.add(Scale(item, as_ex(-1)))
                sweep.to_vector(vector, share, bar, small)
    for index, scalar in enumerate(node.scalars):
        if sweep.active[scalar]:
            slope = node.fn.by_scalar(index)
            if not slope.is_zero:
                item = sweep.builder.add(Moment(slope, node.vectors, node.scalars))
                sweep.to_scalar(scalar, sweep.times(bar, item))


def _outer(node: OuterNonlin, ref: Ref, adjoint: list[Any], sweep: _Sweep) -> None:
    raise LimitError(
        "a backward pass through an outer function (an entrywise optimizer's update).",
        where=f"%{ref}",
        hint="Differentiate the forward pass, before updates are applied.",
    )


def _scalar_fn(node: Nonlin, bar: Ref | None, sweep: _Sweep) -> None:
    for index, scalar in enumerate(node.scalars):
        if sweep.active[scalar]:
            slope = node.fn.by_scalar(index)
            if slope.is_zero:
                continue
            expr: Expr = slope.expr
            refs = node.scalars
            if bar is not None:
                expr, refs = expr * Par(slope.scalars), (*node.scalars, bar)
            sweep.to_scalar(scalar, sweep.builder.add(Nonlin(Fn(expr, 0, len(refs)), (), refs)))


def _scale(node: Scale, ref: Ref, adjoint: list[Any], sweep: _Sweep) -> None:
    bar: Ref | None = adjoint[0]
    if sweep.builder.type(node.of).kind is Kind.VECTOR:
        assert bar is not None
        item = sweep.builder.add(Scale(bar, node.n_power, node.depth_power))
        sweep.to_vector(node.of, Fraction(1), None, item)
        return
    one = bar if bar is not None else sweep.builder.add(Nonlin(Fn(const(1), 0, 0), (), ()))
    sweep.to_scalar(node.of, sweep.builder.add(Scale(one, node.n_power, node.depth_power)))


_TABLE: dict[type, Callable[[Any, Ref, list[Any], _Sweep], None]] = {
    Data: _leaf,
    Input: _leaf,
    MatMul: _matmul,
    Nonlin: _nonlin,
    LinComb: _lincomb,
    Moment: _moment,
    OuterNonlin: _outer,
    Scale: _scale,
}

BACKWARD_RULES: Rules[Any, _Sweep] = Rules("backward", _TABLE)
