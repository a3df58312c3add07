"""Neural regularity of labelled data: far inputs, independent components, alike square means."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np

from tpcalc import checks
from tpcalc.nonlinearity.labels import elem_like_pairs, pair_nlc
from tpcalc.nonlinearity.meta import ElemLike, elem_like_test
from tpcalc.nonlinearity.shapes import CORRELATED, meta_gaussianity
from tpcalc.shown import Shown

FAR = 2.0  # times the least PNLCD that labels can have, and what correlations are by chance
LOOSE = 0.3  # of the quadratic mean of correlations


@dataclass(frozen=True)
class NeuralRegularity(Shown):
    """The three properties of data for which one theory of architectures serves."""

    steepness: float  # PNLCD that 95 % of the pairs with different labels do not exceed
    least: float  # what it is where all inputs are equally far apart
    distant: bool  # (i) inputs with different labels are far apart: it is below twice that
    correlation: float  # NCORR of the components of inputs
    expected: float  # what it is for independent ones of so many inputs
    independent: bool  # (ii) it is below twice that, or below 0.3
    elements: ElemLike  # (iii) the spread of square means and of co-means (INSQD, INCMD)
    concentrated: bool  # their standard deviations are below half of the mean square


def neural_regularity(inputs: Any, labels: Any, *, seed: int = 0) -> NeuralRegularity:
    """Whether data is neural regular, in three numbers; the thesis draws no line, this one does.

    Args:
        inputs: The inputs, a row each.
        labels: A class for each input.
        seed: Of the pairs and inputs that are drawn where there are many.

    Returns:
        The numbers of each property beside what they are for regular data, and whether it holds.

    Raises:
        UsageError: Too few inputs, or labels that do not fit.
        EvaluationError: Inputs or labels that are all the same.

    Source: Schoenherr, The nonlinearity coefficient, Definition 21 and Proposition 11.

    Example:
        >>> x = np.random.default_rng(0).standard_normal((200, 100))
        >>> found = neural_regularity(x, [0, 1] * 100)
        >>> found.distant, found.independent, found.concentrated
        (True, True, True)
    """
    rows = checks.inputs(inputs, "inputs")
    pairs = pair_nlc(rows, labels, seed=seed)
    _, counts = np.unique(np.asarray(labels), return_counts=True)
    least, _ = elem_like_pairs((counts / counts.sum()).tolist())
    differ = pairs.values[pairs.values > 0]
    steepness = float(np.quantile(differ, 0.95))
    varying = rows[:, np.ptp(rows, axis=0) > 0]
    kept = min(CORRELATED, varying.shape[1])  # each correlates with itself besides
    correlation, expected = meta_gaussianity(varying).ncorr, sqrt(1 / len(rows) + 1 / kept)
    elements = elem_like_test(rows, seed=seed)
    spread = max(elements.square_spread.value, elements.comean_spread.value)
    return NeuralRegularity(
        steepness,
        least,
        steepness < FAR * least,
        correlation,
        expected,
        correlation < max(FAR * expected, LOOSE),
        elements,
        spread < elements.square.value / 2,
    )
