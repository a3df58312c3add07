"""Limits and exponents of entrywise optimizers: the cases P and O, and a zero readout."""

from __future__ import annotations

from typing import Any

import pytest
from agree import agree

import tpcalc as tp
from tpcalc.results import Estimate, Method

INPUTS = [
    (1, 0.4), (-0.5, 1.1), (0.8, -0.9), (0.3, 1), (-0.9, -0.4), (1.2, 0.2),
    (0.1, -1.3), (-0.7, 0.8), (0.5, 0.5), (-1.1, 0.3), (0.9, -0.2), (0.2, 0.6),
]  # fmt: skip
TARGETS = [1, -0.6, 0.5, -0.3, 0.8, 0.2, -0.7, 0.4, 0.6, -0.2, 0.3, -0.5]
DATA = tp.Samples(INPUTS, TARGETS)
QUERY = (0.6, 0.7)
EPS = {
    "input": {"eps": "0.1 n^-1"},
    "hidden": {"eps": "0.1 n^(-3/2)"},
    "readout": {"eps": "0.1 n^-1"},
}
DECAY = {
    "input": {"decay": "1/3"},
    "hidden": {"decay": "1/3 n^(1/2)"},
    "readout": {"decay": "1/3"},
}
# Outputs at the query after 1, 2, 3 steps, with their errors: f = v x^L / n, rates eta, eta / n in
# the units of hidden weights, eta; eta = .3 (tanh), .2 (ReLU).
P = {
    "P1": ("sign", 2, "tanh", 1, {}, (0.30896, 8e-5), (0.21078, 19e-5), (0.23318, 26e-5)),
    "P2": ("adam", 2, "tanh", 1, {}, (0.30896, 8e-5), (0.36106, 11e-5), (0.38596, 16e-5)),
    "P3": ("sign", 3, "tanh", 1, {}, (0.29681, 5e-5), (0.18584, 15e-5), (0.24707, 40e-5)),
    "P4": ("adam", 3, "tanh", 1, {}, (0.29681, 5e-5), (0.31868, 13e-5), (0.32132, 22e-5)),
    "P5": ("sign", 2, "relu", 1, {}, (0.12549, 7e-5), (0.06641, 13e-5), (0.10811, 14e-5)),
    "P6": ("adam", 2, "relu", 1, {}, (0.12549, 7e-5), (0.16362, 12e-5), (0.19569, 16e-5)),
    "P7": ("sign", 3, "relu", 1, {}, (0.09704, 6e-5), (0.04389, 13e-5), (0.08493, 17e-5)),
    "P8": ("adam", 3, "relu", 1, {}, (0.09704, 6e-5), (0.12167, 11e-5), (0.14731, 12e-5)),
    "P9": ("adam", 2, "tanh", 1, EPS, (0.25342, 5e-5), (0.32308, 6e-5), (0.36740, 8e-5)),
    "P10": ("adamw", 2, "tanh", 1, DECAY, (0.27535, 7e-5), (0.26040, 9e-5), (0.22330, 11e-5)),
    "P11": ("sign", 2, "tanh", 4, {}, (0.04559, 16e-5), (0.01366, 61e-5), (0.13335, 36e-5)),
    "P12": ("adam", 3, "tanh", 4, {}, (0.05797, 39e-5), (0.03458, 41e-5), (0.06442, 42e-5)),
}
SLOW = {"P2", "P4", "P6", "P8", "P9", "P10", "P11", "P12"}


def run(optimizer: str, depth: int, act: str, batch: int, groups: Any, **more: Any) -> tp.Training:
    given = {"steps": 3, "lr": 0.3 if act == "tanh" else 0.2, "watch": (), "queries": [QUERY]}
    net = tp.MLP(depth, act)
    return tp.Training(
        net, "mup", DATA, optimizer=optimizer, batch=batch, groups=groups, **{**given, **more}
    )


@pytest.mark.parametrize(
    "case", [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in P]
)
def test_limits_of_outputs(case: str) -> None:
    optimizer, depth, act, batch, groups, *outputs = P[case]
    samples = 2**10 if case in SLOW else 2**12
    limit = tp.limit(
        run(optimizer, depth, act, batch, groups).program, samples=samples, max_samples=samples
    )
    assert limit[f"f[0,{batch}]"].value == 0
    for step, (value, error) in enumerate(outputs, start=1):
        found = limit[f"f[{step},{batch}]"]
        agree(found, Estimate(value, error, Method.PARTICLES))
        assert found.stderr < 2e-3


def exponents(orders: tp.Orders, depth: int, step: int) -> list[str]:
    names = [f"dW_x[{layer},{step},1]" for layer in range(1, depth + 2)]
    names += [f"dB[{layer},{step}]" for layer in range(1, depth + 2)]
    return [str(orders[name]) for name in [*names, f"h[{depth},{step},1]", f"f[{step},1]"]]


def powers(*values: str) -> list[str]:
    return [f"n**({value})" for value in values]


# For each recipe what updates of weights and biases contribute, features and output after a step:
# the largest order, which is that of all orders in the learning rate (O21).
RECIPES = {
    "O3": ("mup", "sign", powers(*"00000000", "0", "0")),
    "O4": ("mup", "lion", powers(*"00000000", "0", "0")),
    "O5": ("mup", "adam", powers(*"00000000", "0", "0")),
    "O6": ("mup", "rmsprop", powers(*"00000000", "0", "0")),
    "O7": ("mup", "adagrad", powers(*"00000000", "0", "0")),
    "O15": ("standard", "sign", powers(*"0123", *"0000", "2", "3")),
    "O16": ("standard:1", "sign", powers("-1", *"000", *["-1"] * 4, "0", "1/2")),
    "O17": ("standard", "adam", powers(*"0123", *"0000", "2", "3")),
    "O18": ("standard:1", "adam", powers("-1", *"000", *["-1"] * 4, "0", "1/2")),
    "O30": ("ntk", "adam", powers(*["-1/2"] * 3, "0", *["-1/2"] * 3, "0", "0", "0")),
}


# Settings by parameter: eps in the units of W = n^(-a) w is n^(-a) eps in those of w.
LARGE = {
    "input": {"eps": 1000},
    "hidden": {"eps": "1000 n^(-1/2)"},
    "readout": {"eps": "1000 n^-1"},
    "bias": {"eps": 1000},
}
OWN = {
    "O22": ("mup", "adam", {**EPS, "bias": {"eps": "0.1 n^-1"}}, powers(*"00000000", "0", "0")),
    "O23": ("mup", "adam", LARGE, powers(*["-1"] * 3, "0", *["-1"] * 3, "0", "0", "0")),
    "O31": ("ac:0,1/2,1/2;0,1/2,1/2;0,0,0;0,0,0", "adam", (), powers(*"00000000", "0", "1/2")),
    "O32": ("mup", "adam", {"bias": {"power": -1}}, powers(*"0000", *["-1"] * 4, "0", "0")),
}


@pytest.mark.parametrize("case", [*RECIPES, *OWN])
def test_exponents_after_a_step(case: str) -> None:
    rule, optimizer, expected = RECIPES[case] if case in RECIPES else (*OWN[case][:2], OWN[case][3])
    program = tp.train(
        tp.MLP(3, "relu", bias="all"),
        rule,
        DATA,
        steps=1,
        optimizer=optimizer,
        groups=OWN[case][2] if case in OWN else (),
        lr=0.1,
        loss="linear",
        queries=[QUERY],
        watch=("h", "dW_x", "dB"),
    )
    assert exponents(tp.orders(program), 3, 1) == expected


@pytest.mark.parametrize("batch", [1, 2])
def test_orthogonal_inputs(batch: int) -> None:
    """O36, O37: what an update adds at an input that is orthogonal to all that were trained on."""
    rows = [(1, 0, 0), (0, 1, 0)][:batch] * 2
    data = tp.Samples(rows, [1] * len(rows))
    query = [(0, 0, 1)]
    program = tp.train(
        tp.MLP(2, "tanh"),
        "mup",
        data,
        optimizer="sign",
        loss="linear",
        batch=batch,
        queries=query,
        watch="dW_x",
    )
    orders = tp.orders(program)
    assert str(orders["dW_x[2,1,0]"]) == "n**(0)"
    assert str(orders[f"dW_x[2,1,{batch}]"]) in ("n**(-1/2)", "O(n**(-1/2))")
    assert str(orders[f"dW_x[1,1,{batch}]"]) == "0"


@pytest.mark.parametrize("optimizer", ["momentum", "nesterov"])
def test_momentum_has_the_exponents_of_gradient_descent(optimizer: str) -> None:
    """O1, O2: nothing but numbers differs."""

    def found(name: str) -> dict[str, object]:
        record = run(name, 3, "relu", 1, {}, steps=2, watch=("h", "dW_x"))
        orders = tp.orders(record.program)
        return {name: orders[name].n for name, _ in record.program.outputs}

    assert found(optimizer) == found("sgd")


@pytest.mark.slow
def test_a_readout_that_starts_at_zero() -> None:
    """O29: nothing moves at first but the readout; Adam's second step is .74414 of a sign step."""

    @tp.network
    def net(t: tp.Tracer, x: Any) -> Any:
        hidden = [t.linear(t.n, "in"), t.linear(t.n, t.n)]
        for layer in hidden:
            x = tp.tanh(layer(x))
        return t.linear(t.outputs, t.n, starts=(0, 1))(x)

    program = tp.train(
        net, "mup", DATA, steps=2, optimizer="adam", lr=0.25, loss="linear", watch=("dW_x", "h")
    )
    orders = tp.orders(program)
    assert [str(orders[f"dW_x[W{layer},1,0]"]) for layer in (1, 2)] == ["0", "0"]
    assert [str(orders[f"dW_x[W{layer},2,0]"]) for layer in (1, 2)] == powers("0", "0")
    xi = [(1, 0.4), (-0.5, 1.1), (0.8, -0.9)]
    limit = tp.limit(program)
    # Each entry of W^1 moved by .74414 lr sign(xi_j) sign(dh): times the inputs, squared.
    moved = 0.25 * 0.744141 * sum(abs(a) / a * b for a, b in zip(xi[1], xi[2], strict=True))
    agree(limit["dW_x[W1,2,0]"].second_moment, moved**2, rounding=1e-6)


@tp.network
def normed(t: tp.Tracer, x: Any) -> Any:
    first, second = t.linear(t.n, "in", bias=True), t.linear(t.n, t.n, bias=True)
    x = tp.tanh(tp.layers.layer_norm(second(tp.tanh(first(x)))))
    return t.linear(t.outputs, t.n, bias=True)(x)


# Exponents of the maximal recipe by role: b of W at the start, and c of its learning rates.
TABLE = {
    "input": ("0", "-1", "0"),
    "hidden": ("1/2", "0", "1"),
    "readout": ("1", "1", "1"),
    "bias": ("0", "-1", "0"),
    "bias of the output": ("0", "0", "0"),
}
NETWORKS = {
    "mlp": tp.MLP(2, "relu", bias="all"),
    "resnet": tp.ResNet(2, "relu"),
    "rnn": tp.RNN(2, "tanh"),
    "layer norm": normed,
}


@pytest.mark.parametrize("optimizer", ["sgd", "momentum", "adam", "sign", "lion", "adamw"])
@pytest.mark.parametrize("name", NETWORKS)
def test_S1_6_solved_rates_are_the_maximal_recipe(name: str, optimizer: str) -> None:
    """Table 3.1, in the gauge of the project and in that of stored weights."""
    found = tp.solve(NETWORKS[name], "mup", steps=2, optimizer=optimizer, verify=False)
    linear = optimizer in ("sgd", "momentum")
    last = found.stored[-1].name
    for own in found.stored:
        output = own.role == "bias" and own.name == last
        b, *c = TABLE["bias of the output" if output else own.role]
        assert (own.b, own.c) == (b, (c[0 if linear else 1],) * 2)
    hidden = ("1/2",) * (len(found.steps[0].c) - 2)
    for step in found.steps:
        assert step.c == (("-1",) * len(step.c) if linear else ("0", *hidden, "0"))
        if step.bias_c:
            assert step.bias_c == (("-1", "-1", "0") if linear else ("0", "0", "0"))


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
@pytest.mark.parametrize("name", ["mlp", "resnet", "rnn"])
def test_solved_multipliers_are_the_maximal_recipe(name: str, optimizer: str) -> None:
    net = tp.MLP(3, "tanh") if name == "mlp" else NETWORKS[name]
    found = tp.solve(net, "ntk", steps=2, optimizer=optimizer, multipliers=True, verify=False)
    for own in found.stored:
        b, *c = TABLE[own.role]
        assert (own.b, own.c) == (b, (c[optimizer == "adam"],) * 2)


def zero_readout(t: tp.Tracer, x: Any) -> Any:
    for layer in [t.linear(t.n, "in"), t.linear(t.n, t.n)]:
        x = tp.tanh(layer(x))
    return t.linear(t.outputs, t.n, starts=(0, 1))(x)


WIDE = tp.MLP(3, "relu", bias="all")
FIXED_EPS = {  # one number beside gradients by W = n^(-a) w
    "hidden": {"eps": "1000 n^(-1/2)"},
    "readout": {"eps": "1000 n^-1"},
}
# The words of weights, and those of biases; "*" for all layers.
WORDS: dict[str, tuple[Any, str, str, Any, str, str]] = {
    "O1": (WIDE, "mup", "sgd", {}, "moves", "moves"),
    "O5": (WIDE, "mup", "adam", {}, "moves", "moves"),
    "O12": (WIDE, "standard:1", "sgd", {}, "frozen frozen frozen moves", "frozen"),
    "O16": (WIDE, "standard:1", "sign", {}, "frozen moves moves moves", "frozen"),
    "O23": (
        WIDE,
        "mup",
        "adam(eps=1000)",
        FIXED_EPS,
        "frozen frozen frozen moves",
        "frozen frozen frozen moves",
    ),
    "O29": (tp.network(zero_readout), "mup", "adam", {}, "later later moves", ""),
    "O29, gradient descent": (tp.network(zero_readout), "mup", "sgd", {}, "later later moves", ""),
    "O30": (WIDE, "ntk", "adam", {}, "frozen frozen frozen moves", "frozen frozen frozen moves"),
    "O32": (WIDE, "mup", "adam", {"bias": {"power": -1}}, "moves", "frozen"),
    "ntk": (WIDE, "ntk", "sgd", {}, "frozen frozen frozen moves", "frozen frozen frozen moves"),
    "stationary": (tp.MLP(3, "relu"), "naive-ip", "sgd", {}, "frozen", ""),
    "a small readout": (
        tp.MLP(2, "relu"),
        "ac:0,1/2,2;0,1/2,0",
        "adam",
        {},
        "cut off,cut off,frozen",
        "",
    ),
    "a small readout, gradient descent": (
        tp.MLP(2, "relu"),
        "ac:0,1/2,2;-1",
        "sgd",
        {},
        "frozen",
        "",
    ),
    "small features": (
        tp.MLP(2, "tanh"),
        "ac:1,1/2,1;0,1/2,0",
        "adam",
        {},
        "frozen,cut off,cut off",
        "",
    ),
    "no rate": (tp.MLP(2, "relu"), "mup", "sgd", {"hidden": {"lr": 0}}, "moves 0 moves", ""),
}


LONG = {"O23", "O30", "O32", "ntk", "a small readout", "small features", "O12"}


@pytest.mark.parametrize(
    "case", [pytest.param(name, marks=[pytest.mark.slow] * (name in LONG)) for name in WORDS]
)
def test_what_becomes_of_each_parameter(case: str) -> None:
    net, rule, optimizer, groups, weights, biases = WORDS[case]
    found = tp.check(net, rule, optimizer=optimizer, groups=groups, lr=0.1)

    def words(text: str) -> list[str]:
        parts = text.split(",") if "," in text else text.split(" ")
        parts = ["starts later" if part == "later" else part for part in parts]
        return parts * len(found.layers) if len(parts) == 1 else parts

    assert [layer.weights for layer in found.layers] == words(weights)
    assert [layer.biases for layer in found.layers] == words(biases)


def test_one_step_does_not_tell_why_a_contribution_vanishes() -> None:
    found = tp.check(tp.network(zero_readout), "mup", optimizer="adam", lr=0.1, steps=1)
    assert [layer.weights for layer in found.layers] == ["vanishes", "vanishes", "moves"]


@pytest.mark.slow
def test_decay_beside_updates() -> None:
    """O10: n^-1 where the rates that decay is multiplied with are those of stored weights."""

    def lines(optimizer: str, groups: Any) -> list[str]:
        run = tp.Training(tp.MLP(3, "relu"), "mup", optimizer=optimizer, lr=0.1, groups=groups)
        return [note for note in tp.check(run).notes if note.startswith("decay")]

    beside = "in a step, beside first updates that contribute order one"
    assert lines("adamw(decay=0.1)", {}) == [
        f"decay takes a share of order one of w[1] and w[4] {beside}",
        f"decay takes a share of n^(-1/2) of w[2] and w[3] {beside}",
    ]
    assert lines("adamw(decay=0.1)", {"hidden": {"decay": "0.1 n^(1/2)"}}) == [
        f"decay takes a share of order one of w[1], w[2], w[3] and w[4] {beside}"
    ]
    stored = {"hidden": {"decay": "0.1 n^(-1/2)"}, "readout": {"decay": "0.1 n^-1"}}
    assert lines("adamw(decay=0.1)", stored) == [
        f"decay takes a share of order one of w[1] {beside}",
        f"decay takes a share of n^(-1) of w[2], w[3] and w[4] {beside}",
    ]
    assert lines("momentum(decay=0.1 n^-1)", {}) == [
        f"decay takes a share of order one of w[1], w[2], w[3] and w[4] {beside}"
    ]
    assert lines("adamw", {}) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("eps", "regime"),
    [("1", "dominant"), ("n^-2", "negligible"), ("0.1 n^-1", "critical")],
)
def test_eps_beside_gradients(eps: str, regime: str) -> None:
    """O22 to O24: gradients by w of input and readout weights are n^-1."""
    adam = f"adam(eps={eps})"
    found = tp.check(tp.MLP(2, "tanh"), "mup", optimizer=adam, lr=0.1, steps=2, verify=False)
    (note,) = [note for note in found.notes if "w[1] and w[3]" in note]
    assert note.startswith("eps beside the gradients by w[1] and w[3]: it is " + regime)
