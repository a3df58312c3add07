"""``start_of``, ``trunk_of``: what closed recursions know of a network, by the shape of a block.

A block x + a L^(-alpha) V phi(W x), V or W possibly missing, perhaps less its average; in training
phi(W x) alone. Another block is left to samples.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from tpcalc import checks
from tpcalc.errors import UsageError
from tpcalc.evaluate.closure.gaussians import is_odd
from tpcalc.exponents import Ex, as_ex
from tpcalc.functions import Expr, Fn, Par, Var, const
from tpcalc.functions.expr import substitute
from tpcalc.functions.fn import FIRST, INNER
from tpcalc.functions.numbers import Number, root
from tpcalc.networks.network import Architecture
from tpcalc.passes.block import CARRY, Block, block_of
from tpcalc.program.along import along_of
from tpcalc.program.base import Table, input_of, lincomb_of, matmul_of, moment_of, nonlin_of
from tpcalc.program.family import Mark
from tpcalc.program.nodes import LinComb, Moment, Ref, Scale
from tpcalc.program.program import Program
from tpcalc.recursions.start import Start
from tpcalc.recursions.trunk import Trunk
from tpcalc.results import Formula
from tpcalc.training.generic import generic_data
from tpcalc.training.loss import slope_values
from tpcalc.training.parameterizations import lookup
from tpcalc.training.training import Training
from tpcalc.training.written import network_program

HALF = Fraction(1, 2)
LESS = Fn(Var(0) - Par(0), 1, 1)


class Unlike(Exception):
    """A network or a run that the closed recursions do not know; the message says what of it."""


def block_at_start(network: Architecture) -> Block:
    """The repeated block of a network with its powers of n."""
    checks.of_type(network, Architecture, "network")  # type: ignore[type-abstract]
    return block_of(network_program(network, lookup("mup"), network.tokens, 1))


def depth_places(places: Any) -> tuple[float, ...]:
    """Shares of the depth, from 0 to 1."""
    found = tuple(checks.floats(places, "places"))
    for one in found:
        if not 0 <= one <= 1:
            raise UsageError(f"{one} is no place along the depth.", hint="A share of it, 0 to 1.")
    return found


def start_of(block: Block, at: Mapping[str, Fraction] | None = None) -> Start:
    """What the recursion takes, read off the shape of a block."""
    return _Shape(block, at or {}).start


@dataclass(frozen=True)
class Peeled:
    """A value as number * n^n_power * L^power * node."""

    number: Number
    n_power: Ex
    power: Ex
    ref: Ref


class _Shape:
    """x + a L^(-alpha) V phi(W x), perhaps less its average."""

    def __init__(self, block: Block, at: Mapping[str, Fraction]) -> None:
        self.body, self.block = block.body, block
        self.x = self.body.inputs[CARRY]
        branch = self._branch()
        inner, centred = self._centred(branch)
        front = _both(branch, inner)
        self.laws: list[str] = []
        outer, core = self._matrix(front)
        function = nonlin_of(self.body.nodes[core.ref])
        if function is None:
            activation: Expr = Var(0)
            argument = Peeled(Fraction(1), core.n_power, Ex(), core.ref)
        else:
            if len(function.vectors) != 1 or function.scalars or core.n_power != Ex():
                raise Unlike("what a block adds is not a function of one vector")
            argument = peeled(self.body, function.vectors[0])
            activation = substitute(function.fn.expr, {Var(0): const(argument.number) * Var(0)})
            argument = replace(argument, number=Fraction(1))
        law, end = self._matrix(argument)
        if end.ref != self.x or end.n_power != Ex() or end.power != Ex():
            raise Unlike("a block does not read the stream through one matrix at most")
        if outer is None and law is None:
            raise Unlike("a block has no matrix")
        alpha = (-core.power).put(at).constant
        if alpha is None:
            raise UsageError(
                f"the power of 1/L in front of a block is {-core.power}, which is no number.",
                hint="Give it one: alpha='1/2'; tp.check and tp.phases take symbols.",
            )
        number = float(core.number) * float(end.number)
        # What a random matrix of its own writes has mean 0 already.
        centred = centred and (outer is None or along_of(outer).row.path is not None)
        laws = self.laws[0], self.laws[1]
        self.start = Start(activation, alpha, number, outer, law, centred, laws)

    def _branch(self) -> Peeled:
        following = lincomb_of(self.body.nodes[self.body.ref("next")])
        if following is not None and len(following.vectors) == 2 and not any(following.scalars):
            terms = dict(zip(following.vectors, following.numbers, strict=True))
            if terms.pop(self.x, None) == 1 and not any(following.over):
                ((ref, number),) = terms.items()
                return _both(Peeled(number, Ex(), Ex(), ref), peeled(self.body, ref))
        raise Unlike("a block is not x plus something")

    def _centred(self, front: Peeled) -> tuple[Peeled, bool]:
        plain = Peeled(Fraction(1), Ex(), Ex(), front.ref)
        node = nonlin_of(self.body.nodes[front.ref])
        if node is None or node.fn != LESS:
            return plain, False
        if moment_of(self.body.nodes[node.scalars[0]]) != Moment(FIRST, node.vectors):
            raise Unlike("what a block adds is not a function of one vector")
        return peeled(self.body, node.vectors[0]), True

    def _matrix(self, value: Peeled) -> tuple[str | None, Peeled]:
        """The law of a matrix in front along the depth, and what it is applied to."""
        product = matmul_of(self.body.nodes[value.ref])
        if product is None:
            self.laws.append("gaussian")
            return None, value
        node = self.body.nodes[product.matrix]
        name = node.family.name  # type: ignore[union-attr]
        law = self.block.program.families[name].along
        if not law or product.transpose or self.body.families[name].width != (self.block.dim,) * 2:
            raise Unlike("a block does not apply square matrices of its own to vectors")
        if value.n_power != as_ex(-HALF):
            raise Unlike("the product with a matrix has other powers than n^(-1/2)")
        self.laws.append(self.body.families[name].law)
        return law, _both(replace(value, n_power=Ex()), peeled(self.body, product.vector))


def _both(front: Peeled, inner: Peeled) -> Peeled:
    """What stands in front of two values, one the other times something."""
    n_power, power = front.n_power + inner.n_power, front.power + inner.power
    return Peeled(front.number * inner.number, n_power, power, inner.ref)


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


FUNCTIONS = ("C", "D", "V", "V1")
TRAINED = ("A", "B", "K", "A1")
STREAM = "the stream: C(l) is <x_i | x_j> after block l, V(C) is Cov(phi(z_i), phi(z_j))"
ADJOINT = "its adjoint: D(l) is <dx_i | dx_j> after block l, V1(C) is E phi'(z_i) phi'(z_j)"
LIMIT = "in the limit of the depth, p = l / L"
STEPS = (
    "over the steps t, but for a jump at p = q: A(t, r, p, q) is what of the Gaussians that step r "
    "drew in block q is in x_t at p (Gamma), A1 of those of transposes; C(t, s, p) is <x_t | x_s>"
)
BACK = "B(t, r, p, q) is the same of dx_t, K what dx_t is moved by x_s"


def recursion(training: Training) -> tuple[tuple[str, Formula], ...]:
    """Kernels over the blocks before the first update; z are Gaussians of covariance C.

    Source: Tensor Programs VI, section 6; Appendix E for phi that is not the identity.

    Example:
        >>> import tpcalc as tp
        >>> net = tp.ResNet("L", "relu", nonlin="post", center=True)
        >>> run = tp.Training(net, "mup", tp.Samples(((1.0,),), ((1.0,),)), steps=1)
        >>> print(recursion(run)[0][1].text)
        C(l) = C(l - 1) + V(C(l - 1))/L
    """
    try:
        trunk = trunk_of(training.replace(data=generic_data(training)))
    except Unlike:
        return ()
    if not (trunk.centred or trunk.linear or is_odd(trunk.activation)):
        return ()
    import sympy

    blocks, layer, place = sympy.symbols("L l p", positive=True)
    stream, adjoint, added, slope = (sympy.Function(name) for name in FUNCTIONS)
    front = sympy.nsimplify(trunk.multiplier, rational=True) ** 2
    size = front * blocks ** (-2 * sympy.Rational(trunk.alpha))
    before = stream(layer - 1)
    found = [
        (STREAM, stream(layer), before + size * added(before)),
        (ADJOINT, adjoint(layer - 1), (1 + size * slope(before)) * adjoint(layer)),
    ]
    if trunk.alpha == HALF:
        here = stream(place)
        found += [
            (f"{LIMIT}: {part}", sympy.diff(left, place), front * right)
            for part, left, right in (
                ("C", here, added(here)),
                ("D", adjoint(place), -slope(here) * adjoint(place)),
            )
        ]
    if trunk.alpha == trunk.gamma == HALF:
        found += _over_steps(trunk.linear, sympy.nsimplify(trunk.multiplier, rational=True))
    return tuple((name, _formula(left, right)) for name, left, right in found)


def _over_steps(linear: bool, front: Any) -> list[tuple[str, Any, Any]]:
    """Gamma of a step from those before, where the limit is a functional integral."""
    import sympy

    t, r, s = sympy.symbols("t r s", integer=True)
    p, q, rate = sympy.symbols("p q eta", positive=True)
    stream, adjoint, pull, inner = (sympy.Function(name) for name in TRAINED)
    kernel, slope = (sympy.Function(name) for name in ("C", "V1"))
    drift = front * inner(t, s, p, p) - rate * front**2 * kernel(t, s, p)
    moved = adjoint(s, r, p, q) * drift * (1 if linear else slope(t, s, p))
    back = pull(t, s, p) * stream(s, r, p, q)
    last = t - 1 if linear else t
    return [
        (STEPS, sympy.diff(stream(t, r, p, q), p), sympy.Sum(moved, (s, 0, t - 1))),
        (BACK, sympy.diff(adjoint(t, r, p, q), p), -sympy.Sum(back, (s, 0, last))),
    ]


def _formula(left: Any, right: Any) -> Formula:
    import sympy
    from sympy.printing.mathml import mathml

    parts = [mathml(side, printer="presentation") for side in (left, right)]
    for name in (*FUNCTIONS, *TRAINED):  # that printer has names of functions in small letters
        parts = [part.replace(f"<mi>{name.lower()}</mi>", f"<mi>{name}</mi>") for part in parts]
    return Formula(
        " = ".join(map(str, (left, right))),
        " = ".join(map(sympy.latex, (left, right))),
        f'<math display="block"><mrow>{parts[0]}<mo>=</mo>{parts[1]}</mrow></math>',
    )
