"""Fused parameters: parts with roles of their own, one layer, one rate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import pytest
from twins import Twins

import tpcalc as tp
from tpcalc.errors import TraceError, UnknownName
from tpcalc.networks.network import written

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch


def gated(t: Any, x: Any) -> Any:
    """A layer with a gate for all of its coordinates, out of one array of n + 1 rows."""
    h = tp.tanh(t.linear(t.n, "in", name="u")(x))
    up, gate = t.fused({"up": (t.n, t.n), "gate": (1, t.n)}, name="w")(h)
    return t.linear(t.outputs, t.n, name="v")(tp.sigmoid(gate) * tp.tanh(up))


def apart(t: Any, x: Any) -> Any:
    """The same of two parameters."""
    h = tp.tanh(t.linear(t.n, "in", name="u")(x))
    up = t.linear(t.n, t.n, name="w.up", layer=2)(h)
    gate = t.linear(1, t.n, name="w.gate", layer=2)(h)
    return t.linear(t.outputs, t.n, name="v", layer=3)(tp.sigmoid(gate) * tp.tanh(up))


class Cell(tp.Network):
    """Two tokens of a recurrent network that reads (x, h) with one array."""

    axes: ClassVar[dict[str, int]] = {"p": 2}

    def __init__(self, t: Any) -> None:
        self.enter = t.linear(t.n, "in")
        self.w = t.fused({"x": (t.n, "in"), "h": (t.n, t.n)})
        self.read = t.linear(t.outputs, t.n)

    def forward(self, x: Any) -> Any:
        h = tp.tanh(self.enter(x.at(p=0)))
        return self.read(tp.tanh(self.w["x"](x.at(p=1)) + self.w["h"](h)))


class Gates(tp.Network):
    """A gate and what it lets through, out of one array of 2 n rows with one bias."""

    def __init__(self, t: Any) -> None:
        self.u, self.v = t.linear(t.n, "in"), t.linear(t.outputs, t.n)
        self.blocks = [t.fused({"gate": (t.n, t.n), "up": (t.n, t.n)}, bias=True)]

    def forward(self, x: Any) -> Any:
        gate, up = self.blocks[0](tp.tanh(self.u(x)))
        return self.v(tp.sigmoid(gate) * up)


class Heads(tp.Network):
    """Two heads of queries that share one head of keys and values."""

    axes: ClassVar[dict[str, int]] = {"p": 3}

    def __init__(self, t: Any) -> None:
        d = t.dim("d", "1/2")
        self.embed, self.read = t.linear(t.n, "in"), t.linear(t.outputs, t.n)
        self.qkv = t.fused({"q": (d, t.n, {"head": 2}), "k": (d, t.n), "v": (d, t.n)})
        self.out = t.linear(t.n, d, axes={"head": 2}, over="head")

    def forward(self, x: Any) -> Any:
        h = self.embed(x)
        q, k, v = self.qkv(h)
        return self.read((h + self.out(tp.layers.attention(q, k, v))).at(p=2))


def gated_twin(p: Any, x: Any) -> Any:
    n = p["w.up"].shape[0]
    w = torch.cat([p["w.up"], p["w.gate"].reshape(1, -1)])
    h = w @ torch.tanh(x @ p["u"])
    return p["v"].reshape(-1, n) @ (torch.sigmoid(h[n]) * torch.tanh(h[:n]))


def gates_twin(p: Any, x: Any) -> Any:
    w = torch.cat([p["blocks.0.gate"], p["blocks.0.up"]])
    b = torch.cat([p["blocks.0.gate.bias"], p["blocks.0.up.bias"]])
    gate, up = torch.tanh(x @ p["u"]).matmul(w.T).add(b).chunk(2)
    return p["v"].reshape(1, -1) @ (torch.sigmoid(gate) * up)


def cell_twin(p: Any, x: Any) -> Any:
    w = torch.cat([p["w.x"].T, p["w.h"]], 1)  # n by in + n
    h = torch.tanh(x[0] @ p["enter"])
    return p["read"].reshape(1, -1) @ torch.tanh(w @ torch.cat([x[1], h]))


@pytest.mark.parametrize(
    ("source", "twin", "dimension"),
    [(gated, gated_twin, 2), (Gates, gates_twin, 3), (Cell, cell_twin, 4)],
)
@pytest.mark.parametrize("parameterization", ["mup", "ntk"])
def test_it_trains_as_one_array_does(
    source: Any, twin: Callable[..., Any], dimension: int, parameterization: str
) -> None:
    twins = Twins(source, twin, dimension, parameterization=parameterization)
    twins.check_gradients()
    twins.check_training()


def test_it_is_the_network_of_its_parts() -> None:
    fused, unfused = (written(tp.network(net), 2, 1) for net in (gated, apart))
    assert str(fused).replace(" of w\n", "\n") == str(unfused)
    assert tp.parse(str(fused)) == fused
    data = tp.Samples(((1.0, 0.5), (0.3, -1.0)), ((1.0,), (-1.0,)))
    runs = [tp.train(net, "ntk", data, steps=2, watch=("h",)) for net in (gated, apart)]
    fused_orders, unfused_orders = (dict(tp.orders(run)) for run in runs)
    assert fused_orders == unfused_orders
    assert tp.network(gated).hidden == 2


def test_parts_are_called_by_the_whole_and_have_their_roles() -> None:
    marks = {mark.label: mark for mark in tp.network(Heads).marks if mark.whole}
    assert set(marks) == {"qkv.q", "qkv.k", "qkv.v"}
    assert {(mark.whole, mark.role, mark.layer) for mark in marks.values()} == {
        ("qkv", "hidden", 2)
    }
    biases = [mark for mark in tp.network(Gates).marks if mark.bias]
    assert [(mark.label, mark.whole) for mark in biases] == [
        ("blocks.0.gate", "blocks.0"),
        ("blocks.0.up", "blocks.0"),
    ]
    assert {mark.layer for mark in tp.network(Cell).marks if mark.whole} == {2}


def test_a_group_is_one_of_all_parts() -> None:
    """Also of vectors with an init, whose group stays."""

    def net(t: Any, x: Any) -> Any:
        h = t.linear(t.n, "in", name="u", init="0.5", group="slow")(x)
        h = h + t.vector("b", init="0.5", rate="n", group="slow")
        up, gate = t.fused({"up": (t.n, t.n), "gate": (1, t.n)}, bias=True, name="w", group="slow")(
            tp.tanh(h)
        )
        return t.linear(t.outputs, t.n, name="v")(tp.sigmoid(gate) * up)

    marks = tp.network(net).marks
    assert {(mark.label, mark.group) for mark in marks} == {
        *((label, "slow") for label in ("u", "b", "w.up", "w.gate")),
        ("v", ""),
    }
    data = tp.Samples(((1.0, 0.5),), ((1.0,),))
    run = tp.Training(net, "mup", data, groups={"slow": {"lr": 0, "power": "1/2"}})
    rates = {mark.label: run.rate(mark, 0) for mark in marks if not mark.bias}
    assert [str(rates[label][1]) for label in ("u", "w.up", "v")] == ["-3/2", "-3/2", "-1"]
    (vector,) = (mark for mark in marks if mark.label == "b")
    assert str(run.rate(vector, 0)[1]) == "-5/2", "-1, less the power of its rate and of its group"


def test_parts_that_read_inputs_or_write_outputs_alone() -> None:
    @tp.network
    def net(t: Any, x: Any) -> Any:
        g, h = t.fused({"g": (t.n, "in"), "h": (t.n, "in")}, name="u")(x)
        f, z = t.fused({"f": (t.outputs, t.n), "z": (1, t.n)}, name="v")(tp.sigmoid(g) * h)
        return f * z

    assert [(mark.label, mark.layer) for mark in net.marks] == [
        ("u.g", 1),
        ("u.h", 1),
        ("v.f", 2),
        ("v.z", 2),
    ]
    assert net.hidden == 1


def test_verdicts_are_told_part_by_part_with_what_no_rate_can_mend() -> None:
    found = tp.check(Cell, "mup", steps=2)
    moves = {layer.label: layer.moves for layer in found.layers}
    assert moves == {"enter": True, "w.x": False, "w.h": True, "read": True}
    (note,) = (note for note in found.notes if note.startswith("w:"))
    assert note == (
        "w: its update adds n^(-1) to w[x] and order one to w[h], and one rate moves them alike: "
        "no rate of this parameter is right for both parts: split it, or change the init of one"
    )


def test_a_gate_that_explodes_is_told_apart() -> None:
    found = tp.check(gated, "mup", steps=1)
    assert any("order one to w[up] and n^(1/2) to w[gate]" in note for note in found.notes)


@pytest.mark.parametrize("steps", [1, 2])
def test_parts_of_one_kind_are_content(steps: int) -> None:
    """After one step queries and keys have moved by chance alone: nothing is said of that."""
    for net in (Gates, Heads):
        found = tp.check(net, "mup", steps=steps, verify=net is Gates)
        assert not any("no rate" in note for note in found.notes)


def test_solve_says_what_each_part_asks_for() -> None:
    found = tp.solve(Cell, "mup", steps=1, verify=False)
    assert dict(zip(found.names, found.steps[0].c, strict=True))["w.x"] == "-2"
    assert any(
        note.startswith("w: step 0 asks for c = -2 for w[x] and c = -1 for w[h]")
        for note in found.notes
    )
    assert not any("asks" in note for note in tp.solve(Gates, "mup", steps=1, verify=False).notes)


def test_kernels_and_signals_read_the_parts() -> None:
    assert tp.kernel(Gates, [[1.0, 0.5], [0.0, 1.0]], method="particles").ntk.shape == (2, 2)
    chain = tp.network(lambda t, x: t.linear(1, t.n, name="v")(
        sum(t.fused({"a": (t.n, "in"), "b": (t.n, "in")}, name="u")(x), start=0)
    ))  # fmt: skip
    assert tp.signal.nlc(chain).value == pytest.approx(1)


def misplaced(t: Any, x: Any) -> Any:
    h = t.linear(t.n, "in", name="u")(x)
    parts = t.fused({"a": (t.n, t.n), "b": (1, t.n)})
    return parts["b"](parts["a"](h))


class Alone(tp.Network):
    def __init__(self, t: Any) -> None:
        self.u = t.linear(t.n, "in")
        self.a, self.b = t.fused({"a": (t.n, t.n), "b": (1, t.n)}).values()

    def forward(self, x: Any) -> Any:
        return self.b(self.a(self.u(x)))


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (misplaced, "the parameter has no name"),
        (Alone, "the parameter has no name"),
        (lambda t, x: t.fused({"a": (t.n, "in")}, name="w")(x), "two or more maps"),
        (lambda t, x: t.fused({"a": (t.n, "in"), "b": (1, t.n)}, name="w")(x), "a common side"),
        (lambda t, x: t.fused({"a": (t.n, "in"), "b": ("m", "in")}, name="w")(x), "the side out"),
        (
            lambda t, x: t.linear(1, t.n)(
                t.fused({"a": (t.n, "in"), "b": (t.n, "in")}, name="w")["a"](x)
            ),
            "'w.b' is never used",
        ),
    ],
)
def test_what_is_no_fused_parameter(source: Any, words: str) -> None:
    with pytest.raises(TraceError, match=words):
        written(tp.network(source), 2, 1)


def test_a_part_that_is_not_there() -> None:
    def net(t: Any, x: Any) -> Any:
        return t.fused({"a": (t.n, "in"), "b": (t.n, "in")}, name="w")["c"](x)

    with pytest.raises(UnknownName, match="part"):
        written(tp.network(net), 2, 1)
