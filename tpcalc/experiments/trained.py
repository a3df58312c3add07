"""Networks of an experiment trained one after the other, beside what the limit says of them."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Sequence
from pathlib import Path

from tpcalc import checks
from tpcalc.engine.device.devices import resolve_device
from tpcalc.errors import LimitError, ScaleError, StudyError
from tpcalc.experiments.predicted import Prediction, predicted
from tpcalc.finite.statistics import Slope
from tpcalc.finite.training.calibrate import rate_slopes
from tpcalc.finite.training.loop import initial_rates, train_setting
from tpcalc.names import layered
from tpcalc.progress import Progress, part
from tpcalc.results import Experiment, Run, Setting, SlopeRow
from tpcalc.results.images import Images, class_shares
from tpcalc.results.tables import provenance

_EVERY = 20  # steps between two checkpoints
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
    trials = checks.whole(trials, "trials", least=1)
    checks.called(progress, "progress")
    resolve_device(device)  # before anything that takes long
    folder = None if work is None else _folder(work)
    parts = len(settings) + len(by_width)
    runs = []
    for index, setting in enumerate(settings):
        place = None if folder is None else folder / _file(name, setting, images, seed, ranks)
        runs.append(
            train_setting(
                setting,
                images,
                trials=trials,
                seed=seed,
                device=device,
                ranks=ranks,
                checkpoint=place,
                every=_EVERY,
                progress=part(progress, index, index + 1, parts),
            )
        )
    compared = []
    for index, setting in enumerate(by_width, len(settings)):
        tell = part(progress, index, index + 1, parts)
        tell(0.0, f"rates of {setting.text} at width {setting.width}")
        rates = initial_rates(setting, images, trials=trials, seed=seed, device=device)
        compared.append(Run(setting, (), (), rates=rates))
    part(progress, 1.0, 1.0)(0.0, "what the limit says")
    said = {setting.text: _predicted(setting, seed) for setting in settings}
    seconds = time.perf_counter() - started
    return Experiment(
        name=name,
        title=title,
        data=str(images),
        runs=tuple(runs),
        reported=(),
        predicted=tuple((text, found.sentence) for text, found in said.items()),
        provenance=provenance(
            _digest(settings, images),
            seed,
            {"data": images.digest[:12], "device": device, "trials": str(trials)},
            seconds,
        ),
        shares=(("", class_shares(images)),),
        by_width=tuple(compared),
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


def _folder(work: str | Path) -> Path:
    found = Path(checks.file(work, "work"))
    try:
        found.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StudyError(
            f"the folder cannot be made: {error.strerror or error}.",
            where=str(found),
            hint="Choose a place where you may write.",
        ) from error
    return found


def _file(name: str, setting: Setting, images: Images, seed: int, ranks: int) -> str:
    """A name that no other training has: the number of trials may grow, nothing else."""
    facts = [setting.facts, images.digest, images.origin, seed, ranks]
    words = json.dumps(facts, sort_keys=True, default=str)
    kept = "".join(sign if sign.isalnum() else "-" for sign in f"{name} {setting.text}")
    return f"{kept}-{hashlib.sha256(words.encode()).hexdigest()[:12]}.npz"


def _digest(settings: Sequence[Setting], images: Images) -> str:
    facts = [*(setting.facts for setting in settings), images.digest]
    words = json.dumps(facts, sort_keys=True, default=str)
    return hashlib.sha256(words.encode()).hexdigest()[:12]


def _slopes(runs: Sequence[Run]) -> tuple[tuple[str, tuple[SlopeRow, ...]], ...]:
    """The power of the width in calibrated rates, setting by setting."""
    groups: dict[str, list[Run]] = {}
    for run in runs:
        groups.setdefault(run.setting.text, []).append(run)
    found = []
    for text, group in groups.items():
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
