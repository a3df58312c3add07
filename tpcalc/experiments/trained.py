"""Networks of an experiment trained as tasks, beside what the limit says of them before."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

from tpcalc import checks
from tpcalc.engine.device.devices import known_device, resolve_device
from tpcalc.errors import LimitError, ScaleError
from tpcalc.experiments.records import records
from tpcalc.exponents import Ex
from tpcalc.finite.statistics import Slope
from tpcalc.finite.training.calibrate import rate_slopes
from tpcalc.finite.training.checkpoint import Checkpoint
from tpcalc.finite.training.loop import Common, first_rates, joined, train_trial
from tpcalc.names import Name, layered
from tpcalc.progress import Progress, part
from tpcalc.questions.check import width_check
from tpcalc.questions.verdict.sizes import RANDOM
from tpcalc.results import Experiment, OrderRow, Run, Setting, SlopeRow, Verdict
from tpcalc.results.data import grouped
from tpcalc.results.experiment import SHOWN
from tpcalc.results.images import Images, class_shares
from tpcalc.results.tables import provenance
from tpcalc.tasks.kept import Kept
from tpcalc.tasks.run import elsewhere
from tpcalc.tasks.task import Task
from tpcalc.theorems.integrable.predicates.registry import applicable
from tpcalc.training.parameterization import Parameterization, with_rates
from tpcalc.training.setting import run_of
from tpcalc.training.training import Training

_STARTS = ("stable_init", "nontrivial_init")  # of the network before training
_UPDATES = ("dW_x", "dB")


@dataclass(frozen=True, slots=True)
class Growth:
    """How calibrated base rates grow with the width n.

    Example:
        >>> Growth((Fraction(0), Fraction(1, 2)), (True, False)).words
        ('constant', '>= n^(1/2)')
    """

    exponents: tuple[Fraction, ...]  # for each of the layers 1..L+1 a power of n
    # for each layer whether that is its power; otherwise it grows at least so, where the rates of
    # the layers below it are as they stand here. A power below 0 shrinks.
    exact: tuple[bool, ...]
    # the layers whose update is known to be made of averages that fluctuate around 0
    by_chance: frozenset[int] = frozenset()

    @property
    def words(self) -> tuple[str, ...]:
        """A word for each layer; ``"open"`` where nothing is known."""
        return tuple(map(_word, self.exponents, self.exact))

    @property
    def layers(self) -> tuple[int, ...]:
        """The layers, from 1, whose rates grow beyond all bounds."""
        return tuple(layer for layer, power in enumerate(self.exponents, 1) if power > 0)

    @property
    def shrinking(self) -> tuple[int, ...]:
        """The layers, from 1, whose rates are known to tend to 0."""
        known = enumerate(zip(self.exponents, self.exact, strict=True), 1)
        return tuple(layer for layer, (power, exact) in known if exact and power < 0)


@dataclass(frozen=True, slots=True)
class Prediction:
    """What becomes of the training of a network as its width grows."""

    sentence: str  # in a sentence or two; it begins with the verdict
    # how its calibrated rates grow; None where they are not calibrated
    growth: Growth | None = None
    vanishes: bool = False  # whether its outputs tend to 0 at every step
    # what numbered theorems say of the same network with one output, trained on one sample in a
    # step; those whose hypotheses are not met are left out
    theorems: str = ""


def predicted(setting: Setting, *, seed: int = 0) -> Prediction:
    """What becomes of the training of a network as its width grows.

    The verdict is that of ``check`` for steps of one sample: the powers of n do not depend on the
    size of a batch. Where base rates are calibrated, it is that of rates that are constant, and the
    second sentence says how they would have to grow.

    Source: Hajjar, Chizat, Giraud, Proposition 3.1, Theorem 4.1, Remark 4.2, section 6.1.

    Example:
        >>> predicted(Setting("tanh", "naive-ip", 3, 64)).sentence
        'trivial at all t: the start is a stationary point: every first update vanishes; ...'
    """
    found = _checked(setting, run_of(setting).parameterization, seed)
    still = found.verdict == "trivial" and found.valid_for.startswith("all t")
    vanishes = still and _starts_at_zero(found)
    theorems = _theorems(setting, seed)
    if not setting.calibrated:
        return Prediction(_verdict(found), None, vanishes, theorems)
    growth = rate_growth(setting, seed=seed)
    return Prediction(f"{_verdict(found)} {_calibrated(growth)}", growth, vanishes, theorems)


def rate_growth(setting: Setting, *, seed: int = 0) -> Growth:
    """How the base rates of the first step must grow for every update to be of order one.

    Calibration goes from layer to layer: the rate of a layer is chosen while those below are
    already right. So the first layer whose update vanishes or explodes is given the power of n
    that it lacks, and the layers above are followed anew.

    Source: Hajjar, Chizat, Giraud, section 6, which has constant rates for every activation.

    Example:
        >>> rate_growth(Setting("relu", "ip-llr", 3, 64)).words
        ('constant', 'constant', 'constant', 'constant')
        >>> rate_growth(Setting("tanh", "ip-llr", 3, 64)).words
        ('constant', 'constant', 'n^(1/2)', '>= n^(1/2)')
    """
    own = run_of(setting).parameterization
    added = [Fraction(0)] * (setting.depth + 1)
    for _ in range(setting.depth + 1):
        found = _checked(setting, _raised(own, setting.depth, added), seed)
        sizes = _update_sizes(found)
        wrong = next((layer for layer, (power, *_) in sizes.items() if power), None)
        if wrong is None:
            break
        added[wrong - 1] -= sizes[wrong][0]
    exact = tuple(sizes[layer][1] for layer in range(1, setting.depth + 2))
    chance = frozenset(layer for layer, (*_, certain) in sizes.items() if not certain)
    # Where outputs are random at the start, all updates are.
    return Growth(tuple(added), exact, chance if _starts_at_zero(found) else frozenset())


def _checked(setting: Setting, parameterization: Parameterization, seed: int) -> Verdict:
    """What is said of a step; powers of n do not depend on numbers in front of the rate."""
    run = run_of(replace(setting, steps=1, batch=1, schedule="", factors=()))
    return width_check(run.replace(parameterization=parameterization, lr=Fraction(1)), seed=seed)


def _theorems(setting: Setting, seed: int) -> str:
    """The theorems on training whose hypotheses are met, with their answers."""
    run = run_of(setting)
    if not run.plain:  # they are about SGD with one rate
        return ""
    network, own = run.network, run.parameterization
    verdict = width_check(Training(network, own, steps=1), seed=seed)
    answers = (
        f"{found.name} {found.answer} ({found.source.item})"
        for found in applicable(network, own, verdict=verdict)
        if found.answer != "outside" and found.name not in _STARTS
    )
    return "; ".join(answers)


def _raised(
    parameterization: Parameterization, depth: int, added: Sequence[Fraction]
) -> Parameterization:
    """The same with the first rates of all layers multiplied by powers of n."""
    tables = {step: parameterization.exponents(depth, step) for step in (0, 1)}

    def rate(layer: int, step: int, of: str = "c") -> Ex:
        c: Ex = getattr(tables[min(step, 1)], of)[layer - 1]
        return c if step else c - added[layer - 1]

    return with_rates(parameterization, rate, partial(rate, of="bias_c"))


def _update_sizes(verdict: Verdict) -> dict[int, tuple[Fraction, bool, bool]]:
    """For each layer the power of n in what its first update contributes.

    And whether it is exact, and not known to be random.
    """
    rows: dict[int, list[OrderRow]] = {}
    for row in verdict.updates:
        own = Name.tabled(row.name)
        if own.what in _UPDATES and own.step == 1 and own.number is not None and not row.n.is_zero:
            if row.n.constant is None:
                raise LimitError(f"the size of {row.name} is not known: {row.reason}")
            rows.setdefault(own.number, []).append(row)
    # Of weights and biases, and of several outputs, the largest counts.
    sizes = {
        layer: max(
            (_power(row), row.status == "exact", not row.reason.startswith(RANDOM)) for row in same
        )
        for layer, same in rows.items()
    }
    return dict(sorted(sizes.items()))


def _starts_at_zero(verdict: Verdict) -> bool:
    """Whether all outputs vanish before training."""
    names = [(Name.tabled(row.name), row) for row in verdict.outputs if row.n.constant is not None]
    return all(_power(row) < 0 for own, row in names if own.word == "f" and own.step == 0)


def _power(row: OrderRow) -> Fraction:
    return row.n.constant or Fraction(0)


def _verdict(verdict: Verdict) -> str:
    when = verdict.valid_for if verdict.verdict != "undecided" else "all t"
    at = "" if verdict.verdict == "undecided" else f" at {when}"
    fact = f": {verdict.facts[0]}" if verdict.facts else ""
    return f"{verdict.verdict}{at}{fact}."


def _calibrated(growth: Growth) -> str:
    if not growth.layers and not growth.shrinking:
        bounded = "" if all(growth.exact) else ", as far as they are known"
        return f"The calibrated rates tend to constants{bounded}."
    known = tuple(layer for layer in growth.layers if growth.exact[layer - 1])
    bounded_below = tuple(layer for layer in growth.layers if layer not in known)
    least = min((growth.exponents[layer - 1] for layer in bounded_below), default=Fraction(0))
    ways = (
        (growth.shrinking, "shrink like", _powers(growth, growth.shrinking)),
        (known, "grow like", _powers(growth, known)),
        (bounded_below, "grow at least like", _raised_to(least)),
    )
    parts = [
        f"The calibrated rates of {_listed(own)} {way} {power}." for own, way, power in ways if own
    ]
    chance = tuple(layer for layer in growth.layers if layer in (*growth.by_chance, *bounded_below))
    if chance:
        parts.append(
            f"What {_listed(chance)} {'learns' if len(chance) == 1 else 'learn'} in the first step "
            "at a finite width comes from fluctuations that calibration amplifies."
        )
    return " ".join(parts)


def _powers(growth: Growth, layers: Sequence[int]) -> str:
    """The powers of n of some layers: one for all, or one for each."""
    found = [_raised_to(growth.exponents[layer - 1]) for layer in layers]
    return found[0] if len(set(found)) == 1 else ", ".join(found)


def _listed(layers: Sequence[int]) -> str:
    if len(layers) == 1:
        return f"layer {layers[0]}"
    if list(layers) == list(range(layers[0], layers[-1] + 1)):
        return f"the layers {layers[0]} to {layers[-1]}"
    return "the layers " + ", ".join(map(str, layers))


def _word(power: Fraction, exact: bool) -> str:
    if exact and not power:
        return "constant"
    if not power:
        return "open"
    return _raised_to(power) if exact else f">= {_raised_to(power)}"


def _raised_to(power: Fraction) -> str:
    return f"n^({power})" if power.denominator > 1 or power < 0 else f"n^{power}"


_FITTED = 3  # widths that a slope needs


@dataclass(frozen=True, slots=True)
class Plan:
    """What an experiment trains on one kind of data, and what it is compared with."""

    settings: tuple[Setting, ...]  # the networks
    name: str = "experiment"
    title: str = "Trained networks"  # what it is about
    source: str = ""  # where it was published
    shows: tuple[str, ...] = SHOWN  # what is shown of it
    by_width: tuple[Setting, ...] = ()  # calibrated, of several widths, for their rates alone
    trials: int = 5  # independent networks of each
    rank_samples: int = 0  # training images whose ranks are taken
    reported: tuple[tuple[str, str, str, float], ...] = ()  # (table, Setting.text, data, accuracy)
    # (data, share of each class among the test images)
    shares: tuple[tuple[str, tuple[float, ...]], ...] = ()


def trained(
    plan: Plan,
    images: Images,
    *,
    seed: int = 0,
    device: str = "cpu",
    work: str | Path | None = None,
    progress: Progress | None = None,
) -> Experiment:
    """Train networks of finite width, beside what the limit says of each.

    Source: Hajjar, Chizat, Giraud, section 6.

    Example::

        relu = Setting("relu", "mup", 3, 64, steps=10, batch=32)
        found = trained(Plan((relu,), trials=2), images)
        found.runs[0].accuracies
    """
    started = time.perf_counter()
    trials = checks.whole(plan.trials, "trials", least=1, each=checks.PART)
    checks.called(progress, "progress", 0.0, "")
    common = Common(images, seed, device_for_tasks(device), plan.rank_samples)
    place = "".join(sign if sign.isalnum() else "-" for sign in plan.name)
    with Kept(work, place or "experiment", f"the experiment {plan.name}") as kept:
        runs, compared = _runs(common, plan.settings, plan.by_width, trials, kept, progress)
    part(progress, 1.0, 1.0)(0.0, "what the limit says")
    said = {setting.text: _predicted(setting, seed) for setting in plan.settings}
    seconds = time.perf_counter() - started
    return Experiment(
        name=plan.name,
        title=plan.title,
        source=plan.source,
        shows=plan.shows,
        data=str(images),
        runs=runs,
        reported=plan.reported,
        predicted=tuple((text, found.sentence) for text, found in said.items()),
        provenance=provenance(
            _digest([*(setting.facts for setting in plan.settings), images.digest]),
            seed,
            {"data": images.digest[:12], "device": device, "trials": str(trials)},
            seconds,
        ),
        shares=(("", class_shares(images)), *plan.shares),
        by_width=compared,
        slopes=_slopes(compared),
        theorems=tuple((text, found.theorems) for text, found in said.items() if found.theorems),
        vanishing=tuple(text for text, found in said.items() if found.vanishes),
        growth=tuple(
            (text, found.growth.words) for text, found in said.items() if found.growth is not None
        ),
        ranked=min(plan.rank_samples, len(images.train)),
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
