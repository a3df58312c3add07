"""``losses_of``: the losses of a run at a finite width, with its matrices formed."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from tpcalc.catalog.targets import loss_values, slope_values
from tpcalc.catalog.training import Training
from tpcalc.engine.device.devices import load_torch
from tpcalc.errors import UsageError
from tpcalc.finite.networks.gradients import Forward
from tpcalc.finite.networks.network import DrawnNetwork
from tpcalc.finite.training.quiet import quiet
from tpcalc.finite.training.scales import Scales, start_scales
from tpcalc.finite.training.steps import Updates
from tpcalc.networks.network import written
from tpcalc.program.marks import Mark

__all__ = ["losses_of"]


def losses_of(
    run: Training,
    width: int,
    seed: int = 0,
    *,
    device: str = "cpu",
    dtype: str = "float64",
    report: Callable[[int], None] | None = None,
) -> tuple[float, ...]:
    """The loss of the batch of every step t = 0..T, before its update.

    Args:
        run: The run, of a network whose depth is a number.
        width: The width n.
        seed: Of the network.
        device: Where torch computes.
        dtype: Number format.
        report: Called with each step that is done.

    Returns:
        The losses; they end where one is not finite.

    Raises:
        UsageError: It has no data.
        MissingBackend: No torch, or no such device.

    Example::

        losses_of(tp.at_depth(run, 8), 256)[-1]
    """
    data, network = run.data, run.network
    if data is None:
        raise UsageError("the run has no data.", hint="Give tp.Samples(inputs, targets).")
    torch, outputs = load_torch(), data.outputs // network.positions
    start = start_scales(run.parameterization, network.hidden, width)

    def entries(mark: Mark) -> tuple[float, float]:
        own = start.biases if mark.bias else start.weights
        return own[mark.layer - 1], 0.0

    program = written(network, data.dimension, outputs)
    drawn = DrawnNetwork(program, width, seed, device, dtype, entries)
    updates, last = Updates(drawn, Scales(run, width)), network.hidden + 2
    value, slope = loss_values(run.loss, data.outputs), slope_values(run.loss, data.outputs)
    losses = []
    inputs, targets = np.array(data.inputs, float), np.array(data.targets, float)
    with quiet(run.batch * width**2):
        for step in range(run.steps + 1):
            rows = [(step * run.batch + i) % len(data) for i in range(run.batch)]
            x = torch.as_tensor(inputs[rows], dtype=drawn.dtype, device=drawn.device)
            forward = Forward(drawn, x)
            f = forward.outputs.double().cpu().numpy()
            loss = float(value(f, targets[rows]).mean())
            if not math.isfinite(loss):
                break
            losses.append(loss)
            if step < run.steps:
                chi = torch.as_tensor(slope(f, targets[rows]) / run.batch).to(forward.outputs)
                base = [0.0] * last
                for mark in network.marks:
                    lr = run.lr(mark.layer, step) if callable(run.lr) else run.lr
                    base[mark.layer - 1] = float(lr)
                updates.take(forward.gradients(chi), step, base)
            if report is not None:
                report(step)
    return tuple(losses)
