"""Statistics over seeds, against numbers by hand and against simulated coverage."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tpcalc.errors import EvaluationError, UnknownName, UsageError
from tpcalc.finite.statistics import slope, summary
from tpcalc.results import Method

WIDTHS = [64, 256, 1024, 4096]


def draws(power: float, seeds: int, rng: np.random.Generator, center: float = 0.0) -> list:
    return [center + rng.normal(size=seeds) * width**power for width in WIDTHS]


def test_summary_by_hand() -> None:
    found = summary([1.0, 2.0, 3.0, 6.0])
    # Deviations -2, -1, 0, 3: variance 14/3, standard error sqrt(14/3/4).
    assert found.value == 3
    assert found.stderr == pytest.approx(math.sqrt(14 / 12), rel=1e-15)
    assert (found.method, found.samples, found.replicates) == (Method.FINITE, 4, 4)
    assert found.std is None and not found.random
    assert found.draws == (1, 2, 3, 6)
    assert summary([1.0, 2.0, 3.0, 6.0], random=True).std == pytest.approx(math.sqrt(14 / 3))


def test_equal_values_have_no_error_at_all() -> None:
    found = summary([0.1] * 7)
    assert (found.value, found.stderr) == (0.1, 0.0)


@pytest.mark.parametrize("values", [[], [1.0]])
def test_summary_of_fewer_than_two_seeds(values: list[float]) -> None:
    with pytest.raises(EvaluationError, match=r"standard error.*at least two"):
        summary(values)


def test_summary_of_exploded_seeds() -> None:
    with pytest.raises(EvaluationError, match="2 of 3 seeds"):
        summary([1.0, math.nan, math.inf])


@given(
    st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=20),
    st.floats(-100, 100),
    st.floats(0.01, 100),
)
def test_summary_moves_and_stretches_with_the_values(
    values: list[float], shift: float, factor: float
) -> None:
    base, moved = summary(values), summary([shift + factor * value for value in values])
    scale = abs(shift) + factor * 1e3
    assert moved.value == pytest.approx(shift + factor * base.value, abs=1e-12 * scale)
    assert moved.stderr == pytest.approx(factor * base.stderr, abs=1e-12 * scale, rel=1e-9)


def test_slope_of_an_exact_power_law() -> None:
    # The same pattern at each width, so that the points lie on a line.
    values = [np.array([1.0, -2.0, 0.5]) * width**-0.75 for width in WIDTHS]
    found = slope(WIDTHS, values)
    assert found.value == pytest.approx(-0.75, rel=1e-12)
    assert found.low < -0.75 < found.high and found.reason == ""
    # By hand: equal weights 1/e^2, e^2 = cv^2 / (4 k), log widths spaced by log 4.
    squares = np.array([1, 4, 0.25])
    error = math.sqrt(np.var(squares, ddof=1) / squares.mean() ** 2 / 3) / 2
    half = 2.306004135 * error / (math.log(4) * math.sqrt(5))  # t quantile at 4 * 2 degrees
    assert found.high - found.value == pytest.approx(half, rel=1e-6)


def test_slope_of_a_mean_by_hand() -> None:
    values = [np.array([-1.0, -3.0]) / width for width in (10, 20, 40)]
    found = slope((10, 20, 40), values, of="mean")
    assert found.value == pytest.approx(-1, rel=1e-12)
    half = 3.182446305 * (1 / 2) / (math.log(2) * math.sqrt(2))  # stderr 1, mean 2; 3 degrees
    assert found.high - found.value == pytest.approx(half, rel=1e-6)


def test_the_interval_widens_where_the_points_are_not_on_a_line() -> None:
    rng = np.random.default_rng(2)
    straight = draws(-0.5, 200, rng)
    bent = [values * factor for values, factor in zip(straight, (1, 3, 3, 1), strict=True)]
    narrow, wide = slope(WIDTHS, straight), slope(WIDTHS, bent)
    assert wide.high - wide.low > 3 * (narrow.high - narrow.low)


@pytest.mark.parametrize(("of", "seeds"), [("rms", 3), ("rms", 20), ("mean", 20)])
def test_the_interval_covers_as_often_as_it_says(of: str, seeds: int) -> None:
    rng = np.random.default_rng(5)
    runs, power, center = 400, (-0.5 if of == "rms" else 0.0), (0.0 if of == "rms" else 3.0)
    hits = 0
    for _ in range(runs):
        found = slope(WIDTHS, draws(power, seeds, rng, center), of=of)
        hits += found.low <= power <= found.high
    # 0.95 within 5 standard errors below; the widening may make it cover more.
    assert hits / runs > 0.95 - 5 * math.sqrt(0.95 * 0.05 / runs)


def test_slope_is_that_of_the_size_and_not_of_the_center() -> None:
    rng = np.random.default_rng(1)
    values = draws(-0.5, 500, rng)
    scaled = [1e-30 * array for array in values]
    assert slope(WIDTHS, scaled).value == pytest.approx(slope(WIDTHS, values).value, rel=1e-9)


@pytest.mark.parametrize(
    ("widths", "values", "reason"),
    [
        ((64, 256), [[1, 2]] * 2, "at least 3"),
        ((64, 64, 256), [[1, 2]] * 3, "2 widths"),
        ((64, 128, 192), [[1, 2]] * 3, "factor 4"),
        ((64, 128, 256), [[1, 2], [0, 0], [1, 2]], "0 at width 128"),
        ((64, 128, 256), [[1, 2], [1], [1, 2]], "1 seeds at width 128"),
        ((64, 128, 256), [[1, 2], [1, math.nan], [1, 2]], "finite at width 128"),
        ((64, 128, 256), [[1, 1], [2, -2], [3, 3]], "does not vary"),
    ],
)
def test_no_slope_but_a_reason(widths: tuple, values: list, reason: str) -> None:
    found = slope(widths, values)
    assert (found.value, found.low, found.high) == (None, None, None)
    assert reason in found.reason


def test_no_slope_of_a_mean_that_is_zero() -> None:
    found = slope((64, 128, 256), [[1, 2], [1, -1], [1, 2]], of="mean")
    assert found.value is None and "0 at width 128" in found.reason


def test_misuse() -> None:
    with pytest.raises(UnknownName, match="median"):
        slope(WIDTHS, draws(0, 2, np.random.default_rng(0)), of="median")
    with pytest.raises(UsageError, match="2 widths and 1 lists"):
        slope((1, 2), [[1.0, 2.0]])
