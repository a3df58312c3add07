"""``stages_of``: a network over positions as stages of Gaussian vectors, read off its blocks.

Every block of vectors is a sum of linear maps, over positions, of what stages have: a window is
one, and so is an average; products with weights are sums of taps, one for each cell of a window. So
strides, paddings, dilations and numbers of axes are nothing but other places.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from tpcalc.arrays import Array
from tpcalc.engine.planes_stages import INPUTS, Stage, rated
from tpcalc.exponents import as_ex
from tpcalc.functions import Const, Par, Var, const
from tpcalc.functions.expr import Add, Mul, Pow, add, mul, split_coefficient, substitute
from tpcalc.networks.network import Architecture
from tpcalc.networks.stage_building import Building, Mean, Named, Rate, Tabled
from tpcalc.networks.stage_values import (
    Applied,
    Average,
    Block,
    Noise,
    NoStages,
    Numbers,
    Product,
    Traits,
    Value,
    identity,
    matrix_of,
    places_of,
    size_of,
    together,
)
from tpcalc.program.base import Table
from tpcalc.program.family import Family
from tpcalc.program.nodes import Data, Input, LinComb, MatMul, Moment, Node, Nonlin, Rename, Scale
from tpcalc.program.types import Axes, Ref


def stages_of(
    network: Architecture, rate: Rate, family: Named, smooth: Tabled, mean: Mean
) -> tuple[Stage, ...]:
    """The stages of a network with one output.

    Args:
        network: The network.
        rate: The rate of each parameter.
        family: The family and the numbers of a function; None: it has no closed dual.
        smooth: Any other function, for tables; None: it jumps.
        mean: The average of a function of a standard Gaussian.

    Raises:
        NoStages: It is more than sums of products with new weights, functions of one Gaussian
            vector, their products with each other and with noise, and averages over positions.
    """
    program = network.smallest
    state = Building(program, rate, family, smooth, mean)
    if len(state.outs) != 1:
        raise NoStages("several readouts")
    if any(dim.ratio != 1 for dim in program.dims):
        raise NoStages("widths that differ")
    for ref, node in enumerate(program.nodes):
        if not state.needed[ref]:
            continue
        found = _READ(node, ref, state)
        state.values[ref] = found
        if isinstance(found, Applied):
            state.applied[ref] = found
        elif state.uses[ref] > 1 and program.types[ref].width and isinstance(found, Block):
            state.values[ref] = state.kept(state.block(ref))
    out = state.values[state.outs[0]]
    if (
        not isinstance(out, Block)
        or out.averaged
        or not any(isinstance(one, Product) for one in out.terms)
    ):
        raise NoStages("an output that is no readout")
    block = state.sum(out, None, state.tilt)
    if block.axes != out.axes:
        ((term, matrix),) = block.terms.items()
        source, traits = state.source(term, matrix[places_of(block.axes, out.axes)])
        state.add(Stage((source,), size=size_of(out.axes)), traits)
    return rated(state.stages)


def _data(node: Data, ref: Ref, state: Building) -> Block | Numbers:
    size = size_of(node.axes)
    if node.values:
        return Numbers(node.axes, np.array([float(one) for one in node.values]))
    if state.stages:
        raise NoStages("a second input")
    found = state.add(Stage(size=size), Traits(frozenset(), frozenset(), False))
    state.order = {name: place for place, (name, _) in enumerate(node.axes)}
    return Block(node.axes, found.terms)


def _input(node: Input, ref: Ref, state: Building) -> Family | Noise:
    family = node.family
    if node.cell is not None:
        raise NoStages(f"a member of {family.name!r}")
    if family.mark is None or family.mark.role != "noise":
        return family
    if family.law != "gaussian" or family.cov is not None or any(family.mean):
        raise NoStages(f"noise {family.name!r} of another law")
    return Noise(family.axes)


def _rename(node: Rename, ref: Ref, state: Building) -> Block | Numbers:
    found, names = state.values[node.of], dict(node.names)
    found = found if isinstance(found, Numbers) else state.block(node.of)
    axes = tuple((names.get(name, name), size) for name, size in found.axes)
    return replace(found, axes=axes)


def _matmul(node: MatMul, ref: Ref, state: Building) -> Block:
    if node.transpose:
        raise NoStages("a transposed map")
    return _product(state, node.matrix, "hidden", node.vector, state.axes(ref))


def _product(state: Building, weights: Ref, role: str, read: Ref, axes: Axes) -> Block:
    """The products of weights with a block, at some axes."""
    mark, block = state.weights(weights, role), state.block(read)
    if len(block.terms) != 1 or not all(isinstance(term, int) for term in block.terms):
        block = state.sum(block, None)
    places = places_of(block.axes, axes)
    read_at = Block(axes, {term: matrix[places] for term, matrix in block.terms.items()})
    if len(read_at.terms) != 1:
        raise NoStages("weights that meet a sum")
    product = Product(mark, places_of(state.axes(weights), axes), read_at)
    return Block(axes, {product: identity(size_of(axes))})


def _moment(node: Moment, ref: Ref, state: Building) -> Value:
    kind = _AVERAGES.get(node.fn.expr)
    if kind is not None and len(node.vectors) == 1 and not node.scalars:
        block = state.kept(state.block(node.vectors[0]))
        if not together([state.traits[term] for term in block.terms]).gaussian:
            raise NoStages(f"an average of what is not Gaussian, {state.program.place(ref)}")
        return Average(block, kind)
    if not node.fn.is_inner or len(node.vectors) != 2:
        raise NoStages(f"an average, {state.program.place(ref)}")
    own = [one for one in node.vectors if isinstance(state.values[one], Family)]
    read = [one for one in node.vectors if one not in own]
    if len(own) != 1:
        raise NoStages(f"an average, {state.program.place(ref)}")
    found = _product(state, own[0], "readout", read[0], state.axes(ref))
    return Block(found.axes, found.terms, averaged=True)


def _scale(node: Scale, ref: Ref, state: Building) -> Block:
    found = state.values[node.of]
    whole = (node.n_power, node.depth_power) == (as_ex(1), as_ex(0))
    if not isinstance(found, Block) or not found.averaged or not whole:
        raise NoStages(f"a power of n, {state.program.place(ref)}")
    return Block(found.axes, found.terms)


def _lincomb(node: LinComb, ref: Ref, state: Building) -> Value:
    vectors, axes = [term[2] for term in node.terms], state.axes(ref)
    if any(scalar is not None or over for _, scalar, _, over in node.terms):
        return _summed(list(node.terms), axes, state)
    bases = [state.base(vector) for vector in vectors]
    some = {id(base): base for base in bases if base is not None}
    lazy = any(  # what several read may meet its multiples again in a function
        vector in state.applied or isinstance(base, Noise) or state.uses[vector] > 1
        for vector, base in zip(vectors, bases, strict=True)
    )
    if lazy and len(some) < 2 and all(state.is_function(base, axes) for base in some.values()):
        terms = (mul((const(term[0]), Var(k))) for k, term in enumerate(node.terms))
        return state.function(vectors, add(terms), ref)
    apart = zip(node.terms, bases, strict=True)
    block = _summed([term for term, base in apart if base is not None], axes, state)
    added = [term for term, base in zip(node.terms, bases, strict=True) if base is None]
    if not added:
        return block
    found = zip(added, state.functions([term[2] for term in added]), strict=True)
    return Applied(block, add([Var(0), *(mul((const(term[0]), one.expr)) for term, one in found)]))


def _summed(given: Sequence[Any], axes: Axes, state: Building) -> Block:
    """A sum of blocks with numbers in front."""
    terms: dict[Any, Any] = {}
    for number, scalar, vector, over in given:
        known = dict(state.axes(vector)) | (dict(state.axes(scalar)) if scalar is not None else {})
        whole = (*axes, *((name, known[name]) for name in over))
        block, values = _term(state, scalar, vector, whole)
        values = float(number) * values
        kept = np.flatnonzero(values)
        rows, columns = places_of(axes, whole)[kept], places_of(block.axes, whole)[kept]
        matrix = matrix_of(values[kept], rows, columns, (size_of(axes), size_of(block.axes)))
        if any(_collide(matrix @ own, term) for term, own in block.terms.items()):
            block = state.kept(block)
            columns = places_of(block.axes, whole)[kept]
            matrix = matrix_of(values[kept], rows, columns, matrix.shape)
        _add(terms, matrix, block)
    return state.averaged(Block(axes, terms))


def _add(terms: dict[Any, Any], matrix: Any, block: Block) -> None:
    """Add a block that a matrix spreads over cells."""
    for term, own in block.terms.items():
        added = matrix @ own
        terms[term] = terms[term] + added if term in terms else added


def _collide(matrix: Any, term: Any) -> bool:
    """Whether a row of a sum has the same weights twice."""
    if not isinstance(term, Product):
        return False
    entries = matrix.tocoo()
    pairs = zip(entries.row.tolist(), term.weights[entries.col].tolist(), strict=True)
    return bool(len(set(pairs)) < entries.nnz)


def _term(state: Building, scalar: Ref | None, vector: Ref, whole: Axes) -> tuple[Block, Array]:
    """A term of a sum: a block, and numbers in front of its cells at all axes."""
    ones = np.ones(size_of(whole))
    factor, value = (None if scalar is None else state.values[scalar]), state.values[vector]
    if isinstance(factor, Block) and isinstance(value, Family):
        return _product(state, vector, "input", _checked(state, scalar), whole), ones
    inverse = isinstance(factor, Average) and factor.kind == "inverse"
    if isinstance(factor, Average) and inverse and state.block(vector) is factor.block:
        return state.normed(factor.block, factor.eps), ones
    if isinstance(factor, Numbers):
        ones = factor.values[places_of(factor.axes, whole)]
    elif factor is not None:
        raise NoStages(f"a product, {state.program.place(vector)}")
    if isinstance(value, Family):
        mark = state.weights(vector, "bias")
        if value.axes:
            raise NoStages(f"biases {value.name!r} that differ between positions")
        return Block((), {mark: identity(1)}), ones
    block = state.block(vector)  # a window of a sum would hold it once for each of its cells
    return state.kept(block) if isinstance(factor, Numbers) else block, ones


def _checked(state: Building, scalar: Ref | None) -> Ref:
    assert scalar is not None
    if set(state.block(scalar).terms) != {INPUTS}:
        raise NoStages("numbers that are not the inputs")
    return scalar


def _nonlin(node: Nonlin, ref: Ref, state: Building) -> Value:
    if node.vectors:
        return _applied(node, ref, state)
    if any(isinstance(state.values[one], Average) for one in node.scalars):
        return _of_average(node, ref, state)
    axes, expr = state.axes(ref), node.fn.expr
    terms: dict[Any, Any] = {}
    for part in expr.terms if isinstance(expr, Add) else (expr,):
        number, rest = split_coefficient(part)
        given, blocks = np.full(size_of(axes), float(number)), []
        for factor in rest.factors if isinstance(rest, Mul) else (rest,):
            value = state.values[node.scalars[factor.index]] if isinstance(factor, Par) else None
            if isinstance(value, Family) and isinstance(factor, Par):
                value = _output_bias(node.scalars[factor.index], ref, float(number), state)
            if isinstance(value, Numbers):
                given *= value.values[places_of(value.axes, axes)]
            else:
                blocks.append(value)
        if len(blocks) != 1 or not isinstance(blocks[0], Block) or blocks[0].averaged:
            raise NoStages(f"a function of numbers, {state.program.place(ref)}")
        kept = np.flatnonzero(given)
        columns = places_of(blocks[0].axes, axes)[kept]
        matrix = matrix_of(given[kept], kept, columns, (len(given), size_of(blocks[0].axes)))
        _add(terms, matrix, blocks[0])
    return Block(axes, terms)


def _output_bias(bias: Ref, ref: Ref, number: float, state: Building) -> Block:
    """A bias of all outputs; one that starts at 0 is in tangent kernels alone."""
    if state.base(bias) is not None:
        return Block((), {state.weights(bias, "bias"): identity(1)})
    family = state.values[bias]
    if ref not in state.outs or not isinstance(family, Family) or family.mark is None:
        raise NoStages(f"a parameter among numbers, {state.program.place(ref)}")
    state.tilt += state.rate(family.mark) * number**2
    return Block((), {})


def _applied(node: Nonlin, ref: Ref, state: Building) -> Value:
    """A function of one vector, or a vector less its mean, which is 0 where it is Gaussian."""
    expr = node.fn.expr
    for place, scalar in enumerate(node.scalars):
        average = state.values[scalar]
        if not isinstance(average, Average) or average.kind != "mean":
            raise NoStages(f"a function of averages, {state.program.place(ref)}")
        expr = substitute(expr, {Par(place): const(0)})
    if len(node.vectors) == 1 and expr == Var(0):
        return state.applied.get(node.vectors[0], state.values[node.vectors[0]])
    return state.function(node.vectors, expr, ref)


def _of_average(node: Nonlin, ref: Ref, state: Building) -> Average:
    """Square + eps of an average of squares, or one over its root."""
    average, expr = state.values[node.scalars[0]], node.fn.expr
    if len(node.scalars) == 1 and isinstance(average, Average) and average.kind == "square":
        inverse = isinstance(expr, Pow) and expr.exponent == Fraction(-1, 2)
        base = expr.base if inverse and isinstance(expr, Pow) else expr
        eps = substitute(base, {Par(0): const(0)})
        if isinstance(eps, Const) and base == Par(0) + eps:
            kind = "inverse" if inverse else "square"
            return replace(average, kind=kind, eps=average.eps + float(eps.value))
    raise NoStages(f"a function of averages, {state.program.place(ref)}")


def _none(node: Node, ref: Ref, state: Building) -> Block:
    raise NoStages(f"{type(node).__name__}, {state.program.place(ref)}")


_AVERAGES = {Var(0): "mean", Var(0) ** 2: "square"}
_READ: Table[Value] = Table(
    {Data: _data, Input: _input, Rename: _rename, MatMul: _matmul, Moment: _moment, Scale: _scale,
     LinComb: _lincomb, Nonlin: _nonlin},
    _none,
)  # fmt: skip
