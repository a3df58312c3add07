"""Networks whose inits and multipliers are powers of the width, in plain torch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

IN, VOCAB, LENGTH = 16, 32, 8
Powers = Sequence[float]


def linear(inp: int, out: int, std: float, bias: bool = False) -> nn.Linear:
    made = nn.Linear(inp, out, bias=bias)
    nn.init.normal_(made.weight, std=std)
    return made


class MLP(nn.Module):
    """16 -> n -> n -> n -> outputs: multipliers n^-a and stds n^-b of its four matrices.

    Args:
        n: The width.
        a: Powers of the multipliers.
        b: Powers of the inits.
        biases: Powers of the inits of its biases; without it there are none.
        outputs: Their number.
        zero: Whether the readout starts at 0.
    """

    def __init__(
        self, n: int, a: Powers = (0, 0, 0, 0), b: Powers = (0, 0.5, 0.5, 1),
        biases: Powers = (), outputs: int = 2, zero: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        bias = bool(biases)
        self.inp = linear(IN, n, IN**-0.5 * n ** -b[0], bias)
        self.h1 = linear(n, n, n ** -b[1], bias)
        self.h2 = linear(n, n, n ** -b[2], bias)
        self.out = linear(n, outputs, n ** -b[3], bias)
        self.scales = [n**-power for power in a]
        for layer, power in zip(self.layers(), biases, strict=bias):
            nn.init.normal_(layer.bias, std=n**-power)
        if zero:
            nn.init.zeros_(self.out.weight)

    def layers(self) -> tuple[nn.Linear, ...]:
        return self.inp, self.h1, self.h2, self.out

    def matrices(self) -> Iterator[nn.Parameter]:
        return (layer.weight for layer in self.layers())

    def biases(self) -> Iterator[nn.Parameter]:
        return (layer.bias for layer in self.layers() if layer.bias is not None)

    def forward(self, x: Tensor) -> Tensor:
        for layer, scale in zip(self.layers(), self.scales, strict=True):
            x = F.linear(x, layer.weight) * scale
            x = x if layer.bias is None else x + layer.bias
            x = x if layer is self.out else torch.relu(x)
        return x


class Transformer(nn.Module):
    """One block with norms first.

    Args:
        n: The width.
        size: Of a head, which then are n / size; otherwise there are four.
        score: The power of the size of a head in the scale of scores.
        emb, hidden, keys, head: Powers of the inits; ``keys`` of keys and values.
        multiplier: The power of the multiplier behind the readout.
        key_heads: Heads of keys and values.
        tied: Whether the readout is the embedding.
        norm: Its norms.
    """

    def __init__(
        self, n: int, size: int | None = None, score: float = 1, emb: float = 0,
        hidden: float = 0.5, keys: float | None = None, head: float = 0, multiplier: float = 1,
        key_heads: int | None = None, tied: bool = False, norm: type[nn.Module] = nn.LayerNorm,
    ) -> None:  # fmt: skip
        super().__init__()
        self.size = size or n // 4
        rows = (key_heads or n // self.size) * self.size
        keys = hidden if keys is None else keys
        self.scale, self.multiplier = self.size**-score, n**-multiplier
        self.emb, self.pos = nn.Embedding(VOCAB, n), nn.Embedding(LENGTH, n)
        for table in (self.emb, self.pos):
            nn.init.normal_(table.weight, std=n**-emb)
        self.ln1, self.ln2, self.ln = norm(n), norm(n), norm(n)
        self.q, self.o = linear(n, n, n**-hidden), linear(n, n, n**-hidden)
        self.k, self.v = linear(n, rows, n**-keys), linear(n, rows, n**-keys)
        self.up, self.dn = linear(n, 2 * n, n**-hidden), linear(2 * n, n, n**-hidden)
        self.head = linear(n, VOCAB, n**-head)
        if tied:
            self.head.weight = self.emb.weight

    def attend(self, h: Tensor) -> Tensor:
        q, k, v = (
            x.unflatten(-1, (-1, self.size)).transpose(1, 2)
            for x in (self.q(h), self.k(h), self.v(h))
        )
        times = q.shape[1] // k.shape[1]
        k, v = k.repeat_interleave(times, dim=1), v.repeat_interleave(times, dim=1)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=self.scale)
        return self.o(y.transpose(1, 2).flatten(-2))

    def forward(self, idx: Tensor) -> Tensor:
        x = self.emb(idx) + self.pos.weight[: idx.shape[1]]
        x = x + self.attend(self.ln1(x))
        x = x + self.dn(F.gelu(self.up(self.ln2(x))))
        return self.head(self.ln(x)) * self.multiplier


class ConvNet(nn.Module):
    """Two convolutions with batch norm, and a readout of averages over pixels."""

    def __init__(self, n: int, hidden: float = 0.5, head: float = 1) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, n, 3, padding=1, bias=False), nn.BatchNorm2d(n)
        self.conv2, self.bn2 = nn.Conv2d(n, n, 3, padding=1, bias=False), nn.BatchNorm2d(n)
        self.fc = linear(n, 2, n**-head)
        nn.init.normal_(self.conv1.weight, std=27**-0.5)
        nn.init.normal_(self.conv2.weight, std=n**-hidden / 3)

    def forward(self, x: Tensor) -> Tensor:
        x = torch.relu(self.bn1(self.conv1(x)))
        x = torch.relu(self.bn2(self.conv2(x)))
        return self.fc(x.mean((2, 3)))


class Recurrent(nn.Module):
    """tanh over four positions with one matrix."""

    def __init__(self, n: int, head: float = 1) -> None:
        super().__init__()
        self.inp, self.w = linear(5, n, 5**-0.5), linear(n, n, n**-0.5)
        self.out = linear(n, 2, n**-head)

    def forward(self, x: Tensor) -> Tensor:
        h = torch.tanh(self.inp(x[:, 0]))
        for t in range(1, x.shape[1]):
            h = torch.tanh(self.w(h) + self.inp(x[:, t]))
        return self.out(h)
