"""Moments of activations of Gaussians, and the sizes of the scale-free first pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import gamma, inf, pi, sqrt

from tpcalc import checks
from tpcalc.activations.entries import REGISTRY
from tpcalc.errors import UsageError
from tpcalc.evaluate.expect import expect
from tpcalc.functions import Expr, Var
from tpcalc.functions.expr import substitute
from tpcalc.integrals.bounded import Bounded, bounded, kept, through
from tpcalc.results import Estimate
from tpcalc.shown import Shown
from tpcalc.theorems.closed import ClosedForm, Told, closed, per_layer
from tpcalc.theorems.integrable.forms.gaussian import single_mean
from tpcalc.theorems.integrable.forms.nonlinearity import (
    Activation,
    Nonlinearity,
    linear,
    nonlinearity,
)

STEP, RELU = REGISTRY["step"](), REGISTRY["relu"]()


@dataclass(frozen=True, slots=True)
class FirstPassSizes(Shown, Told):
    """Second moments of the scale-free first pass, for the layers 1..L.

    Args:
        h: V_{h,l}^2, of preactivations.
        dx: V_{dx,l}^2, of gradients by activations.
        dh: Of gradients by preactivations, V_{dx,l-1}^2.

    Example:
        >>> sizes = tilde_variances("relu", 2, 1.0)
        >>> [float(value) for value in sizes.dx]
        [0.5, 1.0]
    """

    h: tuple[ClosedForm, ...]
    dx: tuple[ClosedForm, ...]
    dh: tuple[ClosedForm, ...]


@dataclass(frozen=True, slots=True)
class Sizes:
    """The same as numbers: E h^2, E dx^2 and E dh^2 of the layers 1..L."""

    h: tuple[Bounded, ...]
    dx: tuple[Bounded, ...]
    dh: tuple[Bounded, ...]


def power_moment(r: Fraction) -> Bounded:
    """mu_r = E U_+^r of a standard Gaussian U."""
    if r == 0:
        return Bounded(0.5)
    try:
        value = 2.0 ** float(r / 2 - 1) * gamma(float(r + 1) / 2) / sqrt(pi)
    except OverflowError:
        value = inf
    return Bounded(kept(value))


def mu(r: object) -> ClosedForm:
    """mu_r = E U_+^r of a standard Gaussian U.

    Args:
        r: The power, not negative.

    Returns:
        2^(r/2 - 1) Gamma((r + 1)/2) / sqrt(pi); mu_0 is 1/2.

    Raises:
        UsageError: A power that is negative or no number.

    Source: Hajjar, Chizat, Giraud, appendix M.

    Example:
        >>> print(mu(4))
        mu_4 = 1.5 (exact)
    """
    power = Fraction(checks.real(r, "r", least=0))
    formula = r"2^{r/2-1}\,\Gamma\left(\frac{r+1}{2}\right)/\sqrt{\pi}"
    return closed(f"mu_{power}", power_moment(power), formula, "appendix M")


def second_moment(act: Activation, variance: float = 1.0) -> ClosedForm:
    """E sigma(VU)^2 of a standard Gaussian U.

    Args:
        act: The activation: a catalogue name, or a function of an expression.
        variance: V^2.

    Returns:
        For alpha z_+^p + beta |z_-|^p it is (alpha^2 + beta^2) V^(2p) mu_{2p}.

    Raises:
        UsageError: A variance that is negative or no number.

    Source: Hajjar, Chizat, Giraud, appendix M.

    Example:
        >>> print(second_moment("relu", 2.0))
        E sigma^2 = 1 (exact)
    """
    sigma = nonlinearity(act)
    formula = r"(\alpha^2+\beta^2)\,V^{2p}\mu_{2p}" if sigma.degree else r"\mathbb{E}\sigma(VU)^2"
    value = single_mean(sigma.expr**2, _variance(variance))
    return closed("E sigma^2", value, formula, "appendix M")


def slope_second_moment(act: Activation, variance: float = 1.0) -> ClosedForm:
    """E sigma'(VU)^2 of a standard Gaussian U.

    Args:
        act: The activation: a catalogue name, or a function of an expression.
        variance: V^2.

    Returns:
        For alpha z_+^p + beta |z_-|^p it is (alpha^2 + beta^2) p^2 V^(2p - 2) mu_{2p - 2}.

    Raises:
        UsageError: A variance that is negative or no number.
        NotDifferentiable: The activation jumps.

    Source: Hajjar, Chizat, Giraud, appendix M.

    Example:
        >>> print(slope_second_moment("relu^2", 3.0))
        E sigma'^2 = 6 (exact)
    """
    sigma = nonlinearity(act)
    power = r"(\alpha^2+\beta^2)\,p^2V^{2p-2}\mu_{2p-2}"
    formula = power if sigma.degree else r"\mathbb{E}\sigma'(VU)^2"
    value = single_mean(sigma.slope**2, _variance(variance))
    return closed("E sigma'^2", value, formula, "appendix M")


def half_square(rho: float, variance: float = 1.0) -> ClosedForm:
    """E[Y_+^2 1_{X > 0}] of two centred Gaussians.

    Args:
        rho: Their correlation.
        variance: s^2 = E Y^2.

    Returns:
        s^2 / (2 pi) (rho sqrt(1 - rho^2) + arccos(-rho)).

    Raises:
        UsageError: No correlation, or a variance that is negative.

    Source: Hajjar, Chizat, Giraud, appendix M.

    Example:
        >>> print(half_square(1.0))
        E[Y_+^2 1_{X>0}] = 0.5 (exact)
    """
    formula = r"\frac{s^2}{2\pi}\left(\rho\sqrt{1-\rho^2}+\arccos(-\rho)\right)"
    value = _gated(RELU(Var(0)) ** 2, rho) * _variance(variance)
    return closed("E[Y_+^2 1_{X>0}]", value, formula, "appendix M")


def orthant(rho: float) -> ClosedForm:
    """P(X > 0, Y > 0) of two centred Gaussians.

    Args:
        rho: Their correlation.

    Returns:
        1/4 + arcsin(rho) / (2 pi).

    Raises:
        UsageError: No correlation.

    Source: Hajjar, Chizat, Giraud, appendix M.

    Example:
        >>> print(orthant(0.5))
        P(X>0, Y>0) = 0.333333 (exact)
    """
    formula = r"\frac14+\frac{\arcsin\rho}{2\pi}"
    return closed("P(X>0, Y>0)", _gated(STEP(Var(0)), rho), formula, "appendix M")


def tilde_variances(act: Activation, depth: int, k00: float) -> FirstPassSizes:
    """The second moments of the scale-free first pass of an integrable network.

    Args:
        act: The activation: a power alpha z_+^p + beta |z_-|^p, or one with sigma(0) = 0 and a
            slope at 0, of which the layers above the first see the linear map sigma'(0) z.
        depth: Number of hidden layers L.
        k00: k(xi_0, xi_0), the second moment of first-layer preactivations.

    Returns:
        The second moments of h, dx and dh in the layers 1 to L.

    Raises:
        UsageError: An activation of another kind, a depth below 1, a k00 that is negative.
        NotDifferentiable: The activation jumps.

    Source: Hajjar, Chizat, Giraud, Definition F.1 and Lemma F.1.

    Example:
        >>> [float(value) for value in tilde_variances("tanh", 3, 1.0).dx]
        [1.0, 1.0, 1.0]
    """
    layers = scale_free(nonlinearity(act), checks.whole(depth, "depth", least=1))
    found = sizes(layers, _variance(k00, "k00"))
    item = "Definition F.1, Lemma F.1"
    forward, backward = (
        r"V_{h,l+1}^2=\mathbb{E}\sigma(V_{h,l}U)^2",
        r"V_{dx,l-1}^2=V_{dx,l}^2\,\mathbb{E}\sigma'(V_{h,l}U)^2",
    )
    return FirstPassSizes(
        per_layer("V_h^2", found.h, forward, item),
        per_layer("V_dx^2", found.dx, backward, item),
        per_layer("V_dh^2", found.dh, backward, item),
    )


def stable_std(act: Activation) -> ClosedForm:
    """The standard deviation of initial weights at which the first pass keeps its size with depth.

    Args:
        act: The activation: homogeneous of degree 1, or one with sigma(0) = 0 and a slope at 0.

    Returns:
        (E sigma(U)^2)^(-1/2) for degree 1, and 1 / |sigma'(0)| for what is linear near 0.

    Raises:
        UsageError: Another degree: the size of the next layer is a power of that of the last.

    Source: Hajjar, Chizat, Giraud, Table 1 and Remarks F.2, F.3.

    Example:
        >>> print(stable_std("relu"))
        std = 1.41421 (exact)
        >>> [float(stable_std(act)) for act in ("gelu", "elu", "tanh")]
        [2.0, 1.0, 1.0]
    """
    sigma = nonlinearity(act)
    if sigma.degree == 1:
        square = single_mean(sigma.expr**2, Bounded(1.0))
        value = through(_inverse, square.root())
        return closed("std", value, r"(\mathbb{E}\sigma(U)^2)^{-1/2}", "Table 1, Remark F.2")
    slope = sigma.slope_at_zero
    if sigma.linearizable and slope is not None:
        return closed("std", Bounded(1 / abs(slope)), r"1/|\sigma'(0)|", "Table 1, Remark F.3")
    raise UsageError(
        f"no standard deviation keeps the first pass of {sigma.text} at one size in every depth.",
        hint="Take degree 1 (relu), or sigma(0) = 0 and sigma'(0) != 0 (tanh, gelu).",
    )


def scale_free(sigma: Nonlinearity, depth: int) -> tuple[Nonlinearity, ...]:
    """What each hidden layer applies in the scale-free first pass of an integrable network."""
    if sigma.degree is not None and sigma.degree > 0:
        return (sigma,) * depth
    if sigma.linearizable:
        slope = sigma.slope_at_zero
        assert slope is not None
        return (sigma, *(linear(slope),) * (depth - 1))
    found = f"sigma(0) = {sigma.at_zero:g}"
    found += f" and sigma'(0) = {sigma.slope_at_zero}" if sigma.at_zero == 0 else ""
    raise UsageError(
        f"{sigma.text} is no power alpha z_+^p + beta |z_-|^p and not linear near 0 ({found}): "
        "there is no scale-free pass.",
        hint="tp.limit takes all activations, naive_degenerate those with sigma(0) != 0.",
    )


def sizes(layers: Sequence[Nonlinearity], k00: Bounded) -> Sizes:
    """The second moments of a first pass with weights of standard deviation 1."""
    h = [k00]
    for sigma in layers[:-1]:
        h.append(single_mean(sigma.expr**2, h[-1]))
    dx, dh = [Bounded(1.0)], list[Bounded]()
    for sigma, variance in zip(reversed(layers), reversed(h), strict=True):
        dh.append(dx[-1] * single_mean(sigma.slope**2, variance))
        dx.append(dh[-1])
    return Sizes(tuple(h), tuple(reversed(dx[:-1])), tuple(reversed(dh)))


def _gated(square: Expr, rho: float) -> Bounded:
    value = float(checks.real(rho, "rho", least=-1, most=1))
    return bounded(
        expect(lambda y, x: substitute(square, {Var(0): y}) * STEP(x), [[1, value], [value, 1]])
    )


def _variance(value: float, name: str = "variance") -> Bounded:
    return bounded(checks.real(value, name, least=0))


def _inverse(value: float) -> Estimate:
    return Bounded(1 / value, 2.0**-52 / value).estimate()
