"""Naive-IP after its first step, where it does not stay at its start."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tpcalc import checks
from tpcalc.errors import UsageError
from tpcalc.integrals.bounded import Bounded, bounded
from tpcalc.shown import Shown
from tpcalc.theorems.closed import ClosedForm, Told, closed
from tpcalc.theorems.integrable.forms.gaussian import ZERO, Pair, pair_mean, shifted_mean
from tpcalc.theorems.integrable.forms.inputs import Input, covariances, learning
from tpcalc.theorems.integrable.forms.llr import side_moments
from tpcalc.theorems.integrable.forms.moments import power_moment
from tpcalc.theorems.integrable.forms.nonlinearity import Activation, Nonlinearity, nonlinearity

OUTPUT = r"f_1=\mathbb{E}[(U-\eta\chi_0\sigma(0))\,\sigma(aU)]"


@dataclass(frozen=True, slots=True)
class NaiveStep(Shown, Told):
    """Naive-IP after one step on xi_0, at a query xi.

    Args:
        coefficient: h_1^L divided by U, the initial output weights; with a kink at 0 there is the
            gate sigma'(H) of the scale-free first pass besides, H a Gaussian independent of U.
        f: f_1(xi).

    Example:
        >>> found = naive_degenerate("sigmoid", 3, eta=2)
        >>> print(found.f)
        f_1 = 0.531129 (quadrature, error <= ...e-15)
    """

    coefficient: ClosedForm
    f: ClosedForm


def naive_degenerate(act: Activation, depth: int, *, eta: float, chi: float = -1.0) -> NaiveStep:
    """Naive-IP with sigma(0) != 0: only the last hidden layer learns, and nothing of the input.

    Args:
        act: The activation; sigma(0) is not 0.
        depth: Number of hidden layers L, at least 3.
        eta: The base learning rate.
        chi: The derivative of the loss by f_0, at f_0 = 0.

    Returns:
        h_1^L = -eta chi_0 sigma(0)^2 sigma'(0) U, and f_1 = E[(U - eta chi_0 sigma(0))
        sigma(h_1^L)]; they depend on neither xi nor L.

    Raises:
        UsageError: sigma(0) is 0, sigma has a kink at 0, or a depth below 3.

    Source: Hajjar, Chizat, Giraud, Remark 3.1 (3).

    Example:
        >>> print(naive_degenerate("sigmoid", 4, eta=2).coefficient)
        coefficient of U = 0.125 (exact)
    """
    depth = checks.whole(depth, "depth", least=3, hint="naive_two_layers takes 2 hidden layers.")
    sigma = nonlinearity(act)
    if sigma.at_zero == 0:
        raise UsageError(
            f"{sigma.text} is 0 at 0: Naive-IP of 3 or more hidden layers then stays at its start.",
            hint="Take sigmoid or softplus, or llr_step for larger first rates.",
        )
    value, rate = bounded(sigma.at_zero), learning(eta, chi)
    factor = rate * value * value * _slope(sigma)
    item, own = "Remark 3.1 (3)", r"a=-\eta\chi_0\sigma(0)^2\sigma'(0)"
    return NaiveStep(
        closed("coefficient of U", factor, own, item),
        closed("f_1", shifted_mean(sigma, ZERO, factor, rate * value), OUTPUT, item),
    )


def naive_two_layers(
    act: Activation,
    xi0: Input | None = None,
    xi: Input | None = None,
    *,
    eta: float,
    chi: float = -1.0,
    bias: str = "first",
    k: Sequence[float] | None = None,
) -> NaiveStep:
    """Naive-IP of 2 hidden layers after its first step: it is not trivial.

    Args:
        act: The activation: homogeneous of degree 1, or one with a slope at 0.
        xi0: The training input.
        xi: The query.
        eta: The base learning rate.
        chi: The derivative of the loss by f_0, at f_0 = 0.
        bias: ``"first"``: biases in the first layer; ``"none"``. Biases of the other layers vanish.
        k: In place of the inputs, k(xi_0, xi_0), k(xi_0, xi) and k(xi, xi).

    Returns:
        h_1^2 = -eta chi_0 E[sigma(H_0) sigma(H_xi)] U sigma'(0), or with the gate of the
        scale-free pass in place of sigma'(0), and f_1 = E[(U - eta chi_0 sigma(0)) sigma(h_1^2)].

    Raises:
        UsageError: The activation has a kink at 0 and is not of degree 1, or inputs do not fit.

    Source: Hajjar, Chizat, Giraud, Proposition 3.1 and Lemmas F.2 to F.4, at L = 2.

    Example:
        >>> print(naive_two_layers("linear", k=(1, 0.5, 1), eta=2).f)
        f_1 = 1 (exact)
    """
    sigma, pair = nonlinearity(act), covariances(xi0, xi, bias, k)
    rate = learning(eta, chi)
    theta = rate * pair_mean(sigma.expr, sigma.expr, pair)
    item, both = "Proposition 3.1", r"-\eta\chi_0\mathbb{E}[\sigma(H_0)\sigma(H_\xi)]"
    if sigma.degree == 1 and sigma.slope_at_zero is None:
        formula = r"f_1=a\,\mathbb{E}[\sigma'(H)]\,\mathbb{E}[U\sigma(U)]"
        return NaiveStep(
            closed("coefficient of U sigma'(H)", theta, f"a={both}", item),
            closed("f_1", _gated(sigma, theta, pair), formula, item),
        )
    factor, shift = theta * _slope(sigma), rate * bounded(sigma.at_zero)
    return NaiveStep(
        closed("coefficient of U", factor, rf"a={both}\,\sigma'(0)", item),
        closed("f_1", shifted_mean(sigma, ZERO, factor, shift), OUTPUT, item),
    )


def _gated(sigma: Nonlinearity, theta: Bounded, pair: Pair) -> Bounded:
    """E[U sigma(theta U sigma'(H))]: of degree 1, the gate is that of the scale-free pass."""
    p = sigma.degree
    assert p is not None
    _, odd = side_moments(sigma, p, pair.first)
    return theta * odd * (bounded(sigma.right) - sigma.left) * power_moment(p + 1)


def _slope(sigma: Nonlinearity) -> Bounded:
    slope = sigma.slope_at_zero
    if slope is None:
        raise UsageError(
            f"{sigma.text} has no slope at 0, where its arguments tend.",
            hint="tp.limit takes it, if it has a limit at all.",
        )
    return bounded(slope)
