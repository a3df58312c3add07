"""How far L blocks of infinite width carry the stream and its adjoint at the start.

Where a block is x + a L^(-alpha) V phi(W x), V or W possibly missing, covariances of all pairs of
blocks follow a recursion. The program of any other block is written out and sampled.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import expm1, log1p

import numpy as np

from tpcalc.analyses.depth.check import depth_check
from tpcalc.analyses.depth.trunk import Peeled, Unlike, peeled
from tpcalc.catalog.parameterizations import lookup
from tpcalc.catalog.training import Training
from tpcalc.catalog.written import network_program
from tpcalc.errors import EvaluationError, UsageError
from tpcalc.evaluate.depth.paths import is_path, path_limit
from tpcalc.evaluate.depth.start import Displacement, Start
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
from tpcalc.results import DepthArray, DepthValue, Estimate, Method

__all__ = ["NAMES", "block_at_start", "start_found", "start_of", "start_program"]

HALF = Fraction(1, 2)
VALUE = ("value", "stderr")
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
        UsageError: The power of L in front of it holds a symbol.
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
            raise UsageError(
                f"the power of 1/L in front of a block is {-core.power}, which is no number.",
                hint="Give it one: alpha='1/2'; tp.check and tp.phases take symbols.",
            )
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


def start_found(
    network: Architecture,
    block: Block,
    start: Start | None,
    depth: str,
    places: tuple[float, ...],
    seed: int,
    settings: dict[str, int | None],
) -> tuple[list[DepthValue], list[DepthArray]]:
    """The displacements at a number of blocks, or in the limit, and on the way.

    Args:
        network: The network.
        block: Its block.
        start: What the recursion takes; None: it does not know this block.
        depth: A number of blocks, or ``"oo"``.
        places: Shares of the depth.
        seed: Of samples.
        settings: Of samples.

    Raises:
        EvaluationError: There is no limit, or none that is known.
    """
    if depth.isdigit():
        places = tuple(round(place * int(depth)) / int(depth) for place in places)
    # The stream has gone through a share p of the blocks at p, its adjoint through 1 - p.
    shares = (1.0, *places, *(1.0 - place for place in places))
    if not depth.isdigit():
        route, found = _limit(network, start, shares)
    elif start is not None:
        found = start.along(int(depth), shares)
        route = (PATHS if is_path(start) else ROUTE).format(depth)
    else:
        given = {name: value for name, value in settings.items() if value is not None}
        program = start_program(block, int(depth))
        table = width_limit(program, seed=seed, **given).table  # type: ignore[arg-type]
        route = SAMPLED.format(depth)
        return [DepthValue(row.name, depth, row.estimate, route) for row in table.scalars], []
    ends = zip(NAMES, _all(found[0]), strict=True)
    rows = [DepthValue(name, depth, one, route) for name, one in ends]
    if not places or len(found) < len(shares):
        return rows, []
    ahead, behind = (
        list(zip(*map(_all, found[k : k + len(places)]), strict=True)) for k in (1, 1 + len(places))
    )
    numbers = (*ahead[:2], *behind[2:])
    named = zip(NAMES, numbers, strict=True)
    return rows, [_array(name, depth, places, one, route) for name, one in named]


def _all(one: Displacement) -> tuple[Estimate, ...]:
    """Its numbers in the order of their names."""
    return one.size, one.stream, one.adjoint, one.gradient


def _array(
    name: str, depth: str, places: tuple[float, ...], found: tuple[Estimate, ...], route: str
) -> DepthArray:
    values, errors = (np.array([getattr(one, key) for one in found]) for key in VALUE)
    return DepthArray(name, depth, ("p",), places, values, errors, found[0].method, route)


def _path_limit(start: Start) -> tuple[str, tuple[Displacement, ...]]:
    """Of matrices that are not random: a differential equation at alpha = 1, at its end."""
    if start.alpha < 1:
        raise EvaluationError(
            f"with alpha = {start.alpha} below 1 no limit of matrices that are paths is known.",
            hint="Take numbers of blocks, (250, 500, 1000), and compare.",
        )
    zero, one = (0.0, 0.0), (1.0, 0.0)
    moves = path_limit(start) if start.alpha == 1 else (zero, one, zero, one)
    route = EQUATION if start.alpha == 1 else VANISHES
    ways = (Method.QUADRATURE if error else Method.EXACT for _, error in moves)
    estimates = (Estimate(*pair, way) for pair, way in zip(moves, ways, strict=True))
    return route, (Displacement(*estimates),)


def _limit(
    network: Architecture, start: Start | None, shares: tuple[float, ...]
) -> tuple[str, tuple[Displacement, ...]]:
    if start is not None and is_path(start):
        return _path_limit(start)
    found = depth_check(Training(network, "mup", steps=0), {})
    if "unstable" in (found.outputs, found.gradients):
        raise EvaluationError(f"there is no limit: {'; '.join(found.facts)}.")
    closed = None if start is None else start.limit
    if closed is not None:
        route = CLOSED
    elif found.outputs == found.gradients == "identity" and found.status == "proved":
        route, closed = VANISHES, 0.0
    else:
        raise EvaluationError(
            "the limit of what blocks add at this scale is not known in closed form.",
            hint="Take numbers of blocks, (250, 500, 1000), and compare.",
        )
    moves = [expm1(share * log1p(closed)) for share in shares]
    pairs = ([Estimate(k + moved, 0.0, Method.EXACT) for k in (0.0, 1.0)] for moved in moves)
    return route, tuple(Displacement(*pair, *pair) for pair in pairs)
