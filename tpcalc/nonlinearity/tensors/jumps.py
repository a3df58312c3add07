"""Whether a function moves farther than its derivatives say: jumps, and steep parts not met."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tpcalc.engine.device.devices import load_torch
from tpcalc.nonlinearity.tensors.shard import Shard
from tpcalc.nonlinearity.tensors.spread import outputs
from tpcalc.nonlinearity.tensors.uncertainty import Measured

# Steps, in deviations of the inputs. Small jumps show at small steps, rare ones at large steps.
_STEPS = (0.05, 0.01, 1e-3)
_INPUTS = 500
_MUCH, _SIGMAS = 2.0, 5.0
_ABOVE = 100.0  # times rounding


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
