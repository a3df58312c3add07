"""What a report says of NNGP and NTK: sentences, tables, eigenvalues, and matrices as maps."""

from __future__ import annotations

import math
from collections import Counter
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from tpcalc.results import Estimate, Kernel, Method, Prediction
from tpcalc.results.estimate import rounded_up
from tpcalc.views.numbers import SETTLED, Measure, count, counted, measured, plain, settled
from tpcalc.views.panels import Figure, Panel, Series
from tpcalc.views.plots import round_ticks, whole_ticks
from tpcalc.views.tables import Table
from tpcalc.views.view import Judgement, Part, View, view

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas
    from numpy.typing import NDArray


MAP_SIDE = 256
"""The most rows and columns of a map; larger kernels are averaged in blocks."""

SPECTRUM_ROWS = 4096
"""A report leaves out the eigenvalues of kernels with more rows."""

_SIZE = (400.0, 300.0)
_ROWS = 12  # of a prediction that are shown
_NAMED = 12  # labels that find room beside a map
_SATURATED = (0.01, 0.99)  # quantiles of the entries where the colours of a map end
_COLOURS = {"nngp": "0", "ntk": "1"}


def kernel_figure(kernel: Kernel) -> Figure:
    """The panels of a page: the spectrum where there is one, then a map of each kernel."""
    panels = []
    if has_spectrum(kernel):
        panels.append(_spectrum_panel(kernel))
    panels += [_map_panel(kernel, kind) for kind in kernel.kinds]
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
    lines, series, lows = [], [], []
    for kind in kernel.kinds:
        ranked = enumerate(kernel.spectrum(kind), 1)
        points = [(float(rank), float(value)) for rank, value in ranked if value > 0]
        if points:
            lines.append(Series.of(points, _COLOURS[kind], "line", kind.upper()))
    longest = max((each.x[-1] for each in lines), default=1.0)
    for each in lines:
        off, lowest = kernel.resolution(each.label.lower()), min(each.y)
        lows.append(lowest)
        if lowest < off:
            # Below its error a spectrum is rounding: of that only the beginning is shown.
            lows[-1] = max(lowest, off / 10)
            level = [(1.0, off), (max(2.0, each.x[-1]), off)]
            series.append(Series.of(level, each.colour, "dash", f"error, {each.label}"))
    shown = ", ".join(
        f"{each.label} from {plain(each.y[0], 3)} down to {plain(each.y[-1], 3)}" for each in lines
    )
    words = f"Eigenvalues against rank on logarithmic axes: {shown or 'all are 0'}."
    y_ends = (min(lows) / 1.6, max(each.y[0] for each in lines) * 1.6) if lines else None
    ends, drawn = (0.9, max(longest, 2.0) * 1.1), (*lines, *series)
    return Panel(
        "Eigenvalues", words, "rank", drawn, True, True, x_ends=ends, y_ends=y_ends, size=_SIZE
    )


def _map_panel(kernel: Kernel, kind: str) -> Panel:
    matrix = kernel.matrix(kind)
    low, high = plain(float(matrix.min()), 3), plain(float(matrix.max()), 3)
    sizes = " x ".join(count(size) for size in matrix.shape)
    words = f"{kind.upper()} as a map of {sizes} entries, from {low} to {high}."
    paint = partial(_draw_map, kernel=kernel, kind=kind)
    return Panel(f"{kind.upper()}, entries", words, "input", (), size=_SIZE, paint=paint)


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
            axis.set_ticks(*whole_ticks(0, size, 5))
        axis.set_tick_params(length=2)


_CORNER = 5
_DIGITS = 6
_FOLLOWED = "errors were followed"  # how the note begins that names the pairs
_HEADLINES = {
    Method.EXACT: ("good", "{} in closed form"),
    Method.QUADRATURE: ("good", "{} by quadrature, with a bound on the error"),
    Method.PARTICLES: ("info", "{} by sampling, with standard errors"),
    Method.FINITE: ("info", "{} of finite networks, with standard errors"),
}


def names(kernel: Kernel) -> str:
    """Which kernels there are, in words."""
    return " and ".join(kind.upper() for kind in kernel.kinds)


def kernel_summary(kernel: Kernel) -> str:
    """One sentence: what it is, and of what size."""
    rows, columns = kernel.shape
    inputs = counted(rows, "input")
    inputs += "" if kernel.symmetric else f" against {counted(columns, 'other')}"
    outputs = max(kernel.outputs(kind) for kind in kernel.kinds)
    several = f" with {outputs} correlated outputs each" if outputs > 1 else ""
    whose = f" of {kernel.model}" if kernel.model else ""
    return f"{names(kernel)}{whose} on {inputs}{several}."


def kernel_lines(kernel: Kernel) -> tuple[str, ...]:
    """How sure the entries are, and whether gradient independence holds."""
    sampled = _sampled(kernel)
    unit = "in units of sqrt(K_ii K_jj)"
    near = kernel.coincident_error
    if kernel.method is Method.EXACT and not kernel.error and not near:
        text = "Every entry is exact"
    elif sampled:
        text = f"Standard errors of the entries are at most {rounded_up(kernel.error)}, {unit}"
    else:
        text = f"Entries are within {rounded_up(kernel.error)} of the truth, {unit}"
        if any(note.startswith(_FOLLOWED) for note in kernel.notes):
            text += ", for the pairs whose errors were followed"
    if near and rounded_up(near) != rounded_up(kernel.error):
        text += (
            "; between different inputs that nearly coincide (correlation above 0.99) "
            f"{'at most' if sampled else 'within'} {rounded_up(near)}"
        )
    lines = [text + "."]
    if kernel.independent is not None:
        lines.append(
            "Gradient independence holds: the backward pass may take weights of its own."
            if kernel.independent
            else "Gradient independence does not hold: the backward pass reuses the weights of the "
            "forward pass, and what that adds is in the NTK."
        )
    return tuple(lines)


def judge_kernel(kernel: Kernel) -> Judgement:
    """How the numbers were found, in a few words."""
    level, headline = _HEADLINES[kernel.method]
    return Judgement(level, headline.format(names(kernel)), kernel_lines(kernel))


def kernel_tables(kernel: Kernel) -> tuple[Table, ...]:
    """Statistics of the kernels beside each other, then the first entries of each."""
    return (_statistics(kernel), *(_corner(kernel, kind) for kind in kernel.kinds))


def _statistics(kernel: Kernel) -> Table:
    columns = [_column(kernel, kind) for kind in kernel.kinds]
    words = dict.fromkeys(word for column in columns for word in column)
    rows = ((word, *(column.get(word, "") for column in columns)) for word in words)
    head = ("Statistic", *(f"#{kind.upper()}" for kind in kernel.kinds))
    notes = []
    if has_spectrum(kernel):
        by = "three standard errors" if kernel.method is Method.PARTICLES else "the error"
        notes.append(
            "Effective rank: the exponential of the entropy of the normalised eigenvalues. "
            f"A bound (<=, >=) or a range is what {by} of the entries leaves open."
        )
    elif kernel.symmetric:
        notes.append(
            f"The eigenvalues of more than {count(SPECTRUM_ROWS)} rows are left out; the method "
            "spectrum finds them."
        )
    return Table.of("Statistics", head, rows, " ".join(notes))


def _column(kernel: Kernel, kind: str) -> dict[str, str]:
    """The statistics of one kernel, by name."""
    import numpy as np

    matrix, sampled = kernel.matrix(kind), _sampled(kernel)
    off = _error(kernel) * float(_norms(kernel, kind).max()) ** 2
    found = {
        "Smallest entry": _entry(float(matrix.min()), off, sampled),
        "Largest entry": _entry(float(matrix.max()), off, sampled),
    }
    if kernel.symmetric:
        trace = float(np.trace(matrix))
        found["Trace"] = _entry(trace, _error(kernel) * abs(trace), sampled)
    if has_spectrum(kernel):
        found |= _spectral(kernel, kind)
    return found


def _spectral(kernel: Kernel, kind: str) -> dict[str, str]:
    eigenvalues, off = kernel.spectrum(kind), kernel.resolution(kind)
    first, last = float(eigenvalues[0]), float(eigenvalues[-1])
    found = {
        "Largest eigenvalue": _eigenvalue(first, off),
        "Smallest eigenvalue": _eigenvalue(last, off),
    }
    if first > 10 * off:
        found["Condition number"] = _condition(first, last, off)
        found["Effective rank"] = _rank(*kernel.effective_rank_range(kind))
    return found


def _eigenvalue(value: float, off: float) -> str:
    if value <= 10 * off:
        most = rounded_up(max(value, 0.0) + off)
        return f"<= {plain(float(most), 2) if 'e' in most else most}"
    return plain(value, _certain(off / value))


def _condition(first: float, last: float, off: float) -> str:
    """The ratio of the outer eigenvalues; where the last may be 0, what it is at least."""
    if last > 10 * off:
        return plain(first / last, _certain(off / last + off / first))
    least = (first - off) / (max(last, 0.0) + off)
    unit = 10.0 ** (math.floor(math.log10(least)) - 1)
    return f">= {plain(math.floor(least / unit) * unit, 2)}"


def _rank(low: float, high: float) -> str:
    if high - low < 1e-3 * low:
        return plain((low + high) / 2, 3)
    return f"{math.floor(low * 10) / 10:g} to {math.ceil(high * 10) / 10:g}"


def _sampled(kernel: Kernel) -> bool:
    return kernel.method in (Method.PARTICLES, Method.FINITE)


def _error(kernel: Kernel) -> float:
    """The error that holds for every entry, in units of sqrt(K_ii K_jj)."""
    return max(kernel.error, kernel.coincident_error or 0.0)


def _norms(kernel: Kernel, kind: str) -> NDArray[Any]:
    """sqrt(K_ii); between two sets of inputs the largest entry stands for all K_ii."""
    import numpy as np

    matrix = kernel.matrix(kind)
    if kernel.symmetric:
        own: NDArray[Any] = np.sqrt(np.clip(np.diagonal(matrix), 0.0, None))
        return own
    return np.full(max(matrix.shape), math.sqrt(float(abs(matrix).max())))


def _entry(value: float, off: float, sampled: bool) -> str:
    """An entry to the digits that its error leaves; with its standard error if it is sampled."""
    if off == 0:
        return plain(value, _DIGITS)
    if sampled or not math.isfinite(off):
        return measured(Measure(value, off, Method.PARTICLES.value), "K")
    if abs(value) > 3 * off:
        return plain(value, _certain(off / abs(value)))
    return f"|K| <= {rounded_up(abs(value) + off)}"


def _certain(error: float) -> int:
    if error <= 0:
        return _DIGITS
    return min(_DIGITS, max(1, math.floor(-math.log10(error)))) if math.isfinite(error) else 1


def _corner(kernel: Kernel, kind: str) -> Table:
    matrix, outputs = kernel.matrix(kind), kernel.outputs(kind)
    part = matrix[:_CORNER, :_CORNER]
    norms, error, sampled = _norms(kernel, kind), _error(kernel), _sampled(kernel)
    rows = (
        (
            _place(row, outputs),
            *(
                _entry(float(value), error * float(norms[row] * norms[column]), sampled)
                for column, value in enumerate(part[row])
            ),
        )
        for row in range(part.shape[0])
    )
    head = ("#Input", *(f"#{_place(k, outputs)}" for k in range(part.shape[1])))
    return Table.of(f"{kind.upper()}{_which(part, matrix)}", head, rows)


def _which(part: NDArray[Any], matrix: NDArray[Any]) -> str:
    if part.shape == matrix.shape:
        return ""
    sizes = " x ".join(count(size) for size in matrix.shape)
    return f": the first entries of {sizes}"


def _place(row: int, outputs: int) -> str:
    index, output = divmod(row, outputs)
    return f"{index}, output {output}" if outputs > 1 else str(index)


@view.register
def _(kernel: Kernel) -> View:
    part = Part("kernel", "Kernels", "", kernel_tables(kernel), kernel_figure(kernel))
    said, summary = judge_kernel(kernel), kernel_summary(kernel)
    return View.of(kernel, "Kernels", part, said=said, summary=summary)


@view.register
def _(found: Prediction) -> View:
    columns, more = found.mean.shape[1], found.covariance is not None
    kept = range(min(columns, _CORNER))
    names = [f"#Column {k}" for k in kept] if columns > 1 else ["#Mean"]
    names += ["#Deviation"] * more + ["#Class"] * (columns > 1)
    spreads = found.deviation if more else found.mean[:, 0]

    def row(i: int) -> list[str]:
        own = [Estimate(float(found.mean[i, k]), float(found.mean_error[i, k]), found.method)
               for k in kept]  # fmt: skip
        last = [plain(float(spreads[i]))] * more + [str(found.classes[i])] * (columns > 1)
        return [str(i), *map(settled, own), *last]

    part = found.mean[:_ROWS]
    caption = f"Outputs at new inputs{_which(part, found.mean)}"
    table = Table.of(caption, ("#Input", *names), map(row, range(len(part))), SETTLED)
    how = f"{found.steps} steps of descent with the rate {found.rate}"
    if found.steps is None:
        flow = f"gradient flow until {'the end' if found.time == math.inf else found.time}"
        bayes = found.kind == "nngp" and found.time == math.inf
        how = "Bayesian inference" if bayes else flow
    summary = (
        f"{found.kind.upper()}: {how}, ridge {found.ridge:g}; descent converges below the rate "
        f"{found.largest_rate:.4g}."
    )
    return View.of(found, "Prediction", Part("prediction", "Prediction", "", (table,)),
                   summary=summary)  # fmt: skip
