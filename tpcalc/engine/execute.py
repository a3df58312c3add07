"""Execution of a scheduled script: replicates side by side, one thread, sums in a fixed order.

An instruction is executed for all replicates at once. What one gets is a function of its own
numbers, by the same passes for any number of others beside it: its bits are those it has alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from tpcalc.arrays import Array
from tpcalc.engine import kernels
from tpcalc.engine.directions import FiniteMatrix, LimitMatrix, SampleSpace, Store, materialise
from tpcalc.engine.directions_haar import HaarMatrix
from tpcalc.engine.directions_store import Memory
from tpcalc.engine.draws import Draws
from tpcalc.engine.instructions import (
    Dot,
    Gram,
    Map,
    Matrix,
    Mean,
    Multiply,
    Noise,
    Outer,
    Panel,
    ScalarMap,
    Starts,
    Sum,
)
from tpcalc.engine.kernels_functions import CHUNK, coordinatewise
from tpcalc.engine.needs import array_bytes
from tpcalc.engine.outer_loops import outer_average
from tpcalc.engine.panels import Combinations, Grams, InnerProducts
from tpcalc.engine.registers import Registers, generators, handlers, streams
from tpcalc.engine.schedule import Plan
from tpcalc.engine.setting import Outcome, Setting, explosion
from tpcalc.engine.vectors import NONE, Buffer, Combination, Key, Number, Pool, Rows, Table, Vector
from tpcalc.functions.tape import lower, numpy_space, run

P = TypeVar("P")
LONG = 6  # vectors from which on the places that a sum reads are kept for later runs


class Workspace(Registers):
    """Memory of one thread, allocated once and used for one bundle of replicates after another."""

    batch = 16

    def __init__(self, plan: Plan, setting: Setting, replicates: int = 1) -> None:
        super().__init__(plan, setting, replicates)
        script = plan.script
        block = setting.block([space.ratio for space in script.spaces])
        memory = Memory(replicates * array_bytes(plan, setting))
        self._spaces = {
            space.name: SampleSpace(
                setting.size(space.ratio), setting.ratio(space.ratio), block, replicates, memory
            )
            for space in script.spaces
        }
        self._pools = {name: Pool(space) for name, space in self._spaces.items()}
        self._rows: dict[Key, Rows] = {}
        self._capacity: dict[Key, int] = {}
        for kind, counts in (("stack", plan.stack_rows), ("starts", plan.start_rows)):
            for name, count in counts.items():
                if count:
                    store = Store(
                        self._spaces[name].size, count, np.float64, block, replicates, memory
                    )
                    self._rows[(kind, name, False)] = store
                    self._capacity[(kind, name, False)] = count
        self._tables: dict[Key, Table] = {}
        self._known: dict[tuple[type, object], Any] = {}
        self._scalars: Array = np.zeros((0, replicates))
        self._noise: dict[str, list[NoiseFamily]] = {}
        self._draws: list[Draws] = []
        self._seeds: Sequence[Sequence[int]] = ()
        self._chance: list[np.random.Generator] = []

    def run(
        self, seeds: Sequence[Sequence[int]], tick: Callable[[], None] | None = None
    ) -> list[Outcome]:
        """Run a bundle of replicates."""
        self._begin(seeds)
        script = self.plan.script
        with np.errstate(all="ignore"):
            for index, step in enumerate(script.instructions):
                _HANDLERS[type(step)](self, step)
                self._release(index)
                if tick is not None:
                    tick()
            vectors = [self._lines(register).copy() for register in script.vectors]
        scalars = np.empty((len(seeds), len(script.results)))
        for column, register in enumerate(script.results):
            scalars[:, column] = self._scalars[register]
        self._vectors.clear()
        return self._outcomes(scalars.tolist(), vectors)

    # -- set-up of a bundle ------------------------------------------------------------------

    def _begin(self, seeds: Sequence[Sequence[int]]) -> None:
        script = self.plan.script
        self._vectors.clear()
        self._waiting.clear()
        self._scalars = np.zeros((script.scalars + 1, self.replicates))
        self._scalars[NONE] = 1.0
        self._noise, self._chance, self._seeds = {}, [], seeds
        self._draws = streams(self.plan, self.setting, seeds)
        for key, rows in self._rows.items():
            if key[0] in ("stack", "starts"):
                assert isinstance(rows, Store)
                rows.clear()
        for table in self._tables.values():
            table.count = 0
        for matrix in script.matrices:
            left, right = (self.plan.joint.images[matrix.name, side] for side in (False, True))
            draws = self._draws[left], self._draws[right]
            if matrix.name in self._matrices:
                self._matrices[matrix.name].reset(*draws)
            else:
                self._make_matrix(matrix, draws)

    def _make_matrix(self, given: Matrix, draws: tuple[Draws, Draws]) -> None:
        name = given.name
        spaces, capacities = self._sides(given)
        options: dict[str, Any] = {"storage": self.setting.storage}
        if self.setting.tolerance is not None:
            options["tolerance"] = self.setting.tolerance
        matrix: LimitMatrix | FiniteMatrix | HaarMatrix
        if given.law == "orthogonal":
            matrix = HaarMatrix(self.setting.mode, spaces, capacities[0], draws, **options)
        elif self.setting.mode == "limit":
            options["adjoint"] = given.adjoint
            matrix = LimitMatrix(spaces, capacities, draws, **options)
        else:
            matrix = FiniteMatrix(spaces, capacities, draws, **options)
        self._matrices[name] = matrix
        for transpose, capacity in zip((False, True), capacities, strict=True):
            side = matrix.side(transpose)
            self._rows[("e", name, transpose)] = side.e
            self._rows[("q", name, transpose)] = side.q
            self._capacity[("e", name, transpose)] = capacity
            self._capacity[("q", name, transpose)] = capacity
            self._tables[("q", name, transpose)] = Table(self.replicates, capacity)

    # -- registers ---------------------------------------------------------------------------

    def _new_buffer(self, register: int) -> Buffer:
        return self._pools[self.plan.script.vector_space[register]].take()

    def _normals(self) -> Array:
        """One N(0, 1) draw of each replicate, beside those of spaces."""
        if not self._chance:
            self._chance = generators(self._seeds)
        return np.array([chance.standard_normal() for chance in self._chance])

    def _dense(self, register: int) -> Array:
        """The coordinates of a vector, formed now if they were not yet."""
        vector: Vector = self._vectors[register]
        if vector.dense is None:
            if vector.multiple is not None:
                vector.form, vector.others = self._combined(
                    Sum((1.0,), (None,), (register,), register)
                )
                vector.multiple = None
            self._form(register, vector)
        assert vector.dense is not None
        return vector.dense.array

    def _places(self, kind: Callable[[Any, Any], P], step: Any, count: int = LONG) -> P:
        """Where the vectors of a step are; kept for later runs where there are many."""
        found: P | None = self._known.get((type(step), step.out))
        if found is None:
            found = kind(step, self._vectors)
            if count >= LONG:
                self._known[type(step), step.out] = found
        return found

    def _combined(self, step: Sum) -> tuple[dict[Key, Array], list[tuple[Buffer, Number]]]:
        """Coefficients of a linear combination on stored rows, and arrays with theirs."""
        found = self._places(Combination, step, len(step.vectors))
        return found.values(self._vectors, self._tables, self._capacity, self._scalars)

    def _wait(self, register: int, vector: Vector) -> None:
        """Store a vector that was not formed, beside those that combine the same stores."""
        self._vectors[register] = vector
        if vector.form and self.plan.dense_until[register] >= 0:
            self._waiting.setdefault(self._class_of(register, vector), []).append(register)

    def _form_together(self, register: int, group: Sequence[Vector]) -> None:
        keys = list(group[0].form or ())
        buffers = [self._new_buffer(register) for _ in group]
        outs = [buffer.array for buffer in buffers]
        for vector, buffer in zip(group, buffers, strict=True):
            vector.dense = buffer
        if keys:
            terms = []
            for key in keys:
                parts = [vector.form[key] for vector in group if vector.form is not None]
                if len(parts) == 1:
                    table = parts[0][:, None]
                else:
                    widest = max(part.shape[1] for part in parts)
                    table = np.zeros((self.replicates, len(parts), widest))
                    for j, part in enumerate(parts):
                        table[:, j, : part.shape[1]] = part
                terms.append((self._rows[key], table))
            materialise(outs, terms)
        for out, vector in zip(outs, group, strict=True):
            others = vector.others
            if not keys:
                out[:] = 0.0
            for buffer, number in others:
                kernels.axpy(out, np.full(self.replicates, number), buffer.array)
            if vector.others:  # the array holds everything; let the others go
                vector.form, vector.others = None, []

    def _set(self, register: int, values: Any, what: Callable[[], str]) -> None:
        """Write a scalar register, whose numbers must be finite."""
        found = np.empty(self.replicates)
        found[:] = values
        bad = found[~np.isfinite(found)]
        if len(bad):
            raise explosion(float(bad[0]), what())
        self._scalars[register] = found

    def _label(self, register: int) -> str:
        return self.plan.script.labels[register] or f"vector {register}"

    # -- instructions ------------------------------------------------------------------------

    def _starts(self, step: Starts) -> None:
        key: Key = ("starts", step.space, False)
        rank = step.rank
        first = 0
        if rank:
            draws = self._draws[self.plan.joint.vectors[step.out[0]]]
            store = self._rows[key]
            assert isinstance(store, Store)
            for index in range(rank):
                row = store.reserve()
                first = row if index == 0 else first
                draws.fill(store.row_view(row))
        for index, (mean, register) in enumerate(zip(step.mean, step.out, strict=True)):
            form: dict[Key, Array] = {}
            if rank:
                form[key] = np.zeros((self.replicates, self._capacity[key]))
                if step.factor is None:
                    form[key][:, first + index] = 1.0
                else:
                    form[key][:, first : first + rank] = step.factor[index]
            vector = Vector(form=form)
            self._vectors[register] = vector
            if mean != 0:
                lines = self._lines(register)
                lines += mean
                vector.form = None

    def _multiply(self, step: Multiply) -> None:
        matrix = self._matrices[step.matrix]
        inputs = [self._dense(register) for register in step.vectors]
        product = matrix.multiply(inputs, step.transpose)
        e: Key = ("e", step.matrix, step.transpose)
        q: Key = ("q", step.matrix, step.transpose)
        q_other: Key = ("q", step.matrix, not step.transpose)
        # What there is to combine is a matter of the script, not of the numbers of a replicate.
        has_images = matrix.side(step.transpose).e.capacity > 0
        has_echo = isinstance(matrix, HaarMatrix)
        if isinstance(matrix, LimitMatrix):
            has_echo = self._tables[q_other].count > 0
        for j, (source, out) in enumerate(zip(step.vectors, step.out, strict=True)):
            if q not in self._vectors[source].rows:
                self._vectors[source].rows[q] = self._tables[q].append(product.coords[:, j])
            form: dict[Key, Array] = {}
            if has_images:
                form[e] = product.coords[:, j]
            if has_echo:
                form[q_other] = product.echo[:, j]
            self._wait(out, Vector(form=form))

    def _sum(self, step: Sum) -> None:
        if len(step.vectors) == 1:
            scalar = NONE if step.scalars[0] is None else step.scalars[0]
            source = self._vectors[step.vectors[0]], (step.numbers[0], scalar)
            self._vectors[step.out] = Vector(multiple=source, source=source)
            return
        form, others = self._combined(step)
        self._wait(step.out, Vector(form=form, others=others))

    def _panel(self, step: Panel) -> None:
        known = self._places(Combinations, step)
        found = known.values(self._vectors, self._tables, self._capacity, self._scalars)
        for register, vector in zip(step.out, found, strict=True):
            self._wait(register, vector)

    def _gram(self, step: Gram) -> None:
        found = self._places(Grams, step).values(self._tables, self._scalars)
        self._scalars[step.out : step.out + len(step.outs)] = found

    def _map(self, step: Map) -> None:
        buffer = self._new_buffer(step.out)
        out = buffer.array.reshape(self.replicates, -1)

        def take(rows: slice, part: slice, values: Any) -> None:
            out[rows, part] = values

        self._values(step, take)
        vector = self._vectors[step.out] = Vector(dense=buffer)
        if step.out in self.plan.stacked:
            key: Key = ("stack", self.plan.script.vector_space[step.out], False)
            stack = self._rows[key]
            assert isinstance(stack, Store)
            vector.row = (key, stack.append(buffer.array))

    def _values(self, step: Map | Mean, take: Callable[[slice, slice, Any], None]) -> None:
        arrays = [self._lines(register) for register in step.vectors]
        numbers = [self._scalars[register][:, None] for register in step.scalars]
        coordinatewise(step.fn, arrays, numbers, take)

    def _mean(self, step: Mean) -> None:
        size = self._space_of(step.vectors[0]).size
        if step.fn.vectors == 1 and step.fn.text == "x0":
            sums = kernels.total(self._dense(step.vectors[0]), self.replicates)
        else:
            parts = np.zeros((-(-size // CHUNK), self.replicates))

            def take(rows: slice, part: slice, values: Any) -> None:
                block = np.empty((rows.stop - rows.start, part.stop - part.start))
                block[:] = values
                parts[part.start // CHUNK, rows] = kernels.total(block, len(block))

            self._values(step, take)
            sums = np.add.accumulate(parts)[-1]  # in their order
        self._set(step.out, sums / size, lambda: f"a moment of {self._label(step.vectors[0])}")

    def _dot(self, step: Dot) -> None:
        found = self._places(InnerProducts, step, len(step.others))
        if found.write(self._tables, self._scalars):  # no array is read
            return
        if len(step.others) > 1:  # not all of them in one basis: one by one
            for other, out in zip(step.others, step.out, strict=True):
                self._dot(Dot(step.vector, (other,), (out,)))
            return
        left, right = self._dense(step.vector), self._dense(step.others[0])
        values = kernels.dot(left, right, self.replicates) / self._space_of(step.vector).size
        self._set(step.out[0], values, lambda: f"a moment of {self._label(step.others[0])}")

    def _outer(self, step: Outer) -> None:
        size = self._space_of(step.vectors[0]).size
        inner = step.inner(size)
        lines = [self._lines(register) for register in step.rows]
        sides = (step.cols, step.vectors)
        cols, vectors = ([self._lines(v)[:, :inner] for v in side] for side in sides)
        buffers = list(map(self._new_buffer, step.out))
        for r in range(self.replicates):
            own = [line[r] for line in lines], [col[r] for col in cols]
            numbers = [self._scalars[register][r] for register in step.scalars]
            x = np.array([vector[r] for vector in vectors])
            found = outer_average(step.fn, *own, x, numbers, step.forms)
            for buffer, line in zip(buffers, found, strict=True):
                buffer.array.reshape(self.replicates, -1)[r, : len(line)] = line
        self._vectors.update((v, Vector(dense=b)) for v, b in zip(step.out, buffers, strict=True))

    def _scalar_map(self, step: ScalarMap) -> None:
        arguments = [self._scalars[register] for register in step.scalars]
        value = run(lower(step.fn), numpy_space(), arguments)
        self._set(step.out, value, lambda: f"the scalar {step.fn.text}")

    def _noise_draw(self, step: Noise) -> None:
        found = self._noise.get(step.family)
        if found is None:
            found = self._noise[step.family] = [NoiseFamily() for _ in self._seeds]
        lines = [(self._dense(v).reshape(self.replicates, -1), v) for v in step.vectors]
        values = np.empty(self.replicates)
        for r, (family, normal) in enumerate(zip(found, self._normals(), strict=True)):
            vectors = [(line[r], self._space_of(v).size) for line, v in lines]
            values[r] = family.draw(step.weights, vectors, float(normal))
        self._scalars[step.out] = values


_HANDLERS = handlers(Workspace)


class NoiseFamily:
    """Draws that are linear in weights w and in vectors x: E g(w, x) g(v, y) = w.v average(x y).

    The covariance of the draws so far is kept as a Cholesky factor; what depends on earlier ones
    gets the value that linearity gives it.
    """

    def __init__(self) -> None:
        self._rows: list[Array] = []  # of the weights, of every vector: one line per draw
        self._factor = np.empty((0, 0))
        self._draws = np.empty(0)

    def draw(
        self,
        weights: Sequence[float],
        vectors: Sequence[tuple[Array, int]],
        normal: float,
    ) -> float:
        """The value for weights and vectors."""
        from scipy.linalg import solve_triangular

        known, sizes = len(self._draws), [1, *(size for _, size in vectors)]
        self._keep([np.array(weights, float), *(vector for vector, _ in vectors)])
        overlaps = np.ones(known + 1)
        for rows, size in zip(self._rows, sizes, strict=True):
            overlaps *= kernels.dot(rows[: known + 1], rows[known], known + 1) / size
        row = overlaps.copy()
        if known:
            factor = self._factor[:known, :known]
            row[:-1] = solve_triangular(factor, overlaps[:-1], lower=True, check_finite=False)
        residual = overlaps[-1] - float(np.dot(row[:-1], row[:-1]))
        value = float(np.dot(row[:-1], self._draws))
        if residual > 1e-12 * overlaps[-1]:
            row[-1] = np.sqrt(residual)
            value += float(row[-1]) * normal
            self._factor[known, : known + 1] = row
            self._draws = np.append(self._draws, normal)
        return value

    def _keep(self, lines: Sequence[Array]) -> None:
        """Write what a draw is made of behind that of those before."""
        known = len(self._draws)
        if known == len(self._factor):
            more = 0, known + 1
            rows_so_far = self._rows or [np.empty((0, line.size)) for line in lines]
            self._rows = [np.pad(rows, (more, (0, 0))) for rows in rows_so_far]
            self._factor = np.pad(self._factor, more)
        for rows, line in zip(self._rows, lines, strict=True):
            rows[known] = line
