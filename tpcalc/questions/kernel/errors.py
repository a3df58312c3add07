"""How far kernel entries may be off: errors followed through all layers for a choice of pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tpcalc.arrays import Array
from tpcalc.evaluate.closure.gaussians import Correction
from tpcalc.integrals.bounded import Bounded
from tpcalc.integrals.demand import Unknown
from tpcalc.integrals.numeric import Numeric
from tpcalc.questions.kernel.entries import Entries, Evaluated
from tpcalc.questions.kernel.network import Network
from tpcalc.questions.kernel.tiles import Inputs, aligned
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


@dataclass(frozen=True)
class Checked:
    """What following errors through some pairs says of a kernel."""

    error: float  # the largest error, in units of sqrt(K_ii K_jj)
    # that of different inputs with a correlation above 0.99; None: there are none
    coincident: float | None
    independent: bool  # whether corrections make no difference to the tangent kernel
    notes: tuple[str, ...]  # for the reader


def check_entries(
    task: Network, matrices: dict[str, Array], methods: tuple[Method, ...]
) -> Checked:
    """Follow errors for the pairs of extreme correlations and sizes, and for the diagonal."""
    left = task.left
    right = left if task.right is None else task.right
    rows, columns, correlation = _pairs(left, right, same=task.right is None)
    numeric, kinds = Numeric(methods), task.kinds
    gram = aligned(left.at(rows), right.at(columns))
    pair, followed = _followed(task.pair, gram, kinds, numeric)
    near = correlation > COINCIDENT
    errors: dict[bool, float] = {False: 0.0, True: 0.0}
    for kind in kinds:
        outputs = task.pair.tangent.outputs
        for k in range(outputs):
            for m in range(outputs):
                scale = np.sqrt(
                    np.abs(
                        _own(task, left.at(rows), kind, k) * _own(task, right.at(columns), kind, m)
                    )
                )
                answer = pair.entry(kind, 0, k, 1, m)
                gap = np.abs(answer.value - matrices[kind][rows, k, columns, m])
                relative = (gap + answer.error) / np.where(scale > 0, scale, 1.0)
                relative = np.broadcast_to(relative, correlation.shape)
                for which in (False, True):
                    worst = float(np.max(relative[near == which], initial=0.0))
                    errors[which] = max(errors[which], worst)
    corrections = pair.closure.found
    independent = True
    notes: tuple[str, ...] = ((FOLLOWED if followed else ALONE).format(len(rows)),)
    if "ntk" in kinds and corrections:
        independent, more = _compared(task, gram, pair, numeric)
        notes += more
    diagonal = _diagonal_error(task, matrices, kinds, numeric) if task.right is None else 0.0
    return Checked(
        max(errors[False], diagonal), errors[True] if near.any() else None, independent, notes
    )


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


def _own(task: Network, inputs: Inputs, kind: str, k: int) -> Any:
    """Diagonal entries of a kernel at some inputs."""
    tokens = range(inputs.rows.shape[1])
    squares = inputs.squares
    gram = [[Bounded(squares[:, p, q], 0.0) for q in tokens] for p in tokens]
    evaluated = task.single.at(gram, Numeric(follow=False))
    return evaluated.entry(kind, 0, k, 0, k).value


def _diagonal_error(
    task: Network, matrices: dict[str, Array], kinds: Sequence[str], numeric: Numeric
) -> float:
    places = _some(task.left)
    inputs = task.left.at(places)
    squares, tokens = inputs.squares, range(inputs.rows.shape[1])
    rounding = np.finfo(float).eps * np.sqrt(inputs.rows.shape[2])
    gram = [
        [Bounded(squares[:, p, q], rounding * np.abs(squares[:, p, q])) for q in tokens]
        for p in tokens
    ]
    evaluated, _ = _followed(task.single, gram, task.kinds, numeric)
    worst = 0.0
    for kind in kinds:
        answer = evaluated.entry(kind, 0, 0, 0, 0)
        own = matrices[kind][places, 0, places, 0]
        gap = (np.abs(answer.value - own) + answer.error) / np.where(own > 0, own, 1.0)
        worst = max(worst, float(np.max(gap, initial=0.0)))
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


def _compared(
    task: Network, gram: Sequence[Sequence[Bounded]], right: Evaluated, numeric: Numeric
) -> tuple[bool, tuple[str, ...]]:
    """The tangent kernel with and without corrections."""
    naive = task.pair.at(gram, Numeric(numeric.methods, follow=False), corrections=False)
    with_, without = right.entry("ntk", 0, 0, 1, 0), naive.entry("ntk", 0, 0, 1, 0)
    gap = np.abs(with_.value - without.value)
    if not np.any(gap > 8 * with_.error + 1e-12 * np.abs(with_.value)):
        return True, ()
    place = int(np.argmax(np.broadcast_to(gap, np.shape(with_.value))))
    values = tuple(float(np.ravel(np.asarray(v.value))[place]) for v in (with_, without))
    return False, (dependence_note(right.closure.found, *values),)


def dependence_note(corrections: Sequence[Correction[Any]], value: float, naive: float) -> str:
    """Words for a network whose backward pass depends on its forward pass.

    Example:
        >>> dependence_note([Correction("W", True, 0.5, 3)], 2.0, 1.5)[:34]
        'gradient independence does not hol'
    """
    first = corrections[0]
    matrix = f"{first.matrix}^T" if first.transpose else first.matrix
    return (
        f"gradient independence does not hold: {matrix} is applied to a vector that depends on it. "
        "The recursion with fresh weights in the backward pass is wrong here: it gives an entry "
        f"of the NTK as {naive:.6g} instead of {value:.6g}; this kernel has the corrections"
    )
