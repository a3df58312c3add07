"""How far the outputs of a function spread over inputs: Tr Cov, in two passes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import sqrt
from typing import Any, Literal

import numpy as np

from tpcalc import checks
from tpcalc.engine.device.devices import load_torch
from tpcalc.errors import EvaluationError
from tpcalc.nonlinearity.tensors.shard import Shard
from tpcalc.nonlinearity.tensors.uncertainty import Measured, mean_of

Tensor = Any
Function = Callable[[Any], Any]
Passes = Literal["two-pass", "batches"]

# Outputs up to so many entries are kept for the second pass.
_KEPT = 2**24
# A spread below so many roundings of the mean is rounding itself.
_ULPS = 16


@dataclass(frozen=True)
class Spread:
    """The spread of a function's outputs.

    Args:
        total: Tr Cov.
        size: Entries of an output.
        offset: Length of the mean output.
        collapsed: Whether the spread is no more than a few roundings of the mean.
        roundings: The spread over the rounding of the mean output; infinite if that is 0.
    """

    total: Measured
    size: int
    offset: float
    collapsed: bool
    roundings: float


def outputs(f: Function, batch: Tensor) -> Tensor:
    """The outputs of a function on a batch, a row for each input."""
    try:
        found = f(batch.clone())  # a function may change its input in place
    except (RuntimeError, ValueError, TypeError) as error:
        raise EvaluationError(
            f"the function fails on a batch of shape {tuple(batch.shape)} and type {batch.dtype}: "
            f"{error}",
            hint="Give inputs of the type and device of its parameters, two for batch norm.",
        ) from error
    if not hasattr(found, "flatten") or found.ndim < 1 or len(found) != len(batch):
        shape = tuple(getattr(found, "shape", ()))
        raise EvaluationError(
            f"a batch of {len(batch)} inputs gives outputs of shape {shape}.",
            hint="The function takes a batch and gives a row for each of its inputs.",
        )
    if found.is_complex():
        raise EvaluationError("the outputs are complex numbers.", hint="Give real outputs.")
    return found.reshape(len(batch), -1)


def spread_of(f: Function, shard: Shard, passes: Passes = "two-pass") -> Spread:
    """Tr Cov of the outputs.

    The difference of a mean square and a squared mean would be noise where the spread is small.

    Source: Schoenherr, The nonlinearity coefficient, section 4.4.4.

    Example:
        >>> from tpcalc.nonlinearity.tensors.shard import shard_of
        >>> print(spread_of(lambda x: 2 * x, shard_of([[0.0], [1.0], [2.0]])).total.value)
        4.0
    """
    checks.one_of("way to a spread", passes, ("two-pass", "batches"))
    torch, kept = load_torch(), _Kept(f, shard)
    with torch.no_grad():
        sums = [batch.to(torch.float64).sum(0) for batch in kept]
        mean = torch.stack(sums).sum(0) / len(shard)
        terms, differ = [], False
        for batch in kept:
            differ = differ or bool((batch != batch[:1]).any())
            centre = batch.to(torch.float64).mean(0) if passes == "batches" else mean
            terms.append(((batch - centre) ** 2).sum(1))
    squares = torch.cat(terms).cpu().numpy()
    lost = shard.batch if passes == "batches" else len(shard)
    offset = float(torch.linalg.vector_norm(mean))
    if not np.isfinite(squares).all() or not np.isfinite(offset) or lost < 2:
        raise EvaluationError(
            "the outputs have no finite spread." if lost > 1 else "a batch of one has no spread.",
            hint="The function leaves the range of its number format, or batches are too small.",
        )
    total = mean_of(squares * (lost / (lost - 1)))
    if total.value == 0 and differ:
        raise EvaluationError(
            "squares of the spread of outputs are below the range of floats.",
            hint="Multiply the outputs by a number: the coefficient stays the same.",
        )
    rounding = torch.finfo(kept.dtype).eps * offset
    roundings = sqrt(total.value) / rounding if rounding else float("inf")
    collapsed = total.value == 0 or roundings <= _ULPS
    return Spread(total, len(mean), offset, collapsed, roundings)


class _Kept:
    """Outputs batch by batch, as often as wanted; computed again where there are many."""

    def __init__(self, f: Function, shard: Shard) -> None:
        self._f, self._shard = f, shard
        self._known: list[Tensor] = []
        self.dtype: Any = None

    def __iter__(self) -> Iterator[Tensor]:
        entries = 0
        for index, batch in enumerate(self._shard.batches()):
            if index < len(self._known):
                found = self._known[index]
            else:
                found = outputs(self._f, batch)
                if (entries + found.numel()) <= _KEPT and index == len(self._known):
                    self._known.append(found)
            self.dtype = found.dtype
            entries += found.numel()
            yield found
