"""IP-bias at its start and after its first step: what it learns hardly depends on the data.

Initial weights and biases have standard deviation 1.
"""

from __future__ import annotations

from dataclasses import dataclass

from tpcalc import checks
from tpcalc.integrals.bounded import Bounded, bounded
from tpcalc.shown import Shown
from tpcalc.theorems.closed import ClosedForm, Told, closed, per_layer
from tpcalc.theorems.integrable.forms.gaussian import Pair, Push, pushed_mean, single_mean
from tpcalc.theorems.integrable.forms.inputs import Asked, form
from tpcalc.theorems.integrable.forms.nonlinearity import Activation, Nonlinearity, nonlinearity

ITEM = "section 5.2, appendix K.1"
GRADIENTS = r"V_{dx,l-1}^2=V_{dx,l}^2\,\mathbb{E}\sigma'(v^l)^2"
PUSH = r"\theta_1=-\eta\chi_0k(\xi_0,\xi),\quad\theta_l=-\eta\chi_0(1+\kappa_{l-1})"
KAPPA = r"\kappa_l=\mathbb{E}[\sigma(v^l)\,\sigma(v^l+\theta_lD_l\sigma'(v^l))]"
LAST = r"f_1=v^{L+1}-\eta\chi_0+\theta_L\mathbb{E}[\sigma'(v^L)\sigma'(h_1^L)]-\eta\chi_0\kappa_L"


@dataclass(frozen=True, slots=True)
class BiasStart(Shown, Told):
    """IP-bias at its start.

    Above the first layer h_0^l is the bias v^l: a standard Gaussian, whatever the input.

    Args:
        x: E (x_0^l)^2 for the layers 2..L.
        dx: E (dx_0^l)^2 for the layers 1..L, without its power of the width.
        f: f_0, given the initial bias of the output.

    Example:
        >>> found = bias_start("relu", 3, output_bias=0.25)
        >>> [float(value) for value in found.dx], float(found.f)
        ([0.25, 0.5, 1.0], 0.25)
    """

    x: tuple[ClosedForm, ...]
    dx: tuple[ClosedForm, ...]
    f: ClosedForm


@dataclass(frozen=True, slots=True)
class BiasStep(Shown, Told):
    """IP-bias after one step on xi_0, at a query xi.

    In the limit h_1^l is v^l plus theta_l times the first gradient, for l >= 2.

    Args:
        thetas: theta_1..theta_L.
        kappas: kappa_1..kappa_L, E[x_0^l(xi_0) x_1^l(xi)].
        f: f_1(xi), given the initial bias of the output.

    Example:
        >>> found = bias_step("relu", 3, k=(1.74, 0.93, 2.35), eta=1.5, chi=-0.63, output_bias=0.37)
        >>> print(found.f)
        f_1 = 2.3639 (exact)
        >>> [round(float(value), 6) for value in found.kappas]
        [0.600579, 0.539876, 0.577424]
    """

    thetas: tuple[ClosedForm, ...]
    kappas: tuple[ClosedForm, ...]
    f: ClosedForm


def bias_start(act: Activation, depth: int, *, output_bias: float = 0.0) -> BiasStart:
    """IP-bias at its start.

    Args:
        act: The activation: a catalogue name, or a function of an expression.
        depth: Number of hidden layers L, at least 2.
        output_bias: The initial bias of the output, v^{L+1}: f_0 tends to it, so in the limit f_0
            is as random as it is.

    Returns:
        The numbers of the first pass.

    Raises:
        UsageError: A depth below 2.
        NotDifferentiable: The activation jumps.
        EvaluationError: A degree of homogeneity above 2 that is no whole number, or numbers that
            leave the range of a float.

    Source: Hajjar, Chizat, Giraud, section 5.2 and appendix K.1.

    Example:
        >>> [float(value) for value in bias_start("relu", 2).x]
        [0.5]
    """
    count, sigma = checks.whole(depth, "depth", least=2), nonlinearity(act)
    square = single_mean(sigma.expr**2, Bounded(1.0))
    return BiasStart(
        per_layer("E x_0^2", (square,) * (count - 1), r"\mathbb{E}\sigma(v^l)^2", ITEM, 2),
        per_layer("E dx_0^2", _gradients(sigma, count), GRADIENTS, ITEM),
        closed("f_0", bounded(checks.real(output_bias, "output_bias")), r"f_0=v^{L+1}", ITEM),
    )


@form("act depth xi0 xi eta chi output_bias k seed")
def bias_step(at: Asked) -> BiasStep:
    """IP-bias after its first step, with the learning rates of equations (5.4) and (5.5).

    Args:
        chi: The derivative of the loss by f_0, at f_0 = v^{L+1}.
        k: In place of the inputs, k(xi_0, xi_0), k(xi_0, xi) and k(xi, xi), with k = xi . xi' + 1.

    Returns:
        The numbers of the step.

    Source: Hajjar, Chizat, Giraud, section 5.2 and appendix K.1.

    Example:
        >>> float(bias_step("linear", 2, k=(1, 0.5, 1), eta=0.5).f)
        1.75
    """
    count, sigma, pair, rate, seed = at.depth, at.sigma, at.pair, at.rate, at.seed
    one = Bounded(1.0)
    thetas, kappas, slope = [rate * pair.both], list[Bounded](), one
    for place, variance in enumerate(_gradients(sigma, count)):
        own = pair if place == 0 else Pair(one, one, one)
        push = Push(thetas[-1], variance)
        kappas.append(pushed_mean(sigma.expr, sigma.expr, sigma, own, push, seed))
        if place < count - 1:
            thetas.append(rate * (1.0 + kappas[-1]))
        else:
            slope = pushed_mean(sigma.slope, sigma.slope, sigma, own, push, seed)
    start = bounded(checks.real(at.given["output_bias"], "output_bias"))
    f = start + rate + thetas[-1] * slope + rate * kappas[-1]
    return BiasStep(
        per_layer("theta", thetas, PUSH, ITEM),
        per_layer("kappa", kappas, KAPPA, ITEM),
        closed("f_1", f, LAST, ITEM),
    )


def _gradients(sigma: Nonlinearity, depth: int) -> tuple[Bounded, ...]:
    """V_{dx,l}^2 of the layers 1..L: every gate above the first layer is at a standard Gaussian."""
    gate, found = single_mean(sigma.slope**2, Bounded(1.0)), [Bounded(1.0)]
    for _ in range(depth - 1):
        found.append(found[-1] * gate)
    return tuple(reversed(found))
