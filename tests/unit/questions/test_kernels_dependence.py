"""Programs whose backward pass depends on their forward pass: the recursion of peers is wrong."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from agree import agree

import tpcalc as tp
from tpcalc.functions import Expr
from tpcalc.integrals.numeric import Numeric
from tpcalc.passes.tangent import TangentProgram, tangent_of_program
from tpcalc.program.nodes import Input, Kind
from tpcalc.questions.kernel.entries import Entries
from tpcalc.results import Estimate, Method

WIDTH = 2048


def tied(act: Callable[[Expr], Expr]) -> tp.Program:
    """f = v . W^T act(W act(z)) / sqrt(n), the powers of n beside W."""

    @tp.program
    def program(t: tp.Tracer) -> None:
        z, v, matrix = t.gaussian("z"), t.gaussian("v"), t.matrix("W")
        h = tp.n**-0.5 * (matrix @ act(z))
        t.output("f", tp.n**0.5 * t.inner(v, tp.n**-0.5 * (matrix.T @ act(h))))

    return program.build()


def pooled(act: Callable[[Expr], Expr]) -> tp.Program:
    """f_i = sqrt(n) mean(act(W act(V z_i))) for two correlated z_i: a readout of ones."""

    @tp.program
    def program(t: tp.Tracer) -> None:
        inner, outer = t.matrix("V"), t.matrix("W")
        for name, z in zip("ab", t.gaussians(["a", "b"], cov=[[1, 0.5], [0.5, 1]]), strict=True):
            x = act(tp.n**-0.5 * (inner @ z))
            t.output(name, tp.n**0.5 * tp.mean(act(tp.n**-0.5 * (outer @ x))))

    return program.build()


def tangent(program: tp.Program) -> TangentProgram:
    refs = [
        ref
        for ref, node in enumerate(program.nodes)
        if isinstance(node, Input) and program.types[ref].kind is not Kind.SCALAR
    ]
    return tangent_of_program(program, [name for name, _ in program.outputs], refs, ("ntk",))


def naive(found: TangentProgram, i: int, j: int) -> float:
    """An entry without corrections."""
    entries = Entries(found).at(None, Numeric(), corrections=False)
    return float(entries.ntk(i, 0, j, 0).value)


def finite(found: TangentProgram, width: int = WIDTH) -> dict[str, Estimate]:
    """The mean of entries over networks of one width."""
    table = tp.simulate(found.program, widths=[width], seeds=32, seed=9)
    out = {}
    for row in table.rows:
        values = np.array(row.values)
        error = float(values.std(ddof=1) / math.sqrt(len(values)))
        out[row.name] = Estimate(float(values.mean()), error, Method.FINITE)
    return out


CASES = {
    "tied-tanh": (tied, tp.tanh),
    "tied-relu": (tied, tp.relu),
    "pooled-relu": (pooled, tp.relu),
    "pooled-gelu": (pooled, tp.gelu),
    "pooled-bump": (pooled, lambda z: tp.exp(-(z**2))),
}


@pytest.mark.parametrize("name", list(CASES))
def test_finite_networks_agree_with_the_corrections_alone(name: str) -> None:
    write, act = CASES[name]
    program = write(act)
    found = tp.kernel(program, kinds="ntk")
    assert found.independent is False
    assert found.ntk is not None
    assert found.error < 1e-11
    (note,) = found.notes
    assert "gradient independence does not hold: W^T is applied" in note
    own = tangent(program)
    empirical = finite(own)
    size = len(found.ntk)
    for i in range(size):
        for j in range(i, size):
            entry, estimate = float(found.ntk[i, j]), empirical[f"ntk[{i},0,{j},0]"]
            agree(estimate, entry, rounding=4 / WIDTH * max(1.0, entry))
            if i == j:
                assert estimate.z(naive(own, i, j)) > 10
                # The note quotes the entry that differs most.
                assert f"{naive(own, i, j):.6g}" in note


def test_tied_relu_in_numbers() -> None:
    """T = 5/4: K = 1/4 + 1/4 E step with, 1/4 less without W^T W = 1 on the diagonal."""
    found = tp.kernel(tied(tp.relu))
    assert found.ntk == pytest.approx(5 / 4, rel=1e-13)
    assert naive(tangent(tied(tp.relu)), 0, 0) == pytest.approx(1, rel=1e-13)
    # the output is v . (W^T relu(h)), with W^T relu(h) = hat + E step(h) relu(z)
    assert found.nngp == pytest.approx(1 / 4 + 1 / 4 * 1 / 2, rel=1e-13)


def test_corrections_that_make_no_difference() -> None:
    """An odd activation has E act'' = 0: pooling does no harm, and W alone sees no correction."""
    found = tp.kernel(pooled(tp.tanh), kinds="ntk")
    assert (found.independent, found.notes) == (True, ())
    agree(finite(tangent(pooled(tp.tanh)))["ntk[0,0,1,0]"], float(found.ntk[0, 1]), rounding=1e-3)
    weights = tp.kernel(tied(tp.relu), kinds="ntk", trained=["W"])
    assert (weights.independent, weights.notes) == (True, ())


def test_function_of_a_corrected_vector_by_particles() -> None:
    """f = v . tanh(W^T tanh(W tanh(z))): beyond closed forms, still right."""

    @tp.program
    def program(t: tp.Tracer) -> None:
        z, v, matrix = t.gaussian("z"), t.gaussian("v"), t.matrix("W")
        h = tp.n**-0.5 * (matrix @ tp.tanh(z))
        t.output("f", tp.n**0.5 * t.inner(v, tp.tanh(tp.n**-0.5 * (matrix.T @ tp.tanh(h)))))

    found = tp.kernel(program, kinds="ntk")
    assert found.method is Method.PARTICLES
    assert found.independent is None
    assert "could not be checked" in found.notes[0]
    assert found.ntk is not None
    own = tangent(program.build())
    entry = Estimate(float(found.ntk[0, 0]), found.error * float(found.ntk[0, 0]), found.method)
    estimate = finite(own)["ntk[0,0,0,0]"]
    agree(estimate, entry, rounding=4 / WIDTH)
    assert estimate.z(naive(own, 0, 0)) > 10


def test_networks_of_the_catalogue_are_independent() -> None:
    """Their readout is centred and used once; shared weights of an RNN make no difference."""
    draws = np.random.default_rng(0).standard_normal((3, 6))
    for net in (tp.MLP(3, "gelu"), tp.ResNet(2, "relu"), tp.RNN(3, "erf"), tp.RNN(2, "gelu")):
        assert tp.kernel(net, draws).independent is True
    assert tp.kernel(tp.MLP(2, "gelu"), draws, kinds="nngp").independent is None
