"""Every layer in a small network: outputs, gradients and training equal those of torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import pytest
from agreements.test_formulas import Images
from twins import Twins

import tpcalc as tp

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch
F = torch.nn.functional
L = tp.layers


class Body(tp.Network):
    """A map in, a layer, a readout at every token; what stands between is given."""

    axes: ClassVar[dict[str, int]] = {"p": 4}

    def __init__(self, t: Any, make: Callable[[Any], Any]) -> None:
        self.u, self.v = t.linear(t.n, "in"), t.linear(t.outputs, t.n)
        self.layer = make(t)

    def forward(self, x: Any) -> Any:
        return self.v(tp.tanh(self.layer(self.u(x))))


def read(p: Any, h: Any) -> Any:
    return torch.tanh(h) @ p["v"]


def body(layer: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda p, x: read(p, layer(p, x @ p["u"]))


def mixed(p: Any, x: Any, causal: bool = False, root: bool = False) -> Any:
    """What heads get, before the map that adds them up; axes h, p, then the width of a head."""
    w = {name: p[f"layer.{name}"] for name in ("query", "key", "value")}
    w = {name: one if one.ndim == 3 else one[None] for name, one in w.items()}
    q, k, v = (torch.einsum("hdn,pn->hpd", w[name], x) for name in ("query", "key", "value"))
    size = q.shape[-1]
    scores = q @ k.transpose(-1, -2) / (size**0.5 if root else size)
    if causal:
        mask = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
        scores = scores.masked_fill(mask, -torch.inf)
    return scores.softmax(-1) @ v


def heads(p: Any, x: Any, causal: bool = False, root: bool = False) -> Any:
    output = p["layer.output"]
    output = output if output.ndim == 3 else output[None]
    return torch.einsum("hnd,hpd->pn", output, mixed(p, x, causal, root))


def conv(p: Any, x: Any, stride: int = 1, padding: int = 1) -> Any:
    """A convolution of vectors at positions; its weights have axes k, out, in."""
    weights = p["layer.map"].permute(1, 2, 0)
    return F.conv1d(x.T[None], weights, stride=stride, padding=padding)[0].T


def gru(p: Any, x: Any, after: bool = False) -> Any:
    h = None
    for token in x:
        into = {g: token @ p[f"layer.input.{g}"] + p[f"layer.input.{g}.bias"]
                for g in ("update", "reset", "new")}  # fmt: skip
        if h is None:
            z, c = torch.sigmoid(into["update"]), torch.tanh(into["new"])
            h = (1 - z) * c
            continue
        state = {g: p[f"layer.state.{g}"] for g in into}
        z, r = (torch.sigmoid(into[g] + state[g] @ h) for g in ("update", "reset"))
        carried = r * (state["new"] @ h) if after else state["new"] @ (r * h)
        h = z * h + (1 - z) * torch.tanh(into["new"] + carried)
    return h


def lstm(p: Any, x: Any) -> Any:
    h = c = torch.zeros(p["layer.state.in"].shape[0], dtype=torch.float64)
    for token in x:
        g = {k: token @ p[f"layer.input.{k}"] + p[f"layer.state.{k}"] @ h
             for k in ("in", "forget", "out", "new")}  # fmt: skip
        c = torch.sigmoid(g["forget"]) * c + torch.sigmoid(g["in"]) * torch.tanh(g["new"])
        h = torch.sigmoid(g["out"]) * torch.tanh(c)
    return h


def norm(p: Any, h: Any, axis: int, eps: float = 0.0) -> Any:
    centred = h - h.mean(axis, keepdim=True)
    scaled = centred / (centred.pow(2).mean(axis, keepdim=True) + eps).sqrt()
    return (1 + p["layer.gain"]) * scaled + p["layer.bias"]


def root_mean_square(p: Any, h: Any) -> Any:
    return (1 + p["layer.gain"]) * h / (h.pow(2).mean(-1, keepdim=True) + 0.5).sqrt()


def glu(act: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    return body(lambda p, h: act(h @ p["layer.gate"].T) * (h @ p["layer.up"].T))


def dropped(p: Any, h: Any) -> Any:
    quantile = torch.distributions.Normal(0.0, 1.0).icdf(torch.tensor(0.25, dtype=torch.float64))
    return h * (p["noise1"] > quantile) / 0.75


def pooled(p: Any, x: Any) -> Any:
    h = x @ p["u"]
    windows = torch.stack([h[0:2], h[1:3], h[2:4]])
    return read(p, windows.max(1).values)


CASES: dict[str, tuple[Any, Any]] = {
    "dense": (
        lambda t: L.Dense(t, t.n, t.n, tp.relu, bias=True),
        body(lambda p, h: torch.relu(h @ p["layer.map"].T + p["layer.map.bias"])),
    ),
    "layer norm": (lambda t: L.LayerNorm(t, eps=0.1), body(lambda p, h: norm(p, h, -1, 0.1))),
    "rms norm": (lambda t: L.RMSNorm(t, eps=0.5), body(root_mean_square)),
    "batch norm": (lambda t: L.BatchNorm(t, "p"), body(lambda p, h: norm(p, h, 0))),
    "dropout": (lambda t: L.Dropout(t, 0.25), body(dropped)),
    "gaussian dropout": (
        lambda t: L.Dropout(t, 0.5, "gaussian"),
        body(lambda p, h: h * (1 + p["noise1"])),
    ),
    "attention": (lambda t: L.Attention(t), body(heads)),
    "attention by the root": (
        lambda t: L.Attention(t, scale="1/sqrt(d)"),
        body(lambda p, h: heads(p, h, root=True)),
    ),
    "causal attention": (
        lambda t: L.Attention(t, causal=True),
        body(lambda p, h: heads(p, h, causal=True)),
    ),
    "heads": (lambda t: L.Attention(t, 2), body(heads)),
    "heads of the whole width": (lambda t: L.Attention(t, 3, dim="n"), body(heads)),
    "causal heads by the root": (
        lambda t: L.Attention(t, 3, scale="1/sqrt(d)", causal=True),
        body(lambda p, h: heads(p, h, causal=True, root=True)),
    ),
    "glu": (lambda t: L.GLU(t, t.n, t.n), glu(torch.sigmoid)),
    "swiglu": (lambda t: L.SwiGLU(t, t.n, t.n), glu(F.silu)),
    "geglu": (lambda t: L.GEGLU(t, t.n, t.n), glu(F.gelu)),
    "convolution": (lambda t: L.Conv(t, t.n, t.n), body(conv)),
    "strided convolution": (
        lambda t: L.Conv(t, t.n, t.n, size=2, stride=2, padding="none"),
        body(lambda p, h: conv(p, h, 2, 0)),
    ),
    "convolution with a bias": (
        lambda t: L.Conv(t, t.n, t.n, bias=True, variance=4),
        body(lambda p, h: 2 * conv(p, h) + p["layer.map.bias"]),
    ),
    "average pooling": (
        lambda t: lambda h: L.average_pool(h),
        body(lambda p, h: h.mean(0)),
    ),
    "average pooling of windows": (
        lambda t: lambda h: L.average_pool(h, size=2, stride=1),
        body(lambda p, h: (h[1:] + h[:-1]) / 2),
    ),
    "max pooling": (
        lambda t: lambda h: L.max_pool(h),
        body(lambda p, h: h.max(0).values),
    ),
    "max pooling of windows": (lambda t: lambda h: L.max_pool(h, size=2, stride=1), pooled),
    "positions": (
        lambda t: L.Positions(t),
        body(lambda p, h: h + p["layer.table"]),
    ),
    "serial": (
        lambda t: L.serial(tp.relu, t.linear(t.n, t.n), L.RMSNorm(t, eps=1)),
        body(
            lambda p, h: (
                (1 + p["layer.2.gain"])
                * (g := torch.relu(h) @ p["layer.1"].T)
                / (g.pow(2).mean(-1, keepdim=True) + 1).sqrt()
            )
        ),
    ),
    "parallel": (
        lambda t: L.parallel(t.linear(t.n, t.n), L.serial(tp.relu, t.linear(t.n, t.n))),
        body(lambda p, h: h @ p["layer.0"].T + torch.relu(h) @ p["layer.1.1"].T),
    ),
    "residual": (
        lambda t: L.residual(tp.relu, t.linear(t.n, t.n), factor=0.5),
        body(lambda p, h: h + 0.5 * torch.relu(h) @ p["layer.1"].T),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_layer_between_maps(name: str) -> None:
    make, twin = CASES[name]
    twins = Twins(tp.network(Body, make=make), twin, 8)
    twins.check_gradients()
    twins.check_training()


def test_what_updates_of_summed_maps_add() -> None:
    """dW_x of a map that is summed over heads, or over offsets, is that of the sum."""

    def by_heads(p: Any, change: Any, x: Any) -> Any:
        return {
            "layer.output": torch.einsum(
                "hnd,hpd->pn", change["layer.output"], mixed(p, x @ p["u"])
            ),
        }

    def by_offsets(p: Any, change: Any, x: Any) -> Any:
        return {"layer.map": conv(change, x @ p["u"])}

    network = tp.network(Body, make=lambda t: L.Conv(t, t.n, t.n))
    Twins(network, body(conv), 8).check_training(parts=by_offsets)
    network = tp.network(Body, make=lambda t: L.Attention(t, 2))
    Twins(network, body(heads), 8).check_training(parts=by_heads)


def entered(layer: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda p, x: read(p, layer(p, x))


class Recurrent(tp.Network):
    axes: ClassVar[dict[str, int]] = {"p": 3}

    def __init__(self, t: Any, make: Callable[[Any], Any], every: bool = False) -> None:
        self.layer, self.v, self.every = make(t), t.linear(t.outputs, t.n), every

    def forward(self, x: Any) -> Any:
        return self.v(tp.tanh(L.recur(self.layer, x, every=self.every)))


RECURRENT: dict[str, tuple[Any, Any]] = {
    "gru": (lambda t: L.GRU(t, "in", bias=True), entered(gru)),
    "gru with the reset after": (
        lambda t: L.GRU(t, "in", "after", bias=True),
        entered(lambda p, x: gru(p, x, after=True)),
    ),
    "lstm": (lambda t: L.LSTM(t, "in"), entered(lstm)),
}


@pytest.mark.parametrize("name", RECURRENT)
def test_recurrent_cell(name: str) -> None:
    make, twin = RECURRENT[name]
    twins = Twins(tp.network(Recurrent, make=make), twin, 6)
    twins.check_gradients()
    twins.check_training()


def test_the_outputs_of_a_cell_at_all_places() -> None:
    def twin(p: Any, x: Any) -> Any:
        states = [gru(p, x[: upto + 1]) for upto in range(len(x))]
        return read(p, torch.stack(states))

    make = RECURRENT["gru"][0]
    twins = Twins(tp.network(Recurrent, make=make, every=True), twin, 6)
    twins.check_gradients()
    twins.check_training(steps=1)


def test_the_cells_are_those_of_torch() -> None:
    """The twins above are ours; these are torch's modules at their own weights."""
    cell = torch.nn.GRUCell(2, 5).double()
    p = {}
    for place, gate in enumerate(("reset", "update", "new")):
        rows = slice(5 * place, 5 * place + 5)
        p[f"layer.input.{gate}"] = cell.weight_ih[rows].T
        p[f"layer.input.{gate}.bias"] = cell.bias_ih[rows]
        p[f"layer.state.{gate}"] = cell.weight_hh[rows]
    cell.bias_hh.data.zero_()
    x = torch.randn(3, 2, dtype=torch.float64)
    h = torch.zeros(1, 5, dtype=torch.float64)
    for token in x:
        h = cell(token[None], h)
    torch.testing.assert_close(gru(p, x, after=True), h[0])


def test_images() -> None:
    def twin(p: Any, x: Any) -> Any:
        first = p["first.map"].permute(3, 2, 0, 1)  # k_y, k_x, in, n
        h = F.conv2d(x.permute(2, 0, 1)[None], first, padding=1)
        h = torch.relu(h + p["first.map.bias"][:, None, None])
        h = torch.tanh(F.conv2d(h, p["layer.map"].permute(2, 3, 0, 1)))
        return p["v"] @ h[0].mean((1, 2))

    twins = Twins(Images, twin, 24, width=5)
    twins.check_gradients()
    twins.check_training(steps=1, batch=1)


class Language(tp.Network):
    axes: ClassVar[dict[str, int]] = {"p": 3}

    def __init__(self, t: Any) -> None:
        self.embed, self.place = L.Embedding(t), L.Positions(t)
        self.mix = L.Attention(t, 2, causal=True)
        self.w = t.linear(t.n, t.n)

    def forward(self, x: Any) -> Any:
        h = self.place(self.embed(x))
        h = h + self.mix(L.rms_norm(h, 1))
        return self.embed.readout(h + self.w(tp.relu(h)))


@pytest.mark.parametrize("parameterization", ["mup", "ntk"])
def test_a_language_model_with_tied_weights(parameterization: str) -> None:
    def twin(p: Any, x: Any) -> Any:
        h = x @ p["embed.table"] + p["place.table"]
        g = h / (h.pow(2).mean(-1, keepdim=True) + 1).sqrt()
        h = h + heads({k.replace("mix", "layer"): v for k, v in p.items()}, g, causal=True)
        h = h + torch.relu(h) @ p["w"].T
        return h @ p["embed.table"].T / h.shape[-1]

    twins = Twins(Language, twin, 6, parameterization=parameterization)
    twins.check_gradients()
    twins.check_training(steps=1)
