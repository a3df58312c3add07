"""Signals in a deep network as pictures: maps, the plane of the two variances, curves by layer."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tpcalc.results import Curve, Signal
from tpcalc.views.numbers import plain, superscript
from tpcalc.views.panels import Figure, Panel, Series
from tpcalc.views.plots import DASHES, colour, guide, line, linear, logarithmic

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

_SIZE = (400.0, 290.0)
_NONE: tuple[float, ...] = ()
_GUIDE: dict[str, Any] = {"linewidth": 1.2, "linestyle": DASHES["dash"]}
_Drawer = Callable[["Axes", Signal], None]


def signal_figures(found: Signal) -> dict[str, Figure]:
    """The figures of a page, by the key of their section."""

    def painted(panels: Iterable[tuple[Panel | None, _Drawer]]) -> tuple[Panel, ...]:
        return tuple(_painted(panel, found, draw) for panel, draw in panels if panel is not None)

    maps = painted(
        (
            (_lengths(found), _draw_lengths),
            (_correlations(found), _draw_correlations),
            (_dynamics(found), _draw_dynamics),
            (_gradients(found), _draw_gradients),
        )
    )
    edge = painted(((_edge(found), _draw_edge), (_scales(found), _draw_scales)))
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
        painted(((_variances(found), _draw_variances),)),
    )
    return figures


def _painted(panel: Panel, found: Signal, draw: _Drawer) -> Panel:
    def paint(figure: Canvas) -> None:
        axes = figure.add_axes((0.15, 0.165, 0.82, 0.79), facecolor="none")
        draw(axes, found)
        axes.set_xlabel(panel.x_label)
        axes.set_axisbelow(True)
        longest = max((len(label.get_text()) for label in axes.get_yticklabels()), default=1)
        left = (34 + 6.5 * min(longest, 8)) / _SIZE[0]
        axes.set_position((left, 0.165, 0.97 - left, 0.79))

    return replace(panel, size=_SIZE, paint=paint)


def _curve(found: Signal, kind: str) -> Curve:
    return found.curves_of(kind)[0]


def _entry(label: str, shape: str, ink: str) -> Series:
    return Series(_NONE, _NONE, _NONE, ink, shape, label)


def _entries(curves: Iterable[Curve]) -> Iterator[Series]:
    return (_entry(curve.label, "line", str(k)) for k, curve in enumerate(curves))


def _lengths(found: Signal) -> Panel:
    legend = (
        _entry("next layer", "line", "limit"),
        _entry("no change", "dash", "muted"),
        *(() if found.drift else (_entry("q*", "point", "good"),)),
    )
    end = f"fixed point {plain(found.length.value, 4)}"
    if found.drift is not None:
        end = f"no fixed point, factor {plain(found.drift.growth.value, 4)}"
    words = f"Length map: q of the next layer against q; {end}."
    return Panel("Length map", words, "q", legend)


def _draw_lengths(axes: Axes, found: Signal) -> None:
    curve, q = _curve(found, "length"), found.length.value
    line(axes, curve.x, curve.y, "limit")
    _diagonal(axes, curve.x[-1])
    for point in found.fixed_points:
        if point.square.value <= curve.x[-1]:
            _point(axes, point.square.value, point.square.value, "good", point.kind != "unstable")
    if not found.fixed_points and found.drift is None:
        _point(axes, q, q, "good", True)
    _span(axes, 0.0, curve.x[-1], 0.0, max(*curve.y, curve.x[-1]))
    axes.set_ylabel("q, next layer")


def _correlations(found: Signal) -> Panel:
    legend = (
        _entry("next layer", "line", "limit"),
        _entry("no change", "dash", "muted"),
        _entry("stable", "point", "good"),
        *((_entry("unstable", "point", "bad"),) if found.phase == "chaotic" else ()),
    )
    limit = plain(found.correlation.value, 4)
    words = f"Correlation map between 0 and 1; correlations tend to {limit}."
    return Panel("Correlation map", words, "c", legend)


def _draw_correlations(axes: Axes, found: Signal) -> None:
    curve = _curve(found, "correlation")
    line(axes, curve.x, curve.y, "limit")
    _diagonal(axes, 1.0)
    stable = found.correlation.value
    if found.phase == "chaotic":
        _point(axes, 1.0, 1.0, "bad", True)
    _point(axes, stable, stable, "good", True)
    _span(axes, 0.0, 1.0, 0.0, 1.0)
    axes.set_ylabel("c, next layer")


def _dynamics(found: Signal) -> Panel:
    curves = found.curves_of("dynamics")
    ends = "; ".join(f"{curve.label}: {plain(curve.y[-1], 3)} at the end" for curve in curves)
    legend = (*_entries(curves), _entry("c*", "dash", "muted"))
    return Panel("Correlations by layer", f"Correlations by layer. {ends}.", "layer", legend)


def _draw_dynamics(axes: Axes, found: Signal) -> None:
    curves = found.curves_of("dynamics")
    last = max(found.depth if curve.x[-1] < found.depth else curve.x[-1] for curve in curves)
    last = min(last, max(30.0, 2 * max(curve.x[-1] for curve in curves)))
    for k, curve in enumerate(curves):
        x, y = list(curve.x), list(curve.y)
        if x[-1] < last:  # they were followed until they were all but c*
            x, y = [*x, last], [*y, found.correlation.value]
        line(axes, x, y, str(k), zorder=3)
    axes.axhline(found.correlation.value, color=colour("muted"), **_GUIDE)
    _span(axes, 0.0, last, 0.0, 1.0)
    axes.set_ylabel("c")


def _gradients(found: Signal) -> Panel:
    curve = _curve(found, "gradient")
    legend = (_entry("E |dE/dh|² over that of the last layer", "line", "3"),)
    words = f"Squared gradients by layer: 10^{plain(curve.y[0], 3)} at the first, 1 at the last."
    return Panel("Gradients by layer", words, "layer", legend)


def _draw_gradients(axes: Axes, found: Signal) -> None:
    curve = _curve(found, "gradient")
    line(axes, curve.x, curve.y, "3")
    low, high = min(*curve.y, 0.0), max(*curve.y, 0.0)
    if high - low < 0.5:
        low, high = low - 0.5, high + 0.5
    room = 0.05 * (high - low)
    _span(axes, 1.0, max(curve.x[-1], 2.0), low - room, high + room)
    ticks = [tick for tick in axes.get_yticks() if abs(tick - round(tick)) < 1e-9]
    axes.set_yticks(ticks, [_tenfold(round(tick)) for tick in ticks])


def _tenfold(power: int) -> str:
    return "1" if power == 0 else f"10{superscript(str(power))}"


def _edge(found: Signal) -> Panel | None:
    curves = found.curves_of("edge")
    if not curves or max(curves[0].x) < 1e-6:
        return None
    legend = (
        _entry("edge of chaos", "line", "ink"),
        _entry("ordered", "area", "limit"),
        _entry("chaotic", "area", "bad"),
        _entry("this network", "point", "good"),
    )
    words = (
        "The plane of standard deviations of biases and weights, cut in two by the edge of chaos; "
        f"this network is {'at the edge' if found.phase == 'edge of chaos' else found.phase}."
    )
    return Panel("Phases", words, "σ_b", legend)


def _draw_edge(axes: Axes, found: Signal) -> None:
    curve = found.curves_of("edge")[0]
    x, y = math.sqrt(found.biases), math.sqrt(found.weights)
    order = sorted(range(len(curve.x)), key=lambda k: curve.x[k])
    xs, ys = [curve.x[k] for k in order], [curve.y[k] for k in order]
    one_to_one = all(a < b for a, b in zip(curve.x, curve.x[1:], strict=False))
    right = max(2 * x, min(1.0 / math.sqrt(found.rank), xs[-1]))
    high = 1.35 * max(y, *(b for a, b in zip(xs, ys, strict=True) if a <= right))
    low = 0.0
    if one_to_one:
        xs, ys = [0.0, *xs], [ys[0], *ys]
        axes.fill_between(xs, ys, low, color=colour("limit"), alpha=0.14, linewidth=0)
        axes.fill_between(xs, ys, 2 * high, color=colour("bad"), alpha=0.12, linewidth=0)
    else:
        xs, ys = list(curve.x), list(curve.y)
    line(axes, xs, ys, "ink", zorder=3)
    _point(axes, x, y, "good", True)
    _span(axes, 0.0, right, low, high)
    axes.set_ylabel("σ_w")


def _scales(found: Signal) -> Panel | None:
    if not found.curves_of("scale"):
        return None
    legend = (
        _entry("ξ_c", "line", "limit"),
        *((_entry("pole at the edge", "dash", "ink"),) if found.edges else ()),
        _entry("this network", "point", "good"),
    )
    words = "The depth scale of correlations against the variance of the weights, for these biases."
    return Panel("Reach of correlations", words, "σ_w²", legend)


def _draw_scales(axes: Axes, found: Signal) -> None:
    curve = _curve(found, "scale")
    kept = [(x, 1 / y) for x, y in zip(curve.x, curve.y, strict=True) if y > 0]
    own = found.correlation_scale.layers
    top = max(10 * min(own, 1e4), 100.0)
    low = min([y for _, y in kept] + [1.0])
    poles = [
        point.weights.value
        for point in found.edges
        if curve.x[0] < point.weights.value < curve.x[-1]
    ]
    for start, end in zip([0.0, *poles], [*poles, math.inf], strict=True):
        part = [(x, y) for x, y in kept if start < x < end]
        if part:
            xs, ys = zip(*part, strict=True)
            line(axes, xs, ys, "limit")
    for pole in poles:
        axes.axvline(pole, color=colour("ink"), **_GUIDE)
    if math.isfinite(own) and own > 0:
        _point(axes, found.weights, own, "good", True)
    linear(axes, "x", curve.x[0], curve.x[-1])
    logarithmic(axes, "y", low / 1.3, top)
    axes.set_ylabel("layers")
    axes.grid(axis="y")


def _variances(found: Signal) -> Panel:
    legend = (*_entries(found.curves_of("variance")), _entry("this network", "point", "good"))
    words = "Variance of squared singular values over their squared mean, against rank over width."
    return Panel("Variance against the rank", words, "rank over width γ", legend)


def _draw_variances(axes: Axes, found: Signal) -> None:
    curves = found.curves_of("variance")
    heights = [y for curve in curves for y in curve.y if y > 0]
    low = max(min(heights), max(heights) * 1e-4)
    for k, curve in enumerate(curves):
        kept = [(x, y) for x, y in zip(curve.x, curve.y, strict=True) if y > low / 2]
        xs, ys = zip(*kept, strict=True)
        line(axes, xs, ys, str(k))
    own = next((row.whole.value for row in found.jacobian if row.family == found.family), 0.0)
    if own > 0:
        _point(axes, found.rank, own, "good", True)
    axes.set_xscale("log")
    axes.set_xlim(curves[0].x[0], 1.0)
    shown = [tick for tick in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0) if tick >= curves[0].x[0]]
    axes.set_xticks(shown, [plain(tick) for tick in shown])
    logarithmic(axes, "y", low / 1.5, max(heights) * 1.5)
    axes.grid(axis="y")


def _diagonal(axes: Axes, end: float) -> None:
    guide(axes, [0.0, end], [0.0, end], "muted", zorder=1)


def _point(axes: Axes, x: float, y: float, ink: str, filled: bool) -> None:
    look: dict[str, Any] = {"markeredgewidth": 1.4, "markeredgecolor": colour("page")}
    if not filled:
        look = {"markeredgewidth": 1.6, "markeredgecolor": colour(ink), "markerfacecolor": "none"}
    axes.plot(
        [x], [y], marker="o", markersize=9, color=colour(ink), linestyle="none", zorder=5,
        clip_on=False, **look,
    )  # fmt: skip


def _span(axes: Axes, left: float, right: float, low: float, high: float) -> None:
    linear(axes, "x", left, right)
    linear(axes, "y", low, high)
    axes.grid(axis="y")
