"""``coordinates``: a coordinate check with a verdict: first steps of modules of several widths."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import chain
from math import hypot, inf, isfinite

from tpcalc import checks
from tpcalc.errors import UsageError
from tpcalc.finite.widths import check_widths
from tpcalc.progress import Progress, part
from tpcalc.questions.start.slopes import as_float, fits, fitted, measured_size
from tpcalc.results import Exponent, MeasuredSize, ModuleCheck, ModuleRow
from tpcalc.results.exponent import NONE
from tpcalc.results.tables import provenance
from tpcalc.torch.runs import CHANGE, GRADIENT, START, STEP, TERM, Spot, Trial

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
