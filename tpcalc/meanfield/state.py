"""The mean-field state of a layer: what every coordinate of it is in a wide network."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, expm1, inf, log

from tpcalc.errors import EvaluationError
from tpcalc.integrals.bounded import EPS, Bounded, kept
from tpcalc.shown import Shown

LARGEST = 709.0  # of logarithms of floats


@dataclass(frozen=True, slots=True)
class State(Shown):
    """A layer in the limit of infinite width, at two inputs that are alike.

    Args:
        mean: m, the mean of a coordinate.
        square: q, its second moment.
        gap: v = q - c, where c is the second moment of two inputs; carried by itself, because it
            may be many orders smaller than q.
        log_gradient: log g, where g is the mean square of the layer's derivative along a standard
            Gaussian change of the input.

    Source: Schoenherr, The nonlinearity coefficient, table 5.3.

    Example:
        >>> start = State(Bounded(0.0), Bounded(1.0), Bounded(0.75), Bounded(0.0))
        >>> start.comean.value, start.gradient
        (0.25, 1.0)
    """

    mean: Bounded
    square: Bounded
    gap: Bounded
    log_gradient: Bounded

    @property
    def comean(self) -> Bounded:
        """c, the second moment of two inputs."""
        return self.square - self.gap

    @property
    def gradient(self) -> float:
        """g, where it is a float."""
        return exp(self.log_gradient.value)

    @property
    def shared(self) -> Bounded:
        """sqrt(q / v): how much of the layer its inputs share."""
        return exponential((logarithm(self.square) - logarithm(self.gap)) * 0.5)

    @property
    def bias(self) -> float:
        """The same without its error."""
        return float(self.shared.value)


def logarithm(number: Bounded) -> Bounded:
    """The logarithm of a positive number.

    Example:
        >>> logarithm(Bounded(1.0)).value
        0.0
    """
    _check_positive(number)
    found = log(number.value)
    error = number.error / (number.value - number.error) + EPS * abs(found)
    return Bounded(found, error, number.method)


def exponential(number: Bounded) -> Bounded:
    """The inverse of ``logarithm``.

    Example:
        >>> exponential(Bounded(0.0)).value
        1.0
    """
    found = kept(exp(number.value) if number.value < LARGEST else inf)
    exact = number.value == 0 == number.error
    return Bounded(found, 0.0 if exact else found * (expm1(number.error) + EPS), number.method)


def ratio(over: Bounded, under: Bounded) -> Bounded:
    """The quotient of two positive numbers, which may be tiny.

    Example:
        >>> round(ratio(Bounded(1e-300), Bounded(4e-300)).value, 12)
        0.25
    """
    for part in (over, under):
        _check_positive(part)
    return over / under


def _check_positive(number: Bounded) -> None:
    if number.value - number.error <= 0:
        raise EvaluationError(
            f"a size that should be positive is {number.value:.3g} with an error up to "
            f"{number.error:.1g}.",
            hint="Two inputs have become equal within rounding, or a layer is constant.",
        )
