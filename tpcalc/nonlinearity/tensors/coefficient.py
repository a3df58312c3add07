"""The nonlinearity coefficient of a function of torch tensors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf, sqrt
from typing import Any, Literal

from tpcalc import checks
from tpcalc.engine.device.devices import load_torch
from tpcalc.errors import EvaluationError
from tpcalc.nonlinearity.tensors.batch_moments import batch_moments
from tpcalc.nonlinearity.tensors.noise import backward, forward
from tpcalc.nonlinearity.tensors.shard import Shard, shard_of
from tpcalc.nonlinearity.tensors.spread import Passes, Spread, outputs, spread_of
from tpcalc.nonlinearity.tensors.uncertainty import Measured, estimate, root_of_ratio
from tpcalc.results import Estimate, Method
from tpcalc.shown import Shown

# Steps, in deviations of the inputs. Small jumps show at small steps, rare ones at large steps.
_STEPS = (0.05, 0.01, 1e-3)
_INPUTS = 500
_MUCH, _SIGMAS = 2.0, 5.0
_ABOVE = 100.0  # times rounding

Function = Callable[[Any], Any]
Estimator = Literal["backward", "forward"]

# A second run may differ by the order of sums, so many roundings.
_REPEATS = 1e3
# Below so many roundings of its mean an output's spread has lost digits that matter.
_FEW = 1e4


@dataclass(frozen=True)
class MeasuredNLC(Shown):
    """What was measured of a function under its inputs.

    Attributes:
        nlc: The nonlinearity coefficient.
        frobenius: NLCFROB: the same as if inputs had a covariance proportional to the identity.
        bias: sqrt(E |f|^2 / Tr Cov_f) of the outputs; infinite where they have collapsed.
        spread: Tr Cov_f.
        input_spread: Tr Cov_x.
        collapsed: Whether outputs are equal within a few roundings: the coefficient is 1 then, by
            convention.
        rounding: How far rounding each input changes the outputs, over their spread.
        notes: What to bear in mind.
    """

    nlc: Estimate
    frobenius: Estimate
    bias: float
    spread: Estimate
    input_spread: float
    collapsed: bool
    rounding: float
    notes: tuple[str, ...]


def nlc(
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
        passes: How the spread of outputs is measured (``spread_of``).
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
        >>> from tpcalc.nonlinearity.tensors.surrogates import gaussian_inputs
        >>> found = nlc(lambda x: x**2, gaussian_inputs(2000, 3), draws=20)
        >>> abs(found.nlc.value - 2**0.5) < 5 * found.nlc.stderr
        True
    """
    checks.one_of("estimator", estimator, ("backward", "forward"))
    draws = checks.whole(draws, "draws", least=2)
    shard = shard_of(x, batch, seed)
    with batch_moments(f):
        spread = spread_of(f, shard, passes)
        notes = _notes(shard, spread)
        if spread.collapsed:
            return _collapsed(shard, spread, notes)
        _check_repeats(f, shard, spread)
        rounding = _rounding(f, shard, spread)
        if estimator == "backward":
            found = backward(f, shard, draws)
        else:
            (found,) = forward(lambda part: [outputs(f, part)], shard, draws)
        excess = unseen(f, shard, found.numerator, noise=_noise(rounding, spread))
    assert found.frobenius is not None
    if rounding > 0.01:
        notes = (
            *notes,
            f"rounding of inputs changes outputs by {rounding:.1g} of their spread: numbers as "
            "large as this coefficient's amplify rounding.",
        )
    if found.numerator.few or spread.total.few:
        notes = (*notes, "a few inputs make up the averages: the number may be off by far more.")
    scaled = found.frobenius.times(shard.spread / shard.features)
    whole = root_of_ratio(found.numerator, spread.total, seed)
    frobenius = root_of_ratio(scaled, spread.total, seed)
    if excess > 1:
        notes = (
            *notes,
            f"outputs move {sqrt(excess):.2g} times as far as derivatives say: the function jumps, "
            "and has no coefficient, or is steep in places that were missed. The number has no "
            "error.",
        )
        whole, frobenius = replace(whole, stderr=inf), replace(frobenius, stderr=inf)
    return MeasuredNLC(
        whole,
        frobenius,
        sqrt(1 + spread.offset**2 / spread.total.value),
        _plain(spread.total, seed),
        shard.spread,
        False,
        rounding,
        notes,
    )


def _notes(shard: Shard, spread: Spread) -> tuple[str, ...]:
    found = []
    if shard.left_out:
        found.append(f"{shard.left_out} inputs fill no batch of {shard.batch} and are left out.")
    if spread.collapsed:
        found.append(
            "outputs are equal within a few roundings (output collapse): the coefficient is 1 by "
            "convention, and the bias beyond what this number format shows."
        )
    elif spread.roundings < _FEW:
        found.append(
            f"the spread of outputs is {spread.roundings:.3g} roundings of their mean: it has a "
            f"relative error of {1 / spread.roundings:.1g} or more besides the standard error."
        )
    return tuple(found)


def _collapsed(shard: Shard, spread: Spread, notes: tuple[str, ...]) -> MeasuredNLC:
    unknown = Estimate(1.0, inf, Method.FINITE, samples=len(shard), seed=shard.seed)
    total = _plain(spread.total, shard.seed)
    return MeasuredNLC(unknown, unknown, inf, total, shard.spread, True, 1.0, notes)


def _plain(total: Measured, seed: int) -> Estimate:
    return estimate(total.value, total.stderr, total.samples, seed)


def _check_repeats(f: Function, shard: Shard, spread: Spread) -> None:
    torch, x = load_torch(), next(shard.batches())
    with torch.no_grad():
        first, second = outputs(f, x), outputs(f, x)
    size = sqrt(spread.offset**2 + spread.total.value)
    if float((first - second).abs().max()) > _REPEATS * torch.finfo(first.dtype).eps * size:
        raise EvaluationError(
            "the function gives other outputs for the same inputs from run to run.",
            hint="Switch what is random in it off, or draw it once.",
        )


def _noise(rounding: float, spread: Spread) -> float:
    """Mean square distance by which rounding alone moves outputs."""
    return spread.total.value * (rounding**2 + (2 / spread.roundings) ** 2)


def _rounding(f: Function, shard: Shard, spread: Spread) -> float:
    torch = load_torch()
    x = next(shard.batches())
    eps = torch.finfo(x.dtype).eps
    signs = torch.sign(shard.noise(x, "rounding", 0))
    with torch.no_grad():
        moved = outputs(f, x * (1 + eps * signs)) - outputs(f, x)
    return sqrt(float((moved.double() ** 2).sum()) / len(x) / spread.total.value)


def unseen(
    f: Callable[[Any], Any], shard: Shard, numerator: Measured, *, noise: float = 0.0
) -> float:
    """How many times larger finite differences are than derivatives, as mean squares.

    E |f(x + h d) - f(x)|^2 / h^2 is an average of E |J d|^2 along the way, and not above it where f
    has no jumps; it is compared for steps h of .05 to .001 along deviations d of other inputs.

    Source: Schoenherr, The nonlinearity coefficient, section 4.2 (functions that are differentiable
        almost everywhere, and integrals of their derivatives).

    Example:
        >>> from tpcalc.nonlinearity.tensors.surrogates import gaussian_inputs
        >>> from tpcalc.nonlinearity.tensors.noise import backward
        >>> from tpcalc.nonlinearity.tensors.shard import shard_of
        >>> f, shard = lambda x: x + x.sign(), shard_of(gaussian_inputs(500, 2))
        >>> unseen(f, shard, backward(f, shard, 4).numerator) > 4
        True
    """
    torch = load_torch()
    known = _MUCH * numerator.value + _SIGMAS * numerator.stderr
    totals, count = [0.0] * len(_STEPS), 0
    with torch.no_grad():
        for number, batch in enumerate(shard.batches()):
            if count >= _INPUTS:
                break
            d, start = shard.independent("steps", number) - shard.mean, outputs(f, batch)
            count += len(batch)
            for place, step in enumerate(_STEPS):
                moved = outputs(f, batch + step * d) - start
                totals[place] += float((moved.double() ** 2).sum())
    largest = 1.0
    for total, step in zip(totals, _STEPS, strict=True):
        square = total / (count * step**2)
        if total > _ABOVE * noise * count and square > known:
            largest = max(largest, square / numerator.value if numerator.value else float("inf"))
    return largest
