"""Adadelta: the gradient with the size of past steps, which starts at the root of a number."""

from __future__ import annotations

from tpcalc.sources import Source
from tpcalc.training.optimizer import Optimizer

# Both are roots of the eps of the paper: eps has the unit of a gradient, floor that of a step.
ENTRY = Optimizer(
    "adadelta",
    """
    g = g + decay w
    v = rho v + (1 - rho) g^2
    d = g sqrt(u + floor^2) / sqrt(v + eps^2)
    u = rho u + (1 - rho) d^2
    w = w - lr d
    """,
    text="the gradient over the root of a mean of its squares, times that of its steps",
    source=Source("Zeiler, Adadelta", "Algorithm 1", "1212.5701"),
    values={"rho": "9/10", "floor": "1e-3", "eps": 0, "decay": 0},
)
