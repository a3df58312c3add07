"""Standard errors of what is measured on a finite number of inputs and draws."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, floor, hypot, inf, isfinite, sqrt

import numpy as np
from numpy.typing import NDArray

from tpcalc.errors import EvaluationError
from tpcalc.results import Estimate, Method

__all__ = [
    "Measured",
    "estimate",
    "jackknife",
    "mean_of",
    "mean_of_draws",
    "median",
    "root_of_ratio",
]

Array = NDArray[np.float64]
_GROUPS = 10
# Draws that an estimate lists.
_LISTED = 1000


@dataclass(frozen=True, slots=True)
class Measured:
    """A mean with its standard error.

    Args:
        value: The mean.
        stderr: Its standard error.
        draws: What each random draw gave.
        samples: Numbers behind it.
    """

    value: float
    stderr: float
    draws: tuple[float, ...] = ()
    samples: int = 0

    def times(self, factor: float) -> Measured:
        """The same times a positive number.

        Args:
            factor: The number.
        """
        draws = tuple(factor * draw for draw in self.draws)
        return Measured(factor * self.value, factor * self.stderr, draws, self.samples)


def mean_of(terms: Array) -> Measured:
    """The mean of one number for each of independent inputs.

    Args:
        terms: The numbers, two or more.

    Example:
        >>> mean_of(np.array([1.0, 2.0, 3.0, 2.0])).value
        2.0
    """
    error = float(np.std(terms, ddof=1)) / sqrt(len(terms)) if len(terms) > 1 else inf
    return Measured(float(np.mean(terms)), error, (), len(terms))


def mean_of_draws(terms: Array, inputs: int) -> Measured:
    """The mean of numbers for each of several draws and each input of a draw.

    Draws share inputs where there are few, and inputs of a draw share its noise: the error is the
    larger of the scatter over draws and the scatter over as many inputs as there are.

    Args:
        terms: Of shape (draws, inputs of a draw).
        inputs: How many different inputs there are.

    Raises:
        EvaluationError: A number is not finite.
    """
    if not np.isfinite(terms).all():
        raise EvaluationError(
            "a derivative is not finite.",
            hint="The function leaves the range of its number format, or has no derivative there.",
        )
    draws = terms.mean(axis=1)
    over_draws = float(np.std(draws, ddof=1)) / sqrt(len(draws)) if len(draws) > 1 else 0.0
    count = min(terms.size, inputs)
    over_inputs = float(np.std(terms)) / sqrt(max(count - 1, 1))
    return Measured(
        float(draws.mean()), max(over_draws, over_inputs), tuple(draws.tolist()), terms.size
    )


def root_of_ratio(over: Measured, under: Measured, seed: int) -> Estimate:
    """sqrt(a / b) with the error of the delta method.

    Args:
        over: a.
        under: b.
        seed: The seed.

    Raises:
        EvaluationError: A part of it is not finite, or b is 0.

    Example:
        >>> print(root_of_ratio(Measured(4.0, 0.4), Measured(1.0, 0.0), 0))
        2 ± 1.0e-01 (finite)
    """
    if not (isfinite(over.value) and isfinite(under.value)) or under.value <= 0:
        raise EvaluationError(
            f"a mean square of {over.value:.3g} is divided by one of {under.value:.3g}.",
            hint="The function, or its derivative, leaves the range of its number format.",
        )
    value = sqrt(over.value / under.value)
    relative = hypot(over.stderr / over.value if over.value else 0.0, under.stderr / under.value)
    draws = tuple(sqrt(draw / under.value) for draw in over.draws)
    return estimate(value, value * relative / 2, over.samples, seed, draws)


def estimate(
    value: float, stderr: float, samples: int, seed: int | None, draws: Sequence[float] = ()
) -> Estimate:
    """A measured number.

    Args:
        value: The number.
        stderr: Its standard error.
        samples: Numbers behind it.
        seed: The seed.
        draws: What each draw gave.

    Raises:
        EvaluationError: The number is not finite.
    """
    if not isfinite(value):
        raise EvaluationError(
            f"a measured number is {value}.",
            hint="The function, or its derivative, leaves the range of its number format.",
        )
    return Estimate(
        value=value,
        stderr=stderr,
        method=Method.FINITE,
        samples=samples,
        replicates=len(draws),
        seed=seed,
        draws=tuple(draws),
    )


def median(values: Array, seed: int | None = None) -> Estimate:
    """The median; its error is half the distance of the quantiles one deviation of ranks away.

    Args:
        values: The values; some may be infinite.
        seed: The seed.

    Example:
        >>> found = median(np.arange(101.0))
        >>> found.value, found.stderr
        (50.0, 6.0)
    """
    count, ordered = len(values), np.sort(values)
    reach = sqrt(count) / 2
    low = float(ordered[max(0, floor((count - 1) / 2 - reach))])
    high = float(ordered[min(count - 1, ceil((count - 1) / 2 + reach))])
    error = (high - low) / 2 if isfinite(high) else inf
    draws = tuple(values.tolist()) if count <= _LISTED else ()
    return Estimate(
        float(np.median(values)), error, Method.FINITE, samples=count, seed=seed, draws=draws
    )


def jackknife(
    columns: Sequence[Array], statistic: Callable[..., float], seed: int | None = None
) -> Estimate:
    """A statistic of independent rows, with its error by leaving out a tenth at a time.

    Args:
        columns: Arrays of one length, a number for each row.
        statistic: Takes the columns and gives a number.
        seed: The seed.

    Raises:
        EvaluationError: The statistic is not finite.

    Source: B. Efron, The jackknife, the bootstrap and other resampling plans, chapter 2.

    Example:
        >>> found = jackknife([np.arange(20.0)], np.mean)
        >>> found.value, round(found.stderr, 3)
        (9.5, 0.957)
    """
    count = len(columns[0])
    groups = np.arange(count) % min(_GROUPS, count)
    value = float(statistic(*columns))
    left = [
        float(statistic(*(column[groups != group] for column in columns)))
        for group in range(groups.max() + 1 if count > 1 else 0)
    ]
    usable = np.array([number for number in left if isfinite(number)])
    if len(usable) < 2:
        return estimate(value, inf, count, seed)
    size = len(usable)
    stderr = sqrt((size - 1) / size * float(((usable - usable.mean()) ** 2).sum()))
    return estimate(value, stderr, count, seed)
