"""``trunk_of``: the residual network that a block is, read off its shape.

x + a L^(-alpha) (phi(W x / sqrt(n)) less its average) of a matrix of its own: what closed
recursions over the depth know. Another block is left to samples.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from tpcalc.catalog.parameterizations import lookup
from tpcalc.catalog.targets import slope_values
from tpcalc.catalog.training import Training
from tpcalc.catalog.written import network_program
from tpcalc.evaluate.depth.trunk import Trunk
from tpcalc.functions import Expr, Fn, Par, Var, const
from tpcalc.functions.expr import substitute
from tpcalc.functions.numbers import Number
from tpcalc.functions.roots import root
from tpcalc.orders import Ex, as_ex
from tpcalc.passes.block import CARRY, Block, block_of
from tpcalc.program.base import Table
from tpcalc.program.marks import Mark
from tpcalc.program.nodes import LinComb, Moment, Node, Ref, Scale
from tpcalc.program.program import Program
from tpcalc.program.views import input_of, lincomb_of, matmul_of, nonlin_of, view

__all__ = ["Peeled", "Unlike", "peeled", "trunk_of"]

HALF = Fraction(1, 2)
INNER, MEAN = Fn(Var(0) * Var(1), 2), Fn(Var(0), 1)
LESS = Fn(Var(0) - Par(0), 1, 1)
moment_of: Table[Moment | None] = view(Moment)


class Unlike(Exception):
    """A network or a run that the closed recursions do not know; the message says what of it."""


def trunk_of(training: Training) -> Trunk:
    """The residual network and the run as the closed recursions take them.

    Args:
        training: A run of a network of L blocks.

    Raises:
        Unlike: It is another network, or trained otherwise.
    """
    if training.data is None:
        raise Unlike("it has no data")
    if not training.optimizer.is_plain:
        raise Unlike(f"its optimizer is {training.optimizer.name}")
    if training.queries:
        raise Unlike("outputs are asked at inputs that are not trained on")
    network, own = training.network, training.parameterization
    if own.exponents(network.hidden, 0) != lookup("mup").exponents(network.hidden, 0):
        raise Unlike(f"its parameterization is {own.name}, not mup")
    outputs = training.data.outputs // network.positions
    program = network_program(network, own, training.data.dimension, outputs)
    block = block_of(program)
    for law in block.correlated.values():
        raise Unlike(f"its matrices are {law} along the depth")
    found = _Shape(program, block)
    marks = {mark.role: mark for mark in network.marks}
    if len(marks) != len(network.marks):
        raise Unlike("it has more parameters than the maps at its ends and a matrix in each block")
    gamma = training.gammas
    power = found.alpha if gamma is None else gamma if isinstance(gamma, Ex) else None
    if power is None or power.constant is None or found.alpha.constant is None:
        raise Unlike("its exponents of L hold symbols")
    data, batch = training.data, training.batch
    rows = [
        [(step * batch + i) % len(data) for i in range(batch)] for step in range(training.steps + 1)
    ]
    rates = {role: _rates(training, mark) for role, mark in marks.items()}
    alpha = found.alpha.constant
    front, speed = (float(root(training.base, p)) for p in (alpha, power.constant - alpha))
    hidden = [speed * rate for rate in rates["hidden"]]
    return Trunk(
        inputs=[[data.inputs[row] for row in step] for step in rows],
        targets=[[data.targets[row] for row in step] for step in rows],
        activation=found.activation,
        alpha=alpha,
        gamma=power.constant,
        multiplier=front * float(found.multiplier),
        rates=hidden,
        input_rates=rates["input"],
        output_rates=rates["readout"],
        centred=found.centred,
        slope=slope_values(training.loss, data.outputs),
    )


def _rates(training: Training, mark: Mark) -> list[float]:
    """The learning rates of a parameter; no step follows the last."""
    found = [training.rate(mark, step)[0] * mark.rate for step in range(training.steps)]
    return [*map(float, found), 0.0]


@dataclass(frozen=True)
class Peeled:
    """A value as number * n^n_power * L^power * node."""

    number: Number
    n_power: Ex
    power: Ex
    ref: Ref


class _Shape:
    """x + a L^(-alpha) (phi(W x) less its average), and a map in front and behind."""

    def __init__(self, program: Program, block: Block) -> None:
        self.body = block.body
        x, following = self.body.inputs[CARRY], lincomb_of(self.body.nodes[self.body.ref("next")])
        branches = self._branches(following, x)
        if branches is None:
            raise Unlike("a block is not x plus something")
        front = peeled(self.body, branches[1])
        self.multiplier, self.alpha = branches[0] * front.number, -front.power
        core, self.centred = self._centred(front)
        function = nonlin_of(self.body.nodes[core.ref])
        if function is None:
            self.activation: Expr = Var(0)
            inner = core
            self.multiplier = self.multiplier * inner.number / front.number
        else:
            if len(function.vectors) != 1 or function.scalars or core.n_power != Ex():
                raise Unlike("what a block adds is not a function of one vector")
            inner = peeled(self.body, function.vectors[0])
            scaled = substitute(function.fn.expr, {Var(0): const(inner.number) * Var(0)})
            self.activation = scaled
        product = matmul_of(self.body.nodes[inner.ref])
        if product is None or product.vector != x or product.transpose or block.shared:
            raise Unlike("a block does not apply a matrix of its own to the stream")
        if inner.n_power != as_ex(-HALF) or (function is not None and inner.power != Ex()):
            raise Unlike("the product of a block has other powers than n^(-1/2)")
        self._check_ends(program, block)

    @staticmethod
    def _branches(node: LinComb | None, x: Ref) -> tuple[Number, Ref] | None:
        if node is None or len(node.vectors) != 2 or any(s is not None for s in node.scalars):
            return None
        terms = dict(zip(node.vectors, node.numbers, strict=True))
        if terms.pop(x, None) != 1:
            return None
        ((ref, number),) = terms.items()
        return number, ref

    def _centred(self, front: Peeled) -> tuple[Peeled, bool]:
        """What a block adds without its average taken off, and whether it was."""
        node = nonlin_of(self.body.nodes[front.ref])
        if node is None or node.fn != LESS:
            return front, False
        average = moment_of(self.body.nodes[node.scalars[0]])
        if average != Moment(MEAN, node.vectors):
            raise Unlike("what a block adds is not a function of one vector")
        inner = peeled(self.body, node.vectors[0])
        return Peeled(front.number * inner.number, inner.n_power, inner.power, inner.ref), True

    def _check_ends(self, program: Program, block: Block) -> None:
        """That the stream starts as U x, and the outputs are averages of V times it."""
        carry = program.nodes[block.repeat.carry]
        first = lincomb_of(program.nodes[carry.start])  # type: ignore[union-attr]
        if first is None or len(first.vectors) != 1 or first.numbers != (1,) or not first.over:
            raise Unlike("the stream does not start as a map of the input")
        tail = block.tail
        (output, *more) = (ref for _, ref in tail.outputs)
        end = peeled(tail, output)
        average = moment_of(tail.nodes[end.ref])
        if more or average is None or average.fn != INNER or end.n_power != Ex() or end.number != 1:
            raise Unlike("the outputs are not averages of a readout times the stream")
        if any(_is_other(tail.nodes[ref]) for ref in average.vectors):
            raise Unlike("the readout reads a function of the stream")


def _is_other(node: Node) -> bool:
    return input_of(node) is None


def peeled(program: Program, ref: Ref) -> Peeled:
    """A value without the numbers and powers in front of it."""
    number: Number = Fraction(1)
    n_power, power = Ex(), Ex()
    while True:
        step = _PEELED(program.nodes[ref])
        if step is None:
            return Peeled(number, n_power, power, ref)
        number, n_power = number * step.number, n_power + step.n_power
        power, ref = power + step.power, step.ref


def _sum(node: LinComb) -> Peeled | None:
    if len(node.vectors) != 1 or node.scalars != (None,) or node.over:
        return None
    return Peeled(node.numbers[0], Ex(), Ex(), node.vectors[0])


_PEELED: Table[Peeled | None] = Table(
    {
        LinComb: _sum,
        Scale: lambda node: Peeled(Fraction(1), node.n_power, node.depth_power, node.of),
    },
    lambda node: None,
)
