"""IP-non-centered at its start and after its first step: hidden layers become constants.

Initial weights and biases have standard deviation 1, and weights above layer 1 the means u_l.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tpcalc import checks
from tpcalc.errors import UsageError
from tpcalc.evaluate.expect import expect
from tpcalc.functions import Expr, Var
from tpcalc.functions.expr import substitute
from tpcalc.integrals.bounded import Bounded, bounded, through
from tpcalc.results import Estimate
from tpcalc.shown import Shown
from tpcalc.theorems.closed import ClosedForm, Told, closed, per_layer
from tpcalc.theorems.integrable.forms.gaussian import (
    ONE,
    ZERO,
    Push,
    pushed_mean,
    shifted_mean,
    single_mean,
)
from tpcalc.theorems.integrable.forms.inputs import Asked, Input, covariances, form
from tpcalc.theorems.integrable.forms.nonlinearity import Activation, Nonlinearity, nonlinearity

ITEM = "section 5.1, appendices K.3 and K.4"
CONSTANTS = r"C_2=u_2\mathbb{E}\sigma(h_0^1),\;C_l=u_l\sigma(C_{l-1})"
GRADIENTS = r"\prod_{j>l}u_j\prod_{j=l+1}^L\sigma'(C_j)"
MEANS = (
    r"\mathbb{E}h_1^l=u_l\mathbb{E}x_1^{l-1}-\eta\chi_0\mathbb{E}[x_0^{l-1}x_1^{l-1}]"
    r"\,\mathbb{E}\,d\tilde h_0^l"
)
SPREAD = r"\eta|\chi_0|\,|\mathbb{E}[x_0^{L-1}x_1^{L-1}]\,\sigma'(C_L)|"
ENTRIES = r"-\eta\chi_0\,d\tilde h_0^l\,\sigma(C_{l-1})"
LAST = r"f_1=\mathbb{E}[(U+u_{L+1}-\eta\chi_0\sigma(C_L))\,\sigma(h_1^L)]"


@dataclass(frozen=True, slots=True)
class NonCenteredStart(Shown, Told):
    """IP-non-centered at its start, at an input xi.

    Args:
        constants: C_2..C_L: every coordinate of h_0^l tends to C_l.
        dx: The constants that m times the gradient by x_0^l tends to, for the layers 1..L-1.
        f: f_0(xi).

    Example:
        >>> found = non_centered_start("relu", 3, k00=1.74)
        >>> [round(float(value), 5) for value in (*found.constants, found.f)]
        [0.52624, 0.52624, 0.52624]
    """

    constants: tuple[ClosedForm, ...]
    dx: tuple[ClosedForm, ...]
    f: ClosedForm


@dataclass(frozen=True, slots=True)
class NonCenteredStep(Shown, Told):
    """IP-non-centered after one step on xi_0, at a query xi.

    Args:
        means: The means of h_1^2..h_1^L; below L they are all of it.
        spread: The standard deviation of h_1^L, which is Gaussian.
        entries: What every entry of w^l(1) - w^l(0) tends to, for the layers 3..L-1.
        f: f_1(xi).

    Example:
        >>> found = non_centered_step("relu", 5, k=(1.74, 0.93, 2.35), eta=0.5, chi=-1.473759)
        >>> [round(float(value), 4) for value in found.means]
        [1.5101, 2.0956, 2.9083, 4.036]
        >>> round(float(found.f), 3)
        6.729
    """

    means: tuple[ClosedForm, ...]
    spread: ClosedForm
    entries: tuple[ClosedForm, ...]
    f: ClosedForm


@dataclass(frozen=True, slots=True)
class _Start:
    """The first pass: u_2..u_{L+1}, C_2..C_L, sigma'(C_l), dx_0^1..dx_0^{L-1} and f_0."""

    u: tuple[Bounded, ...]
    constants: tuple[Bounded, ...]
    slopes: tuple[Bounded, ...]
    dx: tuple[Bounded, ...]
    f: Bounded


def non_centered_start(
    act: Activation,
    depth: int,
    xi: Input | None = None,
    *,
    u: float | Sequence[float] = 1.0,
    k00: float | None = None,
) -> NonCenteredStart:
    """IP-non-centered at its start.

    Args:
        act: The activation: a catalogue name, or a function of an expression.
        depth: Number of hidden layers L, at least 2.
        xi: The input.
        u: The means of the initial weights of the layers 2..L+1: one number for all, or L.
        k00: In place of the input, k(xi, xi) = |xi|^2 + 1.

    Returns:
        C_2 = u_2 E sigma(h_0^1), C_l = u_l sigma(C_{l-1}) and f_0 = u_{L+1} sigma(C_L).

    Raises:
        UsageError: A depth below 2, a mean that is 0, or a C_l on a kink of the activation.
        NotDifferentiable: The activation jumps.
        EvaluationError: A degree of homogeneity above 2 that is no whole number, or numbers that
            leave the range of a float.

    Source: Hajjar, Chizat, Giraud, section 5.1 and appendix K.3.

    Example:
        >>> [float(value) for value in non_centered_start("relu", 3, k00=1.0, u=2).dx]
        [8.0, 4.0]
    """
    count, sigma = checks.whole(depth, "depth", least=2), nonlinearity(act)
    twice = covariances(xi, xi, "first", None if k00 is None else (k00,) * 3)
    found = _start(sigma, count, twice.first, u)
    return NonCenteredStart(
        per_layer("C", found.constants, CONSTANTS, ITEM, 2),
        per_layer("dx_0", found.dx, GRADIENTS, ITEM),
        closed("f_0", found.f, r"f_0=u_{L+1}\sigma(C_L)", ITEM),
    )


@form("act depth xi0 xi eta chi u k seed")
def non_centered_step(at: Asked) -> NonCenteredStep:
    """IP-non-centered after its first step, with the learning rates of Naive-IP.

    Args:
        chi: The derivative of the loss by f_0, at the f_0(xi_0) of ``non_centered_start``.
        k: In place of the inputs, k(xi_0, xi_0), k(xi_0, xi) and k(xi, xi), with k = xi . xi' + 1.

    Returns:
        The numbers of the step.

    Raises:
        UsageError: As ``non_centered_start``, or inputs that do not fit.

    Source: Hajjar, Chizat, Giraud, section 5.1 and appendices K.3, K.4.

    Example:
        >>> float(non_centered_step("linear", 2, k=(1, 0.5, 1), eta=0.5).f)
        0.75
    """
    count, sigma, pair, rate = at.depth, at.sigma, at.pair, at.rate
    start = _start(sigma, count, pair.first, at.given["u"])
    push = Push(rate * pair.both, ZERO, start.dx[0])
    seed = at.seed
    mean = pushed_mean(ONE, sigma.expr, sigma, pair, push, seed)
    both = pushed_mean(sigma.expr, sigma.expr, sigma, pair, push, seed)
    means, entries = list[Bounded](), list[Bounded]()
    spread = ZERO
    for layer in range(2, count + 1):
        place = layer - 2
        gate = start.slopes[place]
        if layer == count:
            spread = rate * both * gate
            means.append(start.u[place] * mean + spread * start.u[place + 1])
            break
        means.append(start.u[place] * mean + rate * both * start.dx[place + 1] * gate)
        if layer > 2:
            entries.append(rate * start.dx[place + 1] * gate * _value(sigma, start, place - 1))
        mean = through(lambda c: _at(sigma.expr, c), means[-1])
        both = _value(sigma, start, place) * mean
    last = _value(sigma, start, count - 2)
    f = shifted_mean(sigma, means[-1], spread, start.u[-1] + rate * last)
    return NonCenteredStep(
        per_layer("E h_1", means, MEANS, ITEM, 2),
        closed("std h_1^L", abs(spread), SPREAD, ITEM),
        per_layer("dw", entries, ENTRIES, ITEM, 3),
        closed("f_1", f, LAST, ITEM),
    )


def _start(sigma: Nonlinearity, depth: int, k00: Bounded, u: float | Sequence[float]) -> _Start:
    means = _means(u, depth)
    constants, slopes = [means[0] * single_mean(sigma.expr, k00)], list[Bounded]()
    for place in range(depth - 1):
        _off_kinks(sigma, constants[-1], place + 2)
        slopes.append(through(lambda c: _at(sigma.slope, c), constants[-1]))
        following = means[place + 1] * through(lambda c: _at(sigma.expr, c), constants[-1])
        constants.append(following)
    f = constants.pop()
    dx = [means[-1]]
    for place in range(depth - 2, -1, -1):
        dx.append(dx[-1] * slopes[place] * means[place])
    # The first is the mean of U + u_{L+1} at layer L; the others are constants.
    return _Start(means, tuple(constants), tuple(slopes), tuple(reversed(dx[1:])), f)


def _value(sigma: Nonlinearity, start: _Start, place: int) -> Bounded:
    """x_0^l = sigma(C_l), for l = place + 2."""
    return through(lambda c: _at(sigma.expr, c), start.constants[place])


def _at(expr: Expr, value: float) -> Estimate:
    """A function at a number, with the error of rounding."""
    return expect(lambda z: substitute(expr, {Var(0): z}), 0, mean=value)


def _off_kinks(sigma: Nonlinearity, constant: Bounded, layer: int) -> None:
    for kink in sigma.kinks:
        if abs(constant.value - kink) <= constant.error:
            raise UsageError(
                f"C_{layer} = {constant.value:g} is where {sigma.text} has a kink: all of layer "
                f"{layer} is on it in the limit, and its slope is not decided.",
                hint="Take means u that are positive.",
            )


def _means(u: float | Sequence[float], depth: int) -> tuple[Bounded, ...]:
    """u_2..u_{L+1}."""
    one = not hasattr(u, "__iter__")
    given = (u,) * depth if one else checks.sequence(u, "u")
    if len(given) != depth:
        raise UsageError(
            f"u has {len(given)} means; the layers 2..L+1 are {depth}.",
            hint="Give one number for all, or one for each of them.",
        )
    found = tuple(bounded(checks.real(value, "an entry of u")) for value in given)
    if any(value.value == 0 for value in found):
        raise UsageError("a mean of the initial weights is 0.", hint="That is naive_degenerate.")
    return found
