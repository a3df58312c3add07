"""Standard errors of what is measured on a finite number of inputs and draws."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, floor, hypot, inf, isfinite, sqrt

import numpy as np

from tpcalc.arrays import Array, Index
from tpcalc.errors import EvaluationError
from tpcalc.results import Estimate, Method

Places = Index
_GROUPS = 10
# Numbers behind a mean, or a correlation, below which it is chance.
_JOINT = 30
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
        shares: What each input adds to the mean's deviation; numbers measured on the same inputs
            vary together. None: unknown.
        twice: The length of the part of ``shares`` whose square is in theirs twice.
        scatter: The standard error by the scatter over draws alone.
        few: Whether a few of the numbers make up the mean.
    """

    value: float
    stderr: float
    draws: tuple[float, ...] = ()
    samples: int = 0
    shares: Array | None = None
    twice: float = 0.0
    scatter: float = 0.0
    few: bool = False

    def times(self, factor: float) -> Measured:
        """The same times a positive number."""
        draws = tuple(factor * draw for draw in self.draws)
        return Measured(
            factor * self.value,
            factor * self.stderr,
            draws,
            self.samples,
            None if self.shares is None else factor * self.shares,
            factor * self.twice,
            factor * self.scatter,
            self.few,
        )


def mean_of(terms: Array) -> Measured:
    """The mean of one number for each of independent inputs.

    Example:
        >>> mean_of(np.array([1.0, 2.0, 3.0, 2.0])).value
        2.0
    """
    count, mean = len(terms), float(np.mean(terms))
    shares = (terms - mean) / count
    error = _length(shares) * sqrt(count / (count - 1)) if count > 1 else inf
    return Measured(mean, error, (), count, shares, few=_few(terms))


def mean_of_draws(
    terms: Array,
    inputs: int,
    places: Places | None = None,
    others: Places | None = None,
    columns: Array | None = None,
) -> Measured:
    """The mean of numbers for each of several draws and each input of a draw.

    Draws share inputs where there are few, and inputs of a draw share its noise: the error is the
    larger of the scatter over draws and the scatter over inputs. A number of two inputs, x and the
    deviation x' along which a derivative is taken, varies with both.

    Source: Aronow, Samii, Assenova, Cluster-robust variance estimation for dyadic data, section 2.

    Example:
        >>> terms, places = np.array([[1.0, 3.0], [3.0, 1.0]]), np.array([[0, 1], [1, 0]])
        >>> round(mean_of_draws(terms, 2, places).stderr, 9)
        1.0
    """
    if not np.isfinite(terms).all():
        raise EvaluationError(
            "a derivative is not finite.",
            hint="The function leaves the range of its number format, or has no derivative there.",
        )
    draws = terms.mean(axis=1)
    mean, size = float(draws.mean()), len(draws)
    scatter = _length(draws - mean) / sqrt(size * (size - 1)) if size > 1 else 0.0
    count = max(min(terms.size, inputs) - 1, 1)
    over_inputs = _length(terms - mean) / sqrt(terms.size * count)
    shares, twice = None, 0.0
    if places is not None:
        shares, deviations = np.zeros(inputs), (terms - mean) / terms.size
        np.add.at(shares, places.ravel(), deviations.ravel())
        if others is not None:
            second = deviations if columns is None else (columns - mean) / terms.size
            np.add.at(shares, others.ravel(), second.ravel())
            twice = 0.0 if columns is not None else _length(deviations)
        joint = _spread(shares, twice)
        over_inputs = joint if inputs >= _JOINT else max(joint, over_inputs)
    return Measured(
        mean,
        max(scatter, over_inputs),
        tuple(draws.tolist()),
        terms.size,
        shares,
        twice,
        scatter,
        _few(terms.ravel()),
    )


def root_of_ratio(over: Measured, under: Measured, seed: int) -> Estimate:
    """sqrt(a / b) with the error of the delta method.

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
    relative = _relative(over, under)
    draws = tuple(sqrt(draw / under.value) for draw in over.draws)
    # What varies and has no slope anywhere jumps, or is steep in places that were missed.
    error = inf if value == 0 and under.stderr > 0 else value * relative / 2
    return estimate(value, error, over.samples, seed, draws)


def _relative(over: Measured, under: Measured) -> float:
    """The relative error of a ratio; its parts vary together where inputs are the same."""
    if not over.value:
        return 0.0
    parts = over.stderr / over.value, under.stderr / under.value
    if over.shares is None or under.shares is None or len(over.shares) != len(under.shares):
        return hypot(*parts)
    if len(over.shares) < _JOINT:  # how they vary together is not seen from so few
        return sum(parts)
    shares = over.shares / over.value - under.shares / under.value
    return max(_spread(shares, over.twice / over.value), over.scatter / over.value)


def _spread(shares: Array, twice: float) -> float:
    count, length = len(shares), _length(shares)
    if count < 2:
        return inf
    left = max(1 - (twice / length) ** 2, 0.5) if length else 0.0
    return length * sqrt(left * count / (count - 1))


def _length(numbers: Array) -> float:
    """The root of a sum of squares, which stay in the range of floats."""
    largest = float(np.abs(numbers).max(initial=0.0))
    return largest * float(np.linalg.norm(numbers / largest)) if largest else 0.0


def _few(terms: Array) -> bool:
    """Whether a mean of numbers that are not negative rests on a few, or on ones not yet met."""
    largest = float(terms.max(initial=0.0))
    if len(terms) < 2 * _JOINT or not largest > 0:
        return False
    if float((terms / largest).sum()) ** 2 / float(((terms / largest) ** 2).sum()) < _JOINT:
        return True
    top = np.sort(terms)[-max(20, len(terms) // 200) :]
    # Hill's estimate of the power of a tail: with 1 or less there is no mean.
    return bool(top[0] > 0) and 1.5 * float(np.mean(np.log(top / top[0]))) > 1.0


def estimate(
    value: float, stderr: float, samples: int, seed: int | None, draws: Sequence[float] = ()
) -> Estimate:
    """A measured number."""
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
