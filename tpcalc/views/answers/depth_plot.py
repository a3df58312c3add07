"""A run of L blocks as pictures: against the number of blocks, and along the depth."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tpcalc.names import what_of
from tpcalc.results import DepthArray, DepthSample, DepthTable, Estimate
from tpcalc.results.depth_sample import log10_of_root
from tpcalc.views.panels import COLOURS, Figure, Panel, Series
from tpcalc.views.traces import spread_out

if TYPE_CHECKING:
    from numpy.typing import NDArray

PROFILES = {
    "features": "the stream x",
    "gradients": "its adjoint dx",
    "preactivations": "preactivations h of a block",
}
GAMMAS = {
    (0, 0): "products with x, in the stream x at its end",
    (0, 1): "products of transposes with dx, in the stream x at its end",
    (1, 0): "products with x, in the adjoint dx at its start",
    (1, 1): "products of transposes with dx, in the adjoint dx at its start",
}
RATIOS = {
    "R": "|x_L| / |x_0|",
    "D": "|x_L - x_0| / |x_0|",
    "Rp": "|p_0| / |p_L|",
    "Dp": "|p_0 - p_L| / |p_L|",
}
PROFILE = "depths-profile"
STEPS = "depths-steps"
_LIMIT = "oo"


def on_the_way(ratio: str) -> str:
    """The ratio of norms behind or in front of a block, in words."""
    return RATIOS[ratio].replace("x_L", "x_l").replace("p_0", "p_l")


def depth_figures(found: DepthTable) -> dict[str, Figure]:
    """The figures, by the key of their section."""
    if found.start:
        made = {"depths": _norms(found), PROFILE: _trajectories(found)}
    else:
        made = {"depths": _against(found), PROFILE: _along(found), STEPS: _over(found)}
    return {key: figure for key, figure in made.items() if figure is not None}


def _against(found: DepthTable) -> Figure | None:
    """Outputs, and mean squares at the ends of the stream, against L; the limit as a line."""
    numbers = [depth for depth in found.depths if depth != _LIMIT]
    if len(numbers) < 2:
        return None
    panels = []
    for letter, title in (("f", "outputs"), ("x", "mean square of x at the last block")):
        names = [name for name in found.names if what_of(name) == letter]
        series: list[Series] = []
        for colour, name in enumerate(spread_out(names, COLOURS)):
            series += _depths(found, name, numbers, colour)
        if series:
            panels.append(Panel.of(title, "blocks L", series, log_x=True))
    note = "Points: L blocks; bars: one standard error. Lines: the limit of infinite depth."
    return Figure("Against the number of blocks", note, tuple(panels)) if panels else None


def _norms(found: DepthTable) -> Figure | None:
    """Norms at the start against L: infinite width as a line, networks as points."""
    depths = [depth for depth in found.depths if depth != _LIMIT]
    if len(depths) < 2:
        return None
    widths = spread_out(sorted({sample.width for sample in found.samples}), COLOURS)
    panels = []
    for ratio, words in RATIOS.items():
        known = _logs((float(L), found.at(f"{ratio}^2", L)) for L in depths)
        shape = "line" if found.samples else "dots"
        series = [Series.of(known, "limit" if found.samples else "0", shape, "width → ∞")]
        for colour, width in enumerate(widths):
            own = [sample for sample in found.samples if sample.width == width]
            means = [(float(one.depth), one.log10(ratio, one.alphas[0])) for one in own]
            series.append(Series.of(means, colour, "dots", f"n = {width}"))
        panels.append(Panel.of(f"log10 of {words}", "blocks L", series, log_x=True))
    note = (
        "Lines: infinite width. Points: networks, means of the logarithm; bars: one standard error."
    )
    return Figure("Against the number of blocks", note, tuple(panels))


def _trajectories(found: DepthTable) -> Figure | None:
    """Norms on the way through the deepest network, with the spread over networks as a band."""
    depth = max((one.depth for one in found.arrays if one.depth != _LIMIT), key=int, default="")
    own = {one.name: one for one in found.arrays if one.depth == depth}
    if not own:
        return None
    drawn = [sample for sample in found.samples if str(sample.depth) == depth]
    panels = []
    for ratio in RATIOS:
        table = own[f"{ratio}^2"]
        pairs = zip(table.values, table.errors, strict=True)
        squares = [Estimate(float(value), float(error), table.method) for value, error in pairs]
        series = []
        for colour, sample in enumerate(spread_out(drawn, COLOURS)):
            back = ratio.endswith("p")
            ways = [(1.0 - p if back else p, p) for p in sample.places]
            bands = [(p, _spread(sample, ratio, gone)) for p, gone in sorted(ways)]
            kept = [(p, one) for p, one in bands if math.isfinite(one.value)]
            series.append(Series.of(kept, colour, "line", f"n = {sample.width}"))
        known = _logs(zip(table.places, squares, strict=True))
        series.append(Series.of(known, "limit", "line", "width → ∞"))
        panels.append(Panel.of(f"log10 of {on_the_way(ratio)}", "p = l/L", series, numbers=True))
    note = (
        f"L = {depth}. Bands: mean and standard deviation of the logarithm over networks. "
        "Gradients go from p = 1 to 0."
    )
    return Figure("Along the depth", note, tuple(panels))


def _logs(squares: Iterable[tuple[float, Estimate]]) -> list[tuple[float, Estimate]]:
    """Decimal logarithms of norms, where these are not 0."""
    ends = ((x, log10_of_root(one)) for x, one in squares)
    return [(x, one) for x, one in ends if one is not None]


def _spread(sample: DepthSample, ratio: str, place: float) -> Estimate:
    """The mean of a logarithm over networks with its standard deviation."""
    mean = sample.log10(ratio, sample.alphas[0], place)
    return Estimate(mean.value, mean.stderr * math.sqrt(mean.samples), mean.method)


def _depths(found: DepthTable, name: str, numbers: Sequence[str], colour: int) -> Iterable[Series]:
    known = {row.depth: row.estimate for row in found.rows if row.name == name}
    dots = [(float(depth), known[depth]) for depth in numbers if depth in known]
    if dots:
        yield Series.of(dots, colour, "dots", name)
    if _LIMIT in known:
        ends = [(float(depth), known[_LIMIT]) for depth in (numbers[0], numbers[-1])]
        yield Series.of(ends, colour, "line", f"{name}, L → ∞")


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
            panels.append(Panel.of(f"root mean square of {words}", "p = l/L", series, numbers=True))
    note = (
        "Lines: the limit of infinite depth. Points: the largest number of blocks that was asked."
    )
    return Figure("Along the depth", note, tuple(panels)) if panels else None


def _profile(one: DepthArray, batch: int) -> Iterable[Series]:
    """The first sample of each step."""
    steps = range(0, one.values.shape[-1], batch)
    shape, depth = ("line", "L → ∞") if one.depth == _LIMIT else ("dots", f"L = {one.depth}")
    for colour, sample in enumerate(spread_out(list(steps), COLOURS)):
        squares, errors = one.values[:, sample, sample], one.errors[:, sample, sample]
        roots = [math.sqrt(max(value, 0.0)) for value in squares]
        pairs = zip(one.places, roots, errors, strict=True)
        points = ((p, root, float(off) / (2 * root) if root else 0.0) for p, root, off in pairs)
        yield Series.of(points, colour, shape, f"t = {sample // batch}, {depth}")


def _over(found: DepthTable) -> Figure | None:
    """Gamma over the steps, a colour for each step r that a block drew at."""
    panels = []
    for words, one, values, errors in gammas(found):
        series = []
        count = min(values.shape)
        for colour, r in enumerate(spread_out(list(range(count)), COLOURS)):
            points = zip(range(r, len(values)), values[r:, r], errors[r:, r], strict=True)
            series.append(Series.of(points, colour, "line", f"r = {r}"))
        title = f"Gamma of {words}, L = {one.depth}"
        panels.append(Panel.of(title, "step t", series, numbers=True))
    note = "Coefficients at step t of what the middle block drew at step r, times the root of L."
    return Figure("Along training", note, tuple(panels)) if panels else None


def gammas(found: DepthTable) -> Iterator[tuple[str, DepthArray, NDArray[Any], NDArray[Any]]]:
    """Gamma over the steps: of a kind its words, its array, values and errors for t and r.

    They are what the Gaussians of the middle block at step r are in x or dx of step t, first
    samples of the steps alone; in the limit where there is one, else of the deepest network.
    """
    known = [one for one in found.arrays if one.name == "coefficients" and 0.5 in one.places]
    if not known:
        return
    one = next((one for one in known if one.depth == "oo"), known[-1])
    middle, steps = one.places.index(0.5), slice(0, None, found.batch)
    for (ket, base), words in GAMMAS.items():
        place = (ket, base, -1 if ket == 0 else 0, middle, steps, steps)
        values, errors = one.values[place], one.errors[place]
        followed = ~np.isnan(values).all(axis=1)  # adjoints end before the last step
        if values[followed].any():
            yield words, one, values[followed], errors[followed]
