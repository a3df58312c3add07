"""Verdicts on training as sentences, tables and a picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tpcalc.doors.numbers import count
from tpcalc.names import Name
from tpcalc.results import LayerFacts, OrderRow, Verdict
from tpcalc.views.answers.orders import region_lines, row_tables, size
from tpcalc.views.panels import COLOURS, Figure, Panel, Series
from tpcalc.views.tables import Cell, Table, numbers, only, texts
from tpcalc.views.view import Judgement, Part, View, view

ANSWERS = {True: "yes", False: "no", None: "not known"}
_APART = 0.09  # of a layer, between dots of two steps
_DOWN = 0.2  # of the power, how far the line of a bound reaches
_WORDS = {
    "feature-learning": ("good", "Feature learning: outputs and features move"),
    "kernel": ("limit", "Kernel regime: outputs move, features do not"),
    "trivial": ("bad", "Trivial: no output moves"),
    "unstable": ("bad", "Unstable: something grows without bound with the width"),
    "undecided": ("warn", "Undecided"),
}


_ADVICE = "tpcalc solve (tp.solve) says at which learning rates, as powers of n, layers move."
_UPDATES = {
    "moves": "updates add Θ(1) to what the map writes",
    "starts later": "updates add Θ(1), but not the first",
    "frozen": "updates are too small to add Θ(1), however aligned",
    "cut off": "updates are of the right size, but what they act on vanishes or is not aligned "
    "with them, or the output does not move",
    "vanishes": "updates add o(1) at the steps that are followed",
    "0": "updates add nothing",
}


def judged(found: Verdict) -> Judgement:
    """The headline of a verdict, with the facts that it rests on.

    Example:
        >>> from tpcalc.results import Provenance
        >>> parts = (("the output does not move",), (), (), ())
        >>> made = Provenance("0", "ab")
        >>> judged(Verdict("trivial", "exact", False, "ok", *parts, "all t", 3, (), made)).headline
        'Trivial: no output moves, for all t'
    """
    level, words = _WORDS.get(found.verdict, ("info", found.verdict))
    scope = "" if found.verdict == "undecided" else f", for {found.valid_for}"
    return Judgement(level, words + scope, found.facts)


def at_start(found: Verdict) -> str:
    """What its layers and output do at the start."""
    return "neither vanishes nor explodes" if found.initial == "ok" else found.initial


def check_tables(found: Verdict) -> tuple[Table, ...]:
    """What a verdict rests on: the layers, the updates, the outputs."""
    facts = (
        ("Verdict", found.verdict + (f" ({found.status})" if found.status else "")),
        ("Valid for", found.valid_for),
        ("Steps followed", _followed(found)),
        ("Network at the start", at_start(found)),
        ("Stationary start", "yes" if found.stationary_start else "no"),
    )
    note = found.exploded.text if found.exploded else ""
    tables = [Table.of("What was decided", texts("Fact", "Answer"), facts, note)]
    if found.layers:
        tables.append(_layers(found.layers))
    tables += row_tables(found.updates, "Updates: order of what each adds to its preactivation")
    tables += row_tables(found.outputs, "Outputs and their changes")
    return tuple(tables)


def _followed(found: Verdict) -> str:
    if found.exploded is None or found.exploded.step >= found.steps:
        return str(found.steps)
    return f"{found.exploded.step} of {found.steps}"


def _layers(layers: Sequence[LayerFacts]) -> Table:
    why = only(Cell("Why"), any(layer.reason for layer in layers))
    columns = texts("Update", "Features move", "Kernel evolves") + numbers("From step")
    body = []
    for layer in layers:
        line = [layer.label, layer.update or ANSWERS[layer.moves]]
        known = layer.features is not None or layer.kernel is not None
        if layer is layers[-1] and layer.moves is not None and not known:
            line += ["–", "–"]  # the output layer has no features
        else:
            line += [ANSWERS[layer.features], ANSWERS[layer.kernel]]
        body.append((*line, "" if layer.step is None else str(layer.step), layer.reason))
    used = {word for layer in layers for word in (layer.weights, layer.biases)}
    legend = "; ".join(f"{word}: {means}" for word, means in _UPDATES.items() if word in used)
    head = (*numbers("Layer"), *columns, why)
    return Table.of("Layer by layer", head, body, legend + "." if legend else "")


def update_figure(found: Verdict) -> Figure | None:
    """The powers of n in what updates add to each layer; None where no power is a number."""
    rows = [(Name.of(row.name), row, _power(row)) for row in found.updates]
    layers = list(dict.fromkeys(name.layer for name, _, _ in rows))
    steps = list(dict.fromkeys(name.step for name, _, _ in rows))[:COLOURS]
    series, bounds = [], []
    for index, step in enumerate(steps):
        shift = _APART * (index - (len(steps) - 1) / 2)
        ends = [
            (layers.index(name.layer) + 1 + shift, power, row.status)
            for name, row, power in rows
            if name.step == step and power is not None
        ]
        points = [(x, power, 0.0) for x, power, _ in ends]
        series.append(Series.of(points, str(index), "dots", f"step {step}"))
        for x, power, status in ends:
            if status != "exact":
                ends_of = ((x, power, 0.0), (x, power - _DOWN, 0.0))
                bounds.append(Series.of(ends_of, "muted", "dash", "at most"))
    drawn = [one for one in series if one.x]
    if not drawn:
        return None
    reach = ((0.6, 0.0, 0.0), (len(layers) + 0.4, 0.0, 0.0))
    guide = Series.of(reach, "limit", "dash", "n^0: the layer moves")
    words = "; ".join(
        f"{name}: at most n^{row.n}" if row.status != "exact" else f"{name}: n^{row.n}"
        for name, row, power in rows
        if power is not None
    )
    panel = Panel("Power of n", words, "layer", (guide, *drawn, *bounds))
    named = [f"{k} is {layer}" for k, layer in enumerate(layers, start=1) if layer != str(k)]
    note = "Above the line an update grows with the width, below it vanishes."
    lost = [f"{row.name} ({size(row.n, row.status)})" for _, row, power in rows if power is None]
    if lost:
        note += f" Not drawn: {', '.join(lost)}."
    return Figure(
        "What updates add to each layer", " ".join((note, ", ".join(named))).strip(), (panel,)
    )


def _power(row: OrderRow) -> float | None:
    """The power of n where it is a number."""
    power = row.n.constant
    return None if power is None else float(power)


@view.register
def _(found: Verdict) -> View:
    lead = " ".join(region_lines(found.region, ()))
    part = Part("check", "Verdict", lead, check_tables(found), update_figure(found))
    advice = _ADVICE if found.verdict in ("trivial", "unstable") else ""
    shown = View("Verdict", judged(found), advice, (part,), found.notes, found.provenance)
    return shown if found.first_order is None else _led(shown, found, view(found.first_order))


def _led(shown: View, found: Verdict, first: View) -> View:
    """The view of a verdict that first steps open: their word, then that of all steps."""
    own, opening = judged(found), first.said or judged(found)
    steps = count(found.steps, "step")
    line = f"{own.headline} ({steps} followed)."
    if found.status.startswith("first steps"):  # they alone decide
        over = f"Undecided over {steps}" if found.layers else "All steps: not followed"
        line = f"{over}; the word is that of first steps."
    said = Judgement(own.level, opening.headline, (*opening.reasons, *own.reasons))
    parts, notes = (*first.parts, *shown.parts), (*shown.notes, *first.notes)
    summary = f"{line} {shown.summary}".rstrip()
    return replace(shown, said=said, summary=summary, parts=parts, notes=notes)
