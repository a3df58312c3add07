"""Networks of an experiment trained as tasks, beside what the limit says of them."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tpcalc import checks
from tpcalc.engine.device.devices import known_device, resolve_device
from tpcalc.errors import LimitError, ScaleError
from tpcalc.experiments.predicted import Prediction, predicted
from tpcalc.experiments.records import records
from tpcalc.finite.statistics import Slope
from tpcalc.finite.training.calibrate import rate_slopes
from tpcalc.finite.training.checkpoint import Checkpoint
from tpcalc.finite.training.loop import Common, first_rates, joined, train_trial
from tpcalc.names import layered
from tpcalc.progress import Progress, part
from tpcalc.results import Experiment, Run, Setting, SlopeRow
from tpcalc.results.data import grouped
from tpcalc.results.images import Images, class_shares
from tpcalc.results.tables import provenance
from tpcalc.tasks.kept import Kept
from tpcalc.tasks.run import elsewhere
from tpcalc.tasks.task import Task

_FITTED = 3  # widths that a slope needs


def trained(
    settings: Sequence[Setting],
    images: Images,
    *,
    name: str = "experiment",
    title: str = "Trained networks",
    by_width: Sequence[Setting] = (),
    trials: int = 5,
    seed: int = 0,
    device: str = "cpu",
    ranks: int = 0,
    work: str | Path | None = None,
    progress: Progress | None = None,
) -> Experiment:
    """Train networks of finite width, beside what the limit says of each.

    Source: Hajjar, Chizat, Giraud, section 6.

    Example::

        found = trained([Setting("relu", "mup", 3, 64, steps=10, batch=32)], images, trials=2)
        found.runs[0].accuracies
    """
    started = time.perf_counter()
    trials = checks.whole(trials, "trials", least=1, each=checks.PART)
    checks.called(progress, "progress", 0.0, "")
    common = Common(images, seed, device_for_tasks(device), ranks)
    place = "".join(sign if sign.isalnum() else "-" for sign in name)
    with Kept(work, place or "experiment", f"the experiment {name}") as kept:
        runs, compared = _runs(common, settings, by_width, trials, kept, progress)
    part(progress, 1.0, 1.0)(0.0, "what the limit says")
    said = {setting.text: _predicted(setting, seed) for setting in settings}
    seconds = time.perf_counter() - started
    return Experiment(
        name=name,
        title=title,
        data=str(images),
        runs=runs,
        reported=(),
        predicted=tuple((text, found.sentence) for text, found in said.items()),
        provenance=provenance(
            _digest([*(setting.facts for setting in settings), images.digest]),
            seed,
            {"data": images.digest[:12], "device": device, "trials": str(trials)},
            seconds,
        ),
        shares=(("", class_shares(images)),),
        by_width=compared,
        slopes=_slopes(compared),
        theorems=tuple((text, found.theorems) for text, found in said.items() if found.theorems),
        vanishing=tuple(text for text, found in said.items() if found.vanishes),
        growth=tuple(
            (text, found.growth.words) for text, found in said.items() if found.growth is not None
        ),
        ranked=min(ranks, len(images.train)),
    )


def _predicted(setting: Setting, seed: int) -> Prediction:
    """What the limit says; that the calculus does not cover a network is no reason to lose runs."""
    try:
        return predicted(setting, seed=seed)
    except (LimitError, ScaleError) as error:
        return Prediction(f"not covered: {error.message}")


def device_for_tasks(device: str) -> str:
    """A device where trials are carried out; that of another machine is found there."""
    known_device(device)
    return device if elsewhere() and device != "auto" else str(resolve_device(device))


def _runs(
    common: Common,
    settings: Sequence[Setting],
    by_width: Sequence[Setting],
    trials: int,
    kept: Kept,
    progress: Progress | None,
) -> tuple[tuple[Run, ...], tuple[Run, ...]]:
    """All trials of all settings, computed or kept: each is a task."""
    every, count = (*settings, *by_width), len(settings)
    tasks = [
        *(task for own in settings for task in _tasks(common, own, trials, kept)),
        *(task for own in by_width for task in _tasks(common, own, trials, None)),
    ]
    found = [run for (run,) in records(tasks, kept, Run, shared=common, progress=progress)]
    joint = tuple(
        joined(setting, found[place * trials : (place + 1) * trials])
        for place, setting in enumerate(every)
    )
    return joint[:count], joint[count:]


def _tasks(common: Common, setting: Setting, trials: int, kept: Kept | None) -> Iterator[Task]:
    """Trials that are kept on their way; without a place for that the first rates alone."""
    digest, what = _digest(common.facts(setting)), "" if kept else "rates of "
    for number in range(trials):
        text = f"{what}{setting.text}, n = {setting.width}, trial {number + 1}"
        key = f"{text}, {digest}"
        call: tuple[Any, ...] = (first_rates, setting, number)
        if kept is not None:
            call = (train_trial, setting, number, Checkpoint(kept.state(key), key))
        yield Task(f"{text} of {trials}", call, key)


def _digest(facts: object) -> str:
    words = json.dumps(facts, sort_keys=True, default=str)
    return hashlib.sha256(words.encode()).hexdigest()[:12]


def _slopes(runs: Sequence[Run]) -> tuple[tuple[str, tuple[SlopeRow, ...]], ...]:
    """The power of the width in calibrated rates, setting by setting."""
    found = []
    for text, group in grouped(runs, lambda run: run.setting.text).items():
        rates = {run.setting.width: run.rates for run in group}
        if len(rates) < _FITTED:
            few = Slope(reason=f"{len(rates)} of the {_FITTED} widths that a slope needs")
            slopes: tuple[Slope, ...] = (few,) * (group[0].setting.depth + 1)
        else:
            slopes = rate_slopes(rates, cap=group[0].setting.cap)
        rows = (
            SlopeRow(layered("eta", layer), "mean", one.value, one.low, one.high, one.reason)
            for layer, one in enumerate(slopes, 1)
        )
        found.append((text, tuple(rows)))
    return tuple(found)
