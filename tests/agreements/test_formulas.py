"""Formulas of networks, as they are printed: in four notations one formula, which is the network.

Every layer of ``tp.layers`` is there. What is printed is read back and computed on random numbers;
a bracket that is lost in any notation is seen.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import pytest

import tpcalc as tp
from tests.agreements.formula_reader import (
    COLUMN,
    WIDTH,
    Values,
    evaluated,
    from_html,
    from_latex,
    from_mathml,
)
from tests.block_run import named, run
from tests.numpy_run import draw
from tpcalc.networks.own import as_network
from tpcalc.passes.split import split
from tpcalc.program.nodes import Data
from tpcalc.program.program import Program
from tpcalc.study.formulas import network_formulas
from tpcalc.training.parameterizations import lookup
from tpcalc.training.written import network_program

L = tp.layers
WIDE = 12


class Body(tp.Network):
    """A map in, a layer, a readout at one token."""

    axes: ClassVar[dict[str, int]] = {"p": 4}

    def __init__(self, t: Any, make: Callable[[Any], Any]) -> None:
        self.u, self.v = t.linear(t.n, "in"), t.linear(t.outputs, t.n)
        self.layer = make(t)

    def forward(self, x: Any) -> Any:
        h = tp.tanh(self.layer(self.u(x)))
        return self.v(h.at(p=1) if "p" in h.axes else h)


class Recurrent(tp.Network):
    axes: ClassVar[dict[str, int]] = {"p": 2}

    def __init__(self, t: Any, make: Callable[[Any], Any]) -> None:
        self.layer, self.v = make(t), t.linear(t.outputs, t.n)

    def forward(self, x: Any) -> Any:
        return self.v(tp.tanh(L.recur(self.layer, x)))


class Images(tp.Network):
    axes: ClassVar[dict[str, int]] = {"y": 3, "x": 4}

    def __init__(self, t: Any) -> None:
        self.first = L.Conv(t, t.n, "in", ("y", "x"), bias=True)
        self.layer = L.Conv(t, t.n, t.n, ("y", "x"), 2, padding="none")
        self.v = t.linear(t.outputs, t.n)

    def forward(self, x: Any) -> Any:
        h = tp.tanh(self.layer(tp.relu(self.first(x))))
        return self.v(L.average_pool(h, ("y", "x")))


class Language(tp.Network):
    axes: ClassVar[dict[str, int]] = {"p": 3}

    def __init__(self, t: Any) -> None:
        self.embed, self.place = L.Embedding(t), L.Positions(t)
        self.mix = L.Attention(t, 2, causal=True)
        self.w = t.linear(t.n, t.n)

    def forward(self, x: Any) -> Any:
        h = self.place(self.embed(x))
        h = h + self.mix(L.rms_norm(h, 1))
        return self.embed.readout((h + self.w(tp.relu(h))).at(p=0))


@tp.network
def powers(t: Any, x: Any) -> Any:
    """Powers of sums, means inside means, a matrix and its transpose, minus signs, roots."""
    w = t.linear(t.n, t.n, name="w")
    h = t.linear(t.n, "in", name="own_map")(x)
    g = (h + 2) ** 2 / (1 + t.mean((h - t.mean(h)) ** 2)) ** 0.5 - (h * w(h)) ** 3
    k = w.T(-g * (h - w(tp.tanh(g) ** 2))) - 3**0.5 * h / 7
    return t.linear(t.outputs, t.n, name="v")(k)


def layer(make: Callable[[Any], Any]) -> Any:
    return tp.network(Body, make=make)


CASES: dict[str, Any] = {
    "Dense": layer(lambda t: L.Dense(t, t.n, t.n, tp.relu, bias=True)),
    "LowRank": layer(lambda t: L.LowRank(t, t.n, t.n, "1/2", bias="shared")),
    "LayerNorm": layer(lambda t: L.LayerNorm(t, eps=0.1)),
    "RMSNorm": layer(lambda t: L.RMSNorm(t, eps=0.5)),
    "layer_norm": layer(lambda t: L.layer_norm),
    "rms_norm": layer(lambda t: L.rms_norm),
    "BatchNorm": layer(lambda t: L.BatchNorm(t, "p")),
    "batch_norm": layer(lambda t: lambda h: L.batch_norm(h, "p")),
    "Dropout": layer(lambda t: L.Dropout(t, 0.5, "gaussian")),
    "Attention": layer(lambda t: L.Attention(t)),
    "Attention, heads": layer(lambda t: L.Attention(t, 2, scale="1/sqrt(d)")),
    "Attention, causal": layer(lambda t: L.Attention(t, 3, causal=True)),
    "attention": layer(lambda t: lambda h: L.attention(h, h, h)),
    "causal_softmax": layer(lambda t: lambda h: L.attention(h, h, h, causal=True)),
    "GLU": layer(lambda t: L.GLU(t, t.n, t.n)),
    "SwiGLU": layer(lambda t: L.SwiGLU(t, t.n, t.n)),
    "GEGLU": layer(lambda t: L.GEGLU(t, t.n, t.n)),
    "Conv": layer(lambda t: L.Conv(t, t.n, t.n, bias=True, variance=4)),
    "windows": layer(lambda t: lambda h: t.sum(L.windows(h, "p", 2), "k")),
    "average_pool": layer(lambda t: lambda h: L.average_pool(h, size=2, stride=1)),
    "max_pool": layer(lambda t: lambda h: L.max_pool(h)),
    "Positions": layer(lambda t: L.Positions(t)),
    "Embedding": Language,
    "serial": layer(lambda t: L.serial(tp.relu, t.linear(t.n, t.n), L.RMSNorm(t, eps=1))),
    "parallel": layer(
        lambda t: L.parallel(t.linear(t.n, t.n), L.serial(tp.relu, t.linear(t.n, t.n)))
    ),
    "residual": layer(lambda t: L.residual(tp.relu, t.linear(t.n, t.n), factor=0.5)),
    "GRU": tp.network(Recurrent, make=lambda t: L.GRU(t, "in", bias=True)),
    "recur": tp.network(Recurrent, make=lambda t: L.GRU(t, "in", "after")),
    "LSTM": tp.network(Recurrent, make=lambda t: L.LSTM(t, "in")),
    "images": Images,
    "powers": powers,
    "mlp": tp.MLP(3, "gelu", bias="all", weight_variance=3, norm="layer"),
    "resnet": tp.ResNet(3, "tanh", alpha="1/3", norm="rms", bias_variance=2),
    "rnn": tp.RNN(3, "tanh", bias_variance="1/3"),
}


def test_every_layer_of_the_catalogue_is_there() -> None:
    assert set(L.__all__) <= {name.partition(",")[0] for name in CASES}


def with_data(program: Program, rng: np.random.Generator) -> Program:
    """The program at an input."""
    nodes = []
    for node in program.nodes:
        if isinstance(node, Data) and not node.values:
            sizes = [size for _, size in node.axes]
            node = replace(node, values=tuple(rng.normal(size=int(np.prod(sizes))).tolist()))
        nodes.append(node)
    return replace(program, nodes=tuple(nodes))


def leaves(program: Program, inputs: Any) -> dict[str, Values]:
    """Parameters, data and constants by what formulas should call them."""
    found = {"n": Values((), np.array(float(WIDE)))}
    for family in program.families.values():
        cells = range(family.size) if family.axes else [None]
        drawn = np.array([inputs[named(family, cell)] for cell in cells])
        sizes = tuple(size for _, size in family.axes)
        drawn = drawn.reshape((*sizes, *drawn.shape[1:]))
        names = (*dict(family.axes), *(WIDTH, COLUMN)[: len(family.width)])
        mark, name = family.mark, family.name
        if mark is not None and mark.trained and not mark.bias:
            name = mark.label
            if name.isdigit() and family.name.endswith(name):
                name = f"{family.name.removesuffix(name)}^{name}"
        if mark is not None and mark.bias and mark.label.isdigit() and name.endswith(mark.label):
            name = f"{name.removesuffix(mark.label)}^{mark.label}"
        acts = mark is not None and mark.role in ("input", "hidden", "readout", "finite")
        found[name] = Values(names, drawn, acts)
    masks: dict[str, list[Values]] = {}
    for node in program.nodes:
        if isinstance(node, Data):
            names, sizes = zip(*node.axes, strict=True)
            own = Values(names, np.array(node.values, dtype=float).reshape(sizes))
            kind = re.sub(r" [0-9a-f]{12}$", "", node.name)
            same = masks.setdefault("ξ" if kind == "x" else kind, [])
            same += (
                [own]
                if not any(
                    one.names == own.names and np.array_equal(one.array, own.array) for one in same
                )
                else []
            )
    for kind, several in masks.items():
        for place, own in enumerate(several, 1):
            found[kind if len(several) == 1 else f"{kind} {place}"] = own
    return found


def one_by_one(title: str, text: str) -> list[tuple[str, str]]:
    """Both sides of a formula, for each layer that it is told for."""
    layers = re.search(r", l = (\d+), \.\.\., (\d+)$", title)
    if layers is None:
        left, right = text.split(" = ", 1)
        return [(left, right)]
    found = []
    for layer in range(int(layers[1]), int(layers[2]) + 1):

        def told(one: re.Match[str], layer: int = layer) -> str:
            return f"^{layer + int(one[1] or one[2] or 0)}"

        left, right = re.sub(r"\^\(l([-+]\d+)\)|\^l\b()", told, text).split(" = ", 1)
        found.append((left, right))
    return found


def follows(one: tuple[str, str], equations: list[tuple[str, str]]) -> bool:
    """Whether nothing on the right side still waits for its own equation."""
    waiting = (re.escape(left) for left, _ in equations)
    return not any(re.search(rf"(?<![\w.]){left}(?![\w.#])", one[1]) for left in waiting)


@pytest.mark.parametrize("parameterization", ["mup", "ntk"])
@pytest.mark.parametrize("name", CASES)
def test_formulas_are_the_network_in_every_notation(name: str, parameterization: str) -> None:
    network, rng = as_network(CASES[name]), np.random.default_rng(0)
    exponents = lookup(parameterization)
    program = with_data(network_program(network, exponents, 2 * network.tokens, 1), rng)
    inputs = draw(split(program), WIDE, rng)
    known = leaves(program, inputs)
    equations = []
    for title, formula in network_formulas(network, exponents, 1):
        assert from_html(formula.html) == formula.text
        assert from_mathml(formula.mathml) == formula.text
        assert from_latex(formula.latex) == formula.text
        assert not re.search(r"[0-9a-f]{12}", formula.text)
        if title != "Update":
            equations += one_by_one(title, formula.text)
    while equations:  # layers that are written alike share a line, so that lines are not in order
        left, right = equations.pop(
            next(i for i, one in enumerate(equations) if follows(one, equations))
        )
        known[left] = evaluated(right, known)
    reached = run(program, WIDE, inputs)
    compared = 0
    for output, expected in reached.items():
        base, _, rest = output.partition("[")
        label, _, cell = rest.removesuffix("]").partition("][")
        own = known.get(f"{base}^{label}" if label else base)
        if own is None or cell:
            continue
        np.testing.assert_allclose(
            own.along([WIDTH] if np.ndim(expected) else []), expected, rtol=1e-4, atol=1e-7
        )
        compared += 1
    assert compared and any(left.startswith("f") for left in known)
