"""The sign of the gradient, entry by entry."""

from __future__ import annotations

from tpcalc.sources import Source
from tpcalc.training.optimizer import Optimizer

ENTRY = Optimizer(
    "signsgd",
    "w = (1 - lr decay) w - lr sign(g)",
    text="the sign of the gradient, entry by entry",
    source=Source(
        "Bernstein, Wang, Azizzadenesheli, Anandkumar, signSGD", "Algorithm 1", "1802.04434"
    ),
    values={"decay": 0},
    aliases=("sign",),
)
