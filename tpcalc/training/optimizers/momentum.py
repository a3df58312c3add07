"""Stochastic gradient descent with momentum (heavy ball), weight decay inside the gradient."""

from __future__ import annotations

from tpcalc.sources import Source
from tpcalc.training.optimizer import Optimizer

ENTRY = Optimizer(
    "momentum",
    """
    m = beta m + g + decay w
    w = w - lr m
    """,
    text="gradient descent with momentum (heavy ball)",
    source=Source("PyTorch, torch.optim.SGD", "momentum, weight_decay"),
    values={"beta": "9/10", "decay": 0},
    aliases=("heavy-ball",),
)
