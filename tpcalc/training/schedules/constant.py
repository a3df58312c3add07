"""The learning rate as it is."""

from __future__ import annotations

from fractions import Fraction

from tpcalc.sources import INTEGRABLE
from tpcalc.training.schedule import RateSchedule

ENTRY = RateSchedule(
    "constant",
    lambda share: Fraction(1),
    text="the same at every step",
    source=INTEGRABLE.at("Definition 2.1 (iv)"),
)
