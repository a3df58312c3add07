"""Adagrad: the gradient over the root of the sum of all squares."""

from __future__ import annotations

from tpcalc.catalog.optimizer import Optimizer
from tpcalc.sources import Source

ENTRY = Optimizer(
    "adagrad",
    """
    v = v + g^2
    w = w - lr g / (sqrt(v) + eps)
    """,
    text="the gradient over the root of the sum of its squares, entry by entry",
    source=Source("Duchi, Hazan, Singer, Adaptive subgradient methods", "Figure 1"),
    values={"eps": 0},
)
