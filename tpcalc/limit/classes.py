"""Classes of cells: along the axis of a stack powers of n may differ from cell to cell.

All cells begin in one class. Where two of one class differ, the classes are refined for all values
along axes of that name, so that they meet class by class, and the program is derived again. What
has such an axis and is alike along it is divided where it meets what is not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from tpcalc.limit.context import Context, Record
from tpcalc.limit.graph import LNode, LRef, Total
from tpcalc.limit.pieces import Value
from tpcalc.limit.series import Remainder, Series, one
from tpcalc.program.base import Table, references
from tpcalc.program.nodes import Data, Ref, Rename, Stack
from tpcalc.program.types import Axes
from tpcalc.results.data import grouped

Rule = Callable[[Any, Ref, Any, Context], Any]
Numbers = Mapping[str, int]  # for axes the number of a class


class Uneven(Exception):
    """Cells of one class have different powers of n."""

    def __init__(self, axis: str, values: Mapping[int, object], leaves: bool = False) -> None:
        super().__init__(axis)
        self.axis, self.found, self.leaves = axis, values, leaves


@dataclass(frozen=True)
class Classed:
    """A value with a series for each class of cells along some axes."""

    axes: tuple[str, ...]  # the axes; in a class they have the cells of the class
    parts: Mapping[tuple[int, ...], Value]  # for a class along each of them the series

    def within(self, numbers: Numbers) -> Classed | Value:
        """What is left of it in some classes."""
        left = tuple(axis for axis in self.axes if axis not in numbers)
        parts: dict[tuple[int, ...], Value] = {}
        for key, part in self.parts.items():
            where = dict(zip(self.axes, key, strict=True))
            if all(where.get(axis, number) == number for axis, number in numbers.items()):
                parts[tuple(where[axis] for axis in left)] = part
        return Classed(left, parts) if left else parts[()]

    def cut(self, axis: str, cells: Sequence[int], context: Context) -> Classed:
        """Some cells along an axis that it has no classes along."""
        parts = {key: _divided(part, axis, cells, context) for key, part in self.parts.items()}
        return Classed(self.axes, parts)


def leaf(value: Value, axes: Axes, context: Context) -> Classed | Value:
    """What is given or drawn, class by class along the axes that data divide."""
    names = context.divided(axes)
    cells = [_cells(name, dict(axes)[name], context) for name in names]
    parts: dict[tuple[int, ...], Value] = {}
    for key in product(*cells) if names else ():
        own = value
        for name, number, held in zip(names, key, cells, strict=True):
            own = _divided(own, name, held[number], context)
        parts[key] = own
    return Classed(tuple(names), parts) if names else value


@dataclass
class _Chosen:
    """The values of a program, of those with some axes what is in a class along them."""

    values: Sequence[Any]
    numbers: Numbers
    context: Context
    _held: dict[Ref, Any] = field(default_factory=dict)

    def __getitem__(self, ref: Ref) -> Any:
        if ref not in self._held:
            self._held[ref] = self._chosen(ref)
        return self._held[ref]

    def _chosen(self, ref: Ref) -> Any:
        found = self.values[ref]
        held = found.axes if isinstance(found, Classed) else ()
        if held:
            found = found.within(self.numbers)
        sizes = {} if found is None else dict(self.context.program.types[ref].axes)
        for axis, number in self.numbers.items():
            if axis in sizes and axis not in held:
                cells = _cells(axis, sizes[axis], self.context)[number]
                found = found.cut(axis, cells, self.context) if isinstance(found, Classed) else (
                    _divided(found, axis, cells, self.context))  # fmt: skip
        return found


def _cells(axis: str, size: int, context: Context) -> dict[int, list[int]]:
    """The cells of each class along an axis; those not seen yet are as the last one."""
    known = context.record.classes.get(axis, {0: 0})
    return grouped(range(size), lambda cell: known.get(cell, known[max(known)]))


def cells_of(values: Any, axis: str, size: int, context: Context) -> tuple[int, list[int]]:
    """The class along an axis that values are chosen in, and its cells."""
    number = values.numbers.get(axis) if isinstance(values, _Chosen) else None
    return (
        (0, list(range(size))) if number is None else (number, _cells(axis, size, context)[number])
    )


def _divided(value: Value, axis: str, cells: Sequence[int], context: Context) -> Value:
    """Some cells of a value that is alike in all of them."""
    terms = []
    for power, item in value.terms:
        size = dict(context.axes[item]).get(axis)
        if size is not None and size != len(cells):
            own = _SOME(context.nodes[item], context, item, axis, cells)
            if own is None:
                continue
            item = own
        terms.append((power, item))
    return Series(tuple(terms), value.rest, value.soft, value.drift)


def _some_data(node: Data, context: Context, item: LRef, axis: str, cells: Sequence[int]) -> Any:
    names = [name for name, _ in node.axes]
    array = np.array(node.values, dtype=object).reshape([size for _, size in node.axes])
    found = array.take(cells, names.index(axis)).ravel().tolist()
    if not any(found):
        return None
    axes = tuple((name, len(cells) if name == axis else size) for name, size in node.axes)
    return context.add(Data(f"{node.name} at {axis}={cells}", tuple(found), axes), None)


def _some_of_stack(
    node: Stack, context: Context, item: LRef, axis: str, cells: Sequence[int]
) -> LRef:
    dim = context.dims[item]
    if node.axis == axis:
        return context.add(Stack(tuple(node.of[cell] for cell in cells), axis), dim)
    return _some(node, context, item, axis, cells)


def _some(node: LNode, context: Context, item: LRef, axis: str, cells: Sequence[int]) -> LRef:
    """Cells of a block, as the sum over all of them of those that are meant."""
    size, dim, whole = dict(context.axes[item])[axis], context.dims[item], f"all_{axis}"
    renamed = context.add(Rename(item, ((axis, whole),)), dim)
    marks = tuple(Fraction(int(k == cell)) for k in range(size) for cell in cells)
    chosen = Data(f"{axis}={cells}:{size}", marks, ((whole, size), (axis, len(cells))))
    total = Total((Fraction(1),), (context.add(chosen, None),), (renamed,), ((whole,),))
    return context.add(total, dim)


_SOME: Table[LRef | None] = Table({Data: _some_data, Stack: _some_of_stack}, _some)


def _axes(refs: Iterable[Ref], values: Any) -> list[str]:
    """The axes along which one of some values has classes."""
    found = (values[ref] for ref in refs)
    return list(dict.fromkeys(a for own in found if isinstance(own, Classed) for a in own.axes))


def classes(
    refs: Iterable[Ref], values: Any, names: Iterable[str], context: Context
) -> Iterator[tuple[Any, Numbers, Mapping[str, int]]]:
    """The values that a rule sees, class by class of its arguments."""
    refs, names = list(refs), list(names)
    axes = [axis for axis in _axes(refs, values) if axis in names]
    if not axes:
        yield values, {}, {}
        return
    sizes = {name: size for ref in refs for name, size in context.program.types[ref].axes}
    cells = [_cells(axis, sizes[axis], context) for axis in axes]
    for key in product(*cells):
        numbers = dict(zip(axes, key, strict=True))
        counts = {axis: len(own[numbers[axis]]) for axis, own in zip(axes, cells, strict=True)}
        yield _Chosen(values, numbers, context), numbers, counts


def by_class(rule: Rule) -> Rule:
    """A rule of values that are alike in all cells, for those with classes of cells."""

    def every(node: Any, ref: Ref, values: Any, context: Context) -> Any:
        refs = references(node)
        if not _axes(refs, values):
            return rule(node, ref, values, context)
        new = dict(getattr(node, "names", ()))
        kept = {name for name, _ in context.program.types[ref].axes}
        names = [name for name in _axes(refs, values) if new.get(name, name) in kept]
        for name in names:
            if name in new:
                _agree(name, new[name], dict(context.program.types[ref].axes), context)
        parts: dict[tuple[int, ...], Value] = {}
        for own, numbers, _ in classes(refs, values, names, context):
            parts[tuple(numbers.values())] = rule(node, ref, own, context)
        held = tuple(new.get(name, name) for name in names)
        return Classed(held, parts) if held else parts[()]

    return every


def _agree(old: str, new: str, sizes: Mapping[str, int], context: Context) -> None:
    """Axes that are renamed into each other have the same classes."""
    known = context.record.classes
    one, other = (
        {cell: number for number, cells in _cells(axis, sizes[new], context).items()
         for cell in cells}
        for axis in (old, new)
    )  # fmt: skip
    both = {cell: (one[cell], other[cell]) for cell in one}
    for axis, own in ((new, other), (old, one)):
        if len(set(both.values())) > len(set(own.values())):
            raise Uneven(axis, both)
    if known.get(old) != known.get(new):  # alike, but numbered differently
        known[new] = dict(known[old])
        raise Uneven(new, known[old])


def stacked(node: Stack, ref: Ref, values: Any, context: Context) -> Any:
    """The series of a stack, by classes where there are several."""
    found: dict[tuple[int, ...], Value] = {}
    others = _axes(node.of, values)
    for own, numbers, _ in classes(node.of, values, others, context):
        for number, part in _stacks(node, own, context).items():
            found[(*numbers.values(), number)] = part
    numbers_here = {key[-1] for key in found}
    if len(numbers_here) > 1:
        return Classed((*others, node.axis), found)
    parts = {key[:-1]: part for key, part in found.items()}
    return Classed(tuple(others), parts) if others else parts[()]


def _stacks(node: Stack, values: Any, context: Context) -> dict[int, Value]:
    """For each class along the axis of a stack its series."""
    groups = _cells(node.axis, len(node.of), context)
    items = [values[one] for one in node.of]
    keys = [tuple(power for power, _ in item.terms) for item in items]
    if any(len({keys[cell] for cell in cells}) > 1 for cells in groups.values()):
        numbers = {cell: number for number, cells in groups.items() for cell in cells}
        raise Uneven(node.axis, {cell: (numbers[cell], key) for cell, key in enumerate(keys)})
    return {
        number: _series([items[cell] for cell in cells], node.axis, context)
        for number, cells in groups.items()
    }


def refine(record: Record, uneven: Uneven) -> None:
    """Put down classes of cells after some were found to differ."""
    known = record.classes.get(uneven.axis, {})
    keys = {**{cell: (number, None) for cell, number in known.items()}, **uneven.found}
    numbers: dict[object, int] = {}
    record.classes[uneven.axis] = {
        cell: numbers.setdefault(keys[cell], len(numbers)) for cell in sorted(keys)
    }
    if uneven.leaves:
        record.divided = frozenset({*(record.divided or ()), uneven.axis})


def _series(items: Sequence[Value], axis: str, context: Context) -> Value:
    """One series for values with the same powers."""
    ranking = context.ranking
    terms: dict[Any, LRef] = {}
    for place, (power, first) in enumerate(items[0].terms):
        cells = tuple(item.terms[place][1] for item in items)
        terms[power] = context.add(Stack(cells, axis), context.dims[first])

    def bounds(name: str) -> list[Any]:
        return list(
            dict.fromkeys(own for item in items if (own := getattr(item, name)) is not None)
        )

    if not terms and not any(not item.is_zero for item in items):
        return Series(())
    return ranking.keep(terms, Remainder(*map(bounds, ("rest", "soft", "drift"))), one)
