"""Execution of a scheduled script: replicates side by side, one method for each instruction.

What instructions mean is here; what holds samples, and the passes over them, are arrays and
compiled loops (``execute``) or tensors (``device.execute``).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, ClassVar, TypeVar, get_args

import numpy as np

from tpcalc.arrays import Array
from tpcalc.engine import kernels
from tpcalc.engine.directions_store import SampleSpace
from tpcalc.engine.draws import Draws, PlainDraws, SobolDraws
from tpcalc.engine.instructions import (
    Dot,
    DrawScalar,
    Gram,
    Instruction,
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
from tpcalc.engine.panels import Combinations, Grams, InnerProducts
from tpcalc.engine.schedule import Plan
from tpcalc.engine.setting import Outcome, Setting
from tpcalc.engine.vectors import NONE, Combination, Host, Key, Table, Vector
from tpcalc.functions.tape import lower, run

P = TypeVar("P")
Pair = tuple[Any, Any]  # of W x and of x
LONG = 6  # vectors from which on the places that a sum reads are kept for later runs
METHODS = {kind: f"_{kind.__name__.lower()}" for kind in get_args(Instruction)}


def streams(plan: Plan, setting: Setting, seeds: Sequence[Sequence[int]]) -> list[Draws]:
    """The normal draws of each group of vectors with joint samples, for the seeds of replicates.

    Pseudorandom ones are as good from one stream for each space.
    """
    spaces = {space.name: (i, space.ratio) for i, space in enumerate(plan.script.spaces)}

    def own(i: int) -> list[tuple[int, ...]]:
        return [(*seed, 1 + i) for seed in seeds]

    if setting.mode == "finite":
        plain = {
            name: PlainDraws(setting.size(ratio), *own(i)) for name, (i, ratio) in spaces.items()
        }
        return [plain[name] for name in plan.joint.spaces]
    sizes = [setting.size(spaces[name][1]).bit_length() - 1 for name in plan.joint.spaces]
    return [
        SobolDraws(count, size, *own(i))
        for i, (count, size) in enumerate(zip(plan.normals, sizes, strict=True))
    ]


class Executor(ABC):
    """Registers of a bundle of replicates: used for one bundle after another, or once."""

    batch: ClassVar[int]  # vectors formed in one pass over the stores
    joins: ClassVar[bool]  # whether sums of arrays alone are formed together as well

    def __init__(
        self, plan: Plan, setting: Setting, replicates: int, place: Host, numbers: Any
    ) -> None:
        self.plan, self.setting, self.replicates = plan, setting, replicates
        self.place, self._numbers = place, numbers  # functions of scalars are of the latter
        self._spaces = {
            space.name: self._space(setting.size(space.ratio), setting.ratio(space.ratio))
            for space in plan.script.spaces
        }
        self._stores: dict[Key, Any] = {}
        self._capacity: dict[Key, int] = {}
        for kind, counts in (("stack", plan.stack_rows), ("starts", plan.start_rows)):
            for name, count in counts.items():
                self._stores[kind, name, False] = self._store(self._spaces[name], count)
                self._capacity[kind, name, False] = count
        self._kept = list(self._stores.values())
        self._laws = {matrix.name: matrix.law for matrix in plan.script.matrices}
        self._matrices: dict[str, Any] = {}
        self._tables: dict[Key, Table] = {}
        self._vectors: dict[int, Vector] = {}
        self._waiting: dict[tuple[str, frozenset[Key]], list[int]] = {}
        self._known: dict[tuple[type, object], Any] = {}

    def run(
        self, seeds: Sequence[Sequence[int]], tick: Callable[[], None] | None = None
    ) -> list[Outcome]:
        """Run a bundle of replicates."""
        script = self.plan.script
        with np.errstate(all="ignore"):
            self._begin(seeds)
            for index, step in enumerate(script.instructions):
                getattr(self, METHODS[type(step)])(step)
                self._release(index)
                if tick is not None:
                    tick()
            self._look()
            vectors = [self.place.host(self._lines(v)).copy() for v in script.vectors]
        scalars = self.place.host(self._scalars)[list(script.results)].T.tolist()
        self._vectors.clear()
        ratios = np.ones(self.replicates)
        for matrix in self._matrices.values():
            ratios = np.minimum(ratios, matrix.min_ratios)
        return [
            Outcome(tuple(own), tuple(v[r] for v in vectors), float(ratio), self.setting.storage)
            for r, (own, ratio) in enumerate(zip(scalars, ratios, strict=True))
        ]

    # -- set-up of a bundle ------------------------------------------------------------------

    def _begin(self, seeds: Sequence[Sequence[int]]) -> None:
        script = self.plan.script
        self._vectors.clear()
        self._waiting.clear()
        self._scalars = self.place.zeros(script.scalars + 1, self.replicates, double=True)
        self._scalars[NONE] = 1.0
        self._families: dict[str, list[NoiseFamily]] = {}
        self._seeds, self._chance = seeds, list[np.random.Generator]()
        self._draws = streams(self.plan, self.setting, seeds)
        for store in self._kept:
            store.clear()
        for table in self._tables.values():
            table.count = 0
        for matrix in script.matrices:
            left, right = (self.plan.joint.images[matrix.name, side] for side in (False, True))
            draws = self._draws[left], self._draws[right]
            if matrix.name in self._matrices:
                self._matrices[matrix.name].reset(*draws)
            else:
                self._add_matrix(matrix, draws)

    def _add_matrix(self, given: Matrix, draws: tuple[Draws, Draws]) -> None:
        sides = (False, True)
        spaces = self._spaces[given.rows], self._spaces[given.cols]
        forward, back = (self.plan.directions.get((given.name, side), 0) for side in sides)
        if given.law == "orthogonal":  # what it was applied to and what came out share one basis
            forward = back = forward + back
        matrix = self._matrix(given, spaces, (forward, back), draws)
        self._matrices[given.name] = matrix
        for transpose, capacity in zip(sides, (forward, back), strict=True):
            for kind in ("e", "q"):
                key = kind, given.name, transpose
                self._stores[key] = getattr(matrix.side(transpose), kind)
                self._capacity[key] = capacity
            self._tables[key] = Table(self.replicates, capacity, self.place)

    # -- what holds samples ------------------------------------------------------------------

    @abstractmethod
    def _space(self, size: int, ratio: float) -> SampleSpace:
        """A space of samples."""

    @abstractmethod
    def _store(self, space: SampleSpace, capacity: int) -> Any:
        """A store of rows."""

    @abstractmethod
    def _matrix(self, given: Matrix, spaces: Pair, capacities: tuple[int, int], draws: Pair) -> Any:
        """A random matrix, whose sides meet at most so many directions."""

    @abstractmethod
    def _new(self, register: int) -> Pair:
        """The coordinates of a new vector, and its lines."""

    @abstractmethod
    def _fresh(self, key: Key, draws: Draws, count: int) -> int:
        """Put normal draws into a store; returns the first row."""

    @abstractmethod
    def _form_together(
        self, register: int, group: Sequence[Vector], terms: Sequence[tuple[Any, Any]]
    ) -> None:
        """Form vectors that live where the one of a register does, from rows with coefficients."""

    @abstractmethod
    def _fill(self, step: Map, lines: Any) -> None:
        """Write the values of a function."""

    @abstractmethod
    def _average(self, step: Mean) -> Any:
        """The average of a function."""

    @abstractmethod
    def _inner(self, left: int, right: int) -> Any:
        """The average of the product of two vectors."""

    @abstractmethod
    def _outer_averages(self, step: Outer, lines: Sequence[list[Any]], outs: Sequence[Any]) -> None:
        """Write averages over columns, from the lines of rows, columns and vectors."""

    @abstractmethod
    def _set(self, register: int, values: Any, what: Callable[[], str]) -> None:
        """Write a scalar register, whose numbers must be finite."""

    @abstractmethod
    def _look(self) -> None:
        """Raise the error of a scalar that is not finite, if that was not done."""

    # -- registers ---------------------------------------------------------------------------

    def _width(self, key: Key) -> int:
        """The coefficients that combinations have on the rows of a store."""
        return self._capacity[key]

    def _normals(self) -> Array:
        """One N(0, 1) draw of each replicate, beside those of spaces.

        A fourth word of a seed draws coordinates anew beside the same numbers.
        """
        if not self._chance:
            self._chance = [np.random.default_rng((*seed[:3], 0)) for seed in self._seeds]
        return np.array([chance.standard_normal() for chance in self._chance])

    def _dense(self, register: int) -> Any:
        """The coordinates of a vector, formed now if they were not yet."""
        vector = self._vectors[register]
        if vector.dense is None:
            if vector.multiple is not None:
                whole = self._combined(Sum((1.0,), (None,), (register,), register))
                vector.form, vector.others, vector.multiple = whole.form, whole.others, None
            self._form(register, vector)
        return vector.dense

    def _space_of(self, register: int) -> SampleSpace:
        return self._spaces[self.plan.script.vector_space[register]]

    def _lines(self, register: int) -> Any:
        """The coordinates of a vector, one replicate in each row."""
        lines = self._dense(register).reshape(self.replicates, -1)
        return lines[:, : self._space_of(register).size]

    def _class_of(self, register: int, vector: Vector) -> tuple[str, frozenset[Key]]:
        return self.plan.script.vector_space[register], frozenset(vector.form or ())

    def _places(self, kind: Callable[[Any, Any], P], step: Any, count: int = LONG) -> P:
        """Where the vectors of a step are; kept for later runs where there are many."""
        found: P | None = self._known.get((type(step), step.out))
        if found is None:
            found = kind(step, self._vectors)
            if count >= LONG:
                self._known[type(step), step.out] = found
        return found

    def _values(self, found: Combination | Combinations) -> list[Vector]:
        return found.values(self._vectors, self._tables, self._width, self._scalars, self.place)

    def _combined(self, step: Sum) -> Vector:
        """A linear combination."""
        (found,) = self._values(self._places(Combination, step, len(step.vectors)))
        return found

    def _wait(self, register: int, vector: Vector) -> None:
        """Store a vector that was not formed, beside those that combine the same stores."""
        self._vectors[register] = vector
        if (vector.form or self.joins) and self.plan.dense_until[register] >= 0:
            self._waiting.setdefault(self._class_of(register, vector), []).append(register)

    def _form(self, register: int, vector: Vector) -> None:
        """Form a vector, and in the same pass those that wait for the same stores.

        A batch is then a matrix product: its stores are read once for all of its vectors.
        """
        group = [vector]
        for other in self._waiting.pop(self._class_of(register, vector), []):
            sibling = self._vectors.get(other)
            if sibling is not None and sibling is not vector and sibling.dense is None:
                group.append(sibling)
        for start in range(0, len(group), self.batch):
            part = group[start : start + self.batch]
            self._form_together(register, part, list(self._terms(part)))
            for one in part:
                if one.others:  # the array holds everything; let the others go
                    one.form, one.others = None, []

    def _terms(self, group: Sequence[Vector]) -> Iterator[tuple[Any, Any]]:
        """The stores that vectors combine, with coefficients (replicates, vector, row)."""
        for key in group[0].form or ():
            forms = [vector.form[key] for vector in group if vector.form is not None]
            widest = max(form.shape[1] for form in forms)
            table = self.place.zeros(self.replicates, len(forms), widest, double=True)
            for j, form in enumerate(forms):
                table[:, j, : form.shape[1]] = form
            yield self._stores[key], table

    def _release(self, index: int) -> None:
        ended = [self._vectors.pop(register) for register in self.plan.ends[index]]
        thinned = [self._vectors[register] for register in self.plan.thins[index]]
        for vector in (*ended, *thinned):
            if vector.has_spare:  # multiples of an ended vector may refer to it still
                vector.dense = None

    def _moment(self, register: int) -> str:
        return f"a moment of {self.plan.script.labels[register] or f'vector {register}'}"

    # -- instructions ------------------------------------------------------------------------

    def _starts(self, step: Starts) -> None:
        key, rank, first = ("starts", step.space, False), step.rank, 0
        if rank:
            draws = self._draws[self.plan.joint.vectors[step.out[0]]]
            first = self._fresh(key, draws, rank)
            table = self.place.zeros(self.replicates, len(step.out), first + rank, double=True)
            factor = np.eye(rank) if step.factor is None else step.factor
            table[:, :, first:] = self.place.numbers(factor)
        for index, (mean, register) in enumerate(zip(step.mean, step.out, strict=True)):
            vector = Vector(form={key: table[:, index]} if rank else {})
            self._vectors[register] = vector
            if mean != 0:
                lines = self._lines(register)
                lines += mean
                vector.form = None

    def _multiply(self, step: Multiply) -> None:
        inputs = [self._dense(register) for register in step.vectors]
        product = self._matrices[step.matrix].multiply(inputs, step.transpose)
        e, q = ("e", step.matrix, step.transpose), ("q", step.matrix, step.transpose)
        back = ("q", step.matrix, not step.transpose)
        new: dict[int, int] = {}
        for j, source in enumerate(step.vectors):
            if q not in self._vectors[source].rows:
                new.setdefault(source, j)
        if new:
            coords: Any = product.coords
            if len(new) < len(inputs):
                coords = self.place.take(coords, list(new.values()), 1)
            for row, source in enumerate(new, self._tables[q].append(coords)):
                self._vectors[source].rows[q] = row
        # What there is to combine is a matter of the script, not of the numbers of a replicate.
        echoes = self._laws[step.matrix] == "orthogonal" or (
            self.setting.mode == "limit" and self._tables[back].count > 0
        )
        for j, out in enumerate(step.out):
            form: dict[Key, Any] = {}
            if self._stores[e].capacity:
                form[e] = product.coords[:, j]
            if echoes:
                form[back] = product.echo[:, j]
            self._wait(out, Vector(form=form))

    def _sum(self, step: Sum) -> None:
        if len(step.vectors) > 1:
            self._wait(step.out, self._combined(step))
            return
        scalar = NONE if step.scalars[0] is None else step.scalars[0]
        source = self._vectors[step.vectors[0]], (step.numbers[0], scalar)
        self._vectors[step.out] = Vector(multiple=source, source=source)

    def _panel(self, step: Panel) -> None:
        found = self._values(self._places(Combinations, step))
        for register, vector in zip(step.out, found, strict=True):
            self._wait(register, vector)

    def _gram(self, step: Gram) -> None:
        found = self._places(Grams, step).values(self._tables, self._scalars, self.place)
        self._scalars[step.out : step.out + len(found)] = found

    def _map(self, step: Map) -> None:
        dense, lines = self._new(step.out)
        self._fill(step, lines)
        vector = self._vectors[step.out] = Vector(dense=dense)
        if step.out in self.plan.stacked:
            key: Key = ("stack", self.plan.script.vector_space[step.out], False)
            vector.row = (key, self._stores[key].append(self._dense(step.out)))

    def _mean(self, step: Mean) -> None:
        self._set(step.out, self._average(step), partial(self._moment, step.vectors[0]))

    def _dot(self, step: Dot) -> None:
        found = self._places(InnerProducts, step, len(step.others))
        if found.write(self._tables, self._scalars, self.place):  # no array is read
            return
        if len(step.others) > 1:  # not all of them in one basis: one by one
            for other, out in zip(step.others, step.out, strict=True):
                self._dot(Dot(step.vector, (other,), (out,)))
            return
        (other,), (out,) = step.others, step.out
        self._set(out, self._inner(step.vector, other), partial(self._moment, other))

    def _outer(self, step: Outer) -> None:
        inner, rows = step.inner(self._space_of(step.vectors[0]).size), map(self._lines, step.rows)
        lines = [list(rows), *([self._lines(v)[:, :inner] for v in side]
                 for side in (step.cols, step.vectors))]  # fmt: skip
        pairs = [self._new(register) for register in step.out]
        self._outer_averages(step, lines, [out for _, out in pairs])
        self._vectors.update(
            (out, Vector(dense=dense)) for out, (dense, _) in zip(step.out, pairs, strict=True)
        )

    def _scalarmap(self, step: ScalarMap) -> None:
        arguments = [self._scalars[register] for register in step.scalars]
        values = run(lower(step.fn), self._numbers, arguments)
        self._set(step.out, values, lambda: f"the scalar {step.fn.text}")

    def _drawscalar(self, step: DrawScalar) -> None:
        self._scalars[step.out] = step.value + step.std * self.place.numbers(self._normals())

    def _noise(self, step: Noise) -> None:
        found = self._families.get(step.family)
        if found is None:
            found = self._families[step.family] = [NoiseFamily() for _ in self._seeds]
        lines = [
            (self.place.host(self._dense(v)).reshape(self.replicates, -1), self._space_of(v).size)
            for v in step.vectors
        ]
        values = [
            family.draw(step.weights, [(line[r], size) for line, size in lines], float(normal))
            for r, (family, normal) in enumerate(zip(found, self._normals(), strict=True))
        ]
        self._scalars[step.out] = self.place.numbers(values)


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
