"""Biases in the span of the columns of a layer of low rank."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

from tpcalc.errors import StudyError
from tpcalc.evaluate.bounded import bounded
from tpcalc.signal.operations.operation import Number, finite, positive, required
from tpcalc.signal.state import State

__all__ = ["SharedBias", "SpanBias"]


@dataclass(frozen=True, slots=True)
class SpanBias:
    """Addition of C b, where the dense layer before is C A and b has entries N(0, variance).

    Args:
        variance: sigma_b^2.
        rank: gamma of the dense layer.

    Raises:
        StudyError: No variance or no rank.

    Source: On the initialisation of wide low-rank feedforward neural networks, section 2, with one
        b for each direction, as equation 3 needs it.

    Example:
        >>> from tpcalc.signal.operations import Input
        >>> SpanBias(0.4, 0.25).state([Input(1.0, 0.5).state(())]).square.value
        1.1
    """

    variance: Number
    rank: Number

    def __post_init__(self) -> None:
        _check("SpanBias", self.variance, self.rank)

    @property
    def name(self) -> str:
        """For messages and tables."""
        return "bias in the span"

    def state(self, parents: Sequence[State]) -> State:
        """The state of the layer.

        Args:
            parents: The layer that it reads.
        """
        (own,) = parents
        added = bounded(self.rank) * bounded(self.variance)
        return State(own.mean, own.square + added, own.gap, own.log_gradient)


@dataclass(frozen=True, slots=True)
class SharedBias:
    """Addition of b C (1, ..., 1): one number b ~ N(0, variance) for all directions.

    It adds gamma b^2 to second moments, which stays random however wide the layer is: its mean is
    gamma sigma_b^2, its standard deviation sqrt(2) gamma sigma_b^2. A state exists given b.

    Args:
        variance: sigma_b^2.
        rank: gamma of the dense layer.
        drawn: b; None: not drawn yet (``spread`` draws it).

    Raises:
        StudyError: No variance or no rank.

    Source: On the initialisation of wide low-rank feedforward neural networks, section 2, as
        printed there.

    Example:
        >>> from tpcalc.signal.operations import Input
        >>> SharedBias(0.4, 0.25, drawn=1.0).state([Input(1.0, 0.5).state(())]).square.value
        1.25
    """

    variance: Number
    rank: Number
    drawn: float | None = None

    def __post_init__(self) -> None:
        _check("SharedBias", self.variance, self.rank)
        required(
            self.drawn is None or finite(self.drawn),
            "SharedBias",
            f"the bias that is drawn is {self.drawn}.",
            "It is a number; None: not drawn yet.",
        )

    @property
    def name(self) -> str:
        """For messages and tables."""
        return "shared bias"

    def state(self, parents: Sequence[State]) -> State:
        """The state of the layer.

        Args:
            parents: The layer that it reads.

        Raises:
            StudyError: b is not drawn: the state is random at any width.
        """
        (own,) = parents
        if self.drawn is None:
            mean = float(self.rank) * float(self.variance)
            raise StudyError(
                "one bias shared by all directions does not self-average: it adds "
                f"{mean:.6g} to the second moment on average, with a standard deviation of "
                f"{sqrt(2) * mean:.6g} at any width.",
                hint="Give drawn=, take tpcalc.signal.spread for mean and spread over draws, or "
                "SpanBias for one bias for each direction.",
            )
        added = bounded(self.rank) * bounded(self.drawn) * bounded(self.drawn)
        return State(own.mean, own.square + added, own.gap, own.log_gradient)


def _check(where: str, variance: Number, rank: Number) -> None:
    required(
        positive(variance) and 0 < rank <= 1,
        where,
        f"the biases have the variance {variance}, the rank is {rank} of the width.",
        "The variance is larger than 0; the rank is above 0 and at most 1.",
    )
