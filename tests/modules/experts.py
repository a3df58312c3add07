"""Mixtures of experts, and branches on data."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from modules.rows import BRANCHES, Row, floats

IN, OUT = 8, 3


class Experts(nn.Module):
    """Every expert, weighted by a softmax."""

    def __init__(self, n: int, experts: int = 4) -> None:
        super().__init__()
        self.inp = nn.Linear(IN, n)
        self.gate = nn.Linear(n, experts, bias=False)
        self.experts = nn.ModuleList(
            [
                nn.Sequential(nn.Linear(n, 2 * n), nn.GELU(), nn.Linear(2 * n, n))
                for _ in range(experts)
            ]
        )
        self.out = nn.Linear(n, OUT)

    def route(self, h: Tensor) -> Tensor:
        return F.softmax(self.gate(h), dim=-1)

    def mix(self, h: Tensor) -> Tensor:
        weights = self.route(h)
        outputs = torch.stack([expert(h) for expert in self.experts], dim=-2)
        return (weights.unsqueeze(-1) * outputs).sum(dim=-2)

    def forward(self, x: Tensor) -> Tensor:
        h = self.inp(x)
        return self.out(h + self.mix(h))


class TopTwo(Experts):
    def route(self, h: Tensor) -> Tensor:
        logits = self.gate(h)
        values, chosen = logits.topk(2, dim=-1)
        return torch.zeros_like(logits).scatter(-1, chosen, F.softmax(values, dim=-1))


class Hard(Experts):
    def mix(self, h: Tensor) -> Tensor:
        weights = self.route(h)
        chosen = weights.argmax(dim=-1)
        mixed = torch.zeros_like(h)
        for number, expert in enumerate(self.experts):
            rows = chosen == number
            if rows.any():
                mixed[rows] = weights[rows, number, None] * expert(h[rows])
        return mixed


class Branching(nn.Module):
    def __init__(self, n: int) -> None:
        super().__init__()
        self.inp, self.out = nn.Linear(IN, n), nn.Linear(n, OUT)

    def forward(self, x: Tensor) -> Tensor:
        h = torch.relu(self.inp(x))
        if h.sum() > 0:
            h = h * 2
        return self.out(h)


X = (floats(4, IN),)
ROWS = (
    Row("experts, all of them", Experts, X),
    Row("experts, two by scatter", TopTwo, X),
    Row("experts, rows by a mask", Hard, X, BRANCHES),
    Row("if on a sum", Branching, X, BRANCHES),
)
