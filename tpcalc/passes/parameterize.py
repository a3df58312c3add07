"""A network with its parameterization written out: powers of n beside its marked parameters.

A parameter w stands in a network as it is used, and W = n^(-a) w takes its place. The power is
carried along by products, sums and inner products, and is written once,
as a ``Scale``, where something else reads the value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from tpcalc.errors import StudyError, placed
from tpcalc.exponents import Ex, as_ex
from tpcalc.functions import Fn, Par, Var, const
from tpcalc.functions.fn import INNER
from tpcalc.functions.numbers import Number
from tpcalc.program.base import Table, matrix_of, renumbered
from tpcalc.program.family import Mark
from tpcalc.program.nodes import (
    Data,
    Input,
    LinComb,
    MatMul,
    Moment,
    Node,
    Nonlin,
    Ref,
    Rename,
    Scale,
)
from tpcalc.program.program import Builder, Program

Pending = tuple[tuple[Ref, Ex], ...]  # the sum of n^power times each node
Term = tuple[Number, Ref | None, Ref, tuple[str, ...]]  # as in a sum, with its axes
ZERO = as_ex(0)


def parameterized(
    program: Program,
    powers: Callable[[Mark], Ex],
    means: Callable[[Mark], Number] = lambda mark: 0,
) -> Program:
    """The program with n^(-a) in front of each parameter.

    Source: Yang and Hu, Feature learning in infinite-width neural networks, Definition 3.1.
    """
    state = _State(program, Builder(program.dims), powers, means)
    reported = {ref for _, ref in program.outputs}
    for ref, node in enumerate(program.nodes):
        state.line = program.line_of(ref)
        with placed(program.place(ref), StudyError):  # powers of a parameter
            state.values.append(_RULES(node, state))
        if ref in reported:  # before what depends on it
            state.node(ref)
    for name, ref in program.outputs:
        state.out.output(name, state.node(ref))
    return state.out.finish(keep_unused=False)


@dataclass
class _State:
    program: Program
    out: Builder
    powers: Callable[[Mark], Ex]
    means: Callable[[Mark], Number]
    values: list[Pending] = field(default_factory=list)
    line: str | None = None

    def add(self, node: Node) -> Ref:
        return self.out.add(node, self.line)

    def node(self, ref: Ref) -> Ref:
        """The node of a value, with its powers written out."""
        one: Term = (Fraction(1), None, ref, ())
        own, power = self.total([one])
        return own if power == ZERO else self.add(Scale(own, power))

    def single(self, ref: Ref) -> tuple[Ref, Ex]:
        """A value as a power times one node."""
        parts = self.values[ref]
        return parts[0] if len(parts) == 1 else (self.node(ref), ZERO)

    def mean(self, mark: Mark) -> Number:
        """Of the entries, in the units of what stands behind the factor in front of them."""
        mean = self.means(mark)
        return mean / mark.start if mean and mark.start else mean

    def total(self, terms: Iterable[Term]) -> tuple[Ref, Ex]:
        """A sum; terms of one power are summed first."""
        parts: dict[Ex, list[Term]] = {}
        for number, scalar, vector, over in terms:
            factor, more = (None, ZERO) if scalar is None else self.single(scalar)
            for ref, power in self.values[vector]:
                parts.setdefault(power + more, []).append((number, factor, ref, over))
        sums = [(self._sum(part), power) for power, part in parts.items()]
        if len(sums) == 1:
            return sums[0]
        refs = tuple(r if power == ZERO else self.add(Scale(r, power)) for r, power in sums)
        ones = (Fraction(1),) * len(refs)
        return self.add(LinComb(ones, (None,) * len(refs), refs)), ZERO

    def _sum(self, part: Sequence[Term]) -> Ref:
        number, scalar, only, axes = part[0]
        if len(part) == 1 and number == 1 and scalar is None and not axes:
            return only
        numbers, scalars, refs, over = zip(*part, strict=True)
        return self.add(LinComb(numbers, scalars, refs, over if any(over) else ()))


def _copy(node: Node, state: _State) -> Pending:
    return ((state.add(renumbered(node, state.node)), ZERO),)


def _input(node: Input, state: _State) -> Pending:
    mark = node.family.mark
    if mark is None or not mark.trained:
        return _copy(node, state)
    mean = state.mean(mark)
    if mean != 0 and len(node.family.width) < 2:
        family = replace(node.family, mean=(mean,) * node.family.size)
        node = Input(family, node.cell)
    return ((state.add(node), -state.powers(mark)),)


def _matmul(node: MatMul, state: _State) -> Pending:
    (matrix, own), (vector, power) = state.single(node.matrix), state.single(node.vector)
    product = (state.add(MatMul(matrix, vector, node.transpose)), own + power)
    mark = matrix_of(state.program.nodes, node).family.mark
    mean = 0 if mark is None else state.mean(mark)
    if mean == 0:
        return (product,)
    # The matrix of entries `mean` times x, divided by n, is a constant vector.
    x = state.node(node.vector)
    mean = mean * state.out.dim_of(state.out.type(x).width[0]).ratio
    average = state.add(Moment(Fn(Var(0), 1), (x,)))
    same = state.out.type(x) == state.out.type(product[0])
    place = x if same else product[0]  # any vector on the dimension of the product
    constant = state.add(Nonlin(Fn(const(mean) * Par(0), 1, 1), (place,), (average,)))
    return product, (constant, own + 1)


def _lincomb(node: LinComb, state: _State) -> Pending:
    terms = node.terms
    return (state.total(terms),)


def _moment(node: Moment, state: _State) -> Pending:
    if node.fn != INNER:
        return _copy(node, state)
    (left, power), (right, more) = map(state.single, node.vectors)
    return ((state.add(Moment(INNER, (left, right))), power + more),)


def _scale(node: Scale, state: _State) -> Pending:
    if node.depth_power != ZERO:
        return _copy(node, state)
    ref, power = state.single(node.of)
    return ((ref, power + node.n_power),)


def _rename(node: Rename, state: _State) -> Pending:
    ref, power = state.single(node.of)
    return ((state.add(Rename(ref, node.names)), power),)


_RULES: Table[Pending] = Table(
    {
        Input: _input,
        Data: _copy,
        MatMul: _matmul,
        LinComb: _lincomb,
        Moment: _moment,
        Scale: _scale,
        Rename: _rename,
    },
    _copy,
)
