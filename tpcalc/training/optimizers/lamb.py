"""LAMB: Adam's step with the norm of the weight."""

from __future__ import annotations

from tpcalc.sources import Source
from tpcalc.training.optimizer import Optimizer

ENTRY = Optimizer(
    "lamb",
    """
    m = b1 m + (1 - b1) g
    v = b2 v + (1 - b2) g^2
    u = (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + eps) + decay w
    w = w - lr ratio(norm(w), norm(u)) u
    """,
    text="Adam's step, with the norm of the weight",
    source=Source("You and others, Large batch optimization", "Algorithm 2", "1904.00962"),
    values={"b1": "9/10", "b2": "999/1000", "eps": 0, "decay": 0},
)
