"""Activations as pictures: the function, its length and covariance kernel, its coefficients."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tpcalc.results import Sheets
from tpcalc.views.numbers import plain
from tpcalc.views.panels import COLOURS, Figure, Panel, Series, told
from tpcalc.views.plots import framed, guide, line, linear, logarithmic

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Kind, title, words on the horizontal axis, whether the axes are logarithmic.
_PANELS = (
    ("activation", "Activation", "s", False, False),
    ("length", "Length kernel L(λ)", "length λ of the input", True, True),
    ("covariance", "Normalized covariance kernel", "correlation c", False, False),
    ("nlc of length", "n(λ², 0)", "length λ of the input", True, True),
    ("nlc of covariance", "n(1, c)", "correlation c", False, False),
)
_IDENTITY = ("length", "covariance")


def sheet_figure(found: Sheets) -> Figure:
    """The panels of a page."""
    drawn = found.sheets[:COLOURS]
    panels = []
    for kind, title, x_label, log_x, log_y in _PANELS:
        series = [
            Series(curve.x, curve.y, (0.0,) * len(curve.x), str(index), "line", each.name)
            for index, each in enumerate(drawn)
            for curve in each.curves
            if curve.kind == kind and curve.x
        ]
        words = f"{title}. {told(series) or 'Nothing to draw.'}"
        if kind in _IDENTITY and series:
            ends = (min(one.x[0] for one in series), max(one.x[-1] for one in series))
            series.append(Series(ends, ends, (0.0, 0.0), "muted", "dash", "identity"))
        panels.append(_painted(Panel(title, words, x_label, tuple(series), log_x, log_y)))
    error = max(curve.error for each in drawn for curve in each.curves)
    note = f"Errors of the curves are below {plain(max(error, 1e-15), 2)}, far below their width."
    return Figure("Activation and kernels", note, tuple(panels))


def _painted(panel: Panel) -> Panel:
    def fill(axes: Axes) -> None:
        for each in panel.series:
            if each.shape == "dash":
                guide(axes, each.x, each.y, each.colour, zorder=1)
            else:
                line(axes, each.x, each.y, each.colour)
        if panel.series:
            _scale(axes, panel)
        else:
            axes.set_axis_off()

    return replace(panel, paint=framed(panel, fill, right=0.955))


def _scale(axes: Axes, panel: Panel) -> None:
    solid = [each for each in panel.series if each.shape == "line"]
    xs = [x for each in solid for x in each.x]
    if panel.log_x:
        logarithmic(axes, "x", min(xs), max(xs))
    else:
        linear(axes, "x", min(xs), max(xs))
    ys = [y for each in solid for y in each.y if y > 0 or not panel.log_y]
    if panel.log_y and ys:
        logarithmic(axes, "y", min(ys) / 1.25, max(ys) * 1.25)
    else:
        low, high = axes.get_ylim()
        if high - low < 1e-9 * max(abs(low), abs(high), 1.0):
            low, high = low - 0.5, high + 0.5
        linear(axes, "y", low, high)
    axes.minorticks_off()
