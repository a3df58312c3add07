"""Execution of a scheduled script: one replicate, one thread, reductions in a fixed order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from tpcalc.engine import kernels
from tpcalc.engine.directions import (
    FiniteMatrix,
    LimitMatrix,
    SampleSpace,
    Store,
    materialise,
)
from tpcalc.engine.directions_haar import HaarMatrix
from tpcalc.engine.draws import Draws, PlainDraws, SobolDraws
from tpcalc.engine.instructions import (
    Dot,
    DrawScalar,
    Map,
    Matrix,
    Mean,
    Multiply,
    Noise,
    Outer,
    ScalarMap,
    Starts,
    Sum,
)
from tpcalc.engine.noise import NoiseFamily
from tpcalc.engine.schedule import Plan
from tpcalc.engine.vectors import Array, Buffer, Combination, Key, Pool, Rows, Table, Vector
from tpcalc.errors import Exploded
from tpcalc.functions import Fn
from tpcalc.functions.forms import tiles
from tpcalc.functions.tape import lower, numpy_space, run

__all__ = ["Outcome", "Setting", "Workspace"]

Mode = Literal["limit", "finite"]
CHUNK = 8192  # samples handled at once by coordinatewise functions: a few arrays fit in cache
SHARE = 8  # of many columns this part of them is averaged over where not all need be
BATCH = 16  # vectors formed in one pass over the stores


@dataclass(frozen=True)
class Setting:
    """How a script is run.

    Args:
        mode: ``"limit"``: particles of the limit; ``"finite"``: a network of finite width.
        width: Samples N of every space (limit); n, so that a space has ratio * n coordinates.
        storage: ``"float64"`` or ``"float32"`` storage of directions.
        tolerance: Residuals below this part of a vector add no direction.
    """

    mode: Mode
    width: int
    storage: str = "float64"
    tolerance: float | None = None

    def size(self, ratio: float) -> int:
        """Number of samples or coordinates of a space."""
        return self.width if self.mode == "limit" else round(ratio * self.width)

    def ratio(self, ratio: float) -> float:
        """Dimension of a space over n, exact for sizes that were rounded."""
        return ratio if self.mode == "limit" else self.size(ratio) / self.width


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one replicate yields: scalars, coordinates of vectors, the smallest residual ratio."""

    scalars: tuple[float, ...]
    vectors: tuple[Array, ...]
    min_ratio: float


class Workspace:
    """Memory of one thread, allocated once and used for replicate after replicate.

    Args:
        plan: The scheduled script.
        setting: How to run it.
    """

    def __init__(self, plan: Plan, setting: Setting) -> None:
        self.plan = plan
        self.setting = setting
        script = plan.script
        self._spaces = {
            space.name: SampleSpace(setting.size(space.ratio), setting.ratio(space.ratio))
            for space in script.spaces
        }
        self._pools = {name: Pool(space) for name, space in self._spaces.items()}
        self._rows: dict[Key, Rows] = {}
        self._capacity: dict[Key, int] = {}
        for kind, counts in (("stack", plan.stack_rows), ("starts", plan.start_rows)):
            for name, count in counts.items():
                if count:
                    store = Store(self._spaces[name].size, count)
                    self._rows[(kind, name, False)] = store
                    self._capacity[(kind, name, False)] = count
        self._matrices: dict[str, LimitMatrix | FiniteMatrix | HaarMatrix] = {}
        self._tables: dict[Key, Table] = {}
        self._vectors: dict[int, Vector] = {}
        self._waiting: dict[tuple[str, frozenset[Key]], list[int]] = {}
        self._scalars: list[float] = []
        self._noise: dict[str, NoiseFamily] = {}
        self._draws: dict[str, Draws] = {}
        self._chance = np.random.default_rng(0)

    def run(self, seed: Sequence[int], tick: Callable[[], None] | None = None) -> Outcome:
        """Run one replicate.

        Args:
            seed: Entropy of the replicate.
            tick: Called after every instruction; raising from it stops the run.

        Raises:
            Exploded: A number left the floating-point range; the message names the vector.
        """
        self._begin(seed)
        script = self.plan.script
        with np.errstate(all="ignore"):
            for index, step in enumerate(script.instructions):
                _HANDLERS[type(step)](self, step)
                self._release(index)
                if tick is not None:
                    tick()
            vectors = tuple(
                self._dense(register)[: self._space_of(register).size].copy()
                for register in script.vectors
            )
        scalars = tuple(self._scalars[register] for register in script.results)
        ratio = min((m.min_ratio for m in self._matrices.values()), default=1.0)
        self._vectors.clear()
        return Outcome(scalars, vectors, ratio)

    # -- set-up of a replicate ---------------------------------------------------------------

    def _begin(self, seed: Sequence[int]) -> None:
        script = self.plan.script
        self._vectors.clear()
        self._waiting.clear()
        self._scalars = [0.0] * script.scalars
        self._noise = {}
        self._chance = np.random.default_rng(np.random.SeedSequence([*seed, 0]))
        self._draws = {
            name: self._new_draws(name, np.random.SeedSequence([*seed, 1 + index]))
            for index, name in enumerate(self._spaces)
        }
        for key, rows in self._rows.items():
            if key[0] in ("stack", "starts"):
                assert isinstance(rows, Store)
                rows.clear()
        for table in self._tables.values():
            table.count = 0
        for matrix in script.matrices:
            draws = (self._draws[matrix.rows], self._draws[matrix.cols])
            if matrix.name in self._matrices:
                self._matrices[matrix.name].reset(*draws)
            else:
                self._make_matrix(matrix, draws)

    def _new_draws(self, name: str, seed: np.random.SeedSequence) -> Draws:
        space = self._spaces[name]
        if self.setting.mode == "limit":
            count = max(1, self.plan.normals.get(name, 0))
            return SobolDraws(count, space.size.bit_length() - 1, seed)
        return PlainDraws(space.size, seed)

    def _make_matrix(self, given: Matrix, draws: tuple[Draws, Draws]) -> None:
        name = given.name
        forward = self.plan.directions.get((name, False), 0)
        transposed = self.plan.directions.get((name, True), 0)
        spaces = self._spaces[given.rows], self._spaces[given.cols]
        options: dict[str, Any] = {"storage": self.setting.storage}
        if self.setting.tolerance is not None:
            options["tolerance"] = self.setting.tolerance
        matrix: LimitMatrix | FiniteMatrix | HaarMatrix
        if given.law == "orthogonal":  # what it was applied to and what came out share one basis
            forward = transposed = forward + transposed
            matrix = HaarMatrix(self.setting.mode, *spaces, forward, *draws, **options)
        else:
            kind = LimitMatrix if self.setting.mode == "limit" else FiniteMatrix
            matrix = kind(*spaces, forward, transposed, *draws, **options)
        self._matrices[name] = matrix
        for transpose, capacity in ((False, forward), (True, transposed)):
            side = matrix.side(transpose)
            self._rows[("e", name, transpose)] = side.e
            self._rows[("q", name, transpose)] = side.q
            self._capacity[("e", name, transpose)] = capacity
            self._capacity[("q", name, transpose)] = capacity
            self._tables[("q", name, transpose)] = Table(capacity)

    # -- registers ---------------------------------------------------------------------------

    def _space_of(self, register: int) -> SampleSpace:
        return self._spaces[self.plan.script.vector_space[register]]

    def _new_buffer(self, register: int) -> Buffer:
        return self._pools[self.plan.script.vector_space[register]].take()

    def _dense(self, register: int) -> Array:
        """The coordinates of a vector, formed now if they were not yet."""
        vector = self._vectors[register]
        if vector.dense is None:
            if vector.multiple is not None:
                total = Combination(self._tables, self._capacity)
                total.add(vector, 1.0)
                vector.form, vector.others = total.finish()
                vector.multiple = None
            self._form(register, vector)
        assert vector.dense is not None
        return vector.dense.array

    def _wait(self, register: int, vector: Vector) -> None:
        """Store a vector that was not formed, beside those that combine the same stores."""
        self._vectors[register] = vector
        if vector.form and self.plan.dense_until[register] >= 0:
            self._waiting.setdefault(self._class_of(register, vector), []).append(register)

    def _class_of(self, register: int, vector: Vector) -> tuple[str, frozenset[Key]]:
        return self.plan.script.vector_space[register], frozenset(vector.form or ())

    def _form(self, register: int, vector: Vector) -> None:
        """Form a vector, and in the same pass those that wait for the same stores.

        A batch is then a matrix product: its stores are read once for all of its vectors.
        """
        assert vector.form is not None
        group = [(register, vector)]
        for other in self._waiting.pop(self._class_of(register, vector), []):
            sibling = self._vectors.get(other)
            if sibling is not None and sibling is not vector and sibling.dense is None:
                group.append((other, sibling))
        for start in range(0, len(group), BATCH):
            self._form_together(group[start : start + BATCH])

    def _form_together(self, group: Sequence[tuple[int, Vector]]) -> None:
        keys = list(group[0][1].form or ())
        for register, vector in group:
            vector.dense = self._new_buffer(register)
        outs = [vector.dense.array for _, vector in group if vector.dense is not None]
        if keys:
            terms = []
            for key in keys:
                parts = [vector.form[key] for _, vector in group if vector.form is not None]
                table = np.zeros((len(parts), max(len(part) for part in parts)))
                for row, part in zip(table, parts, strict=True):
                    row[: len(part)] = part
                terms.append((self._rows[key], table))
            materialise(outs, terms)
        for out, (_, vector) in zip(outs, group, strict=True):
            others = vector.others
            if not keys and others:
                np.multiply(others[0][0].array, others[0][1], out=out)
                others = others[1:]
            elif not keys:
                out[:] = 0.0
            for buffer, number in others:
                kernels.axpy(out, number, buffer.array)
            if vector.others:  # the array holds everything; let the others go
                vector.form, vector.others = None, []

    def _release(self, index: int) -> None:
        ended = [self._vectors.pop(register) for register in self.plan.ends[index]]
        thinned = [self._vectors[register] for register in self.plan.thins[index]]
        for vector in (*ended, *thinned):
            if vector.has_spare:  # multiples of an ended vector may refer to it still
                vector.dense = None

    def _number(self, value: float, what: str) -> float:
        if np.isnan(value):
            raise Exploded(
                f"{what} is nan: a function was evaluated outside its domain (the logarithm or a "
                "root of a negative number, say), or infinities cancelled.",
                hint="Check the domain of the activation; where the numbers grew before, lower the "
                "learning rate or the number of steps.",
            )
        if not np.isfinite(value):
            raise Exploded(
                f"{what} is {value}: numbers left the floating-point range.",
                hint="The program explodes at these powers of n and learning rates; lower the "
                "learning rate or the number of steps.",
            )
        return float(value)

    def _label(self, register: int) -> str:
        return self.plan.script.labels[register] or f"vector {register}"

    # -- instructions ------------------------------------------------------------------------

    def _starts(self, step: Starts) -> None:
        key: Key = ("starts", step.space, False)
        rank = step.rank
        first = 0
        if rank:
            store = self._rows[key]
            assert isinstance(store, Store)
            for index in range(rank):
                row = store.reserve()
                first = row if index == 0 else first
                self._draws[step.space].fill(store.row_view(row))
        for index, (mean, register) in enumerate(zip(step.mean, step.out, strict=True)):
            form: dict[Key, Array] = {}
            if rank:
                form[key] = np.zeros(self._capacity[key])
                if step.factor is None:
                    form[key][first + index] = 1.0
                else:
                    form[key][first : first + rank] = step.factor[index]
            vector = Vector(form=form)
            self._vectors[register] = vector
            if mean != 0:
                size = self._space_of(register).size
                self._dense(register)[:size] += mean
                vector.form = None

    def _multiply(self, step: Multiply) -> None:
        matrix = self._matrices[step.matrix]
        inputs = [self._dense(register) for register in step.vectors]
        product = matrix.multiply(inputs, step.transpose)
        e: Key = ("e", step.matrix, step.transpose)
        q: Key = ("q", step.matrix, step.transpose)
        q_other: Key = ("q", step.matrix, not step.transpose)
        has_images = matrix.side(step.transpose).e.rows > 0
        for j, (source, out) in enumerate(zip(step.vectors, step.out, strict=True)):
            if q not in self._vectors[source].rows:
                self._vectors[source].rows[q] = self._tables[q].append(product.coords[j])
            form: dict[Key, Array] = {}
            if has_images:
                form[e] = product.coords[j]
            if product.echo.shape[1]:
                form[q_other] = product.echo[j]
            self._wait(out, Vector(form=form))

    def _sum(self, step: Sum) -> None:
        if len(step.vectors) == 1:
            scalar = step.scalars[0]
            factor = step.numbers[0] * (1.0 if scalar is None else self._scalars[scalar])
            source = self._vectors[step.vectors[0]]
            self._vectors[step.out] = Vector(multiple=(source, factor))
            return
        total = Combination(self._tables, self._capacity)
        for number, scalar, register in zip(step.numbers, step.scalars, step.vectors, strict=True):
            factor = number if scalar is None else number * self._scalars[scalar]
            total.add(self._vectors[register], factor)
        form, others = total.finish()
        self._wait(step.out, Vector(form=form, others=others))

    def _map(self, step: Map) -> None:
        arrays = [self._dense(register) for register in step.vectors]
        buffer = self._new_buffer(step.out)
        self._evaluate(step.fn, arrays, step.scalars, self._space_of(step.out).size, buffer.array)
        vector = self._vectors[step.out] = Vector(dense=buffer)
        if step.out in self.plan.stacked:
            key: Key = ("stack", self.plan.script.vector_space[step.out], False)
            stack = self._rows[key]
            assert isinstance(stack, Store)
            vector.row = (key, stack.append(buffer.array))

    def _evaluate(
        self, fn: Fn, arrays: Sequence[Array], scalars: Sequence[int], size: int, out: Array
    ) -> None:
        """Write a coordinatewise function, block by block."""
        tape, space = lower(fn), numpy_space()
        numbers = [self._scalars[register] for register in scalars]
        for start in range(0, size, CHUNK):
            stop = min(start + CHUNK, size)
            out[start:stop] = run(tape, space, [*(a[start:stop] for a in arrays), *numbers])

    def _mean(self, step: Mean) -> None:
        size = self._space_of(step.vectors[0]).size
        if step.fn.vectors == 1 and step.fn.text == "x0":
            value = kernels.total(self._dense(step.vectors[0])) / size
        else:
            tape, space = lower(step.fn), numpy_space()
            arrays = [self._dense(register) for register in step.vectors]
            numbers = [self._scalars[register] for register in step.scalars]
            sums = 0.0
            for start in range(0, size, CHUNK):
                stop = min(start + CHUNK, size)
                part = run(tape, space, [*(a[start:stop] for a in arrays), *numbers])
                constant = np.ndim(part) == 0
                sums += float(part) * (stop - start) if constant else float(np.sum(part))
            value = sums / size
        self._scalars[step.out] = self._number(value, f"a moment of {self._label(step.vectors[0])}")

    def _dot(self, step: Dot) -> None:
        common = self._vectors[step.vector]
        partners = [self._vectors[other] for other in step.others]
        for key, row in common.rows.items():  # coordinates in a common basis: no array is read
            if all(key in partner.rows for partner in partners):
                data = self._tables[key].data
                rows = data[[partner.rows[key] for partner in partners]]
                found = np.einsum("ij,j->i", rows, data[row])  # not BLAS: its threads move bits
                for out, value in zip(step.out, found.tolist(), strict=True):
                    self._scalars[out] = value
                return
        if len(partners) > 1:  # not all of them in one basis: one by one
            for other, out in zip(step.others, step.out, strict=True):
                self._dot(Dot(step.vector, (other,), (out,)))
            return
        value = kernels.dot(self._dense(step.vector), self._dense(step.others[0]))
        value /= self._space_of(step.vector).size
        what = f"a moment of {self._label(step.others[0])}"
        self._scalars[step.out[0]] = self._number(value, what)

    def _outer(self, step: Outer) -> None:
        size = self._space_of(step.out).size
        rows = [self._dense(register)[:size] for register in step.rows]
        inner = self._space_of(step.vector).size
        inner = min(inner, max(step.columns, inner // SHARE)) if step.columns else inner
        cols = [self._dense(register)[:inner] for register in step.cols]
        x = self._dense(step.vector)[:inner]
        numbers = [self._scalars[register] for register in step.scalars]
        buffer = self._new_buffer(step.out)
        for start, stop, block in tiles(step.fn, rows, cols, numbers, step.forms):
            weights = np.broadcast_to(block, (stop - start, inner)) * x
            buffer.array[start:stop] = weights.sum(axis=1) / inner
        self._vectors[step.out] = Vector(dense=buffer)

    def _scalar_map(self, step: ScalarMap) -> None:
        arguments = [np.float64(self._scalars[register]) for register in step.scalars]
        value = run(lower(step.fn), numpy_space(), arguments)
        self._scalars[step.out] = self._number(float(value), f"the scalar {step.fn.text}")

    def _draw_scalar(self, step: DrawScalar) -> None:
        self._scalars[step.out] = step.value + step.std * float(self._chance.standard_normal())

    def _noise_draw(self, step: Noise) -> None:
        family = self._noise.setdefault(step.family, NoiseFamily())
        vectors = [(self._dense(v), self._space_of(v).size) for v in step.vectors]
        draw = float(self._chance.standard_normal())
        self._scalars[step.out] = family.draw(step.weights, vectors, draw)


_HANDLERS: dict[type, Callable[[Workspace, Any], None]] = {
    Starts: Workspace._starts,
    Multiply: Workspace._multiply,
    Map: Workspace._map,
    Sum: Workspace._sum,
    Mean: Workspace._mean,
    Dot: Workspace._dot,
    Outer: Workspace._outer,
    ScalarMap: Workspace._scalar_map,
    DrawScalar: Workspace._draw_scalar,
    Noise: Workspace._noise_draw,
}
