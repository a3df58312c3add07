"""Moments of every neuron of every layer over inputs, in passes over batches.

Means come first and powers of deviations from them second, so that nothing is lost where a layer
hardly depends on the input. What is held at a time: the layers of one batch, and a few numbers for
each neuron and for each input.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tpcalc.arrays import Array
from tpcalc.engine.device.devices import load_torch
from tpcalc.errors import EvaluationError
from tpcalc.nonlinearity.tensors.shard import Shard
from tpcalc.nonlinearity.tensors.taps import HasLayers

Tensor = Any

# Ends of the intervals in which laws are compared with a Gaussian.
EDGES = (-1.8, -1.4, -1.0, -0.6, -0.2, 0.2, 0.6, 1.0, 1.4, 1.8)
# Neurons of a layer whose correlations are measured.
_CORRELATED = 256


@dataclass(frozen=True)
class LayerMoments:
    """What one layer does over inputs.

    Args:
        mean: Mean of each neuron.
        variance: Sample variance of each neuron.
        kurtosis: Excess kurtosis of each neuron, unbiased for Gaussians.
        overlap: How far the law of each standardized neuron overlaps a standard Gaussian.
        squares: For each input the mean square over neurons.
        deviations: For each input the squared distance from the mean, over neurons.
        projections: For each input the deviation from the mean along it, over neurons.
        correlations: Correlations of pairs of neurons, squared.
    """

    mean: Array
    variance: Array
    kurtosis: Array
    overlap: Array
    squares: Array
    deviations: Array
    projections: Array
    correlations: Array

    @property
    def size(self) -> int:
        """How many neurons there are."""
        return len(self.mean)


def layer_moments(network: HasLayers, shard: Shard) -> list[LayerMoments]:
    """The moments of all layers.

    Source: Schoenherr, The nonlinearity coefficient, sections 3.4.1 and 5.2.1.

    Example:
        >>> from tpcalc.nonlinearity.tensors.shard import shard_of
        >>> from tpcalc.nonlinearity.tensors.taps import Tapped
        >>> shard = shard_of([[0.0], [1.0], [2.0], [3.0]])
        >>> layer_moments(Tapped(lambda x: [2 * x]), shard)[1].mean.tolist()
        [3.0]
    """
    torch = load_torch()
    with torch.no_grad():
        means, squares = _means(network, shard)
        centred = _deviations(network, shard, means)
        scales = [
            torch.sqrt(second * shard.correction).clamp_min(torch.finfo(torch.float64).tiny)
            for second, *_ in centred
        ]
        counts, products = _standardized(network, shard, means, scales)
    found = []
    for index, (second, fourth, lengths, along) in enumerate(centred):
        found.append(
            LayerMoments(
                _array(means[index]),
                _array(second) * shard.correction,
                excess_kurtosis(_array(second), _array(fourth), len(shard)),
                normal_overlap(_array(counts[index]) / len(shard)),
                _array(squares[index]),
                _array(lengths),
                _array(along),
                _pairs(_array(products[index]) / (len(shard) - 1)),
            )
        )
    return found


def excess_kurtosis(second: Array, fourth: Array, count: int) -> Array:
    """Excess kurtosis from biased central moments, unbiased for Gaussians; 0 without spread.

    Source: Schoenherr, The nonlinearity coefficient, section 3.4.1.

    Example:
        >>> excess_kurtosis(np.array([2.0]), np.array([6.8]), 5).round(9).tolist()
        [-1.2]
    """
    if count < 4:
        return np.zeros_like(second)
    n = float(count)
    with np.errstate(over="ignore", invalid="ignore"):
        ratio = np.divide(fourth, second**2, out=np.zeros_like(fourth), where=second > 0)
    below = (n - 2) * (n - 3)
    found = (n + 1) * (n - 1) / below * ratio - 3 * (n - 1) ** 2 / below
    return np.where(second > 0, found, 0.0)


def normal_overlap(below: Array) -> Array:
    """The share of a law that a standard Gaussian has as well, in eleven intervals.

    A sample of n stays below 1 by about the square root of 11 / n, times .4, by chance.

    Source: Schoenherr, The nonlinearity coefficient, section 5.2.1 (NGHI).

    Example:
        >>> from scipy.stats import norm
        >>> normal_overlap(norm.cdf(EDGES)[:, None]).round(12).tolist()
        [1.0]
    """
    from scipy.special import ndtr

    ends = np.concatenate([[0.0], ndtr(np.array(EDGES)), [1.0]])
    edge = np.zeros((1, below.shape[1]))
    shares = np.diff(np.concatenate([edge, below, edge + 1]), axis=0)
    found: Array = np.minimum(np.diff(ends)[:, None], shares).sum(axis=0)
    return found


def _rows(network: HasLayers, batch: Tensor) -> list[Tensor]:
    torch = load_torch()
    return [layer.reshape(len(batch), -1).to(torch.float64) for layer in network.layers(batch)]


def _means(network: HasLayers, shard: Shard) -> tuple[list[Tensor], list[Tensor]]:
    torch = load_torch()
    sums: list[Tensor] = []
    squares: list[list[Tensor]] = []
    for batch in shard.batches():
        for index, layer in enumerate(_rows(network, batch)):
            if index == len(sums):
                sums.append(torch.zeros_like(layer[0]))
                squares.append([])
            sums[index] += layer.sum(0)
            squares[index].append((layer * layer).mean(1))
    joined = [torch.cat(parts) for parts in squares]
    for index, part in enumerate(joined):
        if not bool(torch.isfinite(part).all()):
            raise EvaluationError(
                "it leaves the range of its number format.",
                where=f"layer {index}",
                hint="Lower the variance of the weights, or normalize layers.",
            )
    return [total / len(shard) for total in sums], joined


def _deviations(
    network: HasLayers, shard: Shard, means: list[Tensor]
) -> list[tuple[Tensor, Tensor, Tensor, Tensor]]:
    torch = load_torch()
    second = [torch.zeros_like(mean) for mean in means]
    fourth = [torch.zeros_like(mean) for mean in means]
    lengths: list[list[Tensor]] = [[] for _ in means]
    along: list[list[Tensor]] = [[] for _ in means]
    for batch in shard.batches():
        for index, layer in enumerate(_rows(network, batch)):
            away = layer - means[index]
            square = away * away
            second[index] += square.sum(0)
            fourth[index] += (square * square).sum(0)
            lengths[index].append(square.mean(1))
            along[index].append(away @ means[index] / len(means[index]))
    return [
        (second[k] / len(shard), fourth[k] / len(shard), torch.cat(lengths[k]), torch.cat(along[k]))
        for k in range(len(means))
    ]


def _standardized(
    network: HasLayers, shard: Shard, means: list[Tensor], scales: list[Tensor]
) -> tuple[list[Tensor], list[Tensor]]:
    """Inputs below each edge, and products of pairs, of standardized neurons."""
    torch = load_torch()
    counts = [torch.zeros((len(EDGES), len(mean)), device=mean.device) for mean in means]
    counts = [count.to(torch.float64) for count in counts]
    chosen = [_chosen(shard, index, mean) for index, mean in enumerate(means)]
    products = [torch.zeros((len(k), len(k)), dtype=torch.float64, device=k.device) for k in chosen]
    for batch in shard.batches():
        for index, layer in enumerate(_rows(network, batch)):
            z = (layer - means[index]) / scales[index]
            for place, edge in enumerate(EDGES):
                counts[index][place] += (z < edge).sum(0)
            part = z[:, chosen[index]]
            products[index] += part.T @ part
    return counts, products


def _chosen(shard: Shard, index: int, mean: Tensor) -> Tensor:
    torch, size = load_torch(), len(mean)
    picked = shard.stream("neurons", index).permutation(size)[:_CORRELATED]
    return torch.from_numpy(picked).to(mean.device)


def _pairs(correlation: Array) -> Array:
    found: Array = correlation[np.triu_indices(len(correlation), 1)] ** 2
    return found


def _array(tensor: Tensor) -> Array:
    found: Array = tensor.cpu().numpy()
    return found
