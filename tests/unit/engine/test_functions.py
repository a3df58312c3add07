"""Compiled functions beside mpmath, and at the ends of the number range."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

from tpcalc.engine.kernels_functions import compiled_space

TANH = compiled_space().tanh


def test_tanh_is_accurate() -> None:
    x = np.concatenate([np.logspace(-300, -2, 500), np.linspace(0.01, 25, 2000)])
    want = np.array([float(mpmath.tanh(mpmath.mpf(one))) for one in x.tolist()])
    np.testing.assert_allclose(TANH(x), want, rtol=4e-16)
    np.testing.assert_array_equal(TANH(-x), -TANH(x))


def test_tanh_at_the_ends() -> None:
    x = np.array([np.nan, np.inf, -np.inf, -0.0, 5e-324, 1e308])
    np.testing.assert_array_equal(TANH(x), [np.nan, 1.0, -1.0, -0.0, 5e-324, 1.0])
    assert np.signbit(TANH(x))[3]


@pytest.mark.parametrize("shape", [(2, 8), (3, 1)])
def test_tanh_of_parts_of_arrays(shape: tuple[int, int]) -> None:
    x = np.random.default_rng(0).standard_normal((4, 9))
    part = x[: shape[0], : shape[1]]
    np.testing.assert_allclose(TANH(part), np.tanh(part), rtol=1e-15)
    assert TANH(0.5) == np.tanh(0.5)
