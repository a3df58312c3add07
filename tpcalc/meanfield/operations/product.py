"""Products of layers, coordinate by coordinate: gates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tpcalc.meanfield.state import State, exponential, logarithm


@dataclass(frozen=True, slots=True)
class Product:
    """The product of two layers that are independent but for their inputs.

    Second moments of independent factors multiply; of the derivative x' y + x y' the two terms are
    uncorrelated, as x' has mean 0 given x.

    Source: The rules of Schoenherr, The nonlinearity coefficient, table 5.3, for a function of two
        independent layers.

    Example:
        >>> from tpcalc.meanfield.operations import Input
        >>> start = Input(2.0, 0.5).state(())
        >>> found = Product().state([start, start])
        >>> found.square.value, found.comean.value, round(found.gradient, 12)
        (4.0, 0.25, 4.0)
    """

    @property
    def name(self) -> str:
        """For messages and tables."""
        return "product"

    def state(self, parents: Sequence[State]) -> State:
        """The state of the layer.

        Args:
            parents: The two layers that it reads.
        """
        one, other = parents
        largest = max(one.log_gradient.value, other.log_gradient.value)
        gradient = exponential(one.log_gradient - largest) * other.square
        gradient = gradient + exponential(other.log_gradient - largest) * one.square
        return State(
            one.mean * other.mean,
            one.square * other.square,
            one.gap * other.square + one.comean * other.gap,
            logarithm(gradient) + largest,
        )
