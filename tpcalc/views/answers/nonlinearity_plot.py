"""The nonlinearity coefficient as pictures: over the layers, and over the widths."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from tpcalc.results.nonlinearity import LayerRow, MeasuredRow, MeasuredValue, Nonlinearity
from tpcalc.views.numbers import count, plain
from tpcalc.views.panels import Figure, Panel, Series

_METRICS = ("NLC", "LBIAS", "LSCALE", "JACF")
_WORDS = {
    "NLC": "NLC from the input to the layer",
    "LBIAS": "LBIAS, sqrt(q / (q - c))",
    "LSCALE": "Scale, sqrt(q)",
    "JACF": "Derivatives, sqrt(g)",
}
_LARGEST = 600.0  # log of what an axis can hold
_RANGE = 20.0  # from this ratio on an axis is logarithmic


def nonlinearity_figures(found: Nonlinearity) -> dict[str, Figure]:
    """The figures, by the key of their section."""
    made = {"nonlinearity": _layers(found)}
    sweep = _sweep(found)
    if sweep is not None:
        made["nonlinearity-widths"] = sweep
    return made


def _layers(found: Nonlinearity) -> Figure:
    panels = []
    for name in _METRICS:
        series = [_limit(found.layers, name)]
        if found.measured:
            width = found.widths[-1]
            series.append(_dots(found, width, name))
        panels.append(_panel(_WORDS[name], "layer", series))
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
    x = tuple(float(row.index) for row in layers)
    y = tuple(of[name](row) for row in layers)
    return Series(x, y, (0.0,) * len(x), "limit", "line", "limit, n → ∞")


def _dots(found: Nonlinearity, width: int, name: str) -> Series:
    rows = [row for row in found.measured if row.width == width and row.value(name) is not None]
    points = [(float(row.layer), _value(row, name)) for row in rows]
    points = [(x, value) for x, value in points if math.isfinite(value.mean.value)]
    return Series(
        tuple(x for x, _ in points),
        tuple(value.mean.value for _, value in points),
        tuple(2 * value.deviation for _, value in points),
        "0",
        "dots",
        f"n = {count(width)}",
    )


def _sweep(found: Nonlinearity) -> Figure | None:
    """Metrics of the output over their limits, against the width."""
    if len(found.widths) < 2:
        return None
    last = found.layers[-1].index
    rows = [row for row in found.measured if row.layer == last]
    panels = []
    for name in _METRICS:
        points = sorted((row.width, _value(row, name)) for row in rows)
        limit = points[0][1].limit.value
        if not limit or not all(math.isfinite(value.mean.value) for _, value in points):
            continue
        x = tuple(float(width) for width, _ in points)
        one = Series((x[0], x[-1]), (1.0, 1.0), (0.0, 0.0), "limit", "line", "limit, n → ∞")
        dots = Series(
            x,
            tuple(value.mean.value / limit for _, value in points),
            tuple(2 * value.deviation / abs(limit) for _, value in points),
            "0",
            "dots",
            "networks",
        )
        words = f"{name} over its limit {plain(limit, 4)}"
        panels.append(Panel(words, _told(words, dots), "width n", (one, dots), log_x=True))
    if not panels:
        return None
    note = "Points: means over seeds; bars: two standard deviations between seeds."
    return Figure("Networks of growing width", note, tuple(panels))


def _panel(title: str, x_label: str, series: list[Series]) -> Panel:
    values = [y for one in series for y in one.y if y > 0]
    wide = bool(values) and max(values) > _RANGE * min(values)
    words = "; ".join(_told(one.label, one) for one in series if one.y)
    return Panel(title, f"{title}. {words}", x_label, tuple(series), log_y=wide)


def _told(label: str, series: Series) -> str:
    return f"{label}: from {plain(series.y[0], 3)} to {plain(series.y[-1], 3)}"


def _value(row: MeasuredRow, name: str) -> MeasuredValue:
    found = row.value(name)
    assert found is not None
    return found
