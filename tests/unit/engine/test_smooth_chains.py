"""Kernels of chains with closed duals and with series against mpmath, and what they state."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from mpmath import mp, mpf

from tpcalc.arrays import Array
from tpcalc.engine.chains import Chain, ChainKernels, Family, Gram, chain_kernels
from tpcalc.engine.chains_series import NotSettled, Smooth

Dual = Callable[[Any, Any, Any], tuple[Any, Any]]


def erf_dual(q: Any, p: Any, c: Any) -> tuple[Any, Any]:
    square = (1 + 2 * q) * (1 + 2 * p)
    return 2 / mp.pi * mp.asin(2 * c / mp.sqrt(square)), 4 / mp.pi / mp.sqrt(square - 4 * c * c)


def gelu_dual(q: Any, p: Any, c: Any) -> tuple[Any, Any]:
    """From the products of z and the normal distribution, differentiated by c."""

    def value(c: Any) -> Any:
        both = (1 + q) * (1 + p)
        d = mp.sqrt(both - c * c)
        part = c / 4 + c * mp.asin(c / mp.sqrt(both)) / (2 * mp.pi)
        return part + (c * c + q * p * d * d) / (2 * mp.pi * both * d)

    return value(c), mp.diff(value, c)


def waves(sign: int) -> Dual:
    def dual(q: Any, p: Any, c: Any) -> tuple[Any, Any]:
        size = mp.exp(-(q + p) / 2)
        parts = size * mp.sinh(c), size * mp.cosh(c)
        return parts if sign > 0 else parts[::-1]

    return dual


def exp_dual(q: Any, p: Any, c: Any) -> tuple[Any, Any]:
    value = mp.exp(c + (q + p) / 2)
    return value, value


def rbf_dual(q: Any, p: Any, c: Any) -> tuple[Any, Any]:
    value = mp.exp(c - (q + p) / 2) / 2
    return value, value


def bump_dual(q: Any, p: Any, c: Any) -> tuple[Any, Any]:
    value = 1 / mp.sqrt((1 + 2 * q) * (1 + 2 * p) - 4 * c * c)
    return value, 4 * c * value**3


POWERS = 0.1, 0.5, -0.2, 0.1


def cubic_dual(q: Any, p: Any, c: Any) -> tuple[Any, Any]:
    """From E z^j z'^k of each two powers (Isserlis)."""
    a, b, d, e = map(mpf, POWERS)
    value = a * a + a * d * (q + p) + c * b * b + 3 * b * e * c * (q + p)
    value += d * d * (q * p + 2 * c * c) + e * e * (9 * c * q * p + 6 * c**3)
    slope = b * b + 3 * b * e * (q + p) + 4 * d * d * c + e * e * (9 * q * p + 18 * c * c)
    return value, slope


PLAIN = 1.0, 0.0, 0.0, 0.0
CLOSED: dict[str, tuple[Family, tuple[float, ...], Dual]] = {
    "erf": ("erf", PLAIN, erf_dual),
    "gelu": ("gelu", PLAIN, gelu_dual),
    "sin": ("sin", PLAIN, waves(1)),
    "cos": ("sin", (-1.0, 0.0, 0.0, 0.0), waves(-1)),
    "rbf": ("sin", (math.cos(math.pi / 2), *PLAIN[1:]), rbf_dual),
    "exp": ("exp", PLAIN, exp_dual),
    "gaussian": ("gaussian", PLAIN, bump_dual),
    "cubic": ("cubic", POWERS, cubic_dual),
}
WEIGHTS = {"exp": 0.16, "cubic": 0.64}


def sets(seed: int, count: int = 7) -> Array:
    """Random inputs; equal, opposite, doubled, 0, and some at small distances."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((count, 12)) / math.sqrt(12)
    z = rng.standard_normal(12) / math.sqrt(12)
    near = [x[0] + size * z for size in (1e-1, 1e-3, 1e-8, 1e-15)]
    return np.concatenate([x, [x[0], -x[0], 2 * x[1], 0 * x[0]], near, [-near[1]]])


def recursion(dual: Dual, chain: Chain, x: Array, y: Array) -> tuple[Any, Any]:
    """NNGP and tangent kernel of two inputs with 40 digits."""
    with mp.workdps(40):
        left, right = ([mpf(float(v)) for v in one] for one in (x, y))
        first, bias = mpf(chain.first_weight), mpf(chain.first_bias)
        pairs = ((left, left), (right, right), (left, right))
        q, p, c = (first * mp.fdot(s, t) + bias for s, t in pairs)
        w = c
        for layer in range(chain.depth):
            last = layer == chain.depth - 1
            m, s = (
                (mpf(1), mpf(0)) if last else (mpf(chain.weight_variance), mpf(chain.bias_variance))
            )
            value, slope = dual(q, p, c)
            w = m * slope * w + m * value + s
            q, p, c = (m * dual(*at)[0] + s for at in ((q, q, q), (p, p, p), (q, p, c)))
        return c, w


def chain_of(family: Family, name: str, depth: int, shape: tuple[float, ...] = PLAIN) -> Chain:
    w = WEIGHTS.get(name, 1.96)
    return Chain(family, 1.0, 1.0, depth, w, 0.01, None, w, 0.01, shape)


@pytest.mark.parametrize("depth", [1, 3, 10])
@pytest.mark.parametrize("name", CLOSED)
def test_closed_duals_are_within_their_errors(name: str, depth: int) -> None:
    family, shape, dual = CLOSED[name]
    chain, inputs = chain_of(family, name, depth, shape), sets(depth)
    found = chain_kernels(Gram(inputs), chain)
    stated = max(found.relative_error, found.near_error)
    ends = [recursion(dual, chain, x, x) for x in inputs]
    for index, kernel in enumerate((found.nngp, found.ntk)):
        assert kernel is not None
        for i, j in ((0, j) for j in range(len(inputs))):
            exact = recursion(dual, chain, inputs[i], inputs[j])[index]
            unit = mp.sqrt(ends[i][index] * ends[j][index])
            off = abs(mpf(float(kernel[i, j])) - exact) / unit
            assert off <= stated
            assert off <= 1e-12
        np.testing.assert_array_equal(kernel, kernel.T)
    assert found.relative_error < (1e-11 if name == "cubic" else 1e-12)


def both(kernels: ChainKernels) -> tuple[Array, Array]:
    assert kernels.nngp is not None
    assert kernels.ntk is not None
    return kernels.nngp, kernels.ntk


def test_scales_shifts_and_residual_layers_are_those_of_the_function() -> None:
    """3 sin(2 z + 1) is a series as well; so is a residual chain."""
    inputs = sets(3)[:-6]
    for residual in (None, 0.5):
        rest = (3, 0.3, 0.2, residual, 0.5, 0.1)
        closed = Chain("sin", 3.0, 2.0, *rest, (math.cos(2.0), 0.0, 0.0, 0.0))
        wave = Smooth(lambda z: 3 * np.sin(2 * z + 1), lambda z: 6 * np.cos(2 * z + 1))
        series = Chain("smooth", 1.0, 1.0, *rest)
        one = chain_kernels(Gram(inputs), closed)
        other = chain_kernels(Gram(inputs), series, smooth=wave)
        for left, right in zip(both(one), both(other), strict=True):
            unit = np.sqrt(np.outer(np.diag(left), np.diag(left)))
            near = max(one.near_error, other.near_error, one.relative_error, other.relative_error)
            assert (np.abs(left - right) <= 2 * near * unit).all()


SERIES = {
    "tanh": Smooth(np.tanh, lambda z: 1 - np.tanh(z) ** 2),
    "softplus": Smooth(lambda z: np.logaddexp(0, z), lambda z: 0.5 + 0.5 * np.tanh(z / 2)),
    "gelu": Smooth(
        lambda z: z * np.vectorize(math.erfc)(-z / math.sqrt(2)) / 2,
        lambda z: (
            np.vectorize(math.erfc)(-z / math.sqrt(2)) / 2
            + z * np.exp(-z * z / 2) / math.sqrt(2 * math.pi)
        ),
    ),
    "cubic": Smooth(
        lambda z: 0.1 + 0.5 * z + 0.2 * z**2 + 0.1 * z**3,
        lambda z: 0.5 + 0.4 * z + 0.3 * z**2,
        (0.1, 0.5, 0.2, 0.1),
    ),
}


@pytest.mark.parametrize("depth", [1, 3, 10])
def test_a_series_is_the_closed_dual(depth: int) -> None:
    inputs = sets(depth)[:-6]
    one = chain_kernels(Gram(inputs), chain_of("gelu", "gelu", depth))
    other = chain_kernels(Gram(inputs), chain_of("smooth", "gelu", depth), smooth=SERIES["gelu"])
    for left, right in zip(both(one), both(other), strict=True):
        unit = np.sqrt(np.outer(np.diag(left), np.diag(left)))
        assert (np.abs(left - right) <= 2e-14 * unit).all()
        assert (np.abs(left - right) <= (one.relative_error + other.relative_error) * unit).all()


def test_a_polynomial_ends_and_agrees_with_the_rule() -> None:
    cubic, inputs = SERIES["cubic"], sets(0)[:-6]
    chain = chain_of("smooth", "cubic", 4)
    exact = chain_kernels(Gram(inputs), chain, smooth=cubic)
    rule = chain_kernels(Gram(inputs), chain, smooth=Smooth(cubic.value, cubic.slope))
    assert exact.relative_error < rule.relative_error < 1e-12
    for left, right in zip(both(exact), both(rule), strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-13)


@pytest.mark.parametrize("name", ["tanh", "softplus"])
def test_rows_and_columns_of_a_series_are_parts_of_the_square(name: str) -> None:
    inputs = sets(1, 300)[:-6]
    chain = chain_of("smooth", name, 3)
    whole = chain_kernels(Gram(inputs), chain, smooth=SERIES[name])
    part = chain_kernels(Gram(inputs[:70], inputs[70:]), chain, smooth=SERIES[name], threads=1)
    for left, right in zip(both(whole), both(part), strict=True):
        np.testing.assert_allclose(left[:70, 70:], right, rtol=1e-13, atol=1e-14)
        np.testing.assert_array_equal(left, left.T)
    threads = chain_kernels(Gram(inputs), chain, smooth=SERIES[name], threads=3)
    np.testing.assert_array_equal(both(threads)[1], both(whole)[1])


@pytest.mark.parametrize("place", [1.0, 3.0])
def test_functions_that_change_abruptly_with_sizes_get_more_nodes(place: float) -> None:
    """Few inputs are nodes themselves."""

    def slope(z: Array) -> Array:
        return 1 - np.tanh(z - place) ** 2

    smooth = Smooth(lambda z: np.tanh(z - place), slope)
    sizes = np.exp(np.linspace(-1.5, 1, 64))[:, None]
    inputs = sizes * np.random.default_rng(0).normal(size=(64, 16)) / 4
    many = chain_kernels(Gram(inputs), chain_of("smooth", "", 1), smooth=smooth)
    few = chain_kernels(Gram(inputs[::7]), chain_of("smooth", "", 1), smooth=smooth)
    for left, right in zip(both(many), both(few), strict=True):
        unit = np.sqrt(np.outer(np.diag(right), np.diag(right)))
        assert (np.abs(left[::7, ::7] - right) <= 2 * few.relative_error * unit).all()


@pytest.mark.parametrize("name", ["gelu", "sin", "tanh"])
def test_errors_grow_with_inputs(name: str) -> None:
    inputs = np.random.default_rng(0).normal(size=(200, 16)) / 4
    closed = name in CLOSED
    chain = chain_of(CLOSED[name][0] if closed else "smooth", name, 8)
    smooth = None if closed else SERIES[name]
    errors = [
        chain_kernels(Gram(inputs[:count]), chain, smooth=smooth).relative_error
        for count in (8, 32, 100, 200)
    ]
    assert all(more >= 0.999 * fewer for fewer, more in pairwise(errors))
    assert errors[-1] < 1e-12


@pytest.mark.parametrize(
    ("function", "slope", "text"),
    [
        (lambda z: np.abs(z - 0.5), lambda z: np.sign(z - 0.5), "do not agree|not smooth"),
        (
            lambda z: np.exp(z * z / 9),
            lambda z: z * np.exp(z * z / 9),
            "grows too fast|do not agree",
        ),
        (lambda z: 0 * z, lambda z: 0 * z, "no positive"),
    ],
)
def test_what_has_no_series_is_said(function: Any, slope: Any, text: str) -> None:
    with pytest.raises(NotSettled, match=text):
        chain_kernels(Gram(sets(0)), chain_of("smooth", "", 2), smooth=Smooth(function, slope))
