"""Trained networks as pictures: curves over the steps with bands, ranks over the layers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tpcalc.results import Experiment, Run
from tpcalc.results.data import grouped
from tpcalc.views.numbers import count
from tpcalc.views.panels import COLOURS, Figure, Panel, Series, told
from tpcalc.views.plots import band, colour, dots, framed, linear, logarithmic, round_ticks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CONFIDENCE = 0.95
"""How often an interval around a mean over trials holds the truth, if trials are Gaussian."""

_POINTS = 150  # of a curve; more steps are averaged in blocks
_HEADROOM = 1.3  # above the highest mean; bands of two trials may be far wider than the curves
_Rows = Callable[[Run], tuple[tuple[float, ...], ...]]


def experiment_figures(found: Experiment) -> dict[str, Figure]:
    """The figures of an experiment, by the key of their section."""
    makers: dict[str, Callable[[Experiment], Figure | None]] = {
        "losses": lambda each: _curves(each, "Training loss", lambda run: run.losses),
        "sizes": lambda each: _curves(each, "Mean absolute output", lambda run: run.outputs),
        "ranks": _ranks,
    }
    keys = ["sizes" if word == "outputs" else word for word in found.shows]
    made = {key: makers[key](found) for key in keys if key in makers}
    return {word: _with_axes(figure) for word, figure in made.items() if figure is not None}


def _with_axes(figure: Figure) -> Figure:
    top = _top(figure)
    return replace(figure, panels=tuple(_painted(panel, top) for panel in figure.panels))


def _curves(found: Experiment, title: str, of: _Rows) -> Figure | None:
    panels, most = [], 1
    colours = _colours(found)
    for name, runs in _grouped(found).items():
        series = []
        for run in runs:
            curves = [curve for curve in of(run) if curve]
            block = math.ceil(max(map(len, curves), default=1) / _POINTS)
            most = max(most, block)
            line = _line(curves, block, colours[run.setting.act], run.setting.act)
            if line is not None:
                series.append(line)
        if series:
            panels.append(Panel(name, f"{title}. {told(series)}", "step t", tuple(series)))
    trials = max((run.trials for run in found.runs), default=1)
    note = "Lines: one trial."
    if trials > 1:
        note = f"Lines: means over {trials} trials; bands: 95% confidence intervals for the mean."
    if most > 1:
        note += f" Each point is the mean of up to {most} steps."
    if any(step is not None for run in found.runs for step in run.diverged):
        note += " A line ends where a trial is no longer finite, and may leave the picture before."
    return Figure(f"{title}, step by step", note, tuple(panels)) if panels else None


def _line(curves: Sequence[Sequence[float]], block: int, ink: str, label: str) -> Series | None:
    """The mean curve with its band, up to the first block that is not finite."""
    points = []
    for start in range(0, min(map(len, curves), default=0), block):
        parts = [curve[start : start + block] for curve in curves]
        mean, half = interval([math.fsum(part) / len(part) for part in parts])
        if not math.isfinite(mean):
            break
        points.append((start + (len(parts[0]) - 1) / 2, mean, half))
    return Series.of(points, ink, "line", label) if points else None


def _ranks(found: Experiment) -> Figure | None:
    panels = []
    colours = _colours(found)
    for name, runs in _grouped(found).items():
        for letter in ("h", "x"):
            series = []
            for run in runs:
                ranks = run.ranks_h if letter == "h" else run.ranks_x
                if ranks:
                    ink = colours[run.setting.act]
                    series.append(_over_layers(ranks, ink, run.setting.act))
            if series:
                words = f"Rank of {letter}. {told(series)}"
                title = f"{name}: rank of {letter}"
                panels.append(Panel(title, words, "layer", tuple(series), log_y=True))
    note = "Points: means over trials; bars: 95% confidence intervals."
    if max((run.trials for run in found.runs), default=1) == 1:
        note = "Points: one trial."
    note += " The axis is logarithmic."
    return (
        Figure("Rank after the first step, layer by layer", note, tuple(panels)) if panels else None
    )


def _over_layers(ranks: Sequence[Sequence[int]], ink: str, label: str) -> Series:
    means = map(interval, zip(*ranks, strict=True))
    points = ((float(layer), *mean) for layer, mean in enumerate(means, 1))
    return Series.of(points, ink, "dots", label)


def _grouped(found: Experiment) -> dict[str, list[Run]]:
    """The runs of each parameterization."""
    return grouped(found.runs, lambda run: run.setting.parameterization)


def _colours(found: Experiment) -> dict[str, str]:
    """One colour for each activation, in all panels."""
    acts = dict.fromkeys(run.setting.act for run in found.runs)
    return {act: str(index % COLOURS) for index, act in enumerate(acts)}


def _top(figure: Figure) -> float | None:
    """Where the axes of curves end: the same in all panels, so that they can be compared."""
    if any(panel.log_y for panel in figure.panels):
        return None
    lines = [series for panel in figure.panels for series in panel.series]
    end = max(series.x[-1] for series in lines)
    # One that explodes would flatten all others.
    whole = [series for series in lines if series.x[-1] == end] or lines
    highest = max(y for series in whole for y in series.y)
    return _HEADROOM * highest if highest > 0 else 1.0


def _painted(panel: Panel, top: float | None) -> Panel:
    def fill(axes: Axes) -> None:
        for series in panel.series:
            _add(axes, series)
        if top is None:
            _layers(axes, panel)
        else:
            _steps(axes, panel, top)

    return replace(panel, paint=framed(panel, fill))


def _add(axes: Axes, series: Series) -> None:
    if series.shape != "dots":
        band(axes, series, 0.2)
        return
    ink = colour(series.colour)
    axes.plot(series.x, series.y, color=ink, linewidth=1.0, alpha=0.6, zorder=2)
    # A logarithmic axis has no room for a bar that reaches 0.
    below = [y - max(y - e, 0.5) for y, e in zip(series.y, series.error, strict=True)]
    dots(axes, series, [below, series.error], 6)


def _steps(axes: Axes, panel: Panel, top: float) -> None:
    last = max(x for series in panel.series for x in series.x)
    axes.set_xlim(0, max(last, 1.0))
    ticks, _ = round_ticks(0, max(last, 1.0))
    whole = [tick for tick in ticks if tick == round(tick)]
    axes.set_xticks(whole, [count(round(tick)) for tick in whole])
    linear(axes, "y", 0, top)


def _layers(axes: Axes, panel: Panel) -> None:
    layers = sorted({x for series in panel.series for x in series.x})
    axes.set_xlim(layers[0] - 0.35, layers[-1] + 0.35)
    axes.set_xticks(layers, [str(round(layer)) for layer in layers])
    highest = max(y for series in panel.series for y in series.y)
    logarithmic(axes, "y", 0.8, max(1.25 * highest, 2.0))


def interval(values: Sequence[float]) -> tuple[float, float]:
    """The mean over trials, and half the width of its confidence interval.

    Example:
        >>> mean, half = interval((0.9, 0.92, 0.94))
        >>> round(mean, 3), round(half, 3)
        (0.92, 0.05)
    """
    if not values or not all(map(math.isfinite, values)):
        return math.nan, math.nan
    mean = math.fsum(values) / len(values)
    if len(values) < 2:
        return mean, math.nan
    variance = math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)
    return mean, _quantile(len(values) - 1) * math.sqrt(variance / len(values))


def _quantile(freedom: int) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(freedom, (1 + CONFIDENCE) / 2))
