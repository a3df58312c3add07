"""Standard errors of what is measured on finitely many inputs and draws; the coefficient."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, floor, hypot, inf, isfinite, sqrt

import numpy as np

from tpcalc.arrays import Array, Index
from tpcalc.errors import EvaluationError
from tpcalc.integrals.bounded import Bounded
from tpcalc.results import Estimate, Method, Status
from tpcalc.shown import Shown

_GROUPS = 10
# Numbers behind a mean, or a correlation, below which it is chance.
_JOINT = 30
# Numbers of whose largest the power of a tail is seen, and a power below which it is heavy.
_TAIL, _STEEP = 400, 1.5
# Draws that an estimate lists.
_LISTED = 1000
SIGMAS = 5.0


@dataclass(frozen=True, slots=True)
class Measured:
    """A mean with its standard error."""

    value: float  # the mean
    stderr: float  # its standard error
    draws: tuple[float, ...] = ()  # what each random draw gave
    samples: int = 0  # numbers behind it
    # what each input adds to the mean's deviation; numbers measured on the same inputs vary
    # together. None: unknown
    shares: Array | None = None
    twice: float = 0.0  # the length of the part of `shares` whose square is in theirs twice
    scatter: float = 0.0  # the standard error by the scatter over draws alone
    few: bool = False  # whether a few of the numbers make up the mean

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

    def estimate(self, seed: int | None, method: Method = Method.FINITE) -> Estimate:
        """As results carry it."""
        return estimate(self.value, self.stderr, self.samples, seed, method=method)


ONE = Measured(1.0, 0.0)


def mean_of(terms: Array) -> Measured:
    """The mean of one number for each of independent inputs."""
    count, mean = len(terms), float(np.mean(terms))
    shares = (terms - mean) / count
    error = _length(shares) * sqrt(count / (count - 1)) if count > 1 else inf
    return Measured(mean, error, (), count, shares, few=rare(terms))


def mean_of_draws(
    terms: Array,
    inputs: int,
    places: Index,
    others: Index | None = None,
    columns: Array | None = None,
) -> Measured:
    """The mean of numbers for each of several draws and each input of a draw."""
    if not np.isfinite(terms).all():
        raise EvaluationError(
            "a derivative is not finite.",
            hint="The function leaves the range of its number format, or has no derivative there.",
        )
    # Draws share inputs where there are few, and inputs of a draw share its noise: the error is the
    # larger of both scatters. A number of two inputs varies with both (Aronow, Samii, Assenova,
    # Cluster-robust variance estimation for dyadic data, section 2).
    draws = terms.mean(axis=1)
    mean, size = float(draws.mean()), len(draws)
    scatter = _length(draws - mean) / sqrt(size * (size - 1)) if size > 1 else 0.0
    count = max(min(terms.size, inputs) - 1, 1)
    over_inputs = _length(terms - mean) / sqrt(terms.size * count)
    shares, deviations, twice = np.zeros(inputs), (terms - mean) / terms.size, 0.0
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
        rare(terms.ravel()),
    )


def root_of_ratio(
    over: Measured, under: Measured, seed: int | None, method: Method = Method.FINITE
) -> Estimate:
    """sqrt(a / b) with the error of the delta method."""
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
    few = over.few or under.few
    return estimate(value, error, over.samples, seed, draws, method=method, few=few)


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


def rare(terms: Array) -> bool:
    """Whether a mean of numbers that are not negative rests on a few, or on ones not yet met."""
    largest, count = float(terms.max(initial=0.0)), len(terms)
    if not largest > 0:
        return False
    shares = terms / largest
    if float(shares.sum()) ** 2 / float((shares**2).sum()) < min(_JOINT, count / 4):
        return True
    top = np.sort(terms)[-max(20, count // 200) :]
    # Hill's estimate of the power of a tail: with 1 or less there is no mean, and of a tail that
    # thins out slowly the largest values are still to come.
    heavy = count >= _TAIL and top[0] > 0
    return bool(heavy) and _STEEP * float(np.mean(np.log(top / top[0]))) > 1.0


def estimate(
    value: float,
    stderr: float,
    samples: int,
    seed: int | None,
    draws: Sequence[float] = (),
    *,
    method: Method = Method.FINITE,
    few: bool = False,
) -> Estimate:
    """A measured number."""
    if not isfinite(value):
        raise EvaluationError(
            f"a measured number is {value}.",
            hint="The function, or its derivative, leaves the range of its number format.",
        )
    status = Status.RARE if few else Status.CONVERGED
    own = tuple(draws)
    return Estimate(value, stderr, method, status, samples, len(own), seed, draws=own)


def median(
    values: Array, seed: int | None = None, method: Method = Method.FINITE, beyond: str = ""
) -> Estimate:
    """The median; its error is half the distance of the quantiles one deviation of ranks away."""
    count, ordered = len(values), np.sort(values)
    reach = sqrt(count) / 2
    low = float(ordered[max(0, floor((count - 1) / 2 - reach))])
    high = float(ordered[min(count - 1, ceil((count - 1) / 2 + reach))])
    if beyond and not isfinite(high):
        raise EvaluationError(beyond)
    error = (high - low) / 2 if isfinite(high) else inf
    draws = tuple(values.tolist()) if count <= _LISTED else ()
    return Estimate(float(np.median(values)), error, method, samples=count, seed=seed, draws=draws)


def jackknife(
    values: Array, statistic: Callable[[Array], float], seed: int | None = None
) -> Estimate:
    """A statistic of independent numbers, with its error by leaving out a tenth at a time."""
    count = len(values)
    groups = np.arange(count) % min(_GROUPS, count)
    parts = (values[groups != group] for group in range(groups.max() + 1))
    left = np.array([statistic(part) for part in parts if len(part)])
    left = left[np.isfinite(left)]
    error = float(left_out_error(left)) if len(left) > 1 else inf
    return estimate(float(statistic(values)), error, count, seed)


def left_out_error(left: Array) -> Array:
    """The standard error of statistics from what they are with one group left out each."""
    return np.asarray(np.sqrt((len(left) - 1) / len(left) * ((left - left.mean(0)) ** 2).sum(0)))


@dataclass(frozen=True)
class Nonlinearity(Shown):
    """The nonlinearity coefficient of a function under a law of its inputs."""

    nlc: Estimate  # slope / spread; 1 for linear functions
    # sqrt(E Tr J Cov_x J^T): how far the output would vary if it were linear around each input
    slope: Estimate
    spread: Estimate  # sqrt(Tr Cov_f): how far it varies
    notes: tuple[str, ...] = ()  # what theorems say of it, and what to know about the numbers


def quotient(over: Bounded, under: Bounded) -> Bounded:
    """A number that is not negative over a positive one."""
    if not under.value - under.error > 0:
        raise EvaluationError(
            f"a variance is {under.value:.3g} with an error up to {under.error:.1g}: it may be 0.",
            hint="A constant function has no nonlinearity coefficient.",
        )
    return over / under


def gaussian_notes(nlc: Estimate, rank: int, dimension: int) -> list[str]:
    """What is known of a coefficient where the inputs are Gaussian."""
    notes = ["Gaussian inputs: NLC >= 1, and 1 for linear functions alone (Theorem 1)."]
    if rank < dimension:
        notes.append(
            f"The covariance of the inputs is singular (rank {rank} of {dimension}): the number is "
            "that of the function on the directions that vary."
        )
    slack = SIGMAS * nlc.stderr if nlc.method is Method.PARTICLES else nlc.stderr
    if nlc.value + slack < 1:
        notes.append(
            "This number is below 1 by more than its error: the samples missed where the function "
            "is steep, or the derivative is not that of the function."
        )
    return notes
