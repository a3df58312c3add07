"""Adagrad: the gradient over the root of the sum of all squares."""

from __future__ import annotations

from tpcalc.sources import Source
from tpcalc.training.optimizer import Optimizer

ENTRY = Optimizer(
    "adagrad",
    """
    g = g + decay w
    v = v + g^2
    w = w - lr g / (sqrt(v) + eps)
    """,
    text="the gradient over the root of the sum of its squares, entry by entry",
    source=Source("Duchi, Hazan, Singer, Adaptive subgradient methods", "Figure 1"),
    values={"eps": 0, "decay": 0},
)
