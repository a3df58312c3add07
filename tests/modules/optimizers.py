"""Optimizers that torch does not have, as people write them."""

from __future__ import annotations

from typing import Any

import torch


class Factored(torch.optim.Optimizer):
    """Adafactor without the scale of the parameter: second moments by rows and by columns."""

    def __init__(self, groups: Any, lr: float = 1e-3) -> None:
        super().__init__(groups, {"lr": lr})

    @torch.no_grad()  # type: ignore[untyped-decorator]
    def step(self) -> None:  # type: ignore[override]
        for group in self.param_groups:
            for w in group["params"]:
                square = w.grad.square()
                rows, columns = square.mean(-1, keepdim=True), square.mean(-2, keepdim=True)
                second = rows * columns / rows.mean()
                w.sub_(group["lr"] * w.grad / second.sqrt().add(1e-30))
