"""Functions given as code: laws, derivatives, what is refused, and what is said."""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from typing import Any

import numpy as np
import pytest

import tpcalc as tp
from tpcalc.errors import EvaluationError, NotDifferentiable, StudyError, UsageError
from tpcalc.functions import Var
from tpcalc.nonlinearity.chaos import grid_chaos, polynomial_chaos
from tpcalc.nonlinearity.formulas import numpy_form
from tpcalc.nonlinearity.gaussian import gaussian_nlc, gaussian_split
from tpcalc.nonlinearity.interval import interval_nlc
from tpcalc.nonlinearity.laws import Array, Box, Empirical, Gaussian, Law, Sampler, Sphere
from tpcalc.nonlinearity.measured import sampled_nlc
from tpcalc.nonlinearity.ranges import linear_range
from tpcalc.nonlinearity.split import sampled_split
from tpcalc.results import Method
from tpcalc.views.numbers import plain

Z = 5
ONE = Gaussian()


def square(x: Array) -> Array:
    return x**2


# ------------------------------------------------------------------------------------------ laws


@pytest.mark.parametrize(
    "law",
    [
        Gaussian([1, 2], [[2, 1], [1, 3]]),
        Gaussian(0, [[1, 1], [1, 1]]),
        Box([0, -1], [1, 5]),
        Sphere(2, 3.0),
        Sampler(lambda rng, size: rng.exponential(size=(size, 2)), 2),
        Empirical(np.random.default_rng(1).normal(size=(500, 2))),
        Empirical(np.random.default_rng(1).normal(size=(12, 20))),  # no change leaves their span
    ],
)
def test_changes_have_the_covariance_of_points(law: Law) -> None:
    rng = np.random.default_rng(0)
    wanted = np.cov(law.points(rng, 39996).T)
    factor = law.factor(rng)
    scale = float(np.trace(wanted))
    assert np.allclose(factor @ factor.T, wanted, atol=0.08 * scale)
    for draw in (law.changes, law.sphere, law.noise):
        changes = draw(rng, 39996)
        assert np.allclose(changes.T @ changes / len(changes), wanted, atol=0.05 * scale)
        assert np.allclose(changes.mean(axis=0), 0, atol=0.05 * sqrt(scale))


@pytest.mark.parametrize("count", [200, 12])
def test_directions_have_the_covariance_of_inputs(count: int) -> None:
    """More inputs than features, and fewer: then no direction leaves their span."""
    rng = np.random.default_rng(1)
    rows = (rng.normal(size=(count, 20)) + rng.normal(size=20)) * np.arange(1, 21)
    law, cov, draws = Empirical(rows), np.cov(rows.T), 20000
    scale = np.sqrt(np.outer(cov.diagonal(), cov.diagonal()))
    for draw in (law.sphere, law.noise):
        found = draw(rng, draws)
        assert np.abs((found.T @ found / draws - cov) / scale).max() < Z * sqrt(2 / draws)
    if count > 20:  # on the sphere |d Cov^(-1/2)| is the root of the features
        root = np.linalg.solve(np.linalg.cholesky(cov), law.sphere(rng, 5).T)
        assert np.linalg.norm(root, axis=0) == pytest.approx(sqrt(20) * np.ones(5))


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Gaussian(0, [[1, 2], [2, 1]]), "negative eigenvalue"),
        (lambda: Gaussian(0, [[1, 2], [0, 1]]), "not symmetric"),
        (lambda: Gaussian(0, -1), "negative eigenvalue"),
        (lambda: Gaussian([0, 0], [1, 1, 1]), "are no law"),
        (lambda: Gaussian(0, float("nan")), "an entry of cov is nan"),
        (lambda: Box([1], [0]), "lower end"),
        (lambda: Sphere(0), "at least 1"),
        (lambda: Sphere(3, -1), "radius is -1; it must be above 0"),
        (lambda: Empirical([[1.0]]), "number of inputs is 1; it must be at least 6"),
        (lambda: sampled_nlc(square, lambda rng, n: rng.normal(size=n), seed=0), "Sampler"),
        (lambda: sampled_nlc(square, 3, seed=0), "no law of inputs"),
        (lambda: sampled_nlc(square, ONE, seed=0, samples=3), "at least"),
        (lambda: sampled_nlc(square, ONE, seed=-1), "at least"),
        (lambda: sampled_nlc(3, ONE, seed=0), "Python function"),  # type: ignore[arg-type]
        (lambda: sampled_nlc(square, ONE, seed=0, jacobian=square, jvp=np.dot), "one of them"),
        (lambda: sampled_nlc(lambda x: x.sum(), ONE, seed=0), "shape"),
        (lambda: sampled_nlc(lambda x: "a", ONE, seed=0), "real numbers"),
        (lambda: sampled_nlc(square, ONE, seed=0, jacobian=lambda x: x[:3]), "jacobian gave"),
        (lambda: sampled_nlc(square, Sampler(lambda r, n: r.normal(size=n), 1), seed=0), "sampler"),
        (lambda: sampled_split(square, np.eye(6), seed=0), "needs"),
        (lambda: linear_range(square, ONE, seed=0, factor=1), "above 1"),
        (lambda: gaussian_nlc(lambda x, y: x * y), "1 formulas"),
        (lambda: gaussian_nlc(Var(1)), "not there"),
        (lambda: gaussian_nlc(np.tanh), "numpy"),
        (lambda: gaussian_nlc([]), "no outputs"),
        (lambda: gaussian_nlc(tp.tanh, method="particles"), "sampled_nlc"),
        (lambda: polynomial_chaos(tp.relu), "no polynomial"),
        (lambda: grid_chaos(square, Gaussian(0, 1, 4)), "at most 3"),
        (lambda: interval_nlc(square, 1, 1), "empty"),
    ],
)
def test_what_does_not_fit_is_refused(make: Callable[[], Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        make()


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: sampled_nlc(lambda x: 0 * x + 3, ONE, seed=0), "constant"),
        (lambda: sampled_nlc(lambda x: 1e8 + 1e-9 * x, ONE, seed=0), "constant"),
        (lambda: sampled_nlc(np.log, ONE, seed=0), "not finite at the input"),
        (lambda: sampled_nlc(lambda x: np.where(x > 2.9, np.inf, x), ONE, seed=0), "not finite"),
        (lambda: sampled_nlc(np.sqrt, np.arange(8.0)[:, None], seed=0), "jacobian= or"),
        (lambda: gaussian_nlc(lambda x: 3), "constant"),
        (lambda: gaussian_nlc(tp.tanh, Gaussian(2, 0)), "constant"),
        (lambda: gaussian_nlc(lambda x: 1 / x), "no closed form"),
        (lambda: gaussian_nlc(lambda x, y: tp.tanh(x * y), Gaussian(0, 1, 2)), "numpy_form"),
        (lambda: polynomial_chaos(lambda x: 3), "constant"),
        (lambda: grid_chaos(lambda x: np.maximum(x, 0)).nlc, "does not follow"),
        (lambda: grid_chaos(lambda x: 0 * x + 1e8), "constant"),
        (lambda: interval_nlc(np.sign, -1, 1.3), "do not settle"),
        (lambda: interval_nlc(np.sqrt, 0, 1), "do not settle"),
        (lambda: interval_nlc(lambda x: 0 * x, 0, 1), "constant"),
        (lambda: interval_nlc(np.log, 0, 1), "not finite"),
    ],
)
def test_what_has_no_coefficient_is_said(make: Callable[[], Any], said: str) -> None:
    with pytest.raises(EvaluationError, match=said):
        make()


def test_jumps_have_no_derivative() -> None:
    with pytest.raises(NotDifferentiable):
        gaussian_nlc(tp.step)


def test_inputs_that_are_not_finite_are_refused() -> None:
    with pytest.raises(StudyError):
        sampled_nlc(square, np.full((8, 1), np.nan), seed=0)


# --------------------------------------------------------------------------------------- samples


@pytest.mark.parametrize(
    ("function", "law", "value"),
    [
        (lambda x: 1e8 + 1e-4 * x, ONE, 1.0),
        (lambda x: 1e8 + 1e-4 * x**2, ONE, sqrt(2)),
        (lambda x: 1e-30 * x**2, ONE, sqrt(2)),
        (lambda x: 1e30 * x**2, ONE, sqrt(2)),
        (lambda x: 1e200 * x**2, ONE, sqrt(2)),
        (lambda x: 1e-200 * x**2, ONE, sqrt(2)),
        (lambda x: (x - 1e6) ** 2, Gaussian(1e6, 1), sqrt(2)),
        (lambda x: x**2, Gaussian(0, 1e-20), sqrt(2)),
        (lambda x: x[:, 0] * x[:, 1], Gaussian(0, [[1, 0.999], [0.999, 1]]), sqrt(2)),
        (lambda x: np.maximum(x, 0), ONE, 1.2111738962363),
        (lambda x: np.abs(x).sum(axis=1), Gaussian(0, 1, 3), 1.6588967399703),
        (lambda x: np.stack([x[:, 0], x[:, 0] ** 2], axis=1), ONE, sqrt(5 / 3)),
    ],
)
def test_coefficients_of_hard_functions(
    function: Callable[[Array], Array], law: Law, value: float
) -> None:
    found = sampled_nlc(function, law, seed=5).nlc
    assert found.method is Method.PARTICLES
    assert found.z(value) < Z
    assert found.stderr < 0.03


def test_derivatives_by_code_and_by_differences_agree() -> None:
    function, jacobian = numpy_form(lambda x, y: (tp.tanh(x + y), x * tp.sin(y)), 2)
    law = Sampler(lambda rng, size: rng.normal(size=(size, 2)), 2)

    def jvp(x: Array, v: Array) -> Array:
        return np.asarray(np.einsum("bij,bj->bi", jacobian(x), v))

    ways: list[dict[str, Any]] = [{}, {"jacobian": jacobian}, {"jvp": jvp}]
    found = [sampled_nlc(function, law, seed=3, **way) for way in ways]
    for other in found[1:]:
        assert other.nlc.value == pytest.approx(found[0].nlc.value, rel=1e-8)
        assert not any("differences" in note for note in other.notes)
    assert any("differences" in note for note in found[0].notes)


def test_a_seed_gives_the_same_numbers_and_another_seed_others() -> None:
    first, again, other = (sampled_nlc(square, ONE, seed=seed).nlc for seed in (1, 1, 2))
    assert first == again
    assert first.value != other.value
    assert first.seed == 1
    assert type(first.stderr) is float


def test_errors_cover_what_is_wrong() -> None:
    found = [sampled_nlc(np.tanh, ONE, seed=seed, samples=1024).nlc for seed in range(60)]
    exact = gaussian_nlc(tp.tanh).nlc.value
    scores = np.array([(part.value - exact) / part.stderr for part in found])
    assert 0.7 < scores.std() < 1.4
    assert abs(scores.mean()) < 0.6


def test_errors_of_given_inputs_are_those_of_their_law() -> None:
    rng = np.random.default_rng(0)
    found = [
        sampled_nlc(np.tanh, rng.normal(size=(200, 1)), seed=seed, samples=400).nlc
        for seed in range(40)
    ]
    exact = gaussian_nlc(tp.tanh).nlc.value
    scores = np.array([(part.value - exact) / part.stderr for part in found])
    assert 0.6 < scores.std() < 1.5
    assert "sample of their law" in " ".join(
        sampled_nlc(np.tanh, rng.normal(size=(30, 1)), seed=0).notes
    )


def test_heavy_tails_are_marked() -> None:
    heavy = sampled_nlc(np.sqrt, Box(0, 1), seed=0, jacobian=lambda x: 0.5 / np.sqrt(x))
    assert heavy.nlc.status.name == "RARE"
    assert "A few samples" in heavy.notes[-1]
    assert sampled_nlc(square, ONE, seed=0).nlc.status.name == "CONVERGED"


def test_a_function_without_slopes_is_no_exact_zero() -> None:
    found = sampled_nlc(np.sign, Box(-1, 1), seed=0)
    assert found.nlc.value == 0
    assert "particles" in str(found.nlc)
    assert any("may have been missed" in note for note in found.notes)


def test_theorems_are_noted() -> None:
    found = gaussian_nlc(tp.abs)
    assert any("Theorem 1" in note for note in found.notes)
    assert any("Theorem 2" in note for note in found.notes)
    assert not any("Theorem 2" in note for note in gaussian_nlc(tp.relu).notes)
    singular = gaussian_nlc(lambda x, y: x * y, Gaussian(0, [[1, 1], [1, 1]]))
    assert singular.nlc.value == pytest.approx(sqrt(2))
    assert any("singular (rank 1 of 2)" in note for note in singular.notes)
    wrong = sampled_nlc(np.tanh, ONE, seed=0, jacobian=lambda x: 0.1 * x)
    assert any("below 1" in note for note in wrong.notes)
    text = " ".join(str(found).split())
    assert f"nlc {plain(found.nlc.value)} " in text and all(note in text for note in found.notes)


# --------------------------------------------------------------------------------- formulas, fits


@pytest.mark.parametrize(
    ("function", "law", "value"),
    [
        (lambda x: (x - 10**6) ** 2, Gaussian(10**6, 1), sqrt(2)),
        (lambda x: 10**8 + 1e-4 * tp.tanh(x), ONE, 1.0852682766506),
        (lambda x: 1e-30 * tp.tanh(x), ONE, 1.0852682766506),
        (lambda x: 1e30 * tp.tanh(x) + 3, ONE, 1.0852682766506),
        (lambda x: tp.tanh(x - 5), Gaussian(5, 1), 1.0852682766506),
        (lambda x, y: x - y, Gaussian(0, [[1, 0.999999], [0.999999, 1]]), 1.0),
        (lambda *x: sum((tp.relu(v) for v in x), 0 * x[0]), Gaussian(0, 1, 4), 1.2111738962363),
    ],
)
def test_formulas_of_hard_functions(function: Any, law: Gaussian, value: float) -> None:
    found = gaussian_nlc(function, law).nlc
    assert abs(found.value - value) < 1e-9
    assert found.stderr < 1e-7


def test_means_of_other_signs_do_not_change_numbers() -> None:
    law = Gaussian([0.7, 0.2], [[1, 0.3], [0.3, 1]])
    exact = gaussian_nlc(lambda x, y: tp.relu(x) * y + tp.gelu(x + y), law).nlc
    function, jacobian = numpy_form(lambda x, y: tp.relu(x) * y + tp.gelu(x + y), 2)
    assert sampled_nlc(function, law, seed=0, jacobian=jacobian).nlc.z(exact) < Z


def test_sampled_fits_of_large_constants_and_near_lines() -> None:
    near = sampled_split(lambda x: 1e8 + 1e-4 * (x + x**2), ONE, seed=0)
    assert near.constant.value == pytest.approx(1)
    assert near.nonlinear.value / near.linear.value == pytest.approx(2, rel=0.2)
    assert near.rest is not None
    assert near.rest.z(sqrt(2)) < Z
    line = sampled_split(lambda x: 3 * x + 1, ONE, seed=0)
    assert line.rest is None
    assert line.linear.z(0.9) < Z
    assert line.matrix[0][0] == pytest.approx(3)
    assert line.offset[0] == pytest.approx(1)
    bent = sampled_split(lambda x: x + 1e-5 * x**2, ONE, seed=0)
    assert bent.nonlinear.z(2e-10) < Z


def test_a_linear_formula_has_no_rest() -> None:
    split = gaussian_split(lambda x, y: (x - 2 * y + 3, y), Gaussian([1, 1], [[2, 1], [1, 2]]))
    assert split.rest is None
    assert split.recombined == 1
    assert split.whole.value == pytest.approx(1, abs=1e-12)
    assert split.matrix == ((1, 0), (-2, 1))
    assert split.offset == pytest.approx((3, 0))


def test_sampled_and_exact_splits_agree_for_several_outputs() -> None:
    law = Gaussian([0.5, 0], [[1, 0.5], [0.5, 2]])
    function, jacobian = numpy_form(lambda x, y: (tp.relu(x + y), x * y + 1), 2)
    exact = gaussian_split(lambda x, y: (tp.relu(x + y), x * y + 1), law)
    found = sampled_split(function, law, seed=1, jacobian=jacobian)
    assert found.linear.z(exact.linear) < Z
    assert found.constant.z(exact.constant) < Z
    assert found.nonlinear.z(exact.nonlinear) < Z
    assert found.rest is not None
    assert exact.rest is not None
    assert found.rest.z(exact.rest) < Z
    assert np.allclose(found.matrix, exact.matrix, atol=0.1)


# -------------------------------------------------------------------------------------- intervals


def test_interval_with_kinks_declared_or_not() -> None:
    for found in (
        interval_nlc(np.abs, -1, 1.3, kinks=[0]),
        interval_nlc(tp.abs.expr, -1, 1.3),
        interval_nlc(np.abs, -1, 1.3),
    ):
        exact = 2.3 / 1.3
        assert abs(found.nl1d.value - exact) < found.nl1d.stderr + 1e-12
        assert abs(found.absolute.value - exact) < found.absolute.stderr + 1e-12
    assert interval_nlc(np.abs, -1, 1.3).nl1d.stderr > 1e-9


def test_interval_of_hard_functions() -> None:
    for factor in (1e-200, 1.0, 1e200):
        found = interval_nlc(lambda x, f=factor: f * x**2, 0, 1)
        assert found.nl1d.value == pytest.approx(2 / sqrt(3), rel=1e-12)
        assert found.absolute.value == pytest.approx(1, rel=1e-12)
    flat = interval_nlc(lambda x: 1e8 + 1e-4 * np.sin(x), 0, 2 * np.pi)
    assert abs(flat.nl1d.value - np.pi / sqrt(2)) < flat.nl1d.stderr
    fast = interval_nlc(
        lambda x: np.sin(300 * x), 0, 2 * np.pi, slope=lambda x: 300 * np.cos(300 * x)
    )
    assert fast.nl1d.value == pytest.approx(300 * np.pi / sqrt(2), rel=1e-7)
    assert fast.absolute.value == pytest.approx(600, rel=1e-6)
