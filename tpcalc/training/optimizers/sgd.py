"""Stochastic gradient descent without momentum."""

from __future__ import annotations

from tpcalc.sources import Source
from tpcalc.training.optimizer import Optimizer

ENTRY = Optimizer(
    "sgd",
    "w = w - lr g",
    text="stochastic gradient descent without momentum",
    source=Source(
        "Hajjar, Chizat, Giraud, Training integrable parameterizations",
        "Definition 2.1 (iv)",
        "2110.15596",
    ),
)
