"""Normalisations of layers, with means or without, and of batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from tpcalc.integrals.bounded import Bounded, bounded
from tpcalc.meanfield.operations.operation import Number, number, required, whole
from tpcalc.meanfield.state import State, logarithm, ratio

SMALL = "0 is the limit of small ones (condition 22.7)."


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
        number(self, "epsilon", "epsilon", SMALL, least=0)

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


@dataclass(frozen=True, slots=True)
class BatchNorm:
    """Subtraction of the mean over the batch, division by sqrt(variance + epsilon), per coordinate.

    Args:
        batch: The size of the batch; None: infinite. A finite one makes derivatives larger, by
            (B - 2) / (B - 3) on average; that two inputs of one batch have the co-mean
            -1 / (B - 1) is left out, as are finite batches that are not much larger than 1.
        epsilon: Added to the variance; 0 for the limit of small ones.

    Raises:
        StudyError: A batch of fewer than 4 inputs, or a negative epsilon.

    Source: Schoenherr, The nonlinearity coefficient, table 5.3 and section 11.6.3; the factor is
        the mean of 1 / variance over batches of Gaussians.

    Example:
        >>> from tpcalc.meanfield.operations import Input
        >>> found = BatchNorm().state([Input(4.0, 1.0).state(())])
        >>> found.gap.value, round(found.gradient, 12)
        (1.0, 0.333333333333)
        >>> round(BatchNorm(batch=5).state([Input(4.0, 1.0).state(())]).gradient, 12)
        0.5
    """

    batch: int | None = None
    epsilon: Number = Fraction(0)

    def __post_init__(self) -> None:
        number(self, "epsilon", "epsilon", SMALL, least=0)
        required(
            self.batch is None or (whole(self.batch) and self.batch >= 4),
            "BatchNorm",
            f"the batch has {self.batch} inputs.",
            "It is a whole number from 4 on, where derivatives have a finite mean square; None is "
            "an infinite batch.",
        )

    name: ClassVar[str] = "batch norm"

    @property
    def excess(self) -> Bounded:
        """(B - 2) / (B - 3), the factor of derivatives in finite batches."""
        if self.batch is None:
            return Bounded(1.0)
        return bounded(Fraction(self.batch - 2, self.batch - 3))

    def state(self, parents: Sequence[State]) -> State:
        """The state of the layer.

        Args:
            parents: The layer that it reads.
        """
        (own,) = parents
        under = own.gap + bounded(self.epsilon)
        square = ratio(own.gap, under) if self.epsilon else Bounded(1.0)
        gradient = own.log_gradient - logarithm(under) + logarithm(self.excess)
        return State(Bounded(0.0), square, square, gradient)
