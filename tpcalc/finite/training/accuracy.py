"""The class that outputs name, and how often it is the right one."""

from __future__ import annotations

from typing import Any

from tpcalc.engine.device.devices import load_torch


def classes(outputs: Any) -> Any:
    """For each row the most probable class; among equally probable ones the smallest number.

    Probabilities softmax(f) are compared in single precision, whatever the outputs are of. So a
    network whose outputs are of size 1e-9 names class 0, as where accuracies are computed from
    probabilities. Libraries leave open which of equal numbers wins; here it does not depend on
    the device.

    Source: Hajjar, Chizat, Giraud, Table 3, where networks that learn nothing have the share of
        the digit 0, as in their published code.

    Example::

        classes(torch.tensor([[0.0, 0.0], [0.0, 1.0]]))  # 0 and 1
    """
    torch = load_torch()
    count = outputs.shape[1]
    numbers = torch.arange(count, device=outputs.device)
    wide = outputs.to(torch.float64)
    relative = (wide - wide.amax(dim=1, keepdim=True)).exp().to(torch.float32)
    return torch.where(relative == 1, numbers, count).amin(dim=1)


def accuracy(outputs: Any, labels: Any) -> float:
    """The share of rows whose class is the right one.

    Example::

        accuracy(torch.zeros(4, 10), torch.tensor([0, 3, 0, 1]))  # 0.5
    """
    torch = load_torch()
    if not bool(torch.isfinite(outputs).all()):
        return float("nan")
    right = int((classes(outputs) == labels).sum())
    return right / len(labels)
