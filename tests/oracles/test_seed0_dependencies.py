"""Rows of spec 0 on what limits depend on: corrections, random outputs, moments, dependency sets.

S0.8 (Lemma C.2), S0.9 (Lemma C.3), S0.10 (Lemma C.1), S0.23 (Theorem L.9).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy_run
import pytest
from agree import agree
from numpy.typing import NDArray
from oracles.seed0_data import K00, K01, XI0, XI1, XI2, one_step

import tpcalc as tp
from tpcalc.activations.entries import REGISTRY
from tpcalc.exponents import as_ex
from tpcalc.functions import Fn, Var
from tpcalc.program.nodes import Input, Kind, MatMul, Moment, Scale
from tpcalc.program.program import Builder, prune
from tpcalc.questions.dependencies import Dependencies, corrections, dependencies
from tpcalc.questions.initial_weights import initial_weights
from tpcalc.results import Estimate, Method
from tpcalc.results.dependencies import InitialWeightTable


def trained(
    depth: int, act: str, parameterization: str, steps: int = 1, eta: float = 1.0
) -> tp.Program:
    """Trained on three inputs in turn, chi = -1."""
    return tp.train(
        tp.MLP(depth, act, bias="first"),
        parameterization,
        tp.Samples((XI0, XI1, XI2), ((0.0,),) * 3),
        steps=steps,
        lr=eta,
        loss="linear",
        watch=("h", "x", "dh", "dx"),
    )


# S0.8


@pytest.mark.parametrize("parameterization", ["ip-llr", "mup", "ntk", "naive-ip", "ip-bias"])
@pytest.mark.parametrize("act", ["relu", "tanh", "gelu"])
def test_S0_8_no_corrections_in_the_first_pass(parameterization: str, act: str) -> None:
    """Lemma C.2, for layers 2..L forward and backward; with biases in all layers as well."""
    program = tp.train(
        tp.MLP(3, act, bias="all"),
        parameterization,
        tp.Samples((XI0,), ((0.0,),)),
        steps=0,
        loss="linear",
    )
    rows = corrections(program, verify=False).rows
    names = {(row.matrix, row.transpose) for row in rows}
    assert names == {("W2", False), ("W3", False), ("W3", True), ("W2", True)}
    assert all(row.vanishes for row in rows)


def test_S0_8_does_not_hold_later_in_mup() -> None:
    """The correction of W^2 x_1^1 is theta_1 E[sigma'(h_1^1) sigma'(h_0^1)] dh~_0^2 (5.2)."""
    eta = 1.5
    rows = {row.name: row for row in corrections(one_step(2, "relu", "mup", eta)).rows}
    (term,) = rows["W2 x[1,1,1]"].terms
    assert term.vector == "dh[2,0,0]" and not term.doubtful and term.coefficient is not None
    rng = np.random.default_rng(5)
    start, other, back = rng.standard_normal((3, 2**20))
    h0 = math.sqrt(K00) * start
    h = K01 / math.sqrt(K00) * start + math.sqrt(2.35 - K01**2 / K00) * other
    moved = h + eta * K01 * math.sqrt(0.5) * back * (h0 > 0)
    gates = eta * K01 * (h0 > 0) * (moved > 0)
    error = float(gates.std() / 2**10)
    agree(term.coefficient, Estimate(float(gates.mean()), error, Method.PARTICLES))
    assert not rows["W2 x[1,1,1]"].vanishes


def test_S0_8_without_corrections_muP_would_give_another_output() -> None:
    """T3: f_1 = 1.12019 with the correction and .93499 without it; what is between is its part."""
    found = tp.limit(one_step(2, "relu", "mup", 1.5), seed=1)["f[1,1]"]
    agree(found, 1.12019, rounding=5e-6)
    rows = {row.name: row for row in corrections(one_step(2, "relu", "mup", 1.5)).rows}
    (term,) = rows["W2 x[1,1,1]"].terms
    assert term.coefficient is not None
    # f_1 = theta_3, and theta_2 = c + eta lambda_1 is multiplied by E sigma'(h_1^2) sigma'(h_0^2).
    assert 0.1 < term.coefficient.value < 1.5 * K01 / 2


# S0.9


@pytest.mark.parametrize("act", ["relu", "tanh"])
def test_S0_9_the_output_at_the_start_is_gaussian_in_law(act: str) -> None:
    """Lemma C.3: f_0 of NTK tends to N(0, E (x_0^L)^2), one draw for each network."""
    program = trained(3, act, "ntk", steps=0)
    found = dependencies(program)
    row = found["f[0,0]"]
    assert row.on == ("G(W4, x[3,0,0])",) and row.degree == "1" and str(row.n) == "0"
    assert [g.kind for g in found.table.gaussians if g.name == row.on[0]] == ["scalar"]
    assert all(found.independent("f[0,0]", f"h[{layer},0,0]") for layer in (1, 2, 3))
    limit = tp.limit(program)
    assert limit["f[0,0]"].std is not None
    agree(limit["f[0,0]"].value, 0.0)
    square = limit["x[3,0,0]"].second_moment
    agree(Estimate(limit["f[0,0]"].std ** 2, 1e-6, Method.QUADRATURE), square)
    wide = tp.simulate(tp.program(_output(act)), widths=[256], seeds=400, seed=3)
    (values,) = (np.array(r.values) for r in wide.rows if r.name == "f")
    spread = float(values.var(ddof=1))
    agree(Estimate(spread, spread * math.sqrt(2 / 400), Method.FINITE), square, rounding=0.02)


def _output(act: str) -> Callable[[tp.Tracer], None]:
    sigma = getattr(tp, act)

    def build(t: tp.Tracer) -> None:
        h = math.sqrt(K00) * t.gaussian("h")
        for layer in (2, 3):
            h = tp.n**-0.5 * (t.matrix(f"W{layer}") @ sigma(h))
        t.output("f", tp.n**0.5 * t.inner(t.gaussian("w"), sigma(h)))

    return build


def test_S0_9_a_random_output_reaches_what_it_moves() -> None:
    """Squared loss: chi_0 = f_0 - y is random in NTK, and so is f_1 beyond its own fluctuation."""
    program = tp.train(
        tp.MLP(2, "relu", bias="first"),
        "ntk",
        tp.Samples((XI0,), ((1.0,),)),
        steps=1,
        lr=0.5,
        queries=(XI1,),
    )
    assert set(dependencies(program)["f[1,1]"].on) == {"G(W3, x[2,0,0])", "G(W3, x[2,0,1])"}


# S0.10


@pytest.mark.parametrize("act", ["relu", "relu^2", "tanh", "gelu"])
def test_S0_10_moments_of_the_first_pass_are_positive_and_finite(act: str) -> None:
    """Lemma C.1 for the functions of one Gaussian in the first pass."""
    found = dependencies(trained(3, act, "ip-llr", steps=0))
    for name, row in found.items():
        assert row.finite and row.positive, name
    degree = {"relu": "1", "relu^2": "2", "tanh": "0", "gelu": "1"}[act]
    assert found["x[1,0,0]"].degree == degree


def test_S0_10_no_certificate_beyond_polynomials() -> None:
    @tp.program
    def fast(t: tp.Tracer) -> None:
        v = t.gaussian("v")
        t.output("phi", tp.exp(v**2 / 2))  # E phi is infinite
        t.output("none", tp.relu(v) - tp.relu(v))

    found = dependencies(fast)
    assert not found["phi"].finite
    assert not found["none"].positive


# S0.23


def forward_and_backward(depth: int, layer: int) -> set[str]:
    """(hat W^l x_0^{l-1}, hat W^{l+1 T} dh_0^{l+1}), and U^{L+1} for the last layer."""
    last = f"W{depth + 1}"
    above = last if layer == depth else f"hat W{layer + 1}^T dh[{layer + 1},0,0]"
    return {f"hat W{layer} x[{layer - 1},0,0]", above}


def first_layer(step: int) -> set[str]:
    """The images of the inputs up to this step under the first layer, and the direction back."""
    images = {"h[1,0,0]", *(f"start of h[1,{s},0]" for s in range(1, step + 1))}
    return images | {"hat W2^T dh[2,0,0]"}


@pytest.fixture(scope="module", params=[(3, 2), (4, 2), (3, 1)], ids=str)
def smooth(request: pytest.FixtureRequest) -> tuple[int, int, Dependencies]:
    """Assumption 3: relu^2, small rates so that nothing is large."""
    depth, steps = request.param
    program = trained(depth, "relu^2", "ip-llr:2", steps, eta=1e-2)
    return depth, steps, dependencies(program, verify=False)


def test_S0_23_sets_of_ip_llr(smooth: tuple[int, int, Dependencies]) -> None:
    depth, steps, found = smooth
    for step in range(1, steps + 1):
        for letter in ("h", "x", "dh"):
            for layer in range(2, depth + 1):
                name = f"{letter}[{layer},{step},0]"
                assert set(found[name].on) == forward_and_backward(depth, layer), name
            assert set(found[f"{letter}[1,{step},0]"].on) == first_layer(step)
    assert found["dx[1,1,0]"].on == ("h[1,0,0]",)
    for layer in range(2, depth):
        assert found[f"dx[{layer},1,0]"].on == (f"hat W{layer} x[{layer - 1},0,0]",)


@pytest.mark.parametrize("depth", [3, pytest.param(4, marks=pytest.mark.slow)])
def test_S0_23_sets_of_ip_llr_with_relu(depth: int) -> None:
    """ReLU is outside of Assumption 3: gates of the last layer are decided by smaller terms.

    h_1^L = theta dh_0^L is exactly 0 where the gate of h_0^L was shut, and dx_1^L is not: there the
    sign of W^L(0) x_1^{L-1} decides. Below the last layer dx_1^l is 0 on these coordinates too.
    """
    found = dependencies(trained(depth, "relu", "ip-llr", 2))
    top = forward_and_backward(depth, depth)
    decides = [f"hat W{depth} x[{depth - 1},{step},0]" for step in (1, 2)]
    assert not any(row.doubtful for row in found.values())
    for step in (1, 2):
        for layer in range(2, depth):
            for letter in ("h", "dh"):
                name = f"{letter}[{layer},{step},0]"
                assert set(found[name].on) == forward_and_backward(depth, layer), name
        for letter in ("h", "dh"):
            assert set(found[f"{letter}[1,{step},0]"].on) == first_layer(step)
    assert set(found[f"h[{depth},1,0]"].on) == top
    assert set(found[f"dh[{depth},1,0]"].on) == {*top, decides[0]}
    assert set(found[f"h[{depth},2,0]"].on) == {*top, decides[0]}
    assert set(found[f"dh[{depth},2,0]"].on) == {*top, *decides}
    assert set(found[f"dx[{depth},2,0]"].on) == top
    for layer in range(2, depth):
        assert found[f"dx[{layer},1,0]"].on == (f"hat W{layer} x[{layer - 1},0,0]",)


def test_S0_23_the_sign_of_a_small_term_is_felt_in_the_last_layer_only() -> None:
    """E dh_1^2 sign(W^l(0) x_1^{l-1}) where h~_0^l < 0: for l = 2 it is 0.

    For l = L = 3 it is the chance that h~_0^l < 0 < hat W^l x_1^{l-1}, which are correlated.
    """
    builder = Builder.copy(trained(3, "relu", "ip-llr"))
    ref = {node.name: ref for ref, node in matrices(builder)}
    sign, step = (REGISTRY[name]() for name in ("sign", "step"))
    felt = Fn(Var(0) ** 2 * step(-Var(1)) * sign(Var(2)), 3)
    for layer in (2, 3):
        dh, start, x = (
            builder.outputs[name]
            for name in (f"dh[{layer},1,0]", f"h[{layer},0,0]", f"x[{layer - 1},1,0]")
        )
        product = builder.add(MatMul(ref[f"W{layer}"], x))
        moment = builder.add(Moment(felt, (dh, start, product)))
        builder.output(f"felt {layer}", builder.add(Scale(moment, as_ex(2))))
    program = builder.finish()
    names = ["felt 2", "felt 3"]
    found = tp.limit(program, outputs=names, method="particles")
    agree(found["felt 2"], 0.0)
    starts = tp.limit(program, outputs=["x[2,0,0]", "x[2,1,0]"])
    x0, x1 = starts["x[2,0,0]"], starts["x[2,1,0]"]
    sizes = x0.second_moment.value * x1.second_moment.value
    chance = 0.25 - math.asin(x0.cov(x1).value / math.sqrt(sizes)) / (2 * math.pi)
    agree(found["felt 3"], chance, rounding=1e-3)
    wide = tp.simulate(prune(replace(program, outputs=program.outputs[-2:])), [2048], 8, seed=1)
    values = {row.name: np.array(row.values) for row in wide.rows}
    assert abs(values["felt 3"].mean() - chance) < 0.1 * chance
    assert abs(values["felt 2"].mean()) < 0.1 * chance


def matrices(builder: Builder) -> list[tuple[int, Input]]:
    nodes = [(ref, builder.node(ref)) for ref in range(len(builder))]
    return [
        (ref, node)
        for ref, node in nodes
        if isinstance(node, Input) and numpy_run.is_input(node, Kind.MATRIX)
    ]


def test_S0_23_in_mup_the_initial_products_stay() -> None:
    """Contrast: hats of the initial matrices are created at every step."""
    found = dependencies(trained(3, "relu", "mup"))
    assert set(found["h[2,1,0]"].on) == {*forward_and_backward(3, 2), "hat W2 x[1,1,0]"}
    assert set(found["h[3,1,0]"].on) == {*forward_and_backward(3, 3), "hat W3 x[2,1,0]"}
    assert "hat W3^T dh[3,1,0]" in found["dh[2,1,0]"].on
    assert not any(row.doubtful for row in found.values())


def test_S0_23_hpz_has_the_sets_of_ip_llr() -> None:
    """Theorem 4.2: without the initial weights of the intermediate layers the same limit."""
    ours, other = (
        dependencies(trained(3, "relu^2", name, eta=1e-2), verify=False)
        for name in ("ip-llr:2", "hpz")
    )
    for name in ours:
        if ",1,0]" in name:
            assert set(ours[name].on) == set(other[name].on), name


def test_S0_23_independent_layers() -> None:
    """At t = 1 layers are independent of each other: each has two Gaussians of its own."""
    found = dependencies(trained(4, "relu^2", "ip-llr:2", eta=1e-2), verify=False)
    assert found.independent("h[2,1,0]", "h[4,1,0]")
    assert found.independent("h[2,1,0]", "h[3,1,0]")
    assert found.independent("h[1,1,0]", "dh[3,1,0]")
    assert found.independent("dx[1,1,0]", "dx[2,1,0]")
    assert not found.independent("h[2,1,0]", "dh[2,1,0]")
    assert not found.independent("h[2,1,0]", "h[2,0,0]")
    assert not found.independent("h[1,0,0]", "h[1,1,0]")


def test_S0_23_independent_variables_are_uncorrelated_in_samples() -> None:
    """Covariances of squares (relu, so that moments are small): 0 where independence is proved."""
    program = trained(3, "relu", "ip-llr", eta=4.0)
    pairs = [
        ("h[2,1,0]", "h[3,1,0]"),
        ("h[1,1,0]", "dh[3,1,0]"),
        ("dx[2,1,0]", "dx[2,0,0]"),
        ("h[2,1,0]", "dh[2,1,0]"),
        ("h[3,1,0]", "dx[3,0,0]"),
    ]
    found = dependencies(program)
    powers = {name: -(found[name].n.constant or 0) for name in found}  # n^-n times the vector

    def more(t: tp.Tracer) -> None:
        for a, b in pairs:
            x, y = (tp.n ** powers[name] * t[name] for name in (a, b))
            joint = tp.mean(tp.tanh(x) ** 2 * tp.tanh(y) ** 2)
            apart = tp.mean(tp.tanh(x) ** 2) * tp.mean(tp.tanh(y) ** 2)
            t.output(f"{a} {b}", joint - apart)

    longer = tp.extend(program, more)
    limit = tp.limit(longer, outputs=[f"{a} {b}" for a, b in pairs], method="particles")
    for a, b in pairs:
        covariance = limit[f"{a} {b}"]
        if found.independent(a, b):
            agree(covariance, 0.0)
        else:
            assert covariance.value > 10 * covariance.stderr, (a, b)
    assert [bool(found.independent(a, b)) for a, b in pairs] == [True, True, True, False, False]


def test_S0_23_what_is_outside_of_a_set_does_not_change_a_vector() -> None:
    """New draws of W3 and W4: dx_1^2 keeps its direction (up to n^-1/2), dx_1^3 does not."""
    program = trained(3, "relu", "ip-llr", eta=4.0)
    angles = []
    for width in (256, 1024):
        rng = np.random.default_rng(width)
        inputs = {f"W1[{i}]": rng.standard_normal(width) for i in range(4)}
        inputs["b1[0]"] = rng.standard_normal(width)
        inputs["W2"] = rng.standard_normal((width, width))
        runs = []
        for _ in range(2):
            inputs["W3"] = rng.standard_normal((width, width))
            inputs["W4[0]"] = rng.standard_normal(width)
            runs.append(numpy_run.run(program, width, inputs))
        names = ("dx[2,1,0]", "dx[3,1,0]")
        angles.append([angle(runs[0][name], runs[1][name]) for name in names])
    (near, apart), (far, still_apart) = angles
    assert far < 0.75 * near and far < 0.3
    assert min(apart, still_apart) > 1.0


def angle(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    return float(np.linalg.norm(a / np.linalg.norm(a) - b / np.linalg.norm(b)))


def check_initial(table: InitialWeightTable, later: str, stays: bool) -> None:
    for row in table.rows:
        assert row.status == "exact" and row.degree is not None, row
        expected = "0" if row.step == 0 else later
        assert str(row.n) == expected, row
        assert row.vanishes is (row.step != 0 and not stays)
        assert row.certified is row.vanishes


@pytest.mark.parametrize("depth", [3, 4])
def test_S0_23_initial_weights_vanish_in_ip_llr(depth: int) -> None:
    """Theorem L.9 and case 13: n^(-1/2) beside h_t^l and dx_t^l for t >= 1, with a certificate."""
    table = initial_weights(trained(depth, "relu", "ip-llr", 2))
    assert len(table.rows) == 3 * 2 * (depth - 1)
    assert {row.transpose for row in table.rows} == {False, True}
    check_initial(table, "-1/2", stays=False)


def test_S0_23_initial_weights_vanish_with_relu_squared() -> None:
    check_initial(initial_weights(trained(3, "relu^2", "ip-llr:2", eta=1e-2)), "-1/2", stays=False)


@pytest.mark.parametrize("parameterization", ["mup", "ntk"])
def test_S0_23_initial_weights_stay_in_mup(parameterization: str) -> None:
    check_initial(initial_weights(trained(3, "relu", parameterization)), "0", stays=True)


def test_S0_23_initial_weights_of_the_hybrids() -> None:
    """HP keeps n^-1 U^l from the first update on, HPZ drops it."""
    check_initial(initial_weights(trained(3, "relu", "hp")), "-1/2", stays=False)
    rows = initial_weights(trained(3, "relu", "hpz")).rows
    assert rows and all(row.step == 0 for row in rows)
