"""The learning rate as it is."""

from __future__ import annotations

from fractions import Fraction

from tpcalc.sources import Source
from tpcalc.training.schedule import RateSchedule

ENTRY = RateSchedule(
    "constant",
    lambda share: Fraction(1),
    text="the same at every step",
    source=Source(
        "Hajjar, Chizat, Giraud, Training integrable parameterizations",
        "Definition 2.1 (iv)",
        "2110.15596",
    ),
)
