"""The inputs of a layer graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from tpcalc.integrals.bounded import Bounded, bounded
from tpcalc.meanfield.operations.operation import Number, finite, required
from tpcalc.meanfield.state import State


@dataclass(frozen=True, slots=True)
class Input:
    """Inputs of second moment q, any two of them with second moment c.

    Args:
        square: q.
        comean: c, below q and not negative.

    Raises:
        StudyError: Other moments.

    Example:
        >>> Input(1.0, 0.25).state(()).gap.value
        0.75
    """

    square: Number = Fraction(1)
    comean: Number = Fraction(0)

    def __post_init__(self) -> None:
        required(
            0 <= self.comean < self.square and finite(self.square),
            "Input",
            f"inputs have the second moments q = {self.square} and c = {self.comean}.",
            "c is at least 0 and smaller than q.",
        )

    @property
    def name(self) -> str:
        """For messages and tables."""
        return "input"

    def state(self, parents: Sequence[State]) -> State:
        """The state of the inputs.

        Args:
            parents: None.
        """
        gap = bounded(self.square - self.comean)
        return State(Bounded(0.0), bounded(self.square), gap, Bounded(0.0))
