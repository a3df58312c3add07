"""Proposition 10: at beta = 1/2 the stream of res-1 follows a stochastic differential equation.

dH^T = d^(-1/2) sigma(H^T) dB, and blocks are its Euler-Maruyama steps, V^T = sqrt(L / d) dB.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
from scipy import stats

from tpcalc import checks
from tpcalc.arrays import Array
from tpcalc.errors import UsageError
from tpcalc.functions import Fn
from tpcalc.functions.tape import evaluate
from tpcalc.networks.architecture import activation_of
from tpcalc.results import Estimate, Method
from tpcalc.shown import Shown


@dataclass(frozen=True)
class StrongError(Shown):
    """How far networks of L blocks are from the solution, driven by the same Brownian path.

    Args:
        depths: L.
        errors: E |H_1 - h_L| at each, with its standard error over the paths.
        slope: The power of L of the error, fitted.
        interval: Half the width of its 95 % interval, of paths drawn anew.
        stated: What Proposition 10 says it is at most.
    """

    depths: tuple[int, ...]
    errors: tuple[Estimate, ...]
    slope: float
    interval: float
    stated: float = -0.5


def proposition_10(
    act: str = "identity",
    width: int = 3,
    depths: Sequence[int] = (8, 16, 32, 64, 128),
    *,
    fine: int = 4096,
    paths: int = 400,
    seed: int = 0,
) -> StrongError:
    """The strong error of res-1 at beta = 1/2 beside the SDE, measured on refined Brownian paths.

    Args:
        act: The activation, Lipschitz.
        width: d.
        depths: Numbers of blocks, divisors of ``fine``.
        fine: Steps of the path that stands for the solution.
        paths: Brownian paths.
        seed: Of the paths.

    Returns:
        The error at each depth, the slope in L, and an interval of it.

    Raises:
        UsageError: A depth that does not divide ``fine``, or one depth alone.

    Source: Marion, Fermanian, Biau, Vert, Proposition 10 with the variance 1/d of its proof: the
        rate is L^(-1/2).

    Example:
        >>> found = proposition_10("identity", 2, (8, 32), fine=256, paths=200)
        >>> -0.8 < found.slope < -0.2
        True
    """
    depths = [checks.whole(depth, "a depth", least=1) for depth in depths]
    for depth in depths:
        if fine % depth or depth == fine:
            raise UsageError(
                f"{depth} blocks do not divide the {fine} steps of the solution.",
                hint="Depths are divisors of fine, and less.",
            )
    if len(set(depths)) < 2:
        raise UsageError("a rate is fitted to two depths or more.", hint="Give (8, 16, 32).")
    fn = Fn(activation_of(act, "proposition_10"), 1)
    generator = np.random.default_rng(seed)
    start = generator.standard_normal((paths, width))
    noise = generator.standard_normal((fine, paths, width, width)) * sqrt(1 / fine)
    solution = _steps(fn, start, noise, width)
    gaps = []
    for depth in depths:
        joined = noise.reshape(depth, fine // depth, paths, width, width).sum(axis=1)
        network = _steps(fn, start, joined, width)
        gaps.append(np.linalg.norm(network - solution, axis=1))
    errors = [
        Estimate(float(g.mean()), float(g.std(ddof=1) / sqrt(paths)), Method.FINITE, samples=paths)
        for g in gaps
    ]
    return StrongError(tuple(depths), tuple(errors), *_slope(depths, np.array(gaps), generator))


def _steps(fn: Fn, start: Array, noise: Array, width: int) -> Array:
    """Blocks: h^T + d^(-1/2) sigma(h^T) dB."""
    h = start
    for one in noise:
        value = np.broadcast_to(evaluate(fn, [h], []), h.shape)
        h = h + np.einsum("pi,pij->pj", value, one) * width**-0.5
    return h


def _slope(
    depths: Sequence[int], gaps: Array, generator: np.random.Generator
) -> tuple[float, float]:
    """The slope of the logarithm of mean errors; its spread by drawing the paths anew."""
    x = np.log(np.array(depths, dtype=float))

    def fit(some: Array) -> float:
        means = np.maximum(some.mean(axis=1), np.finfo(float).tiny)
        return float(np.polyfit(x, np.log(means), 1)[0])

    count = gaps.shape[1]
    drawn = [fit(gaps[:, generator.integers(0, count, count)]) for _ in range(200)]
    return fit(gaps), float(np.std(drawn) * stats.norm.ppf(0.975))
