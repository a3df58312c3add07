"""IP-LLR after its first step, in closed form (Hajjar, Chizat, Giraud, appendices G and H).

Initial weights and biases have standard deviation 1. In the limit the layers above the first see
nothing of their initial weights but the direction of the first gradient.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from tpcalc.errors import UsageError
from tpcalc.evaluate.expect import expect
from tpcalc.functions import Expr, Var
from tpcalc.functions.expr import substitute
from tpcalc.integrals.bounded import Bounded, bounded, through
from tpcalc.shown import Shown
from tpcalc.theorems.closed import ClosedForm, Told, closed, per_layer
from tpcalc.theorems.integrable.forms.gaussian import ZERO, Pair, Push, pushed_mean, single_mean
from tpcalc.theorems.integrable.forms.inputs import Asked, form
from tpcalc.theorems.integrable.forms.moments import Sizes, power_moment, scale_free, sizes
from tpcalc.theorems.integrable.forms.nonlinearity import Nonlinearity

ONE_LAYER = "With 1 hidden layer IP-LLR is muP: mup_step takes it."
Row = Sequence[Bounded]  # a number for each layer
PUSH = r"\theta_1=-\eta\chi_0k(\xi_0,\xi),\quad\theta_l=-\eta\chi_0\lambda_{l-1}"
FIRST = r"\lambda_1=\mathbb{E}[\sigma(H_0)\,\sigma(H_\xi+\theta_1D_1\sigma'(H_0))]"
RMS = r"\mathrm{rms}(h_1^l)=|\theta_l|V_{dx,l-1},\quad l\ge2"
LAMBDAS = r"\lambda_l=\mathbb{E}[\tilde\sigma(\tilde h_0^l)\,\sigma(h_1^l)]"
OUTPUT = r"f_1=\theta_L\,\mathbb{E}[\sigma'(h_1^L)\sigma'(\tilde h_0^L)]-\eta\chi_0\lambda_L"
# Of homogeneous activations, then of those that are linear near 0.
POWERS = {
    "lambda": (
        r"\lambda_l=|\theta_l|^p\,\mathbb{E}[\sigma(\tilde H_l)|\sigma'(\tilde H_l)|^p]"
        r"\,\mathbb{E}\sigma(D_l)"
    ),
    "nu": (
        r"\nu_L=A+\eta|\chi_0|B,\quad\nu_l=\eta|\chi_0|\,\nu_{l+1}|\theta_l|^{p-1}\,"
        r"\mathbb{E}[D_l\sigma'(D_l)]\,\mathbb{E}[|\sigma'(\tilde H_l)|^p\sigma(\tilde H_l)]"
    ),
    "f_1": (
        r"f_1=\mathrm{sign}(\theta_L)|\theta_L|^p\,"
        r"\mathbb{E}[\mathrm{sign}(\sigma'(\tilde H_L))|\sigma'(\tilde H_L)|^p]\,"
        r"\mathbb{E}[U\sigma(U)]-\eta\chi_0\lambda_L"
    ),
}
LINES = {
    "lambda": r"\lambda_l=\sigma'(0)\,\mathbb{E}[\tilde H_l]\,\mathbb{E}[\sigma(h_1^l)]=0",
    "nu": (
        r"\nu_L=\sigma'(0)\,\mathbb{E}[U^2\sigma'(\theta_L\sigma'(0)U)],\quad"
        r"\nu_l=0\text{ for }l<L"
    ),
    "f_1": r"f_1=\theta_L\sigma'(0)\,\mathbb{E}[\sigma'(\theta_L\sigma'(0)U)]",
}


@dataclass(frozen=True, slots=True)
class LLRStep(Shown, Told):
    """IP-LLR after one step on xi_0, at a query xi.

    In the limit h_1^l is theta_l times the first gradient, for l >= 2.

    Args:
        thetas: theta_1..theta_L.
        lambdas: lambda_1..lambda_L, the correlations of x_0^l(xi_0), without its power of the
            width, with x_1^l(xi).
        rms: The root mean squares of the coordinates of h_1^1..h_1^L.
        nus: nu_2..nu_L, the correlations of the first gradients by h^l with those at xi after the
            step, both without their powers of the width; none where some h_1^l is 0 and the
            activation has a kink there, so that its slope is not decided.
        f: f_1(xi).

    Example:
        >>> found = llr_step("relu", 2, k=(1.74, 0.93, 2.35), eta=10)
        >>> print(found.f)
        f_1 = 28.7551 (exact)
        >>> [round(float(value), 5) for value in found.lambdas]
        [1.65783, 2.46105]
    """

    thetas: tuple[ClosedForm, ...]
    lambdas: tuple[ClosedForm, ...]
    rms: tuple[ClosedForm, ...]
    nus: tuple[ClosedForm, ...]
    f: ClosedForm


@dataclass(frozen=True, slots=True)
class Step:
    """What the forms of the first step share: activations, sizes, inputs and -eta chi_0."""

    sigma: Nonlinearity
    layers: tuple[Nonlinearity, ...]
    sizes: Sizes
    pair: Pair
    rate: Bounded
    seed: int


@form("act depth xi0 xi eta chi bias k seed", hint=ONE_LAYER)
def llr_step(at: Asked) -> LLRStep:
    """IP-LLR after its first step.

    Args:
        act: The activation: alpha z_+^p + beta |z_-|^p with p >= 1 (then the learning rates are
            those of this p), or one with sigma(0) = 0 and a slope at 0, with p = 1.
        eta: The base learning rate of the first step.
        k: In place of the inputs, k(xi_0, xi_0), k(xi_0, xi) and k(xi, xi), the covariances of
            first-layer preactivations.

    Returns:
        The numbers of the step. Of an activation that is linear near 0, lambda_l is 0 from l = 2
        on: with 3 layers or more f_1 is 0.

    Raises:
        UsageError: An activation of another kind, a depth below 2, a rate or chi that is 0, or
            inputs that do not fit.

    Source: Hajjar, Chizat, Giraud, Lemmas G.10, G.11 and H.2, Theorem 4.1.

    Example:
        >>> round(float(llr_step("relu^2", 2, (0.3, 0.1), (0.2, -0.1), eta=0.1).f), 6)
        0.150713
        >>> print(llr_step("tanh", 3, (0.3, 0.1), (0.2, -0.1), eta=1).f)
        f_1 = 0 (exact)
    """
    step = prepared(at)
    if step.sigma.degree is None:
        return _linearizable(step)
    return _homogeneous(step, step.sigma.degree)


@form("act depth xi0 xi eta chi bias k seed", hint=ONE_LAYER)
def llr_step_by_derivatives(at: Asked) -> LLRStep:
    """IP-LLR after its first step, by the form that holds for every differentiable activation.

    It needs no moments of powers: f_1 comes from E[sigma'(h_1^L) sigma'(h_0^L)] by Stein's lemma.

    Args:
        act: The activation: homogeneous of degree p >= 1, or one with sigma(0) = 0 and a slope at
            0.
        eta: The base learning rate of the first step.

    Returns:
        The numbers of the step; no ``nus``.

    Raises:
        UsageError: As ``llr_step``.

    Source: Hajjar, Chizat, Giraud, Lemma G.11, with Stein's lemma.

    Example:
        >>> print(llr_step_by_derivatives("relu", 2, k=(1.74, 0.93, 2.35), eta=10).f)
        f_1 = 28.7551 (exact)
    """
    step = prepared(at)
    lambdas, thetas = [first_lambda(step)], [step.rate * step.pair.both]
    sigma = step.sigma
    for place in range(1, len(step.layers)):
        thetas.append(step.rate * lambdas[-1])
        own = Pair.single(step.sizes.h[place])
        push = Push(thetas[-1], step.sizes.dx[place])
        tilde = step.layers[place]
        lambdas.append(_mean(tilde.expr, sigma.expr, tilde, own, push, step.seed))
    slope = _mean(tilde.slope, sigma.slope, tilde, own, push, step.seed)
    f = closed("f_1", thetas[-1] * slope + step.rate * lambdas[-1], OUTPUT, "Lemma G.11")
    return LLRStep(
        per_layer("theta", thetas, PUSH, "Lemma G.10"),
        per_layer("lambda", lambdas, LAMBDAS, "Lemma G.10"),
        per_layer("rms h_1", rms(step, thetas), RMS, "Lemma G.10"),
        (),
        f,
    )


def prepared(at: Asked) -> Step:
    """What the forms of the first step share, from checked arguments."""
    pair, count, sigma = at.pair, at.depth, at.sigma
    layers = scale_free(sigma, count)
    if sigma.degree is not None and sigma.degree < 1:
        raise UsageError(f"{sigma.text} is homogeneous of degree {sigma.degree}, below 1.")
    rate = at.rate
    if rate.value == 0:
        eta, chi = at.given["eta"], at.given["chi"]
        raise UsageError(f"eta is {eta} and chi is {chi}: nothing is learnt in the first step.")
    return Step(sigma, layers, sizes(layers, pair.first), pair, rate, at.seed)


def first_lambda(step: Step) -> Bounded:
    """lambda_1, with the same nonlinearity at both passes."""
    sigma = step.sigma
    push = Push(step.rate * step.pair.both, step.sizes.dx[0])
    return pushed_mean(sigma.expr, sigma.expr, sigma, step.pair, push, step.seed)


def rms(step: Step, thetas: Row) -> list[Bounded]:
    """The root mean squares of h_1^l."""
    squares = [theta * theta * dh for theta, dh in zip(thetas, step.sizes.dh, strict=True)]
    return [(step.pair.second + squares[0]).root(), *(square.root() for square in squares[1:])]


def side_moments(sigma: Nonlinearity, p: Fraction, variance: Bounded) -> tuple[Bounded, Bounded]:
    """E sigma(H)|sigma'(H)|^p and E sign(sigma'(H))|sigma'(H)|^p, for a Gaussian H."""
    alpha, beta = bounded(sigma.right), bounded(sigma.left)
    up, down = abs(alpha).power(p), abs(beta).power(p)
    scale = bounded(p).power(p)
    even = (alpha * up + beta * down) * scale * variance.power(p * p / 2) * power_moment(p * p)
    signs = [bounded(float((side > 0) - (side < 0))) for side in (sigma.right, sigma.left)]
    odd = signs[0] * up - signs[1] * down
    power = p * (p - 1)
    return even, odd * scale * variance.power(power / 2) * power_moment(power)


def _homogeneous(step: Step, p: Fraction) -> LLRStep:
    sigma, thetas = step.sigma, [step.rate * step.pair.both]
    alpha, beta = bounded(sigma.right), bounded(sigma.left)
    lambdas, evens, means = [first_lambda(step)], [ZERO], [ZERO]
    odd = ZERO
    for place in range(1, len(step.layers)):
        thetas.append(step.rate * lambdas[-1])
        even, odd = side_moments(sigma, p, step.sizes.h[place])
        spread = step.sizes.dx[place].power(p / 2)
        evens.append(even)
        means.append((alpha + beta) * spread * power_moment(p))
        lambdas.append(abs(thetas[-1]).power(p) * even * means[-1])
    last = thetas[-1].power(p) * odd * (alpha - beta) * power_moment(p + 1)
    nus = _nus(step, p, thetas, evens, means, odd)
    f = last + step.rate * lambdas[-1]
    return _written(step, (thetas, lambdas, nus, f), POWERS, "Lemma G.10")


def _written(
    step: Step, numbers: tuple[Row, Row, Row, Bounded], formulas: Mapping[str, str], item: str
) -> LLRStep:
    """The numbers of a step with their formulas; ``item`` is where those of lambda_l are."""
    thetas, lambdas, nus, f = numbers
    return LLRStep(
        per_layer("theta", thetas, PUSH, "Lemma G.10"),
        (
            closed("lambda_1", lambdas[0], FIRST, "Lemma G.10"),
            *per_layer("lambda", lambdas[1:], formulas["lambda"], item, 2),
        ),
        per_layer("rms h_1", rms(step, thetas), RMS, "Lemma G.10"),
        per_layer("nu", nus, formulas["nu"], "Lemma H.2", 2),
        closed("f_1", f, formulas["f_1"], "Lemma G.11"),
    )


def _nus(
    step: Step, p: Fraction, thetas: Row, evens: Row, means: Row, odd: Bounded
) -> list[Bounded]:
    """From the last layer down; |theta|^(p-1) is the gate at h_1, 1 for p = 1."""
    if step.sigma.slope_at_zero is None and any(abs(t.value) <= t.error for t in thetas[1:]):
        return []
    alpha, beta, degree = bounded(step.sigma.right), bounded(step.sigma.left), bounded(p)
    top = len(thetas) - 1
    gate = abs(thetas[top]).power(p - 1)
    straight = gate * odd * degree * (alpha - beta) * power_moment(p + 1)
    side = 1.0 if thetas[top].value > 0 else -1.0
    turned = step.rate * side * gate * evens[top] * degree * (alpha + beta) * power_moment(p)
    found = [straight + turned]
    for place in range(top - 1, 0, -1):
        gate = abs(thetas[place]).power(p - 1)
        side = 1.0 if thetas[place].value > 0 else -1.0
        own = step.rate * side * gate * evens[place] * degree * means[place]
        found.append(own * found[-1])
    return found[::-1]


def _linearizable(step: Step) -> LLRStep:
    """The layers above the first are linear at the start: what they add is independent of it."""
    sigma, count = step.sigma, len(step.layers)
    slope = sigma.slope_at_zero
    assert slope is not None
    lambdas = [first_lambda(step), *(ZERO,) * (count - 1)]
    thetas = [step.rate * step.pair.both, *(step.rate * value for value in lambdas[:-1])]
    moved = thetas[-1] * thetas[-1] * slope * slope  # the variance of h_1^L
    gate = single_mean(sigma.slope, moved)
    square = _weighted(sigma.slope, thetas[-1] * slope)
    nus = [ZERO] * (count - 2) + [slope * square]
    numbers = (thetas, lambdas, nus, thetas[-1] * slope * gate)
    return _written(step, numbers, LINES, "Remark F.3")


def _weighted(slope: Expr, factor: Bounded) -> Bounded:
    """E[U^2 g(cU)], as E[X^2 g(X)] / c^2 where c is not 0."""
    if factor.value == 0:
        return single_mean(slope, ZERO)
    return through(lambda c: expect(lambda u: u**2 * substitute(slope, {Var(0): c * u})), factor)


def _mean(
    outer: Expr, inner: Expr, gate: Nonlinearity, pair: Pair, push: Push, seed: int
) -> Bounded:
    """E f(H) g(theta D gate'(H)); at theta = 0 the inner argument is 0."""
    if push.theta.value == 0:
        return single_mean(outer, pair.first) * single_mean(inner, ZERO)
    return pushed_mean(outer, inner, gate, pair, push, seed)
