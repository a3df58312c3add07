"""Numbers without a law: what they multiply may be 0, and then nothing hangs on them."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from numpy_run import draw, run

import tpcalc as tp
from tpcalc.errors import LimitError

H = Fraction(1, 2)
SAMPLE = tp.Samples(((1.0, 0.5),), ((1.0,),))


def trained(act: str, parameterization: str, steps: int) -> tp.Program:
    net = tp.MLP(2, act, norm="layer")
    return tp.train(net, parameterization, SAMPLE, steps=steps, loss="linear")


def test_layer_norm_in_the_tangent_kernel_regime() -> None:
    """The means that layer norm takes off are random and multiply averages that are 0.

    For ReLU each of the three layers moves the output by 1/2: E relu(z)^2 = E relu'(z)^2 = 1/2, and
    what one normalisation divides by is what the layer before it multiplies with.
    """
    found = tp.limit(trained("relu", "ntk", 2))
    start = found["f[0,0]"]
    for step, moved in ((1, 1.5), (2, 3.0)):
        here = found[f"f[{step},0]"]
        assert here.value == pytest.approx(start.value + moved, abs=1e-12)
        assert here.std == pytest.approx(H**0.5, abs=1e-12)


@pytest.mark.parametrize("parameterization", ["ntk", "standard:1"])
def test_networks_with_layer_norm_agree(parameterization: str) -> None:
    program = trained("tanh", parameterization, 2)
    found = tp.limit(program)
    width, seeds = 1024, 48
    values = [
        run(program, width, draw(program, width, np.random.default_rng(s))) for s in range(seeds)
    ]
    for name in ("f[1,0]", "f[2,0]"):
        moved = np.array([value[name] - value["f[0,0]"] for value in values])
        error = float(np.std(moved)) / seeds**0.5
        assert abs(float(np.mean(moved)) - found[name].value) < 5 * error + 1 / width


def test_products_with_matrices_leave_the_number_in_front() -> None:
    """V (W (z - s u)) has no part along v, so that its average with v is 0 whatever s is."""

    def build(t: tp.Tracer) -> None:
        u, v, z = (t.gaussian(name) for name in "uvz")
        first, second = t.matrix("W"), t.matrix("V")
        s = tp.n**H * tp.mean(tp.n**-H * (first @ tp.tanh(u)))
        y = tp.n**-H * (second @ (z - s * u))
        t.output("apart", t.inner(v, v + tp.tanh(v) * y))
        t.output("square", t.inner(z - s * u, z))
        odd = tp.n**H * tp.mean(tp.tanh(tp.n**-H * (first @ u)) * tp.tanh(v))
        t.output("lawless", t.inner(v, v + odd * tp.tanh(v) * y))
        t.output("inside", t.inner(v, tp.tanh(v + odd)))

    found = tp.limit(tp.program(build))
    assert found["apart"].value == pytest.approx(1.0, abs=1e-12)
    assert found["lawless"].value == pytest.approx(1.0, abs=1e-12)
    assert found["square"].value == pytest.approx(1.0, abs=1e-12)
    (row,) = found.table.uncovered
    assert row.name == "inside"
    with pytest.raises(LimitError, match="0 by symmetry"):
        tp.limit(tp.program(lambda t: inside(t)))


def inside(t: tp.Tracer) -> None:
    u, v = t.gaussian("u"), t.gaussian("v")
    s = tp.n**H * tp.mean(tp.tanh(u) * tp.tanh(tp.n**-H * (t.matrix("W") @ u)))
    t.output("inside", t.inner(v, tp.tanh(v + s)))
