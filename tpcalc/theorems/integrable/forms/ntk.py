"""The neural tangent parameterization: a kernel, and the step that f takes along it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tpcalc import checks
from tpcalc.integrals.bounded import Bounded, bounded
from tpcalc.shown import Shown
from tpcalc.theorems.closed import ClosedForm
from tpcalc.theorems.integrable.forms.closed import Told, closed, per_layer
from tpcalc.theorems.integrable.forms.gaussian import Pair, pair_mean, single_mean
from tpcalc.theorems.integrable.forms.inputs import Input, covariances
from tpcalc.theorems.integrable.forms.llr import learning
from tpcalc.theorems.integrable.forms.nonlinearity import Activation, Nonlinearity, nonlinearity

ITEM = "section 2.2, appendix B.3"


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


def lazy_step(
    act: Activation,
    depth: int,
    xi0: Input | None = None,
    xi: Input | None = None,
    *,
    eta: float,
    chi: float = -1.0,
    bias: str = "first",
    k: Sequence[float] | None = None,
) -> LazyStep:
    """The first step of the NTK parameterization: features stay, and f moves along the kernel.

    Args:
        act: The activation: a catalogue name, or a function of an expression.
        depth: Number of hidden layers L.
        xi0: The training input.
        xi: The query.
        eta: The learning rate.
        chi: The derivative of the loss by f_0, at the f_0(xi_0) that was drawn.
        bias: ``"first"``: biases in the first layer; ``"none"``.
        k: In place of the inputs, k(xi_0, xi_0), k(xi_0, xi) and k(xi, xi).

    Returns:
        f_1 - f_0 = -eta chi_0 K(xi_0, xi), with the kernel.

    Raises:
        UsageError: A depth below 1, or inputs that do not fit.
        NotDifferentiable: The activation jumps.

    Source: Hajjar, Chizat, Giraud, section 2.2.

    Example:
        >>> print(lazy_step("relu", 3, k=(1.74, 0.93, 2.35), eta=1).variance)
        E f_0^2 = 0.2175 (exact)
    """
    count, sigma = checks.whole(depth, "depth", least=1), nonlinearity(act)
    pair = covariances(xi0, xi, bias, k)
    kernel = _kernel(sigma, count, pair)
    change = learning(eta, chi) * bounded(kernel.kernel.value)
    variance = pair.first
    for _ in range(count):
        variance = single_mean(sigma.expr**2, variance)
    return LazyStep(
        closed("f_1 - f_0", change, r"f_1-f_0=-\eta\chi_0K(\xi_0,\xi)", ITEM),
        closed("E f_0^2", variance, r"\mathbb{E}f_0^2=\Sigma^L(\xi_0,\xi_0)", ITEM),
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
        closed("K", total, rf"K=\Sigma^L+\sum_{{l=1}}^{{L}}{own}", ITEM),
        closed("K_last", pair.both, r"\Sigma^L", ITEM),
        per_layer("K", terms, own, ITEM),
    )


def _next(sigma: Nonlinearity, pair: Pair) -> Pair:
    """The covariances one layer on; equal ones stay equal."""
    first = single_mean(sigma.expr**2, pair.first)
    if pair.first == pair.both == pair.second:
        return Pair(first, first, first)
    both = pair_mean(sigma.expr, sigma.expr, pair)
    return Pair(first, both, single_mean(sigma.expr**2, pair.second))
