"""``losses_of``, ``trained``: a run at a finite width, with its matrices formed."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from tpcalc.arrays import Array
from tpcalc.engine.device.devices import load_torch
from tpcalc.errors import UsageError
from tpcalc.finite.draws import Network
from tpcalc.finite.networks.gradients import Forward
from tpcalc.finite.networks.network import DrawnNetwork
from tpcalc.finite.paths import draw_paths
from tpcalc.finite.training.samples import accuracy
from tpcalc.finite.training.scales import Scales
from tpcalc.finite.training.steps import Updates, marks_of, quiet
from tpcalc.networks.network import written
from tpcalc.passes.starts import AlongDepth
from tpcalc.program.family import Mark
from tpcalc.results.images import Images
from tpcalc.training.loss import loss_values, slope_values
from tpcalc.training.training import Training


def losses_of(
    run: Training,
    width: int,
    seed: int = 0,
    *,
    device: str = "cpu",
) -> tuple[float, ...]:
    """The loss of the batch of every step t = 0..T, before its update.

    Example::

        losses_of(tp.at_depth(run, 8), 256)[-1]
    """
    return trained(run, width, seed, device=device)[0]


def trained(
    run: Training, width: int, seed: int = 0, *, device: str = "cpu"
) -> tuple[tuple[float, ...], DrawnNetwork]:
    """The losses of a run, and the network after it."""
    data, network = run.data, run.network
    if data is None:
        raise UsageError("the run has no data.", hint="Give tp.Samples(inputs, targets).")
    torch, outputs = load_torch(), data.outputs // network.positions
    scales = Scales(run, width)
    program = written(network, data.dimension, outputs)
    drawn = DrawnNetwork(program, width, seed, device, "float64", scales.start)
    updates, last = Updates(drawn, scales), network.hidden + 2
    _correlate(drawn, network.along_depth, scales.start)
    several = run.loss, data.outputs, network.positions
    value, slope = loss_values(*several), slope_values(*several)
    losses = []
    inputs, targets = np.array(data.inputs, float), np.array(data.targets, float)
    with quiet():
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
    return tuple(losses), drawn


def tested(run: Training, width: int, seed: int, images: Images) -> tuple[float, Array | None]:
    """The share of test images that a trained network names, and its weights along the depth."""
    losses, drawn = trained(run, width, seed)
    if len(losses) <= run.steps:
        return 0.0, None
    torch = load_torch()
    x = np.array(images.test, float) * images.dimension**-0.5
    outputs = drawn(torch.as_tensor(x, dtype=drawn.dtype, device=drawn.device))
    share = accuracy(outputs, torch.as_tensor(np.array(images.test_labels)).to(drawn.device))
    names = next(iter(_places(drawn).values()))
    weights = [drawn.parameters[name].double().cpu().numpy() for name in names]
    return (0.0 if math.isnan(share) else share), np.stack(weights)


def _places(drawn: DrawnNetwork) -> dict[str, list[str]]:
    """Square matrices in order of depth, by their place in a block."""
    places: dict[str, list[str]] = {}
    for name, mark in sorted(marks_of(drawn.program).items(), key=lambda item: item[1].layer):
        if len(drawn.program.families[name].width) == 2:
            places.setdefault(mark.label.partition(".")[2], []).append(name)
    return places


def _correlate(
    drawn: DrawnNetwork, lines: Sequence[AlongDepth], start: Callable[[Mark], tuple[float, float]]
) -> None:
    """Draw what is correlated along the depth anew."""
    marks = marks_of(drawn.program)
    for line in lines:
        mark = marks[line.names[0]]
        place = mark.label.partition(".")[2] + ".bias" * mark.bias
        generator = Network(drawn.seed, drawn.width).stream("along", place)
        shape = drawn.parameters[line.names[0]].shape
        paths = draw_paths(line.law, len(line.names), shape.numel(), generator)
        for name, row in zip(line.names, paths.T, strict=True):
            own = load_torch().from_numpy(row.reshape(shape).copy())
            drawn.parameters[name].copy_(own * start(marks[name])[0])
