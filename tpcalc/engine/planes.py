"""NNGP and tangent kernels of networks over positions, by planes of pairs of positions.

Backward passes are taken with new weights (gradient independence): whoever asks knows that this is
right. The answer does not depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np

from tpcalc.arrays import Array, Index
from tpcalc.doors.budget import spend
from tpcalc.doors.machine import available_cores
from tpcalc.engine import planes_bends as bends
from tpcalc.engine import planes_loops as loops
from tpcalc.engine.chains_series import NotSettled, Smooth, padded
from tpcalc.engine.chains_tables import NUMBERS
from tpcalc.engine.crew import carry_out
from tpcalc.engine.planes_program import PlaneProgram
from tpcalc.engine.planes_stages import Stage
from tpcalc.engine.planes_tables import Tables, tables_of
from tpcalc.errors import EvaluationError
from tpcalc.progress import Progress

CACHE = 2**16  # numbers of a plane that stay in cache
WORTH_THREADS = 2**17  # numbers of planes
MOST = 16  # inputs of a row, at the least
JOBS = 8  # for each thread
LITTLE = 8.0  # times the errors of inputs that are not computed anew


@dataclass(frozen=True, eq=False)
class PlaneKernels:
    """Kernels of a network over positions."""

    nngp: Array
    ntk: Array
    nngp_error: float  # of entries in units of sqrt(K(x, x) K(y, y)), K either kernel
    ntk_error: float


_program = lru_cache(maxsize=16)(PlaneProgram)


class _Run:
    """Planes of pairs of inputs, on several threads."""

    def __init__(self, program: PlaneProgram, every: Array, shift: int, threads: int) -> None:
        self.program, self.shift, self.threads = program, shift, threads
        rows, self.tables = program.numbers(every)
        self.given: tuple[Any, ...] = rows, program.forms.copy(), *program.arrays
        self.rooms: list[tuple[Array, ...]] = []

    def tabulate(self, alone: Index) -> None:
        """Make the tables of functions that have no closed dual, one stage after another."""
        none = np.zeros((0, 0)), np.zeros((0, 0)), np.zeros((2, 0, 0))
        whole, (rows, forms, *rest) = self.given, self.given
        sizes, terms, begins = self.tables[3], [np.zeros(0)], [np.zeros(0, dtype=np.int64)]
        for s, stage in enumerate(self.program.stages):
            bend = stage.bend if isinstance(stage.bend, Smooth) else None
            if bend is None and stage.lifted is None:
                continue
            self.given, known = (rows[: s + 1], forms, *rest), rows[s, bends.BENT]
            rows[s, bends.BENT] = bends.PENDING
            self(alone, True, none, lambda fraction: None)
            rows[s, bends.BENT] = known
            count = len(self.tables[0]) * stage.size
            numbers = sizes[rows[s, bends.SIZES] :][: bends.LOOSE * count].reshape(-1, count)
            q = numbers[bends.ROOT] ** 2
            for function in filter(None, (bend, stage.lifted)):
                try:
                    found = tables_of(function, q)
                except NotSettled as why:
                    number = sum(one.bend is not None for one in self.program.stages[: s + 1])
                    raise NotSettled(f"the function of layer {number}: {why}") from None
                place = sum(map(len, begins))
                if function is bend:
                    numbers[:NUMBERS] = found.numbers
                    rows[s, bends.BENT], rows[s, bends.TABLES] = found.bend, place
                    forms[s, bends.KAPPA], forms[s, bends.ROUNDS] = found.steep, found.rounds
                else:
                    self._lifted(s, found, q, place)
                more = found.flat(sum(map(len, terms)), place)
                begins, terms = [*begins, more[0]], [*terms, more[1]]
            self.tables = *self.tables[:5], padded(np.concatenate(terms)), np.concatenate(begins)
        self.given = whole

    def _lifted(self, s: int, found: Tables, q: Array, place: int) -> None:
        """What loops know of what parameters add to tangent kernels."""
        rows, forms = self.given[:2]
        if (found.bend == bends.KINKED) != (rows[s, bends.BENT] == bends.KINKED):
            raise NotSettled(
                "trained parameters in front of a function that has no table like theirs"
            )
        n0, n1, n2 = found.numbers[[3, 5, 7]]
        rows[s, bends.LIFTED] = place
        wrong = (n1**2).max(), (n0 * n2 * q).max(), found.rounds * (n0**2).max()
        forms[s, bends.LIFT + 1 : bends.LIFT + 4] = wrong

    def loosened(self, before: Array) -> bool:
        """Let numbers of inputs have what errors of K are more than before, if that is little."""
        rows, forms, count = self.given[0], self.given[1], len(self.tables[0])
        more = forms[:, bends.OFF] / np.where(before > 0, before, 1.0)
        most = float(more.max(initial=1.0, where=before > 0))  # errors are linear in these
        for s, stage in enumerate(self.program.stages):
            if stage.bend is not None and not self.program.scaled[s] and most <= LITTLE:
                own = self.tables[3][rows[s, bends.SIZES] :].reshape(-1)
                numbers = own[: (bends.LOOSE + 1) * count * stage.size].reshape(bends.LOOSE + 1, -1)
                numbers[[4, 6, bends.LOOSE]] *= most
        return most <= LITTLE

    def check_zeros(self) -> None:
        """A slope at 0 counts where tangent kernels of what is 0 do not vanish."""
        rows, count = self.given[0], len(self.tables[0])
        for s, stage in enumerate(self.program.stages):
            start, size = rows[s, bends.SIZES], count * stage.size
            place = 0 if self.program.scaled[s] else bends.ROOT
            roots = self.tables[3][start + place * size :][:size]
            at_zero = stage.bend is not None and stage.shape[0] in ("abrelu", "smooth")
            if at_zero and not (roots > 0).all():
                raise NotSettled("trained parameters in front of a function of what is 0")

    def __call__(
        self, pairs: Index, own: bool, to: tuple[Array, ...], report: Callable[[float], None]
    ) -> None:
        """Fill both kernels and their errors."""
        jobs = np.array_split(pairs, min(len(pairs), JOBS * self.threads))

        def run(some: Index) -> None:
            try:
                room = self.rooms.pop()
            except IndexError:
                room = self.program.rooms()
            over, shift = self.program.over, self.shift
            loops.run_planes(self.given, self.tables, over, own, some, shift, room, *to)
            self.rooms.append(room)

        carry_out([partial(run, some) for some in jobs], min(self.threads, len(jobs)), report)


def plane_kernels(
    inputs: Array,
    others: Array | None,
    stages: tuple[Stage, ...],
    *,
    threads: int | None = None,
    progress: Progress | None = None,
) -> PlaneKernels:
    """NNGP and tangent kernels of inputs (N, positions, coordinates), scaled as the first map is.

    Rows and columns are those of inputs with all positions of the last stage.

    Source:
        Novak et al., Bayesian deep convolutional networks with many channels are Gaussian processes
        (2019), for the recursion; Arora et al., On exact computation with an infinitely wide
        neural net (2019), for the tangent kernel.
    """
    count, other = len(inputs), inputs if others is None else others
    every = inputs if others is None else np.concatenate([inputs, others])
    outputs = stages[-1].size
    over = outputs == 1 and all(stage.mean is None for stage in stages)
    largest = max(stage.size for stage in stages)
    width = min(len(other), max(MOST, CACHE // largest)) if over else 1
    shift = 0 if others is None else count
    pairs = _pairs(count, len(other), shift, width, others is None)
    work = sum(stage.size ** (1 if over else 2) for stage in stages) * width * len(pairs)
    if threads is None:
        threads = available_cores() if work > WORTH_THREADS else 1
    program = _program(stages, over, width)
    spend(
        f"a kernel of shape {(count, len(other))} over {largest} positions",
        memory=32 * count * len(other) * outputs**2  # kernels and their errors
        + 8 * program.numbers_kept(every.shape, threads),
        hint="Use fewer inputs, or threads=1.",
    )
    run = _Run(program, every, shift, threads)

    def report(fraction: float) -> None:
        if progress is not None:
            progress(fraction, f"kernels of {count} x {len(other)} inputs, {len(stages)} stages")

    with np.errstate(all="ignore"):
        return _filled(run, every, pairs, (count * outputs, len(other) * outputs), report)


def _filled(
    run: _Run, every: Array, pairs: Index, shape: tuple[int, int], report: Callable[[float], None]
) -> PlaneKernels:
    """The kernels, after those of inputs with themselves where other inputs need them."""
    program, same = run.program, not run.shift
    outputs = program.stages[-1].size
    nngp, ntk, wrong = np.zeros(shape), np.zeros(shape), np.zeros((2, *shape))
    own = np.zeros((2, len(every) * outputs, 1))
    settle = partial(program.settle, every, run.given[0], run.given[1], run.tables[3])
    rounding, spread = settle(known=False)
    alone = np.array([(i, i, 1) for i in range(len(every))], dtype=np.int64)
    run.tabulate(alone)
    # errors of variances depend on lengths where these are not those of sums of orthogonal vectors
    for last in (False, True):
        if program.measured or not same:
            run(alone, True, (*own, np.zeros_like(own)), lambda fraction: None)
        before = run.given[1][:, bends.OFF].copy()
        rounding, spread = settle(known=True)
        if last or program.over or run.loosened(before):
            break
    if any(stage.tilt for stage in program.stages):
        run.check_zeros()
    run(pairs, False, (nngp, ntk, wrong), report)
    for kernel in (nngp, ntk):
        if not np.isfinite(kernel).all():
            raise EvaluationError(
                f"the kernels of {len(program.stages)} stages leave the range of float64.",
                where="plane_kernels",
                hint="Use a smaller weight variance or fewer layers.",
            )
    errors = []
    for place, kernel in enumerate((nngp, ntk)):
        if same:
            lower = np.tril_indices(len(kernel), -1)
            kernel.T[lower] = kernel[lower]
            own[place, :, 0] = kernel.diagonal()
        diagonal = own[place, :, 0]
        ratio = np.where(diagonal > 0, spread**2 / diagonal, 0.0)
        over = np.where(diagonal > 0, 1 / np.sqrt(diagonal), 0.0)
        wrong[place] *= over[: shape[0], None]
        wrong[place] *= over[run.shift * outputs :]
        followed = float(wrong[place].max(initial=0.0))
        errors.append(followed + 2 * rounding[-1] * float(ratio.max(initial=0.0)))
    return PlaneKernels(nngp, ntk, *errors)


def _pairs(rows: int, columns: int, shift: int, width: int, same: bool) -> Index:
    """The pairs of inputs, or of one with stretches of others: their numbers, and how many."""
    found = [
        (i, shift + j, min(width, (i + 1 if same else columns) - j))
        for i in range(rows)
        for j in range(0, i + 1 if same else columns, width)
    ]
    return np.array(found, dtype=np.int64)
