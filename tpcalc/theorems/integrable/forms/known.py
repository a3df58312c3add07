"""muP and the neural tangent parameterization after their first step, for contrast with IP-LLR.

Initial weights and biases have standard deviation 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tpcalc import checks
from tpcalc.integrals.bounded import Bounded, bounded
from tpcalc.shown import Shown
from tpcalc.theorems.closed import ClosedForm, Told, closed, per_layer
from tpcalc.theorems.integrable.forms.gaussian import (
    ONE,
    Pair,
    Push,
    pair_mean,
    pushed_mean,
    single_mean,
)
from tpcalc.theorems.integrable.forms.inputs import Asked, Input, covariances, form
from tpcalc.theorems.integrable.forms.moments import Sizes, sizes
from tpcalc.theorems.integrable.forms.nonlinearity import Activation, Nonlinearity, nonlinearity

ITEM, LAZY = "Lemma F.5, appendix J.2", "section 2.2, appendix B.3"


@dataclass(frozen=True, slots=True)
class MuPStep(Shown, Told):
    """muP after one step on xi_0, at a query xi.

    In the limit h_1^l is a Gaussian plus theta_l times the first gradient.

    Args:
        thetas: theta_1..theta_{L+1}.
        second_moments: E (h_1^l)^2 for the layers 1..L.
        f: f_1(xi), which is theta_{L+1}.
        f_without_dot: What f_1 would be without the correction terms, that is if the initial
            weights were independent of the updates.

    Example:
        >>> found = mup_step("relu", 2, k=(1.74, 0.93, 2.35), eta=1.5)
        >>> print(found.f)
        f_1 = 1.12019 (exact)
        >>> print(found.f_without_dot)
        f_1 without correction terms = 0.934993 (exact)
    """

    thetas: tuple[ClosedForm, ...]
    second_moments: tuple[ClosedForm, ...]
    f: ClosedForm
    f_without_dot: ClosedForm


@form("act depth xi0 xi eta chi bias k seed", least=1)
def mup_step(at: Asked) -> MuPStep:
    """The first step of muP.

    Args:
        depth: Number of hidden layers L.

    Returns:
        The numbers of the step.

    Source: Hajjar, Chizat, Giraud, appendices F.5 and J.2.

    Example:
        >>> float(mup_step("linear", 3, k=(1, 0.5, 1), eta=0.25).f)
        0.5
    """
    count, sigma, pair, rate, seed = at.depth, at.sigma, at.pair, at.rate, at.seed
    first = sizes((sigma,) * count, pair.first)
    thetas, squares = _recursion(sigma, first, pair, rate, seed, dotted=1.0)
    plain, _ = _recursion(sigma, first, pair, rate, seed, dotted=0.0)
    formula = (
        r"\theta_1=-\eta\chi_0k(\xi_0,\xi),\quad\theta_{l+1}=\theta_l\,"
        r"\mathbb{E}[\sigma'(h_1^l)\sigma'(\tilde h_0^l)]-\eta\chi_0\mathbb{E}[\tilde x_0^lx_1^l]"
    )
    square = r"\mathbb{E}(h_1^l)^2=\mathbb{E}(x_1^{l-1})^2+\theta_l^2\,\mathbb{E}(d\tilde h_0^l)^2"
    return MuPStep(
        per_layer("theta", thetas, formula, ITEM),
        per_layer("E h_1^2", squares, square, ITEM),
        closed("f_1", thetas[-1], r"f_1=\theta_{L+1}", ITEM),
        closed("f_1 without correction terms", plain[-1], r"f_1=\theta_{L+1}", ITEM),
    )


def _recursion(
    sigma: Nonlinearity, first: Sizes, pair: Pair, rate: Bounded, seed: int, *, dotted: float
) -> tuple[list[Bounded], list[Bounded]]:
    """theta_1..theta_{L+1} and E (h_1^l)^2; the correction terms of the layers times ``dotted``."""
    thetas, squares = [rate * pair.both], list[Bounded]()
    count = len(first.h)
    for place in range(count):
        theta = thetas[-1]
        squares.append(pair.second + theta * theta * first.dh[place])
        push = Push(theta, first.dx[place])
        slopes = pushed_mean(sigma.slope, sigma.slope, sigma, pair, push, seed)
        both = pushed_mean(sigma.expr, sigma.expr, sigma, pair, push, seed)
        kept = 1.0 if place == count - 1 else dotted  # of the last layer it is E[U x_1^L]
        thetas.append(kept * (theta * slopes) + rate * both)
        if place < count - 1:
            second = pushed_mean(ONE, sigma.expr**2, sigma, pair, push, seed)
            pair = Pair(first.h[place + 1], both, second)
    return thetas, squares


@dataclass(frozen=True, slots=True)
class TangentKernel(Shown, Told):
    """The tangent kernel of a network in the NTK parameterization, at two inputs.

    Args:
        kernel: K(xi_0, xi), the sum over all layers.
        last_layer: The term of the output layer, lim x_0^L(xi_0) . x_0^L(xi) / m; it is not all
            of the kernel.
        layers: The terms of the layers 1..L+1.

    Example:
        >>> found = tangent_kernel("linear", 2, k=(1.0, 0.5, 1.0))
        >>> float(found.kernel), float(found.last_layer)
        (1.5, 0.5)
    """

    kernel: ClosedForm
    last_layer: ClosedForm
    layers: tuple[ClosedForm, ...]


@dataclass(frozen=True, slots=True)
class LazyStep(Shown, Told):
    """The first step of a network in the NTK parameterization, with c = 0.

    Args:
        change: f_1(xi) - f_0(xi), given chi_0.
        variance: E f_0(xi_0)^2: f_0 is random, so chi_0 is, but where the loss is linear.
        kernel: The tangent kernel.

    Example:
        >>> print(lazy_step("linear", 2, k=(1.0, 0.5, 1.0), eta=2).change)
        f_1 - f_0 = 3 (exact)
    """

    change: ClosedForm
    variance: ClosedForm
    kernel: TangentKernel


def tangent_kernel(
    act: Activation,
    depth: int,
    xi0: Input | None = None,
    xi: Input | None = None,
    *,
    bias: str = "first",
    k: Sequence[float] | None = None,
) -> TangentKernel:
    """The tangent kernel, with biases in the first layer alone.

    Args:
        act: The activation: a catalogue name, or a function of an expression.
        depth: Number of hidden layers L.
        xi0: The first input.
        xi: The second input.
        bias: ``"first"``: biases in the first layer; ``"none"``.
        k: In place of the inputs, k(xi_0, xi_0), k(xi_0, xi) and k(xi, xi).

    Returns:
        K = Sigma^L + sum_l Sigma^(l-1) prod_{j >= l} dSigma^j, with Sigma^0 = k, Sigma^l =
        E[sigma sigma] and dSigma^l = E[sigma' sigma'] under the covariance Sigma^(l-1).

    Raises:
        UsageError: A depth below 1, or inputs that do not fit.
        NotDifferentiable: The activation jumps.

    Source: Hajjar, Chizat, Giraud, section 2.2 and appendix B.3 (which has the last term alone);
        Jacot, Gabriel, Hongler, Neural tangent kernel, Theorem 1.

    Example:
        >>> print(tangent_kernel("relu", 3, k=(1.74, 0.93, 2.35)).kernel)
        K = 0.420084 (exact)
    """
    pair = covariances(xi0, xi, bias, k)
    return _kernel(nonlinearity(act), checks.whole(depth, "depth", least=1), pair)


@form("act depth xi0 xi eta chi bias k", least=1)
def lazy_step(at: Asked) -> LazyStep:
    """The first step of the NTK parameterization: features stay, and f moves along the kernel.

    Args:
        depth: Number of hidden layers L.
        eta: The learning rate.
        chi: The derivative of the loss by f_0, at the f_0(xi_0) that was drawn.

    Returns:
        f_1 - f_0 = -eta chi_0 K(xi_0, xi), with the kernel.

    Source: Hajjar, Chizat, Giraud, section 2.2.

    Example:
        >>> print(lazy_step("relu", 3, k=(1.74, 0.93, 2.35), eta=1).variance)
        E f_0^2 = 0.2175 (exact)
    """
    count, sigma, pair = at.depth, at.sigma, at.pair
    kernel = _kernel(sigma, count, pair)
    change = at.rate * bounded(kernel.kernel.value)
    variance = pair.first
    for _ in range(count):
        variance = single_mean(sigma.expr**2, variance)
    return LazyStep(
        closed("f_1 - f_0", change, r"f_1-f_0=-\eta\chi_0K(\xi_0,\xi)", LAZY),
        closed("E f_0^2", variance, r"\mathbb{E}f_0^2=\Sigma^L(\xi_0,\xi_0)", LAZY),
        kernel,
    )


def _kernel(sigma: Nonlinearity, depth: int, pair: Pair) -> TangentKernel:
    terms: list[Bounded] = []
    for _ in range(depth):
        gate = pair_mean(sigma.slope, sigma.slope, pair)
        terms = [term * gate for term in (*terms, pair.both)]
        pair = _next(sigma, pair)
    terms.append(pair.both)
    total = sum(terms, start=Bounded(0.0))
    own = r"\Sigma^{l-1}\prod_{j=l}^{L}\dot\Sigma^j"
    return TangentKernel(
        closed("K", total, rf"K=\Sigma^L+\sum_{{l=1}}^{{L}}{own}", LAZY),
        closed("K_last", pair.both, r"\Sigma^L", LAZY),
        per_layer("K", terms, own, LAZY),
    )


def _next(sigma: Nonlinearity, pair: Pair) -> Pair:
    """The covariances one layer on; equal ones stay equal."""
    first = single_mean(sigma.expr**2, pair.first)
    if pair.first == pair.both == pair.second:
        return Pair(first, first, first)
    both = pair_mean(sigma.expr, sigma.expr, pair)
    return Pair(first, both, single_mean(sigma.expr**2, pair.second))
