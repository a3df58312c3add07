"""The law of the norm ratio of a stream and of its adjoint at the critical scaling: log-normal."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, sqrt

import numpy as np
from scipy import stats

from tpcalc import checks
from tpcalc.arrays import Array
from tpcalc.errors import UsageError
from tpcalc.networks.network import Architecture
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
