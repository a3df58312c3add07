"""Networks written layer by layer, for tests of signal propagation."""

from __future__ import annotations

from collections.abc import Sequence

from tpcalc.signal.lines import Line, Lines, Word
from tpcalc.signal.operations import (
    Activation,
    Addition,
    BatchNorm,
    Bias,
    Input,
    LayerNorm,
    Product,
)
from tpcalc.signal.words import Map as Dense
from tpcalc.signal.words import SharedBias, SpanBias

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
]


def chain(start: Input, words: Sequence[Word]) -> Lines:
    """One layer after the other."""
    return Lines((Line(start, ()),)).chain(words)
