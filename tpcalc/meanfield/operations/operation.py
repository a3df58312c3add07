"""What layers draw, multiply and add, and what all operations have in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import combinations
from math import isfinite, sqrt
from numbers import Integral
from typing import Any, ClassVar, Protocol

from tpcalc import checks
from tpcalc.errors import StudyError
from tpcalc.functions import Expr
from tpcalc.integrals.activation_moments import Kernels
from tpcalc.integrals.bounded import Bounded, bounded
from tpcalc.meanfield.state import State, exponential, logarithm

Number = Fraction | float


class Operation(Protocol):
    """What a layer does."""

    @property
    def name(self) -> str:
        """For messages and tables."""

    def state(self, parents: Sequence[State]) -> State:
        """The state of the layer."""


def required(holds: bool, where: str, said: str, hint: str) -> None:
    """Refuse the description of a layer unless it makes sense.

    Example:
        >>> required(2 > 0, "Dense", "the variance is 2.", "It is larger than 0.")
    """
    if not holds:
        raise StudyError(said, where=where, hint=hint)


def number(
    layer: object, name: str, what: str, hint: str | None = None, **ends: float | None
) -> None:
    """A number of a layer, between ends."""
    found: Any = partial(checks.real, getattr(layer, name), what, hint=hint)
    object.__setattr__(layer, name, found(**ends))


def finite(value: Number) -> bool:
    """Whether a number is finite as a float.

    Example:
        >>> finite(0.5), finite(Fraction(10**400))
        (True, False)
    """
    try:
        return isfinite(value)
    except (OverflowError, TypeError):
        return False


def whole(value: Number) -> bool:
    """Whether a number is whole; 3.0 is no name for 3.

    Example:
        >>> whole(3), whole(2.5), whole(Fraction(3))
        (True, False, False)
    """
    return isinstance(value, Integral) and not isinstance(value, bool)


@dataclass(frozen=True, slots=True)
class Addition:
    """A weighted sum of layers that are independent but for their inputs.

    Args:
        weights: One for each of them, none 0.

    Raises:
        StudyError: No weights, or one that is 0.

    Source: Schoenherr, The nonlinearity coefficient, table 5.3; the products of means where two
        activations are added are those of table 5.1.

    Example:
        >>> from tpcalc.meanfield.operations import Input
        >>> start = Input(1.0, 0.5).state(())
        >>> Addition((0.5, 2.0)).state([start, start]).square.value
        4.25
    """

    weights: tuple[Number, ...]

    def __post_init__(self) -> None:
        required(
            bool(self.weights) and all(w != 0 and finite(w) for w in self.weights),
            "Addition",
            f"the weights of a sum are {', '.join(map(str, self.weights)) or 'none'} "
            "(condition 22.3).",
            "Give one for each layer that is added, none of them 0.",
        )

    name: ClassVar[str] = "addition"

    def state(self, parents: Sequence[State]) -> State:
        """The state of the layer.

        Args:
            parents: The layers that it reads, in the order of the weights.
        """
        zero = Bounded(0.0)
        mean, square, gap, gradient = zero, zero, zero, zero
        largest = max(part.log_gradient.value for part in parents)
        for weight, part in zip(self.weights, parents, strict=True):
            w = bounded(weight)
            mean = mean + w * part.mean
            square = square + w * w * part.square
            gap = gap + w * w * part.gap
            gradient = gradient + w * w * exponential(part.log_gradient - largest)
        square = square + self.cross(parents)
        return State(mean, square, gap, logarithm(gradient) + largest)

    def cross(self, parents: Sequence[State]) -> Bounded:
        """What products of means of different layers add to second moments.

        Args:
            parents: The layers that it reads, in the order of the weights.
        """
        terms = [bounded(w) * part.mean for w, part in zip(self.weights, parents, strict=True)]
        return sum((2 * left * right for left, right in combinations(terms, 2)), Bounded(0.0))


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
        hint = "Leave the layer out for none (condition 22.6)."
        number(self, "variance", "the variance of the biases", hint, above=0)

    name: ClassVar[str] = "bias"

    def state(self, parents: Sequence[State]) -> State:
        """The state of the layer.

        Args:
            parents: The layer that it reads.
        """
        (own,) = parents
        return State(own.mean, own.square + bounded(self.variance), own.gap, own.log_gradient)


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


@dataclass(frozen=True, slots=True)
class Gain:
    """Multiplication by a function of a start vector, the same for all inputs: a mask.

    Args:
        tau: The function.
        variance: Of the start vector.

    Source: The rules of Schoenherr, The nonlinearity coefficient, table 5.3, for a function of two
        independent vectors.

    Example:
        >>> from tpcalc.functions import Var
        >>> from tpcalc.meanfield.operations import Input
        >>> Gain(Var(0), 4).state([Input(1.0, 0.25).state(())]).gap.value
        3.0
    """

    tau: Expr
    variance: Number

    name: ClassVar[str] = "gain"

    @property
    def mean(self) -> Bounded:
        """The mean of the factors."""
        return Kernels(self.tau).mean(bounded(self.variance))

    @property
    def square(self) -> Bounded:
        """Their second moment."""
        return Kernels(self.tau).second(bounded(self.variance))

    def state(self, parents: Sequence[State]) -> State:
        """The state of the layer."""
        (own,) = parents
        s = self.square
        return State(
            self.mean * own.mean, s * own.square, s * own.gap, own.log_gradient + logarithm(s)
        )


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
            all(map(finite, (self.comean, self.square))) and 0 <= self.comean < self.square,
            "Input",
            f"inputs have the second moments q = {self.square} and c = {self.comean}.",
            "c is at least 0 and smaller than q.",
        )

    name: ClassVar[str] = "input"

    def state(self, parents: Sequence[State]) -> State:
        """The state of the inputs.

        Args:
            parents: None.
        """
        gap = bounded(self.square - self.comean)
        return State(Bounded(0.0), bounded(self.square), gap, Bounded(0.0))


@dataclass(frozen=True, slots=True)
class Product:
    """The product of two layers that are independent but for their inputs.

    Second moments of independent factors multiply; of the derivative x' y + x y' the two terms are
    uncorrelated, as x' has mean 0 given x.

    Source: The rules of Schoenherr, The nonlinearity coefficient, table 5.3, for a function of two
        independent layers.

    Example:
        >>> from tpcalc.meanfield.operations import Input
        >>> start = Input(2.0, 0.5).state(())
        >>> found = Product().state([start, start])
        >>> found.square.value, found.comean.value, round(found.gradient, 12)
        (4.0, 0.25, 4.0)
    """

    name: ClassVar[str] = "product"

    def state(self, parents: Sequence[State]) -> State:
        """The state of the layer.

        Args:
            parents: The two layers that it reads.
        """
        one, other = parents
        largest = max(one.log_gradient.value, other.log_gradient.value)
        gradient = exponential(one.log_gradient - largest) * other.square
        gradient = gradient + exponential(other.log_gradient - largest) * one.square
        return State(
            one.mean * other.mean,
            one.square * other.square,
            one.gap * other.square + one.comean * other.gap,
            logarithm(gradient) + largest,
        )


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

    name: ClassVar[str] = "shared bias"

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
                f"{mean:.6g} ± {sqrt(2) * mean:.6g} to the second moment.",
                hint="Take a number in its place, tp.signal.spread, or a bias for each direction.",
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
