"""``trunk_of``: the residual network that a block is, read off its shape.

x + a L^(-alpha) (phi(W x / sqrt(n)) less its average) of a matrix of its own: what closed
recursions over the depth know. Another block is left to samples.
"""

from __future__ import annotations

from tpcalc.errors import UsageError
from tpcalc.exponents import Ex
from tpcalc.functions import Var
from tpcalc.functions.fn import INNER
from tpcalc.functions.numbers import root
from tpcalc.passes.block import Block, block_of
from tpcalc.program.base import input_of, lincomb_of, moment_of
from tpcalc.program.family import Mark
from tpcalc.program.program import Program
from tpcalc.questions.depth.shape import Unlike, peeled, start_of
from tpcalc.recursions.trunk import Trunk
from tpcalc.training.loss import slope_values
from tpcalc.training.parameterizations import lookup
from tpcalc.training.training import Training
from tpcalc.training.written import network_program


def trunk_of(training: Training) -> Trunk:
    """The residual network and the run as the closed recursions take them."""
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
    try:
        found = start_of(block)
    except UsageError:
        raise Unlike("its exponents of L hold symbols") from None
    if found.outer is not None and (found.inner is not None or found.activation != Var(0)):
        raise Unlike("what a block adds is not a function of one product with the stream")
    _check_ends(program, block)
    marks = {mark.role: mark for mark in network.marks}
    if len(marks) != len(network.marks):
        raise Unlike("it has more parameters than the maps at its ends and a matrix in each block")
    gamma = training.gammas
    power = found.alpha if gamma is None else gamma.constant if isinstance(gamma, Ex) else None
    if power is None:
        raise Unlike("its exponents of L hold symbols")
    data, batch = training.data, training.batch
    rows = [
        [(step * batch + i) % len(data) for i in range(batch)] for step in range(training.steps + 1)
    ]
    rates = {role: _rates(training, mark) for role, mark in marks.items()}
    front, speed = (float(root(training.base, p)) for p in (found.alpha, power - found.alpha))
    hidden = [speed * rate for rate in rates["hidden"]]
    return Trunk(
        inputs=[[data.inputs[row] for row in step] for step in rows],
        targets=[[data.targets[row] for row in step] for step in rows],
        activation=found.activation,
        alpha=found.alpha,
        gamma=power,
        multiplier=front * found.multiplier,
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


def _check_ends(program: Program, block: Block) -> None:
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
    if any(input_of(tail.nodes[ref]) is None for ref in average.vectors):
        raise Unlike("the readout reads a function of the stream")
