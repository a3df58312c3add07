"""The metrics of a whole function of torch tensors: its coefficient, linear part, robustness."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import inf, sqrt
from typing import Any, Literal

import numpy as np

from tpcalc import checks
from tpcalc.arrays import Array
from tpcalc.errors import EvaluationError, UsageError
from tpcalc.nonlinearity.estimators import estimate, median, root_of_ratio
from tpcalc.nonlinearity.labels import labels_of
from tpcalc.nonlinearity.measured import (
    Passes,
    Spread,
    backward,
    coefficient,
    forward,
    left_notes,
    spread_of,
)
from tpcalc.nonlinearity.noise import Faults, curve, radii
from tpcalc.nonlinearity.ranges import HALVINGS, Change, linear_within, scales, scanned
from tpcalc.nonlinearity.sample import CELLS, Sample
from tpcalc.nonlinearity.split import LEAST_GROUPS, fit
from tpcalc.nonlinearity.tensors.functions import Torch, function_on, inputs_of, numbers, outputs
from tpcalc.results import Estimate
from tpcalc.shown import Shown

Tensor = Any
Function = Callable[[Any], Any]
Error = Callable[[Tensor, Tensor], Tensor]
Estimator = Literal["backward", "forward"]


@dataclass(frozen=True)
class MeasuredNLC(Shown):
    """What was measured of a function under its inputs."""

    nlc: Estimate  # the nonlinearity coefficient
    # NLCFROB: the same as if inputs had a covariance proportional to the identity
    frobenius: Estimate
    bias: float  # sqrt(E |f|^2 / Tr Cov_f) of the outputs; infinite where they have collapsed
    spread: Estimate  # Tr Cov_f
    input_spread: float  # Tr Cov_x
    # whether outputs are equal within a few roundings: the coefficient is 1 then, by
    # convention
    collapsed: bool
    rounding: float  # how far rounding each input changes the outputs, over their spread
    notes: tuple[str, ...]  # what to bear in mind


def measured_nlc(
    f: Function,
    x: Any,
    *,
    batch: int | None = None,
    draws: int = 8,
    estimator: Estimator = "backward",
    passes: Passes = "two-pass",
    seed: int = 0,
) -> MeasuredNLC:
    """sqrt(E Tr J Cov_x J^T / Tr Cov_f) of any function of torch tensors.

    A function with batch norm is one of batches, and measured as that: give the size of its
    training batches. Batch norms of torch modules use the moments of the batch in either mode.

    Args:
        f: A module or another function from a batch of inputs to one of outputs.
        x: The inputs, a tensor on the function's device, or rows of numbers.
        batch: Inputs of a batch; None: 250, or all if there are fewer.
        draws: Random batches behind the numerator.
        estimator: ``"backward"``: noise sent back from the outputs; ``"forward"``: derivatives
            along deviations of inputs, less noisy and twice as slow.
        passes: Whether outputs deviate from the mean of all (``"two-pass"``) or of their batch
            (``"batches"``).
        seed: The seed.

    Returns:
        The coefficient with its standard error, and what it was made of.

    Raises:
        UsageError: Inputs that are too few or all equal.
        EvaluationError: Outputs or derivatives that are not finite, no outputs of torch, or
            outputs that differ from run to run.
        UnknownName: An unknown estimator.

    Source: Schoenherr, The nonlinearity coefficient, sections 4.2 and 4.4.4.

    Example:
        >>> from tpcalc.nonlinearity.tensors.functions import gaussian_inputs
        >>> found = measured_nlc(lambda x: x**2, gaussian_inputs(2000, 3), draws=20)
        >>> abs(found.nlc.value - 2**0.5) < 5 * found.nlc.stderr
        True
    """
    checks.one_of("estimator", estimator, ("backward", "forward"))
    draws = checks.whole(draws, "draws", least=2)
    function, sample = function_on(f, x, batch, seed)
    spread = spread_of(function, sample, passes)
    if spread.collapsed:
        return _collapsed(sample, spread)
    unit = spread.unit
    if estimator == "backward":
        ((over, lengths),) = backward(function, sample, draws, unit).values()
    else:
        over = forward(function, sample, sample.moves(draws), unit)[-1]
        lengths = forward(function, sample, sample.tangents(draws), unit)[-1]
    found = coefficient(function, sample, spread, over)
    scaled = lengths.times(sample.spread / sample.law.dimension)
    frobenius = root_of_ratio(scaled, spread.total, seed)
    return MeasuredNLC(
        found.nlc,
        replace(frobenius, stderr=inf) if found.jumps else frobenius,
        sqrt(1 + (spread.offset / unit) ** 2 / spread.total.value),
        _total(spread, seed),
        sample.spread,
        False,
        found.rounding,
        found.notes,
    )


def _collapsed(sample: Sample, spread: Spread) -> MeasuredNLC:
    unknown = estimate(1.0, inf, len(sample), sample.seed)
    notes = tuple(left_notes(sample, spread))
    total = spread.total.times(spread.unit**2).estimate(sample.seed)
    return MeasuredNLC(unknown, unknown, inf, total, sample.spread, True, 1.0, notes)


def _total(spread: Spread, seed: int) -> Estimate:
    total = spread.total.times(spread.unit**2)
    if total.value == 0:
        raise EvaluationError(
            "squares of the spread of outputs are below the range of floats.",
            hint="Multiply the outputs by a number: the coefficient stays the same.",
        )
    return total.estimate(seed)


def single_batch_nlc(f: Function, x: Any, *, seed: int = 0) -> Estimate:
    """NLC^single: one batch gives inputs, their deviations, and the spread of outputs.

    Every x meets every x' of the batch, which is the mean over all ways to shuffle it.

    Args:
        f, seed: As of ``measured_nlc``.
        x: The batch.

    Returns:
        The coefficient, with its standard error.

    Raises:
        UsageError, EvaluationError: As of ``measured_nlc``, or the outputs have collapsed.

    Source: Schoenherr, The nonlinearity coefficient, section 4.4.5.

    Example:
        >>> from tpcalc.nonlinearity.tensors.functions import gaussian_inputs
        >>> found = single_batch_nlc(lambda x: 3 * x, gaussian_inputs(250, 20))
        >>> abs(found.value - 1) < 5 * found.stderr
        True
    """
    _, first = inputs_of(x, None, seed)
    function, sample = function_on(f, x, len(first) + first.left_out, seed)
    spread = spread_of(function, sample)
    if spread.collapsed:
        raise EvaluationError(
            "outputs are equal within a few roundings (output collapse).",
            hint="The coefficient is 1 by convention; `nlc` reports it.",
        )
    ((over, _),) = backward(function, sample, 1, spread.unit).values()
    return root_of_ratio(over, spread.total, seed)


@dataclass(frozen=True)
class LinearPart(Shown):
    """Shares of E |f|^2; they add up to 1."""

    linear: Estimate  # LAR: of the linear component (x - mean) A
    constant: Estimate  # CAR: of the constant component, the mean output
    nonlinear: Estimate  # NAR: of what is left
    slope: Tensor  # A, of shape (d_in, d_out)
    offset: Tensor  # b, so that x A + b is the fit

    def rest(self, f: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """The function without its linear fit."""
        return lambda x: outputs(f, x) - x.flatten(1) @ self.slope - self.offset


def linear_part(f: Function, x: Any, *, batch: int | None = None, seed: int = 0) -> LinearPart:
    """Fit f by least squares over inputs.

    A fit to n inputs also follows chance: the residuals are divided by n - d_in - 1 and the
    constant loses its share of the spread, so that shares are unbiased up to 1 / n where residuals
    do not depend on the input. Errors come from leaving out a group of inputs at a time.

    Args:
        f, x, batch, seed: As of ``measured_nlc``.

    Returns:
        The shares with their errors, slope and offset as tensors.

    Raises:
        UsageError: Fewer inputs than a fit needs, or inputs that do not span their space.
        EvaluationError: Outputs that are all 0 or not finite.

    Source: Schoenherr, The nonlinearity coefficient, section 4.4.7.

    Example:
        >>> from tpcalc.nonlinearity.tensors.functions import gaussian_inputs
        >>> found = linear_part(lambda x: x[:, :1] + 0.5, gaussian_inputs(900, 4))
        >>> round(found.nonlinear.value, 9), abs(found.constant.value - 0.2) < 0.1
        (0.0, True)
    """
    function, sample = function_on(f, x, batch, seed)
    features = sample.law.dimension
    if len(sample) * (LEAST_GROUPS - 1) // LEAST_GROUPS <= features + 1:
        raise UsageError(
            f"{len(sample)} inputs cannot show a linear fit in {features} features.",
            hint=f"Give {2 * (features + 1)} or more.",
        )
    found = fit(function, sample)
    if found.dependent:
        raise UsageError(
            "the inputs do not span their space, so that many linear fits are best.",
            hint="Drop features that others determine, or add inputs.",
        )
    slope, offset = (function.entries(part) for part in (found.slope, found.offset))
    return LinearPart(found.linear, found.constant, found.nonlinear, slope, offset)


@dataclass(frozen=True)
class LocalLinearity(Shown):
    """GLLAD: laws of how many times smaller than the inputs' spread a linear region is."""

    # C of every sample, at least 1; infinite where it is beyond what was scanned
    values: tuple[float, ...]
    median: Estimate  # MGLLA: their median, with its standard error
    beyond: int  # how many are infinite


def local_linearity(
    f: Function,
    x: Any,
    *,
    batch: int | None = None,
    samples: int = 20,
    factor: float = 2.0,
    smallest: float = 1e-8,
    per_decade: int = 12,
    by: Change = "values",
    seed: int = 0,
) -> LocalLinearity:
    """Sample C: the least C >= 1 with 1 / T <= D(c) / (c G) <= T for all c up to 1 / C.

    Over a batch, G sums u J d^T and D(c) sums u (f(x + c d) - f(x))^T, for directions d with the
    covariance of the inputs and Gaussian u. c is scanned upward from ``smallest``.

    Args:
        x, batch, seed: As of ``measured_nlc``.
        f: As of ``measured_nlc``; torch is to be able to map it over batches.
        samples, factor: How many batches; T, above 1.
        smallest, per_decade: The smallest c, below 1; values of c for each power of ten.
        by: ``"values"`` of f, or ``"hessian"``: f + c J d + c^2 d H d / 2 in its place (MGLLAHE),
            which is blind to kinks.

    Returns:
        C of every batch, and their median.

    Raises:
        UsageError: Numbers outside their range, or inputs that are too few or all equal.

    Source: Schoenherr, The nonlinearity coefficient, section 4.4.6; the inequality is one of the
        ratio, which G < 0 does not turn around.

    Example:
        >>> from tpcalc.nonlinearity.tensors.functions import gaussian_inputs
        >>> local_linearity(lambda x: 3 * x, gaussian_inputs(250, 4), samples=5).median.value
        1.0
    """
    samples = checks.whole(samples, "samples", least=2)
    checks.one_of("by", by, ("values", "hessian"))
    most = float(checks.real(factor, "factor", above=1))
    grid = scales(smallest, per_decade)
    function, sample = function_on(f, x, batch, seed)
    together = max(1, 4 * CELLS // (sample.batch * sample.law.dimension))
    found: list[float] = []
    for first in range(0, samples, together):
        draws = range(first, min(first + together, samples))
        inputs = np.stack([sample.rows[sample.places("inputs", draw)] for draw in draws])
        moves = np.stack(
            [sample.law.sphere(sample.stream("directions", draw), sample.batch) for draw in draws]
        )

        def noise(shape: tuple[int, ...], draws: range = draws) -> Array:
            return np.stack([sample.noise(shape[1:], "outputs", draw) for draw in draws])

        holds = linear_within(function, inputs, moves, most, noise, by)
        found.extend(scanned(holds, len(draws), grid, HALVINGS).tolist())
    return LocalLinearity(tuple(found), median(np.array(found), seed), found.count(inf))


def class_error(found: Tensor, labels: Tensor) -> Tensor:
    """1 for each input whose largest output is not that of its class, else 0."""
    return (found.argmax(1) != labels).to(found.dtype)


def noise_errors(
    f: Function,
    x: Any,
    labels: Any,
    weights: Sequence[float],
    *,
    error: Error = class_error,
    batch: int | None = None,
    seed: int = 0,
) -> tuple[Estimate, ...]:
    """NCE: the mean error of f(w u + (1 - w) x) with u ~ N(0, Cov_x), for each w.

    It rises where w reaches about 1 / NLC.

    Args:
        f, x, batch, seed: As of ``measured_nlc``.
        labels: A tensor with a label for each input.
        weights: The w.
        error: Takes outputs and labels of a batch and gives an error for each input.

    Returns:
        An error for each w, with its standard error.

    Raises:
        UsageError: As of ``measured_nlc``, or not one label for each input.

    Source: Schoenherr, The nonlinearity coefficient, section 4.4.8.

    Example:
        >>> import torch
        >>> x = torch.tensor([[-2.0, 0.0], [2.0, 0.0], [-1.0, 0.0], [1.0, 0.0]])
        >>> flip = lambda x: torch.stack([-x[:, 0], x[:, 0]], 1)
        >>> [found.value for found in noise_errors(flip, x, [0, 1, 0, 1], [0.0, 1e-9])]
        [0.0, 0.0]
    """
    sample, faults = _labelled(f, x, labels, error, batch, seed)
    least = 1 / len(sample) if error is class_error else 0.0
    return curve(sample, faults, weights, Torch.method, least)


def error_radius(
    f: Function,
    x: Any,
    labels: Any,
    *,
    error: Error = class_error,
    tolerance: float = 1.05,
    batch: int | None = None,
    samples: int = 20,
    smallest: float = 1e-4,
    per_decade: int = 24,
    seed: int = 0,
) -> Estimate:
    """MES: the median C by which the inputs' spread is larger than moves that errors survive.

    C >= 1 is the least with sum_b max_{c < 1/C} e(f(x + c d), y) <= (1 + T) sum_b e(f(x), y), for
    directions d with the covariance of the inputs, each batch a sample.

    Args:
        f, x, batch, seed: As of ``measured_nlc``.
        labels, error: As of ``noise_errors``.
        tolerance, samples: T, and how many batches.
        smallest, per_decade: The smallest c; values of c for each power of ten.

    Returns:
        The median; infinite where errors grow below the smallest c.

    Raises:
        UsageError: As of ``measured_nlc``, or not one label for each input.

    Source: Schoenherr, The nonlinearity coefficient, section 4.4.8.

    Example:
        >>> import torch
        >>> x = torch.tensor([[-2.0, 0.0], [2.0, 0.0], [-1.0, 0.0], [1.0, 0.0]])
        >>> same = lambda x: torch.stack([0 * x[:, 0], 0 * x[:, 0] + 1], 1)
        >>> error_radius(same, x, [1, 1, 1, 1]).value
        1.0
    """
    samples = checks.whole(samples, "samples", least=2)
    allowed = 1 + float(checks.real(tolerance, "tolerance", least=0))
    grid = scales(smallest, per_decade)
    sample, faults = _labelled(f, x, labels, error, batch, seed)
    return median(radii(sample, faults, samples, allowed, grid), seed)


def _labelled(
    f: Function, x: Any, labels: Any, error: Error, batch: int | None, seed: int
) -> tuple[Sample, Faults]:
    function, sample = function_on(f, x, batch, seed)
    given = labels_of(labels, len(sample) + sample.left_out)
    return sample, function.errors(error, numbers(given, "labels")[sample.order])
