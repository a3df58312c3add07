"""What a report says of trained networks: sentences and tables, over independent trials."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from tpcalc.results import Experiment, Run, SlopeRow
from tpcalc.results.data import grouped
from tpcalc.results.experiment import constant_class
from tpcalc.views.answers.experiment_plot import CURVES, Rows, experiment_figures, interval
from tpcalc.views.numbers import Measure, count, counted, duration, measured, plain
from tpcalc.views.tables import Cell, Table, number
from tpcalc.views.view import Judgement, Part, View, view

_LEADS = {
    "losses": "The cross-entropy of the batch of each step, before its update.",
    "outputs": "The mean of |f| over the outputs and the batch of each step, before its update.",
}
_INTERVAL = "± is half of a 95% confidence interval for the mean over trials (Student's t)."
_ONE_TRIAL = "One trial: numbers are as measured, without an interval."
_STILL = 0.01  # a loss that changed by less than this share has not moved
_DOWN, _UP = "The loss went down", "The loss went up"
_UNMOVED = "The loss changed by less than 1%"
_UNCLEAR = "The loss changed by less than its confidence interval"
_BIASES = {"none": "none", "first": "first layer", "hidden": "hidden layers", "all": "all layers"}
_ROUNDED = 5e-4  # published accuracies have three decimals
_CAPPED = 1e-9
_NAMED = 3


def experiment_summary(found: Experiment) -> str:
    """One sentence: what was trained, on what."""
    first = found.runs[0].setting if found.runs else None
    if first is None:
        return f"{found.title}, on {found.data}."
    networks = counted(len(found.runs), "network")
    trials = counted(max(run.trials for run in found.runs), "trial")
    return (
        f"{found.title}: {networks} of {first.depth} hidden layers and width "
        f"{count(first.width)}, {counted(first.steps, 'step')} of {count(first.batch)} samples, "
        f"{trials} each, {f'by {first.rule}, ' if first.rule else ''}on {found.data}."
    )


def judge_experiment(found: Experiment) -> Judgement:
    """What moved at this width, beside what the limit says of it."""
    said = dict(found.predicted)
    lost = [run for run in found.runs if any(step is not None for step in run.diverged)]
    changes = [(run, _change(run)) for run in found.runs]
    reasons = []
    for words in (_DOWN, _UP, _UNCLEAR, _UNMOVED):
        texts_of = [run.setting.text for run, change in changes if change == words]
        for kind, names in grouped(texts_of, lambda text: _kind(said.get(text, ""))).items():
            limit = f" (in the limit: {kind})" if kind else ""
            reasons.append(f"{words}{limit}: {'; '.join(names)}.")
    reasons += [f"{run.setting.text}: {_diverged(run)}." for run in lost]
    headline = f"{found.name}: {len(found.runs)} networks"
    if any(change for _, change in changes):
        down = sum(change == _DOWN for _, change in changes)
        headline = f"{found.name}: the loss went down in {down} of {len(found.runs)} networks"
    return Judgement("warn" if lost else "info", headline, tuple(reasons))


def experiment_sections(found: Experiment) -> tuple[Part, ...]:
    """The parts of an experiment, in the order of a page."""
    makers = {"accuracies": _accuracies, "ranks": _ranks, "rates": _rates}
    return (
        _networks(found),
        *(
            makers[word](found) if word in makers else _curves(found, word, *CURVES[word])
            for word in found.shows
        ),
    )


def _networks(found: Experiment) -> Part:
    said, numbered = dict(found.predicted), dict(found.theorems)
    texts = ((run.setting.text, duration(run.seconds)) for run in found.runs)
    rows = ((text, said.get(text, ""), numbered.get(text, ""), time) for text, time in texts)
    head = ("Network", "~As the width grows", "?~Theorems", "#Time")
    note = "Derived from the program of each network, for steps of one sample."
    if numbered:
        note += " Theorems are about one output and one sample in a step."
    lead = found.source and f"Published in {found.source}."
    table = Table.of("What the limit says", head, rows, note)
    return Part("networks", "Networks", lead, (table, _training(found)))


def _training(found: Experiment) -> Table:
    """What the numbers of each network depend on besides sizes."""
    rows = (
        (
            one.text,
            _BIASES.get(one.bias, one.bias),
            plain(one.std, 4),
            plain(one.lr, 4),
            f"calibrated, at most {plain(one.cap, 4)}" if one.calibrated else "",
        )
        for one in (run.setting for run in found.runs)
    )
    head = ("Network", "Biases", "#Initial std", "#Base rate", "First step")
    note = (
        "Initial std: of the entries of the layers 1 to L, in the first divided by sqrt(d + 1) "
        "besides; the last layer has 1. Base rate: of every layer and step, before powers of n."
    )
    return Table.of("How they were trained", head, rows, note)


def _curves(found: Experiment, word: str, key: str, title: str, of: Rows) -> Part:
    rows: list[tuple[Cell | str, ...]] = []
    for run in found.runs:
        curves = [curve for curve in of(run) if curve]
        if curves:
            ends = [_said([curve[k] for curve in curves]) for k in (0, -1)]
            rows.append((run.setting.text, *ends, Cell(_diverged(run), tone="bad")))
    head = ("Network", "#First step", "#Last step", "Remark")
    table = Table.of(title, head, rows, _interval_note(run.trials for run in found.runs))
    return Part(key, title, _LEADS[word], (table,))


def _accuracies(found: Experiment) -> Part:
    tables = list(dict.fromkeys((table, data) for table, _, data, _ in found.reported))
    published = {(table, data, text): value for table, text, data, value in found.reported}
    shares = dict(found.shares)
    rows = []
    for run in found.runs:
        if not run.accuracies:
            continue
        text = run.setting.text
        own = [constant_class(value, shares.get("", ())) for value in run.accuracies]
        limit = f"{shares[''][0]:.3f}" if text in found.vanishing and shares.get("") else ""
        cells = [text, _said(run.accuracies), _constant(own, len(shares.get("", ()))), limit]
        for table, data in tables:
            value = published.get((table, data, text))
            cells.append("" if value is None else _published(value, shares.get(data, ())))
        rows.append(cells)
    head = ["Network", "#Test accuracy", "Constant answer", "#Limit"]
    head += [f"#{table}, {data}" for table, data in tables]
    note = (
        f"{_interval_note(run.trials for run in found.runs)} A constant answer: the accuracy is "
        "the share of that class among the test images, as of a network that answers the same for "
        "each of them. Limit: where the outputs tend to 0 at base rates that stay bounded, ties go "
        "to class 0."
    )
    lead = "The share of test images that are classified right at the end."
    if tables:
        lead += (
            " Beside it the published numbers, for the data in the head of their column and the "
            "sizes of their source."
        )
    made = Table.of("Test accuracy", head, rows, note)
    return Part("accuracies", "Test accuracy", lead, (made,))


def _ranks(found: Experiment) -> Part:
    tables = []
    for letter, words in (("h", "preactivations"), ("x", "activations")):
        rows = []
        for run in found.runs:
            if ranks := getattr(run, f"ranks_{letter}"):
                rows.append((run.setting.text, *map(_rank, zip(*ranks, strict=True))))
        tables.append(Table.of(f"Rank of the {words}", _by_layer(rows, f"{letter}^"), rows))
    images = (
        f"the first {count(found.ranked)} training images" if found.ranked else "training images"
    )
    lead = (
        f"Over {images}, after the first update; singular values below the largest one "
        "times n·1e-7 count as 0. Means over trials, with the smallest and the largest."
    )
    return Part("ranks", "Rank after the first step", lead, tuple(tables))


def _rates(found: Experiment) -> Part:
    runs = [run for run in found.runs if run.setting.calibrated and run.rates]
    rows: list[tuple[Cell | str, ...]] = [
        (run.setting.text, *(_rate(each, run.setting.cap) for each in zip(*run.rates, strict=True)))
        for run in runs
    ]
    note = _interval_note(len(run.rates) for run in runs)
    made = [Table.of("Base rates of the first step", _by_layer(rows), rows, note)]
    if found.by_width:
        made.append(_by_width(found))
    lead = (
        "Calibrated layer by layer, so that the update of each layer changes its preactivations on "
        "the second batch by 1 in the mean."
    )
    return Part("rates", "Calibrated learning rates", lead, tuple(made))


def _by_width(given: Experiment) -> Table:
    """Base rates at several widths, and the power of n through them."""
    growth, slopes = dict(given.growth), dict(given.slopes)
    rows: list[tuple[Cell | str, ...]] = []
    for text in dict.fromkeys(run.setting.text for run in given.by_width):
        runs = [run for run in given.by_width if run.setting.text == text and run.rates]
        for run in runs:
            rates = (_said(each) for each in zip(*run.rates, strict=True))
            rows.append((f"{text}, n = {count(run.setting.width)}", *rates))
        if text in slopes:
            rows.append((f"{text}: measured power of n", *map(_slope, slopes[text])))
        if text in growth:
            rows.append((f"{text}: derived", *growth[text]))
    note = " ".join(
        (
            _interval_note(len(run.rates) for run in given.by_width),
            "Without a cap. Measured: the slope of log rate in log n with its 95% interval. "
            "Derived: how the rates must grow for every update to be of order one; a bound takes "
            "the rates of the layers below it as they are written.",
            *(words for text, found in slopes.items() for words in _unmeasured(text, found)),
        )
    )
    return Table.of("Base rates against the width n", _by_layer(rows), rows, note)


def _unmeasured(text: str, rows: Sequence[SlopeRow]) -> list[str]:
    """Why layers have no power, a sentence for each reason."""
    noted = [layer for layer, row in enumerate(rows, 1) if row.slope is None and row.note]
    words = []
    for reason, missing in grouped(noted, lambda layer: rows[layer - 1].note).items():
        of = "" if len(missing) == len(rows) else f", layer {', '.join(map(str, missing))}"
        words.append(f"No power was measured for {text}{of}: {reason}.")
    return words


def _interval_note(trials: Iterable[int]) -> str:
    return _INTERVAL if max(trials, default=0) > 1 else _ONE_TRIAL


def _by_layer(rows: Sequence[tuple[Cell | str, ...]], words: str = "layer ") -> tuple[str, ...]:
    layers = max((len(row) - 1 for row in rows), default=0)
    return ("Network", *(f"#{words}{layer}" for layer in range(1, layers + 1)))


def _slope(found: SlopeRow) -> str:
    if found.slope is None:
        return ""
    text = f"{found.slope:.2f}"
    if found.low is not None and found.high is not None:
        text += f" [{found.low:.2f}, {found.high:.2f}]"
    return text


def _rate(values: Sequence[float], cap: float) -> Cell:
    capped = sum(value >= cap * (1 - _CAPPED) for value in values)
    if capped == len(values):
        return number(f"{plain(cap, 4)} (cap)", "warn")
    text = _said(values)
    return number(f"{text}, {capped} at the cap" if capped else text, "warn" if capped else "")


def _rank(values: Sequence[int]) -> str:
    low, high = min(values), max(values)
    if low == high:
        return count(low)
    return f"{plain(math.fsum(values) / len(values), 4)} ({low} to {high})"


def _said(values: Sequence[float]) -> str:
    if not all(map(math.isfinite, values)):
        kept = [value for value in values if math.isfinite(value)]
        if not kept:
            return "not finite"
        return f"{_said(kept)}, {len(values) - len(kept)} not finite"
    mean, half = interval(values)
    return measured(Measure(mean, 0.0 if math.isnan(half) else half))


def _published(value: float, shares: Sequence[float]) -> str:
    named = _classes(constant_class(value, shares, _ROUNDED), len(shares))
    return f"{value:.3f} ({named})" if named else f"{value:.3f}"


def _constant(found: Sequence[tuple[int, ...]], classes: int) -> str:
    """In words: of which class, and in how many trials."""
    same = [labels for labels in found if labels]
    if not same:
        return ""
    named = _classes(sorted(set().union(*same)), classes)
    return named if len(same) == len(found) else f"{named}, {len(same)} of {len(found)} trials"


def _classes(labels: Sequence[int], classes: int) -> str:
    if not labels:
        return ""
    if len(labels) == classes:
        return "any class"
    if len(labels) > _NAMED:
        return f"one of {len(labels)} classes"
    return "class " + " or ".join(map(str, labels))


def _change(run: Run) -> str:
    """Where the loss went from the first step to the last, in words; none where that is unknown."""
    ends = [(curve[0], curve[-1]) for curve in run.losses if len(curve) > 1]
    if not ends or not all(math.isfinite(value) for pair in ends for value in pair):
        return ""
    change, half = interval([last - first for first, last in ends])
    start, _ = interval([first for first, _ in ends])
    if abs(change) <= _STILL * abs(start):
        return _UNMOVED
    if abs(change) <= half:  # false for one trial, which has no interval
        return _UNCLEAR
    return _DOWN if change < 0 else _UP


def _kind(sentence: str) -> str:
    """The verdict that a sentence about the limit begins with, and the steps it is known for."""
    return sentence.partition(":")[0].removesuffix(" at all t")


def _diverged(run: Run) -> str:
    steps = [step for step in run.diverged if step is not None]
    if not steps:
        return ""
    which = f"{len(steps)} of {run.trials} trials" if run.trials > 1 else "the trial"
    first = "the first at" if len(set(steps)) > 1 else "at"
    return f"{which} no longer finite, {first} step {min(steps)}"


@view.register
def _(found: Experiment) -> View:
    parts, figures = experiment_sections(found), experiment_figures(found)
    said, summary = judge_experiment(found), experiment_summary(found)
    return View.of(found, found.title, *parts, said=said, summary=summary, figures=figures)
