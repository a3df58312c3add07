"""Training written by hand in torch: what networks of blocks are compared with."""

from __future__ import annotations

from typing import Any

import numpy as np

import tpcalc as tp
from tpcalc.finite.draws import Network, draw_group, fill_entries
from tpcalc.program.nodes import Family

__all__ = ["looped"]

RATE = 0.1


def looped(steps: int, batch: int, width: int, seed: int) -> Any:
    """The run of ``run_blocks.on_digits``: outputs of each step, weights updated in place.

    Args:
        steps: How many.
        batch: Samples in a step.
        width: n.
        seed: Draws are those of ``run_dense``.
    """
    import torch

    data = tp.digits(classes=(0, 1), samples=min((steps + 1) * batch, 360), seed=0)
    inputs = torch.tensor(np.array(data.inputs, dtype=float))
    targets = torch.tensor(np.array(data.targets, dtype=float))[:, 0]
    network, matrices = Network(seed, width), []
    for name in ("W2", "W3"):
        entries = np.empty((width, width))
        fill_entries(Family(name, ("n", "n")), [network], [entries])
        matrices.append(torch.from_numpy(entries) * width**-0.5)
    second, third = matrices
    axes = (("in", inputs.shape[1]),)
    first = draw_group(Family("W1", ("n",), axes), range(inputs.shape[1]), network, width)
    u = torch.from_numpy(first)
    v = torch.from_numpy(draw_group(Family("W4", ("n",)), (0,), network, width))[0]
    found = []
    with torch.inference_mode():
        for step in range(steps + 1):
            rows = (np.arange(batch) + step * batch) % len(inputs)
            x, y = inputs[rows], targets[rows]
            a = torch.tanh(x @ u)
            b = torch.tanh(a @ second.T)
            c = torch.tanh(b @ third.T)
            f = c @ v / width
            found.append(f.numpy())
            chi = RATE * (f - y)[:, None] / batch  # rates of muP: n, and n for the readout
            dc = v * (1 - c**2)
            db = dc @ third * (1 - b**2)
            da = db @ second * (1 - a**2)
            v = v - (chi * c).sum(0)
            third.addmm_((chi * dc).T, b, alpha=-1 / width)
            second.addmm_((chi * db).T, a, alpha=-1 / width)
            u = u - x.T @ (chi * da)
    return np.stack(found)
