"""Templates of training: the names of what a network reports, and what its updates add to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

import tpcalc as tp
from tpcalc.networks.network import Architecture
from tpcalc.networks.tracer import NetworkTracer
from tpcalc.passes.template import Template
from tpcalc.program.family import Mark
from tpcalc.program.nodes import Input
from tpcalc.training.parameterizations import lookup
from tpcalc.training.written import template_of


def template(net: Architecture, dimension: int = 4, outputs: int = 1) -> Template:
    return template_of(net, lookup("ntk"), dimension, outputs)


class Sequence(Architecture):
    """Tokens as a block: features of every token are one value with an axis."""

    words = "a network over a block of tokens"

    @property
    def axes(self) -> Mapping[str, int]:
        return {"p": 2}

    def forward(self, t: NetworkTracer, x: Any) -> Any:
        h = t.linear(t.n, "in", True, name="U")(x)
        t.watch("h", 2, h)
        mean = t.sum(tp.tanh(h), "p")
        t.watch("pooled", "end", mean)
        t.watch("size", "end", t.inner(mean, mean))
        return t.linear(t.outputs, t.n, name="v")(mean)


def test_cells_stand_at_the_end_of_a_name() -> None:
    found = template(Sequence())
    names = [str(watch.name(7, 3)) for watch in found.watch]
    assert names[4:] == ["x[v,7,3]", "W_x[U,7,3,0]", "W_x[U,7,3,1]", "W_x[v,7,3]"]
    assert names[:4] == ["h[2,7,3,0]", "h[2,7,3,1]", "pooled[end,7,3]", "size[end,7,3]"]
    gradients = [str(watch.name(7, 3, before="d")) for watch in found.watch]
    assert gradients[:2] == ["dh[2,7,3,0]", "dh[2,7,3,1]"]
    assert found.slots == ("x[0,0]", "x[0,1]", "x[1,0]", "x[1,1]")
    assert [str(part.name(7, 3)) for part in found.contributions] == [
        "dW_x[U,7,3,0]",
        "dB[U,7]",
        "dW_x[U,7,3,1]",
        "dW_x[v,7,3]",
    ]
    data = tp.Samples(((1.0, 0.5, 0.0, 1.0),), ((1.0,),))
    program = tp.train(Sequence(), "mup", data, steps=1, watch=("h", "dh", "dW_x", "dB"))
    later = [name for name, _ in program.outputs if name not in ("f[0,0]", "f[1,0]")]
    assert later[:4] == ["h[2,0,0,0]", "h[2,0,0,1]", "dh[2,0,0,0]", "dh[2,0,0,1]"]
    assert {"dW_x[U,1,0,0]", "dW_x[U,1,0,1]", "dB[U,1]"} <= set(later)
    assert "dW_x[v,1,0]" in later


@pytest.mark.parametrize(
    ("net", "outputs", "names"),
    [
        (tp.MLP(1, "tanh"), 1, ["f"]),
        (tp.MLP(1, "tanh"), 3, ["f[0]", "f[1]", "f[2]"]),
        (tp.RNN(2, "tanh"), 1, ["f[0]"]),
        (tp.RNN(2, "tanh", outputs="all"), 1, ["f[0]", "f[1]"]),
        (tp.RNN(2, "tanh", outputs="all"), 2, ["f[0][0]", "f[0][1]", "f[1][0]", "f[1][1]"]),
    ],
)
def test_outputs_of_every_place(net: Architecture, outputs: int, names: list[str]) -> None:
    found = template(net, outputs=outputs)
    assert [name for name, _ in found.program.outputs][: len(names)] == names
    assert found.outputs == tuple(found.program.ref(name) for name in names)
    assert len(names) == outputs * net.positions
    assert not any(watch.own.what == "f" for watch in found.watch)


def test_what_is_trained_and_what_is_not_a_network_any_more() -> None:
    found = template(tp.MLP(2, "tanh", "first", bias_variance=0, variances="initial"), 2, 2)
    assert list(found.parameters.values()) == [
        *[Mark("1", "input", 1)] * 2,
        Mark("1", "bias", 1, start=0),
        Mark("2", "hidden", 2),
        *[Mark("3", "readout", 3)] * 2,
    ]
    assert found.zeros == {"b1"} and list(found.inputs) == [0, 1]
    inputs = [node for node in found.bare.nodes if isinstance(node, Input)]
    assert inputs and not any(node.family.mark for node in inputs)
    assert found.bare.types == found.program.types


def test_numbers_that_a_network_does_not_read_are_no_inputs() -> None:
    class First(Sequence):
        def forward(self, t: NetworkTracer, x: Any) -> Any:
            h = t.linear(t.n, "in")(x.at(p=0))
            t.watch("h", 1, h)
            return t.linear(t.outputs, t.n)(h)

    found = template(First())
    assert len(found.slots) == 4 and list(found.inputs) == [0, 1]
    program = tp.train(First(), "ntk", tp.Samples(((3.0, 4.0, 9.0, 9.0),), ((1.0,),)), steps=1)
    other = tp.train(First(), "ntk", tp.Samples(((3.0, 4.0, 0.0, 1.0),), ((1.0,),)), steps=1)
    assert program == other


def test_every_use_of_a_map_has_a_contribution() -> None:
    found = template(tp.RNN(3, "tanh", bias_variance=1, outputs="all"), 3)
    names = [str(part.name(1, 0)) for part in found.contributions]
    assert names == [
        *("dW_x[U,1,0]", "dB[U,1]", "dW_x[U@1,1,0]", "dW_x[W,1,0]", "dW_x[U@2,1,0]"),
        *("dW_x[W@1,1,0]", "dW_x[v,1,0]", "dW_x[v@1,1,0]", "dW_x[v@2,1,0]"),
    ]
