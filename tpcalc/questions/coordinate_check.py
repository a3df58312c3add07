"""``coordinate_check``: first steps of modules of several widths, beside what is derived."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import chain
from math import hypot, inf, isfinite
from typing import Any, Unpack

from tpcalc import checks
from tpcalc.engine.device.devices import load_torch
from tpcalc.errors import UsageError
from tpcalc.finite.widths import check_widths
from tpcalc.progress import Progress, part
from tpcalc.questions.first_order import first_order
from tpcalc.questions.start.attained import EXACT, MEASURED, as_float, fits, fitted, measured_size
from tpcalc.results import Exponent, FirstOrder, MeasuredSize, ModuleCheck, ModuleRow, ReadPoint
from tpcalc.results.data import grouped
from tpcalc.results.exponent import NONE
from tpcalc.results.tables import provenance
from tpcalc.torch.network import Module
from tpcalc.torch.runs import CHANGE, GRADIENT, START, STEP, TERM, Spot, Trial
from tpcalc.torch.training import Make, QuestionSettings, as_run
from tpcalc.training.training import Training

WIDTHS = (64, 128, 256, 512)
CHANCE = 0.005  # that a slope is higher than its interval, or lower
FLOOR = 0.01  # the smallest standard error of a slope that is believed
STARTS = 32  # modules whose outputs at the start are looked at, where fewer leave it open
NAMED = 4
SAID = {
    START: "the output of {} at the start",
    STEP: "step {step} of {}",
    TERM: "what step {step} of {} adds to the output",
    GRADIENT: "the gradient of {} at step {step}",
    CHANGE: "the change of the output of {} after step {step}",
}
UNSEEN = (
    "First steps do not see what comes late in training: decay, alignment that drifts, batches "
    "that grow with the width, instabilities that the data bring."
)
NOTHING = "no powers are derived of what was measured"
Hull = tuple[Exponent, Exponent]


def coordinates(
    trial: Trial,
    predicted: Mapping[Spot, Hull],
    *,
    widths: Sequence[int] = WIDTHS,
    seeds: int = 4,
    rate: float | None = None,
    recipe: str = "",
    lines: Mapping[str, str] | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> ModuleCheck:
    """Whether modules do at finite widths what is derived of their recipe.

    Slopes are those of geometric means over seeds, their intervals Student's at 99%. One agrees
    that lies, with its interval, between the derived powers, a quarter wider; one differs whose
    interval lies outside. What is neither has twice the seeds, and twice again; outputs at the
    start have 32.

    Source: Yang et al., Tensor Programs V, for coordinate checks.

    Example:
        >>> from tpcalc.engine.device.devices import load_torch
        >>> torch = load_torch()
        >>> def make(n):
        ...     return torch.nn.Sequential(torch.nn.Linear(4, n), torch.nn.Linear(n, 1))
        >>> def optimizer(model, n):
        ...     return torch.optim.Adam(model.parameters(), lr=1 / n)
        >>> step, power = Spot("step", "1.weight", 1), Exponent.number(-1)
        >>> found = coordinates(
        ...     Trial(make, optimizer, torch.ones(2, 4)), {step: (power, power)}, widths=(16, 64)
        ... )
        >>> found.code, found.facts
        ('agrees', ('1 of 1 sizes have the powers that are derived',))
    """
    started = time.perf_counter()
    widths = sorted(check_widths(widths))
    first, used = checks.seed(seed), checks.whole(seeds, "seeds", least=2)
    if len(widths) < 2:
        raise UsageError("a slope takes two widths or more.", hint="Write widths=(64, 256).")
    sizes: dict[Spot, dict[int, list[float]]] = {}
    classes: dict[str, str] = {}

    def run(trial: Trial, start: int, stop: int, fraction: float) -> tuple[ModuleRow, ...]:
        tell, seeds = part(progress, fraction, fraction + 0.25), range(first + start, first + stop)
        for width, every in trial.runs(widths, seeds, factor, tell).items():
            for ran in every:
                classes.update(ran.classes)
                for spot, size in ran.sizes.items():
                    sizes.setdefault(spot, {}).setdefault(width, []).append(size)
        return tuple(_rows(sizes, classes, predicted, lines or {}))

    factor = trial.small_rate(widths[0], first) if rate is None else rate
    rows = run(trial, 0, used, 0)
    for fraction in (0.25, 0.5):
        if any(_is_noisy(row) and row.what != START for row in rows):
            rows, used = run(trial, used, 2 * used, fraction), 2 * used
    if any(_is_noisy(row) and row.what == START for row in rows):
        # Outputs have few entries, and passes without steps cost little.
        rows = run(replace(trial, steps=0), used, max(STARTS, 2 * used), 0.75)
    settings = {"widths": ",".join(map(str, widths)), "seeds": str(used)}
    made = provenance("", seed, settings, time.perf_counter() - started)
    words = {row.word for row in rows if row.predicted}
    word = "differs" if "differs" in words else "agrees" if words == {"agrees"} else "open"
    return ModuleCheck(word, recipe, tuple(_facts(rows, word)), rows, factor, used, made, (UNSEEN,))


def _rows(
    sizes: Mapping[Spot, Mapping[int, Sequence[float]]],
    classes: Mapping[str, str],
    predicted: Mapping[Spot, Hull],
    lines: Mapping[str, str],
) -> Iterator[ModuleRow]:
    for spot in sorted(predicted.keys() - sizes.keys()):
        what = SAID[spot.what].format(spot.name, step=spot.step)
        raise UsageError(f"{what} is not measured.", where=spot.name)
    tops: dict[tuple[str, int], float] = {}
    for spot, own in sizes.items():
        kind, kept = (spot.what, spot.step), filter(isfinite, chain(*own.values()))
        tops[kind] = max((tops.get(kind, 0.0), *kept))
    for spot, own in sizes.items():
        called = spot.name.partition("@")[0]
        path, *_ = called.partition(":") if spot.what in (START, CHANGE) else called.rpartition(".")
        hull = predicted.get(spot, (NONE, NONE))
        if spot.what == CHANGE and called.endswith(":scores") and hull[0].exact is not None:
            # What does not align with the keys is as large in heads that are not wide.
            hull = Exponent(hull[0].exact - Fraction(1, 2)), hull[1]
        told, bent = _judged(own, tops[spot.what, spot.step], *map(as_float, hull))
        about = (spot.name, classes[path], lines.get(called, ""), spot.what, spot.step)
        yield ModuleRow(*about, *hull, told, bent)


def _judged(
    sizes: Mapping[int, Sequence[float]], top: float, low: float, high: float
) -> tuple[MeasuredSize, float | None]:
    """What was measured, and the slope between the two widest where it is another one."""
    from scipy.special import stdtrit

    sure = float(stdtrit(2 * len(sizes[min(sizes)]) - 2, 1 - CHANCE))
    told = measured_size(sizes, top, -inf if high == inf else low, high, sure)
    if told.slope is None or told.error is None or len(sizes) < 3:
        return told, None
    last, error = fitted({n: sizes[n] for n in told.widths[-2:]})
    if abs(last - told.slope) <= sure * hypot(error, told.error, FLOOR):
        return told, None
    # What bends to the powers may reach them at widths that were not looked at.
    bends_in = told.word == "differs" and fits(last, 0, low, high) == "agrees"
    return replace(told, word="open") if bends_in else told, last


def _is_noisy(row: ModuleRow) -> bool:
    """Whether more seeds may settle it."""
    return row.word == "open" and row.measured.slope is not None and row.last is None


def _facts(rows: Sequence[ModuleRow], word: str) -> Iterator[str]:
    """What decides: of what differs what comes first, from the start to what follows from it."""
    found = [row for row in rows if row.predicted and row.word == word]
    found.sort(key=lambda row: (row.step, [*SAID].index(row.what)))
    if word == "agrees" or not found:
        all_of = f"{len(found)} of {len(found)} sizes have the powers that are derived"
        yield all_of if found else NOTHING
        return
    for row in found[:NAMED]:
        where = f" ({row.line})" if row.line else ""
        yield f"{SAID[row.what].format(row.label, step=row.step)}{where} {_told(row)}"
    if len(found) > NAMED:
        yield f"{len(found) - NAMED} more: see the rows"


def _told(row: ModuleRow) -> str:
    own, powers = row.measured, row.powers
    if row.is_zero:
        return f"is 0, where {powers} is derived"
    if own.slope is None:
        return "leaves the range of numbers"
    bent = "" if row.last is None else f" ({row.last:.2f} between the two widest)"
    return f"has slope {own.slope:.2f} ± {own.error:.2f}{bent}, where {powers} is derived"


ZERO = Exponent(None, -1)
SCORES, READ, WRITTEN = "argument of softmax", ":scores", re.compile(r"h\[(.*)\.weight\] \(")


def coordinate_check(
    architecture: Training | Make,
    *,
    widths: Sequence[int] = WIDTHS,
    seeds: int = 4,
    rate: float | None = None,
    device: str = "cpu",
    seed: int = 0,
    progress: Progress | None = None,
    **settings: Unpack[QuestionSettings],
) -> ModuleCheck:
    """A coordinate check with a verdict: first steps of real modules, beside derived powers.

    Two verdicts are kept apart: ``code``, whether the modules do at finite width what is derived of
    their code and their optimizer, and ``recipe``, the word of what is derived.

    Args:
        architecture: What makes modules, with ``inputs`` and ``optimizer`` (a function of a module
            and its width); or a run of ``tp.torch.training``, and nothing of it besides.
        widths: Of the modules that are run, two or more.
        seeds: Modules of each width.
        rate: The factor of all learning rates; None: such that outputs change by about 1/20.
        device: Where they run.
        seed: Of the modules.
        progress: Who is told how far it is.
        settings: As ``tp.torch.training`` takes them; ``steps`` of them are taken (3).

    Returns:
        Slopes with their intervals beside the derived powers, for every parameter and module.

    Raises:
        UsageError: A network that is no module of torch, or an optimizer that is a text.
        TpcalcError: As ``tp.torch.training``.

    Source: Yang et al., Tensor Programs V, for coordinate checks.

    Example:
        >>> torch = load_torch()
        >>> def make(n):
        ...     return torch.nn.Sequential(torch.nn.Linear(4, n), torch.nn.Linear(n, 1))
        >>> def adam(model, n):
        ...     return torch.optim.Adam(model.parameters(), lr=1 / n)
        >>> found = coordinate_check(
        ...     make, inputs=torch.ones(2, 4), optimizer=adam, widths=(16, 32, 64), steps=1
        ... )
        >>> found.code != "differs", found.recipe
        (True, 'kernel')
    """
    run = as_run(architecture, None, None, settings, steps=3)
    network = run.network
    if not isinstance(network, Module) or not callable(network.made_by.get("optimizer")):
        raise UsageError(
            "a coordinate check trains modules of torch by an optimizer of torch.",
            hint="Give what makes them, inputs= and optimizer= (a function of a module and its "
            "width), or take tp.first_order(measure=).",
        )
    found = first_order(run.replace(steps=1), measure=None, seed=seed)
    clip = network.made_by["clip"]

    def clipped(module: Any, width: int) -> None:
        load_torch().nn.utils.clip_grad_norm_(module.parameters(), clip)

    inputs, optimizer = network.made_by["inputs"], network.made_by["optimizer"]
    before = None if clip is None else clipped
    trial = Trial(network.family.make, optimizer, inputs, run.steps, device, before)
    lines = {one.name: one.line for one in network.family.parameters if one.line}
    predicted = dict(_predicted(found, network, run.steps))
    return coordinates(trial, predicted, widths=widths, seeds=seeds,
                       rate=rate, recipe=found.word, lines=lines, seed=seed,
                       progress=progress)  # fmt: skip


def _predicted(found: FirstOrder, network: Module, steps: int) -> Iterator[tuple[Spot, Hull]]:
    """What is derived of parameters and of what functions read, by what is measured."""
    for name, rows in grouped(found.rows, lambda row: row.name.partition(":")[0]).items():
        sure = all(row.status in (EXACT, MEASURED) for row in rows)
        output, later = (_largest(getattr(row, which) for row in rows)
                         for which in ("output", "later"))  # fmt: skip
        yield Spot(GRADIENT, name, 1), _hull(_largest(row.gradient for row in rows), sure)
        yield Spot(TERM, name, 1), _hull(output, sure)
        for step in range(2, steps + 1):
            yield Spot(TERM, name, step), (_hull(output, sure)[0], _largest((output, later)))
    called = {"", *(op.place.path for op in network.graph.ops)}
    # Small rates show first order: what a norm bounds where something grows is larger there.
    calm = all(_value(power) <= 0 for row in found.rows for power in (row.inside, row.output))
    for point in found.points:
        path = _path(point)
        if path is not None and path.partition(":")[0] in called:
            yield Spot(START, path, 0), (ZERO, point.size)
            if calm or not path:
                # Sums of terms of several powers cross over at widths that are run: bounds alone.
                first = point.change if path else _largest(row.output for row in found.rows)
                yield Spot(CHANGE, path, 1), (ZERO, first)


def _path(point: ReadPoint) -> str | None:
    """The module whose output a read point is; of scores the one that takes the softmax."""
    if point.name.startswith(SCORES):
        inside = re.search(r"\(([\w.]+)\)\)$", point.name)
        return f"{inside[1] if inside else ''}{READ}"
    if point.name.startswith("f ("):
        return ""
    found = WRITTEN.match(point.name)
    return found[1] if found else None


def _largest(powers: Any) -> Exponent:
    every: Mapping[float, Exponent] = {_value(power): power for power in powers}
    return every[max(every)]


def _value(power: Exponent) -> float:
    if power.constant is None:
        return float("-inf") if power.is_zero else float("inf")
    return float(power.constant)


def _hull(power: Exponent, sure: bool) -> Hull:
    """A power, or what lies below a bound."""
    return (power, power) if sure or power.is_zero else (ZERO, power)
