"""Transformers of the library itself."""

from __future__ import annotations

from functools import partial

from torch import Tensor, nn

from modules.rows import BRANCHES, Row, floats, tokens

VOCAB, LENGTH, BATCH = 24, 5, 2


def layer(n: int, **how) -> nn.Module:
    return nn.TransformerEncoderLayer(n, 4, 2 * n, dropout=0.0, batch_first=True, **how)


def decoder_layer(n: int) -> nn.Module:
    return nn.TransformerDecoderLayer(n, 4, 2 * n, dropout=0.0, batch_first=True)


class Encoder(nn.Module):
    """A stack with a causal mask, which the library looks at unless it is told."""

    def __init__(self, n: int, told: bool | None = None) -> None:
        super().__init__()
        self.told = told
        self.emb = nn.Embedding(VOCAB, n)
        self.stack = nn.TransformerEncoder(layer(n, norm_first=True), 2, enable_nested_tensor=False)
        self.head = nn.Linear(n, VOCAB)

    def forward(self, idx: Tensor) -> Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(idx.shape[1])
        return self.head(self.stack(self.emb(idx), mask=mask, is_causal=self.told))


def wide(n: int) -> tuple[Tensor]:
    return (floats(BATCH, LENGTH, n),)


def wide_pair(n: int) -> tuple[Tensor, Tensor]:
    return floats(BATCH, LENGTH, n), floats(BATCH, LENGTH + 1, n, seed=1)


IDX = (tokens(BATCH, LENGTH, vocab=VOCAB),)
ROWS = (
    Row("nn.TransformerEncoderLayer, norm first", partial(layer, norm_first=True), wide),
    Row("nn.TransformerEncoderLayer, norm last", layer, wide),
    Row("nn.TransformerEncoder with a mask", Encoder, IDX, BRANCHES),
    Row("nn.TransformerEncoder, is_causal=True", partial(Encoder, told=True), IDX),
    Row("nn.TransformerDecoderLayer", decoder_layer, wide_pair),
)
