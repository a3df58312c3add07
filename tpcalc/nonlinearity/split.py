"""The least-squares split of a function from samples: LAR, CAR and NAR."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from tpcalc import checks
from tpcalc.arrays import Array
from tpcalc.errors import EvaluationError, UsageError
from tpcalc.nonlinearity.estimators import estimate, left_out_error
from tpcalc.nonlinearity.function import EPS, Code, Function
from tpcalc.nonlinearity.gaussian import Split
from tpcalc.nonlinearity.laws import Given, law_of
from tpcalc.nonlinearity.measured import fitted, measured
from tpcalc.nonlinearity.sample import CELLS, Sample, sample_of
from tpcalc.results import Estimate

GROUPS = 32
LEAST_GROUPS = 10  # where inputs have many features
PER_INPUT = 20  # samples for each number that is fitted
DEPENDENT = 1e-4  # a coordinate of which others leave no more is made of them


@dataclass(frozen=True)
class Fit:
    """A linear fit x A + b of the outputs, and the shares of E |f|^2, which add up to 1."""

    linear: Estimate  # LAR: of the linear component (x - mean) A
    constant: Estimate  # CAR: of the constant component, the mean output
    nonlinear: Estimate  # NAR: of what is left
    slope: Array  # A, a row for each coordinate of the input
    offset: Array  # b
    dependent: bool  # whether coordinates of the inputs determine others


def fit(function: Function, sample: Sample) -> Fit:
    """The least-squares fit of a function over inputs."""
    size = sample.law.dimension
    most = min(GROUPS, max(LEAST_GROUPS, CELLS // size**2), max(LEAST_GROUPS, len(sample) // 4))
    groups: list[_Moments] = []
    for places, x in zip(sample.parts(), sample.batches(), strict=True):
        y = function.values(x)
        if not groups:
            start = x.mean(axis=0), y.mean(axis=0)
            scale = float(np.abs(y - start[1]).max())
            scale = scale if np.isfinite(scale) and scale > 0 else 1.0
        x, y = x - start[0], (y - start[1]) / scale
        parts = (places % most == index for index in range(most))
        own = [_Moments.of(x[part], y[part]) for part in parts]
        groups = [_joined(pair) for pair in zip(groups, own, strict=True)] if groups else own
    shift = start[1] / scale
    whole = _joined(groups)
    shares, solved = whole.shares(shift)
    if not np.isfinite(shares).all():
        raise EvaluationError(
            "the outputs are all 0 or not finite.", hint="There are no shares of nothing."
        )
    left = [_joined([m for m in groups if m is not own]).shares(shift)[0] for own in groups]
    errors = left_out_error(np.array(left)).tolist()
    linear, constant, nonlinear = (
        replace(estimate(*part, len(sample), sample.seed, method=function.method), replicates=most)
        for part in zip(shares.tolist(), errors, strict=True)
    )
    slope = solved[1:] * scale
    offset = start[1] + solved[0] * scale - start[0] @ slope
    return Fit(linear, constant, nonlinear, slope, offset, whole.dependent())


class _Moments(NamedTuple):
    """Sums over inputs of (1, x) (1, x)^T, (1, x) y^T and |y|^2."""

    number: int
    inputs: Array
    both: Array
    square: float

    @classmethod
    def of(cls, x: Array, y: Array) -> _Moments:
        rows = np.concatenate([np.ones((len(x), 1)), x], axis=1)
        return cls(len(x), rows.T @ rows, rows.T @ y, float(np.sum(y**2)))

    def dependent(self) -> bool:
        """Whether coordinates determine others, in whatever units they are."""
        units = np.sqrt(np.diag(self.inputs))
        if not units.all():
            return True
        try:
            sizes = np.diag(np.linalg.cholesky(self.inputs / np.outer(units, units)))
        except np.linalg.LinAlgError:
            return True
        return not sizes.min() > DEPENDENT

    def shares(self, shift: Array) -> tuple[Array, Array]:
        """LAR, CAR, NAR and the fit (the shortest of many) of outputs less ``shift``."""
        n, size = self.number, len(self.inputs)
        if self.dependent():
            solved = np.asarray(np.linalg.lstsq(self.inputs, self.both, rcond=None)[0])
        else:
            solved = np.asarray(np.linalg.solve(self.inputs, self.both))
        explained = float(np.sum(solved * self.both))
        noise = max(self.square - explained, 0.0) / (n - size)  # the variance of the rest
        mean = self.both[0] / n
        between = explained / n - float(mean @ mean) - noise * (size - 1) / n
        linear = max(between, 0.0)
        variance = linear + noise
        constant = max(float(np.sum((mean + shift) ** 2)) - variance / n, 0.0)
        with np.errstate(invalid="ignore"):
            return np.array([linear, constant, noise]) / np.float64(variance + constant), solved


def _joined(parts: Sequence[_Moments]) -> _Moments:
    totals: list[Any] = [sum(part) for part in zip(*parts, strict=True)]
    return _Moments(*totals)


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
        function, law, jacobian: As of ``sampled_nlc``.
        seed: Of the samples.
        samples: How many; at least 20 for each number of an input.

    Returns:
        The split; ``rest`` is None where the fit leaves rounding alone.

    Raises:
        UsageError, EvaluationError: As of ``sampled_nlc``, or too few samples.

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
    code = fitted(function, known, seed, jacobian)
    whole = measured(code, known, seed, count).nlc
    if isinstance(known, Given) and len(known.inputs) < least:
        raise UsageError(f"a linear fit needs {least} inputs; there are {len(known.inputs)}.")
    found = fit(code, sample_of(known, count, seed))
    rest = None
    lar, nar = found.linear.value, found.nonlinear.value
    if nar > 1e3 * EPS * (lar + nar):
        rest = measured(_rest(code, found), known, seed + 1, samples).nlc
    rows = tuple(map(tuple, found.slope.tolist()))
    offset = tuple(found.offset.tolist())
    return Split(found.linear, found.constant, found.nonlinear, rest, whole, rows, offset)


def _rest(code: Code, found: Fit) -> Code:
    """What the fit leaves, with the step of the function: its rounding is that of the function."""

    def left(x: Array) -> Array:
        return code.values(x) - found.offset - x @ found.slope

    def slopes(x: Array) -> Array:
        return code.matrices(x) - found.slope.T

    return replace(code, function=left, jacobian=None if code.jacobian is None else slopes)
