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

from tpcalc.errors import ProgramError
from tpcalc.functions import Fn, Par, Var
from tpcalc.functions.expr import add, const, mul
from tpcalc.orders import Ex, as_ex
from tpcalc.passes.backward import Gradients, backward
from tpcalc.passes.start import started_at_zero
from tpcalc.passes.unroll import Model, Parameter
from tpcalc.program.base import references, renumbered
from tpcalc.program.nodes import (
    Family,
    Kind,
    LinComb,
    Moment,
    Node,
    Nonlin,
    Ref,
    Scale,
    members,
)
from tpcalc.program.program import Builder, Program
from tpcalc.program.views import input_of, lincomb_of

__all__ = ["DATA", "Rate", "TangentProgram", "tangent_of_model", "tangent_of_program"]

DATA = "data"  # the group of Gaussians that stand for products of inputs with weights
KINDS = ("nngp", "ntk")
INNER = Fn(Var(0) * Var(1), 2)
SQUARE = Fn(Var(0) ** 2, 1)
Rate = Callable[[Parameter], tuple[Fraction | float, Ex]]


@dataclass(frozen=True)
class TangentProgram:
    """A program whose outputs are the entries of a kernel.

    Args:
        program: Scalars ``f[i,k]`` (output k for copy i), ``ntk[i,k,j,l]``, and
            ``data[p,q,i,k,j,l]``: the factor of the Gram entry of tokens p and q in the kernel.
        copies: Inputs, or the outputs of a program.
        tokens: Data vectors of one copy.
        outputs: Scalar outputs of one copy.
    """

    program: Program
    copies: int
    tokens: int
    outputs: int


@dataclass
class _Kernel:
    """Writes kernel entries into a program."""

    builder: Builder
    parameters: Sequence[Parameter]
    rate: Rate

    def entry(
        self,
        left: Gradients,
        right: Gradients,
        left_ref: Callable[[Ref], Ref],
        right_ref: Callable[[Ref], Ref],
    ) -> Ref:
        """The sum over parameters of rate * <gradient, gradient>."""
        terms: list[Ref] = []
        for parameter in self.parameters:
            own = list(self._parts(parameter.ref, left, right, left_ref, right_ref))
            terms += [self.rated(part, parameter) for part in own]
        if not terms:
            return self.builder.add(Nonlin(Fn(const(0), 0, 0), (), ()))
        if len(terms) == 1:
            return terms[0]
        total = add(Par(i) for i in range(len(terms)))
        return self.builder.add(Nonlin(Fn(total, 0, len(terms)), (), tuple(terms)))

    def _parts(
        self,
        ref: Ref,
        left: Gradients,
        right: Gradients,
        left_ref: Callable[[Ref], Ref],
        right_ref: Callable[[Ref], Ref],
    ) -> list[Ref]:
        if ref in left.matrices and ref in right.matrices:
            return [
                self._times(
                    self.inner(left_ref(r), right_ref(s)), self.inner(left_ref(c), right_ref(d))
                )
                for r, c in left.matrices[ref]
                for s, d in right.matrices[ref]
            ]
        if ref in left.adjoints and ref in right.adjoints:
            a, b = left_ref(left.adjoints[ref]), right_ref(right.adjoints[ref])
            scalar = self.builder.type(a).kind is Kind.SCALAR
            return [self._times(a, b) if scalar else self.inner(a, b)]
        return []

    def inner(self, a: Ref, b: Ref) -> Ref:
        """The sum over coordinates of a product: size times a moment."""
        ratio = self.builder.dim_of(self.builder.type(a).width[0]).ratio
        node = Moment(SQUARE, (a,)) if a == b else Moment(INNER, (a, b))
        found = self.builder.add(node)
        if ratio != 1:
            scaled = mul((const(ratio), Par(0)))
            found = self.builder.add(Nonlin(Fn(scaled, 0, 1), (), (found,)))
        return self.builder.add(Scale(found, as_ex(1)))

    def _times(self, a: Ref, b: Ref) -> Ref:
        if a == b:
            return self.builder.add(Nonlin(Fn(Par(0) ** 2, 0, 1), (), (a,)))
        return self.builder.add(Nonlin(Fn(Par(0) * Par(1), 0, 2), (), (a, b)))

    def rated(self, part: Ref, parameter: Parameter) -> Ref:
        factor, exponent = self.rate(parameter)
        if factor != 1:
            scaled = mul((const(factor), Par(0)))
            part = self.builder.add(Nonlin(Fn(scaled, 0, 1), (), (part,)))
        return part if exponent == as_ex(0) else self.builder.add(Scale(part, -exponent))


def tangent_of_model(
    model: Model,
    copies: int,
    rate: Rate,
    trained: Callable[[Parameter], bool],
    kinds: Collection[str] = KINDS,
) -> TangentProgram:
    """The kernel of a network between ``copies`` inputs.

    Inputs enter through their inner products alone: the product of an input with centred Gaussian
    weights is a Gaussian vector, and a group ``data`` stands for all of them. Its covariances in
    the program are placeholders; whoever evaluates it puts the Gram matrix in their place.

    Args:
        model: The network with one feature for each token (``dimension`` = number of tokens).
        copies: Number of inputs.
        rate: For a parameter the factor and the exponent c of its learning rate factor * n^(-c).
        trained: Which parameters are trained.
        kinds: Which entries are outputs: ``"nngp"`` (the f), ``"ntk"`` (the rest).

    Raises:
        ProgramError: An input of the network does not enter as a coefficient of Gaussian weights.

    Source: Yang, Tensor Programs II (2006.14548), section 3: the NTK as moments of a program.
    """
    template, columns = _gaussian_inputs(model)
    kept = [p for p in model.parameters if p.ref not in columns and trained(p)]
    entering = next((p for p in model.parameters if p.ref in columns and trained(p)), None)
    builder = Builder.copy(template)
    wanted = [*(p.ref for p in kept), *(model.inputs if entering is not None else ())]
    gradients = _gradients(builder, model.outputs, wanted, kinds)
    source = builder.finish()
    out = Builder(source.dims)
    refs = [_copy(source, out, index, copies) for index in range(copies)]
    kernel = _Kernel(out, kept, rate)
    for (i, own), (k, output) in product(enumerate(refs), enumerate(model.outputs)):
        if "nngp" in kinds:
            out.output(f"f[{i},{k}]", own[output])
    numbers = range(len(model.outputs))
    for i, k, j, m in product(range(copies), numbers, range(copies), numbers):
        if i > j or not gradients:
            continue
        left, right = gradients[k], gradients[m]
        place = f"{i},{k},{j},{m}"
        entry = kernel.entry(left, right, refs[i].__getitem__, refs[j].__getitem__)
        out.output(f"ntk[{place}]", entry)
        for (p, a), (q, b) in product(enumerate(model.inputs), repeat=2):
            if entering is not None and a in left.adjoints and b in right.adjoints:
                part = kernel.inner(refs[i][left.adjoints[a]], refs[j][right.adjoints[b]])
                out.output(f"data[{p},{q},{place}]", kernel.rated(part, entering))
    entered = (input_of(model.program.nodes[ref]) for ref in columns)
    still = any(node is not None and node.family.name in model.zeros for node in entered)
    zeros = model.zeros | ({DATA} if still else set())
    finished = started_at_zero(out.finish(keep_unused=False), zeros)
    return TangentProgram(finished, copies, len(model.inputs), len(model.outputs))


def tangent_of_program(
    program: Program,
    outputs: Sequence[str],
    parameters: Sequence[Ref],
    kinds: Collection[str] = KINDS,
    rates: Mapping[Ref, Fraction | float] = MappingProxyType({}),
) -> TangentProgram:
    """The kernel between the scalar outputs of one program.

    Args:
        program: The program, its inputs written out.
        outputs: Names of scalar outputs; output i is f_i.
        parameters: The trained inputs: matrices, start vectors, random scalars.
        kinds: As of ``tangent_of_model``.
        rates: Factors of their learning rates where they are not 1.

    Returns:
        A program with outputs ``f[i,0]`` and ``ntk[i,0,j,0]``.

    Source: Yang, Tensor Programs II (2006.14548), section 3: the NTK as moments of a program.
    """
    builder = Builder.copy(replace(program, outputs=()))
    refs = [program.ref(name) for name in outputs]
    gradients = _gradients(builder, refs, parameters, kinds)
    trained = [Parameter(ref, 0, rate=rates.get(ref, Fraction(1))) for ref in parameters]
    kernel = _Kernel(builder, trained, lambda parameter: (parameter.rate, as_ex(0)))
    if "nngp" in kinds:
        for i, ref in enumerate(refs):
            builder.output(f"f[{i},0]", ref)
    for i, left in enumerate(gradients):
        for j in range(i, len(refs)):
            entry = kernel.entry(left, gradients[j], _same, _same)
            builder.output(f"ntk[{i},0,{j},0]", entry)
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


def _gaussian_inputs(model: Model) -> tuple[Program, frozenset[Ref]]:
    """The template with a Gaussian vector in place of each input, and the weights that it replaces.

    Indices stay: a number that multiplied weights becomes the vector that the product is.
    """
    program, inputs = model.program, {ref: p for p, ref in enumerate(model.inputs)}
    nodes: list[Node] = list(program.nodes)
    columns: set[Ref] = set()
    for ref, node in enumerate(program.nodes):
        total = lincomb_of(node)
        if total is not None and any(scalar in inputs for scalar in total.scalars):
            pairs: list[tuple[Ref | None, Ref]] = []
            for scalar, vector in zip(total.scalars, total.vectors, strict=True):
                if scalar in inputs:
                    columns.add(vector)
                    pairs.append((None, scalar))
                else:
                    pairs.append((scalar, vector))
            nodes[ref] = LinComb(
                total.numbers, tuple(s for s, _ in pairs), tuple(v for _, v in pairs)
            )
        elif any(other in inputs for other in references(node)):
            raise _not_gaussian(program, ref)
    if len(columns) != 1:
        raise ProgramError(
            f"inputs of the network enter through {len(columns)} vectors of weights; its template "
            "for a kernel has one, by which each token is multiplied.",
            hint="Write the template with one feature for each token, all with the same weights.",
        )
    (column,) = columns
    _check_weights(program, column)
    cells = members(_group(program.types[column].width[0], len(inputs)))
    for ref, p in inputs.items():
        nodes[ref] = cells[p]
    return Program(program.dims, tuple(nodes), ()), frozenset(columns)


def _group(dim: str, size: int) -> Family:
    """Vectors in general position: what is derived must not take them for independent."""
    half, one = Fraction(1, 2), Fraction(1)
    cov = tuple(tuple(one if i == j else half for j in range(size)) for i in range(size))
    return Family.group(DATA, dim, (Fraction(0),) * size, cov)


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
        hint="Its kernel depends on more than inner products of inputs: write a program with the "
        "inputs filled in, and give that to tp.kernel.",
    )


def _copy(source: Program, out: Builder, index: int, copies: int) -> list[Ref]:
    """A copy of a program for one input; what does not depend on the input is shared."""
    new: list[Ref] = []
    for node in source.nodes:
        own = input_of(node)
        if own is not None and own.family.name == DATA:
            size = own.family.size
            node = members(_group(own.family.width[0], copies * size))[index * size + own.index]
        new.append(out.add(renumbered(node, new.__getitem__)))
    return new
