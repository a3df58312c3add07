"""``depth_simulate``: networks of L blocks of finite width at the start, many at once."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from fractions import Fraction

from tpcalc import checks
from tpcalc.doors.budget import spend
from tpcalc.doors.numbers import exact
from tpcalc.errors import UsageError
from tpcalc.finite.deep import run_deep
from tpcalc.networks.network import Architecture
from tpcalc.networks.own import as_network
from tpcalc.program.along import along_of
from tpcalc.program.laws import LAWS
from tpcalc.questions.depth.shape import Unlike, block_at_start, depth_places, start_of
from tpcalc.results import DepthSample
from tpcalc.results.tables import provenance

NAMES = ("R", "D", "Rp", "Dp")


def depth_simulate(
    network: Architecture,
    depth: int,
    width: int,
    seeds: int = 16,
    *,
    alphas: Sequence[Fraction | float | str] | None = None,
    seed: int = 0,
    threads: int | None = None,
    places: Sequence[float] = (1.0,),
    progress: Callable[[float], None] | None = None,
) -> DepthSample:
    """Networks of L blocks of finite width at the start, with matrices drawn and blocks looped.

    The stream starts as independent N(0, 1) coordinates, and so does its adjoint behind the last
    block: a random readout.

    Args:
        network: A network of L blocks x + a L^(-alpha) V phi(W x), V or W possibly missing.
        depth: L.
        width: n.
        seeds: How many networks; network k has the seed ``seed + k``.
        alphas: Powers of 1/L in front of a block; by default that of the network. Networks of one
            seed have the same matrices for all of them, which costs little more than one.
        seed: The first seed.
        threads: How many share the work; the answer does not depend on them.
        places: Shares of the blocks that are gone through, from the first for the stream, from the
            last for its adjoint; 1 is the whole network.
        progress: Called with the fraction of the networks that are done.

    Returns:
        The ratios of norms in each network, as logarithms: they may be as large as 1e26.

    Raises:
        UsageError: Another block, a number of the wrong kind, or a law of matrices whose entries
            are not independent.
        OutOfMemory: The matrices of a network do not fit.

    Source: Marion, Fermanian, Biau, Vert, Scaling ResNets in the large-depth regime, Figures 1-7.

    Example:
        >>> import tpcalc as tp
        >>> net = tp.ResNet("L", "relu", nonlin="between", layers=2, law="uniform")
        >>> found = depth_simulate(net, 100, 40, 64)
        >>> abs(found.square("D", "1/2").z(0.646668)) < 4  # (1 + 1/200)^100 - 1
        True
    """
    started = time.perf_counter()
    depth = checks.whole(depth, "depth", least=1, hint="It counts the blocks.")
    width = checks.whole(width, "width", least=1, hint="It is the number of coordinates.")
    seeds = checks.whole(
        seeds, "seeds", least=1, each=checks.PART, hint="It counts networks, as in seeds=16."
    )
    seed = checks.seed(seed)
    if threads is not None:
        threads = checks.whole(threads, "threads", least=1)
    checks.called(progress, "progress", 0.0)
    shares = depth_places(places)
    if not shares:
        raise UsageError("places is empty.", hint="Give shares of the depth, 0 to 1.")
    network = as_network(network)
    block = block_at_start(network)
    try:
        start = start_of(block)
    except Unlike as reason:
        raise UsageError(
            f"{network.words} is looped over in no way that is known: {reason}.",
            hint="tp.simulate takes tp.at_depth of its program, for small depths.",
        ) from None
    if start.centred and width == 1:
        raise UsageError(
            "blocks that take off the average over coordinates add nothing to one coordinate.",
            hint="Take a width of 2 or more.",
        )
    turned = [law for law in (start.outer, start.inner) if law and along_of(law).mixes]
    if turned and width % 2:
        raise UsageError(
            f"{turned[0]} mixes pairs of coordinates, and the width is {width}.",
            hint="Take an even width.",
        )
    for law in start.laws:
        if LAWS[law].draw is None:
            raise UsageError(f"{law} matrices are not drawn entry by entry.")
    spend(
        f"one network of {depth} blocks of width {width}",
        memory=32 * depth * width**2,
        hint="Take a smaller width or fewer blocks; tp.limit(..., depths=) has no width.",
    )
    asked = [start.alpha] if alphas is None else checks.sequence(alphas, "alphas")
    powers = [exact(one, what="alpha") for one in asked]
    networks, numbers = range(seed, seed + seeds), list(map(float, powers))
    logs = run_deep(start, depth, width, networks, numbers, threads, shares, progress)
    settings = {"depth": str(depth), "width": str(width), "seeds": str(seeds)}
    made = provenance(block.program.digest, seed, settings, time.perf_counter() - started)
    shown = tuple(
        tuple(tuple(tuple(map(float, row)) for row in rows) for rows in at) for at in logs
    )
    alphas = tuple(map(str, powers))
    return DepthSample(depth, width, alphas, NAMES, shown, made, shares)
