"""The activations of the thesis against the reference tables, at unit and at other lengths."""

from __future__ import annotations

from math import log, pi, sqrt

import pytest

import tpcalc as tp

s = tp.signal
FIVE = 1.01e-5  # five decimals are printed
SIX = 1.01e-6
GAUSSIAN = "gaussian:1/2"

# b, E tau^2, a, E tau'^2, n(1, 0), that of the rest, LAR, CAR, NAR, chi, R, and debiased chi and R
TABLE_2: dict[str, tuple[float, ...]] = {
    "relu": (
        *(0.39894, 0.5, 0.5, 0.5, 1.21117, 1.6589, 0.5, 0.31831, 0.18169),
        *(1, 1, 1.46694, 1),
    ),
    "selu": (
        *(0, 1, 0.98523, 1.07157, 1.03517, 1.85505, 0.97068, 0, 0.02932),
        *(1.07157, 0.78265, 1.07157, 0.78265),
    ),
    "swish": (
        *(0.20662, 0.35578, 0.5, 0.37948, 1.10095, 1.43268, 0.70269, 0.12, 0.17731),
        *(1.06663, 1.17259, 1.21208, 1.10095),
    ),
    "softplus": (
        *(0.80606, 0.92125, 0.5, 0.29338, 1.03948, 1.41995, 0.27137, 0.70527, 0.02335),
        *(0.31846, 0.49205, 1.08053, 1.05612),
    ),
    "tanh": (
        *(0, 0.39429, 0.60571, 0.4644, 1.08527, 1.88607, 0.93047, 0, 0.06953),
        *(1.17781, 0.46107, 1.17781, 0.46107),
    ),
    "sigmoid": (
        *(0.5, 0.29338, 0.20662, 0.04484, 1.01666, 1.76683, 0.14552, 0.85214, 0.00234),
        *(0.15283, 0.10634, 1.03359, 0.7192),
    ),
    "abs": (
        *(0.79788, 1, 0, 1, 1.6589, 1.6589, 0, 0.63662, 0.36338),
        *(1, 1, 2.75194, 1),
    ),
    "even_tanh": (
        *(0.55598, 0.39429, 0, 0.4644, 2.33494, 2.33494, 0, 0.78396, 0.21604),
        *(1.17781, 0.46107, 5.45192, 0.16679),
    ),
    GAUSSIAN: (
        *(0.70711, 0.57735, 0, 0.19245, 1.57735, 1.57735, 0, 0.86603, 0.13397),
        *(0.33333, -0.33333, 2.48803, 0.74402),
    ),
    "square": (
        *(1, 3, 0, 4, 1.41421, 1.41421, 0, 0.33333, 0.66667),
        *(1.33333, 2, 2, 2),
    ),
    "odd_square": (
        *(0, 3, 1.59577, 4, 1.1547, 1.79024, 0.84883, 0, 0.15117),
        *(1.33333, 2, 1.33333, 2),
    ),
    "sawtooth": (
        *(0, 0.33042, 0.37078, 1, 1.73967, 2.11432, 0.41607, 0, 0.58393),
        *(3.02646, 0.04353, 3.02646, 0.04353),
    ),
}


def numbers_of(name: str) -> list[float]:
    own, even = s.split(name), s.activations.debiased(name)
    found = [own.mean, own.second, own.coefficient, own.slope, own.nlc, own.rest_nlc]
    found += [own.linear_ratio, own.constant_ratio, own.nonlinear_ratio]
    for each in (name, even):
        kernel = s.activations.CovarianceKernel(each)
        found += [kernel.end_slope, s.stability_number(each, 1.0)]
    return [each.value for each in found]


@pytest.mark.parametrize("name", TABLE_2)
def test_S4b_18_case1_the_table_of_activations(name: str) -> None:
    assert numbers_of(name) == pytest.approx(TABLE_2[name], abs=FIVE)


def test_S4b_18_case1_the_gaussian_to_six_digits() -> None:
    found = dict(enumerate(numbers_of(GAUSSIAN)))
    wanted = {0: 0.707107, 1: 0.57735, 3: 0.19245, 4: 1.57735, 9: 1 / 3, 10: -1 / 3}
    assert {key: found[key] for key in wanted} == pytest.approx(wanted, abs=SIX)
    assert found[4] ** 2 == pytest.approx(3**-1.5 / (3**-0.5 - 0.5), rel=1e-12)


LENGTHS = (0.01, 0.1, 1, 2, 10)
CURVES: dict[str, tuple[float, ...]] = {
    "relu": (1.211174,) * 5,
    "abs": (1.658897,) * 5,
    "square": (1.414214,) * 5,
    "odd_square": (1.154701,) * 5,
    "selu": (1.01916, 1.01663, 1.03517, 1.07126, 1.16602),
    "swish": (1.00002, 1.00246, 1.10095, 1.15813, 1.21307),
    "softplus": (1.00001, 1.00062, 1.03948, 1.08255, 1.17003),
    "tanh": (1, 1.00006, 1.08527, 1.2695, 2.4019),
    "sigmoid": (1, 1, 1.01666, 1.08527, 1.77058),
    "even_tanh": (1.65899, 1.66852, 2.33494, 3.49022, 13.8335),
    GAUSSIAN: (1.41421, 1.41427, 1.57735, 2.10819, 7.60758),
    "sawtooth": (1, 1, 1.73967, 3.4641, 17.32051),
}


@pytest.mark.parametrize("name", CURVES)
def test_S4b_23_case2_coefficients_at_other_lengths(name: str) -> None:
    found = s.activations.LengthKernel(name).nlc(LENGTHS).value
    assert found == pytest.approx(CURVES[name], abs=1.01e-4 if name == "even_tanh" else FIVE)


def test_S4b_23_case27_large_lengths() -> None:
    at = s.activations.LengthKernel("tanh").nlc([100.0]).at(0).value
    assert at / 10 == pytest.approx(0.73225, abs=FIVE)
    wanted = {
        "tanh": (0.5, sqrt(4 / (3 * sqrt(2 * pi)))),
        "sigmoid": (0.5, sqrt(2 / (3 * sqrt(2 * pi)))),
        "even_tanh": (1, sqrt((2 / 3) / (2 * log(2) - 1))),
        GAUSSIAN: (1, sqrt(1 / 2)),
    }
    for name, pair in wanted.items():
        (end,) = (each for each in s.activations.asymptotes(name) if each.end == "infinity")
        assert (end.power.value, end.factor.value) == pytest.approx(pair, rel=2e-3)
