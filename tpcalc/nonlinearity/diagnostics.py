"""How Gaussian the neurons of a layer are over the inputs: metrics of an array of values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tpcalc import checks
from tpcalc.arrays import Array
from tpcalc.errors import EvaluationError, UsageError
from tpcalc.nonlinearity.tensors.layer_moments import EDGES, normal_overlap
from tpcalc.nonlinearity.tensors.layer_moments import excess_kurtosis as kurtosis_of_moments
from tpcalc.shown import Shown

EPS = 2.0**-52


@dataclass(frozen=True)
class MetaGaussianity(Shown):
    """What is 0 (overlaps: 1) where each neuron is Gaussian, with independent means of one law.

    Args:
        nkurt: NKURT, the excess kurtosis of a neuron over inputs; its mean over neurons.
        nghi: NGHI, the overlap of a neuron's histogram with the Gaussian one; its mean.
        kurtex: KURTEX, the excess kurtosis over neurons of their means.
        ghiex: GHIEX, the overlap of the histogram of their means with the Gaussian one.
        cvnstd: CVNSTD, the spread over neurons of their standard deviations, over the mean.
        ncorr: NCORR, the root of the mean square correlation of two neurons, itself included: no
            less than 1 / sqrt(width), nor than about 1 / sqrt(inputs).
        lcv: LCV, the spread over inputs of the length of the layer, over its mean.
        dead: Neurons that do not vary over the inputs; they are left out of all but LCV, KURTEX
            and GHIEX.

    Source: Schoenherr, The nonlinearity coefficient, section 5.2.1, metrics 13 to 19.
    """

    nkurt: float
    nghi: float
    kurtex: float
    ghiex: float
    cvnstd: float
    ncorr: float
    lcv: float
    dead: int


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
    rows = rows / scale
    means = rows.mean(axis=0)
    centred = rows - means
    deviations = np.sqrt(np.sum(centred**2, axis=0) / (len(rows) - 1))
    # Sums of equal numbers deviate from them by rounding.
    alive = deviations > 16 * EPS * np.abs(rows).max(axis=0)
    if not alive.any():
        raise EvaluationError("no neuron of the layer varies over the inputs.")
    centred, deviations = centred[:, alive], deviations[alive]
    lengths = np.linalg.norm(rows, axis=1)
    return MetaGaussianity(
        float(np.mean(excess_kurtosis(centred))),
        float(np.mean(histogram_overlap(centred))),
        float(excess_kurtosis(means[:, None])[0]),
        float(histogram_overlap(means[:, None])[0]),
        float(deviations.std(ddof=1) / deviations.mean()) if len(deviations) > 1 else 0.0,
        _correlation(centred / deviations),
        float(lengths.std(ddof=1) / lengths.mean()),
        int(np.count_nonzero(~alive)),
    )


def excess_kurtosis(values: Array) -> Array:
    """The unbiased excess kurtosis of each column.

    Source: Schoenherr, The nonlinearity coefficient, section 3.4.1.

    Example:
        >>> excess_kurtosis(np.array([[0.0], [1.0], [2.0], [3.0]])).round(9).tolist()
        [-1.2]
    """
    z = _standardized(values)
    return kurtosis_of_moments(np.mean(z**2, axis=0), np.mean(z**4, axis=0), len(values))


def histogram_overlap(values: Array) -> Array:
    """The overlap of the histogram of each standardized column with that of a Gaussian.

    Source: Schoenherr, The nonlinearity coefficient, section 5.2.1, metric 14.

    Example:
        >>> bool(histogram_overlap(np.random.default_rng(0).normal(size=(5000, 1)))[0] > 0.97)
        True
    """
    z = _standardized(values)
    return normal_overlap(np.stack([np.mean(z < edge, axis=0) for edge in EDGES]))


def _standardized(values: Array) -> Array:
    centred = values - values.mean(axis=0)
    spread = np.abs(centred).max(axis=0)
    if not (spread > 16 * EPS * np.abs(values).max(axis=0)).all():
        raise EvaluationError("a column does not vary: it has no shape.")
    centred = centred / spread
    return np.asarray(centred / np.sqrt(np.sum(centred**2, axis=0) / (len(values) - 1)))


def _correlation(z: Array) -> float:
    """The root of the mean square entry of Z^T Z / (n - 1), by the smaller of two products."""
    gram = z.T @ z if z.shape[1] <= z.shape[0] else z @ z.T
    return float(np.linalg.norm(gram) / ((len(z) - 1) * z.shape[1]))
