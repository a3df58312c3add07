"""Fully connected layers, of full or of low rank."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from tpcalc.errors import StudyError
from tpcalc.evaluate.bounded import Bounded, bounded
from tpcalc.signal.operations.operation import Number, positive, required, whole
from tpcalc.signal.state import State, logarithm

__all__ = ["FAMILIES", "Dense"]

FAMILIES = ("gaussian", "orthogonal", "gaussian-gaussian", "padded")


@dataclass(frozen=True, slots=True)
class Dense:
    """Multiplication by fresh weights.

    Of full rank, entries have the variance sigma^2 / fan-in: independent Gaussians, or the entries
    of a scaled Haar orthogonal matrix. Of the rank r = gamma times the width of the layer, weights
    are C A with orthonormal C and Gaussian A of variance sigma^2 / fan-in (``"gaussian"``), sigma
    U V^T with Haar U and V (``"orthogonal"``), C A with Gaussian C of variance 1 / width
    (``"gaussian-gaussian"``), or sigma times orthonormal columns and columns of 0 (``"padded"``);
    entries then have the variance gamma sigma^2 / fan-in. In the limit all families give the same
    state; they differ in the spectrum of the Jacobian.

    Args:
        variance: sigma^2.
        family: ``"gaussian"``, ``"orthogonal"``, ``"gaussian-gaussian"`` or ``"padded"``.
        rank: gamma, the rank over the width of the layer; None for full rank.
        width: The width of the layer over n.
        outputs: A number of coordinates that does not grow: a readout, the last layer.
        exponent: The variance has the further factor n to this power; only ``exponents`` and
            programs take one that is not 0.

    Raises:
        StudyError: A variance, rank, width or family that is none.

    Source: Schoenherr, The nonlinearity coefficient, table 5.3; On the initialisation of wide
        low-rank feedforward neural networks, equation 2 and section 3.

    Example:
        >>> from tpcalc.signal.operations import Input
        >>> Dense(2.0).state([Input(1.0, 0.5).state(())]).gap.value
        1.0
        >>> Dense(2.0, rank=0.25).state([Input(1.0, 0.5).state(())]).square.value
        0.5
    """

    variance: Number = Fraction(1)
    family: str = "gaussian"
    rank: Number | None = None
    width: Number = Fraction(1)
    outputs: int | None = None
    exponent: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        required(
            positive(self.variance),
            "Dense",
            f"the variance of the weights is {self.variance} (condition 22.5).",
            "It is larger than 0.",
        )
        required(
            self.family in FAMILIES,
            "Dense",
            f"weights are {self.family!r}.",
            f"They are {', '.join(FAMILIES)}.",
        )
        required(
            self.rank is None or 0 < self.rank <= 1,
            "Dense",
            f"the rank is {self.rank} of the width of the layer.",
            "It is above 0 and at most 1; a layer of rank 0 passes nothing on.",
        )
        required(
            positive(self.width)
            and (self.outputs is None or (whole(self.outputs) and self.outputs >= 1)),
            "Dense",
            f"the layer is {self.width} n wide, with {self.outputs} outputs.",
            "Both are larger than 0, outputs are a whole number.",
        )
        required(
            isinstance(self.exponent, int | Fraction),
            "Dense",
            f"the power of n in the variance of the weights is {self.exponent!r}.",
            "It is a whole number or a Fraction.",
        )

    @property
    def name(self) -> str:
        """For messages and tables."""
        return "dense" if self.outputs is None else "readout"

    @property
    def effective(self) -> Bounded:
        """The product gamma sigma^2, what the second moment of the inputs is multiplied by."""
        return bounded(self.variance) * bounded(1 if self.rank is None else self.rank)

    def state(self, parents: Sequence[State]) -> State:
        """The state of the layer.

        Args:
            parents: The layer that it reads.

        Raises:
            StudyError: The variance has a power of n.
        """
        if self.exponent != 0:
            raise StudyError(
                f"weights have the variance {self.variance} n^({self.exponent}) / fan-in, so that "
                "the layer vanishes or grows with n.",
                hint="tpcalc.signal.exponents says how; give the exponent 0 for a state.",
            )
        (own,) = parents
        s = self.effective
        return State(Bounded(0.0), s * own.square, s * own.gap, own.log_gradient + logarithm(s))
