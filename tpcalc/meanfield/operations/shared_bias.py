"""One bias for all coordinates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

from tpcalc.errors import StudyError
from tpcalc.integrals.bounded import Bounded, bounded
from tpcalc.meanfield.operations.operation import Number
from tpcalc.meanfield.state import State


@dataclass(frozen=True, slots=True)
class SharedBias:
    """Addition of one number b ~ N(0, variance) to all coordinates.

    It adds b^2 to second moments, which stays random however wide the layer is: its mean is
    sigma_b^2, its standard deviation sqrt(2) sigma_b^2. A state exists given b.

    Args:
        variance: sigma_b^2.
        drawn: b; None: not drawn yet (``spread`` draws it).

    Source: On the initialisation of wide low-rank feedforward neural networks, section 2, as
        printed there.

    Example:
        >>> from tpcalc.meanfield.operations import Input
        >>> SharedBias(0.4, drawn=0.5).state([Input(1.0, 0.5).state(())]).square.value
        1.25
    """

    variance: Number
    drawn: float | None = None

    @property
    def name(self) -> str:
        """For messages and tables."""
        return "shared bias"

    @property
    def added(self) -> Bounded:
        """B.

        Raises:
            StudyError: b is not drawn: the state is random at any width.
        """
        if self.drawn is None:
            mean = float(self.variance)
            raise StudyError(
                "one bias shared by all directions does not self-average: it adds "
                f"{mean:.6g} to the second moment on average, with a standard deviation of "
                f"{sqrt(2) * mean:.6g} at any width.",
                hint="Add a number in its place, take tp.signal.spread for mean and spread over "
                "draws, or one bias for each direction.",
            )
        return bounded(self.drawn)

    def state(self, parents: Sequence[State]) -> State:
        """The state of the layer.

        Args:
            parents: The layer that it reads.

        Raises:
            StudyError: b is not drawn.
        """
        (own,) = parents
        b = self.added
        square = own.square + b * b + 2 * b * own.mean
        return State(own.mean + b, square, own.gap, own.log_gradient)
