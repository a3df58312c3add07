"""E f(u) g(v): closed forms at the extremes, and brute force for everything else."""

from __future__ import annotations

from math import atan2, exp, pi, sinh, sqrt

import numpy as np
import pytest
from unit.integrals.quadrature.brute import KNOWN, SLOPES, Known, two

from tpcalc.activations.entries import lookup
from tpcalc.errors import EvaluationError
from tpcalc.functions import Expr, Var
from tpcalc.functions.fn import derivative
from tpcalc.integrals.quadrature import expectation
from tpcalc.integrals.quadrature.geometry import plane

Z = Var(0)
# Means, variances, correlation.
PAIRS = [
    (0.0, 0.0, 1.0, 1.0, 0.3),
    (0.0, 0.0, 1.0, 1.0, -0.6),
    (0.0, 0.0, 1.0, 1.0, 0.95),
    (0.0, 0.0, 1.0, 1.0, -0.95),
    (0.0, 0.0, 2.0, 0.5, 0.999),
    (0.0, 0.0, 1.0, 1.0, 1 - 1e-6),
    (0.0, 0.0, 1.0, 1.0, -(1 - 1e-6)),
    (0.0, 0.0, 1.0, 1.0, 1 - 1e-12),
    (0.0, 0.0, 3.0, 1.0, 1e-9),
    (0.4, -1.0, 2.0, 0.3, 0.8),
    (0.4, 0.3, 1.0, 1.0, 1 - 1e-9),
    (3.0, 0.0, 1.0, 1.0, -0.9),
    (-2.0, -2.0, 1.0, 1.0, 0.5),
    (0.0, 0.0, 1e-12, 1.0, 0.7),
    (0.0, 0.0, 1e-12, 1e-12, 0.9),
    (0.0, 0.0, 1e6, 1.0, 0.7),
    (0.0, 0.0, 1e6, 1e6, 0.5),
    (0.0, 0.0, 1e4, 1e4, 0.99),
    (0.0, 0.0, 1e6, 1e6, 1 - 1e-9),
    (1.0, 1.0, 1e-4, 1e-4, -0.5),
]


def judged(factors: tuple[Expr, Expr], known: tuple[Known, Known], pair: tuple[float, ...]) -> None:
    """The value agrees with brute force within its error, which keeps its promise."""
    mu, mv, qu, qv, rho = pair
    c = rho * sqrt(qu * qv)
    found = expectation(factors, [mu, mv], [[qu, c], [c, qv]])
    frame = plane(*(np.array([x]) for x in (mu, mv, qu, qv, c)))
    sizes = (float(part[0]) for part in (frame.su, frame.sv, frame.rho, frame.kappa))
    truth = two(known[0], known[1], (mu, mv), tuple(sizes))  # type: ignore[arg-type]
    squares = [
        expectation([factor * factor], [m], [[q]])
        for factor, m, q in zip(factors, (mu, mv), (qu, qv), strict=True)
    ]
    natural = sqrt(float(np.prod([square.value for square in squares if square is not None])))
    assert abs(found.value - truth) <= found.error + 3e-14 * natural  # the latter: brute force
    assert found.error <= 1e-12 * natural


def moderate(name: str, pair: tuple[float, ...]) -> tuple[float, ...]:
    """Where the function has no variance that large to take."""
    if name not in ("exp", "sin", "cos"):
        return pair
    mu, mv, qu, qv, rho = pair
    return mu, mv, min(qu, 2.0), min(qv, 2.0), rho


# Each function with a fifth of the pairs, by turns.
TURNS = [(name, pair) for i, name in enumerate(KNOWN) for pair in PAIRS[i % 5 :: 5]]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "pair"), TURNS)
def test_activations(name: str, pair: tuple[float, ...]) -> None:
    factor = lookup(name)(Z)
    judged((factor, factor), (KNOWN[name], KNOWN[name]), moderate(name, pair))


@pytest.mark.slow
@pytest.mark.parametrize("name", SLOPES)
def test_slopes(name: str) -> None:
    pair = PAIRS[(3 * list(SLOPES).index(name) + 2) % len(PAIRS)]
    factor = derivative(lookup(name)(Z), Z)
    judged((factor, factor), (SLOPES[name], SLOPES[name]), moderate(name, pair))


@pytest.mark.parametrize("names", [("relu", "tanh"), ("step", "relu^1/2"), ("softplus", "abs")])
@pytest.mark.parametrize("pair", [PAIRS[2], PAIRS[9], PAIRS[13], PAIRS[15]])
def test_two_different_functions(names: tuple[str, str], pair: tuple[float, ...]) -> None:
    first, second = names
    judged((lookup(first)(Z), lookup(second)(Z)), (KNOWN[first], KNOWN[second]), pair)


CORRELATIONS = [0.0, 1e-9, 0.3, -0.3, 0.7, 0.9, -0.9, 0.99, 1 - 1e-6, 1 - 1e-12, -(1 - 1e-9)]


@pytest.mark.parametrize("q", [1e-12, 0.1, 1.0, 1e6])
@pytest.mark.parametrize("rho", [*CORRELATIONS, 1.0, -1.0])
def test_closed_forms(q: float, rho: float) -> None:
    c = rho * q
    one = np.array([1.0])
    frame = plane(0 * one, 0 * one, q * one, q * one, c * one)
    across, along = float(frame.kappa[0]), float(frame.rho[0])
    angle = atan2(across, along)
    opening = atan2(across, -along)  # pi - angle without its rounding
    known = {
        "step": opening / (2 * pi),
        "sign": 1 - 2 * angle / pi,
        "relu": q / (2 * pi) * (across + opening * along),
        "relu^2": q * q / (2 * pi) * (3 * across * along + opening * (1 + 2 * along**2)),
        "erf": 2 / pi * atan2(2 * c, sqrt(1 + 4 * q + (2 * q * across) ** 2)),
    }
    if q <= 1:
        known["sin"] = exp(-q) * sinh(c)
        known["exp"] = exp(q + c)
    for name, truth in known.items():
        factor = lookup(name)(Z)
        found = expectation([factor, factor], [0.0, 0.0], [[q, c], [c, q]])
        square = expectation([factor * factor], [0.0], [[q]])
        assert abs(found.value - truth) <= found.error + 1e-15 * square.value, name
        assert found.error <= 1e-12 * square.value, name


def test_a_constant_beside_a_gaussian() -> None:
    relu, tanh = lookup("relu")(Z), lookup("tanh")(Z)
    found = expectation([relu, tanh], [2.0, 0.5], [[0.0, 0.0], [0.0, 1.0]])
    alone = expectation([tanh], [0.5], [[1.0]])
    assert found.value == pytest.approx(2.0 * float(alone.value), rel=1e-14)


def test_oscillations_are_refused_or_right() -> None:
    fast = lookup("sin").function(1000 * Z)
    for rho, truth in [(0.5, 0.0), (1 - 1e-7, 0.5 * exp(-(10**6) * 1e-7))]:
        found = expectation([fast, fast], [0.0, 0.0], [[1.0, rho], [rho, 1.0]])
        assert found is None or abs(found.value - truth) <= found.error + 1e-9


@pytest.mark.parametrize("cov", [[[1.0, 1.1], [1.1, 1.0]], [[-1.0, 0.1], [0.1, 1.0]]])
def test_what_is_no_covariance(cov: list[list[float]]) -> None:
    tanh = lookup("tanh")(Z)
    with pytest.raises(EvaluationError):
        expectation([tanh, tanh], [0.0, 0.0], cov)
    with pytest.raises(EvaluationError):
        expectation([tanh, tanh], [0.0], cov)
    with pytest.raises(EvaluationError):
        expectation([tanh, Z], [0.0, float("nan")], [[1.0, 0.0], [0.0, 1.0]])


def test_rounded_correlations_above_one() -> None:
    relu = lookup("relu")(Z)
    found = expectation([relu, relu], [0.0, 0.0], [[1.0, 1 + 1e-15], [1 + 1e-15, 1.0]])
    assert found.value == pytest.approx(0.5, rel=1e-14)
