"""Limits where random scalars have given values."""

from __future__ import annotations

import numpy as np
import pytest
from agree import agree

import tpcalc as tp
from tpcalc.errors import UnknownName, UsageError
from tpcalc.results import Estimate, Method

DATA = tp.Samples(((1.0, 0.5), (0.3, -1.0)), ((1.0,), (-0.5,)))


def trained(parameterization: str, steps: int, bias: str = "none") -> tp.Program:
    return tp.train(tp.MLP(2, "tanh", bias=bias), parameterization, DATA, steps=steps)


def test_a_given_output_is_regressed_on() -> None:
    """In the kernel regime outputs are jointly Gaussian: E[f | g = v] = E f + C (v - E g) / V."""
    program = trained("ntk", 3)
    free, found = tp.limit(program), tp.limit(program, given={"f[0,0]": 0.37})
    variance = free.cov("f[0,0]", "f[0,0]").value
    for step in (1, 2, 3):
        name = f"f[{step},0]"
        slope = free.cov("f[0,0]", name).value / variance
        assert found[name].value == pytest.approx(free[name].value + slope * 0.37, abs=1e-9)
        left = free[name].std ** 2 - slope**2 * variance
        assert found[name].std == pytest.approx(left**0.5, abs=1e-9)
    assert found["f[0,0]"].value == 0.37
    assert not found["f[0,0]"].random
    assert found.table.notes[0] == "the limit of networks with f[0,0] = 0.37"
    compared = tp.compare(found, tp.simulate(program, widths=[16], seeds=2))
    assert any("networks with f[0,0] = 0.37" in note for note in compared.notes)
    assert not any("networks with" in note for note in free.table.notes)


def test_all_that_is_random_given() -> None:
    """Two samples: with both outputs known nothing stays random, and gradient descent is a map."""
    found = tp.limit(trained("ntk", 3), given={"f[0,0]": 0.37, "f[1,0]": 0.1})
    for name in ("f[2,0]", "f[3,0]"):
        assert found[name].std <= found[name].std_error
        assert found[name].method is Method.QUADRATURE


def test_a_given_bias_is_a_bias_of_that_value() -> None:
    """IP-bias: the last bias is a random scalar, and the output at the start is that scalar."""
    program = trained("ip-bias", 2, "all")
    by_input = tp.limit(program, given={"b3": 0.4})
    by_output = tp.limit(program, given={"f[0,0]": by_input["f[0,0]"].value})
    for name in ("f[1,0]", "f[2,0]"):
        assert not by_input[name].random
        agree(by_input[name], by_output[name])
    free = tp.limit(program)
    assert free["f[2,0]"].random
    assert by_input["f[2,0]"].stderr < free["f[2,0]"].stderr / 20


def test_given_scalars_enter_vectors() -> None:
    """y = tanh(s x), s = n^(1/2) average(u v): given s = 1/2 it is a function of x alone."""

    @tp.program
    def made(t: tp.Tracer) -> None:
        u, v, x = (t.gaussian(name) for name in "uvx")
        s = tp.n**0.5 * t.inner(u, v)
        r = tp.n**0.5 * t.inner(u, v + x)
        t.output("s", s)
        t.output("r", r)
        t.output("y", tp.tanh(s * x))

    found = tp.limit(made, given={"s": 0.5})
    draws = np.tanh(0.5 * np.random.default_rng(0).standard_normal(10**6)) ** 2
    exact = Estimate(float(draws.mean()), float(draws.std() / 1e3), Method.FINITE)
    agree(found["y"].second_moment, exact)
    assert found["r"].value == pytest.approx(0.5, abs=1e-12)
    assert found["r"].std == pytest.approx(1.0, abs=1e-12)


def test_what_cannot_be_given() -> None:
    program = trained("ntk", 1)
    with pytest.raises(UnknownName, match=r"no random input or scalar output called 'g'"):
        tp.limit(program, given={"g": 1.0})
    with pytest.raises(UsageError, match=r"h\[1,0,0\]"):
        tp.limit(program, given={"h[1,0,0]": 1.0})

    @tp.program
    def squared(t: tp.Tracer) -> None:
        s = tp.n**0.5 * t.inner(t.gaussian("u"), t.gaussian("v"))
        t.output("square", s * s)
        t.output("one", t.mean(t.gaussian("w") ** 2))

    with pytest.raises(UsageError, match="not affine"):
        tp.limit(squared, given={"square": 1.0})
    with pytest.raises(UsageError, match="one is no random scalar"):
        tp.limit(squared, given={"one": 1.0})
