"""LARS: a momentum of gradients with a share of the norm of the weight."""

from __future__ import annotations

from tpcalc.sources import Source
from tpcalc.training.optimizer import Optimizer

ENTRY = Optimizer(
    "lars",
    """
    m = beta m + lr trust ratio(norm(w), norm(g) + decay norm(w)) (g + decay w)
    w = w - m
    """,
    text="a momentum of gradients, each with a share of the norm of the weight",
    source=Source("You, Gitman, Ginsburg, Large batch training", "Algorithm 1", "1708.03888"),
    values={"beta": "9/10", "trust": "1/1000", "decay": 0},
)
