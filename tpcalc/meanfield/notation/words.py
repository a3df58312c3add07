"""What a line of the notation may say besides what is a layer of the recursion."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from tpcalc.meanfield.operations import Number
from tpcalc.meanfield.operations.operation import number, required, whole
from tpcalc.meanfield.spectra.finite import checked_family
from tpcalc.networks.layers.low_rank import FAMILIES

RANK = "the rank"


@dataclass(frozen=True, slots=True)
class Map:
    """A linear map, of full or of low rank.

    Args:
        variance: sigma^2: entries of full rank have the variance sigma^2 / fan-in.
        family: ``"gaussian"`` or ``"orthogonal"``; of low rank those of ``tp.layers.LowRank``.
        rank: The rank over the width of the layer; None for full rank.
        width: The width of the layer over n.
        outputs: A number of coordinates that does not grow: a readout, the last layer.
        exponent: The variance has the further factor n to this power.

    Raises:
        StudyError: A variance, rank, width or family that is none.

    Source: Schoenherr, The nonlinearity coefficient, table 5.3; On the initialisation of wide
        low-rank feedforward neural networks, equation 2 and section 3.
    """

    variance: Number = Fraction(1)
    family: str = "gaussian"
    rank: Number | None = None
    width: Number = Fraction(1)
    outputs: int | None = None
    exponent: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        number(self, "variance", "the variance of the weights", "Condition 22.5.", above=0)
        checked_family(self.family, FAMILIES, "dense")
        if self.rank is not None:
            number(self, "rank", RANK, "A layer of rank 0 passes nothing on.", above=0, most=1)
        number(self, "width", "the width of the layer over n", above=0)
        required(
            self.outputs is None or (whole(self.outputs) and self.outputs >= 1),
            "dense",
            f"the layer is {self.width} n wide, with {self.outputs} outputs.",
            "Its outputs are a whole number above 0.",
        )
        required(
            isinstance(self.exponent, int | Fraction),
            "dense",
            f"the power of n in the variance of the weights is {self.exponent!r}.",
            "It is a whole number or a Fraction.",
        )
        required(
            self.outputs is None or self.rank is None,
            "dense",
            "a readout has no rank of its own.",
            "Leave the rank out.",
        )

    @property
    def name(self) -> str:
        """For messages."""
        return "dense" if self.outputs is None else "readout"


@dataclass(frozen=True, slots=True)
class SpanBias:
    """Addition of C b, where the map before is C A and b has entries N(0, variance).

    Args:
        variance: sigma_b^2.
        rank: gamma of that map.

    Raises:
        StudyError: No variance or no rank.

    Source: On the initialisation of wide low-rank feedforward neural networks, section 2, with one
        b for each direction, as equation 3 needs it.
    """

    variance: Number
    rank: Number

    def __post_init__(self) -> None:
        _check(self)

    name: ClassVar[str] = "bias in the span"


@dataclass(frozen=True, slots=True)
class SharedBias:
    """Addition of b C (1, ..., 1): one number b ~ N(0, variance) for all directions.

    Args:
        variance: sigma_b^2.
        rank: gamma of the map before.
        drawn: b; None: not drawn yet (``tp.signal.spread`` draws it).

    Raises:
        StudyError: No variance or no rank, or a b that is none.

    Source: On the initialisation of wide low-rank feedforward neural networks, section 2, as
        printed there.
    """

    variance: Number
    rank: Number
    drawn: float | None = None

    def __post_init__(self) -> None:
        _check(self)
        if self.drawn is not None:
            number(self, "drawn", "the bias that is drawn")

    name: ClassVar[str] = "shared bias"


def _check(bias: SpanBias | SharedBias) -> None:
    number(bias, "variance", "the variance of the biases", above=0)
    number(bias, "rank", RANK, above=0, most=1)
