"""Trained networks as pictures: curves over the steps with bands, ranks over the layers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from tpcalc.results import Experiment, Run
from tpcalc.results.data import grouped
from tpcalc.views.panels import Figure, Panel, Series, told

CONFIDENCE = 0.95
"""How often an interval around a mean over trials holds the truth, if trials are Gaussian."""

_POINTS = 150  # of a curve; more steps are averaged in blocks
_HEADROOM = 1.3  # above the highest mean; bands of two trials may be far wider than the curves
Rows = Callable[[Run], tuple[tuple[float, ...], ...]]
# What is followed step by step: the key of its part, its title, and where it stands.
CURVES: dict[str, tuple[str, str, Rows]] = {
    "losses": ("losses", "Training loss", lambda run: run.losses),
    "outputs": ("sizes", "Mean absolute output", lambda run: run.outputs),
}


def experiment_figures(found: Experiment) -> dict[str, Figure]:
    """The figures of an experiment, by the key of their section."""
    shown = [CURVES[word] for word in found.shows if word in CURVES]
    made = {key: _curves(found, title, of) for key, title, of in shown}
    made |= {"ranks": _ranks(found)} if "ranks" in found.shows else {}
    return {key: figure for key, figure in made.items() if figure is not None}


def _curves(found: Experiment, title: str, of: Rows) -> Figure | None:
    panels = []
    longest = max((len(curve) for run in found.runs for curve in of(run)), default=1)
    most = math.ceil(longest / _POINTS)
    colours = _colours(found)
    for name, runs in _grouped(found).items():
        lines = (_line(of(run), colours[run.setting.act], run.setting.act) for run in runs)
        series = tuple(line for line in lines if line.x)
        if series:
            panels.append(Panel(name, f"{title}. {told(series)}", "step t", series))
    trials = max((run.trials for run in found.runs), default=1)
    note = "Lines: one trial."
    if trials > 1:
        note = f"Lines: means over {trials} trials; bands: 95% confidence intervals for the mean."
    if most > 1:
        note += f" Each point is the mean of up to {most} steps."
    if any(step is not None for run in found.runs for step in run.diverged):
        note += " A line ends where a trial is no longer finite, and may leave the picture before."
    top = _top([series for panel in panels for series in panel.series])
    drawn = tuple(replace(panel, y_ends=(0.0, top)) for panel in panels)
    return Figure(f"{title}, step by step", note, drawn) if panels else None


def _line(rows: Sequence[Sequence[float]], ink: int, label: str) -> Series:
    """The mean curve with its band, up to the first block that is not finite."""
    points, curves = [], [curve for curve in rows if curve]
    block = math.ceil(max(map(len, curves), default=1) / _POINTS)
    for start in range(0, min(map(len, curves), default=0), block):
        parts = [curve[start : start + block] for curve in curves]
        mean, half = interval([math.fsum(part) / len(part) for part in parts])
        if not math.isfinite(mean):
            break
        points.append((start + (len(parts[0]) - 1) / 2, mean, half))
    return Series.of(points, ink, "line", label)


def _ranks(found: Experiment) -> Figure | None:
    panels = []
    colours = _colours(found)
    for name, runs in _grouped(found).items():
        for letter in ("h", "x"):
            series = []
            for run in runs:
                if ranks := getattr(run, f"ranks_{letter}"):
                    intervals = map(interval, zip(*ranks, strict=True))
                    points = ((layer, *own) for layer, own in enumerate(intervals, 1))
                    ink = colours[run.setting.act]
                    means = Series.of(points, ink, "dots", run.setting.act)
                    series += [means, replace(means, error=(0.0,) * len(means.x), shape="line")]
            if series:
                words = f"Rank of {letter}. {told(series[::2])}"
                title = f"{name}: rank of {letter}"
                ends = (0.8, max(1.25 * max(y for one in series for y in one.y), 2.0))
                own = tuple(series)
                panels.append(Panel(title, words, "layer", own, log_y=True, y_ends=ends))
    note = "Points: means over trials; bars: 95% confidence intervals."
    if max((run.trials for run in found.runs), default=1) == 1:
        note = "Points: one trial."
    note += " The axis is logarithmic."
    title = "Rank after the first step, layer by layer"
    return Figure(title, note, tuple(panels)) if panels else None


def _grouped(found: Experiment) -> dict[str, list[Run]]:
    """The runs of each parameterization."""
    return grouped(found.runs, lambda run: run.setting.parameterization)


def _colours(found: Experiment) -> dict[str, int]:
    """One colour for each activation, in all panels."""
    acts = dict.fromkeys(run.setting.act for run in found.runs)
    return {act: index for index, act in enumerate(acts)}


def _top(lines: Sequence[Series]) -> float:
    """Where the axes of curves end: the same in all panels, so that they can be compared."""
    end = max((series.x[-1] for series in lines), default=0.0)
    # One that explodes would flatten all others.
    highest = max((y for one in lines if one.x[-1] == end for y in one.y), default=0.0)
    return _HEADROOM * highest if highest > 0 else 1.0


def interval(values: Sequence[float]) -> tuple[float, float]:
    """The mean over trials, and half the width of its confidence interval.

    Example:
        >>> mean, half = interval((0.9, 0.92, 0.94))
        >>> round(mean, 3), round(half, 3)
        (0.92, 0.05)
    """
    from scipy.special import stdtrit

    if not values or not all(map(math.isfinite, values)):
        return math.nan, math.nan
    mean = math.fsum(values) / len(values)
    if len(values) < 2:
        return mean, math.nan
    variance = math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)
    quantile = float(stdtrit(len(values) - 1, (1 + CONFIDENCE) / 2))
    return mean, quantile * math.sqrt(variance / len(values))
