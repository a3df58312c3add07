"""Networks written layer by layer, in theory and drawn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from scipy.special import ndtri

from tpcalc.finite.networks.network import DrawnNetwork
from tpcalc.finite.networks.uses import Tap
from tpcalc.meanfield.network import network_of
from tpcalc.meanfield.notation.lines import Line, Lines
from tpcalc.meanfield.operations import (
    Activation,
    Addition,
    BatchNorm,
    Bias,
    Dense,
    Input,
    LayerNorm,
    Product,
    SharedBias,
    SpanBias,
)
from tpcalc.meanfield.operations import Operation as Word
from tpcalc.networks.network import INPUT

__all__ = [
    "Activation",
    "Addition",
    "BatchNorm",
    "Bias",
    "Dense",
    "Input",
    "LayerNorm",
    "Line",
    "Lines",
    "Product",
    "SharedBias",
    "SpanBias",
    "Word",
    "chain",
    "drawn",
    "inside",
    "matrix",
]


def chain(start: Input, words: Sequence[Word]) -> Lines:
    """One layer after the other."""
    return Lines((Line(start, ()),)).chain(words)


def drawn(words: Sequence[Word], width: int, inputs: int, seed: int = 0) -> DrawnNetwork:
    """One layer after the other, drawn."""
    return network_of(chain(Input(), words), width, inputs, seed)


def inside(
    words: Sequence[Word], width: int, columns: int | None = None, seed: int = 0
) -> Callable[[Any], Any]:
    """Layers one after the other as a function of what the first one reads, all of them wide.

    Of padded maps the first coordinates are kept, exactly as many as the rank says.
    """
    network = drawn([Dense(width=Fraction(columns or width, width)), *words], width, 1, seed)
    for name, mask in network.parameters.items():
        if name.endswith(".mask"):
            mask.copy_(mask.new_tensor(ndtri([(k + 0.5) / len(mask) for k in range(len(mask))])))
    (out,) = network.outputs
    start = network.program.ref("h[h1]")
    network.taps = tuple(map(Tap, (network.program.inputs[INPUT], start, out)))
    return network.between(1, 2)


def matrix(word: Dense, rows: int, columns: int, seed: int = 0) -> Any:
    """The weights of a map between widths."""
    import torch

    return inside([word], rows, columns, seed)(torch.eye(columns, dtype=torch.float64)).T
