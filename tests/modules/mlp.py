"""Multilayer perceptrons and what is put around linear maps."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.parametrizations import weight_norm

from modules.rows import Row, floats

IN, OUT = 16, 4


class ResidualMLP(nn.Module):
    def __init__(self, n: int, blocks: int = 2) -> None:
        super().__init__()
        self.inp = nn.Linear(IN, n)
        self.norms = nn.ModuleList([nn.LayerNorm(n) for _ in range(blocks)])
        self.ups = nn.ModuleList([nn.Linear(n, 2 * n) for _ in range(blocks)])
        self.downs = nn.ModuleList([nn.Linear(2 * n, n) for _ in range(blocks)])
        self.out = nn.Linear(n, OUT)

    def forward(self, x: Tensor) -> Tensor:
        x = self.inp(x)
        for norm, up, down in zip(self.norms, self.ups, self.downs, strict=True):
            x = x + down(F.gelu(up(norm(x))))
        return self.out(x)


def plain(n: int) -> nn.Module:
    return nn.Sequential(
        nn.Linear(IN, n), nn.ReLU(), nn.Linear(n, n), nn.ReLU(inplace=True), nn.Linear(n, OUT)
    )


class Siren(nn.Module):
    """Sines of maps, with the inits of their own."""

    def __init__(self, n: int, depth: int = 2, omega: float = 30.0) -> None:
        super().__init__()
        self.omega = omega
        sizes = [2, *[n] * depth]
        self.layers = nn.ModuleList([nn.Linear(a, b) for a, b in pairwise(sizes)])
        self.last = nn.Linear(n, 1)
        with torch.no_grad():
            self.layers[0].weight.uniform_(-1 / 2, 1 / 2)
            for layer in [*self.layers[1:], self.last]:
                bound = math.sqrt(6 / n) / omega
                layer.weight.uniform_(-bound, bound)

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = torch.sin(self.omega * layer(x))
        return self.last(x)


def weight_normed(n: int) -> nn.Module:
    return nn.Sequential(
        weight_norm(nn.Linear(IN, n)), nn.Tanh(), weight_norm(nn.Linear(n, n)), nn.Tanh(),
        nn.Linear(n, OUT),
    )  # fmt: skip


class LoRALinear(nn.Module):
    def __init__(self, base: nn.Linear, rank: int = 4, alpha: float = 8.0) -> None:
        super().__init__()
        self.base = base.requires_grad_(False)
        self.down = nn.Parameter(torch.empty(rank, base.in_features))
        self.up = nn.Parameter(torch.zeros(base.out_features, rank))
        nn.init.kaiming_uniform_(self.down, a=math.sqrt(5))
        self.scale = alpha / rank

    def forward(self, x: Tensor) -> Tensor:
        return self.base(x) + (x @ self.down.T @ self.up.T) * self.scale


def adapted(n: int) -> nn.Module:
    frozen, last = nn.Linear(IN, n).requires_grad_(False), nn.Linear(n, OUT).requires_grad_(False)
    return nn.Sequential(
        frozen, nn.GELU(), LoRALinear(nn.Linear(n, n)), nn.GELU(), LoRALinear(nn.Linear(n, n)), last
    )


class TwoTowers(nn.Module):
    """Two inputs, and the cosine of what is made of them."""

    def __init__(self, n: int) -> None:
        super().__init__()
        self.left, self.right = nn.Linear(IN, n), nn.Linear(8, n)
        self.proj = nn.Linear(n, n, bias=False)
        self.temperature = nn.Parameter(torch.tensor(1.0))

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        a = F.normalize(self.proj(torch.relu(self.left(a))), dim=-1)
        b = F.normalize(torch.relu(self.right(b)), dim=-1)
        return self.temperature.exp() * a @ b.T


class Conditioned(nn.Module):
    """Inputs by keyword, a record of two outputs, and a gate by the condition."""

    def __init__(self, n: int) -> None:
        super().__init__()
        self.inp = nn.Linear(IN, n)
        self.cond = nn.Linear(3, 2 * n)
        self.hidden = nn.Linear(n, n)
        self.value, self.policy = nn.Linear(n, 1), nn.Linear(n, OUT)

    def forward(self, x: Tensor, cond: Tensor | None = None) -> dict[str, Tensor]:
        h = torch.relu(self.inp(x))
        if cond is not None:
            scale, shift = self.cond(cond).chunk(2, dim=-1)
            h = h * (1 + scale) + shift
        h = torch.relu(self.hidden(h))
        return {"policy": self.policy(h), "value": self.value(h).squeeze(-1)}


class ReZero(nn.Module):
    """A scalar in front of each branch, 0 at the start, and a truncated normal init."""

    def __init__(self, n: int) -> None:
        super().__init__()
        self.inp, self.hidden = nn.Linear(IN, n), nn.Linear(n, n)
        self.alpha = nn.Parameter(torch.zeros(()))
        self.out = nn.Linear(n, OUT, bias=False)
        nn.init.trunc_normal_(self.hidden.weight, std=n**-0.5)
        nn.init.orthogonal_(self.out.weight)

    def forward(self, x: Tensor) -> Tensor:
        h = self.inp(x)
        return self.out(h + self.alpha * torch.tanh(self.hidden(h)))


X: tuple[Any, ...] = (floats(4, IN),)
ROWS = (
    Row("MLP with LayerNorm and residuals", ResidualMLP, X),
    Row("plain MLP in a Sequential", plain, X),
    Row("Siren", Siren, (floats(4, 2),)),
    Row("weight norm", weight_normed, X),
    Row("LoRA on frozen maps", adapted, X),
    Row("two inputs", TwoTowers, (floats(4, IN), floats(4, 8, seed=1))),
    Row("keywords in, a record out", Conditioned, {"x": floats(4, IN), "cond": floats(4, 3)}),
    Row("ReZero, truncated and orthogonal inits", ReZero, X),
)
