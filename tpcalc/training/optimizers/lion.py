"""Lion: the sign of a momentum, with decoupled weight decay."""

from __future__ import annotations

from tpcalc.sources import Source
from tpcalc.training.optimizer import Optimizer

ENTRY = Optimizer(
    "lion",
    """
    w = (1 - lr decay) w - lr sign(b1 m + (1 - b1) g)
    m = b2 m + (1 - b2) g
    """,
    text="the sign of a momentum, entry by entry",
    source=Source(
        "Chen and others, Symbolic discovery of optimization algorithms",
        "Algorithm 2",
        "2302.06675",
    ),
    values={"b1": "9/10", "b2": "99/100", "decay": 0},
)
