"""Finite networks against limits in the depth, other optimizers, blocks of other shapes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from depth_run import deep_run

import tpcalc as tp
from tpcalc.results import DepthArray, FiniteTable

RUN = ((1.0, 0.8, 0.6, 1.0), (1.0,) * 4)
NETWORKS = ((4, 4096, 32), (12, 4096, 24))  # blocks, width, seeds


def averaged(found: FiniteTable, name: str) -> tuple[float, float]:
    (row,) = [row for row in found.rows if row.name == name]
    return float(np.mean(row.values)), float(np.std(row.values, ddof=1)) / len(row.values) ** 0.5


@pytest.mark.parametrize("act", ["identity", "sin", "relu", "gelu"])
@pytest.mark.parametrize("size", [NETWORKS[0], pytest.param(NETWORKS[1], marks=pytest.mark.slow)])
def test_lazy_networks_of_three_steps(act: str, size: tuple[int, int, int]) -> None:
    """Within 5 standard errors, which are small enough that 5 % more would be seen."""
    blocks, width, seeds = size
    run = deep_run(*RUN, 0.5, 0.5, act, eta=0.5)
    limit = tp.limit(run, depths=(blocks,), samples=2**14, seed=1).at("f[3,0]", blocks)
    found = tp.simulate(tp.at_depth(run, blocks), [width], seeds, outputs=["f*"], seed=7)
    value, spread = averaged(found, "f[3,0]")
    error = math.hypot(spread, limit.stderr)
    assert error < 0.009 * abs(limit.value)
    assert abs(value - limit.value) < 5 * error
    assert abs(value - 1.05 * limit.value) > 5 * error


@pytest.mark.parametrize("blocks", [16, pytest.param(48, marks=pytest.mark.slow)])
def test_S1_5_A15(blocks: int) -> None:
    """A step of SignSGD: f_1 = -eta 2/pi sgn(chi xi_0) xi_1 (1 + 1/L)^((L-1)/2)."""
    run = deep_run((-1.3, 0.7), (0.9, 0.0), 0.5, 0.5, eta=0.8, optimizer="signsgd")
    found = tp.limit(run, depths=(blocks,)).at("f[1,0]", blocks)
    closed = -0.8 * 2 / math.pi * 0.7 * (1 + 1 / blocks) ** ((blocks - 1) / 2)
    assert closed == pytest.approx({16: -0.561740, 48: -0.578771}[blocks], abs=1e-6)
    tolerance = max(5 * found.stderr, 1e-9)
    assert abs(found.value - closed) < tolerance and tolerance < 0.01
    assert -0.8 * 2 / math.pi * 0.7 * math.exp(0.5) == pytest.approx(-0.587781, abs=6e-7)


def test_S1_5_A15_adam_is_sign_in_its_first_step() -> None:
    shape = ((-1.3, 0.7), (0.9, 0.0), 0.5, 0.5)
    sign = tp.limit(deep_run(*shape, eta=0.8, optimizer="signsgd"), depths=(8,))
    adam = tp.limit(deep_run(*shape, eta=0.8, optimizer="adam"), depths=(8,), samples=2**11)
    one, two = (found.at("f[1,0]", 8) for found in (sign, adam))
    assert abs(one.value - two.value) < 5 * math.hypot(one.stderr, two.stderr) + 1e-6


def test_S1_5_A15_has_no_closed_limit() -> None:
    run = deep_run((-1.3, 0.7), (0.9, 0.0), 0.5, 0.5, optimizer="signsgd")
    found = tp.limit(run, depths=["oo"])
    assert {gap.name for gap in found.lacking} == {"f[1,0]", "x[1,0]"}
    assert all("numbers of blocks" in gap.reason for gap in found.lacking)
    assert "signsgd" in found.notes[0]
    start = tp.limit(deep_run((-1.3, 0.7), (0.9, 0.0), 0.5, 0.5, steps=0), depths=["oo"])
    assert found.at("x[0,0]", "oo") == start.at("x[0,0]", "oo")  # no optimizer has moved it


def test_S1_7_24_A14() -> None:
    """Base depth 8, 512 blocks: multiplier 2 / 8, Adam's rate 1e-3 / 8, that of SGD as it is."""
    data = tp.Samples(((1.0,),), ((1.0,),))
    for optimizer, rate in (("adam", 1 / 8), ("sgd", 1)):
        net = tp.ResNet("L", "relu", alpha="1/2", nonlin="post", center=True, multiplier=2)
        run = tp.Training(net, "mup", data, lr=1e-3, lr_depth="1/2", optimizer=optimizer)
        deep = tp.at_depth(run, 512, base=8)
        (own,) = {mark.rate for mark in deep.network.marks if mark.role == "hidden"}
        assert float(own) == pytest.approx(rate, rel=1e-12)
        program = tp.at_depth(run, 16, base=4)
        x = [f"x[{layer},0,0]" for layer in (0, 16)]
        found = tp.limit(program.replace(steps=0), outputs=x)
        q = [found[name].second_moment.value for name in x]
        # (1 + a^2 Var / (L / base))^L: the multiplier is 2 / sqrt(16 / 4)
        assert q[1] / q[0] == pytest.approx((1 + 1 * (0.5 - 0.5 / math.pi)) ** 16, rel=1e-9)


@pytest.mark.parametrize(
    "shape",
    [
        {"nonlin": "pre", "center": False},
        {"layers": 2},
        {"shared": True, "act": "tanh", "alpha": 1, "gamma": 0},
    ],
    ids=["S1_28", "S1_30", "S1_34"],
)
def test_blocks_of_other_shapes(shape: dict[str, object]) -> None:
    """Activations before weights, two layers, the same matrices: programs against networks."""
    point = shape.pop("alpha", 0.5), shape.pop("gamma", 0.5)
    run = deep_run((1.0, 0.8), (1.0, 1.0), *point, shape.pop("act", "gelu"), eta=0.5, **shape)
    limit = tp.limit(run, depths=(6,), samples=2**13, places=(0, 1))
    found = tp.simulate(tp.at_depth(run, 6), [2048], 64, outputs=["f*"], seed=3)
    value, error = averaged(found, "f[1,0]")
    want = limit.at("f[1,0]", 6)
    assert abs(value - want.value) < 5 * math.hypot(error, want.stderr) + 20 / 2048 * abs(
        want.value
    )
    features = limit.along("features", 6)
    assert features.values[0, 0, 0] == pytest.approx(1.0, abs=1e-9)
    assert features.values[1, 0, 0] == limit.at("x[0,0]", 6).value


def test_S1_29_A27_finite_networks_without_mean_subtraction() -> None:
    run = deep_run((1.0,), (1.0,), 0.5, 0.5, "relu", center=False, steps=0)
    want = tp.limit(run, depths=(8,)).at("x[0,0]", 8).value
    found = tp.simulate(tp.at_depth(run, 8), [2048], 32, outputs=["x[8,0,0]"], seed=4)
    (row,) = [row for row in found.rows if row.statistic == "second_moment"]
    error = float(np.std(row.values, ddof=1)) / len(row.values) ** 0.5
    assert abs(float(np.mean(row.values)) - want) < 5 * error and error < 0.02 * want


@pytest.mark.parametrize("samples", [3])
def test_batches_of_vectors(samples: int) -> None:
    """S1 section 5.8: several features, outputs and samples, and all parameters trained."""
    rng = np.random.default_rng(0)
    rows = tuple(map(tuple, rng.normal(size=(2 * samples, 2)).round(2)))
    targets = tuple(map(tuple, rng.normal(size=(2 * samples, 2)).round(2)))
    net = tp.ResNet("L", "identity", nonlin="post")
    run = tp.Training(
        net, "mup", tp.Samples(rows, targets), steps=2, batch=samples, lr=0.3, lr_depth="1/2"
    )
    from tpcalc.questions.depth.sampled import sampled

    closed = tp.limit(run, depths=(4,), places=(0, 1))
    found, along = sampled(run, 4, (0, 1), 0, {})
    arrays = [one for one in along if isinstance(one, DepthArray)]
    assert len(arrays) >= 3
    assert {row.name for row in found} == set(closed.names)
    for row in found:
        assert row.estimate.value == pytest.approx(
            closed.at(row.name, 4).value, rel=1e-9, abs=1e-12
        )
    for array in arrays:
        want = closed.along(array.name, 4).values
        np.testing.assert_allclose(array.values, want, rtol=1e-9, atol=1e-9)
