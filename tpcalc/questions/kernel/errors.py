"""How far kernel entries may be off: errors followed through all layers for a choice of pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from tpcalc.arrays import Array
from tpcalc.evaluate.closure.gaussians import Correction
from tpcalc.integrals.bounded import Bounded
from tpcalc.integrals.demand import Unknown
from tpcalc.integrals.numeric import Numeric
from tpcalc.questions.kernel.entries import Entries, Evaluated, Found, Inputs
from tpcalc.questions.kernel.network import Network
from tpcalc.questions.kernel.tiles import aligned, diagonal
from tpcalc.results import Method

COINCIDENT = 0.99  # correlation of inputs above which they nearly coincide
PROBES = 16  # pairs of each kind
FOLLOWED = (
    "errors were followed through the layers for {} pairs of inputs, those of the largest and "
    "smallest correlations and sizes, and for the diagonal"
)
ALONE = (
    "errors of covariances could not be followed through the layers: the error is that of single "
    "integrals, for {} pairs of inputs and the diagonal"
)
MOST = 1024  # inputs that pairs are chosen from, besides the largest and smallest


def checked(task: Network, found: Found, methods: tuple[Method, ...]) -> Found:
    """A kernel with errors followed for pairs of extreme correlations and sizes, and alone."""
    left, right, numeric = task.left, task.right or task.left, Numeric(methods)
    rows, columns, correlation = _pairs(left, right, same=task.right is None)
    gram = aligned(left.at(rows), right.at(columns))
    pair, followed = _followed(task.pair, gram, task.kinds, numeric)
    ends = left.at(rows), right.at(columns)
    one, other = (diagonal(task, inputs, Numeric(follow=False)) for inputs in ends)
    outputs, errors = range(task.pair.tangent.outputs), np.zeros(len(rows))
    for kind, k, m in product(task.kinds, outputs, outputs):
        scale = np.sqrt(np.abs(one[kind, k, k].value * other[kind, m, m].value))
        own = found.matrices[kind][rows, k, columns, m]
        errors = np.fmax(errors, _relative(pair.entry(kind, 0, k, 1, m), own, scale))
    near = correlation > COINCIDENT
    worst, coincident = (float(np.max(errors[where], initial=0.0)) for where in (~near, near))
    note = ""
    if "ntk" in task.kinds and pair.closure.found:
        field = Numeric(methods, follow=False)
        _, note = dependence(pair, task.pair.at(gram, field, corrections=False), 0, 1)
    told = (FOLLOWED if followed else ALONE).format(len(rows))
    return replace(
        found,
        error=max(worst, _diagonal_error(task, found, numeric) if task.right is None else 0.0),
        coincident=coincident if near.any() else None,
        independent=not note if "ntk" in task.kinds else None,
        notes=(told, note) if note else (told,),
        followed=followed,
    )


def _relative(answer: Bounded, own: Array, scale: Array) -> Array:
    """How far entries may be from what they are, in units of a scale."""
    found: Array = (np.abs(answer.value - own) + answer.error) / np.where(scale > 0, scale, 1.0)
    return found


def _followed(
    entries: Entries, gram: Sequence[Sequence[Bounded]], kinds: Sequence[str], numeric: Numeric
) -> tuple[Evaluated, bool]:
    """The entries with their errors, and whether those of covariances are in them.

    Where an error leaves an integral without a value, those of single integrals are all there is.
    """
    evaluated = entries.at(gram, numeric)
    last = entries.tangent.copies - 1
    try:
        for kind in kinds:
            evaluated.entry(kind, 0, 0, last, 0)
    except Unknown:
        return entries.at(gram, Numeric(numeric.methods, follow=False)), False
    return evaluated, True


def _diagonal_error(task: Network, found: Found, numeric: Numeric) -> float:
    places = _some(task.left)
    inputs = task.left.at(places)
    rounding = float(np.finfo(float).eps * np.sqrt(inputs.rows.shape[2]))
    evaluated, _ = _followed(task.single, inputs.gram(rounding), task.kinds, numeric)
    worst = 0.0
    for kind in task.kinds:
        own = found.matrices[kind][places, 0, places, 0]
        errors = _relative(evaluated.entry(kind, 0, 0, 0, 0), own, own)
        worst = max(worst, float(np.max(errors, initial=0.0)))
    return worst


def _some(inputs: Inputs) -> Any:
    """The first inputs, and the largest and smallest of all: more, where inputs are added."""
    order = np.argsort(_sizes(inputs), kind="stable")
    first = np.arange(min(MOST, len(order)))
    return np.unique(np.concatenate([first, order[:PROBES], order[-PROBES:]]))


def _sizes(inputs: Inputs) -> Array:
    found: Array = np.linalg.norm(inputs.rows.reshape(len(inputs.rows), -1), axis=1)
    return found


def _pairs(left: Inputs, right: Inputs, *, same: bool) -> tuple[Any, Any, Array]:
    """Pairs of different inputs: the most correlated and opposite, the largest and smallest.

    They are extremes, towards which errors grow, so that those of more inputs are no better.
    """
    rows, columns = _some(left), _some(right)
    sizes = [_sizes(inputs)[places] for inputs, places in ((left, rows), (right, columns))]
    a, b = (
        inputs.rows[places].reshape(len(places), -1) / np.where(size > 0, size, 1.0)[:, None]
        for inputs, places, size in ((left, rows, sizes[0]), (right, columns, sizes[1]))
    )
    correlation = a @ b.T
    if same:
        correlation[rows[:, None] == columns[None, :]] = np.nan
    order = np.argsort(correlation, axis=None, kind="stable")
    order = order[: np.count_nonzero(~np.isnan(correlation))]
    if not len(order):
        correlation = np.ones_like(correlation)
        order = np.arange(correlation.size)
    below = order[correlation.ravel()[order] <= COINCIDENT]
    large = order[np.argsort(np.outer(*sizes).ravel()[order], kind="stable")]
    ends = [order[-PROBES:], below[-PROBES:], order[:PROBES], large[-PROBES:], large[:PROBES]]
    chosen = np.unique(np.concatenate(ends))
    i, j = np.unravel_index(chosen, correlation.shape)
    return rows[i], columns[j], correlation.ravel()[chosen]


def dependence(whole: Evaluated, naive: Evaluated, i: int, j: int) -> tuple[float, str]:
    """What corrections change of tangent kernels at most, with words for it; "" if nothing."""
    with_, without = (one.entry("ntk", i, 0, j, 0) for one in (whole, naive))
    gap = np.abs(with_.value - without.value)
    if not np.any(gap > 8 * with_.error + 1e-12 * np.abs(with_.value)):
        return 0.0, ""
    sides = np.broadcast_arrays(gap, with_.value, without.value)
    place = int(np.argmax(sides[0]))
    worst, *values = (float(np.ravel(side)[place]) for side in sides)
    return worst, _dependence_note(whole.closure.found[0], *values)


def _dependence_note(first: Correction[Any], value: float, naive: float) -> str:
    """Words for a network whose backward pass depends on its forward pass."""
    matrix = f"{first.matrix}^T" if first.transpose else first.matrix
    return (
        f"gradient independence does not hold: {matrix} is applied to a vector that depends on it. "
        "The recursion with fresh weights in the backward pass is wrong here: it gives an entry "
        f"of the NTK as {naive:.6g} instead of {value:.6g}; this kernel has the corrections"
    )
