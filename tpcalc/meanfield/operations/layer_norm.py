"""Layer normalisation, and the one without means."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from tpcalc.integrals.bounded import Bounded, bounded
from tpcalc.meanfield.operations.operation import Number, required
from tpcalc.meanfield.state import State, logarithm, ratio


@dataclass(frozen=True, slots=True)
class LayerNorm:
    """Subtraction of the mean over coordinates, division by sqrt(variance + epsilon).

    Args:
        epsilon: Added to the variance; 0 for the limit of small ones.
        centred: Whether the mean is subtracted; without it this is RMS norm, division by the root
            of the mean square + epsilon.

    Raises:
        StudyError: A negative epsilon.

    Source: Schoenherr, The nonlinearity coefficient, table 5.3; after an activation, section 5.1.

    Example:
        >>> from tpcalc.meanfield.operations import Input
        >>> round(LayerNorm().state([Input(4.0, 1.0).state(())]).gap.value, 12)
        0.75
    """

    epsilon: Number = Fraction(0)
    centred: bool = True

    def __post_init__(self) -> None:
        required(
            0 <= self.epsilon < float("inf"),
            "LayerNorm",
            f"epsilon is {self.epsilon} (condition 22.7).",
            "It is larger than 0, or 0 for the limit of small ones.",
        )

    @property
    def name(self) -> str:
        """For messages and tables."""
        return "layer norm" if self.centred else "RMS norm"

    def state(self, parents: Sequence[State]) -> State:
        """The state of the layer.

        Args:
            parents: The layer that it reads.
        """
        (own,) = parents
        spread = self.spread(own)
        under = spread + bounded(self.epsilon)
        square = ratio(spread, under) if self.epsilon else Bounded(1.0)
        mean = Bounded(0.0) if self.centred else own.mean * under.inverse().root()
        return State(mean, square, ratio(own.gap, under), own.log_gradient - logarithm(under))

    def spread(self, own: State) -> Bounded:
        """The variance of coordinates, or their mean square.

        Args:
            own: The layer that it reads.
        """
        return own.square - own.mean * own.mean if self.centred else own.square
