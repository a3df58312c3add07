"""Fixed points of length kernels beside a search with a quadrature of its own, on a finer grid."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq, minimize_scalar
from scipy.special import erf, expit

from tpcalc import signal
from tpcalc.activations.entries import lookup
from tpcalc.functions import Var

Array = Any
KINDS = {-1.0: "stable", 1.0: "unstable"}
FUNCTIONS: dict[str, Callable[[Array], Array]] = {
    "relu": lambda x: np.maximum(x, 0),
    "elu": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
    "gelu": lambda x: x * (1 + erf(x / 2**0.5)) / 2,
    "swish": lambda x: x * expit(x),
    "softplus": lambda x: np.logaddexp(0, x),
    "tanh": np.tanh,
    "gaussian:1/2": lambda x: np.exp(-x * x / 2),
    "poly:1,-2,.5,.1,0,.02": lambda x: 1 - 2 * x + x**2 / 2 + x**3 / 10 + x**5 / 50,
}
NAMED = [
    ("gelu", 2.5, 0.0, True),  # half-stable on a grid: stable at 1, unstable at 1.0753
    ("gelu", 1.6, 0.0, True),
    ("swish", 0.6, 0.3, True),
    ("swish", 1.0, 0.3, True),
    ("swish", 2.5, 0.0, True),
    ("softplus", 2.5, 0.3, True),
    ("gaussian:1/2", 0.6, 0.3, True),
    ("gaussian:1/2", 0.6, -0.3, True),
    ("poly:1,-2,.5,.1,0,.02", 1.0, 0.0, True),
    ("poly:1,-2,.5,.1,0,.02", 1.0, 0.0, False),
]


def rule() -> tuple[Array, Array]:
    """Gauss-Legendre panels that are halved towards 0, for kinks at shifts of a few hundredths."""
    points, weights = np.polynomial.legendre.leggauss(24)
    halved = 12 * 2.0 ** -np.arange(18)
    ends = np.unique(np.concatenate([np.linspace(-12, 12, 121), halved, -halved]))
    half = np.diff(ends)[:, None] / 2
    x = (ends[1:] + ends[:-1])[:, None] / 2 + half * points
    return x.ravel(), (half * weights * np.exp(-x * x / 2)).ravel() / (2 * np.pi) ** 0.5


NODES, WEIGHTS = rule()


def searched(
    name: str, dilate: float, shift: float, debias: bool, normal: bool
) -> list[tuple[float, float]]:
    """The points with the sign of slope - 1."""

    def tau(x: Array) -> Array:
        return FUNCTIONS[name](dilate * x + shift)

    mean = float(WEIGHTS @ tau(NODES)) if debias else 0.0
    unit = float(WEIGHTS @ (tau(NODES) - mean) ** 2) ** 0.5 if normal else 1.0

    def change(u: float) -> float:
        square = float(WEIGHTS @ (tau(np.exp(u) * NODES) - mean) ** 2)
        return float(np.log(square**0.5 / unit)) - u

    at = np.arange(np.log(1e-3), np.log(1e3), 0.02)
    sign = np.sign(value := np.array([change(u) for u in at]))
    ends = [(at[i], at[i + 1]) for i in np.flatnonzero(sign[1:] != sign[:-1])]
    for i in range(1, len(at) - 1):
        around = sign[i] * value[i - 1 : i + 2]
        if around.min() <= 0 or around[1] > 0.01 or around.argmin() != 1:
            continue
        s, bounds = sign[i], (at[i - 1], at[i + 1])
        turn = minimize_scalar(lambda u, s=s: s * change(u), bounds=bounds, method="bounded")
        if turn.fun < 0:
            ends += [(bounds[0], turn.x), (turn.x, bounds[1])]
    roots = sorted(brentq(change, *pair, xtol=1e-13) for pair in ends)
    return [(np.exp(u), np.sign(change(u + 1e-5) - change(u - 1e-5))) for u in roots]


def compared(name: str, dilate: float, shift: float, debias: bool) -> None:
    sheet = signal.sheet(name, dilate=dilate, shift=shift, debias=debias)
    for found in sheet.maps:
        wanted = searched(name, dilate, shift, debias, found.normalized)
        points = [point for point in found.points if point.length.value > 1e-3]
        assert len(points) == len(wanted)
        for point, (length, side) in zip(points, wanted, strict=True):
            assert abs(point.length.value - length) <= point.length.stderr + 1e-9 * length
            assert point.kind == KINDS[side]
            assert point.slope is not None and np.sign(point.slope.value - 1) == side


@pytest.mark.parametrize(("name", "dilate", "shift", "debias"), NAMED)
def test_two_fixed_points_between_neighbours_of_a_grid(
    name: str, dilate: float, shift: float, debias: bool
) -> None:
    compared(name, dilate, shift, debias)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_fixed_points_of_random_activations(seed: int) -> None:
    rng = np.random.default_rng(seed)
    name = str(rng.choice([each for each in FUNCTIONS if each not in ("relu", "elu")]))
    compared(name, float(rng.uniform(0.3, 3)), float(rng.uniform(-1, 1)), bool(rng.integers(2)))


def test_fixed_points_below_the_grid() -> None:
    """That of s / 2 + b is b / sqrt(3/4), however short; that of .9 s + 1e4 s^2 is unstable."""
    found = signal.activations.Iteration(Var(0) / 2 + 1e-6, normalized=False).found
    assert found.label == "all to a positive limit"
    assert found.points[0].length.value == pytest.approx(1e-6 / 0.75**0.5, rel=1e-9)
    found = signal.activations.Iteration(0.9 * Var(0) + 1e4 * Var(0) ** 2, normalized=False).found
    assert found.label == "small to 0, large to infinity"
    assert found.points[1].length.value == pytest.approx((0.19 / 3e8) ** 0.5, rel=1e-9)


def test_a_kind_agrees_with_its_slope_where_rounding_hides_the_other_point() -> None:
    """Two crossings 2e-6 apart: the one at 1 is stable or not by its slope, and a note is made."""
    relu = lookup("relu").fn.expr
    mean = float((2 * np.pi) ** -0.5)
    for off, kind in ((1e-7, "stable"), (-1e-7, "unstable")):
        found = signal.activations.Iteration(relu - mean * (1 + off)).found
        (point,) = found.points
        assert point.slope is not None and point.kind == KINDS[np.sign(point.slope.value - 1)]
        assert point.kind == kind and "within rounding" in found.notes[0]
