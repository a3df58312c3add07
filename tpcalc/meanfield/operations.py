"""What layers do: the few kinds of the recursion, and what a line may say besides."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from math import isfinite, sqrt
from numbers import Integral
from typing import Any

from tpcalc import checks
from tpcalc.errors import StudyError
from tpcalc.functions import Expr, Var
from tpcalc.functions.fn import derivative
from tpcalc.integrals.activation_moments import Kernels
from tpcalc.integrals.bounded import Bounded, bounded
from tpcalc.integrals.given import Act, whole
from tpcalc.networks.layers.low_rank import FAMILIES
from tpcalc.program.base import Table

Number = Fraction | float
RANK = "the rank"
SMALL = "0 is the limit of small ones (condition 22.7)."


class Operation:
    """What a layer does: its numbers, and facts about its kind; all else are rows of tables."""

    __slots__ = ()

    of_inputs = False  # whether a line may read the inputs themselves
    bends = False  # whether what it makes is no longer Gaussian
    matrix = False  # whether it multiplies by weights
    normalises = ""  # what it takes averages over
    span = ""  # what it adds in the span of the map before: "span" or "shared"

    @property
    def name(self) -> str:
        """For messages and tables."""
        raise NotImplementedError

    @property
    def reads(self) -> int:
        """How many layers it reads."""
        return 1


def number(
    layer: object, name: str, what: str, hint: str | None = None, **ends: float | None
) -> None:
    """A number of a layer, between ends."""
    found: Any = partial(checks.real, getattr(layer, name), what, hint=hint)
    object.__setattr__(layer, name, found(**ends))


def checked_family(family: str, known: Collection[str], where: str | None = None) -> None:
    """Refuse a family of weights that is none of the known ones."""
    if not isinstance(family, str) or family not in known:
        hint = f"They are {', '.join(known)}."
        raise StudyError(f"weights are {family!r}.", where=where, hint=hint)


def _required(holds: bool, where: str, said: str, hint: str) -> None:
    """Refuse the description of a layer unless it makes sense."""
    if not holds:
        raise StudyError(said, where=where, hint=hint)


def _finite(value: Number) -> bool:
    """Whether a number is finite as a float."""
    try:
        return isfinite(value)
    except (OverflowError, TypeError):
        return False


def _whole(value: Any, least: int) -> bool:
    """Whether a count is a whole number from some on; 3.0 is no name for 3."""
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= least


@dataclass(frozen=True)
class Activation(Operation):
    """A function of every coordinate.

    Args:
        tau: The activation: a name, ``tp.tanh``, a formula or a function of expressions.
        label: Its name.

    Raises:
        StudyError: A constant.

    Source: Schoenherr, The nonlinearity coefficient, table 5.3.
    """

    tau: Act
    label: str = ""

    of_inputs = bends = True

    def __post_init__(self) -> None:
        found = whole(self.tau)
        if not (self.label or found.text == found.expr.text):
            object.__setattr__(self, "label", found.text)
        object.__setattr__(self, "tau", found.expr)
        _required(
            derivative(self.tau, Var(0)).text != "0",
            "Activation",
            f"the activation {self.name} is a constant, or has the slope 0 almost everywhere "
            "(condition 22.2).",
            "Take one that inputs pass through.",
        )

    @cached_property
    def kernels(self) -> Kernels:
        """Its averages."""
        return Kernels(self.tau)

    @property
    def expr(self) -> Expr:
        """The function, of ``Var(0)``."""
        found: Expr = self.tau
        return found

    @property
    def name(self) -> str:
        """For messages and tables."""
        return self.label or self.tau.text


@dataclass(frozen=True, slots=True)
class Addition(Operation):
    """A weighted sum of layers that are independent but for their inputs.

    Args:
        weights: One for each of them, none 0.

    Raises:
        StudyError: No weights, or one that is 0.

    Source: Schoenherr, The nonlinearity coefficient, table 5.3; the products of means where two
        activations are added are those of table 5.1.
    """

    weights: tuple[Number, ...]

    name = "addition"
    of_inputs = True

    def __post_init__(self) -> None:
        _required(
            bool(self.weights) and all(w != 0 and _finite(w) for w in self.weights),
            "Addition",
            f"the weights of a sum are {', '.join(map(checks.shown, self.weights)) or 'none'} "
            "(condition 22.3).",
            "Give one for each layer that is added, none of them 0.",
        )

    @property
    def reads(self) -> int:
        """How many layers it reads."""
        return len(self.weights)


@dataclass(frozen=True, slots=True)
class Bias(Operation):
    """Addition of a vector N(0, variance), the same for all inputs.

    Args:
        variance: sigma^2.

    Raises:
        StudyError: No variance.

    Source: Schoenherr, The nonlinearity coefficient, table 5.3.
    """

    variance: Number

    name = "bias"

    def __post_init__(self) -> None:
        hint = "Leave the layer out for none (condition 22.6)."
        number(self, "variance", "the variance of the biases", hint, above=0)


@dataclass(frozen=True, slots=True)
class Dense(Operation):
    """Multiplication by fresh weights of the variance sigma^2 / fan-in.

    In the limit all families give the same state; they differ in the spectrum of the Jacobian. Of
    low rank, or with a power of n, it is what a line says, and more than one layer.

    Args:
        variance: sigma^2.
        family: ``"gaussian"`` or ``"orthogonal"``: entries of a scaled Haar orthogonal matrix; of
            low rank those of ``tp.layers.LowRank``.
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

    of_inputs = matrix = True
    mean = Bounded(0.0)  # what means are multiplied by

    def __post_init__(self) -> None:
        number(self, "variance", "the variance of the weights", "Condition 22.5.", above=0)
        checked_family(self.family, FAMILIES, "dense")
        if self.rank is not None:
            number(self, "rank", RANK, "A layer of rank 0 passes nothing on.", above=0, most=1)
        number(self, "width", "the width of the layer over n", above=0)
        _required(
            self.outputs is None or _whole(self.outputs, 1),
            "dense",
            f"the layer is {self.width} n wide, with {self.outputs} outputs.",
            "Its outputs are a whole number above 0.",
        )
        _required(
            isinstance(self.exponent, int | Fraction),
            "dense",
            f"the power of n in the variance of the weights is {checks.shown(self.exponent)}.",
            "It is a whole number or a Fraction.",
        )
        _required(
            self.outputs is None or self.rank is None,
            "dense",
            "a readout has no rank of its own.",
            "Leave the rank out.",
        )

    @property
    def name(self) -> str:
        """For messages and tables."""
        return "dense" if self.outputs is None else "readout"

    @property
    def factor(self) -> Bounded:
        """What second moments are multiplied by."""
        return bounded(self.variance)


@dataclass(frozen=True, slots=True)
class Gain(Operation):
    """Multiplication by a function of a start vector, the same for all inputs: a mask.

    Args:
        tau: The function.
        variance: Of the start vector.

    Source: The rules of Schoenherr, The nonlinearity coefficient, table 5.3, for a function of two
        independent vectors.
    """

    tau: Expr
    variance: Number

    name = "gain"

    @property
    def factor(self) -> Bounded:
        """What second moments are multiplied by."""
        return Kernels(self.tau).second(bounded(self.variance))

    @property
    def mean(self) -> Bounded:
        """What means are multiplied by."""
        return Kernels(self.tau).mean(bounded(self.variance))


@dataclass(frozen=True, slots=True)
class Input(Operation):
    """Inputs of second moment q, any two of them with second moment c.

    Args:
        square: q.
        comean: c, below q and not negative.

    Raises:
        StudyError: Other moments.

    Example:
        >>> Input(1.0, 0.25).name
        'input'
    """

    square: Number = Fraction(1)
    comean: Number = Fraction(0)

    name = "input"
    reads = 0

    def __post_init__(self) -> None:
        _required(
            all(map(_finite, (self.comean, self.square))) and 0 <= self.comean < self.square,
            "Input",
            f"inputs have the second moments q = {self.square} and c = {self.comean}.",
            "c is at least 0 and smaller than q.",
        )


@dataclass(frozen=True, slots=True)
class LayerNorm(Operation):
    """Subtraction of the mean over coordinates, division by sqrt(variance + epsilon).

    Args:
        epsilon: Added to the variance; 0 for the limit of small ones.
        centred: Whether the mean is subtracted; without it this is RMS norm, division by the root
            of the mean square + epsilon.

    Raises:
        StudyError: A negative epsilon.

    Source: Schoenherr, The nonlinearity coefficient, table 5.3; after an activation, section 5.1.
    """

    epsilon: Number = Fraction(0)
    centred: bool = True

    normalises = "coordinates"

    def __post_init__(self) -> None:
        number(self, "epsilon", "epsilon", SMALL, least=0)

    @property
    def name(self) -> str:
        """For messages and tables."""
        return "layer norm" if self.centred else "RMS norm"


@dataclass(frozen=True, slots=True)
class BatchNorm(Operation):
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
    """

    batch: int | None = None
    epsilon: Number = Fraction(0)

    name = "batch norm"
    normalises = "the batch"

    def __post_init__(self) -> None:
        number(self, "epsilon", "epsilon", SMALL, least=0)
        _required(
            self.batch is None or _whole(self.batch, 4),
            "BatchNorm",
            f"the batch has {self.batch} inputs.",
            "It is a whole number from 4 on, where derivatives have a finite mean square; None is "
            "an infinite batch.",
        )


@dataclass(frozen=True, slots=True)
class Product(Operation):
    """The product of two layers that are independent but for their inputs.

    Second moments of independent factors multiply; of the derivative x' y + x y' the two terms are
    uncorrelated, as x' has mean 0 given x.

    Source: The rules of Schoenherr, The nonlinearity coefficient, table 5.3, for a function of two
        independent layers.
    """

    name = "product"
    reads = 2
    of_inputs = bends = True


@dataclass(frozen=True, slots=True)
class SpanBias(Operation):
    """Addition of C b, where the map before is C A and b has entries N(0, variance): a line alone.

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

    name, span = "bias in the span", "span"
    drawn = None

    def __post_init__(self) -> None:
        _check_bias(self)


@dataclass(frozen=True, slots=True)
class SharedBias(Operation):
    """Addition of one number b ~ N(0, variance) to all coordinates, or directions of a span.

    It adds b^2 to second moments, which stays random however wide the layer is: its mean is
    sigma_b^2, its standard deviation sqrt(2) sigma_b^2. A state exists given b.

    Args:
        variance: sigma_b^2.
        rank: gamma of the map before, in a line.
        drawn: b; None: not drawn yet (``tp.signal.spread`` draws it).

    Raises:
        StudyError: No variance or no rank, or a b that is none.

    Source: On the initialisation of wide low-rank feedforward neural networks, section 2, as
        printed there.
    """

    variance: Number
    rank: Number = Fraction(1)
    drawn: float | None = None

    name, span = "shared bias", "shared"

    def __post_init__(self) -> None:
        _check_bias(self)
        if self.drawn is not None:
            number(self, "drawn", "the bias that is drawn")

    @property
    def added(self) -> Bounded:
        """B; it is refused where it is not drawn: the state is random at any width."""
        if self.drawn is None:
            mean = float(self.variance)
            raise StudyError(
                "one bias shared by all directions does not self-average: it adds "
                f"{mean:.6g} ± {sqrt(2) * mean:.6g} to the second moment.",
                hint="Take a number in its place, tp.signal.spread, or a bias for each direction.",
            )
        return bounded(self.drawn)


def _check_bias(bias: SpanBias | SharedBias) -> None:
    number(bias, "variance", "the variance of the biases", above=0)
    number(bias, "rank", RANK, above=0, most=1)


def batches(operations: Iterable[Operation]) -> list[int | None]:
    """The sizes of the batches that operations normalise over."""
    return [size for operation in operations for size in _BATCHES(operation)]


_BATCHES: Table[tuple[int | None, ...]] = Table(
    {BatchNorm: lambda operation: (operation.batch,)}, lambda operation: ()
)


weights_of: Table[tuple[Number, ...]] = Table(
    {Addition: lambda operation: operation.weights}, lambda operation: ()
)
"""The weights of a sum; () of what is none."""
