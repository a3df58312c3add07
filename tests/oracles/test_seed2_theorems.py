"""The results of Marion, Fermanian, Biau, Vert as functions, with the numbers of their cases."""

from __future__ import annotations

from math import e, exp, log, log10, sqrt

import numpy as np
import pytest
from scipy import stats

import tpcalc as tp
from tpcalc import resnets
from tpcalc.errors import UsageError

EXPONENTIAL = resnets.entries_of(stats.expon(loc=-1))


def res3(alpha: object = "1/2", act: str = "relu", **more: object) -> tp.ResNet:
    return tp.ResNet("L", act, alpha=alpha, nonlin="between", layers=2, **more)


def res1(alpha: object = "1/2", act: str = "identity", **more: object) -> tp.ResNet:
    return tp.ResNet("L", act, alpha=alpha, **more)


@pytest.mark.parametrize("law", ["gaussian", "uniform", "rademacher"])
def test_S2_5_9_A1_expected_displacements(law: str) -> None:
    for result in (resnets.lemma_14, resnets.proposition_7):
        found = result(res3(law=law), 100)
        assert found.exact and found.admissible
        assert found.lower == found.upper == pytest.approx((1 + 1 / 200) ** 100 - 1, rel=1e-12)
        assert result(res3(law=law), 1000).lower == pytest.approx(0.648515, abs=5e-7)


def test_S2_2_4_12_A2_A3_A4_A11_the_log_normal_law() -> None:
    linear = resnets.norm_ratio(res1(), 100)
    assert (linear.mean, linear.variance) == pytest.approx((0.49, 0.01))
    relu = resnets.norm_ratio(res3(), 100)
    assert (relu.mean, relu.variance) == pytest.approx((0.245, 0.005))
    found = [relu.quantile(p) for p in (0.25, 0.5, 0.75)]
    assert found == pytest.approx([1.2181, 1.2776, 1.3400], abs=6e-5)
    leaky = res3(act="leaky_relu:0.8")
    assert resnets.isometry(leaky) == (0.82, 0.82)
    law = resnets.norm_ratio(leaky, 100)
    assert (law.mean, law.variance) == pytest.approx((0.4018, 0.0082))
    assert law.second_moment - 1 == pytest.approx(1.270500, abs=5e-7)
    assert tp.limit(leaky, depths=["oo"]).at("D^2", "oo").value == pytest.approx(1.270500, abs=5e-7)


@pytest.mark.parametrize(
    ("net", "mean", "variance"), [(res1(), 0.49, 0.01), (res3(), 0.245, 0.005)]
)
def test_S2_12_A2_A3_layers_drawn_one_by_one(net: tp.ResNet, mean: float, variance: float) -> None:
    found = resnets.sample_ratios(net, 1000, 100, 4000, seed=1)
    # At L = 1000 mean and variance differ from the limit by about 1/L.
    assert abs(found.mean() - mean) < 4 * sqrt(variance / 4000) + mean / 500
    assert abs(found.var() / variance - 1) < 4 * sqrt(2 / 4000) + 1 / 100
    assert stats.kstest((found - found.mean()) / found.std(), "norm").pvalue > 1e-3


def test_S2_6_11_A5_bounds_of_figure_2() -> None:
    low, high = resnets.proposition_3(res3(), 1000, 100, 0.25)
    assert sqrt(low.lower) == pytest.approx(0.86575, abs=6e-6)
    assert sqrt(high.upper) == pytest.approx(2.06186, abs=6e-6)
    assert not low.admissible and not high.admissible  # the paper's own figure
    assert any("alpha_L^2" in one.text for one in low.violated)


def test_S2_6_A6_bounds_on_squares() -> None:
    low, high = resnets.proposition_3(res3(), 1000, 400, 0.1)
    assert low.lower == pytest.approx(0.861221, abs=5e-7)
    assert high.upper == pytest.approx(3.871157, abs=5e-7)


def test_S2_7_A7_corollary_4() -> None:
    found = resnets.corollary_4(res3(), 10**7, 1000, 0.5)
    assert (found.lower, found.upper) == pytest.approx((1.179674, 3.131216), abs=5e-7)
    assert found.admissible
    with pytest.raises(UsageError, match="beta = 1/2"):
        resnets.corollary_4(res3(1), 1000, 1000, 0.5)


@pytest.mark.parametrize(
    ("alpha", "stated"),
    [("1/4", "tends to infinity"), ("1/2", "stays between bounds"), ("1", "tends to 0")],
)
def test_S2_7_9_A8_corollaries_4_and_8_beside_the_program(alpha: str, stated: str) -> None:
    for result in (resnets.hidden_states, resnets.corollary_8):
        found = result(res3(alpha), 100)
        assert found.answer == "holds" and found.claims[0].agrees
        assert found.claims[0].stated == found.claims[0].derived == stated


def test_S2_15_smooth_matrices_beside_the_program() -> None:
    for alpha, answer in (("2", "holds"), ("1", "holds"), ("1/2", "outside")):
        found = resnets.proposition_12(res3(alpha, along="rbf(1/10)"), 40)
        assert found.answer == answer and found.claims[0].agrees
    # A Gaussian matrix of width 40 has no positive real eigenvalue in 3 of 100 draws.
    assert resnets.proposition_12(res1("1/2", along="rbf(1/10)"), None).answer == "holds"
    assert resnets.proposition_12(res1("1/2", along="rbf(1/10)"), 40).answer == "outside"
    assert "A5" in str(resnets.assumptions(res3("1"), 40).keys())
    assert resnets.proposition_12(res3("2", hurst="0.8"), 40).answer == "outside"


@pytest.mark.parametrize("width", [1, 3])
def test_S2_7_growth_at_small_widths(width: int) -> None:
    rng, depth = np.random.default_rng(0), 6561
    stream = np.ones((200, width))
    for _ in range(depth):
        noise = rng.standard_normal((200, width, width)) / width**0.5
        stream = stream + depth**-0.25 * np.einsum("kij,kj->ki", noise, stream)
    grown = np.median(np.log(np.linalg.norm(stream, axis=1)))
    derived = resnets.hidden_states(res1("1/4"), width).claims[0].derived
    assert (grown > 5, grown < -5) == (derived == "tends to infinity", derived == "")
    smooth = resnets.proposition_12(res1("1/2", along="rbf(1/10)"), 2)
    assert smooth.answer == "outside" and smooth.claims[0].derived == ""


def test_S2_3_entries_of_a_haar_matrix_depend_on_each_other() -> None:
    found = resnets.assumptions(res3(law="orthogonal"), 40)["A1"]
    assert not found.met and "depend on each other" in found.found
    haar = resnets.entries_of("orthogonal")
    bounds = (resnets.lemma_20(100, 0.5, haar), *resnets.lemma_21(100, haar))
    assert not any(one.conditions[0].met for one in bounds)


def test_discrete_laws_of_entries() -> None:
    two = resnets.entries_of(stats.rv_discrete(values=([2, -1], [1 / 3, 2 / 3])))
    assert (two.mean, two.variance, two.third, two.fourth) == pytest.approx((0, 2, 2, 6))
    assert two.above == pytest.approx(2 / 3) and not two.symmetric
    assert resnets.entries_of(stats.rv_discrete(values=([1, -1], [1 / 2, 1 / 2]))).symmetric


def test_S2_3_4_A17_symmetry_is_needed() -> None:
    assert EXPONENTIAL.above == pytest.approx(2 / e, abs=1e-6)
    found = resnets.assumptions(res3(), 100, EXPONENTIAL)
    assert not found["A2"].met and "not symmetric" in found["A2"].found
    assert not found["A4"].met and not found["A1"].met
    assert all(one.met for name, one in resnets.assumptions(res3(), 100).items() if name != "A5")


def test_S2_3_23_A18_centred_is_not_enough() -> None:
    assert resnets.cross_moment([1] * 4, EXPONENTIAL) == pytest.approx(0.25, rel=1e-6)
    rows = {row.of: row for row in resnets.lemma_15(0.1, 4, 1.0, EXPONENTIAL)}
    assert not rows["E Y1 Y2"].admissible
    generator = np.random.default_rng(0)
    draws = (generator.exponential(size=(400_000, 4, 4)) - 1) / 2
    product = draws.sum(axis=2)
    values = (product**2).sum(axis=1) * product.sum(axis=1) / 16
    assert abs(values.mean() - 0.25) < 4 * values.std() / sqrt(len(values))


def test_S2_14_A19_rate_of_the_ordinary_differential_equation() -> None:
    found = resnets.proposition_11(lambda t: 1 + t, [1.0])
    assert found.solution[0] == pytest.approx(exp(1.5), rel=1e-10)
    scaled = [one[0] for one in found.scaled]
    assert scaled == pytest.approx([-2.9558, -2.98456, -2.98747], abs=6e-5)
    assert found.slope == pytest.approx(-1, abs=0.03)


def test_S2_15_A20_rotations_neither_explode_nor_vanish() -> None:
    turn = np.array([[0.0, 1.0], [-1.0, 0.0]])
    slow = resnets.run_path(lambda t: turn, [1, 0], 10**4, 0.75)
    assert exp(slow.log_ratio) == pytest.approx(1.0050125, rel=1e-7)
    assert slow.displacement == pytest.approx(1.92266, rel=3e-6)
    fast = resnets.run_path(lambda t: turn, [1, 0], 10**4, 0.25)
    assert fast.log_ratio / log(10) == pytest.approx(21.60687, rel=1e-6)
    found = resnets.proposition_13(lambda t: turn, [1, 0], 10**4, 0.75)
    assert not found.admissible and found.lower == 0


def test_S2_15_A21_the_identity_explodes() -> None:
    found = resnets.run_path(lambda t: np.eye(2), [1, 0], 10**4, 0.5)
    assert found.log_ratio / log(10) == pytest.approx(43.21374, rel=1e-6)
    bound = resnets.proposition_13(lambda t: np.eye(2), [1, 0], 10**4, 0.5)
    assert bound.admissible and log10(bound.lower) == pytest.approx(43.21374, rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("act", ["identity", "relu"])
def test_S2_13_A22_strong_error_of_the_stochastic_differential_equation(act: str) -> None:
    found = resnets.proposition_10(act, 3, (8, 16, 32, 64, 128), paths=400, seed=2)
    assert found.slope == pytest.approx(-0.5, abs=0.06)


def test_S2_13_A22_strong_error_on_short_paths() -> None:
    found = resnets.proposition_10("relu", 2, (4, 16), fine=512, paths=300, seed=1)
    assert abs(found.slope - found.stated) < found.interval + 0.1


def test_S2_6_A23_admissible_depths() -> None:
    assert resnets.least_depths(100, 3457) == pytest.approx((15499.1, 13405.5, 21143.5), abs=0.06)
    assert resnets.least_depths(100, 5.147) == pytest.approx((1367, 517, 1585), abs=1)


def test_S2_23_moments_of_a_product() -> None:
    generator = np.random.default_rng(3)
    for law, draws in (
        ("gaussian", generator.standard_normal((40_000, 8, 8))),
        ("rademacher", generator.choice([-1.0, 1.0], (40_000, 8, 8))),
    ):
        x = generator.standard_normal(8)
        sizes = ((draws @ (x / np.linalg.norm(x))) ** 2).sum(axis=1) / 8
        bounds = resnets.lemma_21(8, resnets.entries_of(law))
        for m, bound in zip((2, 3, 4), bounds, strict=True):
            assert (sizes**m).mean() < bound.upper
            if law == "gaussian":
                exact = resnets.moment_of_gaussian(8, m)
                error = (sizes**m).std() / sqrt(len(sizes))
                assert abs((sizes**m).mean() - exact) < 5 * error
        projected = (draws[:, 0] @ x) / np.linalg.norm(x) / sqrt(8)
        chance = resnets.lemma_20(8, 0.5, resnets.entries_of(law)).upper
        assert (projected >= 0.5).mean() <= chance


def test_S2_20_recommended_initialisation() -> None:
    assert resnets.recommended_hurst(res3("3/4", hurst="3/4")) == ("fgn(3/4)", True)
    assert resnets.recommended_hurst(res3("3/4")) == ("fgn(3/4)", False)
    assert resnets.recommended_hurst(res3("1/2")) == ("fresh", True)


def test_S2_3_assumptions_of_other_networks() -> None:
    found = resnets.assumptions(res3(law="laplace"), 40)
    assert "sub-Gaussian" in found["A1"].found
    found = resnets.assumptions(res1(act="leaky_relu:0.5"), 40)
    assert not found["A2"].met and not found["A4"].met
    assert resnets.assumptions(res1(act="leaky_relu:0.75"), 40)["A4"].met
    assert not resnets.assumptions(res3(), 40, outputs=10)["A3"].met
    with pytest.raises(UsageError, match="the theorems are about"):
        resnets.assumptions(tp.ResNet("L", "relu", nonlin="post"), 40)
