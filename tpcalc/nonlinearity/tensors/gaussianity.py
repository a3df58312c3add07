"""How far layers are from independent Gaussian neurons over inputs."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, sqrt
from typing import Any

import numpy as np

from tpcalc.arrays import Array
from tpcalc.nonlinearity.tensors.layer_moments import (
    EDGES,
    LayerMoments,
    excess_kurtosis,
    normal_overlap,
)
from tpcalc.nonlinearity.tensors.uncertainty import estimate, jackknife
from tpcalc.results import Estimate

# Layers of wide networks have 0 of both; beyond these their limit says little.
_HEAVY, _WIDE = 1.0, 0.5


@dataclass(frozen=True)
class Gaussianity:
    """Seven diagnostics of one layer; each has its limit in wide networks in parentheses.

    Attributes:
        kurtosis: NKURT: excess kurtosis of a neuron over inputs, the mean over neurons (0).
        overlap: NGHI: overlap of a neuron's law with a Gaussian, the mean over neurons (1).
        mean_kurtosis: KURTEX: excess kurtosis of the neurons' means over neurons (0).
        mean_overlap: GHIEX: overlap of the law of these means with a Gaussian (1).
        deviation_spread: CVNSTD: spread of the neurons' standard deviations, relative (0).
        correlation: NCORR: quadratic mean of the correlations of two neurons (0).
        length_spread: LCV: spread of the layer's length over inputs, relative (0).
    """

    kurtosis: Estimate
    overlap: Estimate
    mean_kurtosis: Estimate
    mean_overlap: Estimate
    deviation_spread: Estimate
    correlation: Estimate
    length_spread: Estimate

    @property
    def alarm(self) -> str:
        """Why the limit of wide networks does not describe this layer; empty if it may."""
        found = []
        if self.kurtosis.value > _HEAVY:
            found.append(f"neurons have an excess kurtosis of {self.kurtosis.value:.3g}")
        if self.length_spread.value > _WIDE:
            found.append(
                f"lengths vary over inputs by {self.length_spread.value:.2g} of their mean"
            )
        if not found:
            return ""
        return (
            f"the mean-field prediction is unreliable: {' and '.join(found)}, as where deviations "
            "grow from layer to layer (Gaussian instability)."
        )


def gaussianity(moments: LayerMoments, seed: int | None = None) -> Gaussianity:
    """The diagnostics of a layer. Standard errors are over neurons, of the lengths over inputs.

    With n inputs and d neurons, chance alone gives an overlap below 1 by about 1.3 / sqrt(n), a
    spread of standard deviations of 1 / sqrt(2 n) and correlations of sqrt(1 / n + 1 / d).

    Source: Schoenherr, The nonlinearity coefficient, section 5.2.1.

    Example:
        >>> from tpcalc.nonlinearity.tensors.surrogates import gaussian_inputs
        >>> from tpcalc.nonlinearity.tensors.layer_moments import layer_moments
        >>> from tpcalc.nonlinearity.tensors.shard import shard_of
        >>> from tpcalc.nonlinearity.tensors.taps import Tapped
        >>> shard = shard_of(gaussian_inputs(1000, 30))
        >>> found = gaussianity(layer_moments(Tapped(lambda x: [x]), shard)[1])
        >>> abs(found.kurtosis.value) < 0.1, found.overlap.value > 0.95
        (True, True)
    """
    lengths = np.sqrt(moments.squares)
    deviations = np.sqrt(moments.variance)
    return Gaussianity(
        jackknife([moments.kurtosis], np.mean, seed),
        jackknife([moments.overlap], np.mean, seed),
        jackknife([moments.mean], _kurtosis, seed),
        jackknife([moments.mean], _overlap, seed),
        jackknife([deviations], _relative_spread, seed),
        _correlation(moments, seed),
        jackknife([lengths], _relative_spread, seed),
    )


def _correlation(moments: LayerMoments, seed: int | None) -> Estimate:
    """All pairs, each neuron with itself included."""
    size, pairs = moments.size, moments.correlations
    if not len(pairs):
        return estimate(1.0, inf if size > 1 else 0.0, 1, seed)
    square = 1 / size + (1 - 1 / size) * float(pairs.mean())
    error = float(pairs.std()) / sqrt(len(pairs))
    return estimate(sqrt(square), error / (2 * sqrt(square)), len(pairs), seed)


def _kurtosis(values: Array) -> float:
    away = values - values.mean()
    second, fourth = np.mean(away**2, keepdims=True), np.mean(away**4, keepdims=True)
    return float(excess_kurtosis(second, fourth, len(values))[0])


def _overlap(values: Array) -> float:
    spread = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
    if spread == 0:
        return 0.0
    z = (values - values.mean()) / spread
    below = np.array([[np.mean(z < edge)] for edge in EDGES])
    return float(normal_overlap(below)[0])


def _relative_spread(values: Any) -> float:
    mean = float(np.mean(values))
    return float(np.std(values, ddof=1)) / mean if len(values) > 1 and mean else 0.0
