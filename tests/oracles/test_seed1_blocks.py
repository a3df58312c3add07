"""What blocks learn apart and together: rows S1.28 and S1.30."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtr

import tpcalc as tp
from tpcalc.errors import UnknownName

Kernels = tp.signal.activations.Kernels
POST = {"nonlin": "post", "center": True}
COSINES = {"identity": 1, "relu": 0.5, "leaky_relu:0.1": 0.599010, "abs": 0, "tanh": 0.790002}


def alike(act: str, **shape: object) -> dict[str, tp.Estimate | None]:
    found = tp.check(tp.ResNet("L", act, **{**POST, **shape}), "depth-mup", steps=1)
    return {rate.label: rate.alike for rate in found.rates}


@pytest.mark.parametrize("act", COSINES)
def test_S1_28_A28_check_tells_activations_apart(act: str) -> None:
    (found,) = alike(act).values()
    own = Kernels(act).slope_cosine(1.0)
    assert found is not None and found.value == pytest.approx(COSINES[act], abs=5e-7)
    assert abs(found.value - own.value) <= found.stderr + own.error + 1e-15


def test_S1_28_check_follows_any_block() -> None:
    assert [one.value for one in alike("relu", nonlin="pre", center=False).values()] == [1]
    # phi(W2 phi(W1 x)): gradients by W1 come through matrices of their own; those by W2 share
    # (E phi')^2 / E phi'^2 = 1/2 on one side and (E phi)^2 / E phi^2 = 1/pi on the other.
    first, second = alike("relu", layers=2).values()
    assert first.value == 0 and second.value == pytest.approx(0.5 / math.pi, rel=1e-12)
    assert set(alike("relu", shared=True).values()) == {None}


@given(st.fractions(min_value=-1, max_value=1, max_denominator=20))
def test_S1_28_abs_is_least_alike_of_homogeneous_functions(slope: Fraction) -> None:
    found = Kernels(lambda z: tp.relu(z) - slope * tp.relu(-z)).slope_cosine(1.0)
    assert found.value == pytest.approx(float((1 + slope) ** 2 / (2 * (1 + slope**2))), abs=1e-12)
    assert (found.value < 1e-12) == (slope == -1)


@pytest.mark.parametrize("act", ["relu", "gelu"])
def test_S1_28_networks_of_small_blocks_agree(act: str) -> None:
    """Gradients by the matrices of two blocks that hardly move the stream, in numpy."""
    n, rng = 600, np.random.default_rng(3)
    fn = {"relu": np.heaviside, "gelu": None}[act]

    def slope(h: np.ndarray) -> np.ndarray:
        if fn is not None:
            return fn(h, 0.0)
        return ndtr(h) + h * np.exp(-h * h / 2) / (2 * math.pi) ** 0.5

    cosines = []
    for _ in range(24):
        x, d = rng.normal(size=(2, n))
        x, d = x / np.sqrt((x * x).mean()), d - d.mean()
        one, two = (slope(rng.normal(size=(n, n)) @ x / n**0.5) * d for _ in range(2))
        cosines.append(one @ two / (np.linalg.norm(one) * np.linalg.norm(two)))
    (found,) = alike(act).values()
    error = np.std(cosines, ddof=1) / len(cosines) ** 0.5
    assert abs(np.mean(cosines) - found.value) < 5 * error + 1 / n


def test_S1_30_A29_level_sets() -> None:
    net = tp.ResNet("L", "relu", **POST, layers=2)
    found = tp.check(net, "depth-mup", steps=1, optimizer="adam")
    assert found.level_slopes("few") == (-2,) and found.level_slopes() == (-1,)
    sgd = tp.check(net, "depth-mup", steps=1)  # its updates grow with the number in front
    assert [row.slope for row in sgd.sets] == [Fraction(-1, 2)] * 2 + [Fraction(-2, 3)]
    assert tp.check(tp.ResNet("L", "relu", **POST), "depth-mup", steps=1).level_slopes() == ()
    with pytest.raises(UnknownName, match="few, many"):
        found.level_slopes("some")


def moved(rate: float, front: float, blocks: int) -> float:
    """How far one step of sign descent moves the stream of linear blocks of two layers."""
    n, rng = 64, np.random.default_rng(5)
    first, second = rng.normal(size=(2, blocks, n, n)) / n**0.5
    x0, v = rng.normal(size=(2, n))
    eta, a = rate * blocks**-0.5 / n, front * blocks**-0.5
    streams = [x0]
    for w, u in zip(first, second, strict=True):
        streams.append(streams[-1] + a * u @ (w @ streams[-1]))
    d = v.copy()
    for k in range(blocks - 1, -1, -1):
        h, low = first[k] @ streams[k], second[k].T @ d
        down = d + a * first[k].T @ low
        second[k] += eta * np.sign(np.outer(d, h))
        first[k] += eta * np.sign(np.outer(low, streams[k]))
        d = down
    x = x0
    for w, u in zip(first, second, strict=True):
        x = x + a * u @ (w @ x)
    return float(np.linalg.norm(x - streams[-1]))


def test_S1_30_A29_networks_have_these_level_sets() -> None:
    def slope(rate: float, front: float, blocks: int) -> float:
        by_rate, by_front = (
            math.log(moved(rate * up, front * over, blocks) / moved(rate, front, blocks))
            for up, over in ((1.05, 1), (1, 1.05))
        )
        return -by_rate / by_front

    net = tp.ResNet("L", "identity", **POST, layers=2)
    found = tp.check(net, "depth-mup", steps=1, optimizer="signsgd")
    few, many = slope(1e4, 0.01, 1), slope(0.1, 0.01, 256)
    assert few == pytest.approx(float(found.level_slopes("few")[0]), abs=0.05)
    assert many == pytest.approx(float(found.level_slopes()[0]), abs=0.05)
