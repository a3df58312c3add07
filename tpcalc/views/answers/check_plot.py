"""Verdicts as a picture: how large what updates add is, layer by layer."""

from __future__ import annotations

from tpcalc.names import Name
from tpcalc.results import OrderRow, Verdict
from tpcalc.views.panels import COLOURS, Figure, Panel, Series

_APART = 0.09  # of a layer, between dots of two steps
_DOWN = 0.2  # of the power, how far the line of a bound reaches


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
    return Figure(
        "What updates add to each layer", " ".join((note, ", ".join(named))).strip(), (panel,)
    )


def _power(row: OrderRow) -> float | None:
    """The power of n where it is a number."""
    power = row.n.constant
    return None if power is None else float(power)
