"""Operators on vectors, one after the other, are the function that they make together."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from one_output import made

import tpcalc as tp
from tpcalc.errors import ScaleError

GRID = np.linspace(-12.0, 12.0, 200001)
MASS = np.exp(-(GRID**2) / 2) / np.exp(-(GRID**2) / 2).sum()
HALF = Fraction(1, 2)


def mean(build: Callable[..., tp.Vector], vectors: int = 1) -> tp.Estimate:
    return tp.limit(made(lambda t, *given: tp.mean(build(*given)), "uvw"[:vectors]))["q"]


@pytest.mark.parametrize(
    ("build", "right"),
    [
        (lambda x: (x / (1 + x**2)) ** 2, lambda x: (x / (1 + x**2)) ** 2),
        (lambda x: x * x * (1 + x**2) ** -HALF, lambda x: x**2 / np.sqrt(1 + x**2)),
        (lambda x: tp.tanh(x) / (1 + tp.exp(-x)), lambda x: np.tanh(x) / (1 + np.exp(-x))),
        (lambda x: 1 / (2 + tp.tanh(x)), lambda x: 1 / (2 + np.tanh(x))),
        (lambda x: (1 + 3 * tp.relu(x) / 10) ** -2, lambda x: (1 + 0.3 * np.maximum(x, 0)) ** -2.0),
    ],
)
def test_means_are_integrals(build: Callable[..., tp.Vector], right: Callable[..., object]) -> None:
    found = mean(build)
    assert abs(found.value - float(MASS @ right(GRID))) <= 5 * found.stderr + 1e-9


def test_a_square_of_a_sum_is_positive() -> None:
    """(1 + 2 (u + v)^2)^(-1/2) is the same of twice the square of a Gaussian of variance 2."""
    found = mean(lambda u, v: (1 + 2 * (u + v) ** 2) ** -HALF, 2)
    assert abs(found.value - float(MASS @ (1 + 4 * GRID**2) ** -0.5)) <= 5 * found.stderr + 1e-9


def test_batch_norm_over_two_samples() -> None:
    """(x - m) / sd is 1 or -1 over two samples; with a variance added, by an integral."""

    def normed(x: tp.Vector, y: tp.Vector) -> tp.Vector:
        m = (x + y) / 2
        square = (x - m) ** 2 / 2 + (y - m) ** 2 / 2
        return (x - m) * (square + Fraction(1, 4)) ** -HALF * x

    # With d = (x - y) / 2 of variance 1/2, and x = d + (what does not depend on it).
    d = GRID / np.sqrt(2)
    right = float(MASS @ (d**2 / np.sqrt(d**2 + 0.25)))
    found = mean(normed, 2)
    assert abs(found.value - right) <= 5 * found.stderr + 1e-9


@pytest.mark.parametrize("build", [lambda x: 1 / (1 + x), lambda x: 1 / (tp.tanh(x) + 1)])
def test_what_comes_near_0_is_no_divisor(build: Callable[..., tp.Vector]) -> None:
    with pytest.raises(ScaleError, match="near 0"):
        mean(build)


def test_the_calculus_sees_through_a_chain() -> None:
    """x n^(-1/2) / (1 + x^2 / n) is n^(-1/2) x to leading order."""

    def build(t: tp.Tracer, x: tp.Vector) -> tp.Vector:
        small = tp.n**-HALF * x
        return small / (1 + small**2)

    found = tp.orders(made(build, "x"))["q"]
    assert found.status == "exact" and found.n.constant == -HALF
