"""From weights along the depth to their regularity and the power of 1/L that suits them."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.linalg import toeplitz

import tpcalc as tp
from tpcalc.errors import EvaluationError, UsageError
from tpcalc.finite.paths import draw_paths
from tpcalc.program.along import along_of


def drawn(law: str, depth: int, count: int, seed: int = 0) -> np.ndarray:
    return draw_paths(law, depth, count, np.random.default_rng(seed)).T


@pytest.mark.parametrize(
    ("law", "kind", "count"),
    [
        ("fgn(1/5)", "rough", 96),
        ("fresh", "independent", 96),
        ("fgn(4/5)", "persistent", 96),
        ("fgn(4/5)", "persistent", 8),
    ],
)
def test_S2_20_the_exponent_is_found(law: str, kind: str, count: int) -> None:
    found = tp.regularity(drawn(law, 256, count))
    hurst = 0.5 if law == "fresh" else float(Fraction(law[4:-1]))
    # the logarithm of an average of squares of few sequences lies a little below
    assert abs(found.hurst.value - hurst) < 5 * found.hurst.stderr + 1 / (4 * count)
    assert found.kind == kind or (count == 8 and found.hurst.stderr > 0.01)
    if count == 96:
        outputs = max(hurst, 0.5)
        assert float(Fraction(found.critical[0])) == pytest.approx(outputs, abs=0.03)
        assert float(Fraction(found.critical[1])) == pytest.approx(
            max(2 * hurst - 1, 0.5), abs=0.06
        )


@pytest.mark.parametrize("law", ["rbf(1/10)", "rbf_increments(1/5)"])
def test_S2_15_smooth_weights_suit_the_power_1(law: str) -> None:
    found = tp.regularity(drawn(law, 200, 60).reshape(200, 6, 10), alphas=["1/2", "1", "2"])
    assert (found.kind, found.alpha, found.critical) == ("smooth", "1", ("1", "1"))
    assert found.smoothness.value == pytest.approx(1, abs=0.02)
    classes = {row.alpha: row.outputs for row in found.rows}
    assert classes == {"1/2": "unstable", "1": "stationary", "2": "identity"}
    if law == "rbf(1/10)":
        assert float(along_of(found.law).numbers[0]) == pytest.approx(0.1, abs=0.01)


def test_S2_19_displacements_are_those_of_the_autocovariance() -> None:
    law = along_of("fgn(4/5)")
    found = tp.regularity(autocovariance=3 * law.autocovariance(200), sequences=400, alphas=["4/5"])
    assert found.hurst.value == pytest.approx(0.8, abs=1e-9) and found.law == "fgn(4/5)"
    net = tp.ResNet("L", "relu", alpha="4/5", hurst="4/5", nonlin="between", layers=2)
    exact = tp.limit(net, depths=[200])
    (row,) = found.rows
    assert row.D is not None and row.Dp is not None
    assert row.D.value**2 == pytest.approx(exact.at("D^2", 200).value, rel=1e-9)
    assert row.Dp.value**2 == pytest.approx(exact.at("Dp^2", 200).value, rel=1e-9)


def test_a_smooth_part_beneath_noise_decides_in_more_blocks() -> None:
    weights = drawn("fresh", 512, 100) + 0.3 * drawn("rbf(1/4)", 512, 100, 1)
    found = tp.regularity(weights)
    assert found.coarse.value > 0.85 > found.hurst.value
    assert any("long sums grow faster" in note for note in found.notes)
    assert Fraction(found.alpha) > Fraction(4, 5)


def test_S2_19_other_networks_have_other_powers() -> None:
    rough = drawn("fgn(1/10)", 256, 96)
    assert tp.regularity(rough, network=tp.ResNet("L", "tanh")).alpha == "1/4"  # res-1
    # Its slope jumps: gradients are critical at 1/3.
    assert tp.regularity(rough, network=tp.ResNet("L", "relu")).critical == ("1/4", "1/3")
    assert str(tp.regularity(rough).alpha) == "1/2"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"weights": np.ones((4, 3))}, "too few"),
        ({"weights": np.zeros((64, 3))}, "are 0"),
        ({"weights": np.full((64, 3), np.nan)}, "not finite"),
        ({"weights": ["a"] * 20}, "numbers along the depth"),
        ({"weights": np.ones((40, 3), complex)}, "complex128 entries"),
        ({"weights": np.ma.masked_array(np.ones((40, 3)), True)}, "masked entries"),
        ({"weights": np.ones((40, 3)), "sequences": 0}, "sequences is 0"),
        ({"weights": np.ones((40, 3)), "sequences": 4}, "weights are counted"),
        ({"weights": np.ones((40, 3)), "seed": -1}, "seed is -1"),
        ({}, "one of them"),
        ({"weights": np.ones((64, 1)), "autocovariance": [1.0] * 64}, "one of them"),
    ],
)
def test_bad_input(given: dict, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        tp.regularity(**given)


def autoregressive(phi: float, depth: int, count: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    found = rng.standard_normal((depth, count))
    found[0] /= (1 - phi**2) ** 0.5
    for layer in range(1, depth):
        found[layer] += phi * found[layer - 1]
    return found


@pytest.mark.parametrize(
    ("phi", "depth", "count"),
    [(0.9, 2000, 64), (0.9, 200, 64), (0.9, 2000, 8), (0.5, 256, 96), (-0.9, 500, 96)],
)
def test_a_short_memory_is_no_law_of_long_memory(phi: float, depth: int, count: int) -> None:
    found = tp.regularity(autoregressive(phi, depth, count))
    assert (found.kind, found.alpha, found.critical) == ("independent", "1/2", ("1/2", "1/2"))
    assert any("short memory" in note for note in found.notes)


def test_a_memory_as_long_as_the_network_is_not_called_short() -> None:
    found = tp.regularity(autoregressive(0.99, 400, 64))
    assert found.kind == "persistent" and any("not excluded" in note for note in found.notes)
    noise = tp.regularity(drawn("fgn(4/5)", 400, 64) + autoregressive(0.5, 400, 64))
    assert noise.kind == "persistent" and float(Fraction(noise.alpha)) > 0.7


def test_weights_of_any_size_have_one_answer() -> None:
    weights = drawn("fgn(4/5)", 64, 96)
    values = {tp.regularity(weights * scale).hurst.value for scale in (1, 2.0**600, 2.0**-600)}
    assert len(values) == 1


@pytest.mark.parametrize("row", [[1] + [5] * 39, [1, 0.6] + [0] * 38, [-1] + [0] * 39])
def test_numbers_that_are_the_autocovariance_of_nothing(row: list[float]) -> None:
    with pytest.raises(EvaluationError, match="no Gaussian sequence of 40 numbers"):
        tp.regularity(autocovariance=row)


def test_averages_over_pairs_are_taken_as_they_are() -> None:
    weights = drawn("fresh", 64, 1)  # their Toeplitz matrix has negative eigenvalues
    row = [float((weights[k:] * weights[: 64 - k]).mean()) for k in range(64)]
    assert np.linalg.eigvalsh(toeplitz(row))[0] < -0.1 * row[0]
    assert tp.regularity(autocovariance=row).kind == "independent"


def test_few_weights_do_not_tell_independence_from_what_is_near_it() -> None:
    rng = np.random.default_rng(3)
    found = tp.regularity(rng.standard_normal((32, 3)))
    assert found.kind == "independent" and found.hurst.stderr > 0.02
    assert any("not told from the nearest one" in note for note in found.notes)
    many = tp.regularity(rng.standard_normal((1000, 400)))
    assert not any("not told" in note for note in many.notes)
