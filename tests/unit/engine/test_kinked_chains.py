"""Kernels of chains with a kink at 0 by tables in the angle, against closed duals and mpmath."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from mpmath import mp, mpf

from tests.unit.engine.test_smooth_chains import SERIES, both, recursion, sets
from tpcalc.engine.chains import Chain, Gram, chain_kernels
from tpcalc.engine.chains_series import NotSettled, Smooth

FUNCTIONS = {
    "relu": Smooth(lambda z: np.maximum(z, 0), lambda z: (z > 0) * 1.0, kinked=True),
    "elu": Smooth(
        lambda z: np.where(z > 0, z, np.expm1(np.minimum(z, 0))),
        lambda z: np.where(z > 0, 1.0, np.exp(np.minimum(z, 0))),
        kinked=True,
    ),
    "selu": Smooth(
        lambda z: 1.05 * np.where(z > 0, z, 1.67 * np.expm1(np.minimum(z, 0))),
        lambda z: 1.05 * np.where(z > 0, 1.0, 1.67 * np.exp(np.minimum(z, 0))),
        kinked=True,
    ),
    "mixture": Smooth(
        lambda z: np.logaddexp(0, z) + 0.25 * np.abs(z),
        lambda z: 0.5 + 0.5 * np.tanh(z / 2) + 0.25 * np.sign(z),
        kinked=True,
    ),
}


def chain_of(depth: int, residual: float | None = None, bias: float = 0.01) -> Chain:
    return Chain("smooth", 1.0, 1.0, depth, 1.96, bias, residual, 1.96, bias)


def elu_dual(high: Any, low: Any) -> Any:
    """Of high z beside low (exp z - 1): the average over one input given the other is closed."""

    def pieces(m: Any, s: Any) -> tuple[Any, Any]:
        """E phi, E phi' of a Gaussian of mean m and deviation s."""
        if s == 0:
            return (high * m, high) if m > 0 else (low * mp.expm1(m), low * mp.exp(m))
        up, tail = mp.ncdf(m / s), mp.exp(m + s * s / 2) * mp.ncdf(-(m + s * s) / s)
        value = high * (m * up + s * mp.npdf(m / s)) + low * (tail - mp.ncdf(-m / s))
        return value, high * up + low * tail

    def dual(q: Any, p: Any, c: Any) -> tuple[Any, Any]:
        a, b = mp.sqrt(q), mp.sqrt(p)
        rho = min(max(c / (a * b), mpf(-1)), mpf(1))
        sine = mp.sqrt((1 - rho) * (1 + rho))
        near = [] if sine == 0 else [sine * step for step in (1, 4, 12) if sine * step < 2]
        edges = sorted({mpf(-16), mpf(-2), mpf(0), mpf(2), mpf(16), *near, *(-x for x in near)})

        def term(kind: int) -> Any:
            def of(x: Any) -> Any:
                return (
                    pieces(a * x, mpf(0))[kind] * pieces(b * rho * x, b * sine)[kind] * mp.npdf(x)
                )

            return mp.quad(of, edges, method="gauss-legendre")

        return term(0), term(1)

    return dual


@pytest.mark.parametrize("bias", [0.0, 0.01])
@pytest.mark.parametrize("residual", [None, 0.5])
@pytest.mark.parametrize("depth", [1, 10])
def test_relu_by_tables_is_relu(depth: int, residual: float | None, bias: float) -> None:
    inputs = sets(depth)
    if bias == 0:
        inputs = inputs[(inputs != 0).any(axis=1)]
    closed = Chain("abrelu", 0.5, 0.5, depth, 1.96, bias, residual, 1.96, bias)
    one = chain_kernels(Gram(inputs), closed)
    other = chain_kernels(Gram(inputs), chain_of(depth, residual, bias), smooth=FUNCTIONS["relu"])
    stated = max(other.near_error, other.relative_error, one.near_error)
    for left, right in zip(both(one), both(other), strict=True):
        unit = np.sqrt(np.outer(np.diag(left), np.diag(left)))
        assert (np.abs(left - right) <= stated * unit).all()
        np.testing.assert_array_equal(right, right.T)
    assert other.relative_error < 1e-11
    assert other.near_error < (2e-12 if bias else 1e-6)  # parallel inputs of other sizes


@pytest.mark.slow
@pytest.mark.parametrize(
    ("depth", "scale", "pairs"),
    [(1, 3.0, ((0, 8), (1, 9))), (3, 1.0, ((0, 13),))],
)
def test_hard_sets_are_within_their_errors(depth: int, scale: float, pairs: Any) -> None:
    """Another input, an equal, an opposite, a doubled one, and those at small distances."""
    inputs = scale * sets(depth)
    found = chain_kernels(Gram(inputs), chain_of(depth), smooth=FUNCTIONS["selu"])
    stated = max(found.relative_error, found.near_error)
    assert stated < 3e-12
    dual = elu_dual(mpf(1.05), mpf(1.05) * mpf(1.67))
    for i, j in pairs:
        ends = [recursion(dual, chain_of(depth), inputs[one], inputs[one]) for one in (i, j)]
        exact = recursion(dual, chain_of(depth), inputs[i], inputs[j])
        for kind, kernel in enumerate(both(found)):
            unit = mp.sqrt(ends[0][kind] * ends[1][kind])
            assert abs(mpf(float(kernel[i, j])) - exact[kind]) / unit <= stated


@pytest.mark.parametrize(("name", "depth"), [("tanh", 3), ("softplus", 3), ("softplus", 16)])
def test_smooth_functions_are_the_same_by_angles(name: str, depth: int) -> None:
    """Series, from softplus's tenth layer on tables in the correlation, and tables in the angle."""
    smooth = SERIES[name]
    sizes = np.exp(np.linspace(-1.5, 1, 64))[:, None]
    inputs = sizes * np.random.default_rng(0).normal(size=(64, 16)) / 4
    one = chain_kernels(Gram(inputs), chain_of(depth), smooth=smooth)
    other = chain_kernels(Gram(inputs), chain_of(depth), smooth=replace(smooth, kinked=True))
    for left, right in zip(both(one), both(other), strict=True):
        unit = np.sqrt(np.outer(np.diag(left), np.diag(left)))
        assert (np.abs(left - right) <= (one.relative_error + other.relative_error) * unit).all()
    assert max(one.relative_error, other.relative_error) < 2e-12


def test_a_kink_at_0_that_nobody_told_is_found() -> None:
    inputs = sets(2)[:-6]
    told = chain_kernels(Gram(inputs), chain_of(2), smooth=FUNCTIONS["elu"])
    found = chain_kernels(Gram(inputs), chain_of(2), smooth=replace(FUNCTIONS["elu"], kinked=False))
    np.testing.assert_array_equal(both(found)[1], both(told)[1])


@pytest.mark.parametrize("name", ["elu", "mixture"])
def test_rows_columns_and_threads(name: str) -> None:
    inputs = sets(1, 300)[:-6]
    whole = chain_kernels(Gram(inputs), chain_of(3), smooth=FUNCTIONS[name])
    part = chain_kernels(Gram(inputs[:70], inputs[70:]), chain_of(3), smooth=FUNCTIONS[name])
    for left, right in zip(both(whole), both(part), strict=True):
        np.testing.assert_allclose(left[:70, 70:], right, rtol=1e-13, atol=1e-14)
    threads = chain_kernels(Gram(inputs), chain_of(3), smooth=FUNCTIONS[name], threads=3)
    np.testing.assert_array_equal(both(threads)[1], both(whole)[1])


def test_errors_grow_with_inputs() -> None:
    inputs = np.random.default_rng(0).normal(size=(200, 16)) / 4
    errors = [
        chain_kernels(Gram(inputs[:count]), chain_of(8), smooth=FUNCTIONS["elu"]).relative_error
        for count in (8, 32, 100, 200)
    ]
    assert all(more >= 0.999 * fewer for fewer, more in pairwise(errors))
    assert errors[-1] < 1e-12


def kink(place: float) -> Smooth:
    return Smooth(lambda z: np.abs(z - place), lambda z: np.sign(z - place), kinked=True)


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (kink(0.5), "smooth|agree"),
        (
            Smooth(lambda z: np.exp(z * z / 9), lambda z: z * np.exp(z * z / 9), kinked=True),
            "fast|agree",
        ),
        (Smooth(lambda z: 0 * z, lambda z: 0 * z, kinked=True), "no positive"),
    ],
)
def test_what_has_no_table_is_said(function: Smooth, text: str) -> None:
    with pytest.raises(NotSettled, match=text):
        chain_kernels(Gram(sets(0)), chain_of(2), smooth=function)
