"""Networks of one's own, as a user writes them."""

from __future__ import annotations

from typing import Any, ClassVar

import tpcalc as tp


class Blocks(tp.Network):
    """An embedding, two residual blocks with layer norm, GELU and a gate, a mean over positions."""

    axes: ClassVar = {"p": 3}

    def __init__(self, t: Any) -> None:
        self.embed = t.linear(t.n, "in")
        self.up = [t.linear(t.n, t.n) for _ in range(2)]
        self.gate = [t.linear(t.n, t.n) for _ in range(2)]
        self.read = t.linear(t.outputs, t.n)

    def forward(self, x: Any) -> Any:
        h = self.embed(x)
        for up, gate in zip(self.up, self.gate, strict=True):
            z = tp.layer_norm(h)
            h = h + tp.gelu(up(z)) * tp.sigmoid(gate(z))
        return self.read((h.at(p=0) + h.at(p=1) + h.at(p=2)) / 3)


class GRU(tp.Network):
    """A gated recurrent unit over four tokens, its weights shared by all of them."""

    axes: ClassVar = {"p": 4}

    def __init__(self, t: Any) -> None:
        self.enter = [t.linear(t.n, "in") for _ in range(3)]
        self.state = [t.linear(t.n, t.n) for _ in range(3)]
        self.read = t.linear(t.outputs, t.n)

    def forward(self, x: Any) -> Any:
        h = None
        for token in range(4):
            z, r, c = (enter(x.at(p=token)) for enter in self.enter)
            if h is None:
                h = tp.sigmoid(z) * tp.tanh(c)
                continue
            z, r = tp.sigmoid(z + self.state[0](h)), tp.sigmoid(r + self.state[1](h))
            h = z * tp.tanh(c + self.state[2](r * h)) + (1 - z) * h
        return self.read(h)


@tp.network(axes={"p": 5})
def convolution(t: Any, x: Any) -> Any:
    """Two convolutions with three taps, without padding, and a mean over what is left of five."""
    first = [t.linear(t.n, "in", name=f"first.{k}") for k in range(3)]
    second = [t.linear(t.n, t.n, name=f"second.{k}") for k in range(3)]
    taps = [[x.at(p=p + k) for k in range(3)] for p in range(3)]
    h = [tp.erf(sum(w(one) for w, one in zip(first, own, strict=True))) for own in taps]
    g = tp.erf(sum(w(one) for w, one in zip(second, h, strict=True)))
    return t.linear(t.outputs, t.n, name="read")(g)


# One row for each input, its positions one after the other.
EMBEDDED = (
    (1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0),
    (0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 1.0, 0.0, 0.0),
)
TOKENS = (1.0, 0.5, -0.3, 0.2, 0.7, 0.1, -0.4, 0.9), (0.3, -0.5, 0.6, 0.2, -0.7, 0.1, 0.4, 0.9)
PIXELS = (
    (1.0, 0.5, -0.3, 0.2, 0.7, 0.1, 0.4, 0.9, 0.3, -0.2),
    (0.3, 0.6, 0.5, 0.2, -0.1, 0.7, 0.4, 0.8, 0.9, 0.1),
)
TARGETS = ((1.0,), (-0.5,))

NETWORKS: dict[str, tuple[Any, tp.Samples]] = {
    "blocks": (Blocks, tp.Samples(EMBEDDED, TARGETS)),
    "gru": (GRU, tp.Samples(TOKENS, TARGETS)),
    "convolution": (convolution, tp.Samples(PIXELS, TARGETS)),
}
