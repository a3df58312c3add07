"""What a report says of NNGP and NTK: sentences and tables."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from tpcalc.results import Kernel, Method
from tpcalc.results.kernel import rounded_up
from tpcalc.views.answers.kernel_plot import SPECTRUM_ROWS, has_spectrum, kernel_figure
from tpcalc.views.numbers import Measure, count, counted, measured, plain
from tpcalc.views.tables import Table, numbers, texts
from tpcalc.views.view import Judgement, Part, View, view

if TYPE_CHECKING:
    from numpy.typing import NDArray


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
    head = texts("Statistic") + numbers(*map(str.upper, kernel.kinds))
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
    head = numbers("Input", *(_place(k, outputs) for k in range(part.shape[1])))
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
    return View("Kernels", said, summary, (part,), kernel.notes, kernel.provenance)
