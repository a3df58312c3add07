"""A learning rate that falls like half a cosine."""

from __future__ import annotations

from fractions import Fraction
from math import cos, pi

from tpcalc.functions.numbers import Number
from tpcalc.sources import Source
from tpcalc.training.schedule import RateSchedule

EXACT = {Fraction(k, 6): Fraction(n, 4) for k, n in ((0, 4), (2, 3), (3, 2), (4, 1), (6, 0))}


def curve(share: Fraction) -> Number:
    """(1 + cos(pi s)) / 2, exact where the cosine is rational."""
    return EXACT[share] if share in EXACT else (1 + cos(pi * share)) / 2


ENTRY = RateSchedule(
    "cosine",
    curve,
    text="falls like half a cosine, (1 + cos(pi t/k)) / 2 at step t of k; 0 behind it",
    source=Source(
        "Loshchilov, Hutter, SGDR: stochastic gradient descent with warm restarts",
        "equation (5)",
        "1608.03983",
    ),
)
