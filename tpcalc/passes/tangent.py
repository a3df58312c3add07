"""Tangent kernels: inner products of the gradients of two scalars, written as a program.

The neural tangent kernel of outputs f and f' is the sum over trained parameters of
<grad f, grad f'>. With gradients as sums of outer products r c^T it is made of moments:
<r c^T, r' c'^T> = (r . r')(c . c').
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from types import MappingProxyType
from typing import NamedTuple

from tpcalc.errors import ProgramError
from tpcalc.exponents import Ex, as_ex
from tpcalc.functions import Fn, const
from tpcalc.functions.fn import INNER, SQUARE
from tpcalc.names import cell_name
from tpcalc.passes.backward import Gradients, backward
from tpcalc.passes.starts import started_at_zero
from tpcalc.passes.step import redrawn
from tpcalc.passes.sums import ratio, scaled, total
from tpcalc.passes.template import Template
from tpcalc.program.base import input_of, lincomb_of, references, renumbered
from tpcalc.program.family import Mark
from tpcalc.program.nodes import Family, Kind, LinComb, Moment, Nonlin, Ref, members
from tpcalc.program.program import Builder, Program

DATA = "<data>"  # begins the groups of Gaussians that stand for products of inputs with weights
KINDS = ("nngp", "ntk")
HINT = (
    "Its kernel depends on more than inner products of inputs: write a program with the inputs "
    "filled in, and give that to tp.kernel."
)
Rate = Callable[[Mark], tuple[Fraction | float, Ex]]


@dataclass(frozen=True)
class TangentProgram:
    """A program whose outputs are the entries of a kernel."""

    # scalars f[i,k] (output k for copy i), ntk[i,k,j,l], and data[p,q,i,k,j,l]: the factor of the
    # Gram entry of tokens p and q in the kernel
    program: Program
    copies: int  # inputs, or the outputs of a program
    tokens: int  # data vectors of one copy
    outputs: int  # scalar outputs of one copy
    # the groups that stand for products of inputs, one for each vector of weights
    groups: frozenset[str] = frozenset()


class Side(NamedTuple):
    """The gradients of one output, and where their nodes stand in the program of the kernel."""

    of: Gradients
    at: Callable[[Ref], Ref]

    def products(self, ref: Ref) -> list[tuple[Ref, Ref]]:
        """The outer products that the gradient of a matrix is the sum of."""
        return [(self.at(row), self.at(col)) for row, col in self.of.matrices[ref]]


@dataclass
class _Kernel:
    """Writes kernel entries into a program."""

    builder: Builder
    parameters: Mapping[Ref, Mark]
    rate: Rate

    def entry(self, left: Side, right: Side) -> Ref:
        """The sum over parameters of rate * <gradient, gradient>."""
        parts = ((self._parts(ref, left, right), mark) for ref, mark in self.parameters.items())
        terms = [self.rated(part, mark) for own, mark in parts for part in own]
        return self.total(terms) if terms else self.builder.add(Nonlin(Fn(const(0), 0, 0), (), ()))

    def total(self, terms: Sequence[Ref]) -> Ref:
        """The sum of scalars."""
        return total(self.builder, [(1, None, term, ()) for term in terms])

    def _parts(self, ref: Ref, left: Side, right: Side) -> list[Ref]:
        if ref in left.of.matrices and ref in right.of.matrices:
            return [
                self._times(self.inner(r, s), self.inner(c, d))
                for r, c in left.products(ref)
                for s, d in right.products(ref)
            ]
        if ref in left.of.adjoints and ref in right.of.adjoints:
            a, b = left.at(left.of.adjoints[ref]), right.at(right.of.adjoints[ref])
            scalar = self.builder.type(a).kind is Kind.SCALAR
            return [self._times(a, b) if scalar else self.inner(a, b)]
        return []

    def inner(self, a: Ref, b: Ref) -> Ref:
        """The sum over coordinates of a product: size times a moment."""
        out = self.builder
        found = out.add(Moment(SQUARE, (a,)) if a == b else Moment(INNER, (a, b)))
        return scaled(out, total(out, [(ratio(out, a), None, found, ())]), as_ex(1))

    def _times(self, a: Ref, b: Ref) -> Ref:
        return total(self.builder, [(1, a, b, ())])

    def rated(self, part: Ref, mark: Mark) -> Ref:
        factor, exponent = self.rate(mark)
        return scaled(self.builder, total(self.builder, [(factor, None, part, ())]), -exponent)


def tangent_of_network(
    template: Template,
    copies: int,
    rate: Rate,
    trained: Callable[[Mark], bool],
    kinds: Collection[str] = KINDS,
) -> TangentProgram:
    """The kernel of a network between ``copies`` inputs.

    Inputs enter through their inner products alone: the product of an input with centred Gaussian
    weights is a Gaussian vector, and a group ``data`` stands for all of them, one group for each
    vector of weights that an input meets. Its covariances in the program are placeholders; whoever
    evaluates it puts the Gram matrix in their place.

    Source: Yang, Tensor Programs II (2006.14548), section 3: the NTK as moments of a program.
    """
    entered = entered_groups(template)
    moved = {ref: mark for ref, mark in template.parameters.items() if trained(mark)}
    columns = {ref: mark for ref, mark in moved.items() if ref in entered.groups}
    kept = {entered.new[ref]: mark for ref, mark in moved.items() if ref not in columns}
    outputs = [entered.new[ref] for ref in template.outputs]
    builder = entered.builder
    wanted = [*kept, *(ref for (column, _), ref in entered.data.items() if column in columns)]
    gradients = _gradients(builder, outputs, wanted, kinds)
    source = builder.finish()
    out = Builder(source.dims)
    noise = {entered.new[ref] for ref in template.noise}
    names = frozenset(input_of(builder.node(ref)).family.name for ref in noise)  # type: ignore
    refs = [_copy(source, out, index, copies, entered.groups, names) for index in range(copies)]
    kernel = _Kernel(out, kept, rate)
    for (i, own), (k, output) in product(enumerate(refs), enumerate(outputs)):
        if "nngp" in kinds:
            out.output(cell_name("f", (i, k)), own[output])
    numbers = range(len(outputs))
    for i, k, j, m in product(range(copies), numbers, range(copies), numbers):
        if i > j or not gradients:
            continue
        left, right = gradients[k], gradients[m]
        place = (i, k, j, m)
        sides = Side(left, refs[i].__getitem__), Side(right, refs[j].__getitem__)
        entry = kernel.entry(*sides)
        out.output(cell_name("ntk", place), entry)
        for p, q in product(range(len(template.slots)), repeat=2):
            parts = []
            for column, mark in columns.items():
                a = left.adjoints.get(entered.data.get((column, p), -1))
                b = right.adjoints.get(entered.data.get((column, q), -1))
                if a is not None and b is not None:
                    parts.append(kernel.rated(kernel.inner(refs[i][a], refs[j][b]), mark))
            if parts:
                out.output(cell_name("data", (p, q, *place)), kernel.total(parts))
    still = {entered.groups[ref] for ref, mark in template.parameters.items()
             if ref in entered.groups and mark.at_zero}  # fmt: skip
    finished = started_at_zero(out.finish(keep_unused=False), template.zeros | still)
    groups = frozenset(entered.groups.values())
    return TangentProgram(finished, copies, len(template.slots), len(outputs), groups)


def tangent_of_program(
    program: Program,
    outputs: Sequence[str],
    parameters: Sequence[Ref],
    kinds: Collection[str] = KINDS,
    rates: Mapping[Ref, Fraction | float] = MappingProxyType({}),
) -> TangentProgram:
    """The kernel between the scalar outputs of one program.

    Source: Yang, Tensor Programs II (2006.14548), section 3: the NTK as moments of a program.
    """
    builder = Builder.copy(replace(program, outputs=()))
    refs = [program.ref(name) for name in outputs]
    gradients = _gradients(builder, refs, parameters, kinds)
    trained = {ref: Mark(str(ref), "finite", 1, rates.get(ref, Fraction(1))) for ref in parameters}
    kernel = _Kernel(builder, trained, lambda mark: (mark.rate, as_ex(0)))
    if "nngp" in kinds:
        for i, ref in enumerate(refs):
            builder.output(cell_name("f", (i, 0)), ref)
    for i, left in enumerate(gradients):
        for j in range(i, len(refs)):
            entry = kernel.entry(Side(left, _same), Side(gradients[j], _same))
            builder.output(cell_name("ntk", (i, 0, j, 0)), entry)
    return TangentProgram(builder.finish(keep_unused=False), len(refs), 0, 1)


def _gradients(
    builder: Builder, outputs: Sequence[Ref], wanted: Sequence[Ref], kinds: Collection[str]
) -> list[Gradients]:
    """The backward pass of each output; none where no tangent kernel is asked for."""
    if "ntk" not in kinds:
        return []
    return [backward(builder, [(output, None)], wanted) for output in outputs]


def _same(ref: Ref) -> Ref:
    return ref


@dataclass
class Entered:
    """A template with Gaussian vectors in place of the products of inputs with weights."""

    builder: Builder  # the program
    new: dict[Ref, Ref]  # for each node of the template its node here
    groups: dict[Ref, str]  # for each vector of weights that inputs meet its group
    # for such a vector and the place of a number of the input their product
    data: dict[tuple[Ref, int], Ref]


def entered_groups(template: Template) -> Entered:
    """A template in which Gaussian vectors stand for products of inputs with weights."""
    program, inputs = template.bare, {ref: q for q, ref in template.inputs.items()}
    state = Entered(Builder(program.dims), {}, {}, {})
    alone: dict[Ref, Ref] = {}  # what stands without an input, and where
    for ref, node in enumerate(program.nodes):
        if ref in inputs:
            continue
        state.builder.line = program.line_of(ref)
        total = lincomb_of(node)
        if total is None or not any(scalar in inputs for scalar in total.scalars):
            if any(other in inputs for other in references(node)):
                raise _not_gaussian(program, ref)
            alone.update((other, ref) for other in references(node))
            state.new[ref] = state.builder.add(renumbered(node, state.new.__getitem__))
            continue
        pairs: list[tuple[Ref | None, Ref]] = []
        for scalar, vector in zip(total.scalars, total.vectors, strict=True):
            if scalar is None or scalar not in inputs:
                alone[vector] = ref
                pairs.append((None if scalar is None else state.new[scalar], state.new[vector]))
                continue
            if vector not in state.groups:
                _check_weights(program, vector)
                count = len(state.groups)
                state.groups[vector] = f"{DATA}{count}" if count else DATA
            place = vector, inputs[scalar]
            if place not in state.data:
                dim = program.types[vector].width[0]
                cells = members(_group(state.groups[vector], dim, len(template.slots)))
                state.data[place] = state.builder.add(cells[inputs[scalar]])
            pairs.append((None, state.data[place]))
        scalars, vectors = zip(*pairs, strict=True)
        state.new[ref] = state.builder.add(LinComb(total.numbers, scalars, vectors))
    state.builder.line = None
    _refuse_both(program, state.groups.keys() & alone.keys(), alone)
    return state


def _refuse_both(program: Program, vectors: Collection[Ref], alone: Mapping[Ref, Ref]) -> None:
    """Gaussians that stand for products with weights know nothing of the weights themselves."""
    if vectors:
        raise ProgramError(
            "weights that are multiplied with an input are also used without one.",
            where=program.place(alone[min(vectors)]),
            hint=HINT,
        )


def _group(name: str, dim: str, size: int) -> Family:
    """Vectors in general position: what is derived must not take them for independent."""
    half, one = Fraction(1, 2), Fraction(1)
    cov = tuple(tuple(one if i == j else half for j in range(size)) for i in range(size))
    return Family.group(name, dim, (Fraction(0),) * size, cov)


def _check_weights(program: Program, ref: Ref) -> None:
    """What an input multiplies must be centred weights, independent of all others."""
    node = input_of(program.nodes[ref])
    if node is None or len(node.family.width) != 1:
        raise _not_gaussian(program, ref)
    if node.family.means[node.index] != 0 or node.family.cov is not None:
        raise _not_gaussian(program, ref)


def _not_gaussian(program: Program, ref: Ref) -> ProgramError:
    return ProgramError(
        "an input of the network enters other than as a coefficient of centred Gaussian weights.",
        where=program.place(ref),
        hint=HINT,
    )


def _copy(
    source: Program,
    out: Builder,
    index: int,
    copies: int,
    groups: Mapping[Ref, str],
    noise: frozenset[str],
) -> list[Ref]:
    """A copy of a program for one input; what does not depend on the input is shared."""
    new: list[Ref] = []
    for ref, node in enumerate(source.nodes):
        own = input_of(node)
        if own is not None and own.family.name in groups.values():
            family, size = own.family, own.family.size
            cells = members(_group(family.name, family.width[0], copies * size))
            node = cells[index * size + own.index]
        elif own is not None and own.family.name in noise:
            node = redrawn(node, str(index))
        new.append(out.add(renumbered(node, new.__getitem__), source.line_of(ref)))
    return new
