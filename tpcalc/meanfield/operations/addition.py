"""Weighted sums of layers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from tpcalc.integrals.bounded import Bounded, bounded
from tpcalc.meanfield.operations.operation import Number, finite, required
from tpcalc.meanfield.state import State, exponential, logarithm


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
        >>> from tpcalc.meanfield.operations import Input
        >>> start = Input(1.0, 0.5).state(())
        >>> Addition((0.5, 2.0)).state([start, start]).square.value
        4.25
    """

    weights: tuple[Number, ...]

    def __post_init__(self) -> None:
        required(
            bool(self.weights) and all(w != 0 and finite(w) for w in self.weights),
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
        for weight, part in zip(self.weights, parents, strict=True):
            w = bounded(weight)
            mean = mean + w * part.mean
            square = square + w * w * part.square
            gap = gap + w * w * part.gap
            gradient = gradient + w * w * exponential(part.log_gradient - largest)
        square = square + self.cross(parents)
        return State(mean, square, gap, logarithm(gradient) + largest)

    def cross(self, parents: Sequence[State]) -> Bounded:
        """What products of means of different layers add to second moments.

        Args:
            parents: The layers that it reads, in the order of the weights.
        """
        terms = [bounded(w) * part.mean for w, part in zip(self.weights, parents, strict=True)]
        return sum((2 * left * right for left, right in combinations(terms, 2)), Bounded(0.0))
