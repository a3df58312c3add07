"""IP-LLR after its second step (Hajjar, Chizat, Giraud, appendices G and H)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from tpcalc import checks
from tpcalc.errors import UsageError
from tpcalc.evaluate.expect import expect
from tpcalc.functions import Expr, Var
from tpcalc.functions.expr import substitute
from tpcalc.integrals.bounded import Bounded, bounded, through
from tpcalc.results import Estimate
from tpcalc.shown import Shown
from tpcalc.theorems.closed import ClosedForm, Told, closed, per_layer
from tpcalc.theorems.integrable.forms.gaussian import HEAVY
from tpcalc.theorems.integrable.forms.inputs import Asked, Input, exact_row, learning, table
from tpcalc.theorems.integrable.forms.llr import LLRStep, Step, llr_step, prepared
from tpcalc.theorems.integrable.forms.nonlinearity import Activation, Nonlinearity, nonlinearity

ITEM = "Corollaries G.7.1 and G.8.1, appendix H.2"
MU_1 = r"\mu_1=\eta\chi_0\mathbb{E}[x_0^{l-1}x_2^{l-1}]"
MU_2 = r"\mu_2=\eta^2\chi_0\chi_1\mathbb{E}[x_1^{l-1}x_2^{l-1}]\nu_{l+1}"
TAU = r"\tau=\mathbb{E}[x_1^{L-1}x_2^{L-1}]"
LAST = r"f_2=\mathbb{E}[Ux_2^L]-\eta\chi_0\mathbb{E}[x_0^Lx_2^L]-\eta\chi_1\mathbb{E}[x_1^Lx_2^L]"


@dataclass(frozen=True, slots=True)
class LLRSecondStep(Shown, Told):
    """IP-LLR after a step on xi_0 and one on xi_1, at a query xi.

    For 2 <= l < L, h_2^l = -mu_1 D sigma'(H) + mu_2 sigma(H) sigma'(h_1^l), with H and D the
    scale-free first pass forward and backward; at L, U - eta chi_0 sigma(H) with the factor
    -eta chi_1 tau stands in place of mu_2 sigma(H).

    Args:
        first: The first step, at xi_1.
        mu_1: mu_1 of the layers 2..L.
        mu_2: mu_2 of the layers 2..L-1.
        tau: E[x_1^{L-1}(xi_1) x_2^{L-1}(xi)].
        f: f_2(xi).

    Example:
        >>> found = llr_second_step("relu^2", 2, (0.3, 0.1), (0.2, -0.1), (0.1, 0.2), eta=0.1)
        >>> len(found.mu_1), len(found.mu_2), found.f.name
        (1, 0, 'f_2')
    """

    first: LLRStep
    mu_1: tuple[ClosedForm, ...]
    mu_2: tuple[ClosedForm, ...]
    tau: ClosedForm
    f: ClosedForm


@dataclass(frozen=True, slots=True)
class _Rates:
    """-eta_0 chi_0 and -eta_1 chi_1."""

    first: Bounded
    second: Bounded


def llr_second_step(
    act: Activation,
    depth: int,
    xi0: Input,
    xi1: Input,
    xi: Input,
    *,
    eta: float | Sequence[float],
    chi: float | Sequence[float] = -1.0,
    bias: str = "first",
    seed: int = 0,
) -> LLRSecondStep:
    """IP-LLR after its second step.

    Args:
        act: The activation: alpha z_+^p + beta |z_-|^p with 1 < p <= 2, or with p = 1 and neither
            side 0. For relu itself coordinates that are 0 after the first step are decided by terms
            that vanish in the limit, and the formula does not hold.
        depth: Number of hidden layers L, at least 2.
        xi0: The training input of step 0.
        xi1: That of step 1.
        xi: The query.
        eta: The base learning rate, or those of the two steps.
        chi: The derivative of the loss by the output, or those at the two steps.
        bias: ``"first"``: biases in the first layer; ``"none"``.
        seed: Of the samples: these integrals of several Gaussians have no quadrature.

    Returns:
        The coefficients of the second forward pass, and f_2.

    Raises:
        UsageError: An activation of another kind, a depth below 2, or inputs that do not fit.

    Source: Hajjar, Chizat, Giraud, Corollaries G.7.1 and G.8.1, Lemma H.2.

    Example:
        >>> print(llr_second_step("linear", 2, (1,), (1,), (1,), eta=0.5).f)
        f_2 = 6.25 (exact)
    """
    sigma = nonlinearity(act)
    _decided(sigma)
    etas, chis = _two(eta, "eta"), _two(chi, "chi")
    rates = _Rates(learning(etas[0], chis[0]), learning(etas[1], chis[1]))
    rows = [exact_row(row, name) for row, name in ((xi0, "xi0"), (xi1, "xi1"), (xi, "xi"))]
    k = table(rows, bias)
    first = llr_step(sigma, depth, xi0, xi1, eta=etas[0], chi=chis[0], bias=bias, seed=seed)
    given = {"act": sigma, "depth": depth, "xi0": xi0, "xi": xi1, "bias": bias, "k": None}
    step = prepared(Asked({**given, "eta": etas[0], "chi": chis[0], "seed": seed}))
    low = _first_layer(step, first, rates, k)
    mu_1, mu_2 = list[Bounded](), list[Bounded]()
    top = len(step.layers) - 1
    for place in range(1, top):
        mu_1.append(-(rates.first * low[0]))
        mu_2.append(rates.first * rates.second * low[1] * _of(first.nus[place]))
        low = _hidden_layer(step, first, place, -mu_1[-1], mu_2[-1])
    tau = low[1]
    mu_1.append(-(rates.first * low[0]))
    parts = _last_layer(step, first, -mu_1[-1], rates.first, rates.second * tau)
    f = parts[0] + rates.first * parts[1] + rates.second * parts[2]
    return LLRSecondStep(
        first,
        per_layer("mu_1", mu_1, MU_1, ITEM, 2),
        per_layer("mu_2", mu_2, MU_2, ITEM, 2),
        closed("tau", tau, TAU, ITEM),
        closed("f_2", f, LAST, ITEM),
    )


def _decided(sigma: Nonlinearity) -> None:
    if sigma.degree is None or sigma.degree < 1:
        raise UsageError(
            f"{sigma.text} is no power alpha z_+^p + beta |z_-|^p with p >= 1.",
            hint="tp.limit gives the second step of other activations.",
        )
    if sigma.degree > HEAVY:
        raise UsageError(
            f"{sigma.text} has degree {sigma.degree}: samples miss the tails that carry the "
            "moments of its second step.",
            hint="Take a degree up to 2.",
        )
    if sigma.degree == 1 and 0 in (sigma.right, sigma.left):
        raise UsageError(
            f"{sigma.text} is 0 on a half-line and has a kink: where h_1^L is 0 in the limit, "
            "terms that vanish decide its slope.",
            hint="tp.limit follows them.",
        )


def _first_layer(
    step: Step, first: LLRStep, rates: _Rates, k: Sequence[Sequence[Fraction]]
) -> tuple[Bounded, Bounded]:
    """E[x_0^1 x_2^1] and E[x_1^1 x_2^1]; the Gaussians are h_0^1 at the three inputs, and D."""
    sigma, known = step.sigma, [[float(value) for value in row] for row in k]

    def integrals(which: int) -> Bounded:
        def make(r0: float, r1: float, nu: float, variance: float) -> Estimate:
            cov = [[*row, 0.0] for row in known] + [[0.0, 0.0, 0.0, variance]]

            def integrand(h0: Expr, h1: Expr, h: Expr, d: Expr) -> Expr:
                gate = d * _at(sigma.slope, h0)
                once = h1 + r0 * known[0][1] * gate
                turned = r0 * nu * sigma(h0) * _at(sigma.slope, once)
                twice = h + r0 * known[0][2] * gate + r1 * known[1][2] * turned
                return (sigma(h0), sigma(once))[which] * sigma(twice)

            return expect(integrand, cov, seed=step.seed)

        return through(make, rates.first, rates.second, _of(first.nus[0]), step.sizes.dx[0])

    return integrals(0), integrals(1)


def _hidden_layer(
    step: Step, first: LLRStep, place: int, straight: Bounded, turned: Bounded
) -> tuple[Bounded, Bounded]:
    """The same one layer up; the Gaussians are H and D of that layer."""
    sizes = (step.sizes.h[place], step.sizes.dx[place])
    known = (_of(first.thetas[place]), straight, *sizes, turned)
    make = _above(step, lambda x, d, b: b * x)
    return through(make(1), *known), through(make(2), *known)


def _last_layer(
    step: Step, first: LLRStep, straight: Bounded, rate: Bounded, turned: Bounded
) -> tuple[Bounded, Bounded, Bounded]:
    """E[U x_2^L], E[x_0^L x_2^L] and E[x_1^L x_2^L]; the Gaussians are H and U."""
    sizes = (step.sizes.h[-1], Bounded(1.0))
    known = (_of(first.thetas[-1]), straight, *sizes, rate, turned)
    make = _above(step, lambda x, u, r, b: b * (u + r * x))
    return through(make(0), *known), through(make(1), *known), through(make(2), *known)


def _above(step: Step, turned: Callable[..., Expr]) -> Callable[[int], Callable[..., Estimate]]:
    """E[D x_2], E[x_0 x_2] and E[x_1 x_2] of a layer, of the numbers that they are made of.

    ``turned`` is what the second gradient is besides its gate, of x_0 = sigma(H), D and numbers.
    """
    sigma = step.sigma

    def make(which: int) -> Callable[..., Estimate]:
        def integral(theta: float, a: float, h_size: float, dx: float, *more: float) -> Estimate:
            def integrand(h: Expr, d: Expr) -> Expr:
                gate = d * _at(sigma.slope, h)
                once = theta * gate
                twice = a * gate + turned(sigma(h), d, *more) * _at(sigma.slope, once)
                return (d, sigma(h), sigma(once))[which] * sigma(twice)

            return expect(integrand, [[h_size, 0.0], [0.0, dx]], seed=step.seed)

        return integral

    return make


def _of(form: ClosedForm) -> Bounded:
    return bounded(form.value)


def _at(slope: Expr, z: Expr) -> Expr:
    return substitute(slope, {Var(0): z})


def _two(value: float | Sequence[float], name: str) -> tuple[float, float]:
    """A number of each step, or one for both."""
    if not hasattr(value, "__iter__"):
        found = float(checks.real(value, name))
        return found, found
    given = [float(checks.real(entry, f"an entry of {name}")) for entry in value]
    if len(given) != 2:
        raise UsageError(f"{name} has {len(given)} numbers; the steps are 2.")
    return given[0], given[1]
