"""``stages_of``: a network over positions as stages of Gaussian vectors, read off its blocks.

Every block of vectors is a sum of linear maps, over positions, of what stages have: a window is
one, and so is an average; products with weights are sums of taps, one for each cell of a window. So
strides, paddings, dilations and numbers of axes are nothing but other places.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from tpcalc.arrays import Array, Index
from tpcalc.engine.planes_stages import IDENTITY, INPUTS, Bend, Source, Stage, rated
from tpcalc.exponents import as_ex
from tpcalc.functions import Const, Expr, Par, Var, const
from tpcalc.functions.expr import Add, Mul, Pow, add, mul, split_coefficient, substitute, walk
from tpcalc.functions.fn import slope_or_none
from tpcalc.functions.form import slopes_of
from tpcalc.names import what_of
from tpcalc.networks.network import Architecture
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
from tpcalc.program.base import Table, cone, references
from tpcalc.program.family import Family, Mark
from tpcalc.program.nodes import Data, Input, LinComb, MatMul, Moment, Node, Nonlin, Rename, Scale
from tpcalc.program.program import Program
from tpcalc.program.types import Axes, Ref

Rate = Callable[[Mark], float]
Bent = Callable[[Expr], Bend | None]
Mean = Callable[[Expr], float]


def stages_of(network: Architecture, rate: Rate, bend: Bent, mean: Mean) -> tuple[Stage, ...]:
    """The stages of a network with one output.

    Args:
        network: The network.
        rate: The rate of each parameter.
        bend: The family and the numbers of a function; None: it has no loop.
        mean: The average of a function of a standard Gaussian.

    Raises:
        NoStages: It is more than sums of products with new weights, functions of one Gaussian
            vector, their products with each other and with noise, and averages over positions.
    """
    return rated(_Reading(network.smallest, rate, bend, mean).stages_read())


class _Reading:
    """The way through a program, from its inputs on."""

    def __init__(self, program: Program, rate: Rate, bend: Bent, mean: Mean) -> None:
        self.program, self.rate, self.bend, self.mean = program, rate, bend, mean
        outs = [ref for name, ref in program.outputs if what_of(name) == "f"]
        self.needed = cone(program.nodes, outs)
        self.outs = outs
        kept = [node for node, used in zip(program.nodes, self.needed, strict=True) if used]
        self.uses = Counter(ref for node in kept for ref in references(node))
        self.values: dict[Ref, Value] = {}
        self.applied: dict[Ref, Applied] = {}  # of values that may be stages by now
        self.made: dict[Applied, Block] = {}
        self.parameters: list[Mark] = []
        self.stages: list[Stage] = []
        self.traits: list[Traits] = []
        self.order: dict[str, int] = {}  # of the axes of the inputs

    def stages_read(self) -> list[Stage]:
        """Of its one output."""
        program = self.program
        if len(self.outs) != 1:
            raise NoStages("several readouts")
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
        found = self.sum(out, None)
        if found.axes != out.axes:
            ((term, matrix),) = found.terms.items()
            source, traits = self.source(term, matrix[places_of(found.axes, out.axes)])
            self.add(Stage((source,), size=size_of(out.axes)), traits)
        return self.stages

    def axes(self, ref: Ref) -> Axes:
        """The axes of a node."""
        return self.program.types[ref].axes

    def block(self, ref: Ref) -> Block:
        """A block that is a value by now."""
        found = self.values[ref]
        if isinstance(found, Applied):
            if found not in self.made:
                self.made[found] = self.bent(found, ref)
            found = self.values[ref] = self.made[found]
        if not isinstance(found, Block) or found.averaged:
            raise NoStages(f"a value that is no vector, {self.program.place(ref)}")
        return found

    def bent(self, applied: Applied, ref: Ref) -> Block:
        """A stage of a function of a block, with what its parameters do to tangent kernels."""
        base, place = applied.base, self.program.place(ref)
        if not isinstance(base, Block):
            raise NoStages(f"noise or parameters by themselves, {place}")
        none = {Var(k): const(0) for k in range(1, len(self.parameters) + 1)}
        function = substitute(applied.expr, none)
        bend = None if function == Var(0) else self.bend(function)
        if bend is None and function != Var(0):
            raise NoStages(f"the function {function.text}, {place}")
        slope, tilt, lift = slope_or_none(function, Var(0)), 0.0, 0.0
        linear = function == Var(0) or slopes_of(function) is not None
        for k, mark in enumerate(self.parameters, 1):
            own = slope_or_none(applied.expr, Var(k))
            rate = self.rate(mark) if own != const(0) else 0.0
            if rate == 0.0:
                continue
            own = None if own is None else substitute(own, none)
            shift, gain = _multiple(own, slope), _multiple(own, slope and mul((Var(0), slope)))
            if shift is None and (gain is None or not linear):
                raise NoStages(f"the parameter {mark.label!r} in {function.text}, {place}")
            if shift is not None:
                tilt += rate * shift**2
            elif gain is not None:  # of what is linear on both sides of 0, z phi' is phi
                lift += rate * gain**2
        return self.sum(base, bend, tilt, lift)

    def base(self, ref: Ref) -> Any:
        """What a vector is a function of; None of a parameter that is 0 at the start."""
        value = self.applied.get(ref, self.values[ref])
        if isinstance(value, Applied):
            return value.base
        mark = value.mark if isinstance(value, Family) and not value.axes else None
        return None if mark is not None and mark.role == "bias" and mark.start == 0 else value

    @staticmethod
    def is_function(base: Any, axes: Axes) -> bool:
        """Whether functions of it are vectors at some axes."""
        return isinstance(base, Block | Noise) and base.axes == axes

    def functions(self, refs: Sequence[Ref]) -> list[Applied]:
        """Vectors as functions of what they are made of."""
        found = []
        for ref in refs:
            value = self.applied.get(ref, self.values[ref])
            if isinstance(value, Family) and self.base(ref) is None and value.mark is not None:
                self.parameters.append(value.mark)
                value = self.values[ref] = Applied(None, Var(len(self.parameters)))
            if isinstance(value, Block | Noise):
                value = Applied(value, Var(0))
            if not isinstance(value, Applied):
                raise NoStages(f"a value that is no vector, {self.program.place(ref)}")
            if value.base is None and self.uses[ref] != 1:
                raise NoStages(f"parameters that are read twice, {self.program.place(ref)}")
            found.append(value)
        return found

    def function(self, refs: Sequence[Ref], expr: Expr, ref: Ref) -> Value:
        """A function of vectors that are functions of one block, or a product of functions."""
        found, axes = self.functions(refs), self.axes(ref)
        bases = list(dict.fromkeys(one.base for one in found if one.base is not None))
        if not all(self.is_function(base, axes) for base in bases):
            raise NoStages(f"a function of vectors of other axes, {self.program.place(ref)}")
        if len(bases) < 2:
            expr = substitute(expr, {Var(k): one.expr for k, one in enumerate(found)})
            return Applied(bases[0] if bases else None, expr)
        number, rest = split_coefficient(expr)
        parts: dict[Any, list[Expr]] = {base: [] for base in bases}
        for factor in rest.factors if isinstance(rest, Mul) else (rest,):
            own = {found[k].base for k in range(len(found)) if _reads(factor, k)} - {None}
            if len(own) > 1:
                raise NoStages(f"a function of several vectors, {self.program.place(ref)}")
            base = own.pop() if own else bases[0]
            given = {Var(k): one.expr for k, one in enumerate(found) if _reads(factor, k)}
            parts[base].append(substitute(factor, given))
        return self.product({base: mul(own) for base, own in parts.items()}, float(number), ref)

    def product(self, parts: dict[Any, Expr], number: float, ref: Ref) -> Block:
        """A stage of products of independent vectors, and of noise."""
        same = apart = number**2
        traits, sources, axes, outer = [], [], self.axes(ref), frozenset[str]()
        for base, expr in parts.items():
            if isinstance(base, Noise):
                same, apart = same * self.mean(expr**2), apart * self.mean(expr) ** 2
                continue
            base = self.kept(base)
            traits += [self.traits[term] for term in base.terms]
            outer = traits[-1].outer if expr == Var(0) else outer
            block = self.bent(Applied(base, expr), ref) if expr != Var(0) else base
            ((term, matrix),) = block.terms.items()
            places = places_of(block.axes, axes)
            sources.append(self.source(term, matrix[places])[0])
        whole = together(traits)
        if not whole.gaussian:
            raise NoStages(f"a product of what is not Gaussian, {self.program.place(ref)}")
        stage = Stage(tuple(sources), size=size_of(axes), times=(same, apart))
        return Block(axes, self.add(stage, Traits(outer, whole.inner, False)).terms)

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
        return Block((("", stage.size),), {number: identity(stage.size)})

    def kept(self, block: Block) -> Block:
        """A block that several read as a stage, if it is none."""
        if all(isinstance(term, int) for term in block.terms):
            return block
        return self.sum(block, None)

    def sum(self, block: Block, bend: Bend | None, tilt: float = 0.0, lift: float = 0.0) -> Block:
        """A stage of what a block sums up, and of a function of it."""
        block = self.ordered(block)
        size, sources, biases, traits = size_of(block.axes), [], [], []
        for term, matrix in block.terms.items():
            if isinstance(term, Mark):
                biases.append((matrix.toarray()[:, 0], self.rate(term)))
                names = frozenset([f"{term.label} bias"])
                traits.append(Traits(names, names))
                continue
            source, own = self.source(term, matrix)
            sources.append(source)
            traits.append(own)
        found = together(traits)
        if bend is not None and not found.gaussian:
            raise NoStages("a function of what is not Gaussian")
        if bend is not None:
            found = Traits(frozenset(), found.inner, False)
        stage = Stage(tuple(sources), tuple(biases), bend, None, size, tilt=tilt, lift=lift)
        return Block(block.axes, self.add(stage, found).terms)

    def normed(self, block: Block, eps: float) -> Block:
        """A Gaussian block, each of its vectors divided by sqrt(square + eps)."""
        found = self.sum(block, IDENTITY)
        self.stages[-1] = replace(self.stages[-1], norm=eps)
        self.traits[-1] = together([self.traits[term] for term in block.terms])
        return found

    def ordered(self, block: Block) -> Block:
        """A block with its axes in the order of the inputs, so that neighbours stay neighbours."""
        axes = tuple(sorted(block.axes, key=lambda axis: self.order.get(axis[0], len(self.order))))
        places = places_of(block.axes, axes)
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
        joined = (matrix_of(rows.data, np.arange(rows.nnz), rows.col, shape) @ read).tocoo()
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


def _multiple(own: Expr | None, other: Expr | None) -> float | None:
    """What times an expression another one is, if it is that at a glance."""
    if own is None or other is None:
        return None
    (number, rest), (unit, same) = split_coefficient(own), split_coefficient(other)
    return float(number) / float(unit) if rest == same else None


def _reads(expr: Expr, k: int) -> bool:
    return any(part == Var(k) for part in walk(expr))


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
    size = size_of(node.axes)
    if node.values:
        return Numbers(node.axes, np.array([float(one) for one in node.values]))
    if state.stages:
        raise NoStages("a second input")
    found = state.add(Stage(size=size), Traits(frozenset(), frozenset(), False))
    state.order = {name: place for place, (name, _) in enumerate(node.axes)}
    return Block(node.axes, found.terms)


def _input(node: Input, ref: Ref, state: _Reading) -> Family | Noise:
    family = node.family
    if node.cell is not None:
        raise NoStages(f"a member of {family.name!r}")
    if family.mark is None or family.mark.role != "noise":
        return family
    if family.law != "gaussian" or family.cov is not None or any(family.mean):
        raise NoStages(f"noise {family.name!r} of another law")
    return Noise(family.axes)


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
        block = state.sum(block, None)
    places = places_of(block.axes, axes)
    read_at = Block(axes, {term: matrix[places] for term, matrix in block.terms.items()})
    if len(read_at.terms) != 1:
        raise NoStages("weights that meet a sum")
    product = Product(mark, places_of(state.axes(weights), axes), read_at)
    return Block(axes, {product: identity(size_of(axes))})


def _moment(node: Moment, ref: Ref, state: _Reading) -> Value:
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


def _scale(node: Scale, ref: Ref, state: _Reading) -> Block:
    found = state.values[node.of]
    whole = (node.n_power, node.depth_power) == (as_ex(1), as_ex(0))
    if not isinstance(found, Block) or not found.averaged or not whole:
        raise NoStages(f"a power of n, {state.program.place(ref)}")
    return Block(found.axes, found.terms)


def _lincomb(node: LinComb, ref: Ref, state: _Reading) -> Value:
    vectors, axes = [term[2] for term in node.terms], state.axes(ref)
    if any(scalar is not None or over for _, scalar, _, over in node.terms):
        return _summed(node.terms, axes, state)
    bases = [state.base(vector) for vector in vectors]
    some = {id(base): base for base in bases if base is not None}
    lazy = any(
        vector in state.applied or isinstance(base, Noise)
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


def _summed(given: Sequence[Any], axes: Axes, state: _Reading) -> Block:
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


def _term(state: _Reading, scalar: Ref | None, vector: Ref, whole: Axes) -> tuple[Block, Array]:
    """A term of a sum: a block, and numbers in front of its cells at all axes."""
    ones = np.ones(size_of(whole))
    factor, value = (None if scalar is None else state.values[scalar]), state.values[vector]
    if isinstance(factor, Block) and isinstance(value, Family):
        return _product(state, vector, "input", _checked(state, scalar), whole), ones
    if isinstance(factor, Average) and factor.kind == "inverse":
        if state.block(vector) is factor.block:
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
        given, blocks = np.full(size_of(axes), float(number)), []
        for factor in rest.factors if isinstance(rest, Mul) else (rest,):
            value = state.values[node.scalars[factor.index]] if isinstance(factor, Par) else None
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


def _applied(node: Nonlin, ref: Ref, state: _Reading) -> Value:
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
