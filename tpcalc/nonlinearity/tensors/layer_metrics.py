"""Scales, spreads and nonlinearity of every layer of a network, as functions of the input."""

from __future__ import annotations

from dataclasses import dataclass
from math import hypot, inf, sqrt
from typing import Any

import numpy as np

from tpcalc import checks
from tpcalc.engine.device.devices import load_torch
from tpcalc.nonlinearity.tensors.gaussianity import Gaussianity, gaussianity
from tpcalc.nonlinearity.tensors.layer_moments import LayerMoments, layer_moments
from tpcalc.nonlinearity.tensors.noise import Jacobians, forward
from tpcalc.nonlinearity.tensors.shard import Shard, shard_of
from tpcalc.nonlinearity.tensors.taps import HasLayers, measuring
from tpcalc.nonlinearity.tensors.uncertainty import Measured, estimate, mean_of, root_of_ratio
from tpcalc.results import Estimate, Method
from tpcalc.shown import Rows, Shown

_ULPS = 16


@dataclass(frozen=True)
class LayerMetrics(Shown):
    """One layer l; each quantity has its limit in wide networks in parentheses.

    Attributes:
        layer: Its number; 0 is the input.
        size: Its neurons.
        root_mean_square: LQM: of the neurons, the mean over inputs (sqrt q).
        scale: LSCALE: root of the mean square over neurons and inputs (sqrt q).
        mean_scale: QMNEX: root mean square of the neurons' means (sqrt c).
        deviation_scale: QMNSTD: root mean square of the neurons' deviations (sqrt(q - c)).
        bias: LBIAS: LSCALE over QMNSTD (sqrt(q / (q - c))).
        jacobian: JACF: Frobenius norm of the derivative by the input over sqrt(size), root mean
            square over inputs (sqrt g).
        numerator: NLCNUM: root of E Tr J Cov_x J^T over the size.
        nlc: The nonlinearity coefficient of the layer as a function of the input.
        gaussianity: How far its neurons are from independent Gaussians.
        collapsed: Whether it is the same for all inputs within a few roundings; then bias and
            coefficient are what rounding left.
    """

    layer: int
    size: int
    root_mean_square: Estimate
    scale: Estimate
    mean_scale: Estimate
    deviation_scale: Estimate
    bias: Estimate
    jacobian: Estimate
    numerator: Estimate
    nlc: Estimate
    gaussianity: Gaussianity
    collapsed: bool


def layer_metrics(
    network: HasLayers,
    x: Any,
    *,
    batch: int | None = None,
    draws: int = 4,
    seed: int = 0,
) -> tuple[LayerMetrics, ...]:
    """Measure every layer, in three passes over the inputs and two derivatives for each draw.

    Args:
        network: A drawn network, or ``tapped(module)``.
        x: The inputs, on the network's device.
        batch: Inputs of a batch; None: 250, or all if there are fewer.
        draws: Batches of directions for the derivatives.
        seed: The seed.

    Returns:
        A row for each layer, the input first.

    Raises:
        UsageError: Inputs that are too few or all equal.
        EvaluationError: A layer, or its derivative, is not finite.

    Source: Schoenherr, The nonlinearity coefficient, chapter 3 and section 5.3.2.

    Example:
        >>> from tpcalc.nonlinearity.tensors.surrogates import gaussian_inputs
        >>> from tpcalc.nonlinearity.tensors.taps import Tapped
        >>> rows = layer_metrics(Tapped(lambda x: [3 * x]), gaussian_inputs(400, 20))
        >>> [round(row.jacobian.value) for row in rows]
        [1, 3]
    """
    draws = checks.whole(draws, "draws", least=2)
    shard = shard_of(x, batch, seed)
    with measuring(network):
        moments = layer_moments(network, shard)
        jacobians = forward(network.layers, shard, draws)
    eps = float(load_torch().finfo(shard.rows.dtype).eps)
    return Rows(
        _metrics(index, own, jacobian, shard, eps)
        for index, (own, jacobian) in enumerate(zip(moments, jacobians, strict=True))
    )


def _metrics(
    index: int, own: LayerMoments, jacobian: Jacobians, shard: Shard, eps: float
) -> LayerMetrics:
    seed, size = shard.seed, own.size
    assert jacobian.frobenius is not None
    lengths, square = mean_of(np.sqrt(own.squares)), mean_of(own.squares)
    spread = mean_of(own.deviations).times(shard.correction)
    offset = sqrt(float(np.mean(own.mean**2)))
    deviation = sqrt(spread.value)
    collapsed = deviation <= _ULPS * eps * offset
    numerator = jacobian.numerator.times(1 / size)
    one = Measured(1.0, 0.0)
    if collapsed:
        bias = Estimate(inf, inf, Method.FINITE, samples=len(shard), seed=seed)
        nlc = Estimate(1.0, inf, Method.FINITE, samples=len(shard), seed=seed)
    else:
        bias, nlc = _bias(own, square, spread, seed), root_of_ratio(numerator, spread, seed)
    return LayerMetrics(
        index,
        size,
        estimate(lengths.value, lengths.stderr, lengths.samples, seed),
        root_of_ratio(square, one, seed),
        _mean_scale(own, offset, spread, seed),
        root_of_ratio(spread, one, seed),
        bias,
        root_of_ratio(jacobian.frobenius.times(1 / size), one, seed),
        root_of_ratio(numerator, one, seed),
        nlc,
        gaussianity(own, seed),
        collapsed,
    )


def _bias(own: LayerMoments, square: Measured, spread: Measured, seed: int) -> Estimate:
    """The root of a ratio whose two parts vary with the same inputs."""
    value = sqrt(square.value / spread.value)
    parts = own.squares / square.value - own.deviations / np.mean(own.deviations)
    relative = mean_of(parts).stderr
    return estimate(value, value * relative / 2, square.samples, seed)


def _mean_scale(own: LayerMoments, offset: float, spread: Measured, seed: int) -> Estimate:
    """The length of a mean; of n inputs it is too long by their spread over n, squared."""
    count = len(own.squares)
    scatter = 2 * mean_of(own.projections).stderr
    excess = spread.value / count
    error = hypot(scatter, excess) / (2 * offset) if offset else sqrt(excess)
    return estimate(offset, error, count, seed)
