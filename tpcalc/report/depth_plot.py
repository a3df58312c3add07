"""A run of L blocks as pictures: against the number of blocks, and along the depth."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from tpcalc.report.depth import PROFILES
from tpcalc.report.numbers import plain
from tpcalc.report.panels import COLOURS, Figure, Panel, Series
from tpcalc.report.traces import spread_out
from tpcalc.results import DepthArray, DepthTable

__all__ = ["PROFILE", "depth_figures"]

PROFILE = "depths-profile"
_LIMIT = "oo"
_RANGE = 20.0  # from this ratio on an axis is logarithmic


def depth_figures(found: DepthTable) -> dict[str, Figure]:
    """The figures, by the key of their section.

    Args:
        found: The numbers.
    """
    made = {"depths": _against(found), PROFILE: _along(found)}
    return {key: figure for key, figure in made.items() if figure is not None}


def _against(found: DepthTable) -> Figure | None:
    """Outputs, and mean squares at the ends of the stream, against L; the limit as a line."""
    numbers = [depth for depth in found.depths if depth != _LIMIT]
    if len(numbers) < 2:
        return None
    panels = []
    for letter, title in (("f", "outputs"), ("x", "mean square of x at the last block")):
        names = [name for name in found.names if name.split("[")[0] == letter]
        series: list[Series] = []
        for colour, name in enumerate(spread_out(names, COLOURS)):
            series += _depths(found, name, numbers, str(colour))
        if series:
            panels.append(_panel(title, "blocks L", series, log_x=True))
    note = "Points: L blocks; bars: one standard error. Lines: the limit of infinite depth."
    return Figure("Against the number of blocks", note, tuple(panels)) if panels else None


def _depths(found: DepthTable, name: str, numbers: Sequence[str], colour: str) -> Iterable[Series]:
    known = {row.depth: row.estimate for row in found.rows if row.name == name}
    dots = [(float(depth), known[depth]) for depth in numbers if depth in known]
    if dots:
        values = tuple(one.value for _, one in dots)
        errors = tuple(one.stderr for _, one in dots)
        yield Series(tuple(x for x, _ in dots), values, errors, colour, "dots", name)
    if _LIMIT in known:
        ends = (float(numbers[0]), float(numbers[-1]))
        level = known[_LIMIT]
        yield Series(
            ends, (level.value,) * 2, (level.stderr,) * 2, colour, "line", f"{name}, L → ∞"
        )


def _along(found: DepthTable) -> Figure | None:
    """Root mean squares along p = l / L, a colour for each step; the deepest network as points."""
    depths = list(dict.fromkeys(one.depth for one in found.arrays))
    shown = [depth for depth in depths if depth == _LIMIT] + [
        depth for depth in depths if depth != _LIMIT
    ][-1:]
    panels = []
    for name, words in PROFILES.items():
        series: list[Series] = []
        for one in (one for depth in shown for one in found.arrays if one.depth == depth):
            if one.name == name:
                series += _profile(one, found.batch)
        if series:
            panels.append(_panel(f"root mean square of {words}", "p = l/L", series))
    if not panels:
        return None
    note = (
        "Lines: the limit of infinite depth. Points: the largest number of blocks that was asked."
    )
    return Figure("Along the depth", note, tuple(panels))


def _profile(one: DepthArray, batch: int) -> Iterable[Series]:
    """The first sample of each step."""
    steps = range(0, one.values.shape[-1], batch)
    shape, depth = ("line", "L → ∞") if one.depth == _LIMIT else ("dots", f"L = {one.depth}")
    for colour, sample in enumerate(spread_out(list(steps), COLOURS)):
        squares, errors = one.values[:, sample, sample], one.errors[:, sample, sample]
        roots = tuple(math.sqrt(max(value, 0.0)) for value in squares)
        bars = tuple(
            float(error) / (2 * root) if root else 0.0
            for error, root in zip(errors, roots, strict=True)
        )
        yield Series(one.places, roots, bars, str(colour), shape, f"t = {sample // batch}, {depth}")


def _panel(title: str, axis: str, series: Sequence[Series], *, log_x: bool = False) -> Panel:
    values = [y for one in series for y in one.y]
    log_y = min(values) > 0 and max(values) > _RANGE * min(values)
    words = "; ".join(f"{s.label}: from {plain(s.y[0], 3)} to {plain(s.y[-1], 3)}" for s in series)
    return Panel(title, f"{title} against {axis}. {words}", axis, tuple(series), log_x, log_y)
