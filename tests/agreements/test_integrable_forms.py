"""Closed forms of integrable parameterizations beside the limits of their programs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import pytest
from agree import agree

import tpcalc as tp
from tpcalc.errors import UsageError
from tpcalc.results import Estimate, Method
from tpcalc.theorems.integrable.forms.bias import bias_start, bias_step
from tpcalc.theorems.integrable.forms.exponents import (
    first_pass,
    first_rates,
    first_updates,
    later_rates,
    naive_rates,
)
from tpcalc.theorems.integrable.forms.known import lazy_step, mup_step, tangent_kernel
from tpcalc.theorems.integrable.forms.llr import llr_step, llr_step_by_derivatives
from tpcalc.theorems.integrable.forms.llr_later import llr_second_step
from tpcalc.theorems.integrable.forms.moments import tilde_variances
from tpcalc.theorems.integrable.forms.naive import naive_degenerate, naive_two_layers
from tpcalc.theorems.integrable.forms.non_centered import non_centered_start, non_centered_step
from tpcalc.training.parameterizations import lookup

A, B, C = (0.6, -0.3), (0.1, 0.7), (0.5, 0.4)
HALF = Fraction(1, 2)


def trained(
    depth: int,
    act: str,
    parameterization: str,
    eta: float,
    *,
    inputs: Sequence[tuple[float, ...]] = (A,),
    bias: str = "first",
    query: tuple[float, ...] = B,
    watch: Sequence[str] = (),
) -> tp.Program:
    """Steps of rate eta with chi = -1; input 0 is the first one, the query comes last."""
    return tp.train(
        tp.MLP(depth, act, bias=bias),
        parameterization,
        tp.Samples(tuple(inputs), ((0.0,),) * len(inputs)),
        steps=len(inputs),
        lr=eta,
        loss="linear",
        queries=(query,),
        watch=tuple(watch),
    )


def limit(program: tp.Program, *names: str) -> tp.Limit:
    return tp.limit(program, samples=2**13, replicates=16, seed=5, outputs=list(names) or None)


def near(form: object, found: Estimate, most: float = 2e-2) -> None:
    """The form is within 5 standard errors, and these are small."""
    value = form.value  # type: ignore[attr-defined]
    agree(value, found)
    assert math.hypot(found.stderr, value.stderr) <= most * max(abs(value.value), 0.1)


@pytest.mark.parametrize(
    ("act", "p", "depth", "eta", "bias"),
    [
        ("relu", 1, 3, 8.0, "first"),
        ("relu", 1, 2, 4.0, "none"),
        ("relu^2", 2, 2, 0.1, "first"),
        ("leaky_relu:-0.3", 1, 3, 6.0, "first"),
        ("leaky_relu:0.3", 1, 2, 4.0, "first"),
        ("abs", 1, 2, 2.0, "first"),
        ("tanh", 1, 2, 2.0, "first"),
        ("gelu", 1, 2, 2.0, "first"),
    ],
)
def test_S0_22_llr_step(act: str, p: int, depth: int, eta: float, bias: str) -> None:
    """IP-LLR after one step: sizes of the layers and f_1, in both forms."""
    program = trained(depth, act, f"ip-llr:{p}", eta, bias=bias, watch=("h",))
    found = limit(program, "h[*,1,1]", "f[1,1]")
    form = llr_step(act, depth, A, B, eta=eta, bias=bias)
    near(form.f, found["f[1,1]"])
    for layer, size in enumerate(form.rms, 1):
        agree(size.value.value**2, found[f"h[{layer},1,1]"].second_moment)
    other = llr_step_by_derivatives(act, depth, A, B, eta=eta, bias=bias)
    agree(form.f.value, other.f.value)
    for one, two in zip(form.lambdas, other.lambdas, strict=True):
        agree(one.value, two.value)


@pytest.mark.parametrize("act", ["tanh", "linear", "elu"])
def test_S0_33_llr_step_of_what_is_linear_near_zero(act: str) -> None:
    """lambda_2 and f_1 are exactly 0 for 3 layers, in the form and in the program."""
    form = llr_step(act, 3, A, B, eta=2.0)
    found = limit(trained(3, act, "ip-llr", 2.0), "f[1,1]")["f[1,1]"]
    for value in (form.f.value, form.lambdas[1].value, form.lambdas[2].value, found):
        assert (value.value, value.stderr, value.method) == (0.0, 0.0, Method.EXACT)
    assert form.nus[0].value.value == 0.0


@pytest.mark.parametrize(
    ("act", "depth", "powers"),
    [("leaky_relu:0.3", 3, (Fraction(3, 2), 1)), ("tanh", 2, (1,)), ("abs", 2, (1,))],
)
def test_S0_22_llr_backward(act: str, depth: int, powers: Sequence[Fraction]) -> None:
    """nu_l: gradients of steps 0 and 1, both without their powers of the width."""
    eta = 4.0
    program = trained(depth, act, "ip-llr", eta, inputs=(A, B), watch=("dh",))

    def more(t: tp.Tracer) -> None:
        for layer, power in enumerate(powers, 2):
            first, later = t[f"dh[{layer},0,0]"], t[f"dh[{layer},1,0]"]
            t.output(f"nu[{layer}]", tp.n ** (1 + power) * t.inner(first, later))

    found = limit(tp.extend(program, more), "nu*")
    for layer, nu in enumerate(llr_step(act, depth, A, B, eta=eta).nus, 2):
        near(nu, found[f"nu[{layer}]"])


@pytest.mark.parametrize(
    ("act", "p", "depth", "eta", "inputs"),
    [
        ("relu^2", 2, 2, 0.03, ((0.3, 0.1), (0.2, -0.1), (0.1, 0.2))),  # larger ones: heavy tails
        ("leaky_relu:-0.3", 1, 3, 2.0, (A, B, C)),
        ("leaky_relu:0.3", 1, 2, 2.0, (A, B, C)),
        ("linear", 1, 3, 0.5, (A, B, C)),
    ],
)
def test_S0_20_llr_second_step(
    act: str, p: int, depth: int, eta: float, inputs: Sequence[tuple[float, ...]]
) -> None:
    program = trained(depth, act, f"ip-llr:{p}", eta, inputs=inputs[:2], query=inputs[2])
    found = limit(program, "f[2,1]")["f[2,1]"]
    near(llr_second_step(act, depth, *inputs, eta=eta).f, found)


def test_S0_20_llr_second_step_of_relu_is_refused() -> None:
    with pytest.raises(UsageError, match="decide its slope"):
        llr_second_step("relu", 2, A, B, C, eta=1.0)


@pytest.mark.parametrize(
    ("act", "depth", "eta"), [("relu", 3, 1.5), ("tanh", 2, 1.0), ("leaky_relu:0.3", 2, 1.0)]
)
def test_S0_26_mup_step(act: str, depth: int, eta: float) -> None:
    found = limit(trained(depth, act, "mup", eta, watch=("h",)), "h[*,1,1]", "f[1,1]")
    form = mup_step(act, depth, A, B, eta=eta)
    near(form.f, found["f[1,1]"])
    for layer, size in enumerate(form.second_moments, 1):
        agree(size.value, found[f"h[{layer},1,1]"].second_moment)
    assert form.f_without_dot.value.z(found["f[1,1]"]) > 5


def test_S0_29_tangent_kernel() -> None:
    form = tangent_kernel("tanh", 3, A, B)
    found = tp.kernel(tp.MLP(3, "tanh", bias="first"), [A, B], scale=1)
    assert found.ntk is not None
    assert found.nngp is not None
    assert float(form.kernel) == pytest.approx(found.ntk[0, 1], rel=1e-11)
    assert float(form.last_layer) == pytest.approx(found.nngp[0, 1], rel=1e-11)
    alone = tp.kernel(tp.MLP(2, "relu", bias="first"), [A], scale=1)
    assert alone.ntk is not None
    assert float(tangent_kernel("relu", 2, A, A).kernel) == pytest.approx(alone.ntk[0, 0])


def test_S0_29_lazy_step() -> None:
    """f_1 - f_0 does not depend on the draw of f_0."""
    program = trained(2, "relu", "ntk", 0.5)

    def more(t: tp.Tracer) -> None:
        t.output("change", t["f[1,1]"] - t["f[0,1]"])
        t.output("square", t["f[0,0]"] * t["f[0,0]"])

    form = lazy_step("relu", 2, A, B, eta=0.5)
    found = limit(tp.extend(program, more), "change", "square")
    agree(form.change.value, found["change"])
    agree(form.variance.value, found["square"])


@pytest.mark.parametrize("act", ["relu", "tanh", "sigmoid", "leaky_relu:0.3"])
def test_S0_17_naive_two_layers(act: str) -> None:
    found = limit(trained(2, act, "naive-ip", 2.0), "f[1,1]")["f[1,1]"]
    near(naive_two_layers(act, A, B, eta=2.0).f, found)


def test_S0_18_naive_degenerate() -> None:
    found = limit(trained(3, "sigmoid", "naive-ip", 2.0, watch=("h",)), "h[3,1,1]", "f[1,1]")
    form = naive_degenerate("sigmoid", 3, eta=2.0)
    near(form.f, found["f[1,1]"])
    agree(form.coefficient.value.value**2, found["h[3,1,1]"].second_moment)


@pytest.mark.parametrize(("act", "depth", "u"), [("relu", 4, 1), ("gelu", 3, 2), ("tanh", 2, 1)])
def test_S0_30_non_centered_step(act: str, depth: int, u: int) -> None:
    program = trained(depth, act, f"ip-non-centered:{u}", 0.5, bias="all", watch=("h", "dW_x", "x"))
    found = limit(program)
    start = non_centered_start(act, depth, A, u=u)
    agree(start.f.value, found["f[0,0]"])
    for layer, constant in enumerate(start.constants, 2):
        if float(constant) == 0:  # an odd activation: what is left is an average that fluctuates
            own = found[f"h[{layer},0,0]"]
            assert str(own.n_power) == "-1/2" and own.mean.random
            agree(own.mean.value, 0)
        else:
            agree(constant.value, found[f"h[{layer},0,0]"].mean)
    form = non_centered_step(act, depth, A, B, eta=0.5, u=u)
    near(form.f, found["f[1,1]"])
    for layer, mean in enumerate(form.means, 2):
        agree(mean.value, found[f"h[{layer},1,1]"].mean)
    last = found[f"h[{depth},1,1]"]
    square = float(form.means[-1]) ** 2 + float(form.spread) ** 2
    assert last.second_moment.value == pytest.approx(square, rel=1e-2)
    for layer, entry in enumerate(form.entries, 3):
        moved = float(entry) * found[f"x[{layer - 1},1,1]"].mean.value
        assert found[f"dW_x[{layer},1,1]"].mean.value == pytest.approx(moved, rel=1e-2)


@pytest.mark.parametrize(("act", "depth"), [("relu", 3), ("tanh", 2)])
def test_S0_31_bias_step(act: str, depth: int) -> None:
    """f_1 at the mean 0 of the initial bias of the output: f_1 less that bias is a number."""
    program = trained(depth, act, "ip-bias", 1.5, bias="all", watch=("x",))

    def more(t: tp.Tracer) -> None:
        t.output("change", t["f[1,1]"] - t["f[0,1]"])
        for layer in range(1, depth + 1):
            t.output(f"kappa[{layer}]", t.inner(t[f"x[{layer},0,0]"], t[f"x[{layer},1,1]"]))

    found = limit(tp.extend(program, more), "change", "kappa*", "x[2,0,0]")
    form = bias_step(act, depth, A, B, eta=1.5)
    agree(form.f.value, found["change"])
    for layer, kappa in enumerate(form.kappas, 1):
        agree(kappa.value, found[f"kappa[{layer}]"])
    agree(bias_start(act, depth).x[0].value, found["x[2,0,0]"].second_moment)


def test_S0_12_tilde_variances() -> None:
    """The sizes of the first pass of IP without their powers of the width."""
    program = trained(3, "gelu", "ip-llr", 1.0, watch=("h", "dh"))
    found = limit(program, "h[*,0,0]", "dh[*,0,0]")
    sizes = tilde_variances("gelu", 3, 1.45)
    for layer in (1, 2, 3):
        near(sizes.h[layer - 1], found[f"h[{layer},0,0]"].second_moment)
        near(sizes.dh[layer - 1], found[f"dh[{layer},0,0]"].second_moment)


def size(table: tp.Orders, name: str) -> str:
    return table[name].text


@pytest.mark.parametrize(
    ("act", "p", "name"),
    [("relu", 1, "ip-llr"), ("relu^2", 2, "naive-ip"), ("relu", 1, "mup")],
)
def test_S0_13_14_15_exponents_of_the_first_step(act: str, p: int, name: str) -> None:
    """Exponents of the first pass and of the first update, as derived from the program."""
    rule = lookup(name).exponents(3, 0)
    table = tp.orders(trained(3, act, name, 1.0, watch=("h", "x", "dh", "dx", "dW_x")))
    found = first_pass(rule.a, p)
    for layer in (1, 2, 3):
        assert size(table, f"h[{layer},0,0]") == str(found.h[layer - 1])
        assert size(table, f"x[{layer},0,0]") == str(found.x[layer - 1])
        assert size(table, f"dh[{layer},0,0]") == str(found.dh[layer - 1])
        assert size(table, f"dx[{layer},0,0]") == str(found.dx[layer - 1])
    assert size(table, "f[0,0]") == str(found.f)
    assert size(table, "dW_x[1,1,1]") == str(first_updates(rule.a, rule.c, p)[0])


@pytest.mark.parametrize(("act", "p"), [("relu", 1), ("relu^2", 2)])
def test_S0_15_16_required_rates_are_those_that_solve_finds(act: str, p: int) -> None:
    found = tp.solve(tp.MLP(3, act, bias="first"), "naive-ip", steps=2, verify=False)
    a = (0, 1, 1, 1)
    assert found.steps[0].c == tuple(str(c) for c in first_rates(a, p))
    assert found.steps[1].c == tuple(str(c) for c in later_rates(a))


@pytest.mark.parametrize("depth", [2, 3, 4])
def test_S0_17_rates_of_naive_ip(depth: int) -> None:
    table = tp.orders(trained(depth, "relu", "naive-ip", 1.0, watch=("dW_x",)))
    rates = naive_rates(depth)
    for layer, rate in enumerate((*rates.updates, rates.output), 1):
        assert size(table, f"dW_x[{layer},1,1]") == str(rate)
    assert size(table, "f[1,1]") == str(rates.f)
