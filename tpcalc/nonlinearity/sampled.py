"""The nonlinearity coefficient of a function given as code, from samples."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from math import hypot, inf, isfinite, sqrt
from typing import Any

import numpy as np

from tpcalc import checks
from tpcalc.arrays import Array
from tpcalc.errors import EvaluationError, UsageError
from tpcalc.nonlinearity.coefficient import Nonlinearity, gaussian_notes
from tpcalc.nonlinearity.jumps import unseen
from tpcalc.nonlinearity.laws import Empirical, Gaussian, Law, Sampler, law_of
from tpcalc.nonlinearity.slopes import Blackbox
from tpcalc.results import Estimate, Method, Status

GROUPS = 32
PILOT = 64
CELLS = 2**22  # numbers in one array of inputs
ENOUGH = 30.0  # samples that an average must seem to be made of
STEEP = 1.5  # a tail that falls with a smaller power is a heavy one
UNRESOLVED = 0.05  # a change by doubled steps beyond which differences are no derivatives
ULPS = 16.0  # a spread of so many units of rounding is none
EPS = 2.0**-52


def sampled_nlc(
    function: Callable[[Any], Any],
    law: Any,
    *,
    seed: int,
    samples: int = 2**14,
    jacobian: Callable[[Any], Any] | None = None,
    jvp: Callable[[Any, Any], Any] | None = None,
) -> Nonlinearity:
    """The nonlinearity coefficient of a function given as code, with standard errors.

    The numerator averages |J(x) v|^2 over inputs x and independent vectors v with their
    covariance; with a Jacobian and a law whose covariance is known, the trace itself. The
    denominator takes squares of deviations from the mean, so that a large constant part does no
    harm. The error is that of a jackknife over 32 groups. Without ``jacobian`` and ``jvp``,
    derivatives are central differences, and what a doubled step changes is added to the error.

    Args:
        function: ``function(x)``: inputs in rows to outputs in rows (or one number each).
        law: A ``Gaussian``, ``Box``, ``Sphere``, ``Sampler``, or an array of inputs.
        seed: Of the samples.
        samples: How many evaluations; inputs that are given are each used at least once.
        jacobian: ``jacobian(x)``: an array of inputs by outputs by coordinates.
        jvp: ``jvp(x, v)``: the products J(x) v, in rows.

    Returns:
        The coefficient with its standard error, slope and spread.

    Raises:
        UsageError: Arguments that are no function, law or number of samples, or arrays of other
            shapes.
        EvaluationError: Outputs that are not finite, or that do not vary.

    Source: Schoenherr, The nonlinearity coefficient, sections 4.2 and 4.4.4.

    Example:
        >>> found = sampled_nlc(lambda x: x**2, Gaussian(), seed=0, jacobian=lambda x: 2 * x)
        >>> found.nlc.z(2**0.5) < 5, found.nlc.method.value
        (True, 'particles')
    """
    known = law_of(law)
    seed = checks.seed(seed)
    count = checks.whole(samples, "samples", least=2 * GROUPS)
    box = Blackbox(function, known.dimension, jacobian, jvp)
    return measured(with_pilot(box, known, seed), known, seed, count)


def measured(box: Blackbox, law: Law, seed: int, samples: int) -> Nonlinearity:
    """The coefficient of a function whose step of differences is chosen."""
    parts = np.random.SeedSequence(seed).spawn(GROUPS + 1)
    streams = [np.random.default_rng(part) for part in parts]
    sums = _Sums(law, box)
    for batch in _batches(law, samples, streams):
        sums.take(*batch)
    found = sums.result(seed)
    excess = unseen(box, law, seed, samples)
    if not excess > 1:
        return found
    note = (
        f"The function moves {excess:.2g} times as far as its derivatives say: it jumps, and has "
        "no coefficient, or is steep in places that were missed. The number has no error."
    )
    return replace(
        found,
        nlc=replace(found.nlc, stderr=inf),
        slope=replace(found.slope, stderr=inf),
        notes=(*found.notes, note),
    )


def with_pilot(box: Blackbox, law: Law, seed: int) -> Blackbox:
    """A function with a step of differences that fits the law."""
    rng = np.random.default_rng([seed, 2])
    return box.with_step(law.points(rng, PILOT), law.changes(rng, PILOT))


Batch = tuple[int, Array, Array | None, np.random.Generator]


def _batches(law: Law, count: int, streams: list[np.random.Generator]) -> Iterator[Batch]:
    """Group, inputs, directions (None: those of the law) and what they are drawn with."""
    if isinstance(law, Empirical):
        yield from _partition(law, count, streams)
        return
    most = max(1, CELLS // law.dimension)
    for group in range(GROUPS):
        left = count // GROUPS + (group < count % GROUPS)
        while left:
            size = min(left, most)
            left -= size
            rng = streams[group]
            x = law.points(rng, size)
            v = law.changes(rng, size) if isinstance(law, Sampler) else None
            yield group, x, v, rng


def _partition(law: Empirical, count: int, streams: list[np.random.Generator]) -> Iterator[Batch]:
    """Inputs in groups; directions are half differences of two other inputs of the group."""
    total = len(law.inputs)
    groups = min(GROUPS, total // 3)
    rounds = _rounds(law)
    for turn in range(rounds):
        order = streams[-1].permutation(total)
        for part, rows in enumerate(np.array_split(order, groups)):
            group = turn * groups + part
            rng = streams[group % GROUPS]
            for _ in range(max(1, count // (total * rounds))):
                x = law.inputs[rng.permutation(rows)]
                v = (np.roll(x, -1, axis=0) - np.roll(x, -2, axis=0)) / sqrt(2.0)
                yield group, x, v, rng


def _rounds(law: Law) -> int:
    """How often inputs are split into groups anew: few groups would show no error."""
    if not isinstance(law, Empirical):
        return 1
    groups = min(GROUPS, len(law.inputs) // 3)
    return 1 if groups == GROUPS else 2 * GROUPS // groups


@dataclass
class _Group:
    """Sums over the samples of a group, in units of the scale of the outputs."""

    count: int = 0
    slopes: float = 0.0
    coarse: float = 0.0
    mean: Any = 0.0
    squares: float = 0.0

    def add(self, y: Array, slopes: float, coarse: float) -> None:
        """Takes outputs: pass one their mean, pass two the squares of what deviates from it."""
        own = y.mean(axis=0)
        total = self.count + len(y)
        between = float(np.sum((own - self.mean) ** 2)) * self.count * len(y) / total
        self.squares += float(np.sum((y - own) ** 2)) + between
        self.mean = self.mean + (own - self.mean) * (len(y) / total)
        self.count, self.slopes, self.coarse = total, self.slopes + slopes, self.coarse + coarse


class _Sums:
    """What a run has seen so far."""

    def __init__(self, law: Law, box: Blackbox) -> None:
        self.law, self.box = law, box
        self.groups: dict[int, _Group] = {}
        self.start: Array | None = None
        self.scale = 0.0
        self.largest = 0.0
        self.seen: tuple[list[Array], list[Array]] = [], []
        self.factor: Array | None = None

    def take(self, group: int, x: Array, v: Array | None, rng: np.random.Generator) -> None:
        y = self.box.values(x)
        self.largest = max(self.largest, float(np.abs(y).max()))
        if self.start is None:
            self.start = y[0].copy()
        if y.shape[1] != len(self.start):
            raise UsageError("the function gives another number of outputs from batch to batch.")
        y = y - self.start
        slopes = self._slopes(x, v, rng)
        if self.scale == 0.0:
            self.scale = max(float(np.abs(y).max()), float(np.abs(slopes[0]).max()))
        y = y / (self.scale or 1.0)
        with np.errstate(over="ignore"):  # refused below
            fine, coarse = (np.sum((part / (self.scale or 1.0)) ** 2, axis=1) for part in slopes)
            far = np.sum((y - y.mean(axis=0)) ** 2, axis=1)
        if not (np.isfinite(fine).all() and np.isfinite(far).all()):
            raise EvaluationError(
                "outputs of one batch are more than 150 powers of ten above those of another."
            )
        own = self.groups.setdefault(group, _Group())
        own.add(y, float(fine.sum()), float(coarse.sum()))
        self.seen[0].append(fine)
        self.seen[1].append(far)

    def _slopes(self, x: Array, v: Array | None, rng: np.random.Generator) -> tuple[Array, Array]:
        """Rows whose squares make up |J v|^2, and what the doubled step makes of them."""
        if v is None and self.box.jacobian is not None:
            if self.factor is None:
                self.factor = self.law.factor(rng)
            found = (self.box.matrices(x) @ self.factor).reshape(len(x), -1)
            return found, found
        slopes = self.box.along(x, self.law.changes(rng, len(x)) if v is None else v)
        return slopes.fine, slopes.fine if slopes.coarse is None else slopes.coarse

    def result(self, seed: int) -> Nonlinearity:
        groups = list(self.groups.values())
        whole = _ratio_parts(groups)
        floor = ULPS * EPS * self.largest / (self.scale or 1.0)
        if not whole.spread > floor**2:
            raise EvaluationError(
                "the function is constant under this law, up to rounding: Tr Cov_f is 0, and the "
                "coefficient is a ratio to it.",
                hint="Look at its outputs: they may have collapsed within floating-point accuracy.",
            )
        each = len(groups) // _rounds(self.law)
        turns = [groups[i : i + each] for i in range(0, len(groups), each)]
        left = [[_ratio_parts(own[:i] + own[i + 1 :]) for i in range(each)] for own in turns]
        status = Status.CONVERGED
        if any(rare(np.concatenate(part)) for part in self.seen):
            status = Status.RARE
        total = sum(group.count for group in groups)
        bias = abs(whole.slopes - whole.coarse)

        def estimate(name: str, unit: float, own: float) -> Estimate:
            value = getattr(whole, name)
            spread = _rms([_jackknife([getattr(part, name) for part in own]) for own in left])
            return Estimate(
                value * unit,
                (spread + own) * unit,
                Method.PARTICLES,
                status,
                total,
                each,
                seed,
            )

        share = bias / (2 * whole.slopes) if whole.slopes > 0 else 0.0
        share = inf if share > UNRESOLVED else share
        nlc = estimate("nlc", 1.0, share * whole.nlc if whole.slopes else 0.0)
        slope = estimate("slope", self.scale, share * whole.slope if whole.slopes else 0.0)
        spread = estimate("deviation", self.scale, 0.0)
        return Nonlinearity(nlc, slope, spread, tuple(self._notes(nlc, share)))

    def _notes(self, nlc: Estimate, share: float) -> list[str]:
        law, notes = self.law, []
        if isinstance(law, Gaussian):
            notes += gaussian_notes(nlc, law.rank, law.dimension)
        if isinstance(law, Empirical):
            notes.append("Errors are those of the inputs as a sample of their law.")
        if self.box.by_differences:
            known = (
                f"by {share:.1g} of itself, which is in the error."
                if isfinite(share)
                else "so much that it does not follow from differences: give jacobian= or jvp=."
            )
            notes.append(
                f"Derivatives are central differences over steps of {self.box.step:.1g} standard "
                f"deviations; a doubled step changes the coefficient {known}"
            )
        if nlc.value == 0:
            notes.append(
                f"No slope was met in {nlc.samples} samples; steep parts of probability below "
                f"{3 / nlc.samples:.1g} may have been missed."
            )
        if nlc.status is Status.RARE:
            notes.append("A few samples make up the averages: the number may be off by far more.")
        return notes


def rare(values: Array) -> bool:
    """Whether an average of positive numbers rests on a few of them, or on ones not yet seen.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> rare(rng.standard_normal(4000) ** 2), rare(1 / rng.uniform(size=4000))
        (False, True)
    """
    largest = float(values.max())
    if not largest > 0:
        return False
    effective = float(values.sum() / largest) ** 2 / float(np.sum((values / largest) ** 2))
    if effective < min(ENOUGH, len(values) / 4):
        return True
    top = np.sort(values)[-max(20, len(values) // 200) :]
    if len(values) < 400 or not top[0] > 0:
        return False
    # Hill's estimate of the power with which the tail falls; below 1 there is no mean, and of a
    # tail that thins out slowly the largest values are still to come.
    return STEEP * float(np.mean(np.log(top / top[0]))) > 1.0


@dataclass(frozen=True)
class _Parts:
    slopes: float
    coarse: float
    spread: float

    @property
    def nlc(self) -> float:
        return sqrt(self.slopes / self.spread) if self.spread > 0 else float("inf")

    @property
    def slope(self) -> float:
        return sqrt(self.slopes)

    @property
    def deviation(self) -> float:
        return sqrt(self.spread)


def _ratio_parts(groups: list[_Group]) -> _Parts:
    counts = np.array([group.count for group in groups], dtype=float)
    total = float(counts.sum())
    means = np.array([group.mean for group in groups])
    centre = counts @ means / total
    between = float(counts @ np.sum((means - centre) ** 2, axis=1))
    squares = float(sum(group.squares for group in groups)) + between
    slopes = sum(group.slopes for group in groups) / total
    coarse = sum(group.coarse for group in groups) / total
    return _Parts(slopes, coarse, squares / (total - 1))


def _rms(values: list[float]) -> float:
    return hypot(*values) / sqrt(len(values))


def _jackknife(values: list[float]) -> float:
    """The standard error of a statistic from its values with one group left out each."""
    if not np.isfinite(values).all():
        return float("inf")
    spread = float(np.sum((np.array(values) - np.mean(values)) ** 2))
    return sqrt(spread * (len(values) - 1) / len(values))


def mean(values: Array, seed: int | None = None) -> Estimate:
    """The mean of independent numbers."""
    error = float(values.std(ddof=1)) / sqrt(len(values))
    return Estimate(float(values.mean()), error, Method.PARTICLES, samples=len(values), seed=seed)


def median(values: Array, seed: int, beyond: str) -> Estimate:
    """The median of sorted draws, its error by order statistics; an infinite one is refused."""
    count = len(values)
    reach = sqrt(count) / 2
    low = values[max(int(count / 2 - reach), 0)]
    high = values[min(int(np.ceil(count / 2 + reach)), count - 1)]
    if not np.isfinite(high):
        raise EvaluationError(beyond)
    value, error = float(np.median(values)), float(high - low) / 2
    return Estimate(value, error, Method.PARTICLES, samples=count, seed=seed)
