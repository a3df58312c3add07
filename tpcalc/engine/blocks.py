"""Scripts of values with named axes: each cell has a register, sums and inner products are panels.

What the nodes of a graph or of a program become is a table of their own reading; here is what these
share. A stack, or another name of an axis, is a view of registers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, product
from math import prod
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tpcalc.arrays import Array, Index
from tpcalc.engine.instructions import Gram, Instruction, Outer, Panel, PanelTerm, ScalarMap
from tpcalc.functions import Const, Expr, Fn, Par, const
from tpcalc.functions.expr import add, mul, substitute
from tpcalc.functions.numbers import Number

Cell = tuple[int, ...]
Registers = Index
Where = Mapping[str, int]
NONE = const(0)


class OuterNode(Protocol):
    """An outer function, of a limit graph or of a program."""

    @property
    def fn(self) -> Fn: ...
    @property
    def rows(self) -> tuple[int, ...]: ...
    @property
    def cols(self) -> tuple[int, ...]: ...
    @property
    def scalars(self) -> tuple[int, ...]: ...
    @property
    def vector(self) -> int: ...
    @property
    def forms(self) -> tuple[int, ...]: ...
    @property
    def over(self) -> tuple[str, ...]: ...


@dataclass(kw_only=True)
class Writer:
    """A script under construction."""

    spaces: list[str] = field(default_factory=list)  # the space of each vector register
    labels: list[str] = field(default_factory=list)  # a name for each, or ""
    scalars: int = 0  # how many scalar registers there are
    out: list[Instruction] = field(default_factory=list)  # the instructions
    # numbers that are given, by their registers
    known: dict[int, float] = field(default_factory=dict)
    _places: dict[float, int] = field(default_factory=dict)

    def new_vector(self, dim: str, label: str = "") -> int:
        """A register of a vector."""
        self.spaces.append(dim)
        self.labels.append(label)
        return len(self.spaces) - 1

    def new_scalar(self, count: int = 1) -> int:
        """A register of a scalar, or the first of several."""
        self.scalars += count
        return self.scalars - count

    def constant(self, value: float) -> int:
        """The register of a given number."""
        if value not in self._places:
            self._places[value] = out = self.new_scalar()
            self.known[out] = value
            self.out.append(ScalarMap(Fn(const(value), 0), (), out))
        return self._places[value]

    def functions(self, fn: Fn, cells: Iterable[tuple[int, ...]]) -> list[int]:
        """The registers of a function of scalars cell by cell, in which given numbers are folded.

        What has a factor 0 is 0, and what is one of its arguments has its register.
        """
        folded: dict[tuple[float | None, ...], tuple[Fn, tuple[int, ...]]] = {}
        found: list[int] = []
        for cell in cells:
            given = tuple([self.known.get(register) for register in cell])
            if given not in folded:
                numbers: dict[Expr, Expr] = {
                    Par(k): const(value) for k, value in enumerate(given) if value is not None
                }
                whole = Fn(substitute(fn.expr, numbers), 0, fn.scalars) if numbers else fn
                own, _, used = whole.compact()
                folded[given] = own, used
            own, used = folded[given]
            if isinstance(own.expr, Const):
                found.append(self.constant(float(own.expr.value)))
            elif own.expr == Par(0):
                found.append(cell[used[0]])
            else:
                found.append(self.new_scalar())
                self.out.append(ScalarMap(own, tuple([cell[k] for k in used]), found[-1]))
        return found


@dataclass
class Blocks:
    """The registers of values with axes."""

    writer: Writer  # the script
    axes: Sequence[Sequence[tuple[str, int]]]  # the axes of each value, with their sizes
    dims: Sequence[str | None]  # the space of each vector; None of a scalar
    named: Callable[[int, Cell], str] = lambda ref, cell: ""  # the label of a cell of a vector
    # the registers of each value, an array with its axes
    held: dict[int, Registers] = field(default_factory=dict)
    given: dict[int, Array] = field(default_factory=dict)  # numbers that no register holds yet

    def sizes(self, ref: int) -> dict[str, int]:
        """The axes of a value."""
        return dict(self.axes[ref])

    def along(self, array: NDArray[Any], ref: int, names: Sequence[str]) -> NDArray[Any]:
        """What a value has in each cell, with these axes in this order; 1 where it lacks one."""
        own = list(self.sizes(ref))
        moved = array.transpose([own.index(name) for name in names if name in own])
        return np.expand_dims(moved, [i for i, name in enumerate(names) if name not in own])

    def registers(self, ref: int) -> Registers:
        """Those of a value; given numbers get some when a function reads them."""
        if ref not in self.held:
            cells = self.given[ref]
            found = [self.writer.constant(value) for value in cells.ravel().tolist()]
            self.held[ref] = np.array(found).reshape(cells.shape)
        return self.held[ref]

    def fresh(self, ref: int) -> Registers:
        """New registers for all cells of a value."""
        shape, dim = tuple(self.sizes(ref).values()), self.dims[ref]
        count = int(np.prod(shape))
        if dim is None:
            first = self.writer.new_scalar(count)
            found = np.arange(first, first + count)
        else:
            cells = np.ndindex(*shape)
            found = np.array([self.writer.new_vector(dim, self.named(ref, c)) for c in cells])
        self.held[ref] = found.reshape(shape)
        return self.held[ref]

    def cells(self, ref: int, operands: Sequence[int]) -> Iterator[tuple[int, At]]:
        """For each cell of a new value its register, and where those of its operands are."""
        for operand in operands:
            self.registers(operand)  # of data they are written first
        out, sizes = self.fresh(ref), self.sizes(ref)
        for cell in product(*(range(size) for size in sizes.values())):
            yield int(out[cell]), At(self, dict(zip(sizes, cell, strict=True)))

    def applied(self, ref: int, fn: Fn, scalars: Sequence[int]) -> None:
        """A function of scalars."""
        for scalar in scalars:
            self.registers(scalar)
        sizes = self.sizes(ref)
        cells = product(*(range(size) for size in sizes.values()))
        places = (At(self, dict(zip(sizes, cell, strict=True))) for cell in cells)
        found = self.writer.functions(fn, (at.all(scalars) for at in places))
        self.held[ref] = np.array(found).reshape(tuple(sizes.values()))

    def data(self, ref: int, values: Sequence[Number]) -> None:
        """Given numbers."""
        shape = tuple(self.sizes(ref).values())
        self.given[ref] = np.array([float(value) for value in values]).reshape(shape)

    def rename(self, ref: int, of: int) -> None:
        """A value under other names of its axes."""
        if of in self.given:
            self.given[ref] = self.given[of]
        else:
            self.held[ref] = self.held[of]

    def stack(self, ref: int, of: Sequence[int], axis: str) -> None:
        """Values beside each other."""
        sizes = self.sizes(ref)
        names = [name for name in sizes if name != axis]
        shape = tuple(sizes[name] for name in names)
        cells = [np.broadcast_to(self.along(self.registers(one), one, names), shape) for one in of]
        self.held[ref] = np.stack(cells, list(sizes).index(axis))

    def gram(self, ref: int, left: int, right: int) -> bool:
        """The average of a product, where each has axes of its own; else nothing is written."""
        one, two, kept = self.sizes(left), self.sizes(right), self.sizes(ref)
        shared = [name for name in one if name in two]
        sides = [name for name in one if name not in shared], [n for n in two if n not in shared]
        if not all(sides):
            return False
        lefts, rights = (
            self.along(self.registers(side), side, [*shared, *own])
            .reshape(prod(kept[name] for name in shared), -1)
            .tolist()
            for side, own in zip((left, right), sides, strict=True)
        )
        count = len(lefts[0]) * len(rights[0])
        first = self.writer.new_scalar(len(lefts) * count)
        for cell, pair in enumerate(zip(lefts, rights, strict=True)):
            self.writer.out.append(Gram(tuple(pair[0]), tuple(pair[1]), first + cell * count))
        names = [*shared, *sides[0], *sides[1]]
        found = np.arange(first, self.writer.scalars).reshape([kept[name] for name in names])
        self.held[ref] = found.transpose([names.index(name) for name in kept])
        return True

    def outer(self, ref: int, node: OuterNode, columns: int = 0) -> None:
        """An outer function: its values are formed once, and multiplied with all other cells."""
        kept, out = self.sizes(ref), self.fresh(ref)
        refs = (*node.rows, *node.cols, *node.scalars)
        read = {name for ref in refs for name in self.sizes(ref)}
        own = [name for name in kept if name in read]
        rest = [name for name in kept if name not in read]

        def cells(value: int, more: Mapping[str, int]) -> list[list[int]]:
            """The registers of a value: for each cell of the function those along other axes."""
            names = [*own, *more]
            shape = [*(kept[name] for name in own), *more.values()]
            found = np.broadcast_to(self.along(self.registers(value), value, names), shape)
            listed: list[list[int]] = found.reshape(prod(kept[name] for name in own), -1).tolist()
            return listed

        summed: list[dict[str, int]] = []  # of each row and of its column
        for pair in zip(node.rows, node.cols, strict=True) if node.forms else ():
            both = {name: size for side in pair for name, size in self.sizes(side).items()}
            summed.append({name: size for name, size in both.items() if name in node.over})
        lists = [
            [cells(side, summed[k] if summed else {}) for k, side in enumerate(sides)]
            for sides in (node.rows, node.cols)
        ]
        numbers = [cells(scalar, {}) for scalar in node.scalars]
        forms = (
            [form] * prod(more.values()) for form, more in zip(node.forms, summed, strict=True)
        )
        every = tuple(chain(*forms))
        vectors = cells(node.vector, {name: kept[name] for name in rest})
        outs = out.transpose([list(kept).index(name) for name in (*own, *rest)])
        found = outs.reshape(len(vectors), -1).tolist()
        for cell, (vector, into) in enumerate(zip(vectors, found, strict=True)):
            rows, cols, scalars = (
                tuple(chain(*(one[cell] for one in side))) for side in (*lists, numbers)
            )
            self.writer.out.append(
                Outer(node.fn, rows, cols, scalars, tuple(vector), tuple(into), every, columns)
            )

    def total(
        self,
        ref: int,
        numbers: Sequence[Number],
        scalars: Sequence[int | None],
        vectors: Sequence[int],
        over: Sequence[Sequence[str]],
    ) -> None:
        """A sum of number * scalar * vector in which terms are summed over axes."""
        parts = list(zip(numbers, scalars, vectors, over, strict=True))
        if len(parts) == 1 and self._chooses(ref, *parts[0]):
            return
        if self.dims[ref] is None:
            self._scalar_total(ref, parts)
            return
        out, kept = self.fresh(ref), self.sizes(ref)
        terms = tuple(self._term(float(x), s, v, axes, kept) for x, s, v, axes in parts)
        self.writer.out.append(Panel(terms, tuple(out.ravel().tolist())))

    def _chooses(
        self, ref: int, number: Number, scalar: int | None, vector: int, over: Sequence[str]
    ) -> bool:
        """Whether a sum only chooses cells of a block, whose registers it then is a view of."""
        if number != 1 or scalar is None or scalar not in self.given or not over:
            return False
        marks, own, sizes = self.given[scalar], self.sizes(scalar), self.sizes(vector)
        if not {*over} <= own.keys() or not {*over} <= sizes.keys():
            return False
        kept = [name for name in own if name not in over]
        if {*kept} & sizes.keys() or not np.isin(marks, (0.0, 1.0)).all():
            return False
        table = self.along(marks, scalar, [*kept, *over]).reshape(
            prod(own[name] for name in kept), -1
        )
        if (table.sum(axis=1) != 1).any():
            return False
        rest = [name for name in sizes if name not in over]
        found = self.along(
            self.given[vector] if vector in self.given else self.registers(vector),
            vector,
            [*over, *rest],
        )
        flat = found.reshape(table.shape[1], *(sizes[name] for name in rest))
        shape = (*(own[name] for name in kept), *(sizes[name] for name in rest))  # () of one cell
        chosen = flat[table.argmax(axis=1)].reshape(shape)
        names = [*kept, *rest]
        held = chosen.transpose([names.index(name) for name in self.sizes(ref)])
        if vector in self.given:
            self.given[ref] = held
        else:
            self.held[ref] = held
        return True

    def _term(
        self,
        number: float,
        scalar: int | None,
        vector: int,
        over: Sequence[str],
        kept: Mapping[str, int],
    ) -> PanelTerm:
        """One term of a panel: a row for each cell of the vector, a column for each output."""
        sizes = dict(self.sizes(vector))
        own = {} if scalar is None else self.sizes(scalar)
        sizes |= {name: size for name, size in own.items() if name in over}
        each = not over and sizes == kept
        outs = list(kept)
        rows = outs if each else list(sizes)
        shape = tuple(sizes[name] for name in rows)
        vectors = np.broadcast_to(self.along(self.registers(vector), vector, rows), shape).ravel()
        outer = [] if each else [name for name in outs if name not in sizes]
        whole = (*shape, *(kept[name] for name in outer))
        numbers: Array = np.broadcast_to(np.float64(number), whole)
        registers: Registers | None = None
        if scalar is not None and scalar in self.given:
            numbers = number * np.broadcast_to(
                self.along(self.given[scalar], scalar, [*rows, *outer]), whole
            )
        elif scalar is not None:
            found = self.along(self.registers(scalar), scalar, [*rows, *outer])
            registers = np.broadcast_to(found, whole)
        if each:
            numbers = numbers.ravel()
            registers = None if registers is None else registers.ravel()
        else:
            numbers, *more = (
                _matrix(array, rows, outs, outer, sizes, kept)
                for array in (numbers, *(() if registers is None else (registers,)))
            )
            registers = more[0] if more else None
            numbers = numbers * _matching(rows, outs, over, sizes, kept)
        return PanelTerm(tuple(vectors.tolist()), numbers, registers, each)

    def _scalar_total(
        self, ref: int, parts: Sequence[tuple[Number, int | None, int, Sequence[str]]]
    ) -> None:
        """The sum for each cell as a function of all numbers in it; of given numbers a number."""
        kept, plans = self.sizes(ref), []
        for number, scalar, other, over in parts:
            factors = [other] if scalar is None else [other, scalar]
            own = {name: size for one in factors for name, size in self.sizes(one).items()}
            cells = product(*(range(own[name]) for name in over))
            plans.append(
                (const(number), factors, [dict(zip(over, at, strict=True)) for at in cells])
            )
        found: list[tuple[Fn, tuple[int, ...]]] = []
        known: dict[tuple[tuple[Any, ...], ...], tuple[Fn, tuple[int, ...]]] = {}  # cells are alike
        for cell in product(*(range(size) for size in kept.values())):
            held: dict[int, int] = {}
            terms: list[tuple[Any, ...]] = []
            here = dict(zip(kept, cell, strict=True))
            for times, factors, inner in plans:
                for at in inner:
                    own_parts = [self._part(one, {**here, **at}, held) for one in factors]
                    if NONE not in own_parts:
                        terms.append((times, *own_parts))
            if (key := tuple(terms)) not in known:
                fn, _, used = Fn(add((NONE, *map(mul, terms))), 0, len(held)).compact()
                known[key] = fn, used
            fn, used = known[key]
            found.append((fn, tuple(list(held)[k] for k in used)))
        values = [fn.expr.value for fn, _ in found if isinstance(fn.expr, Const)]
        if len(values) == len(found):
            self.data(ref, values)
            return
        outs = [self.writer.functions(fn, [registers])[0] for fn, registers in found]
        self.held[ref] = np.array(outs).reshape(tuple(kept.values()))

    def _part(self, ref: int, where: Where, held: dict[int, int]) -> Expr:
        """A number at a cell: itself where it is given, else an argument."""
        at = tuple(where[name] for name in self.sizes(ref))
        if ref in self.given:
            return const(float(self.given[ref][at]))
        register = int(self.registers(ref)[at])
        if register in self.writer.known:
            return const(self.writer.known[register])
        return Par(held.setdefault(register, len(held)))


class At:
    """The registers of values at one cell."""

    def __init__(self, blocks: Blocks, where: Where) -> None:
        self.blocks, self.where = blocks, where

    def __getitem__(self, ref: int) -> int:
        cell = tuple(self.where[name] for name in self.blocks.sizes(ref))
        return int(self.blocks.registers(ref)[cell])

    def all(self, refs: Sequence[int]) -> tuple[int, ...]:
        """The registers of some values."""
        return tuple([self[ref] for ref in refs])

    def along(self, axes: Mapping[str, int]) -> Iterator[At]:
        """This cell with further axes, for each of their cells."""
        for cell in product(*(range(size) for size in axes.values())):
            yield At(self.blocks, {**self.where, **dict(zip(axes, cell, strict=True))})


def _matrix(
    array: NDArray[Any],
    rows: Sequence[str],
    outs: Sequence[str],
    outer: Sequence[str],
    sizes: Mapping[str, int],
    kept: Mapping[str, int],
) -> NDArray[Any]:
    """Entries by rows and other axes as a matrix of rows and outputs."""
    shape = [sizes[name] for name in rows] + [kept[name] if name in outer else 1 for name in outs]
    full = [sizes[name] for name in rows] + [kept[name] for name in outs]
    height = int(np.prod([sizes[name] for name in rows]))
    return np.broadcast_to(array.reshape(shape), full).reshape(height, -1)


def _matching(
    rows: Sequence[str],
    outs: Sequence[str],
    over: Sequence[str],
    sizes: Mapping[str, int],
    kept: Mapping[str, int],
) -> Array | float:
    """1 where the cell of a row is that of an output along all axes that they share.

    An axis that is summed is not shared: outputs have it of another term.
    """
    shared = [name for name in outs if name in rows and name not in over]
    if not shared:
        return 1.0
    own = np.indices([sizes[name] for name in rows]).reshape(len(rows), -1)
    other = np.indices([kept[name] for name in outs]).reshape(len(outs), -1)
    same = [own[rows.index(name)][:, None] == other[outs.index(name)][None, :] for name in shared]
    return np.array(np.logical_and.reduce(same), dtype=np.float64)
