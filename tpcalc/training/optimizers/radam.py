"""RAdam: gradient descent with momentum for some steps, Adam after, with either decay."""

from __future__ import annotations

from tpcalc.sources import Source
from tpcalc.training.optimizer import Optimizer
from tpcalc.training.optimizer_text import DECAYS

ENTRIES = tuple(
    Optimizer(
        f"radam{suffix}",
        f"""
        {decay}
        m = b1 m + (1 - b1) g
        v = b2 v + (1 - b2) g^2
        most = 2 / (1 - b2) - 1
        rho = most - 2 t b2^t / (1 - b2^t)
        late = (1 + sign(rho - 5)) / 2
        r = sqrt(late (rho - 4) (rho - 2) most / ((most - 4) (most - 2) rho))
        u = m / (1 - b1^t)
        w = w - lr (1 - late) u - lr r u sqrt(1 - b2^t) / (sqrt(v) + eps)
        """,
        text="gradient descent with momentum for some steps, and Adam after",
        source=Source("Liu and others, On the variance of the adaptive rate", arxiv="1908.03265"),
        values={"b1": "9/10", "b2": "999/1000", "eps": 0, "decay": 0},
    )
    for suffix, decay in DECAYS.items()
)
