"""Activation sheets against the reference tables and cases (thesis, ch. 4 and 5)."""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from math import inf, pi, sqrt, tanh

import numpy as np
import pytest

from tests.second_ways import hermite_nlc
from tpcalc.activations.entries import lookup
from tpcalc.functions import Expr, Var
from tpcalc.integrals.activation_moments import Kernels
from tpcalc.integrals.bounded import Bounded
from tpcalc.meanfield.activations.calibrate import debiased, dilated
from tpcalc.meanfield.activations.covariance import CovarianceKernel
from tpcalc.meanfield.activations.length import LengthKernel
from tpcalc.meanfield.activations.split import Split, split
from tpcalc.meanfield.sheet import sheet
from tpcalc.results import Sheet

ONE = Bounded(1.0)
DIGITS = 1.01e-6  # six decimals are printed, some cut and not rounded
FIVE = 1.01e-5

NAMES = {
    "relu": "relu",
    "selu": "selu",
    "tanh": "tanh",
    "sigmoid": "sigmoid",
    "softplus": "softplus",
    "swish": "swish",
    "abs": "abs",
    "square": "square",
    "odd_square": "odd_square",
    "even_tanh": "even_tanh",
    "gaussian": "gaussian:1/2",
    "sawtooth": "sawtooth",
}


def act(name: str) -> Expr:
    base = lookup(NAMES[name.removesuffix("-deb")]).fn.expr
    return debiased(base) if name.endswith("-deb") else base


@lru_cache(maxsize=64)
def own(name: str) -> Sheet:
    return sheet(NAMES[name.removesuffix("-deb")], debias=name.endswith("-deb"))


@lru_cache(maxsize=64)
def parts(name: str) -> Split:
    return split(act(name))


TABLE_9_1 = {
    "relu": (0.398942, 0.5, 0.5, 0.5, 1.211174, 1.658897, 0.5, 0.318310, 0.181690),
    "selu": (0, 0.985231, 1, 1.071575, 1.035169, 1.855046, 0.970680, 0, 0.029320),
    "tanh": (0, 0.605706, 0.394294, 0.464403, 1.085268, 1.886073, 0.930470, 0, 0.069530),
    "sigmoid": (
        *(0.5, 0.206621, 0.293379, 0.044836, 1.016657, 1.766831),
        *(0.145519, 0.852140, 0.002341),
    ),
    "softplus": (
        *(0.806059, 0.5, 0.921246, 0.293379, 1.039485, 1.419954),
        *(0.271372, 0.705275, 0.023354),
    ),
    "swish": (
        *(0.206621, 0.5, 0.355776, 0.379482, 1.100946, 1.432676),
        *(0.702690, 0.119998, 0.177312),
    ),
    "abs": (0.797885, 0, 1, 1, 1.658897, 1.658897, 0, 0.636620, 0.363380),
    "square": (1, 0, 3, 4, 1.414214, 1.414214, 0, 0.333333, 0.666667),
    "odd_square": (0, 1.595769, 3, 4, 1.154701, 1.790243, 0.848826, 0, 0.151174),
    "even_tanh": (0.555979, 0, 0.394294, 0.464403, 2.334935, 2.334935, 0, 0.783965, 0.216035),
    "gaussian": (0.707107, 0, 0.577350, 0.192450, 1.577350, 1.577350, 0, 0.866025, 0.133975),
    "sawtooth": (0, 0.370777, 0.330419, 1, 1.739674, 2.114324, 0.416066, 0, 0.583934),
}


@pytest.mark.parametrize("name", TABLE_9_1)
def test_S4_9_30_case3_table_9_1(name: str) -> None:
    found = own(name).split
    assert found.rest_nlc is not None
    numbers = (
        *(found.mean, found.coefficient, found.second, found.slope, found.nlc, found.rest_nlc),
        *(found.linear, found.constant, found.nonlinear),
    )
    for number, wanted in zip(numbers, TABLE_9_1[name], strict=True):
        assert number.value == pytest.approx(wanted, abs=DIGITS)
        assert number.stderr < 1e-10


@pytest.mark.parametrize("name", TABLE_9_1)
def test_S4_3_9_case4_theorem_3_and_shares(name: str) -> None:
    found = parts(name)
    assert found.joined.value == pytest.approx(found.nlc.value, abs=1e-10)
    whole = found.linear_ratio + found.constant_ratio + found.nonlinear_ratio
    assert whole.value == pytest.approx(1, abs=1e-12)
    # The same identity with shares instead of second moments.
    curved = found.nonlinear_ratio.value
    share = curved / (found.linear_ratio.value + curved)
    squared = 1 + share * (found.rest_nlc.value**2 - 1)
    assert sqrt(squared) == pytest.approx(found.nlc.value, abs=1e-10)


@pytest.mark.parametrize("name", TABLE_9_1)
def test_S4_30_case3_hermite_coefficients_agree(name: str) -> None:
    found = hermite_nlc(act(name))
    assert abs(found.value - parts(name).nlc.value) <= found.error + 1e-12
    assert found.error < 1e-3


@pytest.mark.parametrize("omega", [0.3, 1, 3])
def test_S4_30_case5_sine(omega: float) -> None:
    tau = dilated(lookup("sin").fn.expr, omega)
    wanted = {0.3: 1.0013483625, 1: 1.1458775177, 3: 3.0000000457}[omega]
    found = split(tau).nlc.value
    assert found == pytest.approx(wanted, abs=1e-9)
    assert found == pytest.approx(omega / sqrt(tanh(omega**2)), rel=1e-12)


@pytest.mark.parametrize(
    ("name", "line", "wanted"),
    [
        ("relu", 0.0, 1.211174),
        ("relu", 0.5, 1.070467),
        ("relu", 1.0, 1.033436),
        ("relu", -0.5, 1.658897),
        ("tanh", 0.5, 1.027661),
        ("tanh", 1.0, 1.013364),
    ],
)
def test_S4_9_case37_linear_interpolation(name: str, line: float, wanted: float) -> None:
    assert parts(name).interpolated(line).value == pytest.approx(wanted, abs=DIGITS)
    assert split(act(name) + line * Var(0)).nlc.value == pytest.approx(wanted, abs=DIGITS)


# lambda -> n(lambda^2, 0); L(0), L'(0); the stability number at .5, 1, 2, 5.
LENGTHS = (0.01, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0)
TABLE_9_2 = {
    "relu": ((1.21117,) * 7, (0, 0.70711), (1, 1, 1, 1)),
    "selu": (
        (1.01916, 1.01663, 1.01881, 1.03517, 1.07126, 1.13147, 1.16602),
        *((0, 1.44826), (0.8228, 0.782648, 0.8197, 0.9313)),
    ),
    "tanh": (
        (1.0, 1.00006, 1.01666, 1.08527, 1.26950, 1.77058, 2.40190),
        *((0, 1), (0.7192, 0.461071, 0.2416, 0.0902)),
    ),
    "sigmoid": (
        (1.0, 1.0, 1.00190, 1.01666, 1.08527, 1.36176, 1.77058),
        *((0.5, 0), (0.0474, 0.106341, 0.1304, 0.0787)),
    ),
    "softplus": (
        (1.00001, 1.00062, 1.01350, 1.03948, 1.08255, 1.13958, 1.17003),
        *((0.69315, 0), (0.1846, 0.492053, 0.8230, 0.9803)),
    ),
    "swish": (
        (1.00002, 1.00246, 1.04487, 1.10095, 1.15813, 1.20311, 1.21307),
        *((0, 0.5), (1.1128, 1.172594, 1.1154, 1.0217)),
    ),
    "abs": ((1.65890,) * 7, (0, 1), (1, 1, 1, 1)),
    "square": ((1.41421,) * 7, (0, 0), (2, 2, 2, 2)),
    "odd_square": ((1.15470,) * 7, (0, 0), (2, 2, 2, 2)),
    "even_tanh": (
        (1.65899, 1.66852, 1.87128, 2.33494, 3.49022, 7.30919, 13.83352),
        *((0, 1), (0.7192, 0.461071, 0.2416, 0.0902)),
    ),
    "gaussian": (
        (1.41421, 1.41427, 1.43607, 1.57735, 2.10819, 4.11043, 7.60758),
        *((1, 0), (-0.1667, -0.333333, -0.4444, -0.4902)),
    ),
    "sawtooth": (
        (1, 1, 1.07574, 1.73967, 3.46410, 8.66025, 17.32051),
        *((0, 1), (0.6574, 0.043532, 0, 0)),
    ),
}


@pytest.mark.parametrize("name", TABLE_9_2)
def test_S4_30_32_36_table_9_2(name: str) -> None:
    found, (coefficients, start, numbers) = own(name), TABLE_9_2[name]
    assert [row.length for row in found.lengths] == list(LENGTHS)
    for row, wanted in zip(found.lengths, coefficients, strict=True):
        assert row.nlc.value == pytest.approx(wanted, abs=FIVE)
    assert (found.start, found.start_slope) == pytest.approx(start, abs=FIVE)
    shown = [row.stability.value for row in found.lengths if row.length in (0.5, 1, 2, 5)]
    assert shown == pytest.approx(numbers, abs=1.01e-4)
    assert shown[1] == pytest.approx(numbers[1], abs=DIGITS)


def test_S4_36_case24_stability_of_debiased_activations() -> None:
    wanted = {
        **{"relu": 1.0, "sigmoid": 0.719201, "softplus": 1.056125, "swish": 1.100947},
        **{"abs": 1.0, "square": 2.0, "even_tanh": 0.166791, "gaussian": 0.744017},
    }
    for name, value in wanted.items():
        found = LengthKernel(act(f"{name}-deb")).stability([1.0]).at(0)
        assert found.value == pytest.approx(value, abs=DIGITS)
    words = {name: own(name).stability for name in TABLE_9_2}
    assert {name for name, word in words.items() if word == "edge"} == {"relu", "abs"}
    unstable = {name for name, word in words.items() if word == "unstable"}
    assert unstable == {"square", "odd_square", "swish"}


# The raw kernel, then the normalized one: its class, and the points (length, slope, kind).
LIMIT, ZERO, SPLIT = "all to a positive limit", "all to 0", "small to 0, large to infinity"
Row = tuple[str, list[tuple[float, float, str]]]
TABLE_9_3: dict[str, tuple[Row, Row]] = {
    "relu": ((ZERO, [(0, 0.7071, "stable")]), ("identity", [])),
    "relu-deb": (
        (LIMIT, [(0.329479, 0.01695, "stable")]),
        ("half-stable", [(1, 1, "stable from below")]),
    ),
    "selu": (
        (LIMIT, [(0, 1.448264, "unstable"), (1, 0.78265, "stable")]),
        (LIMIT, [(0, 1.448264, "unstable"), (1, 0.78265, "stable")]),
    ),
    "tanh": (
        (ZERO, [(0, 1, "stable")]),
        (LIMIT, [(0, 1.59254, "unstable"), (1, 0.46107, "stable")]),
    ),
    "even_tanh": (
        (ZERO, [(0, 1, "stable")]),
        (LIMIT, [(0, 1.59254, "unstable"), (1, 0.46107, "stable")]),
    ),
    "sigmoid": ((LIMIT, [(0.514477, 0.04951, "stable")]), (LIMIT, [(1, 0.10634, "stable")])),
    "sigmoid-deb": (
        (ZERO, [(0, 0.25, "stable")]),
        (LIMIT, [(0, 1.20033, "unstable"), (1, 0.71920, "stable")]),
    ),
    "softplus": ((LIMIT, [(0.925368, 0.45052, "stable")]), (LIMIT, [(1, 0.49205, "stable")])),
    "softplus-deb": (
        (LIMIT, [(0.128061, 0.22341, "stable")]),
        ("mixed", [(0.625054, 0.93499, "stable"), (1, 1.05612, "unstable")]),
    ),
    "swish": (
        (ZERO, [(0, 0.5, "stable")]),
        (SPLIT, [(0, 0.83827, "stable"), (1, 1.17259, "unstable")]),
    ),
    "swish-deb": (
        (LIMIT, [(0.225051, 0.16708, "stable")]),
        ("mixed", [(0.672763, 0.87280, "stable"), (1, 1.10095, "unstable")]),
    ),
    "abs": (("identity", []), ("identity", [])),
    "abs-deb": (
        (LIMIT, [(0.5, -0.27324, "stable")]),
        ("half-stable", [(1, 1, "stable from below")]),
    ),
    "square": (
        (SPLIT, [(0, 0, "stable"), (1 / sqrt(3), 2, "unstable")]),
        (SPLIT, [(0, 0, "stable"), (1, 2, "unstable")]),
    ),
    "odd_square": (
        (SPLIT, [(0, 0, "stable"), (1 / sqrt(3), 2, "unstable")]),
        (SPLIT, [(0, 0, "stable"), (1, 2, "unstable")]),
    ),
    "square-deb": (
        ("all to infinity", []),
        ("mixed", [(1 / sqrt(3), 0, "stable"), (1, 2, "unstable")]),
    ),
    "even_tanh-deb": (
        (LIMIT, [(0.347244, -0.36454, "stable")]),
        (LIMIT, [(1, 0.16679, "stable")]),
    ),
    "gaussian": ((LIMIT, [(0.810739, -0.28398, "stable")]), (LIMIT, [(1, -1 / 3, "stable")])),
    "gaussian-deb": ((LIMIT, [(0.263637, -0.18333, "stable")]), (LIMIT, [(1, 0.74402, "stable")])),
    "sawtooth": (
        (ZERO, [(0, 1, "stable")]),
        (LIMIT, [(0, 1.73967, "unstable"), (1, 0.04353, "stable")]),
    ),
}


@pytest.mark.parametrize("name", TABLE_9_3)
def test_S4_32_case24_table_9_3(name: str) -> None:
    for found, (label, points) in zip(own(name).maps, TABLE_9_3[name], strict=True):
        assert found.label == label
        assert len(found.points) == len(points)
        for point, (length, slope, kind) in zip(found.points, points, strict=True):
            assert point.slope is not None
            assert point.length.value == pytest.approx(length, abs=FIVE)
            assert point.slope.value == pytest.approx(slope, abs=FIVE)
            assert point.kind == kind


def test_S4_32_case24_rates() -> None:
    def rate(name: str, kernel: int, index: int = 0) -> str:
        return own(name).maps[kernel].points[index].rate

    assert rate("tanh", 0) == rate("even_tanh", 0) == "M^(-1/2)"
    assert rate("sawtooth", 0) == "slower than any power of M"
    assert rate("relu-deb", 1) == rate("abs-deb", 1) == "M^(-1)"
    assert rate("square-deb", 1) == rate("square", 0) == "superexponential"
    assert rate("selu", 0, 1) == rate("relu", 0) == "exponential"
    closed = -1 / pi + sqrt(1 / pi**2 + 1 / pi)
    assert own("relu-deb").maps[0].points[0].length.value == pytest.approx(closed, rel=1e-12)


def test_S4_32_case25_slope_of_the_length_kernel_at_0() -> None:
    # SELU by the formula itself: scale * sqrt((1 + alpha^2) / 2); 1.448264 is printed.
    selu = 1.0507009873554805 * sqrt((1 + 1.6732632423543772**2) / 2)
    wanted = {"relu": 0.707107, "selu": selu, "even_tanh-deb": -0.797885}
    for name, value in wanted.items():
        found = LengthKernel(act(name)).slope_at_zero
        assert found == pytest.approx(value, abs=DIGITS)
    kernel = LengthKernel(act("even_tanh-deb"))
    near = kernel.stability([1e-3]).value[0] * kernel.lengths([1e-3]).value[0] / 1e-3
    assert near == pytest.approx(-0.79723, abs=FIVE)


# C(0), C'(0), C'(1), limit, slope there, case, depth scale.
TABLE_9_4 = {
    "relu": (0.318310, 0.5, 1, 1, 1, 2, inf),
    "relu-deb": (0, 0.733471, 1.466942, 0, 0.733471, 3, 3.2261),
    "selu": (0, 0.970680, 1.071575, 0, 0.970680, 3, 33.604),
    "tanh": (0, 0.930470, 1.177807, 0, 0.930470, 3, 13.876),
    "sigmoid": (0.852140, 0.145519, 0.152827, 1, 0.152827, 1, 0.5324),
    "sigmoid-deb": (0, 0.984167, 1.033592, 0, 0.984167, 3, 62.659),
    "softplus": (0.705275, 0.271372, 0.318459, 1, 0.318459, 1, 0.8739),
    "softplus-deb": (0, 0.920761, 1.080528, 0, 0.920761, 3, 12.113),
    "swish": (0.119998, 0.702690, 1.066634, 0.6586672, 0.935385, 3, 14.971),
    "swish-deb": (0, 0.798510, 1.212081, 0, 0.798510, 3, 4.4443),
    "abs": (0.636620, 0, 1, 1, 1, 2, inf),
    "abs-deb": (0, 0, 2.751938, 0, 0, 3, 0),
    "square": (0.333333, 0, 1.333333, 0.5, 0.666667, 3, 2.4663),
    "square-deb": (0, 0, 2, 0, 0, 3, 0),
    "odd_square": (0, 0.848826, 1.333333, 0, 0.848826, 3, 6.1013),
    "even_tanh": (0.783965, 0, 1.177807, 0.9865844, 0.912071, 3, 10.865),
    "even_tanh-deb": (0, 0, 5.451923, 0, 0, 3, 0),
    "gaussian": (0.866025, 0, 0.333333, 1, 0.333333, 1, 0.9102),
    "gaussian-deb": (0, 0, 2.488034, 0, 0, 3, 0),
    "sawtooth": (0, 0.416066, 3.026464, 0, 0.416066, 3, 1.1404),
}


@pytest.mark.parametrize("name", TABLE_9_4)
def test_S4_33_case23_table_9_4(name: str) -> None:
    found = own(name).covariance
    start, start_slope, end_slope, limit, slope, case, scale = TABLE_9_4[name]
    assert found.start.value == pytest.approx(start, abs=DIGITS)
    assert found.start_slope.value == pytest.approx(start_slope, abs=DIGITS)
    assert found.end_slope.value == pytest.approx(end_slope, abs=DIGITS)
    assert found.limit.value == pytest.approx(limit, abs=1e-7)
    assert found.limit_slope.value == pytest.approx(slope, abs=DIGITS)
    assert found.case == case
    assert found.depth_scale == pytest.approx(scale, rel=1e-4, abs=6e-5)


@pytest.mark.parametrize("name", ["swish", "even_tanh", "square"])
def test_S4_33_case23_nlc_at_the_limit(name: str) -> None:
    kernel = CovarianceKernel(act(name))
    limit, end = kernel.found.limit, kernel.found.end_slope
    here = kernel.correlations([limit.value]).at(0)
    assert here.value == pytest.approx(limit.value, abs=1e-12)
    found = kernel.nlc([limit.value]).at(0)
    assert found.value == pytest.approx(sqrt(end.value), abs=1e-9)


TABLE_9_5 = {
    "relu": (
        *((0.453310, 1.171278), (0.608998, 1.130825)),
        *((0.788002, 1.085936), (0.909538, 1.051400)),
    ),
    "selu": (
        *((0.243810, 1.030924), (0.490569, 1.025542)),
        *((0.741589, 1.018182), (0.895259, 1.011471)),
    ),
    "tanh": (
        *((0.233500, 1.073524), (0.472551, 1.056652)),
        *((0.724189, 1.033240), (0.885641, 1.014850)),
    ),
    "softplus": (
        *((0.774566, 1.029315), (0.846764, 1.019370)),
        *((0.921894, 1.009612), (0.968397, 1.003830)),
    ),
    "swish": (
        *((0.306498, 1.074025), (0.514846, 1.048463)),
        *((0.745646, 1.023901), (0.895335, 1.009504)),
    ),
    "even_tanh": (
        *((0.791346, 2.057569), (0.815947, 1.788755)),
        *((0.868418, 1.495919), (0.927836, 1.277551)),
    ),
    "gaussian": (
        *((0.872872, 1.402325), (0.894427, 1.256459)),
        *((0.934199, 1.125362), (0.969762, 1.049941)),
    ),
}


@pytest.mark.parametrize("name", TABLE_9_5)
def test_S4_33_table_9_5(name: str) -> None:
    rows = own(name).correlations
    assert [row.correlation for row in rows] == [0.0, 0.25, 0.5, 0.75, 0.9]
    for row, (kernel, coefficient) in zip(rows[1:], TABLE_9_5[name], strict=True):
        assert row.kernel.value == pytest.approx(kernel, abs=DIGITS)
        assert row.nlc.value == pytest.approx(coefficient, abs=DIGITS)
    curve = own(name).curve("nlc of covariance").y
    assert all(x > y >= 1 for x, y in pairwise(curve))


def test_S4_19_case38_three_argument_kernel() -> None:
    found = Kernels(act("relu")).product(ONE, Bounded(2.0), Bounded(0.5))
    assert found.value == pytest.approx(0.3642988817, abs=1e-9)
    c = 0.5 / sqrt(2)
    closed = sqrt(2) / (2 * pi) * (sqrt(1 - c * c) + c * (pi - np.arccos(c)))
    assert found.value == pytest.approx(closed, rel=1e-12)


def test_S4_30_asymptotics_of_the_nlc_of_length() -> None:
    relu, bump = sqrt(pi / (pi - 1)), sqrt(4 / 3 / (4 * np.log(2) - 2))
    wanted = {
        **{name: (0.0, relu) for name in ("relu", "selu", "softplus", "swish")},
        "tanh": (0.5, sqrt(4 / (3 * sqrt(2 * pi)))),
        "sigmoid": (0.5, sqrt(2 / (3 * sqrt(2 * pi)))),
        "even_tanh": (1.0, bump),
        "gaussian": (1.0, sqrt(0.5)),
        "sawtooth": (1.0, sqrt(3)),
        "abs": (0.0, sqrt(pi / (pi - 2))),
        "square": (0.0, sqrt(2)),
    }
    assert bump == pytest.approx(1.3137, abs=5e-5)
    for name, (power, factor) in wanted.items():
        short, long = own(name).asymptotes
        assert long.power.value == pytest.approx(power, abs=1e-9)
        assert long.factor.value == pytest.approx(factor, rel=1e-9)
        assert long.derived == (name != "sawtooth")
        assert (short.power.value, short.derived) == (0.0, True)
    for name, value in {"tanh": 1.0, "softplus": 1.0, "gaussian": sqrt(2), "sawtooth": 1.0}.items():
        assert own(name).asymptotes[0].factor.value == pytest.approx(value, abs=1e-12)
