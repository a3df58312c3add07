"""Kernels as pictures: eigenvalues against their rank, and the matrices as maps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from tpcalc.results import Kernel
from tpcalc.views.numbers import count, plain
from tpcalc.views.panels import Figure, Panel, Series
from tpcalc.views.plots import decades, guide, line, logarithmic, round_ticks

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas
    from numpy.typing import NDArray

MAP_SIDE = 256
"""The most rows and columns of a map; larger kernels are averaged in blocks."""

SPECTRUM_ROWS = 4096
"""A report leaves out the eigenvalues of kernels with more rows."""

_SIZE = (400.0, 300.0)
_MARKED = 30  # up to here each eigenvalue has its own dot
_NAMED = 12  # labels that find room beside a map
_SATURATED = (0.01, 0.99)  # quantiles of the entries where the colours of a map end
_COLOURS = {"nngp": "0", "ntk": "1"}


def kernel_figure(kernel: Kernel) -> Figure:
    """The panels of a page: the spectrum where there is one, then a map of each kernel."""
    panels = []
    if has_spectrum(kernel):
        spectrum = _spectrum_panel(kernel)
        paint = partial(_draw_spectrum, panel=spectrum)
        panels.append(replace(spectrum, size=_SIZE, paint=paint))
    for kind in kernel.kinds:
        paint = partial(_draw_map, kernel=kernel, kind=kind)
        panels.append(replace(_map_panel(kernel, kind), size=_SIZE, paint=paint))
    return Figure("Eigenvalues and entries", _note(kernel), tuple(panels))


def has_spectrum(kernel: Kernel) -> bool:
    """Whether a report finds the eigenvalues; of a large kernel the reader has to ask for them."""
    rows = max(len(kernel.matrix(kind)) for kind in kernel.kinds)
    return kernel.symmetric and rows <= SPECTRUM_ROWS


def blocks(
    matrix: NDArray[Any],
    rows: NDArray[Any] | None = None,
    columns: NDArray[Any] | None = None,
    most: int = MAP_SIDE,
) -> NDArray[Any]:
    """A matrix as at most so many rows and columns, each the mean of a block.

    Example:
        >>> import numpy as np
        >>> blocks(np.array([[1.0, 3.0, 5.0, 7.0]]), most=2)
        array([[2., 6.]])
    """
    import numpy as np

    rows = np.arange(matrix.shape[0]) if rows is None else rows
    columns = np.arange(matrix.shape[1]) if columns is None else columns
    # Row by row, so that no second matrix of the size of the first is made.
    tall = np.stack([matrix[part].mean(axis=0) for part in _parts(rows, most)])
    return np.stack([tall[:, part].mean(axis=1) for part in _parts(columns, most)], axis=1)


def sorted_rows(kernel: Kernel) -> tuple[list[int], list[tuple[str, int]]]:
    """The order of the inputs by label, and each label with how many inputs have it."""
    labels = kernel.labels
    order = sorted(range(len(labels)), key=lambda row: _by_number(labels[row]))
    found = Counter(labels[row] for row in order)
    return order or list(range(kernel.shape[0])), list(found.items())


def _parts(indices: NDArray[Any], most: int) -> list[NDArray[Any]]:
    """Runs of indices whose lengths differ by one at most, evenly spread."""
    size = min(len(indices), most)
    ends = [k * len(indices) // size for k in range(size + 1)]
    return [indices[start:end] for start, end in pairwise(ends)]


def _by_number(label: str) -> tuple[float, str]:
    """The key by which 10 comes after 9; words come last."""
    try:
        return float(label), label
    except ValueError:
        return float("inf"), label


def _note(kernel: Kernel) -> str:
    said = []
    if has_spectrum(kernel):
        if any(line.shape == "dash" for line in _spectrum_panel(kernel).series):
            said.append("Eigenvalues below a dashed line are not told from 0 by the error.")
    elif kernel.symmetric:
        said.append("The spectrum of so large a kernel is left out.")
    rows, columns = kernel.shape
    order = "sorted by label" if kernel.labels else "in the order given"
    said.append(f"Rows and columns of the maps: inputs {order}.")
    if kernel.labels and not kernel.symmetric:
        said[-1] = "Rows of the maps: inputs sorted by label; columns: inputs in the order given."
    said.append("Colours end at the 1st and the 99th percentile.")
    several = [kind for kind in kernel.kinds if kernel.outputs(kind) > 1]
    if several:
        said.append("The outputs of one input follow each other.")
    sides = {max(kernel.matrix(kind).shape) for kind in kernel.kinds}
    if max(sides) > MAP_SIDE:
        said.append(
            f"Each pixel is the mean of a block of the {count(rows)} x {count(columns)} inputs."
        )
    return " ".join(said)


def _spectrum_panel(kernel: Kernel) -> Panel:
    series = []
    for kind in kernel.kinds:
        ranked = enumerate(kernel.spectrum(kind), 1)
        points = [(float(rank), float(value), 0.0) for rank, value in ranked if value > 0]
        if points:
            series.append(Series.of(points, _COLOURS[kind], "line", kind.upper()))
    for each in tuple(series):
        off = kernel.resolution(each.label.lower())
        if min(each.y) < off:
            ends = (1.0, max(2.0, each.x[-1]))
            word = f"error, {each.label}"
            series.append(Series(ends, (off, off), (0.0, 0.0), each.colour, "dash", word))
    shown = ", ".join(
        f"{each.label} from {plain(each.y[0], 3)} down to {plain(each.y[-1], 3)}"
        for each in series
        if each.shape == "line"
    )
    words = f"Eigenvalues against rank on logarithmic axes: {shown or 'all are 0'}."
    return Panel("Eigenvalues", words, "rank", tuple(series), log_x=True, log_y=True)


def _map_panel(kernel: Kernel, kind: str) -> Panel:
    matrix = kernel.matrix(kind)
    low, high = plain(float(matrix.min()), 3), plain(float(matrix.max()), 3)
    sizes = " x ".join(count(size) for size in matrix.shape)
    words = f"{kind.upper()} as a map of {sizes} entries, from {low} to {high}."
    return Panel(f"{kind.upper()}, entries", words, "input", ())


def _draw_spectrum(figure: Canvas, panel: Panel) -> None:
    axes = figure.add_axes((0.16, 0.155, 0.78, 0.81), facecolor="none")
    lines = [each for each in panel.series if each.shape == "line"]
    errors = {each.colour: each.y[0] for each in panel.series if each.shape == "dash"}
    for each in panel.series:
        if each.shape == "dash":
            guide(axes, each.x, each.y, each.colour)
        else:
            few = len(each.x) <= _MARKED
            line(axes, each.x, each.y, each.colour, marker="o" if few else "", ms=4)
    if not lines:
        axes.set_axis_off()
        return
    longest = max(each.x[-1] for each in lines)
    axes.set_xscale("log")
    axes.set_xlim(0.9, max(longest, 2.0) * 1.1)
    ranks = decades(1.0, max(longest, 2.0))
    axes.set_xticks(ranks, [count(round(tick)) for tick in ranks])
    # Below its error a spectrum is rounding: of that only the beginning is shown.
    low = min(max(min(each.y), errors.get(each.colour, 0.0) / 10) for each in lines)
    high = max(each.y[0] for each in lines)
    logarithmic(axes, "y", low / 1.6, high * 1.6)
    axes.set_xlabel(panel.x_label)
    axes.grid(axis="y")
    axes.set_axisbelow(True)


def _draw_map(figure: Canvas, kernel: Kernel, kind: str) -> None:
    import numpy as np

    order, labels = sorted_rows(kernel)
    outputs = kernel.outputs(kind)
    rows = (np.array(order)[:, None] * outputs + np.arange(outputs)).ravel()
    pixels = blocks(kernel.matrix(kind), rows, rows if kernel.symmetric else None)
    # One input of a large norm would leave no contrast to the others.
    low, high = (float(value) for value in np.quantile(pixels, _SATURATED))
    if high - low <= 1e-12 * max(abs(low), abs(high)):
        low, high = low - 0.5, high + 0.5
    tall, wide = kernel.shape
    axes = figure.add_axes((0.11, 0.155, 0.66, 0.81), facecolor="none")
    look: dict[str, Any] = {"cmap": "viridis", "interpolation": "none"}
    square = 0.25 <= wide / tall <= 4
    shape: Any = "equal" if square else "auto"
    axes.imshow(pixels, vmin=low, vmax=high, extent=(0, wide, tall, 0), aspect=shape, **look)
    _name_inputs(axes, kernel, labels)
    axes.set_xlabel("input")
    for side in ("left", "bottom"):
        axes.spines[side].set_visible(False)
    ticks, words = round_ticks(low, high)
    words, power = _apart(words)
    bar = figure.add_axes((0.8, 0.155, 0.035, 0.73 if power else 0.81))
    bar.set_title(power, fontsize=12)
    ramp = np.linspace(0.0, 1.0, 128)[:, None]
    bar.imshow(ramp, extent=(0, 1, low, high), origin="lower", aspect="auto", **look)
    bar.set_xticks([])
    bar.yaxis.tick_right()
    bar.set_yticks(ticks, words)


def _apart(labels: list[str]) -> tuple[list[str], str]:
    """Labels without the power of ten that they share, which stands above them once."""
    power = next((label.partition("·")[2] for label in labels if "·" in label), "")
    return [label.partition("·")[0] for label in labels], power and f"×{power}"


def _name_inputs(axes: Axes, kernel: Kernel, labels: list[tuple[str, int]]) -> None:
    """Labels in the middle of their rows where they find room, else numbers of inputs."""
    tall, wide = kernel.shape
    middles, below = [], 0
    for _, size in labels:
        middles.append(below + size / 2)
        below += size
    words = [word if len(word) <= 6 else f"{word[:5]}…" for word, _ in labels]
    named = 0 < len(labels) <= _NAMED
    for axis, size in ((axes.xaxis, wide), (axes.yaxis, tall)):
        if named and (axis is axes.yaxis or kernel.symmetric):
            axis.set_ticks(middles, [word.replace("$", r"\$") for word in words])
        else:
            ticks = [k for k in range(0, size + 1, _stride(size))]
            axis.set_ticks(ticks, [count(tick) for tick in ticks])
        axis.set_tick_params(length=2)


def _stride(size: int) -> int:
    """A round number of inputs between ticks."""
    step = 1
    while size / step > 5:
        step = next(k for k in _round_numbers() if k > step)
    return step


def _round_numbers() -> Iterator[int]:
    power = 1
    while True:
        yield from (power, 2 * power, 5 * power)
        power *= 10
