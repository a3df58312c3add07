"""Training on mini-batches of images under a parameterization, over independent trials."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from tpcalc import checks
from tpcalc.arrays import Array
from tpcalc.doors.machine import memory_text
from tpcalc.engine.device.devices import free_memory, known_device, load_torch, resolve_device
from tpcalc.errors import Exploded, OutOfMemory
from tpcalc.finite.networks.gradients import Forward, Gradients
from tpcalc.finite.networks.network import DrawnNetwork
from tpcalc.finite.training.calibrate import calibrated_rates
from tpcalc.finite.training.checkpoint import Checkpoint, Trial
from tpcalc.finite.training.samples import Batches, Pixels, accuracy, load_pixels
from tpcalc.finite.training.scales import Scales
from tpcalc.finite.training.steps import Updates, begun, quiet
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
_BY_TRIAL = ("losses", "outputs", "accuracies", "ranks_h", "ranks_x", "rates", "diverged")


@dataclass(frozen=True)
class Common:
    """What all trials of an experiment share."""

    images: Images  # the data
    seed: int = 0  # of initial weights and batches
    device: str = "cpu"  # where networks are trained
    ranks: int = 0  # of how many images features have their ranks taken after the first step
    dtype: str = "float32"  # the number format of all steps but the first
    # That of the first step, whose activations and gradients are powers of n apart
    first: str = "float64"
    every: int = 20  # steps between two checkpoints

    def __post_init__(self) -> None:
        object.__setattr__(self, "seed", checks.seed(self.seed))
        object.__setattr__(self, "every", checks.whole(self.every, "every", least=1))
        ranks = checks.whole(self.ranks, "ranks", least=0, hint="It counts images.")
        object.__setattr__(self, "ranks", min(ranks, len(self.images.train)))
        for name in (self.dtype, self.first):
            checks.one_of("number format of a training", name, _FORMATS)
        known_device(self.device)

    def facts(self, setting: Setting) -> dict[str, object]:
        """All that a trial of a setting depends on, but for its number; the setting is checked."""
        _check(setting)
        training = run_of(setting)
        rules = {training.optimizer_of(mark) for mark in training.network.marks}
        return {
            "setting": setting.facts,
            "data": f"{self.images.digest} ({self.images.origin})",
            "seed": self.seed,
            "precision": f"{self.first} then {self.dtype}",
            "device": self.device.partition(":")[0],
            "ranks": self.ranks,
            "rules": sorted(f"{rule.label}: {rule.rule}" for rule in rules),
        }


@dataclass(frozen=True)
class _Job:
    """The trials of a setting, where they are carried out."""

    common: Common
    setting: Setting
    scales: Scales
    program: Program
    device: Any
    train: Pixels
    test: Pixels


def train_trial(
    common: Common, setting: Setting, number: int, checkpoint: Checkpoint, progress: Progress
) -> tuple[Run]:
    """Train a network of finite width with cross-entropy on mini-batches.

    A trial is the same whichever trials run beside it; its initial weights and its batches are
    also the same on every device and in every precision. It is on one thread, because the last
    digits of torch's products depend on the number of threads.

    Source: Hajjar, Chizat, Giraud, section 6.

    Example::

        (run,) = train_trial(Common(images), setting, 0, Checkpoint(None, ""), lambda *_: None)
    """
    steps, job = setting.steps, _job(common, setting)
    with quiet():
        trial, at = checkpoint.load(steps)
        updates, batches = _begin(job, number)
        if trial.step:
            _restore(job, updates, at, checkpoint)
        while not trial.finished:
            began = time.perf_counter()
            _block(job, updates, batches, trial, min(trial.step + common.every, steps))
            if trial.step == steps and trial.diverged is None:
                trial.accuracy = _test(job, updates.network)
                if math.isnan(trial.accuracy):
                    trial.diverged = steps
            trial.seconds += time.perf_counter() - began
            if not trial.finished:
                checkpoint.save(trial, _tensors(updates))
                progress(trial.step / steps, f"step {trial.step} of {steps}")
    return (_run(setting, trial),)


def first_rates(common: Common, setting: Setting, number: int, _: Progress) -> tuple[Run]:
    """The calibrated base rates of the first step, without training.

    Source: Hajjar, Chizat, Giraud, section 6.1.
    """
    job = _job(common, setting)
    with quiet():
        updates, batches = _begin(job, number)
        forward, labels = _outputs(updates.network, batches, 0)
        chi = cross_entropy(forward.outputs, labels)[2]
        rates = _calibrate(job, updates, forward.gradients(chi), batches)
    return (Run(setting, (), (), rates=(rates,)),)


def joined(setting: Setting, runs: Sequence[Run]) -> Run:
    """Trials of a setting as one run."""
    parts: dict[str, Any] = {
        name: tuple(chain.from_iterable(getattr(run, name) for run in runs)) for name in _BY_TRIAL
    }
    if not any(parts["ranks_h"]):
        parts |= {"ranks_h": (), "ranks_x": ()}
    return Run(setting, **parts, seconds=sum(run.seconds for run in runs))


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
            updates.to(job.common.dtype)
    found = curves.cpu().numpy()
    broken = np.flatnonzero(~np.isfinite(found).all(axis=1))
    good = int(broken[0]) if len(broken) else len(found)
    trial.losses[start : start + good] = found[:good, 0]
    trial.outputs[start : start + good] = found[:good, 1]
    trial.step = start + good
    if len(broken):
        trial.diverged = trial.step


def _take_ranks(job: _Job, network: DrawnNetwork, trial: Trial) -> None:
    if not job.common.ranks:
        return
    inputs, _ = job.train.part(0, job.common.ranks, network.dtype)
    with suppress(Exploded):  # the next step says that the trial diverged
        trial.ranks_h, trial.ranks_x = feature_ranks(network, inputs)


def _begin(job: _Job, number: int) -> tuple[Updates, Batches]:
    """The network of a trial at its start, and its batches."""
    setting = job.setting
    network = begun(
        job.program,
        job.scales,
        setting.std,
        job.common.seed,
        number,
        str(job.device),
        job.common.first,
    )
    batches = Batches(job.train, setting.batch, job.common.seed, number)
    return Updates(network, job.scales), batches


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


def _tensors(updates: Updates) -> dict[str, Any]:
    """What a trial goes on from, by name: parameters, and parts of their states."""
    states = updates.states.items()
    parts = {f"{name}/{key}": own for name, state in states for key, own in state.items()}
    return {**updates.network.parameters, **parts}


def _restore(job: _Job, updates: Updates, at: Mapping[str, Array], checkpoint: Checkpoint) -> None:
    """Give a network the parameters and states that were kept."""
    updates.to(job.common.dtype)
    tensors = _tensors(updates)
    if {name: tuple(own.shape) for name, own in tensors.items()} != {
        name: own.shape for name, own in at.items()
    }:
        raise checkpoint.refused("of another network")
    for name, tensor in tensors.items():
        tensor.copy_(load_torch().from_numpy(np.array(at[name])))


def _run(setting: Setting, trial: Trial) -> Run:
    return Run(
        setting,
        losses=(tuple(trial.losses.tolist()),),
        outputs=(tuple(trial.outputs.tolist()),),
        accuracies=(trial.accuracy,),
        ranks_h=(trial.ranks_h,),
        ranks_x=(trial.ranks_x,),
        rates=(trial.rates,),
        diverged=(trial.diverged,),
        seconds=trial.seconds,
    )


# --------------------------------------------------------------------------------- what is checked


def _job(common: Common, setting: Setting) -> _Job:
    _check(setting)
    training, images = run_of(setting), common.images
    place = resolve_device(common.device)
    program = written(training.network, images.dimension, images.classes)
    _check_memory(setting, training, program, images, place)
    scales = Scales(training, setting.width)
    return _Job(common, setting, scales, program, place, *load_pixels(images, place))


def _check(setting: Setting) -> None:
    check_width(setting.width)
    for name in ("depth", "steps", "batch"):
        checks.whole(getattr(setting, name), name, least=1)
    checks.one_of("choice of biases", setting.bias, BIASES, where=setting.text)
    for name in ("std", "lr", "cap"):
        checks.real(getattr(setting, name), name, least=0, above=None if name == "lr" else 0)


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
