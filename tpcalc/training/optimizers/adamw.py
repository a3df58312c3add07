"""Adam with decoupled weight decay."""

from __future__ import annotations

from tpcalc.sources import Source
from tpcalc.training.optimizer import Optimizer

ENTRY = Optimizer(
    "adamw",
    """
    m = b1 m + (1 - b1) g
    v = b2 v + (1 - b2) g^2
    w = (1 - lr decay) w - lr (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + eps)
    """,
    text="Adam with decoupled weight decay",
    source=Source("Loshchilov, Hutter, Decoupled weight decay", "Algorithm 2", "1711.05101"),
    values={"b1": "9/10", "b2": "999/1000", "eps": 0, "decay": 0},
)
