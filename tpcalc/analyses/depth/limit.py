"""``depth_limit``: a run of L blocks of infinite width, at numbers of blocks and in the limit."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import product
from typing import Any, TypeVar

import numpy as np

from tpcalc.analyses.depth.check import depth_check
from tpcalc.analyses.depth.profile import Recursion, profile
from tpcalc.analyses.depth.sampled import sampled
from tpcalc.analyses.depth.shape import block_at_start, start_of
from tpcalc.analyses.depth.start import start_found
from tpcalc.analyses.depth.trunk import Unlike, trunk_of
from tpcalc.catalog.training import Training
from tpcalc.errors import EvaluationError, UsageError
from tpcalc.evaluate.depth.finite import finite
from tpcalc.evaluate.depth.limit import limit
from tpcalc.evaluate.depth.mean_field import mean_field
from tpcalc.evaluate.depth.start import Start
from tpcalc.evaluate.depth.trunk import HALF, Trunk
from tpcalc.networks.network import Architecture
from tpcalc.results import DepthArray, DepthTable, DepthValue, Estimate, Method, checks
from tpcalc.results.provenance import provenance

__all__ = ["depth_limit", "depth_text"]

T = TypeVar("T")
Numbers = tuple[Iterable[DepthValue], Iterable[DepthArray]]
OO = "oo"
CLOSED = "closed recursion over {} blocks"
LIMITS = {
    "functional": "functional-integral limit, alpha = gamma = 1/2",
    "ode": "ordinary differential equation of the depth",
    "mean": "mean-field limit, alpha = 1, gamma = 0",
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
    settings = {"samples": samples, "replicates": replicates, "threads": threads}
    if isinstance(training, Architecture):
        shares, wanted = tuple(map(_place, places)), [depth_text(one) for one in depths]
        return _start(training, wanted, shares, seed, settings, started)
    if not training.network.smallest.repeats:
        raise UsageError(
            f"the depth of {training.network.words} is a number.",
            hint="Write ResNet('L', ...); tp.limit is for runs of a depth that is a number.",
        )
    wanted = [depth_text(one) for one in depths]
    shares = tuple(map(_place, places))

    def at(depth: str, trunk: Trunk | None) -> Numbers:
        if depth == OO:
            route, closed = _limit(training, trunk)
        elif trunk is not None and trunk.linear:
            route, closed = CLOSED.format(depth), finite(trunk, int(depth), _passes(trunk))
        else:
            return sampled(training, int(depth), shares, seed, settings)
        return _rows(depth, route, closed), profile(closed, depth, route, shares)

    return _table(wanted, lambda: trunk_of(training), at, _digest(training), seed, started)


def _start(
    network: Architecture,
    wanted: list[str],
    shares: tuple[float, ...],
    seed: int,
    settings: dict[str, int | None],
    started: float,
) -> DepthTable:
    """The start of a network at some depths."""
    block = block_at_start(network)

    def at(depth: str, start: Start | None) -> Numbers:
        return start_found(network, block, start, depth, shares, seed, settings)

    return _table(wanted, lambda: start_of(block), at, block.program.digest, seed, started)


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
    lacking: list[tuple[str, str]] = []
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
            arrays += along
        except EvaluationError as error:
            lacking.append((depth, " ".join(filter(None, (error.message, error.hint)))))
    made = provenance(digest, seed, {"depths": ", ".join(wanted)}, time.perf_counter() - started)
    return DepthTable(tuple(rows), tuple(lacking), made, tuple(notes), tuple(arrays))


def depth_text(value: int | str) -> str:
    """A number of blocks, or the limit, as tables have it.

    Raises:
        UsageError: It is neither.
    """
    if isinstance(value, str) and value.strip() in (OO, "inf", "infinity"):
        return OO
    if isinstance(value, str) and value.strip().isdigit():
        value = int(value)
    return str(checks.whole(value, "a depth", least=1, hint="A number of blocks, or 'oo'."))


def _digest(training: Training) -> str:
    return training.network.smallest.digest


def _passes(trunk: Trunk) -> int:
    """All passes but the backward one after the last update."""
    return 2 * trunk.steps - 1


def _place(value: float) -> float:
    found = float(checks.real(value, "a place"))
    if not 0 <= found <= 1:
        raise UsageError(f"{value} is no place along the depth.", hint="A share of it, 0 to 1.")
    return found


def _limit(training: Training, trunk: Trunk | None) -> tuple[str, Recursion]:
    """The passes in the limit, and how they were found.

    Raises:
        EvaluationError: There is no limit, or none that is known.
    """
    found = depth_check(training, {})
    if found.stable is False:
        raise EvaluationError(f"there is no limit: {'; '.join(found.facts)}.")
    if trunk is None:
        raise EvaluationError(
            "the limit of this block is not known in closed form.",
            hint="Take numbers of blocks, (16, 32, 64), and compare.",
        )
    if not trunk.linear and trunk.alpha == 1 and trunk.gamma == 0:
        return LIMITS["mean"], mean_field(trunk, _passes(trunk))
    route = LIMITS["functional" if trunk.alpha == trunk.gamma == HALF else "ode"]
    return route, limit(trunk, _passes(trunk))


def _rows(depth: str, route: str, found: Recursion) -> Iterator[DepthValue]:
    trunk = found.trunk
    outputs, features = found.readout(), found.features()
    several = outputs.value.shape[2] > 1
    for place in product(*map(range, outputs.value.shape)):
        name = ",".join(map(str, place if several else place[:2]))
        value = _estimate(outputs, place)
        if place[0] == 0 and value.value == 0:  # V is independent of the stream
            value = Estimate(0.0, 0.0, Method.EXACT)
        yield DepthValue(f"f[{name}]", depth, value, route)
    gradients = found.gradients()
    for what, kernel, steps in (("x", features, trunk.steps), ("dx", gradients, trunk.steps - 1)):
        for step, sample in product(range(steps), range(trunk.batch)):
            place = (step * trunk.batch + sample,) * 2
            yield DepthValue(f"{what}[{step},{sample}]", depth, _estimate(kernel, place), route)


def _estimate(answer: Any, place: tuple[int, ...]) -> Estimate:
    error = np.broadcast_to(answer.error, np.shape(answer.value))
    return Estimate(float(answer.value[place]), float(error[place]), answer.method)
