"""GPTs by hand, and the ways in which people write their attention."""

from __future__ import annotations

from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from modules.rows import Row, tokens

VOCAB, LENGTH = 32, 8
Three = tuple[Tensor, Tensor, Tensor]


class Attention(nn.Module):
    """One map for queries, keys and values, cut by ``split``."""

    def __init__(self, n: int, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(n, 3 * n, bias=False)
        self.proj = nn.Linear(n, n, bias=False)

    def by_head(self, x: Tensor) -> Tensor:
        B, T, C = x.shape
        return x.view(B, T, self.heads, C // self.heads).transpose(1, 2)

    def cut(self, h: Tensor) -> Three:
        q, k, v = self.qkv(h).split(h.shape[-1], dim=-1)
        return self.by_head(q), self.by_head(k), self.by_head(v)

    def mix(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)

    def forward(self, h: Tensor) -> Tensor:
        B, T, C = h.shape
        y = self.mix(*self.cut(h))
        return self.proj(y.transpose(1, 2).contiguous().view(B, T, C))


class ByChunk(Attention):
    def cut(self, h: Tensor) -> Three:
        q, k, v = self.qkv(h).chunk(3, dim=-1)
        return self.by_head(q), self.by_head(k), self.by_head(v)


class ByView(Attention):
    def cut(self, h: Tensor) -> Three:
        B, T, C = h.shape
        qkv = self.qkv(h).view(B, T, 3, self.heads, C // self.heads).permute(2, 0, 3, 1, 4)
        return qkv[0], qkv[1], qkv[2]


class ByUnbind(Attention):
    def cut(self, h: Tensor) -> Three:
        B, T, _ = h.shape
        q, k, v = self.qkv(h).reshape(B, T, 3, self.heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
        return q, k, v


class Interleaved(Attention):
    """Queries, keys and values of one head beside each other."""

    def cut(self, h: Tensor) -> Three:
        B, T, _ = h.shape
        q, k, v = self.qkv(h).view(B, T, self.heads, -1).transpose(1, 2).chunk(3, dim=-1)
        return q, k, v


class Separate(Attention):
    """Three maps, and a scale of 1/d."""

    def __init__(self, n: int, heads: int = 4) -> None:
        super().__init__(n, heads)
        del self.qkv
        self.q, self.k, self.v = nn.Linear(n, n), nn.Linear(n, n), nn.Linear(n, n)

    def cut(self, h: Tensor) -> Three:
        return self.by_head(self.q(h)), self.by_head(self.k(h)), self.by_head(self.v(h))

    def mix(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=4 / q.shape[-1])


class Masked(Attention):
    """Scores, mask and softmax written out."""

    def __init__(self, n: int, heads: int = 4) -> None:
        super().__init__(n, heads)
        self.register_buffer("mask", torch.tril(torch.ones(LENGTH, LENGTH)))

    def scores(self, q: Tensor, k: Tensor) -> Tensor:
        return (q @ k.transpose(-2, -1)) * q.shape[-1] ** -0.5

    def mix(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        T = q.shape[-2]
        scores = self.scores(q, k).masked_fill(self.mask[:T, :T] == 0, float("-inf"))
        return F.softmax(scores, dim=-1) @ v


class Capped(Masked):
    def scores(self, q: Tensor, k: Tensor) -> Tensor:
        return 30.0 * torch.tanh(super().scores(q, k) / 30.0)


class NormedHeads(Masked):
    """A norm with its own gain on queries and keys."""

    def __init__(self, n: int, heads: int = 4) -> None:
        super().__init__(n, heads)
        self.q_norm, self.k_norm = nn.RMSNorm(n // heads), nn.RMSNorm(n // heads)

    def scores(self, q: Tensor, k: Tensor) -> Tensor:
        return torch.einsum("bhtd,bhsd->bhts", self.q_norm(q), self.k_norm(k)) / q.shape[-1] ** 0.5


class Relative(Attention):
    """A trained number for each head and distance, added to the scores."""

    def __init__(self, n: int, heads: int = 4, buckets: int = 5) -> None:
        super().__init__(n, heads)
        self.bias = nn.Embedding(buckets, heads)
        self.buckets = buckets

    def mix(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        place = torch.arange(q.shape[-2], device=q.device)
        distance = (place[:, None] - place[None, :]).clamp(0, self.buckets - 1)
        bias = self.bias(distance).permute(2, 0, 1).unsqueeze(0)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=bias, scale=1.0)


class Conv1D(nn.Module):
    """A linear map that stores its matrix as (in, out)."""

    def __init__(self, out: int, inp: int) -> None:
        super().__init__()
        self.out = out
        self.weight = nn.Parameter(torch.empty(inp, out))
        self.bias = nn.Parameter(torch.zeros(out))
        nn.init.normal_(self.weight, std=0.02)

    def forward(self, x: Tensor) -> Tensor:
        size_out = (*x.size()[:-1], self.out)
        return torch.addmm(self.bias, x.view(-1, x.size(-1)), self.weight).view(size_out)


class StoredTransposed(Masked):
    def __init__(self, n: int, heads: int = 4) -> None:
        super().__init__(n, heads)
        self.qkv, self.proj = Conv1D(3 * n, n), Conv1D(n, n)


class Block(nn.Module):
    def __init__(self, n: int, attention: type[Attention], heads: int, dropout: float) -> None:
        super().__init__()
        transposed = issubclass(attention, StoredTransposed)
        self.ln1, self.attn = nn.LayerNorm(n), attention(n, heads)
        self.ln2 = nn.LayerNorm(n)
        self.up = Conv1D(4 * n, n) if transposed else nn.Linear(n, 4 * n)
        self.down = Conv1D(n, 4 * n) if transposed else nn.Linear(4 * n, n)
        self.drop = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.drop(self.attn(self.ln1(x)))
        return x + self.drop(self.down(F.gelu(self.up(self.ln2(x)), approximate="tanh")))


class GPT(nn.Module):
    def __init__(
        self, n: int, attention: type[Attention] = Attention, heads: int = 4, blocks: int = 1,
        dropout: float = 0.0, tied: bool = True, cap: float | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.te, self.pe = nn.Embedding(VOCAB, n), nn.Embedding(LENGTH, n)
        self.drop = nn.Dropout(dropout)
        self.b = nn.ModuleList([Block(n, attention, heads, dropout) for _ in range(blocks)])
        self.ln = nn.LayerNorm(n)
        self.head = nn.Linear(n, VOCAB, bias=False)
        self.cap = cap
        if tied:
            self.head.weight = self.te.weight

    def forward(self, idx: Tensor) -> Tensor:
        place = torch.arange(idx.shape[1], device=idx.device)
        x = self.drop(self.te(idx) + self.pe(place))
        for block in self.b:
            x = block(x)
        logits = self.head(self.ln(x))
        return logits if self.cap is None else self.cap * torch.tanh(logits / self.cap)


def per_eight(n: int, attention: type[Attention]) -> nn.Module:
    """Heads of fixed size 8, their number growing."""
    return GPT(n, attention, heads=n // 8, tied=False)


IDX = (tokens(2, LENGTH, vocab=VOCAB),)
WAYS = {
    "cut by chunk": ByChunk,
    "cut by view and index": ByView,
    "cut by unbind": ByUnbind,
    "cut within heads": Interleaved,
    "three maps, scale=": Separate,
    "mask in a buffer": Masked,
    "norms of queries and keys": NormedHeads,
    "relative positions by head": Relative,
    "Conv1D and addmm": StoredTransposed,
}
ROWS = (
    Row("GPT by hand", partial(GPT, blocks=2), IDX),
    Row("GPT by hand, dropout", partial(GPT, dropout=0.1), IDX),
    *(Row(f"GPT, {name}", partial(GPT, attention=way), IDX) for name, way in WAYS.items()),
    Row("GPT, scores and logits capped", partial(GPT, attention=Capped, cap=15.0), IDX),
    Row("GPT, heads of fixed size", partial(per_eight, attention=ByView), IDX),
    Row(
        "GPT, relative positions, heads of fixed size",
        partial(per_eight, attention=Relative),
        IDX,
    ),
)
