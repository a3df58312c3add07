"""What noise at the input of a function does: Proposition 9, NCE and MES."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import hypot
from typing import Any

import numpy as np

from tpcalc import checks
from tpcalc.arrays import Array, Index
from tpcalc.errors import EvaluationError, UsageError
from tpcalc.nonlinearity.estimators import mean_of, median
from tpcalc.nonlinearity.function import Code
from tpcalc.nonlinearity.labels import labels_of
from tpcalc.nonlinearity.laws import Empirical, Given, law_of
from tpcalc.nonlinearity.measured import fitted, measured
from tpcalc.nonlinearity.ranges import SMALLEST, Holds, scales, scanned
from tpcalc.nonlinearity.sample import Sample, given
from tpcalc.results import Estimate, Method
from tpcalc.shown import Rows, Shown

Error = Callable[[Any, Any], Any]
Faults = Callable[[Array, Index], Array]
"""The error of each of moved inputs, which were at these places of a sample."""


@dataclass(frozen=True)
class NoiseIdentity(Shown):
    """Two mean squares that are equal: of linearised input noise over NLC, and of output noise."""

    moved: Estimate  # E |d_in J^T|^2 / NLC^2 with d_in of the covariance of inputs
    spread: Estimate  # E |d_out|^2 with d_out of the covariance of outputs

    @property
    def z(self) -> float:
        """Their distance in standard errors."""
        return self.moved.z(self.spread)


def noise_identity(
    function: Callable[[Any], Any],
    law: Any,
    *,
    seed: int,
    samples: int = 2**14,
    jacobian: Callable[[Any], Any] | None = None,
) -> NoiseIdentity:
    """The noise identity of a function, each side and the coefficient from samples of their own.

    Args:
        function, jacobian: As of ``sampled_nlc``.
        law: A ``Gaussian``, ``Box``, ``Sphere`` or ``Sampler``.
        seed: Of the samples.
        samples: How many, for each of three runs.

    Returns:
        Both sides, with standard errors, and their distance in them.

    Raises:
        UsageError, EvaluationError: As of ``sampled_nlc``; an array of inputs has no more of them.

    Source: Schoenherr, The nonlinearity coefficient, Proposition 9.

    Example:
        >>> from tpcalc.nonlinearity.laws import Gaussian
        >>> noise_identity(lambda x: x**2, Gaussian(), seed=0).z < 5
        True
    """
    known = law_of(law)
    if isinstance(known, Given):
        raise UsageError(
            "the identity needs fresh inputs; an array has none.", hint="Give a law of inputs."
        )
    seed = checks.seed(seed)
    count = checks.whole(samples, "samples", least=64)
    code = fitted(function, known, seed, jacobian)
    nlc = measured(code, known, seed, count).nlc
    rng = np.random.default_rng([seed, 3])
    noise = known.noise(rng, count)
    moved = mean_of(np.sum(code.jvp(known.points(rng, count), noise)[-1] ** 2, axis=1))
    outputs = code.values(known.points(rng, count))
    # A sum of deviations with random Gaussian weights has their covariance.
    squares = np.sum((outputs - outputs.mean(axis=0)) ** 2, axis=1) * (count / (count - 1))
    value = moved.value / nlc.value**2
    relative = hypot(moved.stderr / moved.value, 2 * nlc.stderr / nlc.value) if value else 0.0
    own = replace(moved.times(1 / nlc.value**2), stderr=value * relative)
    return NoiseIdentity(*(part.estimate(seed, code.method) for part in (own, mean_of(squares))))


def noise_curve(
    function: Callable[[Any], Any],
    inputs: Any,
    labels: Any,
    weights: Sequence[float],
    *,
    seed: int,
    error: Error | None = None,
    repeats: int = 1,
) -> tuple[Estimate, ...]:
    """NCE: the mean error where inputs are mixed with Gaussian noise of their covariance.

    Args:
        function: As of ``sampled_nlc``.
        inputs: The inputs, a row each.
        labels: A label for each, as ``error`` takes them.
        weights: The weights w of the noise in w u + (1 - w) x, between 0 and 1.
        seed: Of the noise.
        error: ``error(outputs, labels)`` gives a number for each input; by default whether the
            largest output is another than that of the label.
        repeats: Draws of noise for each input.

    Returns:
        The mean error for each weight.

    Raises:
        UsageError: Arguments that do not fit.
        EvaluationError: Outputs that are not finite.

    Source: Schoenherr, The nonlinearity coefficient, section 4.4.8, metric 8.

    Example:
        >>> curve = noise_curve(lambda x: x, np.eye(6), range(6), [0, 1], seed=0)
        >>> curve[0].value, curve[1].value > 0
        (0.0, True)
    """
    sample, faults = _labelled(function, inputs, labels, error, None, seed)
    least = 0.0 if error else 1 / len(sample)  # where no input of n is wrong, one in n may still be
    times = checks.whole(repeats, "repeats", least=1)
    return curve(sample, faults, weights, Method.PARTICLES, least, times)


def curve(
    sample: Sample,
    faults: Faults,
    weights: Sequence[float],
    method: Method,
    least: float,
    repeats: int = 1,
) -> tuple[Estimate, ...]:
    """The mean error of w u + (1 - w) x for each w, no surer than ``least``."""
    shares = [float(checks.real(weight, "a weight")) for weight in weights]
    if not shares or not all(0 <= share <= 1 for share in shares):
        raise UsageError("weights of noise are between 0 and 1, and at least one.")
    found = []
    for share in shares:
        terms = []
        for number, (places, x) in enumerate(zip(sample.parts(), sample.batches(), strict=True)):
            stream = sample.stream("noise", number)
            noise = (sample.law.noise(stream, len(x)) for _ in range(repeats))
            terms.append(
                np.mean([faults(share * u + (1 - share) * x, places) for u in noise], axis=0)
            )
        mean = mean_of(np.concatenate(terms))
        own = replace(mean, stderr=hypot(mean.stderr, least))
        found.append(own.estimate(sample.seed, method))
    return Rows(found)


def noise_limit(
    function: Callable[[Any], Any],
    inputs: Any,
    labels: Any,
    *,
    seed: int,
    error: Error | None = None,
    batch: int = 250,
    draws: int = 100,
    excess: float = 1.05,
) -> Estimate:
    """MES: 1 over the change of inputs that the error bears, the median over batches.

    Each input moves along a random direction of the covariance; C is 1 / c for the first c at
    which the sum of the largest errors so far is more than 1 + excess times that without change,
    and at least 1.

    Args:
        function, inputs, labels, error: As of ``noise_curve``.
        seed: Of batches and directions.
        batch, draws: Inputs in a batch, at most as many as there are; how many batches.
        excess: T, by which the error may grow.

    Returns:
        The median, with its error over batches.

    Raises:
        UsageError: Arguments that do not fit.
        EvaluationError: Outputs that are not finite, or errors that grow at once in half of the
            batches.

    Source: Schoenherr, The nonlinearity coefficient, section 4.4.8, metric 9.

    Example:
        >>> found = noise_limit(lambda x: x, np.eye(6), range(6), seed=0, batch=3, draws=9)
        >>> found.value >= 1
        True
    """
    sample, faults = _labelled(function, inputs, labels, error, batch, seed)
    count = checks.whole(draws, "draws", least=2)
    allowed = 1 + float(checks.real(excess, "excess"))
    return median(
        radii(sample, faults, count, allowed, scales(SMALLEST)),
        seed,
        Method.PARTICLES,
        f"the error grows within {SMALLEST:.0e} of the spread of inputs in half of the batches.",
    )


def radii(sample: Sample, faults: Faults, draws: int, allowed: float, grid: Array) -> Array:
    """1 / c of each batch, for the first c at which the largest errors so far are too many."""
    found = []
    for draw in range(draws):
        stream = sample.stream("inputs", draw)
        places = stream.choice(len(sample), sample.batch, replace=False)
        v = sample.law.sphere(stream, len(places))
        found.append(scanned(_borne(sample.rows[places], v, places, faults, allowed), 1, grid))
    return np.concatenate(found)


def _borne(x: Array, v: Array, places: Index, faults: Faults, allowed: float) -> Holds:
    worst = faults(x, places)
    bound = allowed * float(worst.sum())

    def holds(rows: Any, c: Array) -> Any:
        nonlocal worst
        worst = np.maximum(worst, faults(x + c[0] * v, places))
        return np.array([worst.sum() <= bound])

    return holds


def misclassified(outputs: Array, labels: Any) -> Array:
    """Whether the largest output is another than that of the label."""
    return np.asarray(np.argmax(outputs, axis=1) != np.asarray(labels), dtype=float)


def _labelled(
    function: Callable[[Any], Any],
    inputs: Any,
    labels: Any,
    error: Error | None,
    batch: int | None,
    seed: int,
) -> tuple[Sample, Faults]:
    law, hint = Empirical(inputs), "Lower batch=."
    known = np.asarray(labels_of(labels, len(law.inputs)))
    if error is None and (known.ndim != 1 or known.dtype.kind not in "iu"):
        raise UsageError(
            "labels are classes, whole numbers from 0.", hint="Give error= for other targets."
        )
    count = len(law.inputs)
    size = checks.whole(count if batch is None else batch, "batch", least=1, most=count, hint=hint)
    sample = given(law.inputs, size, seed)
    code, fault = Code(function, law.dimension), error or misclassified
    wanted = known[sample.order]
    return sample, lambda x, places: checked_errors(fault(code.values(x), wanted[places]), len(x))


def checked_errors(errors: Any, count: int) -> Array:
    """Errors of so many inputs, as numbers."""
    found = np.asarray(errors, dtype=float)
    if found.shape != (count,) or not np.isfinite(found).all() or (found < 0).any():
        raise EvaluationError(
            f"error= gave shape {found.shape} for {count} outputs, or numbers that are not finite "
            "and at least 0."
        )
    return found
