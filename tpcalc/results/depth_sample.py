"""What L blocks of finite width do at the start, network by network; how matrices vary along L."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, inf, log, log10, sqrt
from statistics import fmean, variance

from tpcalc.results.estimate import Estimate, Method
from tpcalc.results.tables import Provenance
from tpcalc.shown import Shown


def log10_of_root(square: Estimate) -> Estimate | None:
    """The decimal logarithm of a norm, from its square; None of 0."""
    if square.value <= 0:
        return None
    error = square.stderr / (2 * log(10) * square.value)
    return Estimate(log10(square.value) / 2, error, square.method)


@dataclass(frozen=True, slots=True)
class DepthSample(Shown):
    """How far L blocks of finite width carry the stream and its adjoint at the start.

    Args:
        depth: L.
        width: n.
        alphas: The powers of 1/L in front of a block.
        names: ``R``, ``D``: the norm of the stream after the last block, and of its difference to
            that before the first, over the latter; ``Rp``, ``Dp`` the same of the adjoint.
        logs: For each name, place and alpha the natural logarithm in each network. Networks of one
            seed have the same matrices for all alphas.
        provenance: What they were computed from and with.
        places: Shares of the blocks that are gone through: the first ones of the stream, the last
            ones of its adjoint.

    Example:
        >>> made = Provenance("0", "ab")
        >>> found = DepthSample(4, 8, ("1",), ("R",), ((((0.0, 0.2),),),), made)
        >>> round(found.log10("R", "1").value, 6)
        0.043429
    """

    depth: int
    width: int
    alphas: tuple[str, ...]
    names: tuple[str, ...]
    logs: tuple[tuple[tuple[tuple[float, ...], ...], ...], ...]
    provenance: Provenance
    places: tuple[float, ...] = (1.0,)

    def values(self, name: str, alpha: str, place: float = 1.0) -> tuple[float, ...]:
        """The natural logarithms of a ratio in all networks.

        Args:
            name: ``R``, ``D``, ``Rp`` or ``Dp``.
            alpha: One of the powers.
            place: One of the places.

        Raises:
            ValueError: There is no such name, power or place.
        """
        own = self.logs[self.names.index(name)][self.places.index(place)]
        return own[self.alphas.index(alpha)]

    def log10(self, name: str, alpha: str, place: float = 1.0) -> Estimate:
        """The mean over the networks of the decimal logarithm of a ratio.

        Args:
            name: ``R``, ``D``, ``Rp`` or ``Dp``.
            alpha: One of the powers.
            place: One of the places.

        Raises:
            ValueError: There is no such name, power or place.
        """
        return self._mean([value / log(10.0) for value in self.values(name, alpha, place)])

    def square(self, name: str, alpha: str) -> Estimate:
        """The mean over the networks of the square of a ratio.

        Args:
            name: ``R``, ``D``, ``Rp`` or ``Dp``.
            alpha: One of the powers.

        Raises:
            ValueError: There is no such name or power.
        """
        logs = self.values(name, alpha)
        return self._mean([exp(2.0 * value) if value < 350 else inf for value in logs])

    def _mean(self, values: list[float]) -> Estimate:
        count, mean = len(values), fmean(values)
        spread = sqrt(variance(values, mean) / count) if count > 1 else inf
        return Estimate(mean, spread, Method.FINITE, samples=count, replicates=count)


@dataclass(frozen=True, slots=True)
class ScaleRow:
    """A network with a power of 1/L in front of its blocks, and matrices that depend like these.

    Args:
        alpha: The power.
        outputs: ``"unstable"``, ``"stationary"`` or ``"identity"`` as L grows.
        gradients: The same of gradients.
        D: |x_L - x_0| / |x_0| at infinite width with the very autocovariance and number of blocks.
        Dp: The same of gradients.

    Example:
        >>> from tpcalc.results import Method
        >>> moved = Estimate(0.1, 0.0, Method.EXACT)
        >>> ScaleRow("1", "identity", "identity", moved, moved).D.value
        0.1
    """

    alpha: str
    outputs: str
    gradients: str
    D: Estimate | None
    Dp: Estimate | None


@dataclass(frozen=True, slots=True)
class Regularity(Shown):
    """What numbers along the depth are: their regularity, and which power of 1/L suits it.

    Args:
        depth: L, how many numbers.
        sequences: How many sequences of them.
        kind: ``"independent"``, ``"persistent"`` (fractional noise with H > 1/2), ``"rough"``
            (H < 1/2) or ``"smooth"`` (a continuous function of l / L).
        hurst: H: sums over m blocks are of size m^H.
        coarse: The same between the two longest sums alone.
        smoothness: s: numbers that are m blocks apart differ by m^s, m small.
        scales: (m, local exponent H of sums over m and 2 m blocks).
        correlation: The autocorrelation at the lags 0, 1, ...
        law: What they are nearest to, as ``along=`` of a network takes it.
        critical: The powers of 1/L at which outputs and gradients are of order one: ("4/5", "3/5").
        alpha: The power that suits them: the larger one.
        rows: Powers of 1/L and what they lead to.
        provenance: What it was computed from and with.
        notes: What a reader should know besides.

    Example:
        >>> import numpy as np, tpcalc as tp
        >>> found = tp.regularity(np.random.default_rng(0).normal(size=(512, 8, 8)))
        >>> found.kind, found.alpha
        ('independent', '1/2')
    """

    depth: int
    sequences: int
    kind: str
    hurst: Estimate
    coarse: Estimate
    smoothness: Estimate
    scales: tuple[tuple[int, Estimate], ...]
    correlation: tuple[float, ...]
    law: str
    critical: tuple[str, str]
    alpha: str
    rows: tuple[ScaleRow, ...]
    provenance: Provenance
    notes: tuple[str, ...] = ()
