"""Biases, one for each coordinate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tpcalc.integrals.bounded import bounded
from tpcalc.meanfield.operations.operation import Number, positive, required
from tpcalc.meanfield.state import State


@dataclass(frozen=True, slots=True)
class Bias:
    """Addition of a vector N(0, variance), the same for all inputs.

    Args:
        variance: sigma^2.

    Raises:
        StudyError: No variance.

    Source: Schoenherr, The nonlinearity coefficient, table 5.3.

    Example:
        >>> from tpcalc.meanfield.operations import Input
        >>> Bias(0.5).state([Input(1.0, 0.5).state(())]).bias
        1.7320508075688772
    """

    variance: Number

    def __post_init__(self) -> None:
        required(
            positive(self.variance),
            "Bias",
            f"the variance of the biases is {self.variance} (condition 22.6).",
            "It is larger than 0; leave the layer out for none.",
        )

    @property
    def name(self) -> str:
        """For messages and tables."""
        return "bias"

    def state(self, parents: Sequence[State]) -> State:
        """The state of the layer.

        Args:
            parents: The layer that it reads.
        """
        (own,) = parents
        return State(own.mean, own.square + bounded(self.variance), own.gap, own.log_gradient)
