"""How Gaussian neurons are over inputs: NKURT, NGHI, KURTEX, GHIEX, CVNSTD, NCORR, LCV."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from math import inf, sqrt
from typing import Any

import numpy as np

from tpcalc import checks
from tpcalc.arrays import Array, Index
from tpcalc.errors import EvaluationError, UsageError
from tpcalc.nonlinearity.estimators import estimate, jackknife
from tpcalc.nonlinearity.function import EPS
from tpcalc.results import Estimate
from tpcalc.shown import Shown

# Ends of the intervals in which laws are compared with a Gaussian.
EDGES = np.array([-1.8, -1.4, -1.0, -0.6, -0.2, 0.2, 0.6, 1.0, 1.4, 1.8])
ULPS = 16
TOGETHER = 256  # inputs that are compared with each other
CORRELATED = 2048  # neurons of an array whose correlations are measured
# Layers of wide networks have 0 of both; beyond these their limit says little.
HEAVY, WIDE = 1.0, 0.5

Passes = Callable[[], Iterable[list[Array]]]
"""Runs through all inputs: for each batch its layers, inputs by neurons."""


@dataclass(frozen=True)
class MetaGaussianity(Shown):
    """What is 0 (overlaps: 1) where each neuron is Gaussian, with independent means of one law."""

    nkurt: float  # NKURT, the excess kurtosis of a neuron over inputs; its mean over neurons
    nghi: float  # NGHI, the overlap of a neuron's histogram with the Gaussian one; its mean
    kurtex: float  # KURTEX, the excess kurtosis over neurons of their means
    ghiex: float  # GHIEX, the overlap of the histogram of their means with the Gaussian one
    cvnstd: float  # CVNSTD, the spread over neurons of their standard deviations, over the mean
    # NCORR, the root of the mean square correlation of two neurons, itself included: no less
    # than 1 / sqrt(width), nor than about 1 / sqrt(inputs)
    ncorr: float
    lcv: float  # LCV, the spread over inputs of the length of the layer, over its mean
    # neurons that do not vary over the inputs; they are left out of all but LCV, KURTEX and
    # GHIEX
    dead: int


@dataclass(frozen=True)
class Gaussianity:
    """Seven diagnostics of one layer; each has its limit in wide networks in parentheses."""

    kurtosis: Estimate  # NKURT: excess kurtosis of a neuron over inputs, the mean over neurons (0)
    overlap: Estimate  # NGHI: overlap of a neuron's law with a Gaussian, the mean over neurons (1)
    mean_kurtosis: Estimate  # KURTEX: excess kurtosis of the neurons' means over neurons (0)
    mean_overlap: Estimate  # GHIEX: overlap of the law of these means with a Gaussian (1)
    deviation_spread: Estimate  # CVNSTD: spread of the neurons' standard deviations, relative (0)
    correlation: Estimate  # NCORR: quadratic mean of the correlations of two neurons (0)
    length_spread: Estimate  # LCV: spread of the layer's length over inputs, relative (0)

    @property
    def alarm(self) -> str:
        """Why the limit of wide networks does not describe this layer; empty if it may."""
        found = []
        if self.kurtosis.value > HEAVY:
            found.append(f"neurons have an excess kurtosis of {self.kurtosis.value:.3g}")
        if self.length_spread.value > WIDE:
            found.append(
                f"lengths vary over inputs by {self.length_spread.value:.2g} of their mean"
            )
        if not found:
            return ""
        return (
            f"the mean-field prediction is unreliable: {' and '.join(found)}, as where deviations "
            "grow from layer to layer (Gaussian instability)."
        )


@dataclass(frozen=True)
class LayerMoments:
    """What one layer does over inputs."""

    mean: Array  # mean of each neuron
    variance: Array  # sample variance of each neuron
    alive: Any  # which neurons vary by more than rounding
    kurtosis: Array  # excess kurtosis of each neuron, unbiased for Gaussians; 0 of those not alive
    overlap: Array  # how far the law of each standardized neuron overlaps a standard Gaussian
    squares: Array  # for each input the mean square over neurons
    deviations: Array  # for each input the squared distance from the mean, over neurons
    projections: Array  # for each input the deviation from the mean along it, over neurons
    correlations: Array  # correlations of pairs of neurons that are alive, squared
    alike: Array  # for inputs the mean squared correlation with others, over neurons

    @property
    def size(self) -> int:
        """How many neurons there are."""
        return len(self.mean)


def layer_moments(
    passes: Passes, count: int, chosen: Callable[[int, int], Index]
) -> list[LayerMoments]:
    """The moments of all layers over so many inputs; correlations are those of chosen neurons."""
    with np.errstate(over="ignore", invalid="ignore"):  # refused below
        first = _gathered(
            passes, lambda _, f: ([f.sum(axis=0)], [np.mean(f * f, axis=1), _alike(f)])
        )
    for index, (_, (squares, _)) in enumerate(first):
        if not np.isfinite(squares).all():
            raise EvaluationError(
                "it leaves the range of its number format.",
                where=f"layer {index}",
                hint="Lower the variance of the weights, or normalize layers.",
            )
    means = [total / count for (total,), _ in first]
    second = _gathered(passes, lambda index, f: _powers(f, means[index]))
    variances = [square / (count - 1) for (square, _), _ in second]
    alive = [np.sqrt(v) > ULPS * EPS * np.abs(m) for v, m in zip(variances, means, strict=True)]
    places = [chosen(index, len(mean)) for index, mean in enumerate(means)]
    some = [own[alive[index][own]] for index, own in enumerate(places)]
    scales = [np.where(a, np.sqrt(v), inf) for a, v in zip(alive, variances, strict=True)]

    def standardized(index: int, layer: Array) -> tuple[list[Array], list[Array]]:
        z = (layer - means[index]) / scales[index]
        part = z[:, some[index]]
        return [_below(z), part.T @ part], []

    found = []
    third = _gathered(passes, standardized)
    for index, ((_, fourth), (deviations, projections)) in enumerate(second):
        below, products = third[index][0]
        pairs = products[np.triu_indices(len(products), 1)] / (count - 1)
        kurtosis = _kurtosis(variances[index] * (count - 1) / count, fourth / count, count)
        found.append(
            LayerMoments(
                means[index],
                variances[index],
                alive[index],
                np.where(alive[index], kurtosis, 0.0),
                _overlap(below / count),
                first[index][1][0],
                deviations,
                projections,
                pairs**2,
                first[index][1][1],
            )
        )
    return found


def _gathered(
    passes: Passes, of: Callable[[int, Array], tuple[list[Array], list[Array]]]
) -> list[tuple[list[Array], list[Array]]]:
    """For each layer what is summed over batches, and what is listed input by input."""
    sums: list[list[Array]] = []
    rows: list[list[list[Array]]] = []
    for layers in passes():
        for index, layer in enumerate(layers):
            added, listed = of(index, layer)
            if index == len(sums):
                sums.append([np.zeros_like(part) for part in added])
                rows.append([[] for _ in listed])
            for total, part in zip(sums[index], added, strict=True):
                total += part
            for known, part in zip(rows[index], listed, strict=True):
                known.append(part)
    joined = [[np.concatenate(parts) for parts in own] for own in rows]
    return list(zip(sums, joined, strict=True))


def _alike(layer: Array) -> Array:
    """Of each input the mean squared correlation with some others, over neurons."""
    found = [np.zeros(0)]
    for part in (layer[k : k + TOGETHER] for k in range(0, len(layer), TOGETHER)):
        away = part - part.mean(axis=1, keepdims=True)
        length = np.linalg.norm(away, axis=1, keepdims=True)
        z = np.divide(away, length, out=np.zeros_like(away), where=length > 0)
        if len(z) > 1:
            found.append((((z @ z.T) ** 2).sum(axis=1) - (z * z).sum(axis=1) ** 2) / (len(z) - 1))
    return np.concatenate(found)


def _powers(layer: Array, mean: Array) -> tuple[list[Array], list[Array]]:
    away = layer - mean
    square = away * away
    with np.errstate(over="ignore"):
        sums = [square.sum(axis=0), (square * square).sum(axis=0)]
    return sums, [square.mean(axis=1), away @ mean / len(mean)]


def _below(z: Array) -> Array:
    """How many of each column are below each edge."""
    return np.stack([np.count_nonzero(z < edge, axis=0) for edge in EDGES]).astype(float)


def _kurtosis(second: Array, fourth: Array, count: int) -> Array:
    """Excess kurtosis from biased central moments, unbiased for Gaussians; 0 without spread."""
    if count < 4:
        return np.zeros_like(second)
    n = float(count)
    with np.errstate(over="ignore", invalid="ignore"):
        ratio = np.divide(fourth, second**2, out=np.zeros_like(fourth), where=second > 0)
    below = (n - 2) * (n - 3)
    found = (n + 1) * (n - 1) / below * ratio - 3 * (n - 1) ** 2 / below
    return np.where(second > 0, found, 0.0)


def _overlap(below: Array) -> Array:
    """The share of a law that a standard Gaussian has as well, in eleven intervals."""
    from scipy.special import ndtr

    ends = np.concatenate([[0.0], ndtr(EDGES), [1.0]])
    edge = np.zeros((1, below.shape[1]))
    shares = np.diff(np.concatenate([edge, below, edge + 1]), axis=0)
    found: Array = np.minimum(np.diff(ends)[:, None], shares).sum(axis=0)
    return found


def gaussianity(moments: LayerMoments, seed: int | None = None) -> Gaussianity:
    """The diagnostics of a layer. Standard errors are over neurons, of the lengths over inputs."""
    alive = moments.alive if moments.alive.any() else np.ones_like(moments.alive)
    return Gaussianity(
        jackknife(moments.kurtosis[alive], np.mean, seed),
        jackknife(moments.overlap[alive], np.mean, seed),
        jackknife(moments.mean, _kurtosis_of, seed),
        jackknife(moments.mean, _overlap_of, seed),
        jackknife(np.sqrt(moments.variance[alive]), _relative_spread, seed),
        _correlation(moments, int(np.count_nonzero(alive)), seed),
        jackknife(np.sqrt(moments.squares), _relative_spread, seed),
    )


def _correlation(moments: LayerMoments, size: int, seed: int | None) -> Estimate:
    """All pairs, each neuron with itself included."""
    pairs = moments.correlations
    if not len(pairs):
        return estimate(1.0, inf if size > 1 else 0.0, 1, seed)
    square = 1 / size + (1 - 1 / size) * float(pairs.mean())
    error = float(pairs.std()) / sqrt(len(pairs))
    return estimate(sqrt(square), error / (2 * sqrt(square)), len(pairs), seed)


def _kurtosis_of(values: Array) -> float:
    away = values - values.mean()
    second, fourth = np.mean(away**2, keepdims=True), np.mean(away**4, keepdims=True)
    return float(_kurtosis(second, fourth, len(values))[0])


def _overlap_of(values: Array) -> float:
    spread = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
    if spread == 0:
        return 0.0
    z = (values - values.mean()) / spread
    return float(_overlap(_below(z[:, None]) / len(values))[0])


def _relative_spread(values: Any) -> float:
    mean = float(np.mean(values))
    return float(np.std(values, ddof=1)) / mean if len(values) > 1 and mean else 0.0


def meta_gaussianity(values: Any) -> MetaGaussianity:
    """The metrics of a layer from its values at inputs.

    Args:
        values: An array of inputs by neurons, at least four of each.

    Returns:
        The metrics, one number each.

    Raises:
        UsageError: Too few rows or columns.
        EvaluationError: No neuron varies, or all have one mean.

    Source: Schoenherr, The nonlinearity coefficient, section 5.2.1, metrics 13 to 19.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> found = meta_gaussianity(rng.standard_normal((500, 400)))
        >>> abs(found.nkurt) < 0.1, found.nghi > 0.9, round(found.ncorr, 1)
        (True, True, 0.1)
    """
    rows = checks.inputs(values, "values")
    if min(rows.shape) < 4:
        raise UsageError(
            f"there are {rows.shape[0]} inputs and {rows.shape[1]} neurons; a kurtosis needs 4."
        )
    scale = float(np.abs(rows).max())
    if not scale > 0:
        raise EvaluationError("all values of the layer are 0.")
    some = np.random.default_rng(0).permutation(rows.shape[1])[:CORRELATED]
    (moments,) = layer_moments(lambda: [[rows / scale]], len(rows), lambda *_: some)
    if not moments.alive.any():
        raise EvaluationError("no neuron of the layer varies over the inputs.")
    if not np.ptp(moments.mean) > ULPS * EPS * np.abs(moments.mean).max():
        raise EvaluationError("the means of the neurons do not vary: their law has no shape.")
    found = gaussianity(moments)
    metrics = [getattr(found, part.name).value for part in fields(found)]
    metrics.append(int(np.count_nonzero(~moments.alive)))
    return MetaGaussianity(*metrics)
