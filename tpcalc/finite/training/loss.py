"""Cross-entropy of a batch, its derivative by the outputs, and the size of the outputs."""

from __future__ import annotations

from typing import Any

from tpcalc.engine.device.devices import load_torch


def cross_entropy(outputs: Any, labels: Any) -> tuple[Any, Any, Any]:
    """The mean loss, the mean absolute output, and the derivative of the loss by the outputs.

    Both means are of float64, whatever the outputs are: they are curves that others subtract.

    Source: Hajjar, Chizat, Giraud, section 6.1.
    """
    torch = load_torch()
    wide = outputs.to(torch.float64)
    logs = wide - wide.logsumexp(dim=1, keepdim=True)
    right = labels[:, None]
    loss = -logs.gather(1, right).mean()
    chi = logs.exp_()
    chi.scatter_add_(1, right, torch.full_like(right, -1.0, dtype=chi.dtype))
    chi /= len(labels)
    return loss, wide.abs().mean(), chi.to(outputs.dtype)
