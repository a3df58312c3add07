"""The least-squares split of a function given as code, from samples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tpcalc import checks
from tpcalc.arrays import Array
from tpcalc.errors import EvaluationError, UsageError
from tpcalc.nonlinearity.gaussian import Split
from tpcalc.nonlinearity.laws import law_of
from tpcalc.nonlinearity.sampled import GROUPS, measured, with_pilot
from tpcalc.nonlinearity.slopes import Blackbox
from tpcalc.results import Estimate, Method

PER_INPUT = 20  # samples for each number that is fitted
EPS = 2.0**-52
DEPENDENT = 1e-4


def sampled_split(
    function: Callable[[Any], Any],
    law: Any,
    *,
    seed: int,
    samples: int = 2**14,
    jacobian: Callable[[Any], Any] | None = None,
) -> Split:
    """The least-squares split of a function given as code, with standard errors.

    A linear fit to samples; shares are corrected for the numbers that were fitted, and have the
    errors of a jackknife. The rest is a function of its own, whose coefficient is sampled anew.

    Args:
        function: As of ``sampled_nlc``.
        law: As of ``sampled_nlc``.
        seed: Of the samples.
        samples: How many; at least 20 for each number of an input.
        jacobian: As of ``sampled_nlc``.

    Returns:
        The split; ``rest`` is None where the fit leaves rounding alone.

    Raises:
        UsageError: As of ``sampled_nlc``, or too few samples.
        EvaluationError: As of ``sampled_nlc``.

    Source: Schoenherr, The nonlinearity coefficient, section 4.4.7, Definition 5.

    Example:
        >>> from tpcalc.nonlinearity.laws import Gaussian
        >>> found = sampled_split(lambda x: x + x**2, Gaussian(), seed=0)
        >>> found.linear.z(0.25) < 5, found.constant.z(0.25) < 5, found.nonlinear.z(0.5) < 5
        (True, True, True)
    """
    known = law_of(law)
    seed = checks.seed(seed)
    least = max(4 * GROUPS, PER_INPUT * (known.dimension + 1))
    count = checks.whole(samples, "samples", least=least)
    box = Blackbox(function, known.dimension, jacobian)
    box = with_pilot(box, known, seed)
    whole = measured(box, known, seed, count).nlc
    given = getattr(known, "inputs", None)
    if given is not None:
        if len(given) < least:
            raise UsageError(f"a linear fit needs {least} inputs; there are {len(given)}.")
        count = len(given)
    rng = np.random.default_rng([seed, 1])
    x = known.points(rng, count)
    y = box.values(x)
    means = x.mean(axis=0), y.mean(axis=0)
    scale = float(np.abs(y - means[1]).max())
    parts = [
        _Moments.of(x[rows] - means[0], (y[rows] - means[1]) / scale)
        for rows in np.array_split(np.arange(count), min(GROUPS, count // 4))
    ]
    shift = means[1] / scale
    shares, fit = _shares(sum(parts[1:], parts[0]), shift)
    left = np.array([_shares(_without(parts, i), shift)[0] for i in range(len(parts))])
    spread = np.sqrt(((left - left.mean(axis=0)) ** 2).sum(axis=0) * (len(parts) - 1) / len(parts))
    lar, car, nar = (
        Estimate(
            float(v), float(s), Method.PARTICLES, samples=count, replicates=len(parts), seed=seed
        )
        for v, s in zip(shares, spread, strict=True)
    )
    matrix = fit[1:] * scale
    offset = means[1] + fit[0] * scale - means[0] @ matrix
    rest = None
    if shares[2] > 1e3 * EPS * (shares[0] + shares[2]):
        rest = measured(_rest(box, matrix, means), known, seed + 1, samples).nlc
    rows = tuple(tuple(float(v) for v in row) for row in matrix)
    return Split(lar, car, nar, rest, whole, rows, tuple(float(v) for v in offset))


def _rest(box: Blackbox, matrix: Array, means: tuple[Array, Array]) -> Blackbox:
    """What the fit leaves, with the step of the function: its rounding is that of the function."""

    def left(x: Array) -> Array:
        return box.values(x) - means[1] - (x - means[0]) @ matrix

    def slopes(x: Array) -> Array:
        return box.matrices(x) - matrix.T

    return replace(box, function=left, jacobian=None if box.jacobian is None else slopes)


@dataclass(frozen=True)
class _Moments:
    """Sums over samples of (1, x) (1, x)^T, (1, x) y^T and |y|^2."""

    count: int
    inputs: Array
    both: Array
    square: float

    @classmethod
    def of(cls, x: Array, y: Array) -> _Moments:
        rows = np.concatenate([np.ones((len(x), 1)), x], axis=1)
        return cls(len(x), rows.T @ rows, rows.T @ y, float(np.sum(y**2)))

    def __add__(self, other: _Moments) -> _Moments:
        return _Moments(
            self.count + other.count,
            self.inputs + other.inputs,
            self.both + other.both,
            self.square + other.square,
        )


def _without(parts: list[_Moments], index: int) -> _Moments:
    kept = parts[:index] + parts[index + 1 :]
    return sum(kept[1:], kept[0])


def _solved(moments: _Moments) -> Array:
    """The fit; the shortest one where inputs are linearly dependent."""
    try:
        factor = np.linalg.cholesky(moments.inputs)
    except np.linalg.LinAlgError:
        factor = np.zeros((1, 1))
    sizes = np.diag(factor)
    if sizes.min() > DEPENDENT * sizes.max():
        return np.asarray(np.linalg.solve(moments.inputs, moments.both))
    return np.asarray(np.linalg.lstsq(moments.inputs, moments.both, rcond=None)[0])


def _shares(moments: _Moments, shift: Array) -> tuple[Array, Array]:
    """LAR, CAR, NAR and the fit of outputs from which ``shift`` was taken."""
    n, size = moments.count, len(moments.inputs)
    fit = _solved(moments)
    explained = float(np.sum(fit * moments.both))
    noise = max(moments.square - explained, 0.0) / (n - size)  # the variance of the rest
    mean = moments.both[0] / n
    between = explained / n - float(mean @ mean) - noise * (size - 1) / n
    linear = max(between, 0.0)
    variance = linear + noise
    if not variance > 0:
        raise EvaluationError("the function is constant under this law.")
    constant = max(float(np.sum((mean + shift) ** 2)) - variance / n, 0.0)
    total = variance + constant
    return np.array([linear, constant, noise]) / total, fit
