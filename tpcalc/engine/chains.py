"""NNGP and tangent kernels of chains of fully connected layers, fused over the layers.

A chain is a linear map of the input, then ``depth`` times an activation and a dense layer, the last
one the readout; in the NTK parameterization, biases trained. With the residual multiplier alpha
every layer adds alpha (W phi(h) + b) to h instead, and the readout is linear in the last h.

The answer does not depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from tpcalc.arrays import Array, Index
from tpcalc.doors.budget import spend
from tpcalc.doors.machine import available_cores
from tpcalc.engine.chains_tables import (
    EPS,
    NUMBERS,
    Table,
    biased_table,
    erf_table,
    forms_of,
    jump_table,
    pair_of,
    plain_table,
)
from tpcalc.engine.chains_tables import Chain as Chain
from tpcalc.engine.chains_tables import Family as Family
from tpcalc.engine.chains_tables import Gram as Gram
from tpcalc.engine.crew import carry_out
from tpcalc.errors import EvaluationError
from tpcalc.progress import Progress
from tpcalc.tasks.alone import alone

if TYPE_CHECKING:
    from tpcalc.engine.chains_series import Smooth
    from tpcalc.engine.chains_tiles import Pair

Run = Callable[..., None]
KINDS = ("nngp", "ntk")
LOST = 2e-13  # an error that another loop may do better than
HALF = 1e-8  # what near inputs may lose, of which there may be none
JOB = 2**20  # work of one job, entries times layers: some milliseconds
COORDINATES = 32  # of the inputs that cost as much as a layer
WORTH_THREADS = 2**17  # entries times layers


@dataclass(frozen=True, eq=False)
class ChainKernels:
    """Kernels of a chain, and how far they may be off."""

    nngp: Array | None  # shape (N, M); None if not asked for
    ntk: Array | None  # shape (N, M); None if not asked for
    # error of entries in units of sqrt(K(x, x) K(y, y)), K either kernel: on the diagonal, and for
    # pairs of inputs with |correlation| below 0.99
    relative_error: float
    near_error: float  # the same for the other pairs: nearly parallel or antiparallel inputs


@dataclass(frozen=True)
class _Closed:
    """Arguments of the loop for closed duals, which follows errors on its way."""

    row: int  # of ``chains_duals``
    shape: Array  # numbers of it
    pair: Pair
    factors: tuple[Array, Array]
    tables: tuple[Array, Array]  # numbers of single inputs, layer by layer
    ends: tuple[Array, Array]  # and before the first and after the last
    first: Array  # weight, bias and relative rounding of the map of the inputs
    forms: Array
    readout: float
    worst: Array  # the largest errors of each tile: of K and w, away from coincidence and near it
    finite: bool  # whether kernels stay within float64

    def run(self, tiles: Index, nngp: Array, ntk: Array) -> None:
        """Fill tiles of the results."""
        from tpcalc.engine.chains_layers import run_closed

        run_closed(
            self.row, self.shape, self.pair, self.factors, self.tables, self.ends, self.first,
            self.forms, self.readout, (tiles, nngp, ntk), self.worst,
        )  # fmt: skip


def chain_kernels(
    gram: Gram,
    chain: Chain,
    *,
    kinds: Collection[str] = KINDS,
    threads: int | None = None,
    progress: Progress | None = None,
    smooth: Smooth | None = None,
    rooms: Mapping[str, Array] | None = None,
) -> ChainKernels:
    """NNGP and tangent kernels (``kinds``) of a chain; ``smooth``: its activation.

    Where ``rooms`` holds an array of a kind, it is written and returned.

    Source:
        Cho and Saul (2009), arcs of order 0 and 1; Williams (1997), erf; Jacot, Gabriel and Hongler
        (2018), Theorem 1, for the recursion of the tangent kernel.

    Example:
        >>> relu = Chain("abrelu", 0.5, 0.5, 1, 2.0, 0.0, None, 2.0, 0.0)
        >>> found = chain_kernels(Gram(np.eye(2)), relu)
        >>> found.ntk.round(12).tolist()
        [[2.0, 0.318309886184], [0.318309886184, 2.0]]
    """
    shape = len(gram.inputs), len(gram.inputs if gram.others is None else gram.others)
    given = rooms or {}
    _check_memory(gram, shape, len(set(kinds) - given.keys()))
    sizes = {kind: shape if kind in kinds else (0, 0) for kind in KINDS}
    out = {k: given[k] if k in given else np.empty(size) for k, size in sizes.items()}
    error, near = 0.0, 0.0
    if shape[0] and shape[1]:
        run = partial(_run, chain.depth, gram, threads, progress)
        error, near = _filled(gram, chain, smooth, out, run)
    return ChainKernels(
        nngp=out["nngp"] if "nngp" in kinds else None,
        ntk=out["ntk"] if "ntk" in kinds else None,
        relative_error=error,
        near_error=near,
    )


def _filled(
    gram: Gram, chain: Chain, smooth: Smooth | None, out: dict[str, Array], run: Run
) -> tuple[float, float]:
    """Fill the kernels; the errors away from coincidence and near it."""
    if smooth is not None:
        with alone(), np.errstate(all="ignore"):  # digits of products depend on their threads
            return _largest(_by_layers(gram, chain, smooth, out, run), out)
    table = _table(gram, chain)
    run(partial(_fill, table, out))
    if isinstance(table, Table):
        return table.stated
    found = _largest(table.worst, out)
    away, near = table.worst.reshape(-1, 2).max(axis=0)  # the same loop whatever is asked for
    if chain.family == "erf" and max(away, near) > LOST:
        # distances keep digits where covariances of near inputs lose them
        other = erf_table(gram, chain)
        if other.stated[0] < away and other.stated[1] < max(near, HALF):
            run(partial(_fill, other, out))
            return other.stated
    return found


def _by_layers(gram: Gram, chain: Chain, smooth: Smooth, out: dict[str, Array], run: Run) -> Array:
    """Of any function; one whose series is too long, or that has a kink nobody knows, by angles."""
    from tpcalc.engine import chains_angles, chains_series

    if not smooth.kinked:
        with suppress(chains_series.NotSettled):
            return chains_series.run_layers(gram, chain, smooth, out, run)
    return chains_angles.run_layers(gram, chain, smooth, out, run)


def _fill(table: Table | _Closed, out: dict[str, Array], tiles: Index) -> None:
    table.run(tiles, out["nngp"], out["ntk"])


def _largest(worst: Array, out: dict[str, Array]) -> tuple[float, float]:
    """Of the kernels that are asked for."""
    asked = [place for place, kind in enumerate(KINDS) if out[kind].size]
    away, near = worst.reshape(-1, 2, 2)[:, asked].max(axis=(0, 1))
    return float(away), float(near)


def _check_memory(gram: Gram, shape: tuple[int, int], kinds: int) -> None:
    other = gram.inputs if gram.others is None else gram.others
    spend(
        f"a kernel of shape {shape}",
        memory=8 * kinds * shape[0] * shape[1] + 2 * other.nbytes,
        hint="Use fewer inputs, or ask for one kind at a time.",
    )


def _table(gram: Gram, chain: Chain) -> Table | _Closed:
    """What to run."""
    way: Callable[[Gram, Chain], Table | _Closed] = _closed_table
    if chain.family == "abrelu":
        way = biased_table if chain.bias_variance or chain.first_bias else plain_table
    elif chain.family == "jump":
        way = jump_table
    with np.errstate(all="ignore"):  # overflow is found, and said, at the end
        table = way(gram, chain)
    if not table.finite:
        raise _overflow(gram, chain, way)
    return table


def _closed_table(gram: Gram, chain: Chain) -> _Closed:
    """Of a f(b z): K is counted in units of 1 / b^2, so that the activation is f(z)."""
    from tpcalc.engine.chains_duals import CLOSED
    from tpcalc.engine.chains_layers import lengths
    from tpcalc.engine.chains_tiles import COLUMNS, ROWS, whole

    pair, unit, row = pair_of(gram), chain.b**2, CLOSED.index(chain.family)
    shape = np.array(chain.shape)
    forms = forms_of(chain, unit)
    rounding = EPS * (4 + pair[0].shape[1] / 8)  # of inner products, which are summed by eights
    first = np.array([unit * gram.factor * chain.first_weight, unit * chain.first_bias, rounding])
    tables, ends, (x, y), finite = [], [], (len(pair[0]), whole(len(pair[1]))), True
    for squares in (pair[4], pair[5][:y]) if gram.others is not None else (pair[5][:y],):
        table = np.empty((NUMBERS * chain.depth, squares.size))
        end = np.empty((5, squares.size))
        q = first[0] * squares + first[1]
        finite &= lengths(row, shape, q, rounding, forms, table, end)
        if chain.residual is not None:
            end[1] += end[0]
            end[3] += end[2]
        tables.append(table)
        ends.append(end)
    scale = 1.0 if chain.residual is None else 1 / unit
    return _Closed(
        row,
        shape,
        pair,
        (np.full(x, scale), np.ones(y)),
        (tables[0], tables[-1]),
        (ends[0], ends[-1]),
        first,
        forms,
        0.0 if chain.residual is None else 1.0,
        np.zeros((-(-x // ROWS), -(-y // COLUMNS), 4)),
        finite,
    )


def _overflow(
    gram: Gram, chain: Chain, way: Callable[[Gram, Chain], Table | _Closed]
) -> EvaluationError:
    """What is said of kernels that are too large: the first layer at which the largest one is."""
    every = gram.inputs if gram.others is None else np.concatenate([gram.inputs, gram.others])
    squares, count = gram.factor * (every * every).sum(axis=1), len(gram.inputs)
    row, low, high = int(squares.argmax()), 0, chain.depth
    one = Gram(every[row : row + 1], None, gram.factor)
    with np.errstate(all="ignore"):
        while high - low > 1:
            middle = (low + high) // 2
            fine = way(one, replace(chain, depth=middle)).finite
            low, high = (middle, high) if fine else (low, middle)
    size = float(squares[row])
    if low:
        ntk = chain_kernels(one, replace(chain, depth=low), kinds=("ntk",), threads=1).ntk
        size = size if ntk is None else float(ntk[0, 0])
    name = f"row {row} of X" if row < count else f"row {row - count} of X2"
    return EvaluationError(
        f"the kernels leave the range of float64 at layer {high} of {chain.depth}: that of {name}, "
        f"the largest input, is {size:.1e} before it.",
        hint="Use a smaller weight variance, fewer layers or smaller inputs.",
    )


def _tiles(shape: tuple[int, int], same: bool) -> Index:
    """First row and column of every tile that is computed, (tiles, 2)."""
    from tpcalc.engine.chains_tiles import COLUMNS, ROWS

    places = [
        (i, j)
        for i in range(0, shape[0], ROWS)
        for j in range(0, shape[1], COLUMNS)
        if not same or j + COLUMNS > i
    ]
    return np.array(places, dtype=np.int64)


def _run(
    depth: int,
    gram: Gram,
    threads: int | None,
    progress: Progress | None,
    work: Callable[[Index], None],
    done: tuple[int, int] = (0, 1),
) -> None:
    """Work on all tiles, in jobs that threads take one after another; stopped between two jobs."""
    from tpcalc.engine.chains_tiles import COLUMNS, ROWS

    same = gram.others is None
    shape = len(gram.inputs), len(gram.inputs if gram.others is None else gram.others)
    tiles = _tiles(shape, same)
    if threads is None:
        threads = available_cores() if len(tiles) * ROWS * COLUMNS * depth > WORTH_THREADS else 1
    cost = depth // done[1] + gram.inputs.shape[1] // COORDINATES
    size = max(1, JOB // (ROWS * COLUMNS * max(cost, 1)))
    size = min(size, -(-len(tiles) // (4 * threads)))
    jobs = [tiles[start : start + size] for start in range(0, len(tiles), size)]
    text = f"kernels of {shape[0]} x {shape[1]} inputs, {depth} layers"

    def report(fraction: float) -> None:
        if progress is not None:
            progress((done[0] + fraction) / done[1], text)

    carry_out([partial(work, job) for job in jobs], min(threads, len(jobs)), report)
