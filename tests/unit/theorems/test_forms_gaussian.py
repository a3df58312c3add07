"""Pushed Gaussians: closed forms and quadrature beside samples of all of them."""

from __future__ import annotations

import pytest
from agree import agree

import tpcalc as tp
from tpcalc.errors import EvaluationError
from tpcalc.functions import Expr
from tpcalc.integrals.bounded import Bounded
from tpcalc.results import Method
from tpcalc.theorems.integrable.forms import gaussian
from tpcalc.theorems.integrable.forms.gaussian import ONE, Pair, Push, pair_mean, pushed_mean
from tpcalc.theorems.integrable.forms.nonlinearity import Activation, Nonlinearity, nonlinearity


def two_sided(z: Expr) -> Expr:
    return tp.relu(z) ** 2 + tp.relu(-z) ** 2 / 2  # type: ignore[no-any-return]


PAIRS = {
    "two": (1.74, 0.93, 2.35),
    "negative": (1.0, -0.6, 1.5),
    "same": (1.3, 1.3, 1.3),
    "alone": (1.3, 0.0, 0.0),
}


def sampled(outer: Expr, inner: Expr, sigma: Nonlinearity, floats: tuple[float, ...]) -> object:
    return gaussian._nested(outer, inner, sigma, gaussian._Floats(*floats), 1)


@pytest.mark.parametrize("act", ["relu", "leaky_relu:0.2", "abs", "relu^2", two_sided])
@pytest.mark.parametrize(
    ("pair", "mean"), [("two", 0.4), ("negative", 0.0), ("same", 0.4), ("alone", 0.0)]
)
def test_against_samples(act: Activation, pair: str, mean: float) -> None:
    sigma, theta, variance = nonlinearity(act), 0.3, 0.5
    floats = PAIRS[pair]
    push = Push(Bounded(theta), Bounded(variance), Bounded(mean))
    integrands = ((sigma.expr, sigma.expr), (sigma.slope, sigma.slope), (ONE, sigma.expr**2))
    for outer, inner in integrands:
        found = pushed_mean(outer, inner, sigma, Pair(*map(Bounded, floats)), push)
        assert found.method is not Method.PARTICLES
        assert found.error < 1e-11
        against = sampled(outer, inner, sigma, (*floats, theta, variance, mean))
        agree(found.estimate(), against, 6)  # type: ignore[arg-type]


def test_cubes_at_the_training_input() -> None:
    """X = Y has no quadrature as it stands; the number is that of an adaptive rule on (0, 40)."""
    sigma = nonlinearity("relu^3")
    push = Push(Bounded(0.3), Bounded(0.5))
    same = Pair(*map(Bounded, (1.74, 1.74, 1.74)))
    found = pushed_mean(sigma.expr, sigma.expr, sigma, same, push)
    assert abs(found.value - 796.3530160832031) <= found.error + 4e-7
    assert found.error < 1e-7


def test_degrees_that_samples_would_get_wrong_are_refused() -> None:
    sigma, pair = nonlinearity("relu^2.5"), Pair(*map(Bounded, PAIRS["two"]))
    with pytest.raises(EvaluationError, match="miss the tails"):
        pushed_mean(sigma.expr, sigma.expr, sigma, pair, Push(Bounded(0.3), Bounded(0.5)))


def test_cubes_given_the_first_gaussian() -> None:
    sigma = nonlinearity("relu^3")
    floats, theta, variance = PAIRS["two"], 0.05, 0.5
    push = Push(Bounded(theta), Bounded(variance))
    found = pushed_mean(sigma.slope, sigma.slope, sigma, Pair(*map(Bounded, floats)), push)
    assert found.method is Method.QUADRATURE
    against = sampled(sigma.slope, sigma.slope, sigma, (*floats, theta, variance, 0.0))
    agree(found.estimate(), against)  # type: ignore[arg-type]


def test_without_a_push_it_is_the_dual_of_the_activation() -> None:
    sigma, pair = nonlinearity("tanh"), Pair(*map(Bounded, PAIRS["two"]))
    still = Push(Bounded(0.0), Bounded(0.5))
    found = pushed_mean(sigma.expr, sigma.expr, sigma, pair, still)
    agree(found.estimate(), pair_mean(sigma.expr, sigma.expr, pair).estimate())


def test_errors_of_the_arguments_are_carried() -> None:
    sigma = nonlinearity("relu")
    exact = Pair(*map(Bounded, PAIRS["two"]))
    wide = Pair(exact.first, Bounded(0.93, 0.01), exact.second)
    push = Push(Bounded(1.0, 0.02), Bounded(0.5))
    centre = pushed_mean(sigma.expr, sigma.expr, sigma, exact, Push(Bounded(1.0), Bounded(0.5)))
    found = pushed_mean(sigma.expr, sigma.expr, sigma, wide, push)
    moved = Pair(exact.first, Bounded(0.937), exact.second)
    other = pushed_mean(sigma.expr, sigma.expr, sigma, moved, Push(Bounded(1.01), Bounded(0.5)))
    assert found.value == centre.value
    assert 0 < abs(other.value - found.value) <= found.error


def test_rounding_beyond_full_correlation_is_taken_back() -> None:
    sigma = nonlinearity("relu")
    pair = Pair(Bounded(0.1), Bounded(0.2 * (1 + 1e-16), 1e-17), Bounded(0.4))
    found = pair_mean(sigma.expr, sigma.expr, pair)
    assert found.value == pytest.approx(0.1, rel=1e-9)
