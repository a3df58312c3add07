"""Dimensions of tensors: which are the same, how views split them, how they grow with the width.

A dimension is a row of leaves, the outermost first, whose sizes multiply to its own. Leaves that
data connect cell by cell are one; a view that splits one splits all of them. A leaf that is cut has
pieces, one after the other, of sizes of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import ceil, floor, prod
from typing import Any

import numpy as np

from tpcalc.errors import TraceError
from tpcalc.torch.graph import Sizes

ROUNDED = (1, 8, 16, 32, 64, 128, 256)  # what widths of layers are made multiples of
LIMIT = 12  # the largest denominator of a ratio that rounding hides


@dataclass(eq=False)
class Leaf:
    """A part of a dimension."""

    sizes: Sizes  # its size at each width
    # Whether something counts its cells, so that no other number of them would do
    fixed: bool = False
    # Whether its cells are told apart: each is a part of a parameter, with its own name
    apart: bool = False
    parts: tuple[Leaf, ...] = ()  # its leaves, where a view splits it
    pieces: tuple[Leaf, ...] = ()  # its pieces, where it is cut
    same: Leaf | None = None  # the leaf that stands for it
    name: str = ""  # what its axis is called
    cells: int = 0  # the cells of a stand-in; 0: all of them
    kept: tuple[int, ...] = ()  # the cells that are read, of a table of which nothing else is
    title: str = ""  # what it is a dimension of, for messages

    @property
    def root(self) -> Leaf:
        """The leaf that stands for it."""
        found = self
        while found.same is not None:
            found = found.same
        return found

    @property
    def leaves(self) -> Iterator[Leaf]:
        """What it is made of."""
        own = self.root
        if own.parts:
            for part in own.parts:
                yield from part.leaves
        else:
            yield own

    @property
    def is_finite(self) -> bool:
        """Whether its size does not depend on the width."""
        return len(set(self.sizes)) == 1

    @property
    def is_axis(self) -> bool:
        """Whether its cells are an axis of values: of a stand-in of one cell there is none."""
        return self.is_finite and (self.cells != 1 or self.name == "in")

    @property
    def size(self) -> int:
        """Its number of cells, that of a stand-in where one is enough."""
        return self.cells or self.sizes[0]

    @property
    def count(self) -> int:
        """The number of its cells that are told apart, or of its pieces."""
        return len(self.pieces) or self.size

    def split(self, outer: Sizes) -> None:
        """Make it a row of two leaves, where it is not."""
        if self.parts:
            return
        inner = tuple(a // b for a, b in zip(self.sizes, outer, strict=True))
        self.parts = tuple(Leaf(sizes, self.fixed or self.is_finite) for sizes in (outer, inner))


Dim = tuple[Leaf, ...]


def leaves(dim: Dim) -> Dim:
    """The leaves of a dimension as they are now."""
    return tuple(leaf for own in dim for leaf in own.leaves)


def times(dim: Sequence[Leaf], widths: int) -> Sizes:
    """The size of a row of leaves at each width."""
    return tuple(prod(leaf.sizes[k] for leaf in dim) for k in range(widths))


def fix(dim: Sequence[Leaf]) -> None:
    """Say that something counts the cells of a row of leaves."""
    for leaf in dim:
        leaf.fixed = True


def whole_ratio(large: Sizes, small: Sizes) -> bool:
    """Whether sizes are whole multiples of others, at all widths."""
    return all(a % b == 0 for a, b in zip(large, small, strict=True))


def unite(left: Dim, right: Dim, where: str) -> None:
    """Make two dimensions of equal size one."""
    first, second = [*leaves(left)], [*leaves(right)]
    while first and second:
        one, two = first.pop(0), second.pop(0)
        if one is two:
            continue
        if one.sizes == two.sizes:
            _join(one, two, where)
        elif whole_ratio(one.sizes, two.sizes) and not one.pieces:
            one.split(two.sizes)
            first, second = [*one.leaves, *first], [two, *second]
        elif whole_ratio(two.sizes, one.sizes) and not two.pieces:
            two.split(one.sizes)
            first, second = [one, *first], [*two.leaves, *second]
        else:
            raise unfit(one.sizes, two.sizes, where)
    if first or second:
        raise unfit(times(left, 1), times(right, 1), where)


def _join(one: Leaf, two: Leaf, where: str) -> None:
    if one.pieces and two.pieces:
        if len(one.pieces) != len(two.pieces):
            raise unfit(one.sizes, two.sizes, where)
        for own, other in zip(one.pieces, two.pieces, strict=True):
            unite((own,), (other,), where)
    two.same = one
    one.fixed, one.apart = one.fixed or two.fixed, one.apart or two.apart
    one.pieces = one.pieces or two.pieces


def unfit(one: Sizes, two: Sizes, where: str) -> TraceError:
    """The error for sizes that do not go together."""
    return TraceError(
        f"a dimension of {_shown(one)} meets one of {_shown(two)}, which no view of one is the "
        "other's.",
        where=where,
        hint="Write the products head by head, or give the parts layers of their own.",
    )


def _shown(sizes: Sizes) -> str:
    return ", ".join(map(str, sizes))


def regrouped(dims: Sequence[Dim], shape: Sequence[Sizes], where: str) -> tuple[Dim, ...]:
    """The leaves of some dimensions as the dimensions of a view."""
    left, found = [leaf for dim in dims for leaf in leaves(dim)], []
    for sizes in shape:
        row, rest = list[Leaf](), sizes
        while any(size != 1 for size in rest):
            if not left:
                raise unfit(sizes, rest, where)
            leaf = left.pop(0)
            if not whole_ratio(rest, leaf.sizes):
                if not whole_ratio(leaf.sizes, rest) or leaf.pieces:
                    raise unfit(leaf.sizes, rest, where)
                leaf.split(rest)
                left = [*leaf.leaves, *left]
                continue
            row.append(leaf)
            rest = tuple(a // b for a, b in zip(rest, leaf.sizes, strict=True))
        found.append(tuple(row))
    return tuple(found)


def cut(leaf: Leaf, sizes: Sequence[Sizes], where: str) -> tuple[Leaf, ...]:
    """The pieces of a leaf, each once; equal ones are cells of an axis that are told apart."""
    if leaf.pieces:
        if [piece.sizes for piece in leaf.pieces] != list(sizes):
            raise unfit(leaf.pieces[0].sizes, sizes[0], where)
        return leaf.pieces
    leaf.pieces = tuple(Leaf(one) for one in sizes)
    return leaf.pieces


def ratio(sizes: Sizes, widths: Sequence[int], what: str, where: str) -> tuple[Fraction, str]:
    """How often the width goes into a dimension that grows, with a note where it is rounded.

    Example:
        >>> ratio((170, 341, 512), (64, 128, 192), "w.weight", "")
        (Fraction(8, 3), 'w.weight has 170, 341, 512 rows at n = 64, 128, 192: read as 8/3 n')
    """
    exact = {Fraction(size, n) for size, n in zip(sizes, widths, strict=True)}
    if len(exact) == 1:
        return exact.pop(), ""
    said = f"{what} has {_shown(sizes)} rows at n = {_shown(tuple(widths))}"
    for step, below in product(ROUNDED, range(1, LIMIT + 1)):
        near = Fraction(round(Fraction(sizes[-1] * below, widths[-1])), below)
        rounded = (tuple(step * to(near * n / step) for n in widths) for to in (floor, ceil, round))
        if near > 0 and sizes in rounded:
            return near, f"{said}: read as {near} n"
    raise TraceError(
        f"{said}: not a multiple of the width, up to rounding.",
        where=where,
        hint="One width grows, and everything else is finite or a multiple of it.",
    )


def part(values: Any, dims: tuple[Dim, ...], leaf: Leaf, index: int, at: int) -> Any:
    """One of the cells of a leaf that are told apart, or one of its pieces."""
    for k, dim in enumerate(dims):
        own = leaves(dim)
        if leaf.root not in own or values.shape[k] == 1:
            continue
        place = own.index(leaf.root)
        sizes = [one.sizes[at] for one in own]
        shape = values.shape
        split = values.reshape(*shape[:k], *sizes, *shape[k + 1 :])
        if leaf.root.pieces:
            before = sum(one.sizes[at] for one in leaf.root.pieces[:index])
            cells = range(before, before + leaf.root.pieces[index].sizes[at])
            taken = np.take(split, cells, axis=k + place)
        else:
            taken = np.take(split, index, axis=k + place)
        values = taken.reshape(*shape[:k], -1, *shape[k + 1 :])
    return values


def ordered(values: Any, dims: tuple[Dim, ...], at: int) -> Any:
    """Finite axes first, then those that grow, as the families of a program have them."""
    every = [leaf for dim in dims for leaf in leaves(dim)]
    split = values.reshape([leaf.sizes[at] for leaf in every] or (1,))
    for k, leaf in enumerate(every):
        split = np.take(split, leaf.kept, axis=k) if leaf.kept else split
    first = [k for k, leaf in enumerate(every) if leaf.is_finite]
    later = [k for k, leaf in enumerate(every) if not leaf.is_finite]
    return np.transpose(split, [*first, *later]) if every else split.reshape(())


def varied(dims: tuple[Dim, ...], values: Any) -> tuple[Dim, ...]:
    """Dimensions without those along which numbers are equal."""
    sizes = zip(dims, values.shape, strict=True)
    return tuple(dim if size > 1 else () for dim, size in sizes)


def is_level(values: Any, axis: int) -> bool:
    """Whether numbers are equal along an axis."""
    return bool((values == np.take(values, [0], axis=axis)).all())
