"""The first steps of a training run as a program: passes over inputs, each at moved parameters.

A pass is the network on one input of generic numbers, with the adjoint of a probe: a fixed linear
function of its outputs, whose derivative by them is of order one whatever the loss is. After a pass
every parameter moves along its own gradient, or the signs of its cells, times a power of n: what
an optimizer makes of it in size and sign (of the sign of a sum of outer products the sum has the
symmetries). Tokens have different lengths and angles: what a row gives to each is not nearly equal.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import prod

from tpcalc.exponents import as_ex
from tpcalc.functions.numbers import Number, as_number
from tpcalc.names import what_of
from tpcalc.networks.network import INPUT
from tpcalc.passes.backward import Gradients, backward
from tpcalc.passes.change import Direction, inner_products
from tpcalc.passes.sums import Term, pulled, ratio, total
from tpcalc.program.base import Table, input_of, matmul_of, renumbered
from tpcalc.program.family import Mark
from tpcalc.program.nodes import Data, Input, MatMul, Node, Ref, Scale
from tpcalc.program.program import Builder, Program
from tpcalc.program.types import Axes
from tpcalc.results import Samples
from tpcalc.training.generic import FEATURES, uneven
from tpcalc.training.training import Training
from tpcalc.training.written import network_program

PROBE = "<probe>"
WEIGHTS = (1.0, 0.7, 1.3, -0.6, 0.9)  # of outputs in the probe: no two agree, no sum is 0


@dataclass(frozen=True)
class Pass:
    """The network on one input, and the gradient of the probe."""

    new: Mapping[Ref, Ref]  # for each node of the network the one that stands for it
    last: Ref  # the first node that is of its backward pass
    given: frozenset[Ref]  # nodes of earlier passes that this one does not share
    gradients: Gradients  # by the parameters where they stand now


@dataclass
class FirstSteps:
    """Passes of a training run, one after the other."""

    network: Program  # the network, its parameterization written out
    parameters: Mapping[Ref, Input]  # what is trained, by its node in the network
    inputs: tuple[tuple[Number, ...], ...]  # the numbers of generic inputs
    builder: Builder  # all passes so far
    # what each parameter has moved along, since the start
    moved: dict[Ref, list[Direction]] = field(default_factory=dict)

    @staticmethod
    def of(run: Training) -> FirstSteps:
        """Before the first pass of a training run."""
        network, data = run.network, run.data
        if data is None:
            data = Samples((uneven(network.tokens), uneven(network.tokens, 2)), ((0.0,),) * 2)
            outputs = network.targets(FEATURES)
        else:
            outputs = data.outputs
        outputs //= network.positions
        program = network_program(network, run.parameterization, data.dimension, outputs)
        first, second = data.inputs[0], data.inputs[-1]
        # Later inputs share tokens with the first one: a norm keeps what equal ones have in common.
        size = len(first) // network.tokens
        mixed = tuple((second, first)[at // size % 2][at] for at in range(len(first)))
        trained = {
            ref: node
            for ref, found in enumerate(program.nodes)
            if (node := input_of(found)) is not None and _moves(run, node.family.mark)
        }
        return FirstSteps(program, trained, (first, mixed, second), Builder(program.dims))

    def anew(self) -> FirstSteps:
        """The same before the first pass."""
        return replace(self, builder=Builder(self.network.dims), moved={})

    def next(self, step: int) -> Pass:
        """Write the pass of a step, from 0."""
        out, new = self.builder, dict[Ref, Ref]()
        parameters = self.parameters
        numbers = self.inputs[min(step, len(self.inputs) - 1)]
        for ref in parameters:
            new[ref] = self._now(ref, out.add(self.network.nodes[ref]))
        first = len(out)
        for ref, node in enumerate(self.network.nodes):
            out.line = self.network.line_of(ref)
            if ref in parameters:
                continue
            given = _GIVEN(node, f"{INPUT}{step}", numbers)
            product = matmul_of(given)
            made = renumbered(given, new.__getitem__)
            new[ref] = out.add(made)
            if product is not None and self.moved.get(product.matrix):
                terms = [(Fraction(1), None, new[ref], ()), *self._products(product, made)]
                new[ref] = total(out, terms)
        out.line = None
        named = [new[ref] for name, ref in self.network.outputs if what_of(name) == "f"]
        last, own = len(out), [new[ref] for ref in parameters]
        seeds = [(ref, _probe(out, ref, k)) for k, ref in enumerate(named)]
        # What is made of parameters that have not moved is the same in all passes.
        before = frozenset(range(first)).difference(new.values())
        return Pass(new, last, before, backward(out, seeds, own, before))

    def redrawn(self, refs: Collection[Ref]) -> Program:
        """The sum of the squares of the outputs, ``f``, and that of what redraws change, ``df``.

        Nothing starts at 0: parameters stand anywhere.
        """
        out, found = Builder(self.network.dims), list[list[Ref]]()
        for drawn in (frozenset[Ref](), frozenset(refs)):
            new: dict[Ref, Ref] = {}
            for ref, node in enumerate(self.network.nodes):
                given = _GIVEN(node, INPUT, self.inputs[1])
                family = self.parameters[ref].family if ref in drawn else None
                again = family and Input(replace(family, name=f"{family.name}'"))
                new[ref] = out.add(again or renumbered(given, new.__getitem__))
            outputs = (ref for name, ref in self.network.outputs if what_of(name) == "f")
            found.append([new[ref] for ref in outputs])
        pairs = zip(*found, strict=True)
        moved = [total(out, [(1, None, a, ()), (-1, None, b, ())]) for a, b in pairs]
        for name, read in (("f", found[0]), ("df", moved)):
            squares = [one for ref in read for one in inner_products(out, ref, ref, ref)]
            out.output(name, total(out, [(1, None, one, ()) for one in squares]))
        return out.finish()

    def move(self, ref: Ref, direction: Direction) -> None:
        """Let a parameter take a step."""
        self.moved.setdefault(ref, []).append(direction)

    def _now(self, ref: Ref, start: Ref) -> Ref:
        """A vector or number where it stands now; a matrix stands for its start."""
        changes = [each for each in self.moved.get(ref, ()) if isinstance(each, Ref)]
        terms: list[Term] = [(Fraction(1), None, each, ()) for each in (start, *changes)]
        return total(self.builder, terms)

    def _products(self, node: MatMul, made: Node) -> Iterator[Term]:
        """What the steps of a matrix add to its product with a vector."""
        out = self.builder
        product = matmul_of(made)
        assert product is not None
        family = {name for name, _ in out.type(product.matrix).axes}
        for direction in self.moved[node.matrix]:
            assert not isinstance(direction, Ref)
            for pair in direction:
                result, into = pair[::-1] if node.transpose else pair
                names, result, gram = pulled(out, product.vector, result, into, family)
                gram = out.add(Scale(gram, as_ex(1)))
                held = {a for ref in (gram, result) for a, _ in out.type(ref).axes}
                over = tuple(name for name in names.values() if name in held)
                yield ratio(out, into), gram, result, over


def _moves(run: Training, mark: Mark | None) -> bool:
    """Whether something is trained, and not at rate 0."""
    if mark is None or not mark.trained:
        return False
    return any(mark.rate * run.rate(mark, step)[0] for step in range(run.steps))


def _put(node: Data, name: str, numbers: tuple[Number, ...]) -> Node:
    slot = node.name == INPUT and not node.values
    return replace(node, name=name, values=tuple(map(as_number, numbers))) if slot else node


_GIVEN: Table[Node] = Table({Data: _put}, lambda node, name, numbers: node)


def _probe(builder: Builder, ref: Ref, place: int) -> Ref:
    """The numbers in front of an output, one for each of its cells."""
    axes: Axes = builder.type(ref).axes
    cells = prod(size for _, size in axes)
    values = tuple(map(as_number, probe(place, cells)))
    return builder.add(Data(f"{PROBE}{place}", values, axes))


def probe(place: int, cells: int) -> tuple[float, ...]:
    """The numbers in front of the cells of an output."""
    return tuple(WEIGHTS[(place + k) % len(WEIGHTS)] for k in range(cells))
