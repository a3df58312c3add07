"""By how much the output moves when one parameter alone takes the first step: slopes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from modules.case import Case

WIDTHS = (128, 256, 512, 1024)


def terms(case: Case, width: int, seed: int) -> dict[str, float]:
    """For each parameter its gradient times its step, of a fixed linear function of the output."""
    torch.manual_seed(seed)
    module = case.make(width).double()
    output = case.run(module, width, torch.float64)
    probe = torch.randn(output.shape, generator=torch.Generator().manual_seed(1))
    (output * probe).sum().backward()
    before = {name: w.detach().clone() for name, w in module.named_parameters()}
    gradients = {name: w.grad.clone() for name, w in module.named_parameters()}
    case.step(module, width)
    return {
        name: float(((before[name] - w.detach()) * gradients[name]).sum())
        for name, w in module.named_parameters()
    }


def slopes(
    case: Case, widths: Sequence[int] = WIDTHS, seeds: int = 4
) -> dict[str, tuple[float, float]]:
    """The slope of each term and that of its last octave, from geometric means over seeds.

    A term that is exactly 0 has -oo.
    """
    found = [[terms(case, width, seed) for seed in range(seeds)] for width in widths]
    logs = np.log2(widths)
    made = {}
    for name in found[0][0]:
        values = np.abs([[one[name] for one in row] for row in found])
        if not values.any():
            made[name] = -np.inf, -np.inf
            continue
        means = np.log2(values).mean(axis=1)
        last = float((means[-1] - means[-2]) / (logs[-1] - logs[-2]))
        made[name] = float(np.polyfit(logs, means, 1)[0]), last
    return made
