"""The nonlinearity coefficient as pictures: over the layers, and over the widths."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from tpcalc.results.nonlinearity import LayerRow, Nonlinearity
from tpcalc.views.numbers import count, plain
from tpcalc.views.panels import Figure, Panel, Series, told

_METRICS = ("NLC", "LBIAS", "LSCALE", "JACF")
_WORDS = {
    "NLC": "NLC from the input to the layer",
    "LBIAS": "LBIAS, sqrt(q / (q - c))",
    "LSCALE": "Scale, sqrt(q)",
    "JACF": "Derivatives, sqrt(g)",
}
_LARGEST = 600.0  # log of what an axis can hold


def nonlinearity_figures(found: Nonlinearity) -> dict[str, Figure]:
    """The figures, by the key of their section."""
    made = {"nonlinearity": _layers(found), "nonlinearity-widths": _sweep(found)}
    return {key: figure for key, figure in made.items() if figure is not None}


def _layers(found: Nonlinearity) -> Figure:
    panels = []
    for name in _METRICS:
        series = [_limit(found.layers, name)]
        if found.measured:
            width = found.widths[-1]
            series.append(_dots(found, width, name))
        words = f"{_WORDS[name]}. {told(series)}"
        panels.append(Panel.of(_WORDS[name], "layer", series, words))
    note = "Line: the limit of infinite width."
    if found.measured:
        note += " Points: means over seeds; bars: two standard deviations between seeds."
    return Figure("Layer by layer", note, tuple(panels))


def _limit(layers: Sequence[LayerRow], name: str) -> Series:
    of: dict[str, Callable[[LayerRow], float]] = {
        "NLC": lambda row: row.total.value,
        "LBIAS": lambda row: row.bias.value,
        "LSCALE": lambda row: math.sqrt(row.square.value),
        "JACF": lambda row: math.exp(min(row.log_gradient.value / 2, _LARGEST)),
    }
    points = ((row.index, of[name](row)) for row in layers)
    return Series.of(points, "limit", "line", "limit, n → ∞")


def _dots(found: Nonlinearity, width: int, name: str) -> Series:
    rows = (row for row in found.measured if row.width == width and not row.start)
    known = ((float(row.layer), value) for row in rows if (value := row.value(name)) is not None)
    points = (
        (x, value.mean.value, 2 * value.deviation)
        for x, value in known
        if math.isfinite(value.mean.value)
    )
    return Series.of(points, "0", "dots", f"n = {count(width)}")


def _sweep(found: Nonlinearity) -> Figure | None:
    """Metrics of the output over their limits, against the width."""
    if len(found.widths) < 2:
        return None
    last = found.layers[-1].index
    pairs = sorted({(row.start, row.layer) for row in found.measured if row.start})
    shown = [(0, last, name) for name in (*_METRICS, "NLCNUM")]
    shown += [(*pair, name) for pair in pairs for name in ("NLC", "NLCNUM")]
    panels = []
    for start, layer, name in shown:
        rows = [row for row in found.measured if (row.start, row.layer) == (start, layer)]
        known = ((row.width, value) for row in rows if (value := row.value(name)) is not None)
        points = sorted(known, key=lambda point: point[0])
        limit = points[0][1].limit.value if points else 0.0
        if not limit or not all(math.isfinite(value.mean.value) for _, value in points):
            continue
        ends = ((points[k][0], 1.0) for k in (0, -1))
        one = Series.of(ends, "limit", "line", "limit, n → ∞")
        shares = (
            (float(width), value.mean.value / limit, 2 * value.deviation / abs(limit))
            for width, value in points
        )
        dots = Series.of(shares, "0", "dots", "networks")
        of = f", layers {start} to {layer}," if start else ""
        words = f"{name}{of} over its limit {plain(limit, 4)}"
        panels.append(Panel(words, f"{words}. {told([dots])}", "width n", (one, dots), log_x=True))
    note = "Points: means over seeds; bars: two standard deviations between seeds."
    return Figure("Networks of growing width", note, tuple(panels)) if panels else None
