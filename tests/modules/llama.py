"""Llamas by hand: rotary positions, fewer key heads, gated maps, norms written out."""

from __future__ import annotations

from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from modules.rows import Row, tokens

VOCAB, LENGTH = 32, 6


class RMSNorm(nn.Module):
    def __init__(self, n: int, eps: float = 1e-6) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(n))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        variance = x.pow(2).mean(-1, keepdim=True)
        return self.weight * (x * torch.rsqrt(variance + self.eps))


def rotate_half(x: Tensor) -> Tensor:
    half = x.shape[-1] // 2
    return torch.cat((-x[..., half:], x[..., :half]), dim=-1)


def angles(length: int, size: int) -> Tensor:
    frequencies = 1.0 / 100.0 ** (torch.arange(0, size, 2).float() / size)
    turns = torch.outer(torch.arange(length).float(), frequencies)
    return torch.cat((turns, turns), dim=-1)


def repeated(x: Tensor, times: int) -> Tensor:
    return x.repeat_interleave(times, dim=1)


def expanded(x: Tensor, times: int) -> Tensor:
    B, H, T, D = x.shape
    return x[:, :, None].expand(B, H, times, T, D).reshape(B, H * times, T, D)


class GroupedAttention(nn.Module):
    def __init__(self, n: int, heads: int, kv_heads: int, expand=repeated) -> None:
        super().__init__()
        self.heads, self.kv_heads, self.size = heads, kv_heads, n // heads
        self.expand = expand
        self.wq = nn.Linear(n, heads * self.size, bias=False)
        self.wk = nn.Linear(n, kv_heads * self.size, bias=False)
        self.wv = nn.Linear(n, kv_heads * self.size, bias=False)
        self.wo = nn.Linear(heads * self.size, n, bias=False)

    def turn(self, x: Tensor) -> Tensor:
        by = angles(x.shape[-2], self.size).to(x.dtype)
        return x * by.cos() + rotate_half(x) * by.sin()

    def forward(self, h: Tensor) -> Tensor:
        B, T, _ = h.shape
        q = self.turn(self.wq(h).view(B, T, self.heads, self.size).transpose(1, 2))
        k = self.turn(self.wk(h).view(B, T, self.kv_heads, self.size).transpose(1, 2))
        v = self.wv(h).view(B, T, self.kv_heads, self.size).transpose(1, 2)
        times = self.heads // self.kv_heads
        k, v = self.expand(k, times), self.expand(v, times)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.wo(y.transpose(1, 2).reshape(B, T, self.heads * self.size))


class BufferedAngles(GroupedAttention):
    """Angles in buffers, made once."""

    def __init__(self, n: int, heads: int, kv_heads: int, expand=repeated) -> None:
        super().__init__(n, heads, kv_heads, expand)
        turns = angles(LENGTH, self.size)
        self.register_buffer("cos", turns.cos(), persistent=False)
        self.register_buffer("sin", turns.sin(), persistent=False)

    def turn(self, x: Tensor) -> Tensor:
        return x * self.cos + rotate_half(x) * self.sin


class GatedMLP(nn.Module):
    def __init__(self, n: int, hidden: int) -> None:
        super().__init__()
        self.gate, self.up = nn.Linear(n, hidden, bias=False), nn.Linear(n, hidden, bias=False)
        self.down = nn.Linear(hidden, n, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(F.silu(self.gate(x)) * self.up(x))


class FusedMLP(nn.Module):
    def __init__(self, n: int, hidden: int) -> None:
        super().__init__()
        self.gate_up = nn.Linear(n, 2 * hidden, bias=False)
        self.down = nn.Linear(hidden, n, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        gate, up = self.gate_up(x).chunk(2, dim=-1)
        return self.down(F.silu(gate) * up)


class Llama(nn.Module):
    def __init__(
        self, n: int, heads: int, kv_heads: int, attention=GroupedAttention, mlp=GatedMLP, **how
    ) -> None:
        super().__init__()
        self.tok = nn.Embedding(VOCAB, n)
        self.attn_norm, self.attn = RMSNorm(n), attention(n, heads, kv_heads, **how)
        self.mlp_norm, self.mlp = RMSNorm(n), mlp(n, int(8 * n / 3))
        self.norm, self.out = RMSNorm(n), nn.Linear(n, VOCAB, bias=False)

    def forward(self, idx: Tensor) -> Tensor:
        x = self.tok(idx)
        x = x + self.attn(self.attn_norm(x))
        x = x + self.mlp(self.mlp_norm(x))
        return self.out(self.norm(x))


def sized_heads(n: int, kv_heads: int | None = None, **how) -> nn.Module:
    """Heads of fixed size 8, their number growing; key heads too, or as many as are said."""
    return Llama(n, n // 8, kv_heads or n // 16, attention=BufferedAngles, **how)


IDX = (tokens(2, LENGTH, vocab=VOCAB),)
ROWS = (
    Row("Llama block, head size growing", partial(Llama, heads=4, kv_heads=2), IDX),
    Row("Llama block, heads growing", sized_heads, IDX),
    Row("Llama block, heads growing, fused gate", partial(sized_heads, mlp=FusedMLP), IDX),
    Row(
        "Llama block, two key heads, expand", partial(sized_heads, kv_heads=2, expand=expanded), IDX
    ),
)
