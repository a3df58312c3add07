"""How far L blocks of infinite width carry the stream and its adjoint at the start.

Where a block is x + a L^(-alpha) V phi(W x), V or W possibly missing, covariances of all pairs of
blocks follow a recursion. The program of any other block is written out and sampled.
"""

from __future__ import annotations

from dataclasses import replace
from math import expm1
from typing import Any

import numpy as np

from tpcalc.errors import EvaluationError
from tpcalc.evaluate.limit import limit as width_limit
from tpcalc.exponents import as_ex
from tpcalc.functions import Fn, Var
from tpcalc.functions.fn import INNER
from tpcalc.networks.network import Architecture
from tpcalc.passes.at_depth import at_depth
from tpcalc.passes.backward import backward
from tpcalc.passes.block import Block
from tpcalc.program.along import FRESH, along_of
from tpcalc.program.nodes import Family, Input, Moment, Scale
from tpcalc.program.program import Builder, Program
from tpcalc.questions.depth.check import depth_check
from tpcalc.recursions.paths import is_path, path_limit
from tpcalc.recursions.start import Displacement, Start
from tpcalc.results import DepthArray, DepthValue, Estimate, Method
from tpcalc.training.training import Training

COMPARE = "Take numbers of blocks, (16, 32, 64), and compare."
VALUE = ("value", "stderr")
NAMES = ("R^2", "D^2", "Rp^2", "Dp^2")
ROUTE = "covariances of {} blocks at the start"
SAMPLED = "limit of the width of the program of {} blocks"
CLOSED = "limit of (1 + c/L)^L"
COVARIANCES = "integral equation of covariances at the start"
PATHS = "one pair of coordinates through {} blocks"
EQUATION = "solution of a differential equation"
VANISHES = "what all blocks add vanishes"
SHRINKS = "blocks shrink the stream to nothing"
SQUARED = Fn((Var(0) - Var(1)) * (Var(0) - Var(1)), 2)


def start_program(block: Block, depth: int) -> Program:
    """The program of a number of blocks at the start, from a stream of mean square 1."""
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
    depth: str,
    start: Start | None,
    places: tuple[float, ...],
    seed: int,
    settings: dict[str, Any],
) -> tuple[list[DepthValue], list[DepthArray]]:
    """The displacements at a number of blocks, or in the limit, and on the way."""
    if depth.isdigit():
        for law in (start.outer, start.inner) if start is not None else ():
            along_of(law or FRESH).check(int(depth))
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
        table = width_limit(program, seed=seed, **given).table
        route = SAMPLED.format(depth)
        return [DepthValue(row.name, depth, row.estimate, route) for row in table.scalars], []
    ends = zip(NAMES, found[0], strict=True)
    rows = [DepthValue(name, depth, one, route) for name, one in ends]
    if not places or len(found) < len(shares):
        return rows, []
    ahead, behind = (
        list(zip(*found[k : k + len(places)], strict=True)) for k in (1, 1 + len(places))
    )
    numbers = (*ahead[:2], *behind[2:])
    named = zip(NAMES, numbers, strict=True)
    return rows, [_array(name, depth, places, one, route) for name, one in named]


def _array(
    name: str, depth: str, places: tuple[float, ...], estimates: tuple[Estimate, ...], route: str
) -> DepthArray:
    values, errors = (np.array([getattr(one, key) for one in estimates]) for key in VALUE)
    return DepthArray(name, depth, ("p",), places, values, errors, estimates[0].method, route)


def _path_limit(network: Architecture, start: Start) -> tuple[str, tuple[Displacement, ...]]:
    """Of matrices that are not random: a differential equation at alpha = 1, at its end."""
    zero, one = (0.0, 0.0), (1.0, 0.0)
    ends = {"identity": (VANISHES, (one, zero) * 2), "vanishing": (SHRINKS, (zero, one) * 2)}
    if start.alpha == 1:
        route, moves = EQUATION, path_limit(start)
    else:
        found = depth_check(Training(network, "mup", steps=0), {})
        if found.verdict not in ends:
            raise EvaluationError(
                f"there is no limit: {'; '.join(found.facts)}."
                if found.facts
                else f"with alpha = {start.alpha} below 1 no limit of these paths is known.",
                hint=COMPARE,
            )
        route, moves = ends[found.verdict]
    ways = (Method.QUADRATURE if error else Method.EXACT for _, error in moves)
    estimates = (Estimate(*pair, way) for pair, way in zip(moves, ways, strict=True))
    return route, (Displacement(*estimates),)


def _limit(
    network: Architecture, start: Start | None, shares: tuple[float, ...]
) -> tuple[str, tuple[Displacement, ...]]:
    if start is not None and is_path(start):
        return _path_limit(network, start)
    found = depth_check(Training(network, "mup", steps=0), {})
    if "unstable" in (found.outputs, found.gradients):
        raise EvaluationError(f"there is no limit: {'; '.join(found.facts)}.")
    route, growth = CLOSED, None if start is None else start.growth
    if growth is None and found.outputs == found.gradients == "identity":
        route, growth = VANISHES, (0.0, 0.0) if found.status == "proved" else None
    if growth is None:
        solved = None if start is None else start.limit(shares)
        if solved is None:
            raise EvaluationError(
                "the limit of what blocks add at this scale is not known.", hint=COMPARE
            )
        return COVARIANCES, solved
    moves = ([expm1(share * power) for power in growth] for share in shares)
    ends = (
        [Estimate(k + x, 0.0, Method.EXACT) for x in pair for k in (1.0, 0.0)] for pair in moves
    )
    return route, tuple(Displacement(*four) for four in ends)
