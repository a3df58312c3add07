"""Contributions of updates: their names, their place in the program, and what they add up to."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy_run import draw, run

import tpcalc as tp
from tpcalc.errors import ProgramError
from tpcalc.exponents import Ex, as_ex
from tpcalc.functions import Fn, Var
from tpcalc.passes.template import Template
from tpcalc.passes.unroll import Schedule, unroll
from tpcalc.program.base import references
from tpcalc.program.family import Mark
from tpcalc.program.nodes import Data, Family, Input, Kind, LinComb, Moment, Nonlin, Scale
from tpcalc.program.program import Builder, Program, prune
from tpcalc.results import Name
from tpcalc.training.parameterization import with_rates
from tpcalc.training.parameterizations import lookup

DATA = tp.Samples(((0.6, -0.3, 0.5), (0.1, 0.7, -0.2)), ((1.0,), (0.5,)))
CLASSES = tp.Samples(((0.6, -0.3, 0.5), (0.1, 0.7, -0.2)), ((1.0, 0.0, 0.0), (0.0, 0.0, 1.0)))
QUERY = (0.3, 0.1, 0.9)
WATCH = ("h", "x", "dh", "dx")


def training(depth: int = 2, bias: str = "none", param: Any = "mup", **settings: Any) -> Program:
    given: dict[str, Any] = {"steps": 2, "batch": 2, "queries": [QUERY], "watch": WATCH}
    given.update(settings)
    return tp.train(tp.MLP(depth, "tanh", bias=bias), param, given.pop("data", DATA), **given)


def names(program: Program, kind: str) -> set[str]:
    return {name for name, _ in program.outputs if name.startswith(f"{kind}[")}


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize(("bias", "biased"), [("none", 0), ("first", 1), ("all", None)])
def test_names_and_counts(depth: int, bias: str, biased: int | None) -> None:
    found = training(depth, bias, watch=("dW_x", "dB"))
    layers, steps, inputs = range(1, depth + 2), (1, 2), range(3)
    wanted = {f"dW_x[{layer},{t},{i}]" for layer in layers for t in steps for i in inputs}
    assert names(found, "dW_x") == wanted
    with_bias = range(1, (depth + 1 if biased is None else biased) + 1)
    assert names(found, "dB") == {f"dB[{layer},{t}]" for layer in with_bias for t in steps}
    assert not names(found, "h")


def test_with_several_outputs_the_last_layer_has_one_for_each() -> None:
    found = training(2, "all", data=CLASSES, loss="xent", watch=("dW_x", "dB"))
    last = {f"dW_x[3,{t},{i},{k}]" for t in (1, 2) for i in range(3) for k in range(3)}
    assert {name for name in names(found, "dW_x") if Name.tabled(name).number == 3} == last
    assert {f"dB[3,{t},{k}]" for t in (1, 2) for k in range(3)} < names(found, "dB")
    keys = {(Name.tabled(name).what, Name.tabled(name).output) for name in last}
    assert keys == {("dW_x", 0), ("dW_x", 1), ("dW_x", 2)}


@pytest.mark.parametrize("param", ["mup", "ip-bias", "ip-non-centered"])
def test_they_are_left_out_unless_asked_for(param: str) -> None:
    """Without them the program is what remains when they are taken out again."""
    default = tp.train(tp.MLP(3, "tanh", bias="all"), param, DATA)
    assert not names(default, "dW_x") and not names(default, "dB") and names(default, "dh")
    for samples in ({"batch": 1, "queries": ()}, {"batch": 2, "queries": [QUERY]}):
        plain = training(3, "all", param, **samples)
        asked = training(3, "all", param, watch=(*WATCH, "dW_x", "dB"), **samples)
        kept = tuple(item for item in asked.outputs if not item[0].startswith(("dW_x", "dB")))
        rest = prune(Program(asked.dims, asked.nodes, kept))
        assert len(rest.nodes) == len(plain.nodes) < len(asked.nodes)
        if samples["batch"] == 1:
            assert rest == plain


@pytest.mark.parametrize("param", ["mup", "ip-bias"])
def test_no_bit_of_the_other_outputs_changes(param: str) -> None:
    plain, asked = (
        training(3, "all", param),
        training(3, "all", param, watch=(*WATCH, "dW_x", "dB")),
    )
    inputs = draw(plain, 16, np.random.default_rng(5))
    one, two = run(plain, 16, inputs), run(asked, 16, inputs)
    assert set(one) < set(two)
    for name, value in one.items():
        assert np.array_equal(value, two[name]), name


def above(program: Program, ref: int) -> set[int]:
    """What a node is computed from, itself included."""
    found, stack = {ref}, [ref]
    while stack:
        for other in references(program.nodes[stack.pop()]):
            if other not in found:
                found.add(other)
                stack.append(other)
    return found


@pytest.mark.parametrize("bias", ["none", "all"])
def test_a_contribution_comes_before_what_it_is_part_of(bias: str) -> None:
    """Everything that needs the new weights of a layer beyond the start comes after it."""
    program = training(3, bias, param="ip-bias", watch=("h", "dW_x", "dB"))
    for name in sorted(names(program, "dW_x")):
        key = Name.tabled(name)
        end = "f[{0},{1}]" if key.number == 4 else f"h[{key.number},{{0}},{{1}}]"
        own, target = program.ref(name), program.ref(end.format(key.step, key.input))
        assert own < target
        if bias == "all":
            assert program.ref(f"dB[{key.number},{key.step}]") < target
        for i in range(3):
            for layer in range(key.number or 0, 4):
                assert own < program.ref(f"h[{layer},{key.step},{i}]")
            assert own < program.ref(f"f[{key.step},{i}]")
        # Nothing that the layer's value is computed from adds the same terms up before it.
        near = {own, *references(program.nodes[own])}
        parts = {
            vector
            for ref in near
            if isinstance(node := program.nodes[ref], LinComb)
            for vector in node.vectors
        }
        mine = above(program, own)
        sums = [
            ref
            for ref in above(program, target) - mine
            if isinstance(node := program.nodes[ref], LinComb) and parts.intersection(node.vectors)
        ]
        assert sums and all(own < ref for ref in sums)


def test_the_output_bias_moves_after_its_contribution() -> None:
    program = training(2, "all", param="ip-bias", watch=("dB",))
    for t in (1, 2):
        own = program.ref(f"dB[3,{t}]")
        moved = set(references(program.nodes[own]))
        readers = [
            ref
            for ref in above(program, program.ref(f"f[{t},0]"))
            if ref != own
            and program.types[ref].kind is Kind.SCALAR
            and moved <= set(references(program.nodes[ref]))
        ]
        assert readers and own < min(readers)


def test_free_learning_rates_pass_through() -> None:
    free = with_rates(
        lookup("ip:0"),
        lambda layer, t: Ex.symbol(f"c{layer}_{t}"),
        lambda layer, t: Ex.symbol(f"e{layer}_{t}"),
    )
    program = training(2, "all", free, watch=("dW_x", "dB"), batch=1)
    assert program.symbols == {
        f"{kind}{layer}_{t}" for kind in "ce" for layer in (1, 2, 3) for t in (0, 1)
    }
    for layer in (1, 2, 3):
        for t in (1, 2):
            for name, kind in ((f"dW_x[{layer},{t},0]", "c"), (f"dB[{layer},{t}]", "e")):
                own = {
                    symbol
                    for ref in above(program, program.ref(name))
                    if isinstance(node := program.nodes[ref], Scale)
                    for symbol in node.n_power.symbols
                }
                assert f"{kind}{layer}_{t - 1}" in own
    numbers = {symbol: Fraction(-1) for symbol in program.symbols}
    table = tp.simulate(program, [32], seeds=1, values=numbers)
    fixed = training(2, "all", "ip:-1", watch=("dW_x", "dB"), batch=1)
    for mine, other in zip(table.rows, tp.simulate(fixed, [32], seeds=1).rows, strict=True):
        assert mine.name == other.name
        assert mine.values == pytest.approx(other.values, rel=1e-12)


def test_a_layer_whose_gradient_is_0_has_none() -> None:
    program = tp.train(
        tp.MLP(2, lambda z: 0 * z + 1), "mup", DATA, steps=1, watch=("dW_x",), batch=1
    )
    assert names(program, "dW_x") == {"dW_x[3,1,0]"}


def test_without_updates_there_are_none() -> None:
    assert not names(training(2, "all", steps=0, watch=("dW_x", "dB")), "dW_x")


def hidden(target: str) -> tuple[Template, Schedule]:
    """A template in which the contribution of u is asked of a node that is not linear in it."""
    builder = Builder()
    data = builder.add(Data("x[0]", ()))
    u = builder.add(Input(Family("u", ("n",), mark=Mark("1", "input", 1))))
    h = builder.add(LinComb((Fraction(1),), (data,), (u,)))
    x = builder.add(Nonlin(Fn(Var(0) ** 2 + Var(0), 1), (h,)))
    f = builder.add(Moment(Fn(Var(0) * Var(1), 2), (x, u)))
    twice = builder.add(Moment(Fn(Var(0) ** 2 * Var(1), 2), (u, x)))
    square = builder.add(Moment(Fn(Var(0) ** 2, 1), (h,)))
    builder.output("f", f)
    builder.output("W_x[1]", {"x": x, "f": f, "square": square, "twice": twice}[target])
    template = Template(builder.finish(), ("x[0]",))
    assert [part.parameters for part in template.contributions] == [{u}]
    rows = (((1.0,),), ((1.0,),))
    schedule = Schedule(
        rows, rows, (), (Fn(Var(0), 1).expr * 0 + 1,), lambda mark, t: (1, as_ex(0))
    )
    return template, schedule


@pytest.mark.parametrize("target", ["x", "square", "twice"])
def test_what_is_not_linear_has_no_contribution(target: str) -> None:
    with pytest.raises(ProgramError, match="not a linear function of one updated"):
        unroll(*hidden(target))


def test_what_a_parameter_is_multiplied_with_is_that_of_now() -> None:
    """f = E[x u] with x = u^2 + u: the contribution to this use of u is E[x_1 (u_1 - u_0)]."""
    template, schedule = hidden("f")
    program = unroll(template, schedule).cells
    inputs = draw(program, 5, np.random.default_rng(5))
    found, (u,) = run(program, 5, inputs), inputs.values()
    moved = -((u**2 + u) + u * (2 * u + 1)) / 5
    now = (u + moved) ** 2 + u + moved
    assert found["f[1,0]"] == pytest.approx(np.mean(now * (u + moved)), rel=1e-9)
    assert found["dW_x[1,1,0]"] == pytest.approx(np.mean(now * moved), rel=1e-9)


@pytest.mark.parametrize("residual", [False, True])
def test_numbers_in_front_of_weights_are_in_their_contributions(residual: bool) -> None:
    """h_1 = 2 W_0 x_1 + 3 b_0 + dW_x + dB, or a third of it beside what passes the block by."""
    net: Any = tp.MLP(2, "tanh", bias="all", weight_variance=4, bias_variance=9)
    if residual:
        net = tp.ResNet(3, "tanh", alpha=1, weight_variance=4, bias_variance=9)
    program = tp.train(net, "naive-ip", DATA, steps=1, batch=2, watch=("h", "x", "dW_x", "dB"))
    inputs = draw(program, 20, np.random.default_rng(5))
    found = run(program, 20, inputs)
    powers = lookup("naive-ip").exponents(2)
    weight, bias = (20.0 ** -float(e[1].constant or 0) for e in (powers.a, powers.bias_a))
    for i in range(2):
        start = 2 * weight * inputs["W2"] @ found[f"x[1,1,{i}]"] + 3 * bias * inputs["b2[0]"]
        start = found[f"h[1,1,{i}]"] + start / 3 if residual else start
        moved = found[f"dW_x[2,1,{i}]"] + found["dB[2,1]"]
        np.testing.assert_allclose(found[f"h[2,1,{i}]"] - start, moved, rtol=1e-9, atol=1e-15)
        assert np.max(np.abs(found[f"dW_x[2,1,{i}]"])) > 1e-9 < np.max(np.abs(found["dB[2,1]"]))
