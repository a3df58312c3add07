"""NAdam: Adam with Nesterov's momentum, with a coupled or a decoupled decay."""

from __future__ import annotations

from tpcalc.sources import Source
from tpcalc.training.optimizer import Optimizer
from tpcalc.training.optimizer_text import DECAYS

ENTRIES = tuple(
    Optimizer(
        f"nadam{suffix}",
        f"""
        {decay}
        m = b1 m + (1 - b1) g
        v = b2 v + (1 - b2) g^2
        a = b1 (1 - 1/2 0.96^(t psi))
        next = b1 (1 - 1/2 0.96^((t + 1) psi))
        q = 1 - (1 - q) a
        u = (1 - a) g / q + next m / (1 - (1 - q) next)
        w = w - lr u / (sqrt(v / (1 - b2^t)) + eps)
        """,
        text="Adam with Nesterov's momentum",
        source=Source("PyTorch, torch.optim.NAdam"),
        values={"b1": "9/10", "b2": "999/1000", "psi": "1/250", "eps": 0, "decay": 0},
    )
    for suffix, decay in DECAYS.items()
)
