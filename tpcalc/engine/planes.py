"""NNGP and tangent kernels of networks over positions, by planes of pairs of positions.

Backward passes are taken with new weights (gradient independence): whoever asks knows that this is
right. The answer does not depend on the number of threads.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np

from tpcalc.arrays import Array, Index
from tpcalc.doors.budget import spend
from tpcalc.doors.machine import available_cores
from tpcalc.engine import planes_bends as bends
from tpcalc.engine import planes_loops as loops
from tpcalc.engine.chains_duals import CLOSED
from tpcalc.engine.chains_series import NotSettled, Smooth
from tpcalc.engine.chains_tables import EPS, NUMBERS, ROUNDINGS
from tpcalc.engine.crew import carry_out
from tpcalc.engine.planes_stages import INPUTS, Source, Stage
from tpcalc.engine.planes_tables import tables_of
from tpcalc.errors import EvaluationError
from tpcalc.progress import Progress

CACHE = 2**16  # numbers of a plane that stay in cache
WORTH_THREADS = 2**17  # numbers of planes
LANES = 8
TAPS = 2**32  # more than there are
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


class _Program:
    """Stages as loops read them, with planes in the room of a thread."""

    def __init__(self, stages: tuple[Stage, ...], over: bool, width: int) -> None:
        self.stages, self.over, self.width = stages, over, width
        self.readers: list[list[int]] = [[] for _ in stages]
        for s, stage in enumerate(stages):
            for source in stage.sources:
                self.readers[source.stage].append(s)
        self.scaled = self._scaled()
        self.held = [not own or not all(self.scaled[s] for s in own) for own in self.readers]
        kinds = zip(stages, self.scaled, strict=True)
        # sums of what has versines: their errors are products of a number of either input
        self.fresh = [
            not own and all(self.scaled[one.stage] for one in stage.sources) for stage, own in kinds
        ]
        every = [all(self.fresh[s] for s in own) for own in self.readers]
        kept = zip(self.scaled, self.held, every, strict=True)
        self.wide = [not own or (held and not fresh) for own, held, fresh in kept]
        self.rates = self._rates()
        self.planes, self.room = self._placed()
        self.taps: list[list[int]] = []
        self.tap_rates: list[float] = []
        self.places: list[Index] = []
        self.weights: list[Array] = []
        rows = [self._row(s) for s in range(len(stages))]
        self.rows = np.array(rows, dtype=np.int64)
        self.forms = np.array([self._form(s) for s in range(len(stages))])
        taps = np.array(self.taps, dtype=np.int64), np.array(self.tap_rates)
        places = np.concatenate(self.places).astype(np.int64), np.concatenate(self.weights)
        self.arrays: tuple[Any, ...] = *taps, *places

    def _scaled(self) -> list[bool]:
        """Which stages work with versines: those all of whose sources hold them."""
        found = [stage.mean is None and not stage.followed for stage in self.stages]
        found[-1] = False
        while True:
            before = list(found)
            for s, stage in enumerate(self.stages[1:], 1):
                kinds = {source.stage == INPUTS for source in stage.sources}
                rates = {source.rate for source in stage.sources} | {r for _, r in stage.biases}
                mixed = len(kinds) > 1 or (True in kinds and len(rates) > 1)
                found[s] &= all(found[one.stage] for one in stage.sources) and not mixed
            for readers in self.readers:
                if not all(found[one] for one in readers):
                    for one in readers:
                        found[one] = False
            if found == before:
                return found

    def _rates(self) -> list[float]:
        """The rate of the weights that read each stage, whose part of kernels its plane has."""
        found = [0.0] * len(self.stages)
        for s in range(len(self.stages) - 1, 0, -1):
            for source in self.stages[s].sources:
                mean = self.stages[s].mean is not None
                found[source.stage] = found[s] if mean else source.rate or 0.0
        return found

    def _placed(self) -> tuple[list[int], int]:
        """Where the planes of each stage begin, and how much room all of them take."""
        guard = max(self._pitch(s) for s in range(len(self.stages)))
        slots: list[list[int]] = []  # begin, size, and the last stage that reads what is there
        found, top = [], guard
        for s, stage in enumerate(self.stages):
            size = (4 if self.wide[s] else 2) * stage.size * self._pitch(s)
            free = [slot for slot in slots if slot[2] < s and slot[1] >= size]
            if free:
                slot = min(free, key=lambda one: one[1])
            else:
                slot = [top, size, s]
                slots.append(slot)
                top += size
            slot[2] = max(self.readers[s], default=len(self.stages))
            found.append(slot[0])
        return found, top + guard

    def _pitch(self, s: int) -> int:
        """Of the rows of a stage: whole registers."""
        return -(-(self.width if self.over else self.stages[s].size) // LANES) * LANES

    def _row(self, s: int) -> list[int]:
        """A stage and its taps as loops read them."""
        stage, begin = self.stages[s], len(self.taps)
        kind = loops.DATA if s == INPUTS else loops.SUM if stage.mean is None else loops.MEAN
        kind = loops.TIMES if stage.times is not None else kind
        for source in stage.sources:
            if stage.mean is not None:
                ends = sum(map(len, self.places)) + len(stage.mean.indptr)
                self._tap(source, 0, stage.mean.indptr + ends)
                self.places.append(stage.mean.indices)
                self.weights.append(stage.mean.data)
            for places in source.places.T if stage.mean is None else ():
                shifts = (places - np.arange(stage.size))[places >= 0]
                alike = len(shifts) and (shifts == shifts[0]).all()
                self._tap(source, int(shifts[0]) if alike else loops.FAR, places)
        for _, rate in stage.biases:
            self._tap(None, 0, np.full(stage.size, -1), rate)
        first = bool(stage.sources) and all(one.stage == INPUTS for one in stage.sources)
        start, pitch = self.planes[s], self._pitch(s)
        where = [begin, len(self.taps), start, start + stage.size * pitch, pitch]
        flags = [not self.scaled[s], self.held[s], stage.size]
        if s == INPUTS:
            flags[0] = self.held[s]
        bent, family = bends.CORNER if stage.bend is not None else 0, stage.shape[0]
        if family != "abrelu":
            smooth = family == "smooth"
            bent = bends.PENDING if smooth else bends.FIRST_CLOSED + CLOSED.index(family)
        return [kind, *flags, *where, 0, 0, bent, first, 0, self.fresh[s], self.wide[s]]

    def _tap(self, source: Source | None, shift: int, places: Index, rate: float = 0.0) -> None:
        at = sum(map(len, self.places))
        planes = [0, 0, 0, 0]
        if source is not None:
            s = source.stage
            size, pitch = self.stages[s].size, self._pitch(s)
            planes = [self.planes[s], self.planes[s] + size * pitch, pitch, size]
        self.taps.append([*planes, shift, at, source is None])
        self.tap_rates.append(rate)
        self.places.append(places)
        self.weights.append(np.zeros(len(places)))

    def _form(self, s: int) -> list[float]:
        """The numbers of a stage."""
        stage = self.stages[s]
        family, a, b, cosine = stage.shape
        strength = a * a + b * b if family == "abrelu" else a * a
        own = [source.rate or 0.0 for source in stage.sources]
        turn = (a - b) * (a + b) / strength
        shape = [2 / math.pi * a * a / strength, turn, b * b / strength, math.sqrt(strength)]
        rates = self.rates[s] + stage.lift, own[0] if own else 0.0
        norm = -1.0 if stage.norm is None else stage.norm
        size = 1.0 if family == "abrelu" else strength  # of a|z| + bz values have it
        last = norm, EPS * ROUNDINGS, stage.tilt, *(stage.times or (1.0, 1.0)), 0.0
        return [*shape, *rates, 0.0, cosine, 0.0, size, 0.0, *last]

    def numbers_kept(self, shape: tuple[int, ...], threads: int) -> int:
        """How many numbers are held beside the results."""
        each = (stage.size * (self._taps(stage) + bends.LOOSE) for stage in self.stages)
        return shape[0] * (2 * shape[1] * shape[2] + 2 * sum(each)) + threads * self.room

    def numbers(self, inputs: Array) -> tuple[Index, tuple[Any, ...]]:
        """Stages, and numbers of single inputs (N, positions, coordinates)."""
        labels = _labels(self.stages, inputs) if self.measured else []
        squares = [self._turned((inputs * inputs).sum(axis=2))]
        if not self.held[INPUTS]:
            lengths = np.sqrt((inputs * inputs).sum(axis=2))[..., None]
            inputs = inputs / np.where(lengths > 0, lengths, 1.0)
        columns = inputs.transpose(1, 2, 0) if self.over else inputs.transpose(0, 2, 1)
        rows, none = self.rows.copy(), np.zeros(0)
        taps, sizes, marked = [none], [none], [np.zeros(0, dtype=np.int64)]
        for s, stage in enumerate(self.stages):
            rows[s, bends.SIZES] = sum(map(len, sizes))
            if s == INPUTS:
                sizes.append(np.sqrt(squares[0]).ravel())
                marked.append(np.zeros(squares[0].size, dtype=np.int64))
                continue
            if stage.mean is not None:
                squares.append(np.ones((1, 1)))
                sizes.append(np.zeros((bends.LOOSE + 1) * len(inputs) * stage.size))
                marked.append(np.zeros(sizes[-1].size if self.measured else 0, dtype=np.int64))
                continue
            table = self._table(squares, s)
            square = np.einsum("kab,kab->ab", table, table)
            root = np.sqrt(square)
            if self.scaled[s]:
                table *= 0.5 / np.where(root > 0, root, 1.0)
            else:
                table *= 0.5 * stage.dilation
            strength = self.forms[s, bends.STRENGTH]
            rows[s, bends.TABLE] = sum(map(len, taps))
            taps.append(table.ravel())
            after = root * strength if stage.norm is None else _ratio(root, square + stage.norm)
            numbers = [root] * (bends.LOOSE + 1)
            numbers[bends.LENGTH] = after
            sizes.append(np.array(numbers).ravel())
            if self.measured:
                marked.append(np.array([self._turned(labels[s])] * len(numbers)).ravel())
            squares.append(after**2)
        flat = np.concatenate([*taps, np.zeros(LANES)]), np.concatenate(sizes)
        tables = inputs, np.ascontiguousarray(columns), *flat, np.concatenate(marked)
        return rows, (*tables, none, np.zeros(0, dtype=np.int64))

    def _turned(self, numbers: Any) -> Any:
        """Numbers (N, positions), with inputs or positions last."""
        return numbers.T if self.over else numbers

    def _table(self, squares: list[Array], s: int) -> Array:
        """What taps and biases multiply, inputs or positions last: lengths; 1 of planes of K."""
        stage, shape = self.stages[s], (self._turned(squares[0]).shape[0], self.stages[s].size)
        found = np.empty((self._taps(stage), *self._turned(np.empty(shape)).shape))
        row = 0
        for source in stage.sources:
            roots = np.sqrt(squares[source.stage])
            for places, factors in zip(source.places.T, source.factors.T, strict=True):
                read: Any = 1.0
                if self.scaled[s]:
                    read = (
                        roots[np.maximum(places, 0)]
                        if self.over
                        else roots[:, np.maximum(places, 0)]
                    )
                found[row] = read * (factors[:, None] if self.over else factors)
                row += 1
        for factors, _ in stage.biases:
            found[row] = factors[:, None] if self.over else factors
            row += 1
        return found

    @staticmethod
    def _taps(stage: Stage) -> int:
        return len(stage.biases) + sum(len(one.places.T) for one in stage.sources)

    @property
    def measured(self) -> bool:
        """Whether variances at positions need covariances of an input's own positions."""
        pairs = zip(self.stages, self.scaled, strict=True)
        return any(stage.bend is not None and not scaled for stage, scaled in pairs)

    def settle(
        self, inputs: Array, rows: Index, forms: Array, sizes: Array, known: bool
    ) -> tuple[Array, Array]:
        """The rounding of each stage, and how long its vectors are if all were parallel.

        What is known of lengths says how far K may be off before a function.
        """
        found, largest = [np.sqrt((inputs * inputs).sum(axis=2))], [self.rates[INPUTS]]
        unit = EPS * (1 + inputs.shape[2] / 64)
        rounding = np.full(len(self.stages), 8 * unit)
        forms[INPUTS, bends.OFF] = EPS * (4 + inputs.shape[2] / 8)
        forms[INPUTS, bends.BEGUN] = self.rates[INPUTS] * forms[INPUTS, bends.OFF]
        for s, stage in enumerate(self.stages[1:], 1):
            rounding[s] = rounding[s - 1] + unit * (3 + self._taps(stage) / 4)
            shape = len(inputs), stage.size
            largest.append(max((largest[one.stage] for one in stage.sources), default=0.0))
            largest[s] += self.rates[s] + sum(rate for _, rate in stage.biases)
            if self.scaled[s]:  # sums of what is orthogonal
                found.append(self._size(bends.LENGTH, shape, rows[s], sizes))
                forms[s, bends.OFF] = rounding[s]
                forms[s, bends.BEGUN] = s * largest[s] * forms[s, bends.OFF]
                continue
            square = self._parallel(found, s)
            found.append(np.sqrt(square) * forms[s, bends.STRENGTH])
            forms[s, bends.OFF] = rounding[s] * stage.dilation**2
            if stage.bend is not None and known:
                own = self._size(bends.ROOT, shape, rows[s], sizes) ** 2
                ratio = np.where(own > 0, square / np.where(own > 0, own, 1.0), 0.0)
                forms[s, bends.OFF] *= float(ratio.max(initial=1.0))
                found[s] = self._size(bends.LENGTH, shape, rows[s], sizes)
                found[s] = found[s] * math.sqrt(forms[s, bends.STEP + 1])
                if stage.norm is not None:
                    found[s] = found[s] * np.sqrt(ratio)
            if self.fresh[s]:
                forms[s, bends.BEGUN] = s * largest[s] * forms[s, bends.OFF]
            if stage.bend is None:
                self._size(bends.ROOT, shape, rows[s], sizes)[:] = found[s]
        return rounding, found[-1].ravel()

    def _size(self, place: int, shape: tuple[int, int], row: Index, sizes: Array) -> Array:
        """A number of inputs (N, positions) at a stage."""
        start, count = row[bends.SIZES], shape[0] * shape[1]
        own = sizes[start + place * count : start + (place + 1) * count]
        found: Array = self._turned(own.reshape(shape[::-1] if self.over else shape))
        return found

    def _parallel(self, lengths: list[Array], s: int) -> Array:
        """Squared lengths of a stage if all that it averages were parallel."""
        stage, count = self.stages[s], len(lengths[0])
        if stage.times is not None:
            each = (lengths[one.stage][:, one.places[:, 0]] ** 2 for one in stage.sources)
            return np.asarray(stage.times[0] * math.prod(each))
        square: Array = np.zeros((count, stage.size))
        for factors, _ in stage.biases:
            square = square + np.square(factors)
        for source in stage.sources:
            if stage.mean is not None:
                return np.asarray(lengths[source.stage] @ abs(stage.mean).T) ** 2
            read = lengths[source.stage][:, np.maximum(source.places, 0)]
            square = square + ((source.factors * read) ** 2).sum(axis=2)
        return square


_program = lru_cache(maxsize=16)(_Program)


def _ratio(size: Array, square: Array) -> Array:
    return size / np.sqrt(np.where(square > 0, square, 1.0))


def _mixed(numbers: Any) -> Any:
    """Numbers that look random, of 64 bits."""
    found = numbers + np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        found = (found ^ (found >> np.uint64(shift))) * np.uint64(factor)
    return found ^ (found >> np.uint64(31))


def _labels(stages: Sequence[Stage], inputs: Array) -> list[Index]:
    """Numbers of vectors (N, positions), equal where the same is computed of equal inputs."""
    count, size, length = inputs.shape
    _, data = np.unique(inputs.reshape(-1, length), axis=0, return_inverse=True)
    found: list[Any] = [_mixed(data.reshape(count, size).astype(np.uint64))]
    for stage in stages[1:]:
        total = np.zeros((count, stage.size), dtype=np.uint64)
        for source in stage.sources:
            read = found[source.stage]
            if stage.mean is not None:
                entries = stage.mean.tocoo()
                parts = _mixed(read[:, entries.col] ^ _mixed(entries.data.view(np.uint64)))
                np.add.at(total.T, entries.row, parts.T)
                continue
            first = source.stage * TAPS
            taps = _mixed(np.arange(first, first + source.places.shape[1], dtype=np.uint64))
            factors = _mixed(np.ascontiguousarray(source.factors).view(np.uint64) ^ _mixed(taps))
            parts = _mixed(read[:, np.maximum(source.places, 0)] ^ factors)
            total += np.where(source.places >= 0, parts, np.uint64(0)).sum(axis=2, dtype=np.uint64)
        for factors, _ in stage.biases:
            total += _mixed(np.ascontiguousarray(factors).view(np.uint64))
        if stage.times is not None and stage.times[0] != stage.times[1]:  # noise of its own
            total += _mixed(np.arange(total.size, dtype=np.uint64).reshape(total.shape))
        found.append(total)
    return [one.view(np.int64) for one in found]


class _Run:
    """Planes of pairs of inputs, on several threads."""

    def __init__(self, program: _Program, every: Array, shift: int, threads: int) -> None:
        self.program, self.shift, self.threads = program, shift, threads
        rows, self.tables = program.numbers(every)
        self.given: tuple[Any, ...] = rows, program.forms.copy(), *program.arrays
        self.rooms: list[Array] = []

    def tabulate(self, alone: Index) -> None:
        """Make the tables of functions that have no closed dual, one stage after another."""
        none = np.zeros((0, 0)), np.zeros((0, 0)), np.zeros((2, 0, 0))
        whole, (rows, forms, *rest) = self.given, self.given
        sizes, terms, begins = self.tables[3], [np.zeros(0)], [np.zeros(0, dtype=np.int64)]
        for s, stage in enumerate(self.program.stages):
            if not isinstance(stage.bend, Smooth):
                continue
            self.given = rows[: s + 1], forms, *rest
            self(alone, True, none, lambda fraction: None)
            count = len(self.tables[0]) * stage.size
            numbers = sizes[rows[s, bends.SIZES] :][: bends.LOOSE * count].reshape(-1, count)
            try:
                found = tables_of(stage.bend, numbers[bends.ROOT] ** 2)
            except NotSettled as why:
                number = sum(one.bend is not None for one in self.program.stages[: s + 1])
                raise NotSettled(f"the function of layer {number}: {why}") from None
            numbers[:NUMBERS] = found.numbers
            rows[s, bends.BENT], rows[s, bends.TABLES] = found.bend, sum(map(len, begins))
            forms[s, bends.KAPPA], forms[s, bends.ROUNDS] = found.steep, found.rounds
            more = found.flat(sum(map(len, terms)), sum(map(len, begins)))
            begins, terms = [*begins, more[0]], [*terms, more[1]]
            self.tables = *self.tables[:5], np.concatenate(terms), np.concatenate(begins)
        self.given = whole

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
            roots = self.tables[3][start + bends.ROOT * size :][:size]
            if stage.bend is not None and stage.shape[0] in ("abrelu", "smooth"):
                if not (roots > 0).all():
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
                room = np.zeros(self.program.room)
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
        memory=16 * count * len(other) * outputs**2
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
        unit = np.multiply.outer(over[: shape[0]], over[run.shift * outputs :])
        followed = float((wrong[place] * unit).max(initial=0.0))
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
