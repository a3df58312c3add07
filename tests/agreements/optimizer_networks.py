"""Networks of one's own that optimizers are tested on, with the number of features of an input."""

from __future__ import annotations

from typing import Any, ClassVar

import tpcalc as tp

L = tp.layers


class Attention(tp.Network):
    """An embedding, layer norm with gains, two causal heads, a readout with a bias."""

    axes: ClassVar = {"p": 3}

    def __init__(self, t: Any) -> None:
        self.embed = t.linear(t.n, "in")
        self.norm = L.LayerNorm(t)
        self.mix = L.Attention(t, 2, causal=True)
        self.read = t.linear(t.outputs, t.n, bias=True)

    def forward(self, x: Any) -> Any:
        h = self.embed(x)
        return self.read(tp.relu((h + self.mix(self.norm(h))).at(p=2)))


@tp.network(axes={"p": 3})
def tied(t: Any, x: Any) -> Any:
    """One matrix at every token, at their sum, and transposed at one of them."""
    w = t.linear(t.n, t.n, bias=True, name="w")
    h = w(tp.tanh(t.linear(t.n, "in", name="u")(x)))
    y = w(tp.tanh(t.sum(h, "p"))) + w.T(h.at(p=1))
    return t.linear(t.outputs, t.n, name="r")(tp.tanh(y))


class Embedding(tp.Network):
    """A vector for each token and place; the readout has the weights of the embedding."""

    axes: ClassVar = {"p": 3}

    def __init__(self, t: Any) -> None:
        self.embed, self.places = L.Embedding(t), L.Positions(t)
        self.w = t.linear(t.n, t.n)

    def forward(self, x: Any) -> Any:
        h = self.places(self.embed(x))
        return self.embed.readout((h + self.w(tp.tanh(h))).at(p=2))


@tp.network(axes={"p": 3})
def gru(t: Any, x: Any) -> Any:
    cell = L.GRU(t, "in", name="cell")
    return t.linear(t.outputs, t.n, name="r")(L.recur(cell, x))


class Convolution(tp.Network):
    axes: ClassVar = {"p": 3}

    def __init__(self, t: Any) -> None:
        self.first = L.Conv(t, t.n, "in", "p")
        self.second = L.Conv(t, t.n, t.n, "p", size=2, padding="none")
        self.read = t.linear(t.outputs, t.n)

    def forward(self, x: Any) -> Any:
        return self.read(L.average_pool(tp.relu(self.second(tp.tanh(self.first(x)))), "p"))


class Gated(tp.Network):
    def __init__(self, t: Any) -> None:
        self.u = t.linear(t.n, "in", bias=True)
        self.norm, self.gate = L.RMSNorm(t), L.SwiGLU(t, t.n, t.n)
        self.read = t.linear(t.outputs, t.n)

    def forward(self, x: Any) -> Any:
        return self.read(self.gate(self.norm(self.u(x))))


class Wider(tp.Network):
    """A layer of width 2 n."""

    def __init__(self, t: Any) -> None:
        t.dim("m", 2)
        self.u = t.linear(t.n, "in")
        self.up, self.down = t.linear("m", t.n, bias=True), t.linear(t.n, "m")
        self.read = t.linear(t.outputs, t.n)

    def forward(self, x: Any) -> Any:
        return self.read(tp.tanh(self.down(tp.relu(self.up(tp.tanh(self.u(x)))))))


@tp.network(axes={"p": 2})
def heads(t: Any, x: Any) -> Any:
    """A block of matrices, at every token and at their sum."""
    w = t.linear(t.n, t.n, name="w", axes={"h": 2})
    h = t.sum(w(tp.tanh(t.linear(t.n, "in", name="u")(x))), "h")
    return t.linear(t.outputs, t.n, name="r")(t.sum(tp.tanh(w(t.sum(h, "p"))), "h"))


NETWORKS: dict[str, tuple[Any, int]] = {
    "attention": (Attention, 6),
    "tied": (tied, 6),
    "embedding": (Embedding, 9),
    "gru": (gru, 6),
    "convolution": (Convolution, 6),
    "gated": (Gated, 2),
    "wider": (Wider, 2),
    "heads": (heads, 4),
}
