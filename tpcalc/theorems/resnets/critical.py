"""At beta = 1/2: the law of norm ratios, and Proposition 10, the stochastic differential equation.

The equation is dH^T = d^(-1/2) sigma(H^T) dB, and blocks are its Euler-Maruyama steps,
V^T = sqrt(L / d) dB.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, sqrt

import numpy as np
from scipy import stats

from tpcalc import checks
from tpcalc.arrays import Array
from tpcalc.errors import UsageError
from tpcalc.functions import Fn
from tpcalc.functions.tape import evaluate
from tpcalc.networks.architecture import activation_of
from tpcalc.networks.network import Architecture
from tpcalc.results import Estimate, Method
from tpcalc.shown import Shown
from tpcalc.theorems.resnets.case import case_of


@dataclass(frozen=True)
class LogNormal(Shown):
    """ln R is N(mean, variance), R the ratio of norms; derived, with R^p of the same law.

    Args:
        mean: c tau / 2 (1 - 2 / d).
        variance: c tau / d.
        notes: What a reader should know besides.
    """

    mean: float
    variance: float
    notes: tuple[str, ...] = ()

    def quantile(self, p: float) -> float:
        """The number that R is below with probability p.

        Args:
            p: Between 0 and 1.
        """
        return exp(self.mean + sqrt(self.variance) * float(stats.norm.ppf(p)))

    @property
    def second_moment(self) -> float:
        """E R^2, which is exp(c tau)."""
        return exp(2 * self.mean + 2 * self.variance)


def norm_ratio(network: Architecture, width: int, tau: float = 1.0) -> LogNormal:
    """The law of |h_L| / |h_0| and of |p_0| / |p_L| as L grows with L alpha_L^2 -> tau.

    Args:
        network: res-2 or res-3 with independent symmetric matrices, or res-1 with the identity.
        width: d.
        tau: The limit of L alpha_L^2.

    Returns:
        The log-normal law of both.

    Raises:
        UsageError: Another network: its Jacobian depends on the stream.

    Source: Derived from Marion, Fermanian, Biau, Vert, section 2, whose remark after Corollary 4
        leaves it open.

    Example:
        >>> import tpcalc as tp
        >>> found = norm_ratio(tp.ResNet("L", "relu", nonlin="between", layers=2), 100)
        >>> [round(found.quantile(p), 4) for p in (0.25, 0.5, 0.75)]
        [1.2181, 1.2776, 1.34]
    """
    width = checks.whole(width, "width", least=1)
    case = case_of(network)
    linear = case.slopes is not None and case.slopes[0] == case.slopes[1]
    if not case.fresh or case.c is None or case.c[0] != case.c[1]:
        raise UsageError("the law is known of independent matrices with one constant c.")
    if case.start.inner is None and not linear:
        raise UsageError("the Jacobian of res-1 depends on the stream, unless it is linear.")
    c = case.c[0]
    notes: tuple[str, ...] = ("derived, not in the paper",)
    if width <= 2:
        notes += (f"d = {width}: the typical norm does not grow, although E R^2 does",)
    return LogNormal(c * tau / 2 * (1 - 2 / width), c * tau / width, notes)


def sample_ratios(
    network: Architecture, depth: int, width: int, count: int, seed: int = 0
) -> Array:
    """Draws of ln R at a finite depth, for Gaussian matrices: layers are independent.

    Args:
        network: res-3, or res-1 with the identity, with Gaussian matrices.
        depth: L.
        width: d.
        count: How many draws.
        seed: Of the draws.

    Returns:
        Shape (count,).

    Raises:
        UsageError: Another network, or a number below 1.

    Source: Derived: the ratio of a layer is (1 + a r g / sqrt(d))^2 + a^2 r^2 chi^2_(d-1) / d, with
        r^2 = chi^2_m / d, m binomial, in res-3, and r = 1 in a linear res-1.

    Example:
        >>> import tpcalc as tp
        >>> found = sample_ratios(tp.ResNet("L", "identity"), 500, 100, 2000)
        >>> bool(abs(found.mean() - 0.49) < 0.01)
        True
    """
    sizes = (depth, "depth"), (width, "width"), (count, "count")
    depth, width, count = (checks.whole(value, what, least=1) for value, what in sizes)
    case = case_of(network)
    gaussian = case.start.laws == ("gaussian", "gaussian") and case.fresh
    form = (1.0, 1.0) if case.start.inner is None else (1.0, 0.0)
    if not gaussian or case.slopes != form:
        raise UsageError(
            "layers are drawn of res-3 and of the linear res-1, with Gaussian matrices."
        )
    generator = np.random.default_rng(seed)
    alpha, total = float(depth) ** -float(case.beta), np.zeros(count)
    for _ in range(depth):
        square = np.ones(count)
        if case.start.inner is not None:
            active = generator.binomial(width, 0.5, count)
            square = np.where(active > 0, generator.chisquare(np.maximum(active, 1)), 0.0) / width
        along = generator.standard_normal(count) * np.sqrt(square / width)
        across = generator.chisquare(width - 1, count) if width > 1 else np.zeros(count)
        total += np.log((1 + alpha * along) ** 2 + alpha**2 * square * across / width)
    return total / 2


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
