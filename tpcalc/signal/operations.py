"""What layers do to the mean-field state, one class for each operation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Protocol

from tpcalc.errors import StudyError
from tpcalc.evaluate.bounded import Bounded, bounded
from tpcalc.functions import Expr
from tpcalc.signal.kernels import Kernels
from tpcalc.signal.state import State, logarithm

__all__ = [
    "Activation",
    "Addition",
    "BatchNorm",
    "Bias",
    "Dense",
    "Input",
    "LayerNorm",
    "Operation",
]

Number = Fraction | float


class Operation(Protocol):
    """What a layer does."""

    @property
    def name(self) -> str:
        """For messages and tables."""
        ...

    def state(self, parents: Sequence[State]) -> State:
        """The state of the layer.

        Args:
            parents: Those of the layers that it reads.
        """
        ...


@dataclass(frozen=True, slots=True)
class Input:
    """Inputs of second moment q, any two of them with second moment c.

    Args:
        square: q.
        comean: c, below q and not negative.

    Example:
        >>> Input(1.0, 0.25).state(()).gap.value
        0.75
    """

    square: Number = Fraction(1)
    comean: Number = Fraction(0)

    def __post_init__(self) -> None:
        if not 0 <= self.comean < self.square:
            raise StudyError(
                f"inputs have the second moments q = {self.square} and c = {self.comean}.",
                where="Input",
                hint="c is at least 0 and smaller than q.",
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


@dataclass(frozen=True, slots=True)
class Dense:
    """Multiplication by weights N(0, variance / fan-in), fresh for each layer.

    Args:
        variance: sigma^2, times the fan-in.

    Example:
        >>> Dense(2.0).state([Input(1.0, 0.5).state(())]).gap.value
        1.0
    """

    variance: Number = Fraction(1)

    def __post_init__(self) -> None:
        _positive(self.variance, "Dense", "the variance of the weights")

    @property
    def name(self) -> str:
        """For messages and tables."""
        return "dense"

    def state(self, parents: Sequence[State]) -> State:
        """The state of the layer.

        Args:
            parents: The layer that it reads.
        """
        (own,) = parents
        s = bounded(self.variance)
        return State(Bounded(0.0), s * own.square, s * own.gap, own.log_gradient + logarithm(s))


@dataclass(frozen=True, slots=True)
class Bias:
    """Addition of a vector N(0, variance), the same for all inputs.

    Args:
        variance: sigma^2.

    Example:
        >>> Bias(0.5).state([Input(1.0, 0.5).state(())]).bias
        1.7320508075688772
    """

    variance: Number

    def __post_init__(self) -> None:
        _positive(self.variance, "Bias", "the variance of the biases")

    @property
    def name(self) -> str:
        """For messages and tables."""
        return "bias"

    def state(self, parents: Sequence[State]) -> State:
        """The state of the layer.

        Args:
            parents: The layer that it reads.
        """
        (own,) = parents
        return State(own.mean, own.square + bounded(self.variance), own.gap, own.log_gradient)


@dataclass(frozen=True)
class Activation:
    """A function of every coordinate.

    Args:
        tau: The function, an expression of ``Var(0)``.
        label: Its name.

    Example:
        >>> from tpcalc.catalog.activations import lookup
        >>> found = Activation(lookup("relu").fn.expr).state([Input().state(())])
        >>> found.square.value, round(found.gap.value, 6)
        (0.5, 0.340845)
    """

    tau: Expr
    label: str = ""
    _kernels: Kernels = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_kernels", Kernels(self.tau))

    @property
    def name(self) -> str:
        """For messages and tables."""
        return self.label or self.tau.text

    def state(self, parents: Sequence[State]) -> State:
        """The state of the layer.

        Args:
            parents: The layer that it reads.
        """
        (own,) = parents
        q, kernels = own.square, self._kernels
        return State(
            kernels.mean(q),
            kernels.second(q),
            kernels.gap(q, own.gap),
            own.log_gradient + logarithm(kernels.slope(q)),
        )


@dataclass(frozen=True, slots=True)
class LayerNorm:
    """Subtraction of the mean over coordinates, division by their standard deviation.

    Example:
        >>> round(LayerNorm().state([Input(4.0, 1.0).state(())]).gap.value, 12)
        0.75
    """

    @property
    def name(self) -> str:
        """For messages and tables."""
        return "layer norm"

    def state(self, parents: Sequence[State]) -> State:
        """The state of the layer.

        Args:
            parents: The layer that it reads.
        """
        (own,) = parents
        spread = own.square - own.mean * own.mean
        return State(
            Bounded(0.0),
            Bounded(1.0),
            _ratio(own.gap, spread),
            own.log_gradient - logarithm(spread),
        )


@dataclass(frozen=True, slots=True)
class BatchNorm:
    """The same over a batch of infinite size, for each coordinate.

    Example:
        >>> found = BatchNorm().state([Input(4.0, 1.0).state(())])
        >>> found.gap.value, round(found.gradient, 12)
        (1.0, 0.333333333333)
    """

    @property
    def name(self) -> str:
        """For messages and tables."""
        return "batch norm"

    def state(self, parents: Sequence[State]) -> State:
        """The state of the layer.

        Args:
            parents: The layer that it reads.
        """
        (own,) = parents
        one = Bounded(1.0)
        return State(Bounded(0.0), one, one, own.log_gradient - logarithm(own.gap))


@dataclass(frozen=True, slots=True)
class Addition:
    """A weighted sum of layers that are independent but for their inputs.

    Args:
        weights: One for each of them, none 0.

    Example:
        >>> start = Input(1.0, 0.5).state(())
        >>> Addition((0.5, 2.0)).state([start, start]).square.value
        4.25
    """

    weights: tuple[Number, ...]

    def __post_init__(self) -> None:
        if not self.weights or 0 in self.weights:
            raise StudyError(
                f"the weights of a sum are {', '.join(map(str, self.weights)) or 'none'}.",
                where="Addition",
                hint="Give one for each layer that is added, none of them 0.",
            )

    @property
    def name(self) -> str:
        """For messages and tables."""
        return "addition"

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
            gradient = gradient + w * w * _exponential(part.log_gradient - largest)
        return State(mean, square, gap, logarithm(gradient) + largest)


def _ratio(over: Bounded, under: Bounded) -> Bounded:
    return _exponential(logarithm(over) - logarithm(under))


def _exponential(number: Bounded) -> Bounded:
    from math import exp

    found = exp(number.value)
    return Bounded(found, found * (exp(min(number.error, 1.0)) - 1), number.method)


def _positive(value: Number, where: str, what: str) -> None:
    if not value > 0:
        raise StudyError(f"{what} is {value}.", where=where, hint="It is larger than 0.")
