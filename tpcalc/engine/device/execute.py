"""Execution of a scheduled script on tensors: all replicates at once, one handler per instruction.

The laws, the draws and the order are those of ``engine/execute``; answers agree with it up to
rounding. Samples stay on the device, as do coefficients and scalars; the host waits once for each
product with a matrix, and at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from tpcalc.engine.device.devices import (
    free_memory,
    is_out_of_memory,
    load_torch,
    resolve_device,
    resolve_dtype,
)
from tpcalc.engine.device.matrices import TOLERANCE, Finite, Haar, Limit
from tpcalc.engine.device.rows import Place, Store, block_of, combine
from tpcalc.engine.device.space import TorchSpace
from tpcalc.engine.device.vectors import Part, Table, Vector, combined, grams, parts_of
from tpcalc.engine.directions_store import SampleSpace
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
    vector_outputs,
)
from tpcalc.engine.needs import memory_needed, too_large
from tpcalc.engine.registers import Registers, generators, handlers, streams
from tpcalc.engine.schedule import Plan
from tpcalc.engine.setting import Outcome, Setting, explosion
from tpcalc.engine.vectors import Key
from tpcalc.errors import Exploded
from tpcalc.functions import Fn
from tpcalc.functions.forms import tiles
from tpcalc.functions.tape import lower, run

TILE = 2**24  # entries of an outer function that are held at once
WIDTH = 2**12  # columns of them, whose sum has the precision of the storage
PIECE = 16  # tensors beside the stores that are put side by side
LOOK = 512  # scalars that are looked at together: the host waits for them


class Workspace(Registers):
    """The tensors of one bundle of replicates."""

    batch = 256

    def __init__(
        self, plan: Plan, setting: Setting, seeds: Sequence[Sequence[int]], place: Place
    ) -> None:
        super().__init__(plan, setting, len(seeds))
        self.place = place
        self._functions = TorchSpace(place.torch, place.dtype, place.device)
        self._numbers = TorchSpace(place.torch, place.torch.float64, place.device)
        self._spaces = {
            space.name: self._space(setting.size(space.ratio), setting.ratio(space.ratio))
            for space in plan.script.spaces
        }
        self._draws = streams(plan, setting, seeds)
        self._chance = generators(seeds)
        self._stores: dict[Key, Store] = {}
        for kind, counts in (("stack", plan.stack_rows), ("starts", plan.start_rows)):
            for name, count in counts.items():
                self._stores[(kind, name, False)] = Store(self._spaces[name], count, place)
        self._tables: dict[Key, Table] = {}
        self._matrices = {matrix.name: self._matrix(matrix) for matrix in plan.script.matrices}
        self._scalars = place.zeros(plan.script.scalars, self.replicates, double=True)
        self._noise: dict[str, NoiseFamily] = {}
        self._unseen: list[tuple[Any, Callable[[], str]]] = []

    def run(self, report: Callable[[float], None]) -> list[Outcome]:
        """Run the replicates."""
        script = self.plan.script
        for index, step in enumerate(script.instructions):
            HANDLERS[type(step)](self, step)
            self._release(index)
            report((index + 1) / len(script.instructions))
        self._look()
        vectors = [self.place.host(self._lines(register)) for register in script.vectors]
        scalars = self.place.host(self._scalars)[list(script.results)].T.tolist()
        return self._outcomes(scalars, vectors)

    # -- set-up --------------------------------------------------------------------------------

    def _space(self, size: int, ratio: float) -> SampleSpace:
        return SampleSpace(size, ratio, block_of(size), self.replicates)

    def _matrix(self, given: Matrix) -> Limit | Finite | Haar:
        mode, name = self.setting.mode, given.name
        spaces, capacities = self._sides(given)
        rows, cols = (self.plan.joint.images[name, side] for side in (False, True))
        draws = self._draws[rows], self._draws[cols]
        tolerance = self.setting.tolerance
        tolerance = TOLERANCE[mode] if tolerance is None else tolerance
        matrix: Limit | Finite | Haar
        if given.law == "orthogonal":
            matrix = Haar(mode, spaces, capacities[0], draws, tolerance, self.place)
        else:
            common = spaces, capacities, draws, tolerance, self.place
            limit = mode == "limit"
            matrix = Limit(*common, adjoint=given.adjoint) if limit else Finite(*common)
        for transpose, capacity in zip((False, True), capacities, strict=True):
            side = matrix.side(transpose)
            self._stores["e", name, transpose] = side.e
            self._stores["q", name, transpose] = side.q.store
            self._tables["q", name, transpose] = Table(self.replicates, capacity, self.place)
        return matrix

    # -- registers -----------------------------------------------------------------------------

    def _normals(self) -> Any:
        """One N(0, 1) draw of each replicate, beside those of spaces."""
        return self.place.numbers([chance.standard_normal() for chance in self._chance])

    def _new(self, register: int) -> tuple[Any, Any]:
        """A vector of zeros, and its samples, one replicate in each row."""
        space = self._space_of(register)
        lines = self.place.zeros(self.replicates, space.padded)
        return lines.view(-1, space.block), lines[:, : space.size]

    def _dense(self, register: int) -> Any:
        """The samples of a vector, formed now if they were not yet."""
        vector = self._vectors[register]
        if vector.dense is None:
            if vector.form is None:
                vector.form, vector.others = self._resolved(register, vector)
            self._form(register, vector)
        return vector.dense

    def _resolved(self, register: int, vector: Vector) -> tuple[Any, Any]:
        """What a vector that is a multiple, or has coordinates alone, is a combination of."""
        one = self.place.zeros(self.replicates, 1, 1, double=True) + 1.0
        part = Part((register,), one, np.ones((1, 1), bool))
        (found,) = combined([part], {register: vector}, self._tables, self._sizes(), self.place)
        return found.form, found.others

    def _sizes(self) -> dict[Key, int]:
        return {key: store.rows for key, store in self._stores.items()}

    def _wait(self, register: int, vector: Vector) -> None:
        """Store a vector that was not formed, beside those that combine the same stores."""
        self._vectors[register] = vector
        if self.plan.dense_until[register] >= 0:
            self._waiting.setdefault(self._class_of(register, vector), []).append(register)

    def _form_together(self, register: int, group: Sequence[Vector]) -> None:
        zeros, space = self.place.zeros, self._space_of(register)
        terms = []
        for key in group[0].form or ():
            forms = [vector.form[key] for vector in group if vector.form is not None]
            widest = max(form.shape[1] for form in forms)
            table = zeros(self.replicates, len(forms), widest, double=True)
            for j, form in enumerate(forms):
                table[:, j, : form.shape[1]] = form
            terms.append((self._stores[key].data, table))
        tensors = {id(tensor): tensor for vector in group for tensor, _ in vector.others}
        names = list(tensors)
        for start in range(0, len(names), PIECE):
            own = {name: place for place, name in enumerate(names[start : start + PIECE])}
            table = zeros(self.replicates, len(group), len(own), double=True)
            for j, vector in enumerate(group):
                for tensor, factor in vector.others:
                    if id(tensor) in own:
                        table[:, j, own[id(tensor)]] += factor
            terms.append((self.place.torch.stack([tensors[name] for name in own], 1), table))
        blocks = self.replicates * space.padded // space.block
        found = combine(terms) if terms else zeros(blocks, len(group), space.block)
        for j, vector in enumerate(group):
            vector.dense = found[:, j].contiguous()
            if vector.others:  # the tensor holds everything; let the others go
                vector.form, vector.others = None, []

    def _set(self, register: int, values: Any, what: Callable[[], str]) -> None:
        """Write a scalar register, whose numbers must be finite; that is looked at later."""
        self._scalars[register] = values
        self._unseen.append((self._scalars[register], what))
        if len(self._unseen) >= LOOK:
            self._look()

    def _look(self) -> None:
        """Raise the error of the first replicate with a scalar that is not finite."""
        if not self._unseen:
            return
        values = self.place.host(self.place.torch.stack([found for found, _ in self._unseen]))
        bad = ~np.isfinite(values)
        if bad.any():
            replicate = int(bad.any(axis=0).argmax())
            first = int(bad[:, replicate].argmax())
            raise explosion(float(values[first, replicate]), self._unseen[first][1]())
        self._unseen.clear()

    def _moment(self, register: int) -> str:
        return f"a moment of {self.plan.script.labels[register] or f'vector {register}'}"

    # -- instructions --------------------------------------------------------------------------

    def _starts(self, step: Starts) -> None:
        key: Key = ("starts", step.space, False)
        space, rank, first = self._spaces[step.space], step.rank, 0
        if rank:
            shape = rank, self.replicates * space.padded // space.block, space.block
            draws = self._draws[self.plan.joint.vectors[step.out[0]]]
            lines = self.place.filled(shape, partial(_fill, draws))
            first = self._stores[key].append(lines.transpose(0, 1))
        table = self.place.zeros(self.replicates, len(step.out), first + rank, double=True)
        factor = np.eye(rank) if step.factor is None else np.array(step.factor)
        if rank:
            table[:, :, first:] = self.place.numbers(factor)
        for index, (mean, register) in enumerate(zip(step.mean, step.out, strict=True)):
            vector = Vector(form={key: table[:, index]} if rank else {})
            self._vectors[register] = vector
            if mean != 0:
                self._lines(register).add_(mean)
                vector.form = None

    def _multiply(self, step: Multiply) -> None:
        matrix = self._matrices[step.matrix]
        inputs = [self._dense(register) for register in step.vectors]
        try:
            product = matrix.multiply(inputs, step.transpose)
        except Exploded:
            self._look()  # what happened before that comes first
            raise
        e: Key = ("e", step.matrix, step.transpose)
        q: Key = ("q", step.matrix, step.transpose)
        q_other: Key = ("q", step.matrix, not step.transpose)
        new = [j for j, one in enumerate(step.vectors) if q not in self._vectors[one].rows]
        if new:
            coords: Any = product.coords
            if len(new) < len(inputs):
                coords = coords.index_select(1, self.place.index(new))
            first = self._tables[q].append(coords)
            for place, j in enumerate(new):
                self._vectors[step.vectors[j]].rows[q] = first + place
        for j, out in enumerate(step.out):
            form: dict[Key, Any] = {}
            if self._stores[e].capacity:
                form[e] = product.coords[:, j]
            if product.echo.shape[2]:
                form[q_other] = product.echo[:, j]
            self._wait(out, Vector(form=form))

    def _sum(self, step: Sum) -> None:
        if len(step.vectors) > 1:
            self._panel(step)
            return
        scalar, number = step.scalars[0], step.numbers[0]
        factor = self._scalars.new_full((self.replicates,), number)
        if scalar is not None:
            factor *= self._scalars[scalar]
        self._vectors[step.out] = Vector(multiple=(self._vectors[step.vectors[0]], factor))

    def _panel(self, step: Sum | Panel) -> None:
        parts = parts_of(step, self._scalars, self.place)
        found = combined(parts, self._vectors, self._tables, self._sizes(), self.place)
        outs = (step.out,) if isinstance(step, Sum) else step.out
        for register, vector in zip(outs, found, strict=True):
            self._wait(register, vector)

    def _gram(self, step: Gram) -> None:
        lefts, rights = ([self._vectors[one] for one in own] for own in (step.lefts, step.rights))
        found = grams(lefts, rights, self._tables, self.place)
        self._scalars[step.out : step.out + found.shape[1]] = found.T

    def _map(self, step: Map) -> None:
        dense, lines = self._new(step.out)
        lines[:] = self._values(step.fn, step.vectors, step.scalars)
        vector = self._vectors[step.out] = Vector(dense=dense)
        if step.out in self.plan.stacked:
            key: Key = ("stack", self.plan.script.vector_space[step.out], False)
            vector.row = (key, self._stores[key].append(dense[:, None]))

    def _values(self, fn: Fn, vectors: Sequence[int], scalars: Sequence[int]) -> Any:
        """Values of a coordinatewise function, or one number."""
        lines = [self._lines(register) for register in vectors]
        numbers = [self._scalars[one][:, None].to(self.place.dtype) for one in scalars]
        return run(lower(fn), self._functions, [*lines, *numbers])

    def _mean(self, step: Mean) -> None:
        values = self._values(step.fn, step.vectors, step.scalars)
        size = self._space_of(step.vectors[0]).size
        if not isinstance(values, float | int):
            values = values.expand(-1, size).sum(1, dtype=self.place.torch.float64) / size
        self._set(step.out, values, partial(self._moment, step.vectors[0]))

    def _dot(self, step: Dot) -> None:
        common = self._vectors[step.vector]
        partners = [self._vectors[other] for other in step.others]
        for key, row in common.rows.items():  # coordinates in a common basis: no sample is read
            if all(key in partner.rows for partner in partners):
                table = self._tables[key]
                rows = table.at([partner.rows[key] for partner in partners])
                found = rows.bmm(table.at([row]).transpose(1, 2))[:, :, 0]
                self._scalars.index_copy_(0, self.place.index(step.out), found.T)
                return
        for other, partner, out in zip(step.others, partners, step.out, strict=True):
            if any(key in partner.rows for key in common.rows):
                self._dot(Dot(step.vector, (other,), (out,)))  # one of them in a common basis
                continue
            left, right = self._lines(step.vector), self._lines(other)
            total = (left * right).sum(1, dtype=self.place.torch.float64)
            self._set(out, total / left.shape[1], partial(self._moment, other))

    def _outer(self, step: Outer) -> None:
        torch, size = self.place.torch, self._space_of(step.vectors[0]).size
        inner = step.inner(size)
        rows = [self._lines(register) for register in step.rows]
        cols, vectors = (
            [self._lines(register)[:, :inner] for register in side]
            for side in (step.cols, step.vectors)
        )
        x = torch.stack(vectors, 2) / inner
        numbers = [self._scalars[one][:, None, None].to(self.place.dtype) for one in step.scalars]
        width = min(inner, WIDTH)
        side = max(TILE // (self.replicates * width), 1), width
        total = self.place.zeros(self.replicates, size, len(vectors), double=True)
        for down, across, block in tiles(
            step.fn, rows, cols, inner, numbers, step.forms, torch, self._functions, side
        ):
            shape = self.replicates, len(range(size)[down]), len(range(inner)[across])
            values = torch.as_tensor(block, dtype=self.place.dtype, device=self.place.device)
            total[:, down] += values.expand(shape).bmm(x[:, across])
        for place, register in enumerate(step.out):
            dense, lines = self._new(register)
            lines[:] = total[:, :, place]
            self._vectors[register] = Vector(dense=dense)

    def _scalar_map(self, step: ScalarMap) -> None:
        arguments = [self._scalars[register] for register in step.scalars]
        values = run(lower(step.fn), self._numbers, arguments)
        self._set(step.out, values, lambda: f"the scalar {step.fn.text}")

    def _noise_draw(self, step: Noise) -> None:
        found = self._noise.get(step.family)
        if found is None:
            found = self._noise[step.family] = NoiseFamily(self.replicates, self.place)
        vectors = [(self._lines(v), self._space_of(v).size) for v in step.vectors]
        self._scalars[step.out] = found.draw(step.weights, vectors, self._normals())


def _fill(draws: Draws, rows: Any) -> None:
    for row in rows:
        draws.fill(row)


HANDLERS = handlers(Workspace)


class NoiseFamily:
    """The law of ``execute.NoiseFamily``; a draw that earlier ones determine is a row of zeros."""

    def __init__(self, replicates: int, place: Place) -> None:
        self._place = place
        self._weights: list[Any] = []
        self._vectors: list[list[Any]] = []
        self._factor = place.zeros(replicates, 0, 0, double=True)
        self._draws = place.zeros(replicates, 0, double=True)

    def draw(
        self, weights: Sequence[float], vectors: Sequence[tuple[Any, int]], normal: Any
    ) -> Any:
        """The values for weights and vectors."""
        torch, known = self._place.torch, self._draws.shape[1]
        self._weights.append(np.array(weights))
        self._vectors.append([vector.clone() for vector, _ in vectors])
        overlaps = torch.stack([self._overlap(k, vectors) for k in range(known + 1)], 1)
        square, pivots = overlaps[:, known], self._factor.diagonal(dim1=1, dim2=2)
        held = torch.where(pivots > 0, overlaps[:, :known], 0.0)
        whole = self._factor + torch.diag_embed((pivots == 0).double())
        row = torch.linalg.solve_triangular(whole, held[:, :, None], upper=False)[:, :, 0]
        row = torch.where(pivots > 0, row, 0.0)
        residual = square - (row * row).sum(1)
        last = torch.where(residual > 1e-12 * square, residual.clamp(min=0).sqrt(), 0.0)
        value = (row * self._draws).sum(1) + last * normal
        grown = self._place.zeros(len(row), known + 1, known + 1, double=True)
        grown[:, :known, :known] = self._factor
        grown[:, known, :known], grown[:, known, known] = row, last
        self._factor, self._draws = grown, torch.cat([self._draws, normal[:, None]], 1)
        return value

    def _overlap(self, index: int, vectors: Sequence[tuple[Any, int]]) -> Any:
        """The covariances of an earlier draw and the last one."""
        total = float(np.dot(self._weights[index], self._weights[-1]))
        found = self._place.zeros(len(self._draws), double=True) + total
        for x, (y, size) in zip(self._vectors[index], vectors, strict=True):
            found = found * (x * y).sum(1, dtype=self._place.torch.float64) / size
        return found


CPU_BUNDLE = 2**29  # bytes: larger bundles are no faster there, and smaller ones can be stopped
WORK = 6  # copies of the largest batch while it is multiplied


def run_on_device(
    plan: Plan,
    setting: Setting,
    seeds: Sequence[Sequence[int]],
    memory_limit: int | None,
    report: Callable[[float], None],
) -> list[Outcome]:
    """Run one replicate for each seed, in the order of the seeds."""
    torch, device = load_torch(), resolve_device(str(setting.device))
    place = Place(torch, device, resolve_dtype(setting.storage))
    needed = _needed(plan, setting)
    limit = free_memory(device) // 2 if memory_limit is None else memory_limit
    if needed > limit:
        raise too_large(setting, needed, limit, f" on {device}")
    if device.type == "cpu":
        limit = min(limit, max(CPU_BUNDLE, needed))
    size = max(1, limit // needed)
    outcomes: list[Outcome] = []
    while len(outcomes) < len(seeds):
        part = seeds[len(outcomes) : len(outcomes) + size]
        done = len(outcomes)

        def told(fraction: float, done: int = done, count: int = len(part)) -> None:
            report((done + fraction * count) / len(seeds))

        found = _bundle(plan, setting, part, place, told)
        if found is not None:
            outcomes += found
            continue
        if device.type == "cuda":  # here no traceback keeps the tensors alive
            torch.cuda.empty_cache()
        if len(part) == 1:
            raise too_large(setting, needed, limit, f" on {device}, which refused it")
        size = len(part) // 2
    return outcomes


def _bundle(
    plan: Plan,
    setting: Setting,
    seeds: Sequence[Sequence[int]],
    place: Place,
    report: Callable[[float], None],
) -> list[Outcome] | None:
    """Replicates side by side; None where the device has no memory for them."""
    try:
        with place.torch.inference_mode(), _whole_precision(place.torch):
            return Workspace(plan, setting, seeds, place).run(report)
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(place.torch, error):
            raise
        return None


@contextmanager
def _whole_precision(torch: Any) -> Iterator[None]:
    """Products of float32 numbers without TF32, whatever the program around asked for."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def _needed(plan: Plan, setting: Setting) -> int:
    """Bytes of one replicate."""
    batch = max((len(vector_outputs(step)) for step in plan.script.instructions), default=0)
    widest = max((setting.size(space.ratio) for space in plan.script.spaces), default=0)
    return memory_needed(plan, setting) + WORK * batch * widest * 8
