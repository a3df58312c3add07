"""Recurrent networks: of the library, and as loops."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from modules.rows import Row, floats, tokens

VOCAB = 20


class LanguageLSTM(nn.Module):
    def __init__(self, n: int) -> None:
        super().__init__()
        self.emb = nn.Embedding(VOCAB, n)
        self.lstm = nn.LSTM(n, n, num_layers=2, batch_first=True)
        self.out = nn.Linear(n, VOCAB)

    def forward(self, idx: Tensor) -> Tensor:
        states, _ = self.lstm(self.emb(idx))
        return self.out(states)


class CellLoop(nn.Module):
    def __init__(self, n: int) -> None:
        super().__init__()
        self.n = n
        self.cell = nn.GRUCell(5, n)
        self.out = nn.Linear(n, 3)

    def forward(self, x: Tensor) -> Tensor:
        h = x.new_zeros(x.shape[0], self.n)
        for t in range(x.shape[1]):
            h = self.cell(x[:, t], h)
        return self.out(h)


class PlainLoop(nn.Module):
    """tanh, and one matrix at every step."""

    def __init__(self, n: int) -> None:
        super().__init__()
        self.inp = nn.Linear(5, n, bias=False)
        self.w = nn.Linear(n, n, bias=False)
        self.out = nn.Linear(n, 3, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        h = torch.tanh(self.inp(x[:, 0]))
        for t in range(1, x.shape[1]):
            h = torch.tanh(self.w(h) + self.inp(x[:, t]))
        return self.out(h)


SEQUENCE = (floats(3, 4, 5),)
ROWS = (
    Row("nn.LSTM, two layers", LanguageLSTM, (tokens(2, 5, vocab=VOCAB),)),
    Row("nn.GRUCell in a loop", CellLoop, SEQUENCE),
    Row("tanh in a loop", PlainLoop, SEQUENCE),
)
