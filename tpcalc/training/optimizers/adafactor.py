"""Adafactor, as torch has it, but for the bound 1/sqrt(t) of its rate."""

from __future__ import annotations

from tpcalc.sources import Source
from tpcalc.training.optimizer import Optimizer

ENTRY = Optimizer(
    "adafactor",
    """
    v = (1 - 1 / t^gamma) v + g^2 / t^gamma
    u = g / sqrt(factored(v))
    w = (1 - lr decay) w - lr max(eps, rms(w)) u / max(1, rms(u) / d)
    """,
    text="the gradient over the root of a factored mean of squares, with the scale of the weight",
    source=Source("Shazeer, Stern, Adafactor", "Algorithm 4", "1804.04235"),
    values={"gamma": "4/5", "d": 1, "eps": "1/1000", "decay": 0},
)
