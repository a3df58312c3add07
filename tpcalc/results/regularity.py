"""``Regularity``: how matrices depend on themselves along the depth, and what that asks for."""

from __future__ import annotations

from dataclasses import dataclass

from tpcalc.results.estimate import Estimate
from tpcalc.results.tables import Provenance
from tpcalc.shown import Shown


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
