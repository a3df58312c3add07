"""What is drawn, apart from how: the panels of a report as plain numbers."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from tpcalc.names import Name
from tpcalc.results import PLAIN, Comparison, SlopeRow
from tpcalc.results.data import grouped
from tpcalc.views.labels import place, quantity, sentence
from tpcalc.views.numbers import ERRORS, count, plain
from tpcalc.views.tables import bounded
from tpcalc.views.traces import Trace, spread_out

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

COLOURS = 6
"""How many colours and markers a figure can tell apart."""

_PANELS = 6
_RANGE = 20.0  # from this ratio on an axis is logarithmic
_GUIDE = -0.5


Point = tuple[float, Any] | tuple[float, Any, float]  # (x, y), (x, y, error)


@dataclass(frozen=True, slots=True)
class Series:
    """Points of one colour."""

    x: tuple[float, ...]  # abscissas
    y: tuple[float, ...]  # ordinates
    error: tuple[float, ...]  # half-height of the band or bar at each point (0 where there is none)
    colour: str  # limit, muted or the number of a colour
    # line (with a band), dots (with bars), dash (a guide), area (a band alone), point or ring
    shape: str
    label: str  # words for the legend

    @classmethod
    def of(cls, points: Iterable[Point], ink: str | int, shape: str, label: str) -> Series:
        """Points (x, y) or (x, y, error) in the order of x; an estimate y has its own error.

        An error that is not finite is not drawn; a number stands for a colour, counted around.
        """
        ends = sorted(map(_point, points), key=lambda one: one[0])
        x, y, error = (tuple(one[k] for one in ends) for k in range(3))
        return cls(x, y, error, str(ink % COLOURS if isinstance(ink, int) else ink), shape, label)


def _point(given: Point) -> tuple[float, float, float]:
    x, y, *error = given
    value: Any = getattr(y, "value", y)
    off = error[0] if error else getattr(y, "stderr", 0.0)
    return float(x), float(value), float(off) if math.isfinite(off) else 0.0


@dataclass(frozen=True, slots=True)
class Panel:
    """One pair of axes; ``words`` describes it to those who cannot see it.

    Abscissas are steps, or widths where the axis is logarithmic; with ``numbers`` any numbers. Axes
    that do not end where their numbers do have ``x_ends`` and ``y_ends``.
    ``paint`` draws it on a canvas of matplotlib where its series alone do not tell how.
    """

    title: str
    words: str
    x_label: str
    series: tuple[Series, ...]
    log_x: bool = False
    log_y: bool = False
    numbers: bool = False
    y_label: str = ""
    x_ends: tuple[float, float] | None = None
    y_ends: tuple[float, float] | None = None
    size: tuple[float, float] = (400.0, 270.0)
    paint: Callable[[Canvas], None] | None = field(default=None, compare=False, repr=False)

    @classmethod
    def of(
        cls, title: str, axis: str, series: Iterable[Series], words: str = "", **look: Any
    ) -> Panel:
        """A panel that says where its curves begin and end, logarithmic where numbers lie apart.

        Logarithms lie on a linear axis.
        """
        drawn = tuple(one for one in series if one.x)
        words = words or f"{title} against {axis.removesuffix(' t')}. {told(drawn)}"
        log_y = ratio(drawn) > _RANGE and not title.startswith("log10")
        return cls(title, words, axis, drawn, **{"log_y": log_y, **look})

    @property
    def legend(self) -> tuple[Series, ...]:
        """One entry for each label, in order of appearance."""
        return _entries(self.series)


@dataclass(frozen=True, slots=True)
class Figure:
    """Panels that belong together, with what they show and how to read it."""

    title: str
    note: str
    panels: tuple[Panel, ...]

    @property
    def legend(self) -> tuple[Series, ...]:
        """One entry for each label of all panels, in order of appearance."""
        return _entries(series for panel in self.panels for series in panel.series)

    @property
    def shared(self) -> bool:
        """Whether one legend fits all panels: no sign means two things."""
        signs = [(entry.colour, entry.shape) for entry in self.legend]
        return len(signs) == len(set(signs))


def output_figure(traces: Iterable[Trace], inputs: tuple[str, ...]) -> Figure | None:
    """The loss and f_t against t, a panel for each input (and output): limit, widths as points."""
    wanted = [t for t in traces if t.key.word in ("loss", "f") and t.key.step is not None]
    ordered = sorted(wanted, key=lambda t: t.key.word == "f")
    groups = grouped(ordered, lambda t: (t.key.word, t.key.input or 0, t.key.output or 0))
    widths = spread_out(sorted({p.width for t in wanted for p in t.points}), COLOURS)
    panels = []
    random = any(t.limit is not None and t.limit.sd is not None for t in wanted)
    for members in list(groups.values())[:_PANELS]:
        group = _one_power(members)
        series = [_limit_line(group, "limit", "limit, n → ∞")]
        for index, width in enumerate(widths):
            nudge = 0.09 * (index - (len(widths) - 1) / 2)
            series.append(_dots(group, width, index, nudge, f"n = {count(width)}", random))
        what = "f" if group[0].key.word == "f" else "mean loss of the batch"
        title = ", ".join(filter(None, (what, place(group[0].key, inputs))))
        panels.append(Panel.of(title, "step t", series, log_y=False))
    panels = [panel for panel in panels if panel.series]
    limits = any(t.limit for t in wanted)
    note = "Bars: ± one standard error. Points are means over seeds, set side by side."
    if not widths:
        note = "Band: ± one standard error."
    elif limits:
        note = note.replace("Bars", "Band and bars")
    if random:
        note = (
            "f is random in the limit: the line is its mean, the band ± one standard deviation; "
            "points and bars are mean and standard deviation over seeds."
        )
    elif bounded(wanted):
        note = note.replace("one standard error.", f"the error. {ERRORS}")
    note += _powers_note(wanted)
    if len(groups) > _PANELS:
        note += f" The first {_PANELS} of {len(groups)} are drawn; the table has all."
    title = "Loss and outputs" if any(word == "loss" for word, *_ in groups) else "Output"
    return Figure(f"{title}, step by step", note, tuple(panels)) if panels else None


def feature_figure(traces: Iterable[Trace], inputs: tuple[str, ...]) -> Figure | None:
    """Mean squares of h and x against t, a colour for each layer: limit against the widest."""
    wanted = [
        t
        for t in traces
        if t.key.word in ("h", "x") and t.key.number is not None and t.statistic == "second_moment"
    ]
    limits = any(t.limit for t in wanted)
    widest = max((p.width for t in wanted for p in t.points), default=0)
    layers = spread_out(sorted({t.key.number or 0 for t in wanted}), COLOURS)
    places = sorted({t.key.input or 0 for t in wanted})
    panels = []
    for where in places[: _PANELS // 2]:
        for letter in ("h", "x"):
            series = []
            for index, layer in enumerate(layers):
                own = letter, layer, where
                keys = ((t, (t.key.word, t.key.number, t.key.input)) for t in wanted)
                group = _one_power([t for t, key in keys if key == own])
                series.append(_limit_line(group, index, f"layer {layer}"))
                dots = f"layer {layer}" + (f", n = {count(widest)}" if limits else "")
                series.append(_dots(group, widest, index, 0.0, dots, False))
            title = f"mean square of {letter}"
            if len(places) > 1 or inputs:
                title += f", {place(Name(letter, '1', 0, (where,)), inputs)}"
            panels.append(Panel.of(title, "step t", series))
    panels = [panel for panel in panels if panel.series]
    note = (
        f"Lines: limit. Points: networks of width {count(widest)}."
        if limits and widest
        else "Lines: limit."
        if limits
        else f"Networks of width {count(widest)}, mean over seeds."
    )
    note += _powers_note(wanted)
    if len(places) > _PANELS // 2:
        note += f" The first {_PANELS // 2} of {len(places)} inputs are drawn."
    return Figure("Feature norms, layer by layer", note, tuple(panels)) if panels else None


def error_figure(
    traces: Iterable[Trace], comparison: Comparison | None, inputs: tuple[str, ...]
) -> Figure | None:
    """|finite - limit| against n on logarithmic axes, outputs and features of the last step."""
    fitted = {(s.name, s.statistic): s for s in (comparison.slopes if comparison else ())}
    usable = [t for t in traces if sum(1 for p in t.points if p.rms is not None and p.rms > 0) >= 2]
    last = max((t.key.step for t in usable if t.key.step is not None), default=None)
    if last is not None:
        usable = [t for t in usable if t.key.step == last]
    outputs = [t for t in usable if t.key.word == "f" or t.key.step is None]
    norms = [t for t in usable if t.key.word == "h" and t.statistic == "second_moment"]
    after = "" if last is None else f" after step {last}" if last else " at the start"
    panels = []
    for title, group in (
        (f"outputs{after}" if last is not None else "results", outputs),
        (f"feature norms{after}", norms),
    ):
        shown = spread_out(group, COLOURS)
        series: list[Series] = []
        several = len({(t.key.input, t.key.output) for t in shown}) > 1
        for index, trace in enumerate(shown):
            label = _error_label(trace, inputs, several)
            series += _errors(trace, index, fitted.get((trace.name, trace.statistic)), label)
        if series:
            series.append(_guide(series))
            words = f"{title}: error against width on logarithmic axes. " + "; ".join(
                s.label for s in series if s.shape == "dots"
            )
            panels.append(Panel(title, words, "width n", tuple(series), True, True))
    note = "Root mean square over seeds of the distance to the limit; bars: its sampling error."
    if any(series.shape == "line" for panel in panels for series in panel.series):
        note += " Solid lines: the fitted slopes of the table below."
    return (
        Figure("Distance to the limit against the width", note, tuple(panels)) if panels else None
    )


def _one_power(group: list[Trace]) -> list[Trace]:
    """The steps in order; where powers of n differ, those of the commonest power alone."""
    powers = Counter(t.n_power for t in group)
    kept = [t for t in group if t.n_power == powers.most_common(1)[0][0]]
    return sorted(kept, key=lambda t: t.key.step or 0)


def _powers_note(traces: Iterable[Trace]) -> str:
    powers = sorted({str(t.n_power) for t in traces} - {"", str(PLAIN)})
    if not powers:
        return ""
    return f" Of size {', '.join(f'n^({p})' for p in powers)}: drawn divided by it."


def _entries(series: Iterable[Series]) -> tuple[Series, ...]:
    found: dict[str, Series] = {}
    for one in series:
        found.setdefault(one.label, one)
    return tuple(found.values())


def _limit_line(group: list[Trace], colour: str | int, label: str) -> Series:
    points = (
        (t.key.step or 0, t.limit.value, t.limit.stderr if t.limit.sd is None else t.limit.sd)
        for t in group
        if t.limit is not None and t.limit.finite
    )
    return Series.of(points, colour, "line", label)


def _dots(
    group: list[Trace], width: int, colour: int, nudge: float, label: str, spread: bool
) -> Series:
    points = (
        ((t.key.step or 0) + nudge, point.mean.value, point.sd if spread else point.mean.stderr)
        for t in group
        if (point := t.at(width)) is not None and point.mean.finite
    )
    return Series.of(points, colour, "dots", label)


def _error_label(trace: Trace, inputs: tuple[str, ...], several: bool) -> str:
    if trace.key.step is None:
        return sentence(trace.key, trace.statistic)
    where = place(trace.key, inputs) if several else ""
    return ", ".join(part for part in (quantity(trace.key, trace.statistic), where) if part)


def _errors(trace: Trace, colour: int, slope: SlopeRow | None, name: str) -> list[Series]:
    # The relative sampling error of a root mean square of Gaussian differences.
    points = (
        (float(p.width), p.rms, p.rms / math.sqrt(2 * p.seeds))
        for p in trace.points
        if p.rms is not None and p.rms > 0
    )
    dots = Series.of(points, colour, "dots", name)
    if slope is None or slope.slope is None:
        return [dots]
    label = f"{name}: slope {slope.slope:.2f}"
    if slope.low is not None and slope.high is not None:
        label += f" [{slope.low:.2f}, {slope.high:.2f}]"
    centre = [math.fsum(map(math.log, side)) / len(side) for side in (dots.x, dots.y)]
    line = ((n, math.exp(centre[1] + slope.slope * (math.log(n) - centre[0]))) for n in dots.x)
    return [replace(dots, label=label), Series.of(line, colour, "line", label)]


def _guide(series: list[Series]) -> Series:
    dots = [s for s in series if s.shape == "dots"]
    left, right = min(min(s.x) for s in dots), max(max(s.x) for s in dots)
    top = 1.6 * max(max(s.y) for s in dots)
    ends = ((n, top * (n / left) ** _GUIDE) for n in (left, right))
    return Series.of(ends, "muted", "dash", "guide n^(-1/2)")


def ratio(series: Iterable[Series]) -> float:
    """The largest number over the smallest, 0 where this is not above 0."""
    values = [y for s in series for y in s.y]
    low = min(values, default=0.0)
    return max(values) / low if low > 0 else 0.0


def told(series: Iterable[Series]) -> str:
    """Where each of several curves begins and ends, in words."""
    ends = ((one.label, plain(one.y[0], 3), plain(one.y[-1], 3)) for one in series if one.y)
    return "; ".join(f"{label}: from {first} to {last}" for label, first, last in ends)
