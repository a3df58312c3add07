"""Kernels of many inputs: the series agree with the two-dimensional rule, and stay fast."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from unit.integrals.quadrature.test_one_variable import CLIP

from tpcalc.activations.entries import lookup
from tpcalc.functions import Expr, Var
from tpcalc.integrals.bounded import Bounded
from tpcalc.integrals.quadrature import expectation
from tpcalc.integrals.quadrature.families import Pairs, distinct, family
from tpcalc.integrals.quadrature.geometry import plane
from tpcalc.integrals.quadrature.mehler import mehler
from tpcalc.integrals.quadrature.plane_sums import plane_sums
from tpcalc.integrals.quadrature.shape import shape
from tpcalc.integrals.quadrature.two_dimensions import plane_integrals

Z = Var(0)
Array = NDArray[np.float64]


def gram(count: int, aligned: float, seed: int = 0) -> Array:
    """Covariances of inputs with squared norms between 0.1 and 5 and a common part."""
    rng = np.random.default_rng(seed)
    points = rng.standard_normal((count, 8))
    points /= np.linalg.norm(points, axis=1)[:, None]
    points = np.concatenate([np.sqrt(1 - aligned) * points, np.full((count, 1), aligned**0.5)], 1)
    points *= np.sqrt(rng.uniform(0.1, 5.0, count))[:, None]
    return points @ points.T


def kernel(factor: Expr, cov: Array, mean: float = 0.0) -> Bounded:
    q = np.diag(cov).copy()
    found = expectation([factor, factor], [mean, mean], [[q[:, None], cov], [cov, q[None, :]]])
    assert found is not None
    return found


FACTORS = {
    **{name: lookup(name)(Z) for name in ("tanh", "softplus", "relu", "step", "swish", "cos")},
    "clip": CLIP(Z),
    "relu^1/2": lookup("relu^1/2")(4 * Z),
    "relu^5/4": lookup("relu^5/4")(7 * Z),
    "log": lookup("log").function(lookup("abs").function(Z)),
}


@pytest.mark.slow
@pytest.mark.parametrize(("aligned", "mean"), [(0.0, 0.0), (0.9, 0.3)])
@pytest.mark.parametrize("name", FACTORS)
def test_series_equal_the_rule(name: str, aligned: float, mean: float) -> None:
    factor, cov = FACTORS[name], gram(8, aligned)
    found = kernel(factor, cov, mean)
    function = shape(factor)
    assert function is not None
    i, j = np.triu_indices(8, 1)
    q = np.diag(cov)
    pairs = plane(np.full(28, mean), np.full(28, mean), q[i], q[j], cov[i, j])
    norms = np.sqrt(np.diag(found.value))
    rule = plane_integrals(
        function, function, pairs, np.ones((1, 1, 28)), norms[i] * norms[j], 13.0
    )
    assert (np.abs(found.value[i, j] - rule.value) <= found.error[i, j] + rule.error).all()
    assert (found.error <= 1e-12 * np.outer(norms, norms)).all()


@pytest.mark.parametrize("name", ["tanh", "softplus", "relu", "step"])
def test_series_bound_their_truncation(name: str) -> None:
    """Where the series answers it is right; the closer to 1, the fewer answers for kinks."""
    near = 1 - 2.0 ** -np.arange(10, 34, 3)
    rho = np.concatenate([[0.1, -0.5, 0.9, 0.97], near, -near])[None]
    ones = np.ones(20)
    function = shape(FACTORS[name])
    part = family(function, np.zeros(1), np.ones(1))
    nothing = np.zeros((1, 1), dtype=np.intp)
    value, error = mehler(part, part, nothing, nothing, rho)
    pairs = plane(0 * ones, 0 * ones, ones, ones, rho[0])
    scale = np.broadcast_to(part.energy.value, (20,))
    rule = plane_integrals(function, function, pairs, np.ones((1, 1, 20)), scale, 13.0)
    answered = np.isfinite(error[0])
    assert answered[:3].all()
    assert answered.all() == function.smooth
    off = np.abs(value[0] - rule.value)[answered]
    assert (off <= (error[0] + rule.error)[answered]).all()
    assert (error[0][answered] <= 1e-12).all()


def test_equal_inputs_and_opposite_ones() -> None:
    cov = gram(6, 0.5)
    cov[1], cov[:, 1] = cov[0], cov[:, 0]
    cov[1, 1] = cov[0, 1] = cov[1, 0] = cov[0, 0]
    cov[2], cov[:, 2] = -cov[0], -cov[:, 0]
    cov[2, 2], cov[0, 2], cov[2, 0] = cov[0, 0], -cov[0, 0], -cov[0, 0]
    cov[1, 2] = cov[2, 1] = -cov[0, 0]
    found = kernel(FACTORS["softplus"], cov)
    assert found.value[0, 1] == pytest.approx(found.value[0, 0], rel=1e-13)
    alone = expectation([FACTORS["softplus"] ** 2], [0.0], [[cov[0, 0]]])
    assert found.value[0, 0] == pytest.approx(float(alone.value), rel=1e-13)
    assert np.linalg.eigvalsh(found.value)[0] > -1e-12


def test_different_gaussians_are_found_once() -> None:
    mean, spread, index = distinct(np.zeros((3, 1)), np.array([[1.0], [2.0], [1.0]]))
    assert spread.tolist() == [1.0, 2.0]
    assert index.tolist() == [[0], [1], [0]]
    assert mean.tolist() == [0.0, 0.0]


def test_three_axes() -> None:
    c = np.linspace(-0.5, 0.5, 12).reshape(2, 3, 2)
    found = expectation([FACTORS["tanh"]] * 2, [0.0, 0.0], [[1.0, c], [c, 1.0]])
    alone = expectation([FACTORS["tanh"]] * 2, [0.0, 0.0], [[1.0, c[1, 2, 0]], [c[1, 2, 0], 1.0]])
    assert found.value.shape == (2, 3, 2)
    assert found.value[1, 2, 0] == pytest.approx(float(alone.value), rel=1e-12)


def test_sums_in_the_plane_at_correlations_next_to_one() -> None:
    """erf of Gaussians: E erf(u) erf(v) = 2/pi asin(2 c / sqrt((1 + 2 q)(1 + 2 r)))."""
    q, r = np.array([[0.1], [1.0], [4.0]]), np.array([0.5, 1.0, 3.0])
    for gap in (0.7, 0.1, 1e-3, 1e-8):
        c = (1 - gap) * np.sqrt(q * r)
        part = plane(np.zeros(1), np.zeros(1), q, r, c)
        erf = lookup("erf")(Z)
        found = shape(erf)
        assert found is not None
        first, second = (family(found, np.zeros(3), np.sqrt(s).ravel()) for s in (q, r))
        assert first is not None and second is not None
        left, right = np.arange(3)[:, None], np.arange(3)[None]
        pairs = Pairs(part, left, right, {(0, 0): np.ones(())}, np.ones(()))
        value, error = plane_sums(first, second, pairs)
        want = 2 / np.pi * np.arcsin(2 * c / np.sqrt((1 + 2 * q) * (1 + 2 * r)))
        assert (error < 1e-12).all() and (np.abs(value - want) <= error + 1e-15).all()
