"""Tangent programs: against autograd weight for weight, and at finite width against their limit."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy_run import draw, is_input, key, run

import tpcalc as tp
from tpcalc.activations.entries.tanh import TANH
from tpcalc.errors import NotDifferentiable, ProgramError
from tpcalc.exponents import Ex, as_ex
from tpcalc.functions import Fn, Par, Var
from tpcalc.integrals.numeric import Numeric
from tpcalc.passes.tangent import DATA, TangentProgram, tangent_of_network, tangent_of_program
from tpcalc.passes.template import Template
from tpcalc.program.base import renumbered
from tpcalc.program.family import Mark
from tpcalc.program.nodes import (
    Data,
    Family,
    Input,
    Kind,
    LinComb,
    Moment,
    Nonlin,
    Ref,
    Scale,
    members,
)
from tpcalc.program.program import Builder, Program
from tpcalc.questions.kernel.entries import Entries
from tpcalc.training.parameterizations import Exponents, lookup
from tpcalc.training.written import template_of

HALF = Fraction(1, 2)
WIDTH = 11
FEATURES = 3


def tangent(
    net: Any, parameterization: str, copies: int, layers: Sequence[int] | None = None
) -> TangentProgram:
    table = lookup(parameterization).exponents(net.hidden, 0)
    template = template_of(net, lookup(parameterization), net.tokens, 1)

    def rate(mark: Mark) -> tuple[Fraction | float, Ex]:
        return Fraction(1), (table.bias_c if mark.bias else table.c)[mark.layer - 1]

    return tangent_of_network(
        template, copies, rate, lambda mark: layers is None or mark.layer in layers
    )


def drawn(program: Program, seed: int) -> dict[str, Any]:
    """Start values of a program, without those that stand for products with the data."""
    found = draw(program, WIDTH, np.random.default_rng(seed))
    return {name: value for name, value in found.items() if not name.startswith(f"{DATA}[")}


def layer_of(name: str) -> int:
    """The layer that a parameter belongs to."""
    return int(name[1 : name.index("[")] if "[" in name else name[1:])


# -- networks with explicit weights ----------------------------------------------------------


def normalised(h: Any) -> Any:
    centred = h - h.mean()
    return centred / (centred**2).mean().sqrt()


@dataclass(frozen=True)
class Scaled:
    """Weights times their powers of n."""

    weights: Mapping[str, Any]
    rule: Exponents

    def __getitem__(self, name: str) -> Any:
        powers = self.rule.bias_a if name.startswith("b") else self.rule.a
        return WIDTH ** -float(powers[layer_of(name) - 1].constant or 0) * self.weights[name]


def mlp(net: tp.MLP, w: Scaled, x: Any, act: Callable[[Any], Any]) -> list[Any]:
    weights, biases = (math.sqrt(v) for v in (net.weight_variance, net.bias_variance or 1))
    for layer in range(1, net.depth + 1):
        h = weights * (w[f"W{layer}"] @ x)
        if net.biased:
            h = h + biases * w[f"b{layer}[0]"]
        x = act(normalised(h) if net.norm == "layer" else h)
    f = w[f"W{net.depth + 1}[0]"] @ x
    return [f + w[f"b{net.depth + 1}"] if net.bias == "all" else f]


def resnet(net: tp.ResNet, w: Scaled, x: Any, act: Callable[[Any], Any]) -> list[Any]:
    weights, biases = (math.sqrt(v) for v in (net.weight_variance, net.bias_variance or 1))
    h = w["W1"] @ x
    for layer in range(2, net.hidden + 1):
        y = act(normalised(h) if net.norm == "layer" else h)
        block = weights * (w[f"W{layer}"] @ y)
        if net.biased:
            block = block + biases * w[f"b{layer}[0]"]
        alpha = Fraction(1, 2) if net.alpha is None else net.alpha
        h = h + net.depth ** -float(alpha) * block
    return [w[f"W{net.hidden + 1}[0]"] @ h]


def rnn(net: tp.RNN, w: Scaled, x: Any, act: Callable[[Any], Any]) -> list[Any]:
    state, outputs = None, []
    for token in x.reshape(net.length, -1):
        h = math.sqrt(net.input_variance) * (w["W1"] @ token)
        if net.biased:
            h = h + math.sqrt(net.bias_variance or 0) * w["b1[0]"]
        if state is not None:
            h = h + math.sqrt(net.weight_variance) * (w["W2"] @ state)
        state = act(h)
        outputs.append(w["W3[0]"] @ state)
    return outputs if net.outputs == "all" else outputs[-1:]


NETWORKS: dict[str, tuple[Any, Callable[..., Any], str]] = {
    "mlp": (tp.MLP(2, "tanh", bias="all"), mlp, "ntk"),
    "mlp-variances": (tp.MLP(2, "gelu", weight_variance=2, bias_variance=HALF), mlp, "mup"),
    "mlp-normalised": (tp.MLP(2, "gelu", weight_variance=2, norm="layer"), mlp, "ntk"),
    "resnet": (tp.ResNet(3, "tanh", weight_variance=2, bias_variance=HALF), resnet, "ntk"),
    "resnet-normalised": (tp.ResNet(2, "tanh", alpha=1, norm="layer"), resnet, "mup"),
    "rnn": (tp.RNN(3, "tanh", weight_variance=2, bias_variance=HALF), rnn, "ntk"),
    "rnn-all": (tp.RNN(2, "gelu", input_variance=2, outputs="all"), rnn, "mup"),
}


@pytest.mark.torch
@pytest.mark.parametrize("part", ["all layers", "one layer"])
@pytest.mark.parametrize("name", list(NETWORKS))
def test_tangent_of_a_network_equals_autograd(name: str, part: str) -> None:
    """Data enter through W x alone; the rest of the first layer's part is a Gram matrix."""
    torch = pytest.importorskip("torch")
    acts = {"tanh": torch.tanh, "gelu": torch.nn.functional.gelu}
    net, forward, parameterization = NETWORKS[name]
    layers = None if part == "all layers" else [1] if name == "resnet" else [2]
    rule = lookup(parameterization).exponents(net.hidden, 0)
    found = tangent(net, parameterization, 2, layers)
    tokens = found.tokens
    inputs = drawn(found.program, seed=4)
    rng = np.random.default_rng(9)
    data = rng.standard_normal((2, tokens, FEATURES))
    first = rng.standard_normal((WIDTH, FEATURES))
    given = {
        f"{DATA}[{i * tokens + p}]": first @ data[i, p] for i in range(2) for p in range(tokens)
    }
    ours = run(found.program, WIDTH, {**inputs, **given})
    weights = {
        key: torch.tensor(value, dtype=torch.float64, requires_grad=True)
        for key, value in {**inputs, "W1": first}.items()
    }
    flat = torch.tensor(data.reshape(2, -1))
    outputs = [forward(net, Scaled(weights, rule), x, acts[net.act]) for x in flat]
    trained = [key for key in weights if layers is None or layer_of(key) in layers]

    def power(key: str) -> float:
        powers = rule.bias_c if key.startswith("b") else rule.c
        return float(powers[layer_of(key) - 1].constant or 0)

    def gradients(f: Any) -> list[Any]:
        return list(
            torch.autograd.grad(
                f, [weights[key] for key in trained], retain_graph=True, materialize_grads=True
            )
        )

    for i, k, j, m in np.ndindex(2, found.outputs, 2, found.outputs):
        if i > j:
            continue
        assert ours[f"f[{i},{k}]"] == pytest.approx(outputs[i][k].item(), rel=1e-11)
        expected = sum(
            WIDTH ** -power(key) * float((a * b).sum())
            for key, a, b in zip(
                trained, gradients(outputs[i][k]), gradients(outputs[j][m]), strict=True
            )
        )
        place = f"{i},{k},{j},{m}"
        entry = ours[f"ntk[{place}]"] + sum(
            ours.get(f"data[{p},{q},{place}]", 0.0) * float(data[i, p] @ data[j, q])
            for p in range(tokens)
            for q in range(tokens)
        )
        assert entry == pytest.approx(expected, rel=1e-9, abs=1e-12), place


def shared(t: tp.Tracer) -> None:
    """One matrix up, down and pooled; a random number that shifts an argument."""
    t.dim("m", 2)
    u = t.gaussian("u")
    v, w = t.gaussians(["v", "w"], cov=[[1, HALF], [HALF, 1]])
    matrix, b = t.matrix("M", "m", "n"), t.random_scalar("b")
    h = tp.n**-HALF * (matrix @ tp.tanh(u))
    g = tp.n**-HALF * (matrix.T @ tp.tanh(h * b + tp.mean(h**2)))
    t.output("first", tp.n**HALF * t.inner(v, tp.tanh(g - tp.mean(g) + u)))
    t.output("second", tp.n**HALF * tp.mean(tp.tanh(h) ** 2) * b + t.inner(w, g * v))


SHARED = tp.program(shared).build()


@pytest.mark.torch
@pytest.mark.parametrize("names", [("M", "u", "v", "w", "b"), ("M",), ("u", "b"), ("v",)])
def test_tangent_of_a_program_equals_autograd(names: Sequence[str]) -> None:
    torch = pytest.importorskip("torch")
    inputs = drawn(SHARED, 6)
    own: dict[str, int] = {}
    for ref, node in enumerate(SHARED.nodes):
        if is_input(node, Kind.VECTOR):
            own["u" if key(node) == "u[0]" else "vw"[node.index]] = ref
        elif isinstance(node, Input | Data):
            own[node.name] = ref
    found = tangent_of_program(SHARED, ["first", "second"], [own[name] for name in names])
    ours = run(found.program, WIDTH, inputs)
    (pair,) = SHARED.group.keys() - {"u"}
    keys = {"u": "u[0]", "v": f"{pair}[0]", "w": f"{pair}[1]", "M": "M", "b": "b"}
    p = {
        name: torch.tensor(inputs[key], dtype=torch.float64, requires_grad=True)
        for name, key in keys.items()
    }
    tanh, scale = torch.tanh, WIDTH**-0.5
    h = scale * (p["M"] @ tanh(p["u"]))
    g = scale * (p["M"].T @ tanh(h * p["b"] + (h**2).mean()))
    first = scale * (p["v"] @ tanh(g - g.mean() + p["u"]))
    second = WIDTH**0.5 * (tanh(h) ** 2).mean() * p["b"] + (p["w"] * g * p["v"]).mean()
    both = [
        torch.autograd.grad(f, [p[name] for name in names], retain_graph=True, allow_unused=True)
        for f in (first, second)
    ]
    for i, j in ((0, 0), (0, 1), (1, 1)):
        expected = sum(
            float((a * b).sum())
            for a, b in zip(both[i], both[j], strict=True)
            if a is not None and b is not None
        )
        assert ours[f"ntk[{i},0,{j},0]"] == pytest.approx(expected, rel=1e-9, abs=1e-12)
    assert ours["f[0,0]"] == pytest.approx(first.item(), rel=1e-11)
    assert ours["f[1,0]"] == pytest.approx(second.item(), rel=1e-11)


def test_kinds_are_left_out() -> None:
    """Without the tangent kernel there is no backward pass, without the NNGP there are no f."""
    template = template_of(tp.MLP(1, "sign"), lookup("ntk"), 1, 1)
    one = (template, 1, lambda mark: (HALF, as_ex(0)), lambda mark: True)
    forward = tangent_of_network(*one, ("nngp",))
    assert [name for name, _ in forward.program.outputs] == ["f[0,0]"]
    with pytest.raises(NotDifferentiable, match="sign"):
        tangent_of_network(*one)
    smooth = tangent(tp.MLP(1, "tanh"), "ntk", 1).program
    names = [name for name, _ in smooth.outputs]
    assert names == ["f[0,0]", "ntk[0,0,0,0]", "data[0,0,0,0,0,0]"]


def test_layers_without_a_trained_parameter() -> None:
    """A kernel of no parameters is 0, and a jump below the trained layers does no harm."""
    program = tangent(tp.MLP(1, "tanh"), "ntk", 1, layers=[]).program
    assert tp.limit(program)["ntk[0,0,0,0]"].value == 0
    readout = tangent(tp.MLP(2, "sign"), "ntk", 1, layers=[3]).program
    assert tp.limit(readout)["ntk[0,0,0,0]"].value == pytest.approx(1)


# -- inputs that meet weights ----------------------------------------------------------------

Write = Callable[[Builder, Sequence[int], Sequence[int]], int]
SLOTS = ("x[0]", "x[1]")
IID = Family.group("U", "n", (Fraction(0),) * 2)
RATES = (Fraction(3, 2), Fraction(1, 2))  # of the columns, and of the readout


def made(write: Write, group: Family, values: Sequence[Fraction] | None = None) -> Program:
    """A network of two numbers that are used as ``write`` says; a slot has no values."""
    builder = Builder()
    given = [()] * 2 if values is None else [(value,) for value in values]
    data = [builder.add(Data(name, own)) for name, own in zip(SLOTS, given, strict=True)]
    marked = replace(group, mark=Mark("1", "input", 1, RATES[0]))
    columns = [builder.add(cell) for cell in members(marked)]
    x = write(builder, data, columns)
    v = builder.add(Input(Family("v", ("n",), mark=Mark("2", "readout", 2, RATES[1]))))
    moment = builder.add(Moment(Fn(Var(0) * Var(1), 2), (v, x)))
    builder.output("f", builder.add(Scale(moment, as_ex(HALF))))
    return builder.finish()


def network(write: Write, group: Family, copies: int = 1) -> TangentProgram:
    template = Template(made(write, group), SLOTS)
    return tangent_of_network(
        template, copies, lambda mark: (mark.rate, as_ex(0)), lambda mark: True
    )


def total(builder: Builder, scalars: Sequence[int | None], vectors: Sequence[int]) -> int:
    return builder.add(LinComb((Fraction(1),) * len(vectors), tuple(scalars), tuple(vectors)))


def tanh(builder: Builder, h: int) -> int:
    return builder.add(Nonlin(Fn(TANH(Var(0)), 1), (h,)))


def tokens_added(builder: Builder, data: Sequence[int], columns: Sequence[int]) -> int:
    """Both tokens go through one column."""
    first, second = (tanh(builder, total(builder, (x,), (columns[0],))) for x in data)
    return total(builder, (None,) * 2, (first, second))


def squared(builder: Builder, data: Sequence[int], columns: Sequence[int]) -> int:
    square = builder.add(Nonlin(Fn(Par(0) ** 2, 0, 1), (), (data[0],)))
    return total(builder, (square, data[1]), (columns[0],) * 2)


def shifting(builder: Builder, data: Sequence[int], columns: Sequence[int]) -> int:
    """The input shifts an argument."""
    return builder.add(Nonlin(Fn(Var(0) + Par(0), 1, 1), (columns[0],), (data[0],)))


def on_an_image(builder: Builder, data: Sequence[int], columns: Sequence[int]) -> int:
    """The input multiplies a vector that is not a start vector."""
    image = total(builder, (None,) * 2, (columns[0], columns[0]))
    return total(builder, data, (image, image))


def own_columns(builder: Builder, data: Sequence[int], columns: Sequence[int]) -> int:
    """Two tokens with weights of their own."""
    return tanh(builder, total(builder, data, columns))


def twice(builder: Builder, data: Sequence[int], columns: Sequence[int]) -> int:
    """Every number goes through both columns."""
    first, second = (total(builder, data, (column, column)) for column in columns)
    product = Nonlin(Fn(TANH(Var(0)) * TANH(Var(1)), 2), (first, second))
    return builder.add(product)


def uneven(builder: Builder, data: Sequence[int], columns: Sequence[int]) -> int:
    """One number goes through both columns in different sums, the other through one."""
    first = total(builder, data, (columns[0], columns[0]))
    second = total(builder, (data[0], None), (columns[1], tanh(builder, first)))
    return builder.add(Nonlin(Fn(TANH(Var(0)) * Var(1) + Var(0), 2), (first, second)))


def beside(builder: Builder, data: Sequence[int], columns: Sequence[int]) -> int:
    """A column is added to its product with a number."""
    return tanh(builder, total(builder, (*data, None), (*columns, columns[1])))


def again(builder: Builder, data: Sequence[int], columns: Sequence[int]) -> int:
    """What was read off the input is multiplied with the same column."""
    h = total(builder, data, columns)
    mean = builder.add(Moment(Fn(TANH(Var(0)) ** 2, 1), (h,)))
    return tanh(builder, total(builder, (None, mean), (h, columns[0])))


@pytest.mark.parametrize("write", [tokens_added, own_columns, twice, uneven])
def test_inputs_through_one_column_or_several(write: Write) -> None:
    """The limit with Gram matrices is that of the program with the numbers written in it."""
    found = network(write, IID, copies=2)
    assert (found.tokens, found.outputs) == (2, 1)
    rows = np.array([[0.5, -1.25], [0.75, 0.5]])
    gram = rows.reshape(-1, 1) @ rows.reshape(1, -1)
    evaluated = Entries(found).at([[Numeric().number(value) for value in row] for row in gram])
    both = Builder()
    kept: dict[int, Ref] = {}
    for i, row in enumerate(rows):
        one = made(write, IID, [Fraction(value) for value in row])
        new: list[Ref] = []
        for node in one.nodes:
            if isinstance(node, Data):
                node = replace(node, name=f"{node.name}, {i}")
            new.append(both.add(renumbered(node, new.__getitem__)))
        kept[i] = new[one.ref("f")]
        both.output(f"f{i}", kept[i])
    program = both.finish()
    rates = {
        ref: node.family.mark.rate
        for ref, node in enumerate(program.nodes)
        if isinstance(node, Input) and node.family.mark is not None
    }
    told = tangent_of_program(program, ["f0", "f1"], list(rates), rates=rates)
    limit = Entries(told).at(None)
    for i, j in ((0, 0), (0, 1), (1, 1)):
        for mine, other in (
            (evaluated.nngp(i, 0, j, 0), limit.nngp(i, 0, j, 0)),
            (evaluated.ntk(i, 0, j, 0), limit.ntk(i, 0, j, 0)),
        ):
            assert mine.value == pytest.approx(other.value, rel=1e-7, abs=1e-9)
            assert abs(mine.value) > 1e-3


def refused(write: Write, group: Family) -> None:
    with pytest.raises(ProgramError, match="enters other than as a coefficient of centred"):
        network(write, group)


@pytest.mark.parametrize("write", [squared, shifting, on_an_image])
def test_data_that_are_no_coefficients_of_weights(write: Write) -> None:
    refused(write, IID)


@pytest.mark.parametrize("write", [beside, again])
def test_weights_of_the_input_that_are_used_without_it(write: Write) -> None:
    with pytest.raises(ProgramError, match="weights that are multiplied with an input are also"):
        network(write, IID)


@pytest.mark.parametrize(
    "group",
    [
        Family.group("U", "n", (HALF, Fraction(0))),
        Family.group("U", "n", (Fraction(0),) * 2, ((Fraction(1), HALF), (HALF, Fraction(1)))),
        Family.group(
            "U", "n", (Fraction(0),) * 2, ((Fraction(4), Fraction(0)), (Fraction(0), HALF))
        ),
    ],
    ids=["mean", "correlated", "variances"],
)
def test_data_on_weights_of_another_law(group: Family) -> None:
    refused(tokens_added, group)
