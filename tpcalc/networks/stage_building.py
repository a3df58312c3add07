"""How blocks of vectors become stages: sums, functions, products, norms and averages of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tpcalc.arrays import Array, Index
from tpcalc.engine.chains_series import Smooth
from tpcalc.engine.planes_stages import IDENTITY, Bend, Known, Source, Stage
from tpcalc.functions import Expr, Var, const
from tpcalc.functions.expr import Mul, mul, split_coefficient, substitute, walk
from tpcalc.functions.fn import slope_or_none
from tpcalc.functions.form import slopes_of
from tpcalc.names import what_of
from tpcalc.networks.stage_values import (
    Applied,
    Block,
    Noise,
    NoStages,
    Product,
    Traits,
    Value,
    identity,
    matrix_of,
    places_of,
    size_of,
    together,
)
from tpcalc.program.base import cone, references
from tpcalc.program.family import Family, Mark
from tpcalc.program.program import Program
from tpcalc.program.types import Axes, Ref

Rate = Callable[[Mark], float]
Named = Callable[[Expr], Known | None]
Tabled = Callable[[Expr], Smooth | None]
Mean = Callable[[Expr], float]


class Building:
    """The way through a program, from its inputs on."""

    def __init__(
        self, program: Program, rate: Rate, family: Named, smooth: Tabled, mean: Mean
    ) -> None:
        self.program, self.rate, self.mean = program, rate, mean
        self.family, self.smooth = family, smooth
        outs = [ref for name, ref in program.outputs if what_of(name) == "f"]
        self.needed = cone(program.nodes, outs)
        self.outs = outs
        kept = [node for node, used in zip(program.nodes, self.needed, strict=True) if used]
        self.uses = Counter(ref for node in kept for ref in references(node))
        self.values: dict[Ref, Value] = {}
        self.applied: dict[Ref, Applied] = {}  # of values that may be stages by now
        self.made: dict[Applied, Block] = {}
        self.parameters: list[Mark] = []
        self.tilt = 0.0  # what biases of outputs that start at 0 add to tangent kernels
        self.stages: list[Stage] = []
        self.traits: list[Traits] = []
        self.order: dict[str, int] = {}  # of the axes of the inputs

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
        none: dict[Expr, Expr] = {Var(k): const(0) for k in range(1, len(self.parameters) + 1)}
        function = substitute(applied.expr, none)
        scale, plain = split_coefficient(function)
        if plain == Var(0):
            scaled = {term: float(scale) * matrix for term, matrix in base.terms.items()}
            base, bend = Block(base.axes, scaled), None
        else:
            bend = self.family(function) or self.smooth(function)
            if bend is None:
                raise NoStages(f"the function {function.text}, {place}")
        tilt, lift, lifted = self.added(applied.expr, function, none, place)
        if lifted is not None and bend is None:
            raise NoStages(f"parameters in {applied.expr.text}, {place}")
        if plain == Var(0) and tilt == lift == 0.0:
            return base if scale == 1 else self.kept(base)
        return self.sum(base, bend, tilt, lift, lifted)

    def added(
        self, expr: Expr, function: Expr, none: dict[Expr, Expr], place: str
    ) -> tuple[float, float, Smooth | None]:
        """What parameters add to tangent kernels before a function and after it; that of what."""
        slope, tilt, lift, lifted = slope_or_none(function, Var(0)), 0.0, 0.0, None
        sides = slopes_of(function)
        for k, mark in enumerate(self.parameters, 1):
            own = slope_or_none(expr, Var(k))
            rate = self.rate(mark) if own != const(0) else 0.0
            if rate == 0.0:
                continue
            own = None if own is None else substitute(own, none)
            shift = _multiple(own, slope)
            # of what is linear on both sides of 0, z phi' is phi
            gain = None if own is None or sides is None else _ratio(slopes_of(own), sides)
            if shift is not None:
                tilt += rate * shift**2
            elif gain is not None and lifted is None:
                lift += rate * gain**2
            else:
                lifted = None if own is None or lift else self.smooth(own)
                if lifted is None:
                    raise NoStages(f"the parameter {mark.label!r} in {function.text}, {place}")
                lift = rate
        return tilt, lift, lifted

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
        given: dict[Expr, Expr] = {Var(k): one.expr for k, one in enumerate(found)}
        if len(bases) < 2:
            return Applied(bases[0] if bases else None, substitute(expr, given))
        number, rest = split_coefficient(expr)
        parts: dict[Any, list[Expr]] = {base: [] for base in bases}
        for factor in rest.factors if isinstance(rest, Mul) else filter(None, (rest,)):
            own = {found[k].base for k in range(len(found)) if _reads(factor, k)} - {None}
            if len(own) > 1:
                raise NoStages(f"a function of several vectors, {self.program.place(ref)}")
            base = own.pop() if own else bases[0]
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
            base = self.kept(base) if len(base.terms) == 1 else self.sum(base, None)
            traits += [self.traits[term] for term in base.terms]
            outer = traits[-1].outer if expr == Var(0) else outer
            block = self.bent(Applied(base, expr), ref) if expr != Var(0) else base
            ((term, matrix),) = block.terms.items()
            sources.append(self.source(term, matrix[places_of(block.axes, axes)])[0])
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

    def sum(
        self,
        block: Block,
        bend: Bend | None,
        tilt: float = 0.0,
        lift: float = 0.0,
        lifted: Smooth | None = None,
    ) -> Block:
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
        stage = Stage(
            tuple(sources), tuple(biases), bend, None, size, tilt=tilt, lift=lift, lifted=lifted
        )
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


def _ratio(own: tuple[float, float] | None, sides: tuple[float, float]) -> float | None:
    """The multiple of slopes on both sides that others are."""
    if own is None:
        return None
    gain = own[0] / sides[0] if sides[0] else own[1] / sides[1]
    return gain if (gain * sides[0], gain * sides[1]) == own else None


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
