"""Plain networks and calibrated activations against the published cases (thesis, ch. 3 and 5)."""

from __future__ import annotations

from functools import lru_cache
from math import sqrt
from typing import Any

import numpy as np
import pytest

from tests.second_ways import stable_plain
from tpcalc.activations.entries import lookup
from tpcalc.functions import Expr, Var
from tpcalc.integrals.activation_moments import Kernels, average
from tpcalc.integrals.bounded import Bounded
from tpcalc.meanfield.activations.calibrate import calibrated, dilated, normalized
from tpcalc.meanfield.activations.covariance import CovarianceKernel
from tpcalc.meanfield.activations.length import LengthKernel
from tpcalc.meanfield.activations.split import split
from tpcalc.meanfield.plain import PlainRow, plain

ONE = Bounded(1.0)
DIGITS = 1.01e-6  # six decimals are printed, some cut and not rounded


def act(name: str) -> Expr:
    return lookup("gaussian:1/2" if name == "gaussian" else name).fn.expr


@lru_cache(maxsize=16)
def deep(name: str) -> tuple[PlainRow, ...]:
    """Fifty layers whose lengths stay 1."""
    return stable_plain(act(name), 50)


def at(rows: tuple[PlainRow, ...], depth: int) -> tuple[float, float]:
    row = rows[depth - 1]
    assert row.depth == depth
    return row.nlc.value, row.bias


def test_S4_34_case18_relu() -> None:
    rows, product = plain(act("relu"), 6, weights=2.0), deep("relu")
    wanted = {
        **{1: 1.211174, 2: 1.405430, 4: 1.770407, 6: 2.118704},
        **{10: 2.790027, 20: 4.403470, 50: 9.076647},
    }
    for depth, value in wanted.items():
        assert at(product, depth) == pytest.approx((value, value), abs=DIGITS)
        if depth <= len(rows):
            assert at(rows, depth) == pytest.approx((value, value), abs=DIGITS)
    assert all(abs(row.log_gradient.value) < 1e-12 for row in rows)


def on_unit_interval(values: Any, degree: int) -> tuple[Any, Any]:
    """Chebyshev points between 0 and 1, and the polynomial through values there."""
    at = (1 + np.cos(np.pi * (np.arange(degree + 1) + 0.5) / (degree + 1))) / 2
    return at, np.polynomial.Chebyshev.fit(at, values(at), degree, domain=[0, 1])


def test_S4_34_case18_relu_far_down() -> None:
    """1 - C(1 - x^2) is x^2 - x^3 f(x) with a smooth f, so that 20000 layers take a moment."""
    kernel = CovarianceKernel(act("relu"))

    def missing(x: Any) -> Any:
        return (x**2 - kernel.gaps(1 - x**2).value) / x**3

    _, f = on_unit_interval(missing, 28)
    between = np.array([0.01, 0.1, 0.4, 0.77, 1.0])
    assert f(between) == pytest.approx(missing(between), abs=1e-7)
    gap, found = 1.0, {}
    for depth in range(1, 20_001):
        gap -= gap**1.5 * float(f(gap**0.5))
        found[depth] = gap
    assert 1000**2 * found[1000] == pytest.approx(43.1298, abs=1e-4)
    assert 1 / sqrt(found[1000]) / 1000 == pytest.approx(0.152269, abs=1e-6)
    assert 20_000**2 * found[20_000] == pytest.approx(44.3279, abs=1e-4)
    # On the way to M^2 (1 - c) = 9 pi^2 / 2 and NLC / M = sqrt(2) / (3 pi).
    assert 0 < 9 * np.pi**2 / 2 - 20_000**2 * found[20_000] < 0.1
    assert 0 < 1 / sqrt(found[20_000]) / 20_000 - sqrt(2) / (3 * np.pi) < 2e-4
    rows = deep("relu")
    assert 1 / rows[49].bias ** 2 == pytest.approx(found[50], rel=1e-7)


def test_S4_34_case19_selu() -> None:
    rows = deep("selu")
    assert at(rows, 50) == pytest.approx((5.630724, 1), abs=DIGITS)
    assert at(rows, 46)[0] == pytest.approx(4.903646, abs=DIGITS)
    assert np.exp(rows[-1].log_gradient.value) == pytest.approx(31.7051, abs=1e-4)
    for row, other in zip(plain(act("selu"), 3), rows[:3], strict=True):
        assert row.nlc.value == pytest.approx(other.nlc.value, rel=1e-10)


def test_S4_34_case20_tanh() -> None:
    rows = deep("tanh")
    assert at(rows, 50)[0] == pytest.approx(59.821241, abs=1e-5)
    assert np.exp(rows[-1].log_gradient.value) == pytest.approx(3578.58, abs=1e-2)
    assert at(plain(normalized(act("tanh")), 10), 10)[0] == pytest.approx(2.266580, abs=DIGITS)


def test_S4_34_case20_raw_tanh() -> None:
    """Inputs stay independent, so that the coefficient is a product over lengths."""
    kernel = LengthKernel(act("tanh"))
    _, f = on_unit_interval(lambda q: kernel.squares(np.sqrt(q)).value / q, 50)
    q = [1.0]
    for _ in range(1000):
        q.append(q[-1] * float(f(q[-1])))
    some = np.array([0, 1, 5, 50, 500])
    assert np.array(q)[some + 1] == pytest.approx(
        kernel.squares(np.sqrt(np.array(q)[some])).value, rel=1e-12
    )
    for depth, value in ((10, 0.522001), (100, 0.506902), (1000, 0.501164)):
        assert depth * q[depth] == pytest.approx(value, abs=DIGITS)
    assert q[50] == pytest.approx(0.0102193, abs=1e-7)
    lengths = np.sqrt(q)
    assert kernel.nlc(lengths[:50]).value.prod() == pytest.approx(1.184361, abs=DIGITS)
    raw = plain(act("tanh"), 5)[-1]
    assert raw.square.value == pytest.approx(q[5], rel=1e-10)
    assert raw.nlc.value == pytest.approx(kernel.nlc(lengths[:5]).value.prod(), rel=1e-10)


@pytest.mark.parametrize(
    ("name", "depth", "nlc", "bias"),
    [
        ("sigmoid", 5, 1.021087, 111.831),
        ("sigmoid", 10, 1.021089, 12247.9),
        ("softplus", 10, 1.056687, 322.611),
        ("swish", 10, 1.938464, 1.40404),
        ("square", 5, 2.83943752, 1.38320158),
    ],
)
def test_S4_34_case21_22_normalized_plain_networks(
    name: str, depth: int, nlc: float, bias: float
) -> None:
    row = plain(normalized(act(name)), depth)[-1]
    assert row.nlc.value == pytest.approx(nlc, abs=DIGITS)
    assert row.bias == pytest.approx(bias, rel=5e-6)


@pytest.mark.parametrize(
    ("name", "depth", "nlc", "bias"),
    [
        ("even_tanh", 10, 13.778075, 6.07879),
        ("swish", 10, 1.938464, 1.40404),
        ("sigmoid", 10, 1.021089, 12247.9),
        ("square", 5, 2.83943752, 1.38320158),
        ("selu", 50, 5.630724, 1.0),
    ],
)
def test_S4_34_case21_product_over_layers(name: str, depth: int, nlc: float, bias: float) -> None:
    row = (deep(name) if depth == 50 else stable_plain(act(name), depth))[depth - 1]
    assert row.nlc.value == pytest.approx(nlc, abs=DIGITS)
    assert row.nlc.stderr < 1e-6
    assert row.bias == pytest.approx(bias, rel=5e-6)


def test_S4_34_case22_comean_of_square() -> None:
    row = plain(normalized(act("square")), 5)[-1]
    assert 1 - 1 / row.bias**2 == pytest.approx(0.47732822, abs=1e-8)


CALIBRATION = {
    "relu": (1.035629, (1.302191, -0.762257)),
    "tanh": (1.465062, (1.483574, -0.159472)),
    "selu": (0.827606, (0.843178, -0.194902)),
    "sigmoid": (1.701201, (4.254635, -2.292335)),
    "even_tanh": (1.465062, (3.351555, -2.057514)),
    "gaussian": (1.410739, (3.1735, -2.01504)),
    "square": (0.390197, (0.477949, -0.707365)),
    "odd_square": (0.390197, (0.394670, -0.151851)),
}


@pytest.mark.parametrize("name", CALIBRATION)
def test_S4_38_case36_calibration(name: str) -> None:
    biased, (factor, offset) = CALIBRATION[name]
    base = dilated(act(name), 1.2, 0.2)
    plain_, centred = (calibrated(act(name), 1.2, 0.2, debias=word) for word in (False, True))
    assert abs(average(plain_ * plain_, ONE).value - 1) < 1e-10
    assert abs(average(centred * centred, ONE).value - 1) < 1e-10
    assert abs(average(centred, ONE).value) < 1e-10
    second, mean = Kernels(base).second(ONE).value, Kernels(base).mean(ONE).value
    found = average(plain_ * base, ONE).value / second
    assert found == pytest.approx(biased, abs=DIGITS)
    # c and b of c tau + b, from two of its averages.
    variance = second - mean**2
    c = average(centred * base, ONE).value / variance
    tolerance = 1e-5 if name == "gaussian" else DIGITS
    assert (c, -c * mean) == pytest.approx((factor, offset), abs=tolerance)
    # n does not see c and b.
    wanted = split(base).nlc.value
    assert split(plain_).nlc.value == pytest.approx(wanted, rel=1e-12)
    assert split(centred).nlc.value == pytest.approx(wanted, rel=1e-12)


@pytest.mark.parametrize(("width", "slope"), [(1.0, 0.7516), (0.5, 0.923077), (0.1, 0.9967)])
def test_S4_30_33_case39_biased_sawtooth(width: float, slope: float) -> None:
    tau = 1 + width * dilated(act("sawtooth"), 1 / width)
    kernel = CovarianceKernel(tau)
    assert kernel.end_slope.value == pytest.approx(slope, abs=5e-5)
    if width == 0.5:
        assert kernel.end_slope.value == pytest.approx(0.923077, abs=DIGITS)
        assert kernel.split.nlc.value == pytest.approx(3.464102, abs=DIGITS)
        bias = sqrt(kernel.split.second.value / kernel.split.spread.value)
        assert bias == pytest.approx(3.605551, abs=DIGITS)


def test_S4_33_trap_T13_slope_1_needs_more_than_digits() -> None:
    # A slope within 1e-3 of 1 is no edge of chaos; a homogeneous activation is one exactly.
    assert CovarianceKernel(act("relu")).found.proof == "homogeneous of degree 1"
    # Of exp(d s) the kernel is exp(d^2 (c - 1)).
    nearly = CovarianceKernel(dilated(lookup("exp").fn.expr, 1.0005)).found
    limit = nearly.limit.value
    assert nearly.kind == "chaotic"
    assert nearly.end_slope.value == pytest.approx(1.0005**2, rel=1e-12)
    assert 0.997 < limit < 0.9985
    assert np.exp(1.0005**2 * (limit - 1)) == pytest.approx(limit, abs=1e-14)


def test_exponents_of_a_line_are_those_of_the_identity() -> None:
    found = CovarianceKernel(2 * Var(0)).found
    assert (found.kind, found.case, found.limit_slope.value) == ("linear", None, 1.0)
