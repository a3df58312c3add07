"""Classes of cells: along the axis of a stack powers of n may differ from cell to cell.

All cells begin in one class. Where two of one class differ, the classes are refined for all stacks
along axes of that name, so that they meet class by class, and the program is derived again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from tpcalc.limit.axes import NeedsCells
from tpcalc.limit.context import Context
from tpcalc.limit.graph import LRef
from tpcalc.limit.pieces import Value
from tpcalc.limit.series import Series
from tpcalc.program.base import references
from tpcalc.program.nodes import Data, Ref, Stack
from tpcalc.program.views import data_of

__all__ = ["Classed", "Uneven", "by_class", "classes", "refined", "stacked"]

Rule = Callable[[Any, Ref, list[Any], Context], Any]


class Uneven(Exception):
    """Cells of one class have different powers of n.

    Args:
        axis: The axis.
        found: For each cell what its class is from now on.
    """

    def __init__(self, axis: str, found: Mapping[int, object]) -> None:
        super().__init__(axis)
        self.axis, self.found = axis, found


@dataclass(frozen=True)
class Classed:
    """A value with a series for each class of cells along an axis.

    Args:
        axis: The axis; in a class it has the cells of the class.
        parts: The series, and which cells each is of.
    """

    axis: str
    parts: Mapping[int, tuple[Value, tuple[int, ...]]]


@dataclass(frozen=True)
class _Chosen:
    """The values of a program, of those with classes the part of one class."""

    values: Sequence[Any]
    number: int
    given: Mapping[Ref, Any]

    def __getitem__(self, ref: Ref) -> Any:
        found = self.given.get(ref, self.values[ref])
        return found.parts[self.number][0] if isinstance(found, Classed) else found


def classes(
    refs: Iterable[Ref], values: Sequence[Any], context: Context
) -> Iterator[tuple[Any, str, int]]:
    """The values that a rule sees, class by class of its arguments, with the axis and its cells.

    Args:
        refs: The arguments.
        values: Of the program.
        context: The derivation.

    Raises:
        NeedsCells: Classes along several axes, or beside what is computed and has none.
    """
    refs = list(refs)
    found = [values[ref] for ref in refs if isinstance(values[ref], Classed)]
    if not found:
        yield values, "", 0
        return
    axis = found[0].axis
    types = context.program.types
    given: dict[Ref, list[tuple[Value, tuple[int, ...]]]] = {}
    for ref in refs:
        own = values[ref]
        if not isinstance(own, Classed) and axis in dict(types[ref].axes):
            parts = found[0].parts.values()
            given[ref] = [(_given_part(own, axis, cells, context), cells) for _, cells in parts]
        elif isinstance(own, Classed) and own.axis != axis:
            raise NeedsCells(f"powers of n differ along {axis!r} and along {own.axis!r}")
    for place, (number, (_, cells)) in enumerate(found[0].parts.items()):
        chosen = {ref: parts[place][0] for ref, parts in given.items()}
        yield _Chosen(values, number, chosen), axis, len(cells)


def _given_part(value: Value, axis: str, cells: Sequence[int], context: Context) -> Value:
    """The part of some cells of what has no classes: numbers that are given are divided."""
    items: dict[Any, LRef] = {}
    for power, ref in value.terms:
        node = data_of(context.nodes[ref])
        if axis not in dict(context.axes[ref]):
            items[power] = ref
            continue
        if node is None:
            raise NeedsCells(f"powers of n differ along {axis!r}, and a computed value has no part")
        sizes = [size for _, size in node.axes]
        place = [name for name, _ in node.axes].index(axis)
        chosen = np.arange(prod(sizes)).reshape(sizes).take(cells, axis=place)
        numbers = tuple(node.values[k] for k in chosen.flat)
        held = tuple((name, len(cells) if name == axis else size) for name, size in node.axes)
        if any(numbers):
            items[power] = context.add(Data(f"{node.name}{list(cells)}", numbers, held), None)
    return Series(tuple(items.items()), value.rest, value.soft, value.drift)


def by_class(rule: Rule) -> Rule:
    """A rule of values that are alike in all cells, for those with classes of cells.

    Args:
        rule: The rule.
    """

    def every(node: Any, ref: Ref, values: list[Any], context: Context) -> Any:
        refs = references(node)
        if not any([isinstance(values[one], Classed) for one in refs]):
            return rule(node, ref, values, context)
        names = {name for name, _ in context.program.types[ref].axes}
        axis = next(own.axis for one in refs if isinstance(own := values[one], Classed))
        renamed = dict(getattr(node, "names", ())).get(axis, axis)
        if renamed not in names:  # it is summed
            return rule(node, ref, values, context)
        cells = next(own.parts for one in refs if isinstance(own := values[one], Classed))
        parts = {
            part.number: (rule(node, ref, part, context), cells[part.number][1])
            for part, _, _ in classes(refs, values, context)
        }
        return Classed(renamed, parts)

    return every


def stacked(node: Stack, ref: Ref, values: list[Any], context: Context) -> Any:
    """The series of a stack, by classes where there are several.

    Args:
        node: The node.
        ref: Its number in the program.
        values: The series of the nodes before it.
        context: The derivation.

    Raises:
        Uneven: Cells of a class have different powers.
        NeedsCells: What is stacked has classes itself.
    """
    known = context.record.classes.get(node.axis, {0: 0})
    last = known[max(known)]
    groups: dict[int, list[int]] = {}
    for cell, one in enumerate(node.of):
        if isinstance(values[one], Classed):
            raise NeedsCells(f"a stack along {node.axis!r} of what has classes")
        groups.setdefault(known.get(cell, last), []).append(cell)
    keys = {
        cell: tuple(power for power, _ in values[one].terms) for cell, one in enumerate(node.of)
    }
    if any(len({keys[cell] for cell in cells}) > 1 for cells in groups.values()):
        raise Uneven(node.axis, {cell: (known.get(cell, last), key) for cell, key in keys.items()})
    found = {
        number: (
            _series([values[node.of[cell]] for cell in cells], node.axis, context),
            tuple(cells),
        )
        for number, cells in groups.items()
    }
    (first, _), *more = found.values()
    return Classed(node.axis, found) if more else first


def refined(known: Mapping[int, int], uneven: Uneven) -> dict[int, int]:
    """The classes of cells after some were found to differ; those not seen yet are as the last one.

    Args:
        known: The classes so far.
        uneven: What was found.
    """
    keys = {**{cell: (number, None) for cell, number in known.items()}, **uneven.found}
    numbers: dict[object, int] = {}
    return {cell: numbers.setdefault(keys[cell], len(numbers)) for cell in sorted(keys)}


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
    return ranking.keep(terms, bounds("rest"), bounds("soft"), bounds("drift"), _one)


def _one(items: list[LRef]) -> tuple[LRef | None, bool]:
    (item,) = items
    return item, False
