"""Verdicts on training as sentences, tables and a picture."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from tpcalc.doors.numbers import count
from tpcalc.names import Name
from tpcalc.results import Exponent, LayerFacts, OrderRow, Verdict
from tpcalc.views.answers.orders import bounded, depth_rows, region_lines, row_tables, size
from tpcalc.views.numbers import shown
from tpcalc.views.panels import COLOURS, Figure, Panel, Series
from tpcalc.views.tables import Table
from tpcalc.views.view import Judgement, Part, View, view

ANSWERS = {True: "yes", False: "no", None: "not known"}
_APART = 0.09  # of a layer, between dots of two steps
_DOWN = 0.2  # of the power, how far the line of a bound reaches
_WORDS = {
    "width": {
        "feature-learning": ("good", "Feature learning: outputs and features move"),
        "kernel": ("limit", "Kernel regime: outputs move, features do not"),
        "trivial": ("bad", "Trivial: no output moves"),
        "unstable": ("bad", "Unstable: something grows without bound with the width"),
    },
    "depth": {
        "feature-learning": ("good", "Feature learning at any depth: the stream moves"),
        "trivial": ("bad", "Trivial at large depth: the updates of the blocks vanish"),
        "unstable": ("bad", "Unstable as blocks are added"),
    },
    "start": {
        "stationary": ("good", "Critical: what all blocks add is of order 1"),
        "identity": ("warn", "Identity: what all blocks add vanishes"),
        "unstable": ("bad", "Explosion: what all blocks add grows with their number"),
        "vanishing": ("bad", "Vanishing: blocks shrink the stream to nothing"),
    },
}
REGIMES = {
    "stationary": "critical",
    "identity": "identity",
    "unstable": "explosion",
    "vanishing": "vanishing",
    "": "not known",
}
_STATUS = {"derived": "derived, not proved"}
_WIDTHS = {"oo": "infinite, then L", "n": "fixed"}
_DIVERSITY = {
    "1/2": "1/2: blocks at distance p differ by sqrt(p)",
    "0": "0: neighbouring blocks compute the same",
    "": "not known",
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
        >>> made = Provenance("0", "ab")
        >>> judged(Verdict("trivial", "exact", (), 3, made, valid_for="all t")).headline
        'Trivial: no output moves, for all t'
    """
    level, words = _WORDS[found.at].get(found.verdict, ("warn", "Undecided"))
    if found.at == "start":
        scope = ", at the start"
    elif found.at == "depth":
        scope = f", for t<={found.steps}"
    else:
        scope = "" if found.verdict == "undecided" else f", for {found.valid_for}"
    if found.at == "depth" and found.verdict == "feature-learning" and found.faithful is False:
        level = "warn"
    return Judgement(level, words + scope, found.facts)


def at_start(found: Verdict) -> str:
    """What its layers and output do at the start."""
    return "neither vanishes nor explodes" if found.initial == "ok" else found.initial


_FACTS: dict[str, dict[str, Callable[[Verdict], str]]] = {
    "width": {
        "Verdict": lambda found: found.verdict + (f" ({found.status})" if found.status else ""),
        "Valid for": lambda found: found.valid_for,
        "Steps followed": lambda found: _followed(found),
        "Network at the start": at_start,
        "Stationary start": lambda found: "yes" if found.stationary_start else "no",
    },
    "depth": {
        "Verdict": lambda found: f"{found.verdict} ({found.status})",
        "Stable at the start": lambda found: ANSWERS[found.stable_start],
        "Stable in training": lambda found: ANSWERS[found.stable],
        "Outputs move by updates of blocks": lambda found: ANSWERS[found.moves],
        "Features move": lambda found: ANSWERS[found.features],
        "Preactivations in blocks of order 1 (faithful)": lambda found: ANSWERS[found.faithful],
        "Diversity exponent kappa": lambda found: _DIVERSITY[found.diversity],
        "Blocks linear in their updates": lambda found: ANSWERS[found.linearized],
        "In front of a block": lambda found: _less(found.alpha),
    },
    "start": {
        "Verdict": lambda found: f"{REGIMES.get(found.verdict, found.verdict)} ({found.status})",
        "Outputs": lambda found: REGIMES[found.start[0]],
        "Gradients": lambda found: REGIMES[found.start[1]],
        "In front of a block": lambda found: _less(found.alpha),
    },
}


def check_tables(found: Verdict) -> tuple[Table, ...]:
    """What a verdict rests on: the layers or the parameters of a block, and sizes."""
    facts = ((label, tell(found)) for label, tell in _FACTS[found.at].items())
    note = found.exploded.text if found.exploded else ""
    decided = Table.of("What was decided", ("Fact", "Answer"), facts, note)
    if found.at == "width":
        adds = "Updates: order of what each adds to its preactivation"
        sizes = row_tables(found.updates, adds)
        sizes += row_tables(found.rows, "Outputs and their changes")
        return decided, _layers(found.layers), *sizes
    rows, suits = depth_rows(found.rows), _critical(found)
    if found.at == "start":
        return decided, suits, rows
    return decided, _rates(found), rows, suits, _sets(found)


def _rates(found: Verdict) -> Table:
    powers = ((rate, _less(rate.gradient), _less(rate.update)) for rate in found.rates)
    return Table.of(
        "Parameters of a block, as powers of L",
        ("Parameter", "#Gradient, -delta", "#Update, -gamma", "#Learning rate", "#Alike"),
        ((rate.label, *both, f"L^({rate.raw})", shown(rate.alike)) for rate, *both in powers),
        "The learning rate is the raw one, as it is typed in a training script. Alike: the cosine "
        "of first gradients in neighbouring blocks.",
    )


def _sets(found: Verdict) -> Table:
    return Table.of(
        "What updates of several matrices of a block add up to",
        ("Matrices", "#Size"),
        ((", ".join(row.labels), bounded(row.L.size("L"), row.status)) for row in found.sets),
        "A bound: a product of updates may vanish faster.",
    )


def _critical(found: Verdict) -> Table:
    told = ((row, _STATUS.get(row.status, row.status)) for row in found.critical)
    return Table.of(
        "Which power in front of a block suits: above it blocks are the identity, below it the "
        "stream explodes or vanishes",
        ("Of", "Width", "#Critical", "Here", "Status"),
        (
            (row.of, _WIDTHS[row.width], _less(row.alpha), REGIMES[row.here], status)
            for row, status in told
        ),
    )


def _less(power: Exponent) -> str:
    """L to the power of minus something."""
    if power.exact is None or power.constant is not None or str(-power).isalnum():
        return (-power).size("L")
    return f"L^(-{power})" if str(power).isalnum() else f"L^(-({power}))"


def _followed(found: Verdict) -> str:
    if found.exploded is None or found.exploded.step >= found.steps:
        return str(found.steps)
    return f"{found.exploded.step} of {found.steps}"


def _layers(layers: Sequence[LayerFacts]) -> Table:
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
    head = ("#Layer", "Update", "Features move", "Kernel evolves", "#From step", "?Why")
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
    key, title = ("check", "Verdict") if found.at == "width" else ("depth", "Depth")
    part = Part(key, title, lead, check_tables(found), update_figure(found))
    advice = _ADVICE if found.at == "width" and found.verdict in ("trivial", "unstable") else ""
    shown = View.of(found, title, part, said=judged(found), summary=advice)
    if found.first_order is None:
        return shown
    first = view(found.first_order)
    if found.at == "width":
        return _led(shown, found, first)
    said = "" if first.said is None else f"In the width: {first.said.headline}."
    parts, notes = (*shown.parts, *first.parts), (*shown.notes, *first.notes)
    return replace(shown, summary=said, parts=parts, notes=notes)


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
