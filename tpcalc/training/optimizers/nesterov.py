"""Stochastic gradient descent with Nesterov's momentum."""

from __future__ import annotations

from tpcalc.sources import Source
from tpcalc.training.optimizer import Optimizer

ENTRY = Optimizer(
    "nesterov",
    """
    m = beta m + g + decay w
    w = w - lr (g + decay w + beta m)
    """,
    text="gradient descent with Nesterov's momentum",
    source=Source("PyTorch, torch.optim.SGD", "nesterov=True"),
    values={"beta": "9/10", "decay": 0},
)
