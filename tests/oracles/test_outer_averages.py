"""Outer functions and positive functions, beside quadrature and explicit matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tpcalc as tp
from tpcalc.dsl.vectors import Vector
from tpcalc.errors import LimitError, ScaleError
from tpcalc.results import Method

Array = np.ndarray[Any, np.dtype[np.float64]]
Psi = Callable[[Any, Any], Any]
POINTS = np.linspace(-9, 9, 721)  # the trapezoidal rule
WEIGHTS = np.exp(-(POINTS**2) / 2)
WEIGHTS /= WEIGHTS.sum()


def made(psi: Psi, x: Callable[[Vector, Vector, Vector], Vector]) -> tp.Program:
    """z = outer(psi, u, w) x, its mean square and what it shares with u."""

    @tp.program
    def program(t: tp.Tracer) -> None:
        u, v, w = (t.gaussian(name) for name in "uvw")
        z = t.outer(psi, u, w, x(u, v, w))
        t.output("square", t.mean(z * z))
        t.output("shared", t.mean(z * u))

    return program.build()


def by_rows(psi: Psi, x: Callable[[Array], Array]) -> Array:
    """E over the columns of psi(r, c) x(c), at all points r."""
    found: Array = (psi(POINTS[:, None], POINTS) * x(POINTS)) @ WEIGHTS
    return found


# psi, the vector as a function of w, and the same for arrays.
SEPARABLE: dict[str, tuple[Psi, Psi]] = {
    "bilinear": (lambda a, b: a * b, lambda a, b: a * b),
    "polynomial": (lambda a, b: (a + 2 * b) ** 3 - a, lambda a, b: (a + 2 * b) ** 3 - a),
    "forms": (
        lambda a, b: (tp.tanh(a) * b + b**2) ** 2,
        lambda a, b: (np.tanh(a) * b + b**2) ** 2,
    ),
    "signs": (
        lambda a, b: tp.sign(a * b) * tp.abs(b * a),
        lambda a, b: np.sign(a * b) * abs(a * b),
    ),
}


@pytest.mark.parametrize("name", SEPARABLE)
def test_what_separates_takes_no_samples(name: str) -> None:
    psi, plain = SEPARABLE[name]
    found = tp.limit(made(psi, lambda u, v, w: w))
    z = by_rows(plain, lambda c: c)
    for output, value in (("square", z**2 @ WEIGHTS), ("shared", z * POINTS @ WEIGHTS)):
        assert found[output].method is not Method.PARTICLES
        assert found[output].value == pytest.approx(value, rel=1e-9)


@pytest.mark.parametrize(
    ("psi", "x"),
    [
        (lambda a, b: tp.tanh(a * b), lambda u, v, w: v),
        (lambda a, b: tp.tanh(a * b), lambda u, v, w: w * w),
        (lambda a, b: tp.exp(tp.tanh(a) * b), lambda u, v, w: v * tp.tanh(w)),
        (lambda a, b: tp.sin(a + b) * b, lambda u, v, w: tp.sin(v)),
        (lambda a, b: tp.softplus(a * b), lambda u, v, w: v**3),
    ],
)
def test_zeros_by_symmetry_are_exact(
    psi: Psi, x: Callable[[Vector, Vector, Vector], Vector]
) -> None:
    """The mean square of z is of size 1 / n in networks, and exactly 0 in their limit."""
    program = made(psi, x)
    found = tp.limit(program)
    assert (found["square"].value, found["square"].stderr) == (0.0, 0.0)
    assert found["shared"].method is Method.EXACT and found["shared"].value == 0
    rows = tp.simulate(program, widths=[256, 1024], seeds=16).rows
    sizes = {row.width: np.mean(row.values) for row in rows if row.name == "square"}
    assert 1.5 < sizes[256] / sizes[1024] < 10


def test_what_symmetry_leaves_is_sampled_with_its_error() -> None:
    found = tp.limit(made(lambda a, b: tp.tanh(a * b), lambda u, v, w: w), samples=2**10)
    z = by_rows(lambda a, b: np.tanh(a * b), lambda c: c)
    assert found["square"].z(float(z**2 @ WEIGHTS)) < 5
    assert found["shared"].z(float(z * POINTS @ WEIGHTS)) < 5


@pytest.mark.parametrize("seed", range(4))
def test_squares_of_sampled_averages_are_biased_within_their_error(seed: int) -> None:
    """E (v^2 - 1) = 0 makes z = 0, which no symmetry shows; of samples z^2 is above 0."""
    program = made(lambda a, b: tp.tanh(a + b), lambda u, v, w: v * v - 1)
    found = tp.limit(program, samples=2**8, seed=seed)["square"]
    assert 0 < found.value < 3 * found.stderr < 0.01


def test_a_softmax_over_coordinates() -> None:
    """With logits r c / 2 the weights make a Gaussian of mean r / 2 of c."""

    @tp.program
    def program(t: tp.Tracer) -> None:
        r, c, v = (t.gaussian(name) for name in "rcv")
        logits = lambda a, b: tp.exp(a * b / 2)  # noqa: E731
        one = t.outer(logits, r, c, 0 * c + 1)
        t.output("shared", t.mean(r * t.outer(logits, r, c, c) / one))
        t.output("log", t.mean(tp.log(one)))
        t.output("root", t.mean(one**-0.5))
        t.output("zero", t.mean((t.outer(logits, r, c, v) / one) ** 2))
        bounded = lambda a, b: tp.exp(tp.tanh(a) * b)  # noqa: E731
        t.output("bounded", t.mean((t.outer(bounded, r, c, v) / one) ** 2))

    found = tp.limit(program, samples=2**11)
    assert found["bounded"].value == 0 and found["bounded"].method is Method.EXACT
    with pytest.raises(LimitError, match="0 by symmetry only if"):  # E exp(r c) is infinite
        found["zero"]
    for name, value in (("shared", 0.5), ("log", 0.125), ("root", 8**0.5 / 3)):
        assert found[name].z(value) < 5 and found[name].stderr < 0.05


POSITIVE: dict[str, tuple[Callable[[Vector], Vector], Callable[[Array], Array]]] = {
    "exp": (lambda u: u**2 / tp.exp(u), lambda z: z**2 * np.exp(-z)),
    "softplus": (lambda u: 1 / tp.softplus(u), lambda z: 1 / np.logaddexp(0, z)),
    "sigmoid": (lambda u: tp.sigmoid(u) ** -0.5, lambda z: np.sqrt(1 + np.exp(-z))),
    "cosh": (lambda u: 2 / (tp.exp(u) + tp.exp(-u)), lambda z: 1 / np.cosh(z)),
    "squares": (lambda u: 1 / (u**2 + tp.exp(u)), lambda z: 1 / (z**2 + np.exp(z))),
    "below a bound": (lambda u: (2 - tp.tanh(u)) ** -1, lambda z: 1 / (2 - np.tanh(z))),
    "rising": (lambda u: 1 / tp.exp(u**2), lambda z: np.exp(-(z**2))),
    "log": (lambda u: tp.log(2 + tp.sin(u)), lambda z: np.log(2 + np.sin(z))),
    "beside a mean": (
        lambda u: 1 / (tp.mean(tp.exp(u)) + tp.softplus(u)),
        lambda z: 1 / (np.exp(0.5) + np.logaddexp(0, z)),
    ),
}


@pytest.mark.parametrize("name", POSITIVE)
def test_positive_functions_divide(name: str) -> None:
    build, plain = POSITIVE[name]

    @tp.program
    def program(t: tp.Tracer) -> None:
        t.output("y", t.mean(build(t.gaussian("u"))))

    found = tp.limit(program)["y"]
    value = float(plain(POINTS) @ WEIGHTS)
    assert found.z(value) < 5 or found.value == pytest.approx(value, rel=1e-8)
    assert found.stderr < 1e-3


@pytest.mark.parametrize(
    "build",
    [
        lambda u: 1 / u**2,
        lambda u: 1 / (1 - tp.tanh(u) ** 2 - 0.5),
        lambda u: 1 / tp.exp(-(u**2)),
        lambda u: 1 / tp.relu(u),
        lambda u: (tp.exp(u) - 1) ** -1,
    ],
)
def test_what_may_be_near_0_or_falls_too_fast_is_refused(build: Any) -> None:
    @tp.program
    def program(t: tp.Tracer) -> None:
        t.output("y", t.mean(build(t.gaussian("u"))))

    with pytest.raises(ScaleError, match="may be near 0"):
        tp.limit(program)
