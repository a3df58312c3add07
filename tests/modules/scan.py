"""A selective scan as a loop over positions."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from modules.rows import Row, tokens

VOCAB, LENGTH, STATE = 20, 4, 16


class Scan(nn.Module):
    def __init__(self, n: int, kernel: int = 3) -> None:
        super().__init__()
        self.rank, inner = n // 16, 2 * n
        self.in_proj = nn.Linear(n, 2 * inner, bias=False)
        self.conv = nn.Conv1d(inner, inner, kernel, groups=inner, padding=kernel - 1)
        self.x_proj = nn.Linear(inner, self.rank + 2 * STATE, bias=False)
        self.dt_proj = nn.Linear(self.rank, inner)
        self.A_log = nn.Parameter(torch.log(torch.arange(1, STATE + 1).float().repeat(inner, 1)))
        self.D = nn.Parameter(torch.ones(inner))
        self.out_proj = nn.Linear(inner, n, bias=False)
        nn.init.uniform_(self.dt_proj.weight, -(self.rank**-0.5), self.rank**-0.5)
        nn.init.constant_(self.dt_proj.bias, math.log(math.expm1(0.1)))

    def forward(self, h: Tensor) -> Tensor:
        x, z = self.in_proj(h).chunk(2, dim=-1)
        x = F.silu(self.conv(x.transpose(1, 2))[..., : h.shape[1]]).transpose(1, 2)
        dt, B, C = self.x_proj(x).split([self.rank, STATE, STATE], dim=-1)
        dt = F.softplus(self.dt_proj(dt))
        A = -torch.exp(self.A_log)
        state = torch.zeros_like(x[:, 0]).unsqueeze(-1)
        outputs = []
        for t in range(h.shape[1]):
            decay = torch.exp(dt[:, t, :, None] * A)
            state = decay * state + (dt[:, t] * x[:, t])[..., None] * B[:, t, None, :]
            outputs.append((state * C[:, t, None, :]).sum(-1))
        y = torch.stack(outputs, dim=1) + self.D * x
        return self.out_proj(y * F.silu(z))


class Mamba(nn.Module):
    def __init__(self, n: int) -> None:
        super().__init__()
        self.emb, self.norm, self.mixer = nn.Embedding(VOCAB, n), nn.RMSNorm(n), Scan(n)
        self.last, self.head = nn.RMSNorm(n), nn.Linear(n, VOCAB, bias=False)

    def forward(self, idx: Tensor) -> Tensor:
        h = self.emb(idx)
        return self.head(self.last(h + self.mixer(self.norm(h))))


ROWS = (Row("selective scan in a loop", Mamba, (tokens(2, LENGTH, vocab=VOCAB),)),)
