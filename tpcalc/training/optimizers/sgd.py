"""Stochastic gradient descent without momentum."""

from __future__ import annotations

from tpcalc.sources import INTEGRABLE
from tpcalc.training.optimizer import Optimizer

ENTRY = Optimizer(
    "sgd",
    "w = w - lr g",
    text="stochastic gradient descent without momentum",
    source=INTEGRABLE.at("Definition 2.1 (iv)"),
)
