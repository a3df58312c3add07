"""Polynomials of further Gaussians, and Dirac deltas, beside functions of two."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import mpmath as mp
import numpy as np
import pytest

from tpcalc.activations.entries import lookup
from tpcalc.functions import Atom, Expr, Facts, Var
from tpcalc.functions.fn import derivative
from tpcalc.integrals.bounded import Bounded
from tpcalc.integrals.quadrature import expectation, supported

Z = Var(0)
DELTA = Atom("delta", lambda xp, x: 0.0 * x, None, Facts(kinks=(0.0,), growth=Fraction(0)))
TANH, RELU, STEP = (lookup(name)(Z) for name in ("tanh", "relu", "step"))


def told(factors: list[Expr], mean: list[float], cov: Any) -> Bounded:
    found = expectation(factors, mean, cov)
    assert found is not None
    return found


def test_moments_of_polynomials() -> None:
    cov = [[2.0, 0.5], [0.5, 1.0]]
    assert told([Z**2, Z**2], [0.0, 0.0], cov).value == pytest.approx(2.5, rel=1e-14)
    # E (u + 1)^2 v with means (0, 3): 3 E (u + 1)^2 + 2 Cov E (u + 1)
    assert told([(Z + 1) ** 2, Z], [0.0, 3.0], cov).value == pytest.approx(10.0, rel=1e-14)
    assert told([Z, Z], [0.0, 0.0], [[1.0, 0.0], [0.0, 1.0]]).value == 0.0


COVARIANCES = {"full": 0, "singular": 1, "nearly singular": 2, "u is v": 3}


def covariance(kind: str, rng: np.random.Generator) -> np.ndarray[Any, Any]:
    roots = rng.standard_normal((4, 4))
    if kind == "singular":
        roots[:, 2] = roots[:, 0] - roots[:, 1]
    elif kind == "nearly singular":
        roots[:, 1] = 1.5 * roots[:, 0] + 1e-6 * roots[:, 1]
    elif kind == "u is v":
        roots[:, 1] = roots[:, 0]
    return roots.T @ roots


@pytest.mark.parametrize("kind", COVARIANCES)
@pytest.mark.parametrize("names", [("tanh", "softplus"), ("relu", "tanh"), ("relu^2", "elu")])
def test_integration_by_parts(names: tuple[str, str], kind: str) -> None:
    """E f g x y^2 by Stein's lemma in x, on the same Gaussians."""
    rng = np.random.default_rng(COVARIANCES[kind])
    cov, mean = covariance(kind, rng), 0.5 * rng.standard_normal(4)
    f, g = lookup(names[0])(Z), lookup(names[1])(Z)

    def part(factors: list[Expr], index: list[int]) -> Bounded:
        return told(factors, mean[index].tolist(), cov[np.ix_(index, index)].tolist())

    whole = part([f, g, Z, Z**2], [0, 1, 2, 3])
    pieces = [
        (mean[2], part([f, g, Z**2], [0, 1, 3])),
        (cov[2, 0], part([derivative(f, Z), g, Z**2], [0, 1, 3])),
        (cov[2, 1], part([f, derivative(g, Z), Z**2], [0, 1, 3])),
        (2 * cov[2, 3], part([f, g, Z], [0, 1, 3])),
    ]
    value = sum(weight * piece.value for weight, piece in pieces)
    error = sum(abs(weight) * piece.error for weight, piece in pieces)
    assert abs(whole.value - value) <= whole.error + error + 1e-15 * abs(value)
    assert whole.error <= 1e-9 * max(1.0, abs(whole.value))


def test_one_function_beside_polynomials() -> None:
    # E tanh(u) x^2 y with E[x | u] = u / 2: Stein in y, then in x.
    cov = [[1.0, 0.5, 0.3], [0.5, 2.0, 0.1], [0.3, 0.1, 1.0]]
    slope = derivative(TANH, Z)
    whole = told([TANH, Z**2, Z], [0.0] * 3, cov)
    first = told([slope, Z**2], [0.0] * 2, [row[:2] for row in cov[:2]])
    second = told([TANH, Z], [0.0] * 2, [row[:2] for row in cov[:2]])
    assert whole.value == pytest.approx(0.3 * first.value + 0.2 * second.value, rel=1e-13)


def test_arrays_of_pairs_with_polynomials() -> None:
    rng = np.random.default_rng(5)
    points = rng.standard_normal((12, 4))
    gram = points @ points.T / 4
    q = np.diag(gram)
    cov = [
        [q[:, None], gram, 0.5, 0.1],
        [gram, q[None, :], 0.1, 0.5],
        [0.5, 0.1, 3.0, 0.3],
        [0.1, 0.5, 0.3, 3.0],
    ]
    found = told([TANH, RELU, Z, Z], [0.0] * 4, cov)
    assert found.value.shape == (12, 12)
    for i, j in [(0, 1), (3, 3), (7, 2), (11, 4)]:
        shown = [[np.broadcast_to(x, (12, 12))[i, j] for x in row] for row in cov]
        alone = told([TANH, RELU, Z, Z], [0.0] * 4, shown)
        assert abs(alone.value - found.value[i, j]) <= alone.error + found.error[i, j]


def test_independent_groups_multiply() -> None:
    cov = [[1.0, 0.0, 0.4], [0.0, 2.0, 0.0], [0.4, 0.0, 1.0]]
    whole = told([TANH, RELU, Z], [0.1, 0.0, 0.0], cov)
    left = told([TANH, Z], [0.1, 0.0], [[1.0, 0.4], [0.4, 1.0]])
    right = told([RELU], [0.0], [[2.0]])
    assert whole.value == pytest.approx(float(left.value * right.value), rel=1e-14)


def test_deltas_fix_a_gaussian() -> None:
    delta = DELTA(Z)
    assert told([delta], [0.5], [[2.0]]).value == pytest.approx(
        float(mp.npdf(0.5, 0, mp.sqrt(2))), rel=1e-14
    )
    both = told([delta, delta], [0.0, 0.0], [[1.0, 0.5], [0.5, 1.0]])
    assert both.value == pytest.approx(1 / (2 * np.pi * np.sqrt(0.75)), rel=1e-14)
    # delta(2 u - 1) u tanh(v): u = 1/2 with density phi(1/2) / 2, v ~ N(0.3 + 1/4, 3/4)
    found = told([DELTA(2 * Z - 1) * Z, TANH], [0.0, 0.3], [[1.0, 0.5], [0.5, 1.0]])
    inner = told([TANH], [0.55], [[0.75]])
    assert found.value == pytest.approx(float(mp.npdf(0.5)) / 4 * float(inner.value), rel=1e-13)


def test_deltas_in_sums_are_linear() -> None:
    cov = [[1.0, 0.5, 0.1], [0.5, 1.0, 0.2], [0.1, 0.2, 1.0]]
    rest = [RELU, Z**2]
    sharp = told([STEP + 3 * DELTA(Z), *rest], [0.0] * 3, cov)
    plain = told([STEP, *rest], [0.0] * 3, cov)
    peak = told([DELTA(Z), *rest], [0.0] * 3, cov)
    assert sharp.value == pytest.approx(float(plain.value + 3 * peak.value), rel=1e-14)


def test_slope_of_a_kernel_by_deltas() -> None:
    """d/dc E step(u) step(v) = E delta(u) delta(v) = 1 / (2 pi sqrt(1 - c^2))."""
    near = [told([STEP, STEP], [0.0] * 2, [[1.0, c], [c, 1.0]]).value for c in (0.4999, 0.5001)]
    found = told([DELTA(Z), DELTA(Z)], [0.0] * 2, [[1.0, 0.5], [0.5, 1.0]])
    assert (near[1] - near[0]) / 0.0002 == pytest.approx(float(found.value), rel=1e-7)


def test_deltas_without_a_value() -> None:
    same, delta = [[1.0, 1.0], [1.0, 1.0]], DELTA(Z)
    assert expectation([delta, STEP], [0.0, 0.0], same) is None
    assert expectation([delta, delta], [0.0, 0.0], same) is None
    assert expectation([delta * STEP], [0.0], [[1.0]]) is None
    assert expectation([delta * delta], [0.0], [[1.0]]) is None
    assert expectation([delta], [0.0], [[0.0]]) is None
    assert told([delta, RELU], [0.0, 0.0], same).value == 0.0
    assert supported([delta, TANH, RELU])
    assert not supported([delta * delta])
