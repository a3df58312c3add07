"""How far L blocks of infinite width carry the stream and its adjoint at the start.

Where a block is x + a L^(-alpha) V phi(W x), V or W possibly missing, covariances of all pairs of
blocks follow a recursion. The program of any other block is written out and sampled.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

from tpcalc.analyses.depth.check import depth_check
from tpcalc.analyses.depth.trunk import Peeled, Unlike, peeled
from tpcalc.catalog.parameterizations import lookup
from tpcalc.catalog.training import Training
from tpcalc.catalog.written import network_program
from tpcalc.errors import EvaluationError
from tpcalc.evaluate.depth.paths import is_path, path_limit
from tpcalc.evaluate.depth.start import Start
from tpcalc.evaluate.limit import limit as width_limit
from tpcalc.functions import Expr, Fn, Par, Var, const
from tpcalc.functions.expr import substitute
from tpcalc.networks.network import Architecture
from tpcalc.orders import Ex, as_ex
from tpcalc.passes.at_depth import at_depth
from tpcalc.passes.backward import backward
from tpcalc.passes.block import CARRY, Block, block_of
from tpcalc.program.base import Table
from tpcalc.program.nodes import Family, Input, Moment, Scale
from tpcalc.program.program import Builder, Program
from tpcalc.program.views import lincomb_of, matmul_of, nonlin_of, view
from tpcalc.results import DepthValue, Estimate, Method

__all__ = ["NAMES", "block_at_start", "start_of", "start_program", "start_rows"]

HALF = Fraction(1, 2)
NAMES = ("R^2", "D^2", "Rp^2", "Dp^2")
ROUTE = "covariances of {} blocks at the start"
SAMPLED = "limit of the width of the program of {} blocks"
CLOSED = "limit of (1 + c/L)^L"
PATHS = "one pair of coordinates through {} blocks"
EQUATION = "solution of a differential equation"
VANISHES = "what all blocks add vanishes"
INNER, MEAN = Fn(Var(0) * Var(1), 2), Fn(Var(0), 1)
LESS = Fn(Var(0) - Par(0), 1, 1)
SQUARED = Fn((Var(0) - Var(1)) * (Var(0) - Var(1)), 2)
_moment: Table[Moment | None] = view(Moment)


def block_at_start(network: Architecture) -> Block:
    """The repeated block of a network with its powers of n.

    Args:
        network: A network of L blocks.

    Raises:
        ProgramError: It repeats no block, or several.
    """
    return block_of(network_program(network, lookup("mup"), network.tokens, 1))


def start_of(block: Block) -> Start:
    """What the recursion takes, read off the shape of a block.

    Args:
        block: The block.

    Raises:
        Unlike: It has another shape.
    """
    return _Shape(block).start


class _Shape:
    """x + a L^(-alpha) V phi(W x), perhaps less its average."""

    def __init__(self, block: Block) -> None:
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
        alpha = (-core.power).constant
        if alpha is None:
            raise Unlike("the power of L in front of a block holds a symbol")
        number = float(core.number) * float(end.number)
        # What a matrix of its own writes has mean 0 already.
        centred = centred and outer is None
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
        if _moment(self.body.nodes[node.scalars[0]]) != Moment(MEAN, node.vectors):
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


def start_program(block: Block, depth: int) -> Program:
    """The program of a number of blocks at the start, from a stream of mean square 1.

    Args:
        block: The block.
        depth: L.

    Returns:
        Outputs ``R^2``, ``D^2``, the mean square of what leaves the last block and of its
        difference to what enters the first; ``Rp^2``, ``Dp^2``, the same of the adjoint of a
        random readout.
    """
    flat = at_depth(block.run, depth)
    out = Builder.copy(flat)
    first, last = flat.ref("first"), flat.ref("last")
    readout = out.add(Input(Family("readout", (block.dim,))))
    value = out.add(Moment(INNER, (last, readout)))
    adjoint = backward(out, [(value, None)], [first]).adjoints[first]
    adjoint = out.add(Scale(adjoint, as_ex(1)))
    found = Builder.copy(replace(out.finish(), outputs=()))
    for names, (after, before) in (
        (NAMES[:2], (last, first)),
        (NAMES[2:], (adjoint, readout)),
    ):
        found.output(names[0], found.add(Moment(INNER, (after, after))))
        found.output(names[1], found.add(Moment(SQUARED, (after, before))))
    return found.finish(keep_unused=False)


def start_rows(
    network: Architecture,
    block: Block,
    start: Start | None,
    depth: str,
    seed: int,
    settings: dict[str, int | None],
) -> Iterator[DepthValue]:
    """The displacements at a number of blocks, or in the limit.

    Args:
        network: The network.
        block: Its block.
        start: What the recursion takes; None: it does not know this block.
        depth: A number of blocks, or ``"oo"``.
        seed: Of samples.
        settings: Of samples.

    Raises:
        EvaluationError: There is no limit, or none that is known.
    """
    if not depth.isdigit():
        yield from _limit(network, start)
    elif start is not None:
        found = start.at(int(depth))
        values = (found.size, found.stream, found.adjoint, found.gradient)
        route = PATHS if is_path(start) else ROUTE
        for name, value in zip(NAMES, values, strict=True):
            yield DepthValue(name, depth, value, route.format(depth))
    else:
        given = {name: value for name, value in settings.items() if value is not None}
        program = start_program(block, int(depth))
        table = width_limit(program, seed=seed, **given).table  # type: ignore[arg-type]
        for row in table.scalars:
            yield DepthValue(row.name, depth, row.estimate, SAMPLED.format(depth))


def _path_limit(start: Start) -> Iterator[DepthValue]:
    """Of matrices that are not random: a differential equation at alpha = 1."""
    if start.alpha < 1:
        raise EvaluationError(
            f"with alpha = {start.alpha} below 1 no limit of matrices that are paths is known.",
            hint="Take numbers of blocks, (250, 500, 1000), and compare.",
        )
    zero, one = (0.0, 0.0), (1.0, 0.0)
    moves = path_limit(start) if start.alpha == 1 else (zero, one, zero, one)
    route = EQUATION if start.alpha == 1 else VANISHES
    for name, place in zip(NAMES, (1, 0, 3, 2), strict=True):
        value, error = moves[place]
        method = Method.EXACT if error == 0 else Method.QUADRATURE
        yield DepthValue(name, "oo", Estimate(value, error, method), route)


def _limit(network: Architecture, start: Start | None) -> Iterator[DepthValue]:
    if start is not None and is_path(start):
        yield from _path_limit(start)
        return
    found = depth_check(Training(network, "mup", steps=0), {})
    if "unstable" in (found.outputs, found.gradients):
        raise EvaluationError(f"there is no limit: {'; '.join(found.facts)}.")
    closed = None if start is None else start.limit
    if closed is not None:
        values, route = (closed, closed), CLOSED
    elif found.outputs == found.gradients == "identity" and found.status == "proved":
        values, route = (0.0, 0.0), VANISHES
    else:
        raise EvaluationError(
            "the limit of what blocks add at this scale is not known in closed form.",
            hint="Take numbers of blocks, (250, 500, 1000), and compare.",
        )
    for names, moved in zip((NAMES[:2], NAMES[2:]), values, strict=True):
        for name, number in zip(names, (1.0 + moved, moved), strict=True):
            yield DepthValue(name, "oo", Estimate(number, 0.0, Method.EXACT), route)
