"""Signals in a deep network as pictures: maps, the plane of the two variances, curves by layer."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from tpcalc.results import Curve, Signal
from tpcalc.views.numbers import plain
from tpcalc.views.panels import Figure, Panel, Series

_EDGE = "The plane of standard deviations of biases and weights, cut in two by the edge of chaos; "
_VARIANCE = "Variance of squared singular values over their squared mean, against rank over width."


def signal_figures(found: Signal) -> dict[str, Figure]:
    """The figures of a page, by the key of their section."""
    maps = (_lengths(found), _correlations(found), _dynamics(found), _gradients(found))
    edge = (*_edge(found), *_scales(found))
    figures = {
        "signal": Figure("Maps and layers", "Points on the diagonal are fixed points.", maps)
    }
    if edge:
        figures["signal-edge"] = Figure(
            "Where the edge of chaos is", "The point is this network.", edge
        )
    figures["signal-spectrum"] = Figure(
        "Spread of the singular values",
        f"Of {found.depth} layers, at infinite width; the point is this network.",
        (_variances(found), *_values(found)),
    )
    return figures


def _curve(found: Signal, kind: str) -> Curve:
    return found.curves_of(kind)[0]


def _line(curve: Curve, ink: str | int, label: str, shape: str = "line") -> Series:
    return Series.of(zip(curve.x, curve.y, strict=True), ink, shape, label)


def _at(x: float, y: float, ink: str, label: str, shape: str = "point") -> Series:
    return Series.of([(x, y)], ink, shape, label)


def _diagonal(end: float) -> Series:
    return Series.of([(0.0, 0.0), (end, end)], "muted", "dash", "no change")


def _sides(y: str, x_ends: tuple[float, float], y_ends: tuple[float, float]) -> dict[str, Any]:
    """Of a panel what stands beside it, and where its axes end."""
    return {"y_label": y, "x_ends": x_ends, "y_ends": y_ends, "log_y": False}


def _lengths(found: Signal) -> Panel:
    curve, q = _curve(found, "length"), found.length.value
    last = curve.x[-1]
    series = [_line(curve, "limit", "next layer"), _diagonal(last)]
    for point in found.fixed_points:
        if (own := point.square.value) <= last:
            shape = "ring" if point.kind == "unstable" else "point"
            series.append(_at(own, own, "good", "q*", shape))
    end = f"fixed point {plain(q, 4)}"
    if found.drift is not None:
        end = f"no fixed point, factor {plain(found.drift.growth.value, 4)}"
    elif not found.fixed_points:
        series.append(_at(q, q, "good", "q*"))
    words = f"Length map: q of the next layer against q; {end}."
    sides = _sides("q, next layer", (0.0, last), (0.0, max(*curve.y, last)))
    return Panel.of("Length map", "q", series, words, **sides)


def _correlations(found: Signal) -> Panel:
    limit = found.correlation.value
    series = [_line(_curve(found, "correlation"), "limit", "next layer"), _diagonal(1.0)]
    series.append(_at(limit, limit, "good", "stable"))
    if found.phase == "chaotic":
        series.append(_at(1.0, 1.0, "bad", "unstable"))
    words = f"Correlation map between 0 and 1; correlations tend to {plain(limit, 4)}."
    sides = _sides("c, next layer", (0.0, 1.0), (0.0, 1.0))
    return Panel.of("Correlation map", "c", series, words, **sides)


def _dynamics(found: Signal) -> Panel:
    curves, limit = found.curves_of("dynamics"), found.correlation.value
    said = "; ".join(f"{curve.label}: {plain(curve.y[-1], 3)} at the end" for curve in curves)
    last = max(found.depth if curve.x[-1] < found.depth else curve.x[-1] for curve in curves)
    last = min(last, max(30.0, 2 * max(curve.x[-1] for curve in curves)))
    series = []
    for k, curve in enumerate(curves):
        points = [*zip(curve.x, curve.y, strict=True)]
        if curve.x[-1] < last:  # they were followed until they were all but c*
            points.append((last, limit))
        series.append(Series.of(points, k, "line", curve.label))
    series.append(Series.of([(0.0, limit), (last, limit)], "muted", "dash", "c*"))
    title, sides = "Correlations by layer", _sides("c", (0.0, last), (0.0, 1.0))
    return Panel.of(title, "layer", series, f"{title}. {said}.", **sides)


def _gradients(found: Signal) -> Panel:
    curve = _curve(found, "gradient")
    low, high = min(*curve.y, 0.0), max(*curve.y, 0.0)
    room = 0.05 * (high - low) if high - low >= 0.5 else 0.5
    words = f"Squared gradients by layer: 10^{plain(curve.y[0], 3)} at the first, 1 at the last."
    series = [_line(curve, "3", "E |dE/dh|² over that of the last layer")]
    sides = _sides("power of 10", (1.0, max(curve.x[-1], 2.0)), (low - room, high + room))
    return Panel.of("Gradients by layer", "layer", series, words, **sides)


def _edge(found: Signal) -> Iterator[Panel]:
    curves = found.curves_of("edge")
    if not curves or max(curves[0].x) < 1e-6:
        return
    curve, own = curves[0], (math.sqrt(found.biases), math.sqrt(found.weights))
    points = sorted(zip(curve.x, curve.y, strict=True), key=lambda point: point[0])
    right = max(2 * own[0], min(1.0 / math.sqrt(found.rank), points[-1][0]))
    top = 1.35 * max(own[1], *(y for x, y in points if x <= right))
    series = [Series(curve.x, curve.y, (0.0,) * len(curve.x), "ink", "line", "edge of chaos")]
    if all(a < b for a, b in zip(curve.x, curve.x[1:], strict=False)):
        points = [(0.0, points[0][1]), *points]
        below = ((x, y / 2, y / 2) for x, y in points)
        above = ((x, top + y / 2, top - y / 2) for x, y in points)
        series = [
            Series.of(points, "ink", "line", "edge of chaos"),
            Series.of(below, "limit", "area", "ordered"),
            Series.of(above, "bad", "area", "chaotic"),
        ]
    place = "at the edge" if found.phase == "edge of chaos" else found.phase
    words = f"{_EDGE}this network is {place}."
    series.append(_at(*own, "good", "this network"))
    sides = _sides("σ_w", (0.0, right), (0.0, top))
    yield Panel.of("Phases", "σ_b", series, words, **sides)


def _scales(found: Signal) -> Iterator[Panel]:
    if not found.curves_of("scale"):
        return
    curve, own = _curve(found, "scale"), found.correlation_scale.layers
    first, last = curve.x[0], curve.x[-1]
    kept = [(x, 1 / y) for x, y in zip(curve.x, curve.y, strict=True) if y > 0]
    low, top = min([y for _, y in kept] + [1.0]) / 1.3, max(10 * min(own, 1e4), 100.0)
    poles = [x for point in found.edges if first < (x := point.weights.value) < last]
    series = []
    for start, end in zip([0.0, *poles], [*poles, math.inf], strict=True):
        part = [(x, y) for x, y in kept if start < x < end]
        series.append(Series.of(part, "limit", "line", "ξ_c"))
    for pole in poles:
        series.append(Series.of([(pole, low), (pole, top)], "ink", "dash", "pole at the edge"))
    if math.isfinite(own) and own > 0:
        series.append(_at(found.weights, own, "good", "this network"))
    words = "The depth scale of correlations against the variance of the weights, for these biases."
    sides = _sides("layers", (first, last), (low, top)) | {"log_y": True}
    yield Panel.of("Reach of correlations", "σ_w²", series, words, **sides)


def _variances(found: Signal) -> Panel:
    curves = found.curves_of("variance")
    heights = [y for curve in curves for y in curve.y if y > 0]
    low = max(min(heights), max(heights) * 1e-4)
    series = []
    for k, curve in enumerate(curves):
        kept = ((x, y) for x, y in zip(curve.x, curve.y, strict=True) if y > low / 2)
        series.append(Series.of(kept, k, "line", curve.label))
    own = next((row.whole.value for row in found.jacobian if row.family == found.family), 0.0)
    if own > 0:
        series.append(_at(found.rank, own, "good", "this network"))
    for k, curve in enumerate(found.curves_of("networks")):
        kept = ((x, y) for x, y in zip(curve.x, curve.y, strict=True) if y > low / 2)
        series.append(Series.of(kept, "limit", "dash" if k else "point", curve.label))
    sides = _sides("", (curves[0].x[0], 1.0), (low / 1.5, max(heights) * 1.5))
    sides |= {"log_x": True, "log_y": True}
    return Panel.of("Variance against the rank", "rank over width γ", series, _VARIANCE, **sides)


def _values(found: Signal) -> list[Panel]:
    """Singular values of networks that were drawn, from the largest on."""
    curves = found.curves_of("values")
    if not curves:
        return []
    series = [_line(curve, k, curve.label) for k, curve in enumerate(curves)]
    heights = [y for curve in curves for y in curve.y]
    sides = _sides("log10 of the singular value", (0.0, 1.0), (min(heights), max(heights) + 0.1))
    note = "Those that are not 0, by their share of all from the largest on."
    return [Panel.of("Singular values of networks", "share of all", series, note, **sides)]
