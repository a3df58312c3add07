"""Which evaluator answers, and what a forced one says."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from agree import agree

import tpcalc as tp
from tpcalc.errors import UnknownName
from tpcalc.results import Method, Status

DATA = tp.Samples(((1.0, 0.5), (-0.5, 1.0)), ((1.0,), (-1.0,)))


def first_pass(act: str, param: str = "mup", steps: int = 0) -> tp.Program:
    return tp.train(tp.MLP(3, act), param, DATA, steps=steps, lr=Fraction(1, 2))


@pytest.mark.parametrize("act", ["relu", "tanh", "gelu", "erf", "elu", "swish", "sin", "abs"])
@pytest.mark.parametrize("param", ["mup", "ntk", "naive-ip"])
def test_a_first_pass_needs_no_samples(act: str, param: str) -> None:
    found = tp.limit(first_pass(act, param))
    methods = {row.estimate.method for row in found.table.scalars}
    methods |= {row.second_moment.method for row in found.table.vectors}
    assert methods <= {Method.EXACT, Method.QUADRATURE}
    assert (Method.QUADRATURE in methods) == (act in ("tanh", "swish"))
    for row in found.table.vectors:
        assert row.second_moment.stderr <= 1e-9 * max(row.second_moment.value, 1e-3)


def test_a_recurrent_first_pass_needs_no_samples() -> None:
    data = tp.Samples(((1.0, 0.5, -1.0, 2.0, 0.3, 0.1),), ((1.0,),))
    found = tp.limit(tp.train(tp.RNN(3, "tanh"), "mup", data, steps=0))
    rows = found.table.vectors
    assert {row.second_moment.method for row in rows} <= {Method.EXACT, Method.QUADRATURE}
    sampled = tp.limit(tp.train(tp.RNN(3, "tanh"), "mup", data, steps=0), method="particles")
    for row, other in zip(rows, sampled.table.vectors, strict=True):
        agree(row.second_moment, other.second_moment)


def test_what_ends_in_particles_leaves_the_rest_exact() -> None:
    found = tp.limit(first_pass("relu", steps=2))
    assert found["h[3,0,0]"].second_moment.method is Method.EXACT
    assert found["f[2,0]"].method is Method.PARTICLES
    assert found["f[2,0]"].stderr > 0
    every = tp.limit(first_pass("relu", steps=2), method="particles")
    agree(found["f[2,0]"], every["f[2,0]"])


def test_forced_methods_agree() -> None:
    program = first_pass("relu", "ntk")
    exact, by_rule, sampled = (
        tp.limit(program, method=method) for method in ("exact", "quadrature", "particles")
    )
    for row in exact.table.vectors:
        assert row.second_moment.method is Method.EXACT
        value = row.second_moment
        other = by_rule[row.name].second_moment
        assert abs(value.value - other.value) <= value.stderr + other.stderr
        agree(value, sampled[row.name].second_moment)
    deviation = exact["f[0,0]"].std
    assert deviation is not None and exact["f[0,0]"].random
    assert sampled["f[0,0]"].std == pytest.approx(deviation, rel=5 / np.sqrt(2 * 63))


def test_an_unknown_method_is_refused() -> None:
    with pytest.raises(UnknownName, match="no method called 'mehler'"):
        tp.limit(first_pass("relu"), method="mehler")


def test_formulas_of_scalars() -> None:
    @tp.program
    def scalars(t: tp.Tracer) -> None:
        u, v = t.gaussians(["u", "v"], cov=[[1, Fraction(1, 2)], [Fraction(1, 2), 1]])
        t.output("arc", t.mean(tp.relu(u) * tp.relu(v)))
        t.output("rational", t.mean(u**2 * v**2))
        t.output("tanh", t.mean(tp.tanh(u) ** 2))
        t.output("zero", t.mean(tp.tanh(u)))

    found = tp.limit(scalars)
    assert found["rational"].formula == "3/2"
    assert found["rational"].status is Status.EXACT and found["rational"].stderr == 0
    assert found["arc"].formula == "sqrt(3)/(4*pi) + 1/6"
    assert found["arc"].value == pytest.approx(0.30449889052211477, rel=1e-15)
    assert found["tanh"].formula is None and found["tanh"].method is Method.QUADRATURE
    assert found["zero"].value == 0 and found["zero"].stderr == 0


@pytest.mark.slow
def test_a_long_run_gives_up_on_integrals_early() -> None:
    """Batches make quadratically many integrals; the chain stops, and particles answer."""
    rng = np.random.default_rng(0)
    xs = rng.standard_normal((24, 3))
    data = tp.Samples(tuple(map(tuple, xs.tolist())), ((1.0,),) * 24)
    program = tp.train(tp.MLP(2, "swish"), "mup", data, steps=2, batch=24, watch=("h",))
    found = tp.limit(program, samples=2**6, replicates=2)
    methods = {row.second_moment.method for row in found.table.vectors}
    assert methods >= {Method.EXACT, Method.PARTICLES}


def test_the_error_of_a_scalar_is_carried_through_its_functions() -> None:
    """exp(1000 m - 394) moves by 1000 times the error of m, relative to its size."""

    @tp.program
    def steep(t: tp.Tracer) -> None:
        v = t.gaussian("v")
        m = t.inner(tp.tanh(v), tp.tanh(v))
        t.output("m", m)
        t.output("steep", tp.exp(1000 * m - 394))

    found = tp.limit(steep)
    m, image = found["m"], found["steep"]
    assert m.method is image.method is Method.QUADRATURE and m.stderr > 0
    assert image.stderr >= 1000 * m.stderr * image.value
