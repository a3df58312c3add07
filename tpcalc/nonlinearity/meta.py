"""Meta-distributions: laws of laws, and whether data is as one of them makes it."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np

from tpcalc import checks
from tpcalc.arrays import Array
from tpcalc.errors import UsageError
from tpcalc.nonlinearity.estimators import left_out_error, mean_of
from tpcalc.results import Estimate, Method
from tpcalc.shown import Shown

MOST_INPUTS = 2000
STREAM = 0x1A7E5  # tells these streams from those of weights


def meta_gaussian(q: float, c: float, *, samples: int, neurons: int, seed: int) -> Array:
    """Expansions of the meta-Gaussian law MN(q, c).

    Each neuron draws its mean from N(0, c), and its samples from N(mean, q - c).

    Args:
        q: The mean square, above c.
        c: The mean product of two samples of a neuron, at least 0.
        samples: Samples of each neuron.
        neurons: How many.
        seed: Of the draws.

    Returns:
        An array of samples by neurons.

    Raises:
        UsageError: Numbers that are none of such a law.

    Source: Schoenherr, The nonlinearity coefficient, section 5.2.

    Example:
        >>> meta_gaussian(1, 0.3, samples=2, neurons=3, seed=0).shape
        (2, 3)
    """
    square, shared = _moments(q, c)
    count = checks.whole(samples, "samples", least=1)
    size = checks.whole(neurons, "neurons", least=1)
    stream = _stream(seed, size)
    means = sqrt(shared) * stream.standard_normal(size)
    return np.asarray(means + sqrt(square - shared) * stream.standard_normal((count, size)))


def elem_like(q: float, c: float, *, count: int, dimension: int, seed: int | None = None) -> Array:
    """Inputs whose square means are q and whose co-means of pairs are c, up to rounding.

    Args:
        q: The mean square of the coordinates of each, above c.
        c: The mean product of the coordinates of two of them, at least 0.
        count: How many; at most ``dimension``.
        dimension: The number of coordinates.
        seed: Of a random rotation; by default they lie along the first axes.

    Returns:
        The inputs, a row each.

    Raises:
        UsageError: More inputs than coordinates, or numbers that are no means.

    Source: Schoenherr, The nonlinearity coefficient, section 5.2.2.

    Example:
        >>> x = elem_like(1, 0.25, count=3, dimension=4)
        >>> (x @ x.T / 4).round(12).tolist()[0]
        [1.0, 0.25, 0.25]
    """
    square, shared = _moments(q, c)
    size = checks.whole(dimension, "dimension", least=1)
    hint = "Co-means are all equal for at most as many inputs as coordinates."
    number = checks.whole(count, "count", least=1, most=size, hint=hint)
    axes = np.eye(number, size)
    if seed is not None:
        turns, r = np.linalg.qr(_stream(seed, size).standard_normal((size, number)))
        axes = (turns * np.where(np.diag(r) < 0, -1.0, 1.0)).T
    # The square root of (q - c) I + c 1 1^T.
    lone = sqrt(square - shared)
    joint = (sqrt(square - shared + number * shared) - lone) / number
    return np.asarray(sqrt(size) * (lone * axes + joint * axes.sum(axis=0)))


def meta_moments(values: Any) -> tuple[Estimate, Estimate]:
    """The q and c of the meta-law that neurons are drawn from.

    Inputs whose coordinates are drawn from it have these square means and co-means.

    Args:
        values: Samples by neurons, at least two of each.

    Returns:
        E s^2 and E (E s)^2 over laws, with standard errors over neurons. The second is free of
        bias and may be below 0 by chance.

    Raises:
        UsageError: Too few rows or columns.

    Source: Schoenherr, The nonlinearity coefficient, Proposition 10.

    Example:
        >>> q, c = meta_moments(meta_gaussian(2, 0.5, samples=50, neurons=4000, seed=0))
        >>> q.z(2) < 5, c.z(0.5) < 5
        (True, True)
    """
    rows: Array = checks.inputs(values, "values")
    if min(rows.shape) < 2:
        raise UsageError(f"values of shape {rows.shape}: at least two samples of two neurons.")
    n = len(rows)
    squares = np.mean(rows**2, axis=0)
    products = (np.sum(rows, axis=0) ** 2 - np.sum(rows**2, axis=0)) / (n * (n - 1))
    both = (mean_of(part).estimate(None, Method.PARTICLES) for part in (squares, products))
    return next(both), next(both)


@dataclass(frozen=True)
class ElemLike(Shown):
    """How equal the square means of inputs are, and the co-means of their pairs."""

    square: Estimate  # the mean of INSQD, the mean square of the coordinates of an input
    comean: Estimate  # the mean of INCMD, the mean product of the coordinates of two inputs
    square_spread: Estimate  # the standard deviation of INSQD
    comean_spread: Estimate  # the standard deviation of INCMD
    # both spreads for independent Gaussian coordinates with these means
    expected: tuple[float, float]
    verdict: str  # what follows


def elem_like_test(inputs: Any, *, seed: int = 0) -> ElemLike:
    """Whether a dataset is elem-like: INSQD and INCMD are points, but for the finite width.

    Args:
        inputs: The inputs, a row each, at least 4.
        seed: Of the 2000 inputs that are taken where there are more.

    Returns:
        Means and spreads with standard errors by a jackknife over inputs, and a verdict.

    Raises:
        UsageError: Too few inputs, or inputs that are all 0.

    Source: Schoenherr, The nonlinearity coefficient, section 5.2.2.

    Example:
        >>> found = elem_like_test(elem_like(1, 0.5, count=8, dimension=16))
        >>> round(found.square.value, 9), round(found.comean.value, 9)
        (1.0, 0.5)
    """
    rows = checks.inputs(inputs, "inputs")
    if len(rows) < 4:
        raise UsageError(f"there are {len(rows)} inputs; a spread with an error needs 4.")
    if len(rows) > MOST_INPUTS:
        rng = np.random.default_rng(checks.seed(seed))
        rows = rows[rng.choice(len(rows), MOST_INPUTS, replace=False)]
    gram = rows @ rows.T / rows.shape[1]
    if not np.diag(gram).max() > 0:
        raise UsageError("all inputs are 0.")
    own = np.eye(len(rows))
    square, square_spread = _with_errors(gram, own)
    comean, comean_spread = _with_errors(gram, 1 - own)
    q, c, width = square.value, max(comean.value, 0.0), rows.shape[1]
    # Given the means of the coordinates, which have the mean square c.
    expected = (
        sqrt(max(2 * (q - c) ** 2 + 4 * c * (q - c), 0.0) / width),
        sqrt(max((q - c) ** 2 + 2 * c * (q - c), 0.0) / width),
    )
    spreads = {"square means": square_spread, "co-means": comean_spread}
    verdict = _verdict(square, comean, spreads, expected)
    return ElemLike(square, comean, square_spread, comean_spread, expected, verdict)


def _verdict(
    square: Estimate, comean: Estimate, spreads: dict[str, Estimate], expected: tuple[float, float]
) -> str:
    shares = (spread.value / square.value for spread in spreads.values())
    shown = "square means vary by {:.2g} of their mean and co-means by {:.2g} of it".format(*shares)
    if comean.value + 5 * comean.stderr < 0:
        return f"Not elem-like: the mean co-mean is below 0; {shown}."
    wide = [
        name
        for (name, spread), wanted in zip(spreads.items(), expected, strict=True)
        if spread.value > 1.25 * wanted + 5 * spread.stderr + 1e-9 * square.value
    ]
    if wide:
        return (
            f"Not elem-like at this width: {' and '.join(wide)} vary more than random coordinates "
            f"do; {shown}."
        )
    return (
        f"No sign against elem-like: {shown}, no more than independent coordinates of this width "
        "make them vary."
    )


def _with_errors(table: Array, mask: Array) -> tuple[Estimate, Estimate]:
    """Mean and standard deviation of some entries of a table over pairs of inputs, by jackknife."""
    n, total = len(table), float(mask.sum())
    centre = float((mask * table).sum()) / total
    away = mask * (table - centre)
    # Sums without one row and its column, around the mean: spreads do not drown in rounding.
    counts, first, second = (
        part.sum() - 2 * part.sum(axis=1) + np.diag(part) for part in (mask, away, away**2)
    )
    means = first / counts
    spreads = np.sqrt(np.maximum(second / counts - means**2, 0.0))
    spread = sqrt(float((away**2).sum()) / total)
    errors = left_out_error(np.stack([means, spreads], axis=1)).tolist()
    mean, deviation = (
        Estimate(*part, Method.PARTICLES, samples=n, replicates=n)
        for part in zip((centre, spread), errors, strict=True)
    )
    return mean, deviation


def _moments(q: float, c: float) -> tuple[float, float]:
    square, shared = (float(checks.real(value, name)) for value, name in ((q, "q"), (c, "c")))
    if not square > shared >= 0:
        raise UsageError(f"q is {q} and c is {c}; they are q > c >= 0.")
    return square, shared


def _stream(seed: int, size: int) -> np.random.Generator:
    words = [checks.seed(seed), STREAM, size]
    return np.random.Generator(np.random.SFC64(np.random.SeedSequence(words)))
