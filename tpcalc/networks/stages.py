"""``stages_of``: a network over positions as stages of Gaussian vectors, read off its blocks.

Every block of vectors is a sum of linear maps, over positions, of what stages have: a window is
one, and so is an average; products with weights are sums of taps, one for each cell of a window. So
strides, paddings, dilations and numbers of axes are nothing but other places.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import prod
from typing import Any

import numpy as np

from tpcalc.arrays import Array, Index
from tpcalc.engine.planes_stages import IDENTITY, INPUTS, Bend, Source, Stage, rated
from tpcalc.exponents import as_ex
from tpcalc.functions import Const, Expr, Par, Var, const
from tpcalc.functions.expr import Add, Mul, Pow, add, mul, split_coefficient, substitute
from tpcalc.names import what_of
from tpcalc.networks.network import Architecture
from tpcalc.program.base import Table, cone, references
from tpcalc.program.family import Family, Mark
from tpcalc.program.nodes import Data, Input, LinComb, MatMul, Moment, Node, Nonlin, Rename, Scale
from tpcalc.program.program import Program
from tpcalc.program.types import Axes, Ref


class NoStages(Exception):
    """A network that is none over positions; the message names what is not covered."""


@dataclass(frozen=True, eq=False)
class Product:
    """Products of a family of weights with vectors: of each row the weights and what they meet."""

    mark: Mark
    weights: Index  # the member of the family in each row
    read: Block


@dataclass(frozen=True, eq=False)
class Block:
    """Vectors, or numbers, at the cells of axes: a matrix for each of what they are made of."""

    axes: Axes
    terms: dict[Any, Any]  # of stages by number, of products, of biases by mark: (cells, theirs)
    averaged: bool = False  # an average of products that lacks its factor n


@dataclass(frozen=True, eq=False)
class Numbers:
    """Given numbers at the cells of axes."""

    axes: Axes
    values: Array


@dataclass(frozen=True, eq=False)
class Applied:
    """A function of a block that nothing has read so far."""

    block: Block
    expr: Expr


@dataclass(frozen=True, eq=False)
class Average:
    """Numbers at cells: the mean of a block, that of its squares, or a function of these."""

    block: Block
    kind: str  # "mean"; "square", with eps added; "inverse", of the root of that
    eps: float = 0.0


Value = Block | Numbers | Family | Applied | Average


@dataclass(frozen=True)
class Traits:
    """What a stage depends on: the families of its sum, none where it is no Gaussian, and all."""

    outer: frozenset[str]
    inner: frozenset[str]


Rate = Callable[[Mark], float]
Bent = Callable[[Expr], Bend | None]


def stages_of(network: Architecture, rate: Rate, bend: Bent) -> tuple[Stage, ...]:
    """The stages of a network with one output.

    Args:
        network: The network.
        rate: The rate of each parameter.
        bend: The family and the numbers of a function; None: it has no loop.

    Raises:
        NoStages: It is more than sums of products with new weights, functions of one Gaussian
            vector, and averages over positions.
    """
    return rated(_Reading(network.smallest, rate, bend).stages_read())


def _size(axes: Axes) -> int:
    return prod(size for _, size in axes)


def _places(axes: Axes, target: Axes) -> Index:
    """For each cell of some axes that of fewer axes."""
    names = [name for name, _ in axes]
    order = [names.index(name) for name, _ in target if name in names]
    grid = np.arange(_size(axes)).reshape([size for _, size in axes]).transpose(order)
    shape = [size if name in names else 1 for name, size in target]
    found: Index = np.broadcast_to(grid.reshape(shape), [size for _, size in target]).ravel()
    return found


def _matrix(values: Any, rows: Any, columns: Any, shape: tuple[int, int]) -> Any:
    from scipy.sparse import csr_matrix

    found = csr_matrix((np.asarray(values, dtype=float), (rows, columns)), shape=shape)
    found.sum_duplicates()
    return found


def _identity(size: int) -> Any:
    return _matrix(np.ones(size), np.arange(size), np.arange(size), (size, size))


class _Reading:
    """The way through a program, from its inputs on."""

    def __init__(self, program: Program, rate: Rate, bend: Bent) -> None:
        self.program, self.rate, self.bend = program, rate, bend
        outs = [ref for name, ref in program.outputs if what_of(name) == "f"]
        self.needed = cone(program.nodes, outs)
        self.outs = outs
        kept = [node for node, used in zip(program.nodes, self.needed, strict=True) if used]
        self.uses = Counter(ref for node in kept for ref in references(node))
        self.values: dict[Ref, Value] = {}
        self.applied: dict[Ref, Applied] = {}  # of values that may be stages by now
        self.stages: list[Stage] = []
        self.traits: list[Traits] = []
        self.order: dict[str, int] = {}  # of the axes of the inputs

    def stages_read(self) -> list[Stage]:
        """Of its one output."""
        program = self.program
        if len(self.outs) != 1 or _size(program.types[self.outs[0]].axes) != 1:
            raise NoStages("several outputs")
        for ref, node in enumerate(program.nodes):
            if not self.needed[ref]:
                continue
            found = _READ(node, ref, self)
            self.values[ref] = found
            if isinstance(found, Applied):
                self.applied[ref] = found
            elif self.uses[ref] > 1 and program.types[ref].width and isinstance(found, Block):
                self.values[ref] = self.kept(self.block(ref))
        out = self.values[self.outs[0]]
        if (
            not isinstance(out, Block)
            or out.averaged
            or not any(isinstance(one, Product) for one in out.terms)
        ):
            raise NoStages("an output that is no readout")
        self.sum(out, None)
        return self.stages

    def axes(self, ref: Ref) -> Axes:
        """The axes of a node."""
        return self.program.types[ref].axes

    def block(self, ref: Ref) -> Block:
        """A block that is a value by now."""
        found = self.values[ref]
        if isinstance(found, Applied):
            bend = self.bend(found.expr)
            if bend is None:
                raise NoStages(f"the function {found.expr.text}, {self.program.place(ref)}")
            found = self.values[ref] = self.sum(found.block, bend)
        if not isinstance(found, Block) or found.averaged:
            raise NoStages(f"a value that is no vector, {self.program.place(ref)}")
        return found

    def together(self, refs: Sequence[Ref]) -> tuple[Block, list[Expr]] | None:
        """What vectors are functions of, if that is one block, and the functions."""
        found = [self.applied.get(ref) for ref in refs]
        both = [
            (self.values[ref], Var(0)) if one is None else (one.block, one.expr)
            for ref, one in zip(refs, found, strict=True)
        ]
        first = both[0][0]
        if not isinstance(first, Block) or any(block is not first for block, _ in both):
            return None
        return first, [expr for _, expr in both]

    def weights(self, ref: Ref, role: str) -> Mark:
        """The mark of Gaussian weights that are used once."""
        family = self.values[ref]
        if not isinstance(family, Family) or family.mark is None or family.mark.role != role:
            raise NoStages(f"what is no {role} weight, {self.program.place(ref)}")
        usual = family.law == "gaussian" and not family.along and family.mark.start != 0
        if not usual or self.uses[ref] != 1 or family.cov is not None or any(family.mean):
            raise NoStages(f"the weights {family.name!r}, {self.program.place(ref)}")
        return family.mark

    def add(self, stage: Stage, traits: Traits) -> Block:
        """A new stage, as a block of its positions."""
        self.stages.append(stage)
        self.traits.append(traits)
        number = len(self.stages) - 1
        return Block((("", stage.size),), {number: _identity(stage.size)})

    def kept(self, block: Block) -> Block:
        """A block that several read as a stage, if it is none."""
        if all(isinstance(term, int) for term in block.terms):
            return block
        return self.sum(block, None)

    def sum(self, block: Block, bend: Bend | None) -> Block:
        """A stage of what a block sums up, and of a function of it."""
        block = self.ordered(block)
        size, sources, biases, traits = _size(block.axes), [], [], []
        for term, matrix in block.terms.items():
            if isinstance(term, Mark):
                biases.append((matrix.toarray()[:, 0], self.rate(term)))
                names = frozenset([f"{term.label} bias"])
                traits.append(Traits(names, names))
                continue
            source, own = self.source(term, matrix)
            sources.append(source)
            traits.append(own)
        found = _together(traits)
        if bend is not None and not found.outer:
            raise NoStages("a function of what is not Gaussian")
        outer = frozenset[str]() if bend is not None else found.outer
        stage = Stage(tuple(sources), tuple(biases), bend, None, size)
        return Block(block.axes, self.add(stage, Traits(outer, found.inner)).terms)

    def normed(self, block: Block, eps: float) -> Block:
        """A Gaussian block, each of its vectors divided by sqrt(square + eps)."""
        found = self.sum(block, IDENTITY)
        self.stages[-1] = replace(self.stages[-1], norm=eps)
        self.traits[-1] = _together([self.traits[term] for term in block.terms])
        return found

    def ordered(self, block: Block) -> Block:
        """A block with its axes in the order of the inputs, so that neighbours stay neighbours."""
        axes = tuple(sorted(block.axes, key=lambda axis: self.order.get(axis[0], len(self.order))))
        places = _places(block.axes, axes)
        return Block(axes, {term: matrix[places] for term, matrix in block.terms.items()})

    def source(self, term: Product | int, matrix: Any) -> tuple[Source, Traits]:
        """A term of a sum as a source of it."""
        size, rows = matrix.shape[0], matrix.tocoo()
        if isinstance(term, int):
            taps = np.zeros(rows.nnz, dtype=int)
            found = _source(term, (size, 1), (rows.row, taps), rows.col, rows.data, None)
            return found, self.traits[term]
        ((stage, read),) = term.read.terms.items()
        shape = rows.nnz, matrix.shape[1]
        joined = (_matrix(rows.data, np.arange(rows.nnz), rows.col, shape) @ read).tocoo()
        at = rows.row[joined.row], term.weights[rows.col[joined.row]]
        shape = size, int(term.weights.max(initial=0)) + 1
        rate, names = self.rate(term.mark), frozenset([term.mark.label])
        found = _source(stage, shape, at, joined.col, joined.data, rate)
        return found, Traits(names, names | self.traits[stage].inner)

    def averaged(self, block: Block) -> Block:
        """A block whose terms read one position each: averages are stages of their own."""
        terms: dict[Any, Any] = {}
        for term, matrix in block.terms.items():
            if isinstance(term, int) and np.diff(matrix.indptr).max(initial=0) > 1:
                source = Source(term, np.zeros((0, 0), dtype=int), np.zeros((0, 0)), None)
                matrix.sort_indices()  # whoever works with it would, and sums have an order
                stage = Stage((source,), (), None, matrix, matrix.shape[0])
                terms |= self.add(stage, self.traits[term]).terms
            else:
                terms[term] = matrix
        return Block(block.axes, terms)


def _together(traits: list[Traits]) -> Traits:
    """Of a sum of what is uncorrelated."""
    for k, one in enumerate(traits):
        for other in traits[:k]:
            new = (one.outer and not one.outer & other.inner) or (
                other.outer and not other.outer & one.inner
            )
            if not new:
                raise NoStages("a sum of what is not independent")
    inner = frozenset[str]().union(*(one.inner for one in traits))
    all_outer = all(one.outer for one in traits)
    outer = frozenset[str]().union(*(one.outer for one in traits)) if all_outer else frozenset()
    return Traits(outer, inner)


def _source(
    stage: int, shape: tuple[int, int], at: Any, places: Index, factors: Array, rate: float | None
) -> Source:
    """A source from the places and factors of taps, each at a position."""
    found = Source(stage, np.full(shape, -1), np.zeros(shape), rate)
    found.places[at], found.factors[at] = places, factors
    if (found.places >= 0).sum() != len(places):
        raise NoStages("weights that meet a sum of positions")
    return found


def _data(node: Data, ref: Ref, state: _Reading) -> Block | Numbers:
    size = _size(node.axes)
    if node.values:
        return Numbers(node.axes, np.array([float(one) for one in node.values]))
    if state.stages:
        raise NoStages("a second input")
    found = state.add(Stage(size=size), Traits(frozenset(), frozenset()))
    state.order = {name: place for place, (name, _) in enumerate(node.axes)}
    return Block(node.axes, found.terms)


def _input(node: Input, ref: Ref, state: _Reading) -> Family:
    if node.cell is not None:
        raise NoStages(f"a member of {node.family.name!r}")
    return node.family


def _rename(node: Rename, ref: Ref, state: _Reading) -> Block | Numbers:
    found, names = state.values[node.of], dict(node.names)
    found = found if isinstance(found, Numbers) else state.block(node.of)
    axes = tuple((names.get(name, name), size) for name, size in found.axes)
    return replace(found, axes=axes)


def _matmul(node: MatMul, ref: Ref, state: _Reading) -> Block:
    if node.transpose:
        raise NoStages("a transposed map")
    return _product(state, node.matrix, "hidden", node.vector, state.axes(ref))


def _product(state: _Reading, weights: Ref, role: str, read: Ref, axes: Axes) -> Block:
    """The products of weights with a block, at some axes."""
    mark, block = state.weights(weights, role), state.block(read)
    if len(block.terms) != 1 or not all(isinstance(term, int) for term in block.terms):
        block = state.kept(block)
    places = _places(block.axes, axes)
    read_at = Block(axes, {term: matrix[places] for term, matrix in block.terms.items()})
    if len(read_at.terms) != 1:
        raise NoStages("weights that meet a sum")
    product = Product(mark, _places(state.axes(weights), axes), read_at)
    return Block(axes, {product: _identity(_size(axes))})


def _moment(node: Moment, ref: Ref, state: _Reading) -> Value:
    kind = _AVERAGES.get(node.fn.expr)
    if kind is not None and len(node.vectors) == 1 and not node.scalars:
        block = state.kept(state.block(node.vectors[0]))
        if not _together([state.traits[term] for term in block.terms]).outer:
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


def _scale(node: Scale, ref: Ref, state: _Reading) -> Block:
    found = state.values[node.of]
    whole = (node.n_power, node.depth_power) == (as_ex(1), as_ex(0))
    if not isinstance(found, Block) or not found.averaged or not whole:
        raise NoStages(f"a power of n, {state.program.place(ref)}")
    return Block(found.axes, found.terms)


def _lincomb(node: LinComb, ref: Ref, state: _Reading) -> Value:
    axes, vectors = state.axes(ref), [term[2] for term in node.terms]
    alone = all(scalar is None and not over for _, scalar, _, over in node.terms)
    one = state.together(vectors) if alone and state.applied.keys() & set(vectors) else None
    if one is not None and one[0].axes == axes:
        parts = zip(node.terms, one[1], strict=True)
        return Applied(one[0], add(mul((const(term[0]), expr)) for term, expr in parts))
    terms: dict[Any, Any] = {}
    for number, scalar, vector, over in node.terms:
        known = dict(state.axes(vector)) | (dict(state.axes(scalar)) if scalar is not None else {})
        whole = (*axes, *((name, known[name]) for name in over))
        block, values = _term(state, scalar, vector, whole)
        values = float(number) * values
        kept = np.flatnonzero(values)
        rows, columns = _places(axes, whole)[kept], _places(block.axes, whole)[kept]
        matrix = _matrix(values[kept], rows, columns, (_size(axes), _size(block.axes)))
        if any(_collide(matrix @ own, term) for term, own in block.terms.items()):
            block = state.kept(block)
            columns = _places(block.axes, whole)[kept]
            matrix = _matrix(values[kept], rows, columns, matrix.shape)
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


def _term(state: _Reading, scalar: Ref | None, vector: Ref, whole: Axes) -> tuple[Block, Array]:
    """A term of a sum: a block, and numbers in front of its cells at all axes."""
    ones = np.ones(_size(whole))
    factor, value = (None if scalar is None else state.values[scalar]), state.values[vector]
    if isinstance(factor, Block) and isinstance(value, Family):
        return _product(state, vector, "input", _checked(state, scalar), whole), ones
    if isinstance(factor, Average) and factor.kind == "inverse" and factor.block is value:
        return state.normed(factor.block, factor.eps), ones
    if isinstance(factor, Numbers):
        ones = factor.values[_places(factor.axes, whole)]
    elif factor is not None:
        raise NoStages(f"a product, {state.program.place(vector)}")
    if isinstance(value, Family):
        mark = state.weights(vector, "bias")
        if value.axes:
            raise NoStages(f"biases {value.name!r} that differ between positions")
        return Block((), {mark: _identity(1)}), ones
    block = state.block(vector)  # a window of a sum would hold it once for each of its cells
    return state.kept(block) if isinstance(factor, Numbers) else block, ones


def _checked(state: _Reading, scalar: Ref | None) -> Ref:
    assert scalar is not None
    if set(state.block(scalar).terms) != {INPUTS}:
        raise NoStages("numbers that are not the inputs")
    return scalar


def _nonlin(node: Nonlin, ref: Ref, state: _Reading) -> Value:
    if node.vectors:
        return _applied(node, ref, state)
    if any(isinstance(state.values[one], Average) for one in node.scalars):
        return _of_average(node, ref, state)
    axes, expr = state.axes(ref), node.fn.expr
    terms: dict[Any, Any] = {}
    for part in expr.terms if isinstance(expr, Add) else (expr,):
        number, rest = split_coefficient(part)
        given, blocks = np.full(_size(axes), float(number)), []
        for factor in rest.factors if isinstance(rest, Mul) else (rest,):
            value = state.values[node.scalars[factor.index]] if isinstance(factor, Par) else None
            if isinstance(value, Numbers):
                given *= value.values[_places(value.axes, axes)]
            else:
                blocks.append(value)
        if len(blocks) != 1 or not isinstance(blocks[0], Block) or blocks[0].averaged:
            raise NoStages(f"a function of numbers, {state.program.place(ref)}")
        kept = np.flatnonzero(given)
        columns = _places(blocks[0].axes, axes)[kept]
        matrix = _matrix(given[kept], kept, columns, (len(given), _size(blocks[0].axes)))
        _add(terms, matrix, blocks[0])
    return Block(axes, terms)


def _applied(node: Nonlin, ref: Ref, state: _Reading) -> Value:
    """A function of one vector, or a vector less its mean, which is 0 where it is Gaussian."""
    expr = node.fn.expr
    for place, scalar in enumerate(node.scalars):
        average = state.values[scalar]
        if not isinstance(average, Average) or average.kind != "mean":
            raise NoStages(f"a function of averages, {state.program.place(ref)}")
        expr = substitute(expr, {Par(place): const(0)})
    one = state.together(node.vectors)
    if one is not None and one[0].axes == state.axes(ref):
        expr = substitute(expr, {Var(place): own for place, own in enumerate(one[1])})
        return one[0] if expr == Var(0) else Applied(one[0], expr)
    if len(node.vectors) != 1:
        raise NoStages(f"a function of several vectors, {state.program.place(ref)}")
    block = state.block(node.vectors[0])
    return block if expr == Var(0) else Applied(block, expr)


def _of_average(node: Nonlin, ref: Ref, state: _Reading) -> Average:
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


def _none(node: Node, ref: Ref, state: _Reading) -> Block:
    raise NoStages(f"{type(node).__name__}, {state.program.place(ref)}")


_AVERAGES = {Var(0): "mean", Var(0) ** 2: "square"}
_READ: Table[Value] = Table(
    {Data: _data, Input: _input, Rename: _rename, MatMul: _matmul, Moment: _moment, Scale: _scale,
     LinComb: _lincomb, Nonlin: _nonlin},
    _none,
)  # fmt: skip
