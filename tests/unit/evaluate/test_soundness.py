"""Expectations that look easy and are not: each of these once had a wrong number."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from agree import agree

import tpcalc as tp
from tpcalc.errors import TpcalcError
from tpcalc.results import Method, Status

ALMOST = 1 - 1e-15


def back(fn: Callable[[Any], Any]) -> tp.Program:
    """E x W^T fn(W x), which is E fn'(h): the correction alone."""

    @tp.program
    def program(t: tp.Tracer) -> None:
        x, W = t.gaussian("x"), t.matrix("W")
        b = tp.n**-0.5 * (W.T @ fn(tp.n**-0.5 * (W @ x)))
        t.output("bx", t.inner(b, x))

    return program.build()


SURROGATE = tp.function(
    "surrogate",
    np.sign,
    lambda z: np.where(np.abs(z) < 1, 1.0, 0.0),
    kinks=(-1, 0, 1),
    check=False,
    parity="odd",
)
JUMP = tp.function(
    "jump",
    lambda z: np.where(z > 0, z + 1, 0.0),
    lambda z: np.where(z > 0, 1.0, 0.0),
    kinks=(0.0,),
)


@pytest.mark.parametrize(
    ("fn", "truth"),
    [
        (SURROGATE, np.sqrt(2 / np.pi)),  # not the mean of the declared derivative
        (JUMP, 0.5 + 1 / np.sqrt(2 * np.pi)),
        (lambda h: tp.sign(h) ** 3, np.sqrt(2 / np.pi)),
        (lambda h: tp.erf(tp.sign(h)), 0.8427007929 * np.sqrt(2 / np.pi)),
        (lambda h: (tp.sign(h) + 1) ** 3, 4 * np.sqrt(2 / np.pi)),
        (lambda h: tp.sign(h) * tp.step(h - 1), 0.24197072451914337),
    ],
    ids=["surrogate", "jump", "sign^3", "erf(sign)", "(sign+1)^3", "sign*step"],
)
def test_slopes_of_jumps_are_not_those_of_a_rule(fn: Any, truth: float) -> None:
    """By Stein's lemma the correction is E h fn(h)."""
    agree(tp.limit(back(fn))["bx"], truth)


KINKED = [tp.relu, tp.leaky_relu(0.2), tp.abs, tp.elu(2), tp.selu, tp.relu_pow(2), tp.step, tp.sign]


@pytest.mark.parametrize("fn", KINKED, ids=str)
def test_corrections_of_kinks_and_jumps(fn: Any) -> None:
    found = tp.limit(back(fn))["bx"]
    assert found.method is Method.EXACT
    stein = tp.expect(lambda z: z * fn(z))
    assert abs(found.value - stein.value) <= found.stderr + stein.stderr


@pytest.mark.parametrize(
    ("fn", "truth"),
    [
        (lambda u, v: tp.step(u) * tp.step(v), 0.49999999288521961),
        (lambda u, v: tp.relu(u - v), 1.7841241161527712e-08),
    ],
)
def test_a_correlation_near_1_is_not_1(fn: Any, truth: float) -> None:
    cov = [[1, ALMOST], [ALMOST, 1]]
    exact = tp.expect(fn, cov)
    assert exact.value == pytest.approx(truth, rel=2e-2 if truth < 1e-3 else 1e-12)
    assert exact.stderr > 0 and exact.formula is None and exact.status is not Status.EXACT
    assert abs(exact.value - tp.expect(fn, cov, method="quadrature").value) <= 1e-15


def test_dependent_triples_have_values() -> None:
    def three(a: Any, b: Any) -> Any:
        return tp.relu(a) * tp.relu(b) * tp.relu(a + b)

    # relu(a + b) is a + b where both are positive
    twice = tp.expect(lambda a, b: tp.relu(a) ** 2 * tp.relu(b), [[1, 0.5], [0.5, 1]])
    found = tp.expect(three, [[1, 0.5], [0.5, 1]])
    agree(found, 2 * twice.value)


@pytest.mark.parametrize(
    ("fn", "cov"),
    [
        (lambda z: z * tp.exp(z**2), 1),
        (lambda z: tp.sin(z) * tp.exp(z**2), 1),
        (lambda u, v: v * tp.exp(u**2), [[1, 0], [0, 1]]),
        (lambda u, v: tp.exp(u * v), [[1, 0.5], [0.5, 1]]),
        (lambda z: tp.exp(z), 2000),
        (lambda z: tp.tanh(z) ** 2 * tp.exp(z**2), 1),
    ],
    ids=["z e^z2", "sin e^z2", "v e^u2", "e^uv", "e^z of variance 2000", "tanh2 e^z2"],
)
def test_what_is_infinite_has_no_number(fn: Any, cov: Any) -> None:
    with pytest.raises(TpcalcError):
        tp.expect(fn, cov)


def test_a_jump_of_a_sum_that_cancels_is_refused() -> None:
    third, tenth = Fraction(1, 3), Fraction(1, 10)
    with pytest.raises(TpcalcError, match="jumps"):
        tp.expect(
            lambda a, b, d: tp.step(third * a + tenth * b - 0.43333333333333335 * d),
            [[1.0] * 3] * 3,
        )
