"""What noise at the input of a function does: Proposition 9, NCE and MES."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import hypot
from typing import Any

import numpy as np

from tpcalc import checks
from tpcalc.arrays import Array
from tpcalc.errors import EvaluationError, UsageError
from tpcalc.nonlinearity.laws import Empirical, law_of
from tpcalc.nonlinearity.sampled import mean, measured, median, with_pilot
from tpcalc.nonlinearity.slopes import Blackbox
from tpcalc.results import Estimate, Method
from tpcalc.shown import Rows, Shown

SMALLEST = 1e-9
PER_DECADE = 24
Error = Callable[[Any, Any], Any]


@dataclass(frozen=True)
class NoiseIdentity(Shown):
    """Two mean squares that are equal: of linearised input noise over NLC, and of output noise.

    Args:
        moved: E |d_in J^T|^2 / NLC^2 with d_in of the covariance of inputs.
        spread: E |d_out|^2 with d_out of the covariance of outputs.

    Source: Schoenherr, The nonlinearity coefficient, Proposition 9.
    """

    moved: Estimate
    spread: Estimate

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
        function: As of ``sampled_nlc``.
        law: A ``Gaussian``, ``Box``, ``Sphere`` or ``Sampler``.
        seed: Of the samples.
        samples: How many, for each of three runs.
        jacobian: As of ``sampled_nlc``.

    Returns:
        Both sides, with standard errors, and their distance in them.

    Raises:
        UsageError: As of ``sampled_nlc``, or an array of inputs, of which no more can be drawn.
        EvaluationError: As of ``sampled_nlc``.

    Source: Schoenherr, The nonlinearity coefficient, Proposition 9.

    Example:
        >>> from tpcalc.nonlinearity.laws import Gaussian
        >>> noise_identity(lambda x: x**2, Gaussian(), seed=0).z < 5
        True
    """
    known = law_of(law)
    if isinstance(known, Empirical):
        raise UsageError(
            "the identity needs fresh inputs; an array has none.", hint="Give a law of inputs."
        )
    seed = checks.seed(seed)
    count = checks.whole(samples, "samples", least=64)
    box = with_pilot(Blackbox(function, known.dimension, jacobian), known, seed)
    nlc = measured(box, known, seed, count).nlc
    rng = np.random.default_rng([seed, 3])
    factor = known.factor(rng)
    noise = rng.standard_normal((count, factor.shape[1])) @ factor.T
    moved = np.sum(box.along(known.points(rng, count), noise).fine ** 2, axis=1)
    outputs = box.values(known.points(rng, count))
    # A sum of deviations with random Gaussian weights has their covariance.
    squares = np.sum((outputs - outputs.mean(axis=0)) ** 2, axis=1) * (count / (count - 1))
    left = mean(moved, seed)
    value = left.value / nlc.value**2
    relative = hypot(left.stderr / left.value, 2 * nlc.stderr / nlc.value) if value else 0.0
    own = Estimate(value, value * relative, Method.PARTICLES, samples=count, seed=seed)
    return NoiseIdentity(own, mean(squares, seed))


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
    law, box, wanted, fault = _labelled(function, inputs, labels, error)
    times = checks.whole(repeats, "repeats", least=1)
    shares = [float(checks.real(weight, "a weight")) for weight in weights]
    if not shares or not all(0 <= share <= 1 for share in shares):
        raise UsageError("weights of noise are between 0 and 1, and at least one.")
    rng = np.random.default_rng(checks.seed(seed))
    factor = law.factor(rng)
    shape = (times, len(law.inputs), factor.shape[1])
    noise = rng.standard_normal(shape) @ factor.T
    out = []
    for share in shares:
        found = [
            _errors(fault, box.values(share * u + (1 - share) * law.inputs), wanted) for u in noise
        ]
        own = mean(np.mean(found, axis=0), seed)
        if fault is misclassified:  # where no input of n is wrong, one in n may still be
            own = replace(own, stderr=hypot(own.stderr, 1 / own.samples))
        out.append(own)
    return Rows(out)


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
        function: As of ``sampled_nlc``.
        inputs: The inputs, a row each.
        labels: A label for each.
        seed: Of batches and directions.
        error: As of ``noise_curve``.
        batch: Inputs in a batch, at most as many as there are.
        draws: How many batches.
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
    law, box, wanted, fault = _labelled(function, inputs, labels, error)
    size = checks.whole(batch, "batch", least=1, most=len(law.inputs), hint="Lower batch=.")
    count = checks.whole(draws, "draws", least=2)
    allowed = 1 + float(checks.real(excess, "excess"))
    rng = np.random.default_rng(checks.seed(seed))
    factor = law.factor(rng)
    grid = np.geomspace(SMALLEST, 1.0, round(-np.log10(SMALLEST) * PER_DECADE) + 1)
    found = np.ones(count)
    for draw in range(count):
        rows = rng.choice(len(law.inputs), size, replace=False)
        z = rng.standard_normal((size, factor.shape[1]))
        v = z * (np.sqrt(factor.shape[1]) / np.linalg.norm(z, axis=1, keepdims=True)) @ factor.T
        x, own = law.inputs[rows], wanted[rows]
        worst = _errors(fault, box.values(x), own)
        bound = allowed * float(worst.sum())
        for c in grid:
            worst = np.maximum(worst, _errors(fault, box.values(x + c * v), own))
            if worst.sum() > bound:
                found[draw] = 1 / c if c > SMALLEST else np.inf
                break
    return median(
        np.sort(found),
        seed,
        f"the error grows within {SMALLEST:.0e} of the spread of inputs in half of the batches.",
    )


def misclassified(outputs: Array, labels: Any) -> Array:
    """Whether the largest output is another than that of the label.

    Source: Schoenherr, The nonlinearity coefficient, section 3.4.

    Example:
        >>> misclassified(np.eye(2), [0, 0]).tolist()
        [0.0, 1.0]
    """
    return np.asarray(np.argmax(outputs, axis=1) != np.asarray(labels), dtype=float)


def _labelled(
    function: Callable[[Any], Any], inputs: Any, labels: Any, error: Error | None
) -> tuple[Empirical, Blackbox, Any, Error]:
    law = Empirical(inputs)
    wanted = np.asarray(labels if hasattr(labels, "shape") else checks.sequence(labels, "labels"))
    if wanted.shape[:1] != (len(law.inputs),):
        raise UsageError(f"{wanted.shape[:1]} labels for {len(law.inputs)} inputs.")
    if error is None and (wanted.ndim != 1 or wanted.dtype.kind not in "iu"):
        raise UsageError(
            "labels are classes, whole numbers from 0.", hint="Give error= for other targets."
        )
    return law, Blackbox(function, law.dimension), wanted, error or misclassified


def _errors(fault: Error, outputs: Array, labels: Any) -> Array:
    found = np.asarray(fault(outputs, labels), dtype=float)
    if found.shape != (len(outputs),) or not np.isfinite(found).all() or (found < 0).any():
        raise EvaluationError(
            f"error= gave shape {found.shape} for {len(outputs)} outputs, or numbers that are not "
            "finite and at least 0."
        )
    return found
