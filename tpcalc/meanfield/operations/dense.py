"""Fully connected layers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from tpcalc.integrals.bounded import Bounded, bounded
from tpcalc.meanfield.operations.operation import Number
from tpcalc.meanfield.state import State, logarithm


@dataclass(frozen=True, slots=True)
class Dense:
    """Multiplication by fresh weights of the variance sigma^2 / fan-in.

    In the limit all laws give the same state; they differ in the spectrum of the Jacobian.

    Args:
        variance: sigma^2.
        law: ``"gaussian"`` or ``"orthogonal"``: entries of a scaled Haar orthogonal matrix.
        width: The width of the layer over n.
        outputs: A number of coordinates that does not grow: a readout, the last layer.

    Source: Schoenherr, The nonlinearity coefficient, table 5.3.

    Example:
        >>> from tpcalc.meanfield.operations import Input
        >>> Dense(2.0).state([Input(1.0, 0.5).state(())]).gap.value
        1.0
    """

    variance: Number = Fraction(1)
    law: str = "gaussian"
    width: Number = Fraction(1)
    outputs: int | None = None

    @property
    def name(self) -> str:
        """For messages and tables."""
        return "dense" if self.outputs is None else "readout"

    @property
    def factor(self) -> Bounded:
        """What the second moment of the inputs is multiplied by."""
        return bounded(self.variance)

    def state(self, parents: Sequence[State]) -> State:
        """The state of the layer.

        Args:
            parents: The layer that it reads.
        """
        (own,) = parents
        s = self.factor
        return State(Bounded(0.0), s * own.square, s * own.gap, own.log_gradient + logarithm(s))
