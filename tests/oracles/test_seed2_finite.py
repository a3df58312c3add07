"""Residual networks of finite width and large depth beside what is known of them."""

from __future__ import annotations

from math import log, sqrt

import numpy as np
import pytest
from scipy import stats

import tpcalc as tp
from tpcalc.errors import EvaluationError, UsageError
from tpcalc.finite.paths import draw_paths
from tpcalc.program.along import along_of

RES3 = {"nonlin": "between", "layers": 2}
# H: mean log10 of outputs and of gradients at beta = .5, .6, .7, .8, .9, 1 (section 4).
FIGURE_7 = {
    "0.2": ((-0.20, -0.51, -0.82, -1.09, -1.39, -1.72), (-0.06, -0.41, -0.74, -1.03, -1.34, -1.62)),
    "0.5": ((-0.11, -0.40, -0.73, -1.04, -1.33, -1.65), (-0.08, -0.47, -0.74, -1.08, -1.37, -1.65)),
    "0.65": ((0.28, -0.15, -0.50, -0.80, -1.10, -1.41), (-0.06, -0.37, -0.72, -1.01, -1.34, -1.60)),
    "0.8": ((1.55, 0.53, 0.03, -0.34, -0.64, -0.96), (0.85, -0.07, -0.40, -0.72, -1.03, -1.31)),
    "0.95": ((6.1, 2.77, 1.16, 0.38, -0.02, -0.41), (5.6, 2.19, 0.76, 0.09, -0.21, -0.54)),
}
BETAS = ("0.5", "0.6", "0.7", "0.8", "0.9", "1")


@pytest.mark.parametrize(
    "law", ["fgn(1/5)", "fgn(4/5)", "rbf(1/4)", "rbf(2)", "given(1, 1/2, 1/8)"]
)
def test_S2_17_paths_have_their_covariance(law: str) -> None:
    depth, count = 24, 20_000
    found = draw_paths(law, depth, count, np.random.default_rng(0))
    row = along_of(law).autocovariance(depth)
    for lag in (0, 1, 2, 23):
        products = found[:, 0] * found[:, lag]
        assert abs(products.mean() - row[lag]) < 5 * products.std() / sqrt(count)


def test_S2_17_variogram_of_fractional_motion() -> None:
    for hurst in (0.2, 0.5, 0.8):  # Figure 6
        steps = draw_paths(f"fgn({hurst})", 2048, 200, np.random.default_rng(1))
        path = steps.cumsum(axis=1)
        lags = np.array([1, 2, 4, 8, 16, 32])
        sizes = [np.square(path[:, lag:] - path[:, :-lag]).mean() for lag in lags]
        slope = np.polyfit(np.log(lags), np.log(sizes), 1)[0]
        assert slope == pytest.approx(2 * hurst, abs=0.03)


def test_S2_17_no_sequence_has_this_covariance() -> None:
    with pytest.raises(EvaluationError, match="no Gaussian sequence"):
        draw_paths("given(1, 9/10)", 50, 1, np.random.default_rng(0))


@pytest.mark.parametrize("law", ["uniform", "rademacher", "gaussian"])
def test_S2_5_A1_expected_displacements_of_finite_networks(law: str) -> None:
    found = tp.simulate(tp.ResNet("L", "relu", law=law, **RES3), 24, 600, depth=100)
    for name in ("D", "Dp"):
        assert abs(found.square(name, "1/2").z(1.005**100 - 1)) < 4


def test_S2_11_12_A3_A4_norms_are_log_normal_forward_and_backward() -> None:
    width, count = 32, 250
    found = tp.simulate(tp.ResNet("L", "relu", **RES3), width, count, depth=200, seed=7)
    law = tp.resnets.norm_ratio(tp.ResNet("L", "relu", **RES3), width)
    for name in ("R", "Rp"):
        values = np.array(found.values(name, "1/2"))
        assert abs(values.mean() - law.mean) < 4 * sqrt(law.variance / count) + law.mean / 100
        assert stats.kstest(values, "norm", (law.mean, sqrt(law.variance))).pvalue > 1e-4


@pytest.mark.parametrize(
    "shape",
    [
        {"act": "relu", "hurst": "0.8", **RES3},
        {"act": "tanh", "hurst": "0.3"},
        {"act": "tanh", "hurst": "0.7", "nonlin": "post", "center": True},
    ],
    ids=str,
)
def test_S2_19_24_wide_networks_agree_with_the_recursion(shape: dict[str, object]) -> None:
    act = shape.pop("act")
    net = tp.ResNet("L", act, alpha="4/5", **shape)
    exact = tp.limit(net, depths=[8])
    wide = tp.simulate(net, 200, 40, depth=8, seed=3)
    for name in ("D", "Dp"):
        found, value = wide.square(name, "4/5"), exact.at(f"{name}^2", 8).value
        assert abs(found.value - value) < 5 * found.stderr + 3 * value / 200


def test_threads_and_powers_change_nothing() -> None:
    net = tp.ResNet("L", "relu", hurst="0.8", **RES3)
    one = tp.simulate(net, 100, 6, depth=200, alphas=["1/2", "1"], threads=1)  # two chunks
    two = tp.simulate(net, 100, 6, depth=200, alphas=["1/2", "1"], threads=2)
    assert one.logs == two.logs
    alone = tp.simulate(net, 100, 6, depth=200, alphas=["1"])
    assert alone.values("D", "1") == pytest.approx(one.values("D", "1"), rel=1e-9)


def test_explosions_are_counted_in_logarithms() -> None:
    net = tp.ResNet("L", "relu", hurst="0.95", **RES3)
    found = tp.simulate(net, 30, 3, depth=400, alphas=["0.1"])
    assert min(found.values("D", "1/10")) > 40 * log(10)


def test_other_blocks_are_refused() -> None:
    with pytest.raises(UsageError, match="looped over in no way"):
        tp.simulate(tp.ResNet("L", "relu", nonlin="post", layers=2), 8, depth=8)
    with pytest.raises(UsageError, match="entry by entry"):
        tp.simulate(tp.ResNet("L", "relu", law="orthogonal"), 8, depth=8)


@pytest.mark.slow
@pytest.mark.parametrize("hurst", FIGURE_7)
def test_S2_18_A13_figure_7(hurst: str) -> None:
    net = tp.ResNet("L", "relu", hurst=hurst, **RES3)
    found = tp.simulate(net, 40, 24, depth=1000, alphas=BETAS)
    for name, row in zip(("D", "Dp"), FIGURE_7[hurst], strict=True):
        for beta, printed in zip(found.alphas, row, strict=True):
            value = found.log10(name, beta)
            # The printed means are of 12 runs: their standard error is sqrt(2) of that of 24.
            error = value.stderr * sqrt(3)
            assert abs(value.value - printed) < 4 * error + 0.03
