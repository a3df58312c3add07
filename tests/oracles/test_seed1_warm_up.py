"""One neuron of spec 1: its first update, and its limit after a step."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tpcalc as tp
from tpcalc.errors import EvaluationError, UnknownName, UsageError

SIGN = {64: 2.615627, 256: 2.691960}
SGD = {16: 111.33977, 64: 278.50050, 256: 366.37291}


def neurons(blocks: int, draws: int, seed: int) -> np.ndarray:
    """Products without one factor each, (draws, blocks)."""
    factors = 1 + np.random.default_rng(seed).standard_normal((draws, blocks)) / blocks**0.5
    return factors.prod(axis=1, keepdims=True) / factors


def averaged(values: np.ndarray) -> tuple[float, float]:
    return float(values.mean()), float(values.std(ddof=1)) / len(values) ** 0.5


def test_S1_8_A24() -> None:
    for name, wanted in (("adam", SIGN), ("signsgd", SIGN), ("sgd", SGD)):
        for blocks, value in wanted.items():
            size = tp.depth.first_update(name, blocks).size.value
            assert size.value == pytest.approx(value, rel=1e-6)
            assert 0 < size.stderr < 1e-13 * size.value
    for name, limit, power, rate in (("sgd", math.exp(6), 1, 0), ("adam", math.e, 2, -0.5)):
        found = tp.depth.first_update(name)
        assert (found.power, found.rate) == (power, rate)
        assert float(found.size) == pytest.approx(limit, rel=1e-14)
        near = (float(tp.depth.first_update(name, 2**k).size) for k in (19, 20))
        one, two = (abs(value - limit) for value in near)
        assert one / two == pytest.approx(2, rel=1e-3)  # and there is no jump at the limit


@pytest.mark.parametrize("blocks", [1, 2, 3, 7])
def test_S1_8_A24_moments_by_quadrature(blocks: int) -> None:
    """The moments of 1 + w / sqrt(L) and of its absolute value, by sums over a fine grid."""
    w = np.linspace(-12, 12, 400_001)
    mass = np.exp(-(w**2) / 2) / np.exp(-(w**2) / 2).sum()
    factor = 1 + w / blocks**0.5
    m1, m2, m4 = (float(mass @ abs(factor) ** k) for k in (1, 2, 4))
    sign = m2 ** (blocks - 1) / blocks + (1 - 1 / blocks) * m2 ** (blocks - 2) * m1**2
    sgd = m4 ** (blocks - 1) / blocks + (1 - 1 / blocks) * m4 ** (blocks - 2) * m2**2
    assert float(tp.depth.first_update("adam", blocks).size) == pytest.approx(sign, rel=1e-8)
    assert float(tp.depth.first_update("sgd", blocks).size) == pytest.approx(sgd, rel=1e-8)


def test_S1_8_A24_sign_descent_by_draws() -> None:
    """At 16 blocks; at 2 blocks the paper's formula, which leaves out the sign, is refuted."""
    value, error = averaged(abs(neurons(16, 40_000, 0)).sum(axis=1) ** 2 / 16**2)
    assert abs(value - float(tp.depth.first_update("signsgd", 16).size)) < 5 * error < 0.4
    assert float(tp.depth.first_update("signsgd", 16).size) == pytest.approx(2.345840, rel=1e-5)
    value, error = averaged(abs(neurons(2, 200_000, 1)).sum(axis=1) ** 2 / 4)
    assert abs(value - float(tp.depth.first_update("signsgd", 2).size)) < 5 * error
    assert abs(value - 1.25) > 5 * error


def test_S1_8_A25() -> None:
    """20000 blocks, a step of SGD: the gap is that of sum w^2 / L from 1, and +1 is off by 3/2."""
    blocks, target, start, readout, lr = 20_000, 0.5, 1.5, 0.8, 0.2
    rng = np.random.default_rng(3)
    right, printed = [], []
    for _ in range(64):
        w = rng.standard_normal(blocks)
        factors = 1 + w / blocks**0.5
        last = start * factors.prod()
        gradient = readout * (readout * last - target)
        trained = factors - lr * gradient * last / factors / blocks
        z = w.sum() / blocks**0.5
        limit = tp.depth.log_limit(z, target, start=start, readout=readout, lr=lr).value
        assert limit.stderr < 1e-11
        tau = lr * gradient * start
        # x_0^L in tau is one of L blocks: what is left is the gap of the sum of squares.
        right.append(np.log(trained).sum() - (z - 0.5 - tau * last / start))
        printed.append(np.log(trained).sum() - (z + 1 - tau * last / start))
        own = math.exp(z - 0.5)
        assert limit.value == pytest.approx(
            z - 0.5 - lr * readout * (readout * start * own - target) * start * own, rel=1e-12
        )
        slack = 0.05 * (1 + lr * own**2 * start**2)
        assert abs(np.log(trained).sum() - limit.value) < slack
    spread = (2 / blocks) ** 0.5 / 2  # of half the sum of squares over L
    assert np.mean(np.abs(right)) < 3 * spread
    assert np.mean(np.abs(printed)) == pytest.approx(1.5, abs=3 * spread)


def test_S1_8_what_is_refused() -> None:
    with pytest.raises(UnknownName, match="adam"):
        tp.depth.first_update("adamw")
    with pytest.raises(UsageError, match="blocks is 0"):
        tp.depth.first_update("sgd", 0)
    for huge in ({"noise": 1e4, "target": 0}, {"noise": 0, "target": 0, "readout": 1e200}):
        with pytest.raises(EvaluationError, match="range"):
            tp.depth.log_limit(**huge)
    with pytest.raises(UsageError, match="noise"):
        tp.depth.log_limit("x", 1.0)
