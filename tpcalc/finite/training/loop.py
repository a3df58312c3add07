"""Training on mini-batches of images under a parameterization, over independent trials."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tpcalc import checks
from tpcalc.engine.device.devices import free_memory, load_torch, resolve_device
from tpcalc.engine.memory import memory_text
from tpcalc.errors import Exploded, OutOfMemory, UsageError
from tpcalc.finite.networks.gradients import Forward, Gradients
from tpcalc.finite.networks.network import DrawnNetwork
from tpcalc.finite.training.accuracy import accuracy
from tpcalc.finite.training.calibrate import calibrated_rates
from tpcalc.finite.training.checkpoint import Store, Trial
from tpcalc.finite.training.quiet import quiet
from tpcalc.finite.training.samples import Batches, Pixels, load_pixels
from tpcalc.finite.training.scales import Scales, start_scales
from tpcalc.finite.training.steps import Updates, begun
from tpcalc.finite.widths import check_width, dim_sizes
from tpcalc.names import what_of
from tpcalc.networks.architectures.mlp import BIASES
from tpcalc.networks.network import written
from tpcalc.program.program import Program
from tpcalc.progress import Progress
from tpcalc.results import Run, Setting
from tpcalc.results.images import Images
from tpcalc.training.setting import run_of
from tpcalc.training.training import Training

# Singular values below this, relative to the largest and times the width, count as zero.
_TOLERANCE = 1e-7


_FORMATS = ("float64", "float32")


@dataclass(frozen=True)
class _Job:
    """What all trials of one call share."""

    setting: Setting
    scales: Scales
    program: Program
    seed: int
    device: Any
    dtype: str
    first: str
    train: Pixels
    test: Pixels
    ranks: int


def train_setting(
    setting: Setting,
    images: Images,
    *,
    trials: int = 5,
    seed: int = 0,
    device: str = "cpu",
    dtype: str = "float32",
    first: str = "float64",
    ranks: int = 0,
    checkpoint: str | Path | None = None,
    every: int = 50,
    progress: Progress | None = None,
) -> Run:
    """Train networks of finite width with cross-entropy on mini-batches.

    A trial is the same whichever trials run beside it; its initial weights and its batches are
    also the same on every device and in every precision. The first step, whose activations and
    gradients are powers of n apart, has a precision of its own. Large networks on a CPU use torch's
    threads, on whose number the last digits of torch's products may depend.

    Source: Hajjar, Chizat, Giraud, section 6.

    Example::

        run = train_setting(Setting("gelu", "mup", 6, 1024, std=2.0), images, device="cuda")
        sum(run.accuracies) / run.trials
    """
    trials = checks.whole(trials, "trials", least=1)
    every = checks.whole(every, "every", least=1)
    checks.called(progress, "progress")
    job = _job(setting, images, seed, device, dtype, first, ranks)
    path = None if checkpoint is None else checks.file(checkpoint, "checkpoint")
    store = Store(path, _label(job, images) if path is not None else {})
    kept = store.load()[:trials]
    with quiet(setting.batch * setting.width**2):
        for number in range(trials):
            if number == len(kept):
                kept.append(Trial.fresh(setting.steps))
            for done in _steps(job, number, kept[number], every):
                store.save(kept)
                if progress is not None:
                    words = f"trial {number + 1} of {trials}, step {done} of {setting.steps}"
                    share = 1.0 if kept[number].finished else done / setting.steps
                    progress((number + share) / trials, f"{setting.text}: {words}")
    return _run(setting, kept)


def initial_rates(
    setting: Setting,
    images: Images,
    *,
    trials: int = 5,
    seed: int = 0,
    device: str = "cpu",
) -> tuple[tuple[float, ...], ...]:
    """The calibrated base rates of the first step, without training.

    Source: Hajjar, Chizat, Giraud, section 6.1.

    Example::

        rates = {n: initial_rates(replace(setting, width=n), images) for n in (256, 512, 1024)}
        rate_slopes(rates, cap=setting.cap)
    """
    trials = checks.whole(trials, "trials", least=1)
    job = _job(setting, images, seed, device, "float64", "float64", 0)
    found = []
    with quiet(setting.batch * setting.width**2):
        for number in range(trials):
            updates, batches = _begin(job, number)
            forward, labels = _outputs(updates.network, batches, 0)
            chi = cross_entropy(forward.outputs, labels)[2]
            found.append(_calibrate(job, updates, forward.gradients(chi), batches))
    return tuple(found)


def _steps(job: _Job, number: int, trial: Trial, every: int) -> Iterator[int]:
    """Bring a trial to its end; yields the steps done wherever it can be kept."""
    if trial.finished:
        return
    updates, batches = _begin(job, number)
    if trial.step:
        _restore(job, updates, trial)
    while not trial.finished:
        began = time.perf_counter()
        stop = min(trial.step + every, job.setting.steps)
        _block(job, updates, batches, trial, stop)
        if trial.diverged < 0 and trial.step == job.setting.steps:
            trial.accuracy = _test(job, updates.network)
            if math.isnan(trial.accuracy):
                trial.diverged = trial.step
        trial.finished = trial.diverged >= 0 or trial.step == job.setting.steps
        _keep(updates, trial)
        trial.seconds += time.perf_counter() - began
        yield trial.step


def _block(job: _Job, updates: Updates, batches: Batches, trial: Trial, stop: int) -> None:
    """Some steps; what they gave is fetched at the end, because that waits for the device."""
    setting, start, network = job.setting, trial.step, updates.network
    curves = load_torch().empty((stop - start, 2), dtype=load_torch().float64, device=job.device)
    for t in range(start, stop):
        forward, labels = _outputs(network, batches, t)
        loss, size, chi = cross_entropy(forward.outputs, labels)
        gradients = forward.gradients(chi)
        curves[t - start, 0], curves[t - start, 1] = loss, size
        rates = (setting.lr,) * (setting.depth + 1)
        if t == 0:
            if setting.calibrated:
                rates = _calibrate(job, updates, gradients, batches)
            trial.rates = rates
        updates.take(gradients, t, rates)
        if t == 0:
            _take_ranks(job, network, trial)
            updates.to(job.dtype)
    found = curves.cpu().numpy()
    broken = np.flatnonzero(~np.isfinite(found).all(axis=1))
    good = int(broken[0]) if len(broken) else len(found)
    trial.losses[start : start + good] = found[:good, 0]
    trial.outputs[start : start + good] = found[:good, 1]
    trial.step = start + good
    if len(broken):
        trial.diverged = trial.step


def _take_ranks(job: _Job, network: DrawnNetwork, trial: Trial) -> None:
    if not job.ranks:
        return
    inputs, _ = job.train.part(0, job.ranks, network.dtype)
    with suppress(Exploded):  # the next step says that the trial diverged
        trial.ranks_h, trial.ranks_x = feature_ranks(network, inputs)


def _begin(job: _Job, number: int) -> tuple[Updates, Batches]:
    """The network of a trial at its start, and its batches."""
    setting = job.setting
    network = begun(
        job.program,
        start_scales(job.scales.training.parameterization, setting.depth, setting.width),
        setting.std,
        setting.width,
        job.seed,
        number,
        str(job.device),
        job.first,
    )
    return Updates(network, job.scales), Batches(job.train, setting.batch, job.seed, number)


def _outputs(network: DrawnNetwork, batches: Batches, step: int) -> tuple[Forward, Any]:
    inputs, labels = batches(step, network.dtype)
    return Forward(network, inputs), labels


def _calibrate(
    job: _Job, updates: Updates, gradients: Gradients, batches: Batches
) -> tuple[float, ...]:
    second, _ = batches(1, updates.network.dtype)
    return calibrated_rates(gradients, second, updates, job.setting.cap)


def _test(job: _Job, network: DrawnNetwork) -> float:
    """The accuracy over all test images, batch by batch."""
    right, batch = 0.0, job.setting.batch
    for start in range(0, len(job.test), batch):
        inputs, labels = job.test.part(start, start + batch, network.dtype)
        right += accuracy(network(inputs), labels) * len(labels)
    return right if math.isnan(right) else round(right) / len(job.test)


def _keep(updates: Updates, trial: Trial) -> None:
    """What a trial goes on from: parameters and states as arrays by name."""
    parts = ((f"{name}/{part}", tensor) for name, part, tensor in _parts(updates))
    weights = updates.network.parameters.items()
    trial.weights, trial.states = (
        {} if trial.finished else {name: tensor.cpu().numpy() for name, tensor in found}
        for found in (weights, parts)
    )


def _restore(job: _Job, updates: Updates, trial: Trial) -> None:
    """Give a network the parameters and states that were kept."""
    updates.to(job.dtype)
    copies = [(own, trial.weights[name]) for name, own in updates.network.parameters.items()]
    copies += [(own, trial.states[f"{name}/{part}"]) for name, part, own in _parts(updates)]
    for tensor, array in copies:
        tensor.copy_(load_torch().from_numpy(np.array(array)))


def _parts(updates: Updates) -> Iterator[tuple[str, str, Any]]:
    for name, state in updates.states.items():
        yield from ((name, part, tensor) for part, tensor in state.items())


def _run(setting: Setting, trials: list[Trial]) -> Run:
    ranked = bool(trials and any(trial.ranks_h for trial in trials))
    return Run(
        setting,
        losses=tuple(tuple(trial.losses.tolist()) for trial in trials),
        outputs=tuple(tuple(trial.outputs.tolist()) for trial in trials),
        accuracies=tuple(trial.accuracy for trial in trials),
        ranks_h=tuple(trial.ranks_h for trial in trials) if ranked else (),
        ranks_x=tuple(trial.ranks_x for trial in trials) if ranked else (),
        rates=tuple(trial.rates for trial in trials),
        diverged=tuple(None if trial.diverged < 0 else trial.diverged for trial in trials),
        seconds=sum(trial.seconds for trial in trials),
    )


# --------------------------------------------------------------------------------- what is checked


def _job(
    setting: Setting, images: Images, seed: int, device: str, dtype: str, first: str, ranks: int
) -> _Job:
    seed = checks.whole(seed, "seed", least=0)
    ranks = checks.whole(ranks, "ranks", least=0, hint="It counts images.")
    for name in (dtype, first):
        checks.one_of("number format of a training", name, _FORMATS)
    _check(setting)
    training = run_of(setting)
    scales = Scales(training, setting.width)
    place = resolve_device(device)
    program = written(training.network, images.dimension, images.classes)
    _check_memory(setting, training, program, images, place)
    train, test = load_pixels(images, place)
    return _Job(
        setting,
        scales,
        program,
        seed,
        place,
        dtype,
        first,
        train,
        test,
        min(ranks, len(images.train)),
    )


def _check(setting: Setting) -> None:
    check_width(setting.width)
    for name in ("depth", "steps", "batch"):
        checks.whole(getattr(setting, name), name, least=1)
    checks.one_of("choice of biases", setting.bias, BIASES, where=setting.text)
    for name in ("std", "lr", "cap"):
        value = float(checks.real(getattr(setting, name), name))
        if value < 0 or (name != "lr" and value == 0):
            raise UsageError(
                f"{name} is {value:g}; it must be {'at least' if name == 'lr' else 'above'} 0.",
                where=setting.text,
            )


def _check_memory(
    setting: Setting, training: Training, program: Program, images: Images, device: Any
) -> None:
    """Weights of the first step and once more rounded, states, the values of a batch, images."""
    sizes = dim_sizes(program.dims, setting.width)
    need = most = 0
    for family in program.families.values():
        size = 8 * family.size * math.prod(sizes[name] for name in family.width)
        optimizer = None if family.mark is None else training.optimizer_of(family.mark)
        states = 0 if optimizer is None else len(optimizer.parts) - 2
        need += size * (1 + states)
        most = max(most, size)
    need += most
    need += 8 * setting.batch * (5 * setting.depth + 4) * setting.width
    need += 4 * (len(images.train) + len(images.test)) * images.dimension
    free = free_memory(device)
    if need > free:
        raise OutOfMemory(
            f"a network of width {setting.width} needs {memory_text(need)}, and "
            f"{memory_text(free)} are free.",
            where=setting.text,
            hint="Take a smaller width or batch.",
        )


def _label(job: _Job, images: Images) -> dict[str, str]:
    """What a checkpoint is of; the number of trials and of steps between checkpoints may change."""
    formats = f"{job.first} then {job.dtype}"
    training = job.scales.training
    rules = {training.optimizer_of(mark) for mark in training.network.marks}
    texts = sorted(f"{rule.label}: {rule.rule}" for rule in rules if not rule.is_plain)
    return {
        "setting": json.dumps(job.setting.facts, sort_keys=True, default=str),
        "data": f"{images.digest} ({images.origin})",
        "seed": str(job.seed),
        "precision": formats,
        "device": str(job.device.type),
        "ranks": str(job.ranks),
        "format": "2",
        **({"optimizer": " | ".join(texts)} if texts else {}),
    }


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


def rank(features: Any, width: int) -> int:
    """The rank of a matrix: singular values that are not below sigma_max * n * 1e-7.

    Source: Hajjar, Chizat, Giraud, section 6.3.
    """
    torch = load_torch()
    if not bool(torch.isfinite(features).all()):
        raise Exploded(
            "the features of an image are not finite, so they have no rank.",
            hint="Lower the learning rate.",
        )
    wide = features.to(torch.float64)
    largest = float(wide.abs().max())
    if largest == 0:
        return 0
    # A power of 2 changes no digit; without it squares of tiny features underflow.
    values = torch.linalg.svdvals(wide / 2.0 ** (math.frexp(largest)[1] - 1))
    return int((values >= values[0] * (width * _TOLERANCE)).sum())


def feature_ranks(
    network: DrawnNetwork, inputs: Any, memory_limit: int | None = None
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The ranks of the preactivations h^l and of the activations x^l of images, l = 1..L.

    Layers are computed one after the other, so that a few matrices of images times n are held.

    Source: Hajjar, Chizat, Giraud, section 6.3.
    """
    width = network.width
    need = 5 * 8 * len(inputs) * max(width, inputs.shape[1])
    limit = free_memory(network.device) // 2 if memory_limit is None else memory_limit
    if need > limit:
        raise OutOfMemory(
            f"the features of {len(inputs)} images at width {width} need {memory_text(need)}, and "
            f"{memory_text(limit)} may be used.",
            hint="Take the ranks over fewer images.",
        )
    names = [name for name in network.program.output if what_of(name) in ("h", "x")]
    wanted = {name: network.program.ref(name) for name in names}
    known = network.known(inputs.to(network.device, network.dtype))
    found = {ref: rank(value, width) for ref, value in network.walk(known, wanted.values())}
    of_h, of_x = (
        tuple(found[wanted[name]] for name in names if what_of(name) == what) for what in "hx"
    )
    return of_h, of_x
