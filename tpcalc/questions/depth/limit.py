"""``depth_limit``: a run of L blocks of infinite width, at numbers of blocks and in the limit.

Of a network alone it is the start: covariances of all pairs of blocks follow a recursion where a
block is x + a L^(-alpha) V phi(W x); the program of any other block is written out and sampled.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import product
from math import expm1
from typing import Any, TypeVar

import numpy as np

from tpcalc import checks
from tpcalc.errors import EvaluationError, LimitError, ScaleError, UsageError
from tpcalc.evaluate.limit import limit as width_limit
from tpcalc.exponents import as_ex
from tpcalc.functions import Fn, Var
from tpcalc.functions.fn import INNER
from tpcalc.names import stepped
from tpcalc.networks.network import Architecture
from tpcalc.networks.own import as_network
from tpcalc.passes.at_depth import at_depth
from tpcalc.passes.backward import backward
from tpcalc.passes.block import Block
from tpcalc.program.along import FRESH, along_of
from tpcalc.program.nodes import Family, Input, Moment, Scale
from tpcalc.program.program import Builder, Program
from tpcalc.progress import Progress
from tpcalc.questions.depth.check import depth_check
from tpcalc.questions.depth.sampled import ARRAYS, profile, sampled
from tpcalc.questions.depth.shape import Unlike, block_at_start, depth_places, start_of, trunk_of
from tpcalc.recursions.finite import finite
from tpcalc.recursions.kets import Recursion
from tpcalc.recursions.limit import limit
from tpcalc.recursions.mean_field import mean_field
from tpcalc.recursions.paths import is_path, path_limit
from tpcalc.recursions.start import Displacement, Start
from tpcalc.recursions.trunk import HALF, Trunk
from tpcalc.results import DepthArray, DepthGap, DepthTable, DepthValue, Estimate, Method
from tpcalc.results.tables import provenance
from tpcalc.training.training import Training

COMPARE = "Take numbers of blocks, (16, 32, 64), and compare."
VALUE = ("value", "stderr")
NAMES = ("R^2", "D^2", "Rp^2", "Dp^2")
ROUTE = "covariances of {} blocks at the start"
SAMPLED = "limit of the width of the program of {} blocks"
GROWN = "limit of (1 + c/L)^L"
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
    route, growth = GROWN, None if start is None else start.growth
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


T = TypeVar("T")
Numbers = tuple[Iterable[DepthValue], Iterable[DepthArray | DepthGap]]
OO = "oo"
BESIDE = "How the numbers of blocks beside it go on is what is known."
CLOSED = "closed recursion over {} blocks"
LIMITS = {
    "functional": "functional-integral limit, alpha = gamma = 1/2",
    "ode": "ordinary differential equation of the depth",
    "mean": "mean-field limit, alpha = 1",
}


def depth_limit(
    training: Training | Architecture,
    depths: Iterable[int | str] = (OO,),
    *,
    places: Iterable[float] = (),
    seed: int = 0,
    samples: int | None = None,
    replicates: int | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> DepthTable:
    """A training run of a network of L blocks, of infinite width, at some depths and in the limit.

    Where a block is x + a L^(-alpha) (phi(W x) less its average), trained by SGD, the passes follow
    closed recursions over the depth: exact at every L where phi is linear, and in the limit for
    smooth phi. Everything else is sampled at each number of blocks.

    Of a network alone it is the start, from a stream of mean square 1: ``R^2`` and ``D^2``, the
    mean square of the stream after the last block and of its difference to that before the first,
    ``Rp^2`` and ``Dp^2`` the same of the adjoint, which starts behind the last block. Where a block
    is x + a L^(-alpha) V phi(W x), V or W possibly missing and each correlated along the depth in
    its own way, covariances of all pairs of blocks follow a closed recursion.

    Args:
        training: The run, ``tp.Training(tp.ResNet("L", ...), "mup", data, lr_depth=...)``, or a
            network, ``tp.ResNet("L", ...)``.
        depths: Numbers of blocks; ``"oo"`` is the limit, taken after that of the width.
        places: Shares p of the depth, from 0 to 1, at which kernels and coefficients are given
            (``DepthTable.along``); at a number of blocks those of the nearest layers. Of a network
            alone ``R^2``, ``D^2`` of the stream there, and ``Rp^2``, ``Dp^2`` of its adjoint.
        seed: Of samples.
        samples: Samples of a replicate, as of ``tp.limit``.
        replicates: Replicates, as of ``tp.limit``.
        threads: As of ``tp.limit``; the answer does not depend on them.
        progress: Called with the fraction of a depth that is done and a text, which says of a
            mean-field limit before it begins about how long it takes.

    Returns:
        Outputs, and mean squares of the stream at its end and of its adjoint, each with its error
        and how it was found; where there is no limit the reason, with the rate of growth. With
        places also arrays along the depth.

    Raises:
        UsageError: A depth or a place that is none; a network whose depth is a number; no data.

    Source: Yang, Yu, Zhu, Hayou, Tensor Programs VI, Lemma 4.3, Propositions 4.4 and C.2, sections
        D.3, E and F with the corrections of docs/claims.md; Marion, Fermanian, Biau, Vert, Scaling
        ResNets in the large-depth regime, section 4.1.

    Example:
        >>> import tpcalc as tp
        >>> data = tp.Samples(((1.3,), (0.7,)), ((0.9,), (0.0,)))
        >>> net = tp.ResNet("L", "identity", nonlin="post")
        >>> still = {"input": {"lr": 0}, "readout": {"lr": 0}}
        >>> run = tp.Training(net, "mup", data, steps=1, lr_depth="1/2", groups=still)
        >>> found = depth_limit(run, (32, "oo"))
        >>> print(found.at("f[1,0]", 32), "->", round(found.at("f[1,0]", "oo").value, 9))
        2.12602 (exact) -> 2.226272818
        >>> net = tp.ResNet("L", "relu", alpha="4/5", nonlin="between", layers=2, hurst="4/5")
        >>> print(depth_limit(net, [1000]).at("D^2", 1000))
        0.202562 (exact)
    """
    started = time.perf_counter()
    checks.called(progress, "progress", 0.0, "")
    seed = checks.seed(seed)
    settings: dict[str, Any] = {"samples": samples, "replicates": replicates, "threads": threads}
    settings["progress"] = progress
    wanted = [depth_text(one) for one in checks.sequence(depths, "depths")]
    shares = depth_places(places)
    if not isinstance(training, Training):
        network = as_network(training)
        block = block_at_start(network)
        own = partial(start_found, network, block, places=shares, seed=seed, settings=settings)
        digest = block.program.digest
        return _table(wanted, lambda: start_of(block), own, digest, seed, started)
    if not training.network.smallest.repeats:
        raise UsageError(
            f"the depth of {training.network.words} is a number.",
            hint="Write ResNet('L', ...); tp.limit is for runs of a depth that is a number.",
        )

    def at(depth: str, trunk: Trunk | None) -> Numbers:
        if depth != OO and (trunk is None or not trunk.linear):
            return sampled(training, int(depth), shares, seed, settings)
        most = 2 * training.steps + 1  # all passes but the backward one after the last update
        solve = partial(_passes, training, trunk, depth, progress)
        passes, (route, closed), why = _followed(solve, most)
        rows = list(_rows(depth, route, closed, passes))
        if not why:
            return rows, profile(closed, depth, route, shares)
        names = {name for name, *_ in _names(training.steps + 1, most, closed.trunk)}
        gone = sorted(names - {row.name for row in rows}) + list(ARRAYS if shares else ())
        return rows, [DepthGap(depth, why, name) for name in gone]

    digest = training.network.smallest.digest
    return _table(wanted, lambda: trunk_of(training), at, digest, seed, started)


def _table(
    wanted: Sequence[str],
    read: Callable[[], T],
    at: Callable[[str, T | None], Numbers],
    digest: str,
    seed: int,
    started: float,
) -> DepthTable:
    """Numbers at some depths, by what closed recursions read off a network, where they know it."""
    rows: list[DepthValue] = []
    arrays: list[DepthArray] = []
    lacking: list[DepthGap] = []
    notes: list[str] = []
    known: T | None = None
    try:
        known = read()
    except Unlike as reason:
        notes.append(f"no closed recursion: {reason}; numbers are those of programs of L blocks")
    for depth in dict.fromkeys(wanted):
        try:
            values, along = at(depth, known)
            rows += values
            for one in along:
                lacking.append(one) if isinstance(one, DepthGap) else arrays.append(one)
        except (EvaluationError, LimitError, ScaleError) as error:
            lacking.append(DepthGap(depth, error.told))
    if any(map(str.isdigit, wanted)):  # what to do is done already
        lacking = [replace(gap, reason=gap.reason.replace(COMPARE, BESIDE)) for gap in lacking]
    made = provenance(digest, seed, {"depths": ", ".join(wanted)}, time.perf_counter() - started)
    return DepthTable(tuple(rows), tuple(lacking), made, tuple(notes), tuple(arrays))


def depth_text(value: int | str) -> str:
    """A number of blocks, or the limit, as tables have it."""
    if isinstance(value, str) and value.strip() in (OO, "inf", "infinity"):
        return OO
    if isinstance(value, str) and value.strip().isdigit():
        value = int(value)
    return str(checks.whole(value, "a depth", least=1, hint="A number of blocks, or 'oo'."))


def _followed(solve: Callable[[int], T], most: int) -> tuple[int, T, str]:
    """All passes; or those that have numbers, how many they are and why the next has none."""
    try:
        return most, solve(most), ""
    except EvaluationError as error:
        low, high, why = 0, most, error
    found: list[T] = []
    while high - low > 1:
        middle = (low + high) // 2
        try:
            found, low = [solve(middle)], middle
        except EvaluationError as error:
            high, why = middle, error
    if not found:
        raise why
    return low, found[0], why.told


def _passes(
    training: Training, trunk: Trunk | None, depth: str, progress: Progress | None, passes: int
) -> tuple[str, Recursion]:
    """The first passes at a depth, and how they were found."""
    updates = (passes - 1) // 2
    if depth == OO:
        if trunk is not None or updates in (0, training.steps):
            found = depth_check(training.replace(steps=updates), {})
            if found.stable is False:
                raise EvaluationError(f"there is no limit: {'; '.join(found.facts)}.")
        if trunk is None and not updates:
            trunk = _begun(training)
    if trunk is None:
        raise EvaluationError("the limit of this block is not known in closed form.", hint=COMPARE)
    part = trunk.until(updates + 1)
    if depth != OO:
        return CLOSED.format(depth), finite(part, int(depth), passes)
    if part.averaged:
        return LIMITS["mean"], mean_field(part, passes, progress)
    route = LIMITS["functional" if part.alpha == part.gamma == HALF else "ode"]
    return route, limit(part, passes)


def _begun(training: Training) -> Trunk | None:
    """The network before the first update, the same of all optimizers; None: it is not known."""
    with suppress(Unlike):
        return trunk_of(training.replace(steps=0, optimizer="sgd"))
    return None


def _names(steps: int, passes: int, trunk: Trunk) -> Iterator[tuple[str, str, tuple[int, ...]]]:
    """What a run is asked for: its name, what it is of, and its place there."""
    _, batch, several = trunk.targets.shape
    for place in product(range(steps), range(batch), range(several)):
        yield stepped("f", *(place if several > 1 else place[:2])), "f", place
    for what, count in (("x", steps), ("dx", passes // 2)):
        for step, sample in product(range(count), range(batch)):
            yield stepped(what, step, sample), what, (step * batch + sample,) * 2


def _rows(depth: str, route: str, recursion: Recursion, passes: int) -> Iterator[DepthValue]:
    parts = {"f": recursion.readout(), "x": recursion.features(), "dx": recursion.gradients()}
    for name, what, place in _names(recursion.trunk.steps, passes, recursion.trunk):
        value = _estimate(parts[what], place)
        if what == "f" and place[0] == 0:  # V is independent of the stream
            value = Estimate(0.0, 0.0, Method.EXACT)
        yield DepthValue(name, depth, value, route)


def _estimate(answer: Any, place: tuple[int, ...]) -> Estimate:
    error = np.broadcast_to(answer.error, np.shape(answer.value))
    return Estimate(float(answer.value[place]), float(error[place]), answer.method)
