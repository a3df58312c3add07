"""A deep residual network and its training run, as the recursions in depth need them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from tpcalc.arrays import Array
from tpcalc.errors import UsageError
from tpcalc.evaluate.closure.gaussians import is_odd
from tpcalc.functions import Expr, Var

HALF = Fraction(1, 2)
ROUNDED = 1e-14  # a part of an input that is left of it by rounding


def _difference(outputs: Array, targets: Array) -> Array:
    return outputs - targets


@dataclass(frozen=True, eq=False)
class Trunk:
    """x^0 = U xi, x^l = x^(l-1) + a L^-alpha G phi(W^l x^(l-1)), f = V^T x^L, trained by SGD.

    G subtracts the mean over coordinates. A step changes W^l by -eta L^-gamma / n times the
    gradient without its powers of n and L, so that alpha = gamma = 1/2 is Depth-muP.

    Source: Tensor Programs VI, sections 6.3 and 4; equation of the update with Definition 6.1.

    Example:
        >>> trunk = Trunk(inputs=[1.3, 0.7], targets=[0.9, 0.0])
        >>> trunk.steps, trunk.batch, trunk.linear
        (2, 1, True)
    """

    inputs: Any  # xi, of shape (T, B, d); (T,) for one input of one feature a step
    targets: Any  # y, of shape (T, B, k); (T,) for one output
    activation: Expr = field(default_factory=lambda: Var(0))  # phi, a function of Var(0)
    alpha: Fraction = HALF  # the exponent of the multiplier
    gamma: Fraction = HALF  # the exponent of the update
    multiplier: float = 1.0  # a
    rates: Any = 1.0  # eta of the blocks, one for each step or one for all
    input_rates: Any = 0.0  # eta of U; 0 where it is not trained
    output_rates: Any = 0.0  # eta of V
    centred: bool = True  # whether there is a G
    # slope(outputs, targets), both of shape (B, k): chi, the derivative of the loss of each sample
    # by its outputs; of the squared error by default
    slope: Callable[[Array, Array], Array] = _difference

    def __post_init__(self) -> None:
        inputs, targets = _cube(self.inputs), _cube(self.targets)
        if inputs.shape[:2] != targets.shape[:2]:
            raise UsageError(
                f"inputs of shape {inputs.shape} need as many targets, got {targets.shape}.",
                hint="Give one target for each input of each step.",
            )
        if not (np.isfinite(inputs).all() and np.isfinite(targets).all()):
            raise UsageError("inputs and targets of a trunk must be finite numbers.")
        object.__setattr__(self, "inputs", inputs)
        object.__setattr__(self, "targets", targets)
        for name in ("rates", "input_rates", "output_rates"):
            rates = np.asarray(getattr(self, name), dtype=np.float64)
            if rates.shape not in ((), (len(inputs),)):
                raise UsageError(
                    f"{name} must be one number or one for each of {len(inputs)} steps."
                )
            object.__setattr__(self, name, np.broadcast_to(rates, (len(inputs),)))
        for name in ("alpha", "gamma"):
            object.__setattr__(self, name, Fraction(getattr(self, name)).limit_denominator(10**6))

    @property
    def steps(self) -> int:
        """T."""
        return len(self.inputs)

    @property
    def batch(self) -> int:
        """B."""
        return int(self.inputs.shape[1])

    @property
    def count(self) -> int:
        """Samples of all steps."""
        return self.steps * self.batch

    @property
    def linear(self) -> bool:
        """Whether phi is the identity."""
        return self.activation == Var(0)

    @property
    def averaged(self) -> bool:
        """Whether its limit is that of averages over blocks: what all add alike, or all updates."""
        drifts = not self.centred and not is_odd(self.activation)
        return not self.linear and self.alpha == 1 and (self.gamma == 0 or drifts)

    @cached_property
    def samples(self) -> Array:
        """The inputs of all steps, one a row."""
        return np.ascontiguousarray(self.inputs.reshape(self.count, -1))

    @cached_property
    def lines(self) -> Array:
        """Of each sample the first one before it on its line through 0, times what; else 0.

        Streams of such samples start as one, so that it is their differences that are told apart.
        """
        found = np.zeros((self.count, self.count))
        rows = self.samples
        for i, row in enumerate(rows):
            for j in range(i):
                size = rows[j] @ rows[j]
                ratio = (row @ rows[j]) / size if size else 0.0
                if ratio and np.abs(row - ratio * rows[j]).max() <= ROUNDED * np.abs(row).max():
                    found[i, j] = ratio
                    break
        return found

    @cached_property
    def starts(self) -> Array:
        """What is new in the inputs of each sample."""
        known = np.any(self.lines, axis=1, keepdims=True)
        return np.where(known, 0.0, self.samples)

    def until(self, steps: int) -> Trunk:
        """The run up to a step."""
        parts = ("inputs", "targets", "rates", "input_rates", "output_rates")
        return replace(self, **{name: getattr(self, name)[:steps] for name in parts})

    def branch(self, layers: float) -> float:
        """The multiplier of a branch at this depth."""
        return float(self.multiplier * layers ** -float(self.alpha))

    def updates(self, layers: float) -> Array:
        """The size of the update of a block by each sample at this depth; batches are averaged."""
        size = float(self.multiplier * layers ** -float(self.gamma))
        return np.repeat(self.rates, self.batch) * size / self.batch

    def ends(self, step: int) -> tuple[Array, Array]:
        """Eta / B of U and of V for each sample before a step."""
        parts = (
            np.repeat(part[:step], self.batch) for part in (self.input_rates, self.output_rates)
        )
        first, second = (part / self.batch for part in parts)
        return first, second


def _cube(given: Any) -> Array:
    values = np.asarray(given, dtype=np.float64)
    if values.ndim == 1:
        values = values[:, None, None]
    if values.ndim != 3 or 0 in values.shape:
        raise UsageError(
            f"inputs and targets have the axes step, sample, feature, got shape {values.shape}.",
            hint="Give an array of three axes, or a list with one number for each step.",
        )
    return values
