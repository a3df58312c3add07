"""Averages whose spread over replicates is no error bar: rare samples dominate them."""

from __future__ import annotations

from fractions import Fraction
from math import factorial, inf

import numpy as np
import pytest
from agree import agree
from one_output import made

import tpcalc as tp
from tpcalc.evaluate.particles.estimate import sampled_degrees
from tpcalc.limit.derive import derive
from tpcalc.results import Status

XI = ((0.6, -0.3, 0.5, 0.2), (0.1, 0.7, -0.2, 0.9))


def power(degree: int) -> tp.Program:
    return made(lambda t, v: tp.mean(v**degree), "v")


@pytest.mark.parametrize(("degree", "rare"), [(2, False), (6, False), (12, True), (24, True)])
def test_high_moments_are_marked(degree: int, rare: bool) -> None:
    found = tp.limit(power(degree), method="particles", seed=3)["q"]
    assert (found.status is Status.RARE) is rare
    assert ("rare samples" in str(found)) is rare


def test_the_mark_is_deserved() -> None:
    """E v^24 is missed by far more than the spread of replicates says; closed forms have it."""
    exact = factorial(24) / (2**12 * factorial(12))
    sampled = tp.limit(power(24), method="particles", seed=3)
    assert abs(sampled["q"].value - exact) > 5 * sampled["q"].stderr
    assert any("degrees up to 24" in note and ": q" in note for note in sampled.table.notes)
    closed = tp.limit(power(24))["q"]
    assert closed.value == pytest.approx(exact, rel=1e-12)
    assert closed.status is not Status.RARE


def test_more_samples_reach_further() -> None:
    few = tp.limit(power(8), method="particles", samples=2**10, replicates=4)["q"]
    many = tp.limit(power(8), method="particles", samples=2**18, replicates=16)["q"]
    assert (few.status, many.status) == (Status.RARE, Status.CONVERGED)


def test_a_bounded_function_of_what_no_polynomial_bounds_is_sampled() -> None:
    """E tanh(exp(x y)) of independent x and y."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(151)
    weights = weights / weights.sum()
    value = float(weights @ np.tanh(np.exp(nodes[:, None] * nodes)) @ weights)

    bounded = made(lambda t, u, v: t.moment(lambda x, y: tp.tanh(tp.exp(x * y)), u, v), "xy")
    agree(tp.limit(bounded, samples=2**10)["q"], value, rounding=1e-6)


def trained(act: str, param: str, steps: int) -> tp.Program:
    data = tp.Samples(XI, ((0.0,), (0.0,)))
    net = tp.MLP(2, act, bias="first")
    return tp.train(net, param, data, steps=steps, lr=0.1, loss="linear", watch=("h",))


@pytest.mark.parametrize("act", ["relu", "tanh", "gelu"])
def test_ordinary_networks_are_not_marked(act: str) -> None:
    found = tp.limit(trained(act, "mup", 2), samples=2**10, replicates=4, outputs=["f*"])
    assert not any("rare samples" in note for note in found.table.notes)


@pytest.mark.parametrize("optimizer", ["rmsprop", "adagrad", "adam"])
def test_updates_divided_by_roots_of_their_squares_are_bounded(optimizer: str) -> None:
    data = tp.Samples(XI, ((0.5,), (-1.0,)))
    run = tp.train(tp.MLP(2, "tanh"), "mup", data, steps=3, optimizer=optimizer, lr=0.1)
    assert None not in sampled_degrees(derive(run)).values()
    found = tp.limit(run, samples=2**10, replicates=4, outputs=["f[3,0]"])["f[3,0]"]
    assert found.status is Status.CONVERGED


def test_squares_of_squares_are() -> None:
    """A second step with relu^2: h_2 is of degree 6, what f_2 averages of 16."""
    program = trained("relu^2", "ip-llr:2", 2)
    degrees = sampled_degrees(derive(program))
    assert degrees["f[1,0]"] is not None
    assert degrees["f[2,0]"] is not None
    assert degrees["f[2,0]"] > 2 * degrees["f[1,0]"] - Fraction(4)
    found = tp.limit(program, samples=2**10, replicates=4, outputs=["f[2,0]"])["f[2,0]"]
    assert found.status is Status.RARE


def test_functions_without_a_bound_are_told_otherwise() -> None:
    @tp.program
    def fast(t: tp.Tracer) -> None:
        v = t.gaussian("v")
        t.output("all moments", tp.mean(tp.exp(v)))
        t.output("none", tp.mean(tp.exp(v**4)))

    assert sampled_degrees(derive(fast.build())) == {"all moments": inf, "none": None}
