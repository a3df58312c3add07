"""Stages of a network over positions as the loops of ``planes_loops`` read them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tpcalc.arrays import Array, Index
from tpcalc.engine import planes_bends as bends
from tpcalc.engine import planes_loops as loops
from tpcalc.engine.chains_duals import CLOSED
from tpcalc.engine.chains_tables import EPS, NUMBERS, ROUNDINGS
from tpcalc.engine.planes_stages import INPUTS, Source, Stage, labels_of
from tpcalc.engine.registers import LANES


class PlaneProgram:
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
            not own and stage.times is None and all(self.scaled[one.stage] for one in stage.sources)
            for stage, own in kinds
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
        for s, stage in enumerate(self.stages):
            # near 1 a half versine has lost the digits of opposite vectors, which corners need
            first = all(one.stage == INPUTS for one in stage.sources)
            apart = all(self.stages[one.stage].turns for one in stage.sources)
            found[s] &= not stage.turns or first or apart
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
        return [kind, *flags, *where, 0, 0, bent, first, 0, self.fresh[s], self.wide[s], -1]

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
        family, a, b, own_shape = stage.shape
        strength = a * a + b * b if family == "abrelu" else a * a
        own = [source.rate or 0.0 for source in stage.sources]
        turn = (a - b) * (a + b) / strength
        shape = [2 / math.pi * a * a / strength, turn, b * b / strength, math.sqrt(strength)]
        lift = stage.lift if stage.lifted is None else 0.0
        rates = self.rates[s] + lift, own[0] if own else 0.0
        norm = -1.0 if stage.norm is None else stage.norm
        size = 1.0 if family == "abrelu" else strength  # of a|z| + bz values have it
        last = norm, EPS * ROUNDINGS, stage.tilt, *(stage.times or (1.0, 1.0)), 0.0, stage.lift
        return [*shape, *rates, 0.0, *own_shape, 0.0, size, 0.0, *last, 0.0, 0.0, 0.0]

    def rooms(self) -> tuple[Array, ...]:
        """What a thread works in: planes, rows that taps read, and rows of functions."""
        taps = (self.rows[:, bends.END] - self.rows[:, bends.BEGIN]).max()
        pitch, sizes = self.rows[:, bends.PITCH].max(), self.rows[:, bends.SIZE]
        widest = max(pitch, sizes.max(), NUMBERS)
        return np.zeros(self.room), np.zeros((8 * taps + 1, pitch)), np.zeros((bends.SPARE, widest))

    def numbers_kept(self, shape: tuple[int, ...], threads: int) -> int:
        """How many numbers are held beside the results."""
        each = (stage.size * (self._taps(stage) + bends.LOOSE) for stage in self.stages)
        return shape[0] * (2 * shape[1] * shape[2] + 2 * sum(each)) + threads * self.room

    def numbers(self, inputs: Array) -> tuple[Index, tuple[Any, ...]]:
        """Stages, and numbers of single inputs (N, positions, coordinates)."""
        labels = labels_of(self.stages, inputs) if self.measured else []
        squares = [self._turned((inputs * inputs).sum(axis=2))]
        if not self.held[INPUTS]:
            lengths = np.sqrt((inputs * inputs).sum(axis=2))[..., None]
            inputs = inputs / np.where(lengths > 0, lengths, 1.0)
        columns = inputs.transpose(1, 2, 0) if self.over else inputs.transpose(0, 2, 1)
        rows, none = self.rows.copy(), np.zeros(0)
        taps = np.zeros(len(inputs) * sum(map(self._multiplied, self.stages)) + LANES)
        sizes, marked, top = [none], [np.zeros(0, dtype=np.int64)], 0
        for s, stage in enumerate(self.stages):
            rows[s, bends.SIZES], rows[s, bends.TABLE] = sum(map(len, sizes)), top
            shape, count = (len(inputs), stage.size), len(inputs) * stage.size
            label = np.zeros(0, dtype=np.int64)
            if s == INPUTS:
                sizes.append(np.sqrt(squares[0]).ravel())
            elif stage.mean is not None:
                squares.append(np.ones((1, 1)))
                sizes.append(np.zeros((bends.LOOSE + 1) * count))
            else:
                bottom, top = top, top + len(inputs) * self._multiplied(stage)
                table = taps[bottom:top].reshape(-1, *(shape[::-1] if self.over else shape))
                after, root = self._lengths(squares, s, table)
                numbers = [after] if self.scaled[s] else [root] * (bends.LOOSE + 1)
                numbers[0 if self.scaled[s] else bends.LENGTH] = after
                sizes.append(np.array(numbers).ravel())
                squares.append(after**2)
                label = self._turned(labels[s]).ravel() if self.measured else label
            more = len(sizes[-1]) - len(label) if self.measured else 0
            marked += [label, np.zeros(more, dtype=np.int64)]
        tables = inputs, np.ascontiguousarray(columns), taps, np.concatenate(sizes)
        return rows, (*tables, np.concatenate(marked), none, np.zeros(0, dtype=np.int64))

    def _lengths(self, squares: list[Array], s: int, table: Array) -> tuple[Array, Array]:
        """Lengths after a stage, and of its sums; what its taps multiply is written."""
        stage = self.stages[s]
        self._multiply(squares, s, table)
        square = np.einsum("kab,kab->ab", table, table)
        root = np.sqrt(square)
        table *= 0.5 / np.where(root > 0, root, 1.0) if self.scaled[s] else 0.5 * stage.dilation
        if stage.norm is not None:
            return _ratio(root, square + stage.norm), root
        return root * self.forms[s, bends.STRENGTH], root

    def _turned(self, numbers: Any) -> Any:
        """Numbers (N, positions), with inputs or positions last."""
        return numbers.T if self.over else numbers

    def _multiply(self, squares: list[Array], s: int, found: Array) -> None:
        """What taps and biases multiply, inputs or positions last: lengths; 1 of planes of K."""
        stage, row = self.stages[s], 0
        for source in stage.sources:
            roots = np.sqrt(squares[source.stage]) if self.scaled[s] else np.ones((1, 1))
            for places, factors in zip(source.places.T, source.factors.T, strict=True):
                at = np.maximum(places, 0) if self.scaled[s] else np.zeros(1, dtype=np.int64)
                read = roots[at] if self.over else roots[:, at]
                np.multiply(read, factors[:, None] if self.over else factors, out=found[row])
                row += 1
        for factors, _ in stage.biases:
            found[row] = factors[:, None] if self.over else factors
            row += 1

    @staticmethod
    def _taps(stage: Stage) -> int:
        return len(stage.biases) + sum(len(one.places.T) for one in stage.sources)

    def _multiplied(self, stage: Stage) -> int:
        """How many numbers of an input its taps multiply."""
        return 0 if stage.mean is not None else self._taps(stage) * stage.size

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
            largest[s] += self.rates[s] + stage.lift + sum(rate for _, rate in stage.biases)
            if self.scaled[s]:  # sums of what is orthogonal
                found.append(self._size(0, shape, rows[s], sizes))
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
        """A number of inputs (N, positions) at a stage; that with versines has lengths alone."""
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


def _ratio(size: Array, square: Array) -> Array:
    return size / np.sqrt(np.where(square > 0, square, 1.0))
