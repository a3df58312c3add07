"""Verdicts on training as sentences and tables."""

from __future__ import annotations

from collections.abc import Sequence

from tpcalc.results import LayerFacts, Verdict
from tpcalc.views.answers.check_plot import update_figure
from tpcalc.views.answers.orders import region_lines, row_tables
from tpcalc.views.tables import Cell, Table, numbers, only, texts
from tpcalc.views.view import Judgement, Part, View, view

_WORDS = {
    "feature-learning": ("good", "Feature learning: outputs and features move"),
    "kernel": ("limit", "Kernel regime: outputs move, features do not"),
    "trivial": ("bad", "Trivial: no output moves"),
    "unstable": ("bad", "Unstable: something grows without bound with the width"),
    "undecided": ("warn", "Undecided"),
}


_ADVICE = "Learning rates at which every layer moves, as powers of n: tpcalc solve, tp.solve."
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
        line = [layer.label, layer.update or _answer(layer.moves)]
        known = layer.features is not None or layer.kernel is not None
        if layer is layers[-1] and layer.moves is not None and not known:
            line += ["–", "–"]  # the output layer has no features
        else:
            line += [_answer(layer.features), _answer(layer.kernel)]
        body.append((*line, "" if layer.step is None else str(layer.step), layer.reason))
    used = {word for layer in layers for word in (layer.weights, layer.biases)}
    legend = "; ".join(f"{word}: {means}" for word, means in _UPDATES.items() if word in used)
    head = (*numbers("Layer"), *columns, why)
    return Table.of("Layer by layer", head, body, legend + "." if legend else "")


def _answer(value: bool | None) -> str:
    return "not known" if value is None else "yes" if value else "no"


@view.register
def _(found: Verdict) -> View:
    lead = " ".join(region_lines(found.region, ()))
    part = Part("check", "Verdict", lead, check_tables(found), update_figure(found))
    advice = _ADVICE if found.verdict in ("trivial", "unstable") else ""
    return View("Verdict", judged(found), advice, (part,), found.notes, found.provenance)
