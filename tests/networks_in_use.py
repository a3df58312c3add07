"""Networks that people train, written with ``tp.layers`` from public descriptions.

They are small (few tokens, heads, blocks, all of them arguments), and otherwise as they are in use.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import tpcalc as tp
from tpcalc.networks.own import Layer

layers = tp.layers
TOKENS = 3
ZERO = "0"


def with_tokens(network: type[tp.Network], tokens: int) -> type[tp.Network]:
    """The network on sequences of another length.

    Args:
        network: The class.
        tokens: The length.
    """
    return type(network.__name__, (network,), {"axes": {"p": tokens}})


class Mlp(Layer):
    """Two maps with GELU between them."""

    def __init__(self, t: Any, ratio: int | str = 4, bias: bool = False, last: Any = None) -> None:
        t.dim("ff", ratio)
        self.up = t.linear("ff", t.n, bias)
        self.down = t.linear(t.n, "ff", bias, init=last)

    def __call__(self, h: Any) -> Any:
        return self.down(tp.gelu(self.up(h)))


class ManyHeads(Layer):
    """Causal attention of heads of a fixed size; their number grows with the width."""

    def __init__(self, t: Any, size: int = 8, query: Any = None) -> None:
        t.dim("heads", f"1/{size}")
        self.t, self.size, axes = t, size, {"j": size}
        self.query = t.linear("heads", t.n, axes=axes, init=query)
        self.key, self.value = (t.linear("heads", t.n, axes=axes) for _ in range(2))
        self.output = t.linear(t.n, "heads", axes=axes, over="j")

    def __call__(self, h: Any) -> Any:
        t = self.t
        q, k, v = self.query(h), self.key(h).renamed(p="p'"), self.value(h)
        scores = t.sum(q * k, "j") * (1 / math.sqrt(self.size))
        rows = []
        for place in range(h.axes["p"]):
            seen = t.stack([scores.at(**{"p": place, "p'": at}) for at in range(place + 1)], "s")
            share = tp.softmax(seen, along="s")
            rows.append(sum(share.at(s=at) * v.at(p=at) for at in range(place + 1)))
        return self.output(t.stack(rows, "p"))


class GPT(tp.Network):
    """A decoder: attention and an MLP behind norms, learned positions.

    With a ``size`` heads have that size and become more with the width; else they grow. ``zero``
    names what starts at 0: the ``head``, the last map of the MLP ``branch``, the ``query``.

    Source: Radford et al., Language models are unsupervised multitask learners (2019).
    """

    axes: ClassVar[Mapping[str, int]] = {"p": TOKENS}

    def __init__(
        self,
        t: Any,
        blocks: int = 1,
        heads: int = 2,
        scale: str = "1/d",
        tied: bool = False,
        bias: bool = False,
        size: int = 0,
        zero: tuple[str, ...] = (),
    ) -> None:
        head, branch, query = (
            ZERO if what in zero else None for what in ("head", "branch", "query")
        )
        self.tokens, self.places = layers.Embedding(t), layers.Positions(t)
        self.norms = [(layers.LayerNorm(t), layers.LayerNorm(t)) for _ in range(blocks)]
        self.attention = [
            ManyHeads(t, size, query)
            if size
            else layers.Attention(t, heads, scale=scale, causal=True, bias=bias)
            for _ in range(blocks)
        ]
        self.mlp = [Mlp(t, bias=bias, last=branch) for _ in range(blocks)]
        self.norm = layers.LayerNorm(t)
        self.head = None if tied else t.linear(t.outputs, t.n, init=head)

    def forward(self, x: Any) -> Any:
        h = self.places(self.tokens(x))
        for (first, second), mix, mlp in zip(self.norms, self.attention, self.mlp, strict=True):
            h = h + mix(first(h))
            h = h + mlp(second(h))
        h = self.norm(h)
        h = h.at(p=h.axes["p"] - 1)
        return self.tokens.readout(h) if self.head is None else self.head(h)


class Llama(tp.Network):
    """A decoder with rotated queries and keys, queries in groups, and a gated MLP behind norms.

    Source: Touvron et al., LLaMA: Open and efficient foundation language models (2023).
    """

    axes: ClassVar[Mapping[str, int]] = {"p": TOKENS}

    def __init__(self, t: Any, groups: int = 2, heads: int = 2, turns: int = 2) -> None:
        pairs = {"turn": turns, "half": 2}  # coordinates of a head, turned two by two
        t.dim("d", f"1/{2 * groups * heads * turns}")
        t.dim("ff", "8/3")
        self.t, self.tokens = t, layers.Embedding(t)
        self.first, self.second, self.norm = (layers.RMSNorm(t) for _ in range(3))
        every = {"group": groups, "head": heads, **pairs}
        self.query = t.linear("d", t.n, axes=every)
        self.key = t.linear("d", t.n, axes={"group": groups, **pairs})
        self.value = t.linear("d", t.n, axes={"group": groups, **pairs})
        self.output = t.linear(t.n, "d", axes=every, over=tuple(every))
        self.up, self.down = layers.SwiGLU(t, "ff", t.n), t.linear(t.n, "ff")
        self.head = t.linear(t.outputs, t.n)

    def forward(self, x: Any) -> Any:
        t, h = self.t, self.tokens(x)
        z = self.first(h)
        q, k = self._turned(self.query(z)), self._turned(self.key(z))
        scores = t.sum(t.inner(q, k.renamed(p="p'")), "turn", "half")
        shares = layers.causal_softmax(scores, "p", "p'")
        h = h + self.output(t.sum(shares * self.value(z).renamed(p="p'"), "p'"))
        h = h + self.down(self.up(self.second(h)))
        return self.head(self.norm(h).at(p=h.axes["p"] - 1))

    def _turned(self, v: Any) -> Any:
        places, turns = v.axes["p"], v.axes["turn"]
        angles = [[p * 10000 ** (-k / turns) for k in range(turns)] for p in range(places)]
        table = [
            [[[math.cos(a), -math.sin(a)], [math.sin(a), math.cos(a)]] for a in row]
            for row in angles
        ]
        turn = self.t.constant(table, ("p", "turn", "half", "other"))
        return self.t.sum(turn * v.renamed(half="other"), "other")


class ViT(tp.Network):
    """Patches of an image with a class token through one block.

    Source: Dosovitskiy et al., An image is worth 16x16 words (2021).
    """

    axes: ClassVar[Mapping[str, int]] = {"y": 4, "x": 4}

    def __init__(self, t: Any, heads: int = 2, size: int = 2) -> None:
        self.t = t
        self.patches = layers.Conv(
            t, t.n, "in", ("y", "x"), size=size, stride=size, padding="none", bias=True
        )
        self.token, self.places = t.vector("token"), layers.Positions(t)
        self.first, self.second, self.norm = (layers.LayerNorm(t) for _ in range(3))
        self.attention, self.mlp = layers.Attention(t, heads), Mlp(t, bias=True)
        self.head = t.linear(t.outputs, t.n, True)

    def forward(self, x: Any) -> Any:
        z = self.patches(x)
        cells = [z.at(y=i, x=j) for i in range(z.axes["y"]) for j in range(z.axes["x"])]
        h = self.places(self.t.stack([self.token, *cells], "p"))
        h = h + self.attention(self.first(h))
        h = h + self.mlp(self.second(h))
        return self.head(self.norm(h).at(p=0))


class Mixer(tp.Network):
    """Maps along tokens, of finite sides, and maps along channels.

    Source: Tolstikhin et al., MLP-Mixer: An all-MLP architecture for vision (2021).
    """

    axes: ClassVar[Mapping[str, int]] = {"p": TOKENS}

    def __init__(self, t: Any, hidden: int = 4) -> None:
        self.stem = t.linear(t.n, "in", True)
        self.first, self.second, self.norm = (layers.LayerNorm(t) for _ in range(3))
        self.mix = t.linear(hidden, "p", True)
        self.unmix = t.linear(self.axes["p"], "s", True)
        self.mlp, self.head = Mlp(t, 2, bias=True), t.linear(t.outputs, t.n, True)

    def forward(self, x: Any) -> Any:
        h = self.stem(x)
        mixed = tp.gelu(self.mix(self.first(h)).renamed(out="s"))
        h = h + self.unmix(mixed).renamed(out="p")
        h = h + self.mlp(self.second(h))
        return self.head(layers.average_pool(self.norm(h)))


class ConvNeXt(tp.Network):
    """A depthwise convolution, a norm and two maps of each cell, with layer scale.

    Source: Liu et al., A ConvNet for the 2020s (2022).
    """

    axes: ClassVar[Mapping[str, int]] = {"p": 4}

    def __init__(self, t: Any, size: int = 3) -> None:
        self.t, self.size = t, size
        self.stem = layers.Conv(t, t.n, "in", size=2, stride=2, padding="none", bias=True)
        self.kernel, self.shift = t.vector("kernel", axes={"k": size}), t.vector("shift", start=0)
        self.first, self.second, self.norm = (layers.LayerNorm(t) for _ in range(3))
        self.mlp, self.scale = Mlp(t, bias=True), t.gain("scale")
        self.head = t.linear(t.outputs, t.n, True)

    def forward(self, x: Any) -> Any:
        h = self.first(self.stem(x))
        near = layers.windows(h, "p", self.size)
        z = self.t.sum(self.kernel * near, "k") + self.shift
        h = h + self.scale * self.mlp(self.second(z))
        return self.head(self.norm(layers.average_pool(h)))


class Mamba(tp.Network):
    """A selective scan behind a short convolution, with a gate.

    Source: Gu and Dao, Mamba: Linear-time sequence modeling with selective state spaces (2023).
    """

    axes: ClassVar[Mapping[str, int]] = {"p": TOKENS}

    def __init__(self, t: Any, states: int = 2) -> None:
        t.dim("e", 2)
        self.t, self.tokens, self.norm = t, layers.Embedding(t), layers.RMSNorm(t)
        self.into, self.gate = t.linear("e", t.n), t.linear("e", t.n)
        self.kernel = t.vector("kernel", axes={"k": 2}, dim="e")
        self.write, self.read = t.linear(states, "e"), t.linear(states, "e")
        self.narrow, self.rate = t.linear(1, "e"), t.linear("e", "r", True)
        self.decay = t.vector("decay", axes={"s": states}, dim="e", start=0)
        self.skip = t.vector("skip", dim="e")
        self.out, self.head = t.linear(t.n, "e"), t.linear(t.outputs, t.n)

    def forward(self, x: Any) -> Any:
        t, h = self.t, self.tokens(x)
        u = self.norm(h)
        v, old, new = self.into(u), self.kernel.at(k=0), self.kernel.at(k=1)
        places = range(h.axes["p"])
        near = [new * v.at(p=p) + old * v.at(p=p - 1) if p else new * v.at(p=0) for p in places]
        c = tp.swish(t.stack(near, "p"))
        write, read = self.write(c).renamed(out="s"), self.read(c).renamed(out="s")
        time = tp.softplus(self.rate(t.stack([self.narrow(c)], "r")))
        speed, state, found = tp.exp(self.decay), None, []
        for p in places:
            own, step = c.at(p=p), time.at(p=p)
            added = step * (write.at(p=p) * own)
            state = added if state is None else tp.exp(-(step * speed)) * state + added
            found.append(t.sum(read.at(p=p) * state, "s") + self.skip * own)
        y = t.stack(found, "p") * tp.swish(self.gate(u))
        return self.head((h + self.out(y)).at(p=h.axes["p"] - 1))


class MoE(tp.Network):
    """Experts weighted by a router, behind a norm.

    Source: Shazeer et al., Outrageously large neural networks (2017), without its top-k.
    """

    def __init__(self, t: Any, experts: int = 2, head: str | None = None) -> None:
        t.dim("ff", 2)
        axes = {"expert": experts}
        self.t, self.embed, self.norm = t, t.linear(t.n, "in"), layers.LayerNorm(t)
        self.router = t.linear(experts, t.n)
        self.up, self.down = t.linear("ff", t.n, axes=axes), t.linear(t.n, "ff", axes=axes)
        self.head = t.linear(t.outputs, t.n, init=head)

    def forward(self, x: Any) -> Any:
        h = self.embed(x)
        z = self.norm(h)
        shares = tp.softmax(self.router(z).renamed(out="expert"), along="expert")
        return self.head(h + self.t.sum(shares * self.down(tp.gelu(self.up(z))), "expert"))


class Lstm(tp.Network):
    """A language model with one LSTM.

    Source: Zaremba, Sutskever and Vinyals, Recurrent neural network regularization (2014).
    """

    axes: ClassVar[Mapping[str, int]] = {"p": TOKENS}

    def __init__(self, t: Any, head: str | None = None) -> None:
        self.tokens, self.cell = layers.Embedding(t), layers.LSTM(t, t.n, bias="zero")
        self.head = t.linear(t.outputs, t.n, True, init=head)

    def forward(self, x: Any) -> Any:
        return self.head(layers.recur(self.cell, self.tokens(x)))


class LoRA(tp.Network):
    """Adapters of finite rank beside maps that are not trained; it has its inits and rates.

    Source: Hu et al., LoRA: Low-rank adaptation of large language models (2021).
    """

    def __init__(self, t: Any, adapted: int = 1, rank: int = 2, into: str = "n^(-1/2)") -> None:
        places = range(adapted)
        self.embed = t.linear(t.n, "in", init=1)
        self.base = [t.linear(t.n, t.n, init="n^(-1/2)") for _ in places]
        self.into = [t.linear(rank, t.n, init=into, rates=("n^(-1)", 1)) for _ in places]
        self.out = [t.linear(t.n, "r", init=0) for _ in places]
        self.head = t.linear(t.outputs, t.n, init="n^(-1)", rates=("n^(-1)", 1))

    def forward(self, x: Any) -> Any:
        h = self.embed(x)
        for base, into, out in zip(self.base, self.into, self.out, strict=True):
            z = tp.tanh(h)
            h = base(z) + out(into(z).renamed(out="r"))
        return self.head(tp.tanh(h))
