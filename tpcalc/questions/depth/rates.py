"""Learning rates of a repeated block as powers of the depth, and the generic block they give."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from tpcalc import checks
from tpcalc.errors import ScaleError, UsageError
from tpcalc.exponents import Ex, as_ex
from tpcalc.limit.scales import scales
from tpcalc.names import layered
from tpcalc.networks.network import Architecture
from tpcalc.passes.backward import backward
from tpcalc.passes.block import CARRY, Block, block_of
from tpcalc.program.along import along_of
from tpcalc.program.program import Builder
from tpcalc.questions.depth.generic import Generic, R
from tpcalc.questions.depth.stream import in_depth
from tpcalc.results import UNKNOWN, BlockRate, Exponent
from tpcalc.training.training import Training
from tpcalc.training.written import network_program


def has_paths(network: Architecture) -> bool:
    """Whether matrices of a network are no random ones, but paths along the depth."""
    laws = {family.along for family in network.smallest.families.values() if family.along}
    return any(along_of(law).row.path is not None for law in laws)


def generic_block(
    training: Training, at: Mapping[str, Fraction], depth: int | None = None
) -> tuple[Generic, tuple[BlockRate, ...]]:
    """The generic block of a training run, and the rates of its parameters."""
    network, own = training.network, training.parameterization
    rows = (own.exponents(network.hidden + k, 0) for k in (0, 3))
    few, more = ([(row[-1], set(row[1:-1])) for row in (one.a, one.c)] for one in rows)
    if few != more:
        raise UsageError(
            f"the exponents of {own.name} are not the same in all blocks.",
            hint="Limits in the depth are of parameterizations whose hidden layers are alike, as "
            "in mup.",
        )
    block = block_of(network_program(network, own, network.tokens, 1))
    for name, law in block.correlated.items():
        _check_law(name, law, depth, at)
    given = _given(training, tuple(mark.label for mark in block.template.parameters.values()))
    # Of a map with a bias the mark is that of its weights.
    parts = sorted(block.template.parameters.values(), key=lambda mark: mark.bias, reverse=True)
    marks = {mark.label: mark for mark in parts}
    still = Generic(block, training.replace(steps=1), _adjoint(block), dict.fromkeys(marks, Ex()))
    first = scales(still.program({}), at=at, depth=R)
    outputs = first.program.output
    rates = []
    for label, mark in marks.items():
        names = [layered(side, label) for side in "rcb"]
        weight = [name for name in names[:2] if name in outputs] or names[2:]
        sides = [first.series(name).terms[:1] for name in weight if name in outputs]
        gradient = (
            -sum((in_depth(power)[1] for ((power, _),) in sides), Ex()) if all(sides) else None
        )
        linear = training.optimizer_of(mark).degree == 1
        if label in given and linear and gradient is None:
            raise UsageError(
                f"the first gradient of {label!r} is 0, as what it is multiplied with starts at 0.",
                hint="Leave lr_depth out for it: learning rates then have no power of L.",
            )
        scale = gradient if linear else Ex()  # of an update at a rate of order one
        raw = (scale or Ex()) - given[label] if label in given else Ex()
        rates.append((label, gradient, None if scale is None else scale - raw, raw))
    speed = {label: raw for label, _, _, raw in rates}
    # What updates of shared matrices add up to is not followed; correlated ones are asked of the
    # start alone where nothing says how learning rates depend on L.
    if block.shared or (block.correlated and training.gammas is None):
        training = training.replace(steps=0)
    known = (
        (label, (UNKNOWN if one is None else Exponent(one) for one in powers))
        for label, *powers in rates
    )
    shown = tuple(BlockRate(label, delta, gamma, raw) for label, (delta, gamma, raw) in known)
    return Generic(block, training, still.power, speed), shown


def _check_law(name: str, law: str, depth: int | None, at: Mapping[str, Fraction]) -> None:
    """Refuse matrices along the depth that training does not follow."""
    drawn = along_of(law)
    for symbol in sorted({s for one in drawn.arguments for s in one.symbols} - set(at)):
        raise ScaleError(
            f"{name} is {law} along the depth, and {symbol!r} has no value here.",
            hint=f"Write a number, or keep the symbol at a point, at={{{symbol!r}: '3/4'}}.",
        )
    if drawn.row.path is not None:
        raise UsageError(
            f"{name} is {law} along the depth: training of matrices that are not random is not "
            "followed.",
            hint="tp.check tells the start at a power of L, tp.limit(..., depths=) numbers.",
        )
    replace(drawn, arguments=tuple(one.put(at) for one in drawn.arguments)).check(depth)


def _given(training: Training, labels: tuple[str, ...]) -> dict[str, Ex]:
    """The gammas that a run has: one for all, one for each, or by label."""
    given = training.gammas
    if given is None:
        return {}
    if isinstance(given, Mapping):
        for label in given:
            checks.one_of("parameter of the block", label, labels, where="lr_depth")
        return dict(given)
    return dict.fromkeys(labels, as_ex(given))


def _adjoint(block: Block) -> Fraction:
    """The power of n of the adjoint of what leaves the last block."""
    out = Builder.copy(block.tail)
    carry = block.tail.inputs[CARRY]
    (output, *more) = (ref for _, ref in block.tail.outputs)
    if more or out.type(output).axes:
        raise UsageError(
            "the network has several outputs, and limits in the depth are of one.",
            hint="A readout of one output tells all exponents.",
        )
    out.output("adjoint", backward(out, [(output, None)], [carry]).adjoints[carry])
    series = scales(out.finish(keep_unused=False)).series("adjoint")
    return in_depth(series.terms[0][0])[0]
