"""Adam, with a coupled weight decay where one is given."""

from __future__ import annotations

from tpcalc.sources import Source
from tpcalc.training.optimizer import Optimizer

ENTRY = Optimizer(
    "adam",
    """
    g = g + decay w
    m = b1 m + (1 - b1) g
    v = b2 v + (1 - b2) g^2
    w = w - lr (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + eps)
    """,
    text="momentum over the root of a mean of squares, both unbiased, entry by entry",
    source=Source("Kingma, Ba, Adam", "Algorithm 1", "1412.6980"),
    values={"b1": "9/10", "b2": "999/1000", "eps": 0, "decay": 0},
)
