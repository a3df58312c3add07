"""RMSprop: the gradient over the root of a mean of squares that starts at 0."""

from __future__ import annotations

from tpcalc.sources import Source
from tpcalc.training.optimizer import Optimizer

ENTRIES = (
    Optimizer(
        "rmsprop",
        """
        v = alpha v + (1 - alpha) g^2
        w = w - lr g / (sqrt(v) + eps)
        """,
        text="the gradient over the root of a mean of its squares, entry by entry",
        source=Source("PyTorch, torch.optim.RMSprop", "momentum=0, centered=False"),
        values={"alpha": "99/100", "eps": 0},
    ),
    *(
        Optimizer(
            f"rmsprop-{kind}",
            f"""
            g = g + decay w
            v = alpha v + (1 - alpha) g^2
            a = alpha a + (1 - alpha) g
            m = beta m + g / (sqrt({square}) + eps)
            w = w - lr m
            """,
            text=f"a momentum of gradients over the root of a {mean}, entry by entry",
            source=Source("PyTorch, torch.optim.RMSprop", kind),
            values={"alpha": "99/100", "beta": 0, "eps": 0, "decay": 0},
        )
        for kind, mean, square in (
            ("momentum", "mean of their squares", "v"),
            ("centered", "variance", "max(0, v - a^2)"),
        )
    ),
)
