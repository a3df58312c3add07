"""RMSprop: the gradient over the root of a mean of squares that starts at 0."""

from __future__ import annotations

from tpcalc.sources import Source
from tpcalc.training.optimizer import Optimizer

ENTRY = Optimizer(
    "rmsprop",
    """
    v = alpha v + (1 - alpha) g^2
    w = w - lr g / (sqrt(v) + eps)
    """,
    text="the gradient over the root of a mean of its squares, entry by entry",
    source=Source("PyTorch, torch.optim.RMSprop", "momentum=0, centered=False"),
    values={"alpha": "99/100", "eps": 0},
)
