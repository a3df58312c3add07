"""A layer graph as a Tensor Program of two inputs and one change of an input."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import sqrt

from tpcalc.errors import StudyError
from tpcalc.functions import Fn, Par, Var
from tpcalc.functions.fn import derivative
from tpcalc.program import nodes
from tpcalc.program.nodes import LinComb, Moment, Nonlin, Ref
from tpcalc.program.program import Builder, Program
from tpcalc.signal.graph import LayerGraph
from tpcalc.signal.operations import (
    Activation,
    Addition,
    Bias,
    Dense,
    Gain,
    Input,
    LayerNorm,
    Number,
    Product,
    SharedBias,
)
from tpcalc.signal.reading import Layers, layers
from tpcalc.signal.weights import Weights, dimension, gaussian_vectors

__all__ = ["program_of"]

CENTRED = Fn(Var(0) - Par(0), 1, 1)
SQUARE = Fn(Var(0) ** 2, 1)
INNER = Fn(Var(0) * Var(1), 2)
FIRST = Fn(Var(0), 1)
SHIFTED = Fn(Var(0) + Par(0), 1, 1)
MINUS = Fn(-1 * Par(0), 0, 1)


@dataclass(frozen=True, slots=True)
class _Copies:
    """A layer at two inputs, and its change along a change of the first."""

    one: Ref
    other: Ref
    change: Ref


def program_of(network: Layers, inputs: Input | None = None) -> Program:
    r"""The graph written out: what the recursion says, the limit of this program says as well.

    Args:
        network: The network, or layers. Normalisation over a batch has no program: its batch is
            infinite.
        inputs: Second moments of inputs; by default those that a text says, else 1 and 0.

    Returns:
        A program with outputs ``q[l]``, ``c[l]`` and ``g[l]`` for each layer l: averages over
        coordinates of x^2, x x' and of the square of the derivative along a standard Gaussian
        change of the input.

    Raises:
        StudyError: A layer that has no program.

    Source: Schoenherr, The nonlinearity coefficient, section 5.1 (table 5.1).

    Example:
        >>> from tpcalc.signal.notation import parse_graph
        >>> program = program_of(parse_graph("x = input(1, 1/2)\na = dense(x, 2)"))
        >>> [name for name, _ in program.outputs]
        ['q[0]', 'c[0]', 'g[0]', 'q[1]', 'c[1]', 'g[1]']
    """
    graph = layers(network, inputs)
    writer = _Writer(Builder(), graph)
    made: list[_Copies] = []
    for index, layer in enumerate(graph.layers):
        made.append(writer.layer(index, [made[p] for p in layer.parents]))
        writer.watch(index, made[-1])
    return writer.builder.finish()


@dataclass(frozen=True)
class _Writer:
    builder: Builder
    graph: LayerGraph

    def watch(self, index: int, own: _Copies) -> None:
        add, output = self.builder.add, self.builder.output
        output(f"q[{index}]", add(Moment(SQUARE, (own.one,))))
        output(f"c[{index}]", add(Moment(INNER, (own.one, own.other))))
        output(f"g[{index}]", add(Moment(SQUARE, (own.change,))))

    def layer(self, index: int, parents: list[_Copies]) -> _Copies:
        operation = self.graph.layers[index].operation
        if isinstance(operation, Input):
            return self._input(operation)
        if isinstance(operation, Addition):
            return self._addition(operation, parents)
        if isinstance(operation, Product):
            return self._product(*parents)
        (own,) = parents
        if isinstance(operation, Dense):
            return self._dense(index, operation, own)
        if isinstance(operation, SharedBias):
            return self._shared(index, operation, own)
        if isinstance(operation, Gain):
            return self._gain(index, operation, own)
        if isinstance(operation, Bias):
            added = self._bias(index, operation)
            return _Copies(self._plus(own.one, added), self._plus(own.other, added), own.change)
        if isinstance(operation, Activation):
            return self._activation(operation, own)
        if isinstance(operation, LayerNorm):
            return self._normalised(operation, own)
        raise StudyError(
            f"{operation.name} has no program here.",
            where=f"layer {index}",
            hint="The recursion covers it; a program has as many inputs as are written.",
        )

    def _input(self, operation: Input) -> _Copies:
        q, c = float(operation.square), float(operation.comean)
        one, other = gaussian_vectors(self.builder, "x", "n", ((q, c), (c, q)))
        (change,) = gaussian_vectors(self.builder, "u", "n", ((1.0,),))
        return _Copies(one, other, change)

    def _dense(self, index: int, operation: Dense, own: _Copies) -> _Copies:
        widths, (parent,) = self.graph.widths, self.graph.layers[index].parents
        weights = (operation.variance, operation.law, None, operation.exponent)
        made = Weights.of(self.builder, f"W{index}", *weights, widths[parent] or 1, widths[index])
        return _Copies(*(made.times(part) for part in (own.one, own.other, own.change)))

    def _start(self, index: int, variance: float) -> Ref:
        dim = dimension(self.builder, self.graph.widths[index] or 1)
        return gaussian_vectors(self.builder, f"b{index}", dim, ((variance,),))[0]

    def _bias(self, index: int, operation: Bias) -> Ref:
        return self._start(index, float(operation.variance))

    def _shared(self, index: int, operation: SharedBias, own: _Copies) -> _Copies:
        name, given = f"b{index}", operation.drawn
        random = nodes.Input(nodes.Family.scalar(name, 0.0, sqrt(operation.variance)))
        number = self.builder.add(random if given is None else nodes.Data(name, (given,)))
        one, other = (
            self.builder.add(Nonlin(SHIFTED, (part,), (number,))) for part in (own.one, own.other)
        )
        return _Copies(one, other, own.change)

    def _gain(self, index: int, operation: Gain, own: _Copies) -> _Copies:
        start = self._start(index, float(operation.variance))
        factor = self.builder.add(Nonlin(Fn(operation.tau, 1), (start,)))
        parts = (own.one, own.other, own.change)
        return _Copies(*(self.builder.add(Nonlin(INNER, (factor, part))) for part in parts))

    def _sum(self, terms: list[tuple[Number, Ref]]) -> Ref:
        numbers, refs = zip(*terms, strict=True)
        return self.builder.add(LinComb(numbers, (None,) * len(refs), refs))

    def _plus(self, vector: Ref, other: Ref) -> Ref:
        return self._sum([(Fraction(1), vector), (Fraction(1), other)])

    def _addition(self, operation: Addition, parents: list[_Copies]) -> _Copies:
        def total(part: str) -> Ref:
            refs = [getattr(each, part) for each in parents]
            return self._sum(list(zip(operation.weights, refs, strict=True)))

        return _Copies(total("one"), total("other"), total("change"))

    def _product(self, left: _Copies, right: _Copies) -> _Copies:
        def times(one: Ref, other: Ref) -> Ref:
            return self.builder.add(Nonlin(INNER, (one, other)))

        change = self._plus(times(left.change, right.one), times(left.one, right.change))
        return _Copies(times(left.one, right.one), times(left.other, right.other), change)

    def _activation(self, operation: Activation, own: _Copies) -> _Copies:
        fn = Fn(operation.tau, 1)
        slope = Fn(derivative(operation.tau, Var(0)) * Var(1), 2)
        one, other = (self.builder.add(Nonlin(fn, (part,))) for part in (own.one, own.other))
        return _Copies(one, other, self.builder.add(Nonlin(slope, (own.one, own.change))))

    def _normalised(self, operation: LayerNorm, own: _Copies) -> _Copies:
        add = self.builder.add
        one, scale = self._standard(own.one, operation)
        other, _ = self._standard(own.other, operation)
        centred = self._centred(own.change) if operation.centred else own.change
        along = add(Nonlin(MINUS, (), (add(Moment(INNER, (one, centred))),)))
        straight = add(LinComb((Fraction(1), Fraction(1)), (None, along), (centred, one)))
        return _Copies(one, other, add(LinComb((Fraction(1),), (scale,), (straight,))))

    def _centred(self, vector: Ref) -> Ref:
        mean = self.builder.add(Moment(FIRST, (vector,)))
        return self.builder.add(Nonlin(CENTRED, (vector,), (mean,)))

    def _standard(self, vector: Ref, operation: LayerNorm) -> tuple[Ref, Ref]:
        add = self.builder.add
        centred = self._centred(vector) if operation.centred else vector
        inverse = Fn((Par(0) + operation.epsilon) ** Fraction(-1, 2), 0, 1)
        scale = add(Nonlin(inverse, (), (add(Moment(SQUARE, (centred,))),)))
        return add(LinComb((Fraction(1),), (scale,), (centred,))), scale
