"""Optimizers of the catalogue with their names and numbers in torch, losses, groups."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")


class Signs(torch.optim.Optimizer):
    """The sign of a momentum, with decoupled decay: Lion, and SignSGD where both numbers are 0."""

    def __init__(self, groups: Any, b1: float = 0, b2: float = 0, weight_decay: float = 0) -> None:
        super().__init__(groups, {"b1": b1, "b2": b2, "weight_decay": weight_decay})

    @torch.no_grad()  # type: ignore[untyped-decorator]
    def step(self) -> None:  # type: ignore[override]
        for group in self.param_groups:
            rate, b1, b2 = group["lr"], group["b1"], group["b2"]
            for w in group["params"]:
                m = self.state[w].setdefault("m", torch.zeros_like(w))
                move = torch.sign(b1 * m + (1 - b1) * w.grad)
                w.mul_(1 - rate * group["weight_decay"]).sub_(rate * move)
                m.mul_(b2).add_((1 - b2) * w.grad)


SETTINGS: dict[str, tuple[str, Callable[..., Any], dict[str, Any]]] = {
    "sgd": ("sgd", torch.optim.SGD, {}),
    "momentum": (
        "momentum(decay=0.05)",
        torch.optim.SGD,
        {"momentum": 0.9, "weight_decay": 0.05},
    ),
    "nesterov": (
        "nesterov(decay=0.05)",
        torch.optim.SGD,
        {"momentum": 0.9, "nesterov": True, "weight_decay": 0.05},
    ),
    "adam": ("adam(eps=1e-3)", torch.optim.Adam, {"eps": 1e-3}),
    "adam without eps": ("adam", torch.optim.Adam, {"eps": 1e-100}),
    "adamw": (
        "adamw(eps=1e-8, decay=0.1)",
        torch.optim.AdamW,
        {"eps": 1e-8, "weight_decay": 0.1},
    ),
    "rmsprop": ("rmsprop(eps=1e-4)", torch.optim.RMSprop, {"eps": 1e-4}),
    "adagrad": ("adagrad(eps=1e-4)", torch.optim.Adagrad, {"eps": 1e-4}),
    "signsgd": ("signsgd(decay=0.1)", Signs, {"weight_decay": 0.1}),
    "lion": ("lion(decay=0.1)", Signs, {"b1": 0.9, "b2": 0.99, "weight_decay": 0.1}),
}
LOSSES: dict[str, Callable[[Any, Any], Any]] = {
    "mse": lambda f, y: ((f - y) ** 2).sum(1).mean() / 2,
    "linear": lambda f, y: -f.sum(1).mean(),
    "logistic": lambda f, y: torch.nn.functional.softplus(-y * f).sum(1).mean(),
    "xent": lambda f, y: -(y * torch.log_softmax(f, 1)).sum(1).mean(),
}
GROUPS = {
    "hidden": {"optimizer": "adamw(eps=1e-8, decay=0.1)", "lr": "1/2"},
    "bias": {"optimizer": "lion(decay=0.1)", "lr": 3, "power": "1/2"},
    "readout": {"optimizer": "momentum(decay=0.05)", "beta": "1/2"},
}
