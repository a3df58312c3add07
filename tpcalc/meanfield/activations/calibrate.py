"""Activations scaled and shifted so that a standard Gaussian keeps its length, or its mean 0."""

from __future__ import annotations

from fractions import Fraction

from tpcalc import checks
from tpcalc.errors import EvaluationError, StudyError, UsageError
from tpcalc.functions import Expr, Var, const
from tpcalc.functions.expr import substitute, walk
from tpcalc.functions.numbers import as_number, is_finite
from tpcalc.integrals.activation_moments import Kernels, average
from tpcalc.integrals.bounded import Bounded, bounded
from tpcalc.integrals.given import of_activation

Number = Fraction | float | int
CLOSE = 1e-10  # of E tau^2: what the constants may miss
CONSTANT = 1e-12


@of_activation
def calibrated(
    tau: Expr, dilate: Number = 1, shift: Number = 0, debias: bool = False, q: Number = 1
) -> Expr:
    """The activation c tau(d s + h) + b of second moment 1 (mean 0 if asked) for s ~ N(0, q).

    Without ``debias`` b = 0 and c = 1 / sqrt(E tau^2); with it c = 1 / sqrt(Var tau), b = -c E tau.

    Args:
        tau: The activation: a name, ``tp.tanh``, a formula or a function of expressions.
        dilate: d.
        shift: h.
        debias: Whether the mean becomes 0.
        q: The variance of s.

    Returns:
        An expression of x0.

    Raises:
        StudyError: Numbers that are none, or an activation that is 0, or constant.
        EvaluationError: The constants are not found to 1e-10.

    Source: Schoenherr, The nonlinearity coefficient, section 3.1.1.

    Example:
        >>> from tpcalc.activations.entries import lookup
        >>> found = calibrated(lookup("relu").fn.expr, debias=True)
        >>> abs(average(found, Bounded(1.0)).value) < 1e-12
        True
    """
    moved = dilated(tau, dilate, shift)
    return normalized(debiased(moved, q) if debias else moved, q)


@of_activation
def dilated(tau: Expr, dilate: Number = 1, shift: Number = 0) -> Expr:
    """tau(d s + h).

    Example:
        >>> dilated(Var(0) ** 2, 3, 1).text
        '(1 + 3*x0)**2'
    """
    _check(tau)
    d, h = _number(dilate, "the dilation"), _number(shift, "the shift")
    if d == 0:
        raise StudyError("the dilation is 0, which makes an activation constant.", where="dilate")
    return substitute(tau, {Var(0): const(d) * Var(0) + const(h)})


@of_activation
def debiased(tau: Expr, q: Number = 1) -> Expr:
    """The activation less its mean, tau - E tau(s), for s ~ N(0, q).

    Args:
        tau: The activation: a name, ``tp.tanh``, a formula or a function of expressions.
        q: The variance of s.

    Returns:
        An expression of x0.

    Raises:
        StudyError: A variance that is none.
        EvaluationError: The mean is not found to 1e-10.

    Source: Schoenherr, The nonlinearity coefficient, section 3.1.1.

    Example:
        >>> debiased(Var(0) ** 2).text
        '-1 + x0**2'
    """
    variance = _variance(tau, q)
    mean, second = average(tau, variance), Kernels(tau).second(variance)
    check_spread(mean, second)
    # An error of the mean counts against the spread that is left, not against the whole.
    _close("the mean", mean, second.value**0.5)
    return tau if abs(mean.value) <= mean.error else tau + _constant(-mean.value)


@of_activation
def normalized(tau: Expr, q: Number = 1) -> Expr:
    """The activation over its length, tau / sqrt(E tau(s)^2), for s ~ N(0, q).

    Args:
        tau: The activation: a name, ``tp.tanh``, a formula or a function of expressions.
        q: The variance of s.

    Returns:
        An expression of x0.

    Raises:
        StudyError: A variance that is none, or an activation that is 0.
        EvaluationError: The second moment is not found to 1e-10.

    Source: Schoenherr, The nonlinearity coefficient, section 3.1.1.

    Example:
        >>> normalized(2 * Var(0)).text
        'x0'
    """
    second = Kernels(tau).second(_variance(tau, q))
    if second.value <= second.error:
        raise StudyError(
            "an activation that is 0 under the Gaussian cannot be normalized.",
            where="normalize",
            hint="After a subtraction of the mean, a constant activation is 0.",
        )
    _close("the second moment", second, second.value)
    return _constant(second.value**-0.5) * tau


def _constant(number: float) -> Expr:
    """A float; a whole one as such, which reads better."""
    return const(Fraction(number) if number.is_integer() else number)


def _close(what: str, number: Bounded, size: float) -> None:
    if not number.error <= CLOSE * size:
        raise EvaluationError(
            f"{what} of the activation is known to {number.error:.1g} only, of {size:.3g}.",
            hint="Declare its kinks, or take a smaller dilation.",
        )


def check_spread(mean: Bounded, second: Bounded) -> None:
    """Refuse an activation of which a Gaussian sees a constant."""
    if second.value - mean.value**2 <= CONSTANT * second.value:
        raise StudyError(
            "the Gaussian sees a constant activation: less than 1e-12 of E tau^2 is spread.",
            hint="Take another activation, a smaller shift or a larger dilation.",
        )


def _variance(tau: Expr, q: Number) -> Bounded:
    _check(tau)
    return bounded(checks.real(q, "the variance of the Gaussian", above=0))


def _number(value: Number, what: str) -> Fraction | float:
    if not is_finite(value):
        raise StudyError(f"{what} is {value}, no finite number.")
    return as_number(value)


def _check(tau: Expr) -> None:
    if not isinstance(tau, Expr) or any(
        isinstance(part, Var) and part.index != 0 for part in walk(tau)
    ):
        raise UsageError(
            "an activation is given as an expression of Var(0).",
            hint='As in lookup("relu").fn.expr.',
        )
