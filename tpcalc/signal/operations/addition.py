"""Weighted sums of layers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from tpcalc.evaluate.bounded import Bounded, bounded
from tpcalc.signal.operations.operation import Number, required
from tpcalc.signal.state import State, exponential, logarithm

__all__ = ["Addition"]


@dataclass(frozen=True, slots=True)
class Addition:
    """A weighted sum of layers that are independent but for their inputs.

    Args:
        weights: One for each of them, none 0.

    Raises:
        StudyError: No weights, or one that is 0.

    Source: Schoenherr, The nonlinearity coefficient, table 5.3; the products of means where two
        activations are added are those of table 5.1.

    Example:
        >>> from tpcalc.signal.operations import Input
        >>> start = Input(1.0, 0.5).state(())
        >>> Addition((0.5, 2.0)).state([start, start]).square.value
        4.25
    """

    weights: tuple[Number, ...]

    def __post_init__(self) -> None:
        required(
            bool(self.weights) and all(w != 0 and abs(w) < float("inf") for w in self.weights),
            "Addition",
            f"the weights of a sum are {', '.join(map(str, self.weights)) or 'none'} "
            "(condition 22.3).",
            "Give one for each layer that is added, none of them 0.",
        )

    @property
    def name(self) -> str:
        """For messages and tables."""
        return "addition"

    def state(self, parents: Sequence[State]) -> State:
        """The state of the layer.

        Args:
            parents: The layers that it reads, in the order of the weights.
        """
        zero = Bounded(0.0)
        mean, square, gap, gradient = zero, zero, zero, zero
        largest = max(part.log_gradient.value for part in parents)
        weights = [bounded(weight) for weight in self.weights]
        for w, part in zip(weights, parents, strict=True):
            mean = mean + w * part.mean
            square = square + w * w * part.square
            gap = gap + w * w * part.gap
            gradient = gradient + w * w * exponential(part.log_gradient - largest)
        for (w, left), (u, right) in combinations(zip(weights, parents, strict=True), 2):
            square = square + 2 * (w * u) * (left.mean * right.mean)
        return State(mean, square, gap, logarithm(gradient) + largest)
