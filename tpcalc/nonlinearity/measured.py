"""Spreads of outputs, mean squares of derivatives and jumps: what a coefficient is made of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from math import floor, hypot, inf, isfinite, log2, sqrt
from typing import Any, Literal

import numpy as np

from tpcalc import checks
from tpcalc.arrays import Array, Index
from tpcalc.errors import EvaluationError
from tpcalc.nonlinearity.estimators import (
    ONE,
    Measured,
    Nonlinearity,
    gaussian_notes,
    mean_of,
    root_of_ratio,
)
from tpcalc.nonlinearity.function import OUTPUTS, Code, Function, Pairs
from tpcalc.nonlinearity.laws import Empirical, Gaussian, Law, Sampler, law_of
from tpcalc.nonlinearity.sample import Move, Sample, sample_of
from tpcalc.results import Estimate, Status

Passes = Literal["two-pass", "batches"]

PILOT = 64
KEPT = 2**24  # outputs up to so many entries are kept for the second pass
ULPS = 16  # a spread below so many roundings of the mean is rounding itself
FEW_ROUNDINGS = 1e4  # below so many a spread has lost digits that matter
REPEATS = 1e3  # a second run may differ by the order of sums, so many roundings
UNRESOLVED = 0.05  # a change by doubled steps beyond which differences are no derivatives
STEPS = (0.05, 0.01, 1e-3)  # small jumps show at small steps, rare ones at large steps
POINTS, DRAWS = 500, 4000  # inputs at which jumps are looked for in data, and of a law
MUCH, SIGMAS = 2.0, 5.0
ABOVE = 10.0  # times rounding


@dataclass(frozen=True)
class Spread:
    """The spread of a function's outputs."""

    total: Measured  # Tr Cov, in squares of the unit
    unit: float  # about the size of deviations, so that squares stay in the range of floats
    offset: float  # length of the mean output
    collapsed: bool  # whether the spread is no more than a few roundings of the mean
    roundings: float  # the spread over the rounding of the mean output; infinite if that is 0
    first: Array  # the outputs of the first batch


def spread_of(function: Function, sample: Sample, passes: Passes = "two-pass") -> Spread:
    """Tr Cov of the outputs: a difference of mean squares would be noise where it is small."""
    checks.one_of("way to a spread", passes, ("two-pass", "batches"))
    kept = _Kept(function, sample)
    with np.errstate(all="ignore"):
        mean = np.sum([batch.sum(axis=0) for batch in kept], axis=0) / len(sample)
        first = next(iter(kept))
        largest = float(np.abs(first - mean).max())
        unit = 2.0 ** floor(log2(largest)) if 0 < largest < inf else 1.0
        terms = []
        for batch in kept:
            centre = batch.mean(axis=0) if passes == "batches" else mean
            terms.append((((batch - centre) / unit) ** 2).sum(axis=1))
        squares, offset = np.concatenate(terms), float(np.abs(mean).max())
        offset *= float(np.linalg.norm(mean / offset)) if offset else 0.0
    lost = sample.batch if passes == "batches" else len(sample)
    if not np.isfinite(squares).all() or not np.isfinite(offset) or lost < 2:
        raise EvaluationError(
            "the outputs have no finite spread." if lost > 1 else "a batch of one has no spread.",
            hint="The function leaves the range of its number format, or batches are too small.",
        )
    total = mean_of(squares * (lost / (lost - 1)))
    rounding = function.eps * offset
    roundings = unit * sqrt(total.value) / rounding if rounding else inf
    collapsed = total.value == 0 or roundings <= ULPS
    return Spread(total, unit, offset, collapsed, roundings, first)


class _Kept:
    """Outputs batch by batch, as often as wanted; computed again where there are many."""

    def __init__(self, function: Function, sample: Sample) -> None:
        self._function, self._sample = function, sample
        self._known: list[Array] = []

    def __iter__(self) -> Iterator[Array]:
        entries = 0
        for index, batch in enumerate(self._sample.batches()):
            known = index < len(self._known)
            found = self._known[index] if known else self._function.values(batch)
            entries += found.size
            if index == len(self._known) and (entries <= KEPT or not index):
                self._known.append(found)
            yield found


# ------------------------------------------------------------------------------------ derivatives


def numerator(function: Function, sample: Sample, draws: int, unit: float = 1.0) -> Measured:
    """E Tr J Cov_x J^T: the trace itself where Jacobian and covariance are at hand."""
    given = isinstance(function, Code) and function.jacobian is not None
    if not given or sample.order is not None or isinstance(sample.law, Sampler):
        return forward(function, sample, sample.moves(draws), unit)[-1]
    assert isinstance(function, Code)
    factor = sample.law.factor(sample.stream("factor", 0)) / unit
    traces = [((function.matrices(x) @ factor) ** 2).sum(axis=(1, 2)) for x in sample.batches()]
    return mean_of(np.concatenate(traces))


def forward(
    function: Function, sample: Sample, moves: Iterable[Move], unit: float = 1.0
) -> list[Measured]:
    """Mean squares of derivatives of every layer along vectors: E |J v|^2."""
    terms: list[list[Array]] = []
    places, others = [], []
    for move in moves:
        layers = [((part / unit) ** 2).sum(axis=1) for part in function.jvp(move.x, move.v)]
        terms = terms or [[] for _ in layers]
        for own, squares in zip(terms, layers, strict=True):
            own.append(squares)
        places.append(move.places)
        others.append(move.others)
    return [sample.mean_over(own, places, others) for own in terms]


def backward(
    function: Function,
    sample: Sample,
    draws: int,
    unit: float = 1.0,
    ends: Pairs = OUTPUTS,
    away: Callable[[Index], Mapping[int, Array]] | None = None,
) -> dict[tuple[int, int], tuple[Measured, Measured]]:
    """For layers l by m E Tr J Cov_m J^T and E |J|_F^2, by Gaussian noise u sent back from l."""
    # ``away`` gives deviations of layers m at places: the first is E (u J (x' - mean)^T)^2.
    places, others = (
        [sample.places(what, draw) for draw in range(draws)] for what in ("inputs", "others")
    )
    terms: dict[tuple[int, int], list[tuple[Array, Array, Array]]] = {}
    for draw in range(draws):
        at = others[draw]
        below = away(at) if away else {0: sample.rows[at] - sample.mean}
        u = partial(noise, sample, draw)
        for pair, g in function.vjp(sample.rows[places[draw]], ends, u).items():
            terms.setdefault(pair, []).append(crossed(g / unit, below[pair[0]]))
    found = {}
    for pair, own in terms.items():
        rows, columns, lengths = (list(part) for part in zip(*own, strict=True))
        over = sample.mean_over(rows, places, others, columns)
        found[pair] = over, sample.mean_over(lengths, places)
    return found


def crossed(g: Array, away: Array) -> tuple[Array, Array, Array]:
    """Every x of a batch meets every x' of another: means of (g away^T)^2 by either, and |g|^2."""
    with np.errstate(over="ignore", invalid="ignore"):  # refused as a mean
        squares = (g @ away.T) ** 2
        return squares.mean(axis=1), squares.mean(axis=0), (g * g).sum(axis=1)


def noise(sample: Sample, draw: int, end: int, value: Any) -> Array:
    """What is sent back from a layer."""
    return sample.noise(tuple(value.shape), f"layer {end}", draw)


def unseen(
    function: Function, sample: Sample, numerator: Measured, unit: float, noise: float
) -> float:
    """How many times farther a function moves than its derivatives say, as a root mean square."""
    # E |f(x + h d) - f(x)|^2 / h^2 is an average of E |J d|^2 along the way, and not above it where
    # f has no jumps.
    moves = partial(_steps if sample.order is not None else _toward, sample)
    if sample.order is None:
        (numerator,) = forward(function, sample, moves(), unit)
    known = MUCH * numerator.value + SIGMAS * numerator.stderr
    totals, count = np.zeros(len(STEPS)), 0
    for x, d in ((move.x, move.v) for move in moves()):
        start = function.values(x)
        count += len(x)
        totals += [_moved(function, x, step * d, start, unit, step) for step in STEPS]
    largest = 1.0
    for total, step in zip(totals, STEPS, strict=True):
        square = total / (count * step**2)
        if total > (ABOVE * noise) ** 2 * count and square > known:
            largest = max(largest, sqrt(square / numerator.value) if numerator.value else inf)
    return largest


def _moved(
    function: Function, x: Array, change: Array, start: Array, unit: float, step: float
) -> float:
    """A sum of squared moves; nan where the function is not finite, or the step was seen."""
    if step < 4 * function.step:
        return np.nan
    try:
        with np.errstate(all="ignore"):
            return float((((function.values(x + change) - start) / unit) ** 2).sum())
    except EvaluationError:
        return np.nan


def _steps(sample: Sample) -> Iterator[Move]:
    """Given inputs along deviations of others."""
    for number, (part, x) in enumerate(zip(sample.parts(), sample.batches(), strict=True)):
        if part[0] >= POINTS:
            return
        others = sample.repeatable_places("steps", number)[: len(part)]
        yield Move(x, sample.rows[others] - sample.mean, part, others)


def _toward(sample: Sample) -> Iterator[Move]:
    """Draws toward others, so that none leaves a convex set where the function is defined."""
    for number, (part, x) in enumerate(zip(sample.parts(), sample.batches(), strict=True)):
        if part[0] >= DRAWS:
            return
        others = sample.law.points(sample.stream("others", number), len(x))
        yield Move(x, others - x, part, None)


# ------------------------------------------------------------------------------------ coefficients


@dataclass(frozen=True)
class Coefficient:
    """A coefficient, and what it was made of."""

    nlc: Estimate  # the coefficient
    share: float  # what doubled steps change of it, relative, where derivatives are differences
    rounding: float  # how far rounding each input changes the outputs, over their spread
    jumps: bool  # whether the function moves farther than its derivatives say: there is no error
    notes: tuple[str, ...]  # what to bear in mind


def coefficient(
    function: Function, sample: Sample, spread: Spread, over: Measured, doubled: float | None = None
) -> Coefficient:
    """sqrt(E Tr J Cov_x J^T / Tr Cov_f); ``doubled``: the numerator by differences twice as far."""
    rounding = _rounding(function, sample, spread)
    noise = sqrt(spread.total.value) * hypot(rounding, 2 / spread.roundings)
    excess = unseen(function, sample, over, spread.unit, noise)
    share = 0.0 if doubled is None or not over.value else abs(1 - doubled / over.value) / 2
    share = inf if share > UNRESOLVED else share
    found = root_of_ratio(over, spread.total, sample.seed, function.method)
    found = replace(found, stderr=found.stderr + (share * found.value if found.value else 0.0))
    notes = left_notes(sample, spread)
    if isinstance(sample.law, Gaussian):
        notes += gaussian_notes(found, sample.law.rank, sample.law.dimension)
    if function.step:
        notes.append(_difference_note(function.step, share))
    if found.value == 0:
        notes.append(
            f"No slope was met in {found.samples} samples; steep parts of probability below "
            f"{3 / found.samples:.1g} may have been missed."
        )
    if rounding > 0.01:
        notes.append(
            f"Rounding of inputs changes outputs by {rounding:.1g} of their spread: numbers as "
            "large as this coefficient's amplify rounding."
        )
    if excess > 1:
        notes.append(
            f"The function moves {excess:.2g} times as far as its derivatives say: it jumps, and "
            "has no coefficient, or is steep in places that were missed. The number has no error."
        )
        found = replace(found, stderr=inf)
    if found.status is Status.RARE:
        notes.append("A few samples make up the averages: the number may be off by far more.")
    return Coefficient(found, share, rounding, excess > 1, tuple(notes))


def left_notes(sample: Sample, spread: Spread) -> list[str]:
    """Inputs that were left out, and digits of outputs that are rounding."""
    notes = []
    if sample.left_out:
        notes.append(f"{sample.left_out} inputs fill no batch of {sample.batch} and are left out.")
    if spread.collapsed:
        notes.append(
            "Outputs are equal within a few roundings (output collapse): the coefficient is 1 by "
            "convention, and the bias beyond what this number format shows."
        )
    elif spread.roundings < FEW_ROUNDINGS:
        notes.append(
            f"The spread of outputs is {spread.roundings:.3g} roundings of their mean: it has a "
            f"relative error of {1 / spread.roundings:.1g} or more besides the standard error."
        )
    return notes


def _difference_note(step: float, share: float) -> str:
    known = (
        f"by {share:.1g} of itself, which is in the error."
        if isfinite(share)
        else "so much that it does not follow from differences: give jacobian= or jvp=."
    )
    return (
        f"Derivatives are central differences over steps of {step:.1g} standard deviations; a "
        f"doubled step changes the coefficient {known}"
    )


def _rounding(function: Function, sample: Sample, spread: Spread) -> float:
    """How far rounding the inputs of a batch moves outputs; a random function is refused."""
    x, y = next(iter(sample.batches())), spread.first
    size = hypot(spread.offset, spread.unit * sqrt(spread.total.value))
    if float(np.abs(function.values(x) - y).max()) > REPEATS * function.eps * size:
        raise EvaluationError(
            "the function gives other outputs for the same inputs from run to run.",
            hint="Switch what is random in it off, or draw it once.",
        )
    signs = np.sign(sample.noise(x.shape, "rounding", 0))
    total = _moved(function, x, function.input_eps * signs * x, y, spread.unit, inf)
    return sqrt(total / len(x) / spread.total.value) if total > 0 else 0.0


# ------------------------------------------------------------------------------- functions as code


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
    harm. The error is that of the delta method: what each input adds to both. Without ``jacobian``
    and ``jvp``, derivatives are central differences, and what a doubled step changes is added.

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
    count = checks.whole(samples, "samples", least=64)
    return measured(fitted(function, known, seed, jacobian, jvp), known, seed, count)


def fitted(
    function: Callable[[Any], Any],
    law: Law,
    seed: int,
    jacobian: Callable[[Any], Any] | None = None,
    jvp: Callable[[Any, Any], Any] | None = None,
) -> Code:
    """Code with a step of differences that fits the law."""
    rng = np.random.default_rng([seed, 2])
    code = Code(function, law.dimension, jacobian, jvp)
    return code.fitted(law.points(rng, PILOT), law.changes(rng, PILOT))


def measured(code: Code, law: Law, seed: int, samples: int) -> Nonlinearity:
    """The coefficient of code whose step of differences is chosen."""
    sample = sample_of(law, samples, seed)
    draws = max(2, -(-samples // sample.batch))
    spread = spread_of(code, sample)
    if spread.collapsed:
        raise EvaluationError(
            "the function is constant under this law, up to rounding: Tr Cov_f is 0, and the "
            "coefficient is a ratio to it.",
            hint="Look at its outputs: they may have collapsed within floating-point accuracy.",
        )
    unit = spread.unit
    over = numerator(code, sample, draws, unit)
    doubled = None
    if code.step:
        doubled = numerator(replace(code, step=2 * code.step), sample, draws, unit).value
    found = coefficient(code, sample, spread, over, doubled)
    slope = root_of_ratio(over, ONE, seed, code.method)
    error = inf if found.jumps else slope.stderr + (found.share * slope.value if slope.value else 0)
    deviation = root_of_ratio(spread.total, ONE, seed, code.method)
    notes = found.notes
    if isinstance(law, Empirical):
        notes = (*notes, "Errors are those of the inputs as a sample of their law.")
    return Nonlinearity(
        found.nlc, _in_units(replace(slope, stderr=error), unit), _in_units(deviation, unit), notes
    )


def _in_units(found: Estimate, unit: float) -> Estimate:
    draws = tuple(unit * draw for draw in found.draws)
    return replace(found, value=unit * found.value, stderr=unit * found.stderr, draws=draws)
