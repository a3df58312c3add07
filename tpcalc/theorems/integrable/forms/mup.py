"""muP after its first step, in closed form, for contrast with IP-LLR.

Initial weights and biases have standard deviation 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tpcalc import checks
from tpcalc.integrals.bounded import Bounded
from tpcalc.shown import Shown
from tpcalc.theorems.closed import ClosedForm
from tpcalc.theorems.integrable.forms.closed import Told, closed, per_layer
from tpcalc.theorems.integrable.forms.gaussian import ONE, Pair, Push, pushed_mean
from tpcalc.theorems.integrable.forms.inputs import Input, covariances
from tpcalc.theorems.integrable.forms.llr import learning
from tpcalc.theorems.integrable.forms.moments import Sizes, sizes
from tpcalc.theorems.integrable.forms.nonlinearity import Activation, Nonlinearity, nonlinearity

ITEM = "Lemma F.5, appendix J.2"


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


def mup_step(
    act: Activation,
    depth: int,
    xi0: Input | None = None,
    xi: Input | None = None,
    *,
    eta: float,
    chi: float = -1.0,
    bias: str = "first",
    k: Sequence[float] | None = None,
    seed: int = 0,
) -> MuPStep:
    """The first step of muP.

    Args:
        act: The activation: a catalogue name, or a function of an expression.
        depth: Number of hidden layers L.
        xi0: The training input.
        xi: The query.
        eta: The base learning rate.
        chi: The derivative of the loss by f_0, at f_0 = 0.
        bias: ``"first"``: biases in the first layer; ``"none"``.
        k: In place of the inputs, k(xi_0, xi_0), k(xi_0, xi) and k(xi, xi).
        seed: Of samples, where an integral has no closed form and no quadrature.

    Returns:
        The numbers of the step.

    Raises:
        UsageError: A depth below 1, or inputs that do not fit.
        NotDifferentiable: The activation jumps.
        EvaluationError: A degree of homogeneity above 2 that is no whole number, or numbers that
            leave the range of a float.

    Source: Hajjar, Chizat, Giraud, appendices F.5 and J.2.

    Example:
        >>> float(mup_step("linear", 3, k=(1, 0.5, 1), eta=0.25).f)
        0.5
    """
    count = checks.whole(depth, "depth", least=1)
    sigma, pair = nonlinearity(act), covariances(xi0, xi, bias, k)
    rate, whole = learning(eta, chi), checks.whole(seed, "seed")
    first = sizes((sigma,) * count, pair.first)
    thetas, squares = _recursion(sigma, first, pair, rate, whole, dotted=1.0)
    plain, _ = _recursion(sigma, first, pair, rate, whole, dotted=0.0)
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
