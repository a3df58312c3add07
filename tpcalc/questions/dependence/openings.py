"""The start vectors in sums of blocks: with given numbers in front they make one Gaussian.

Cell by cell such a sum is a node of its own; of blocks it stands inside of others, which are opened
here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from tpcalc.arrays import Array
from tpcalc.limit.axes import along, united
from tpcalc.limit.context import Context
from tpcalc.limit.graph import LRef, Start, Starts, Total, data_of, start_of
from tpcalc.program.base import Table, lincomb_of
from tpcalc.program.nodes import LinComb, Rename, Stack

DIGITS = 12  # in which numbers of one Gaussian agree, whatever sum they were found in
LARGEST = 2**24  # cells times start vectors


@dataclass(frozen=True)
class Opened:
    """The start vectors in a sum."""

    numbers: Array  # those in front of all start vectors of the program, for each cell
    members: tuple[tuple[str, int], ...]  # the start vectors

    def weights(self, cell: tuple[int, ...]) -> tuple[tuple[tuple[str, int], Fraction], ...]:
        """The start vectors of a cell with their numbers, as far as these are not 0."""
        row = self.numbers[cell]
        return tuple(
            (self.members[k], Fraction(float(f"{row[k]:.{DIGITS}g}"))) for k in np.flatnonzero(row)
        )


@dataclass
class Openings:
    """The sums of a graph of blocks that are opened."""

    context: Context  # the graph
    _of: dict[LRef, Opened | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        groups = self.context.program.group.values()
        self.members = tuple((g.name, index) for g in groups for index in range(g.size))
        self.place = {member: place for place, member in enumerate(self.members)}

    def of(self, ref: LRef) -> Opened | None:
        """The start vectors in a node; None where it is no sum with given numbers of them."""
        if ref not in self._of:
            self._of[ref] = _OPENED(self.context.nodes[ref], ref, self)
        return self._of[ref]

    def is_known(self, scalar: LRef | None) -> bool:
        """Whether the number in front of a term is given."""
        return scalar is None or data_of(self.context.nodes[scalar]) is not None

    def starts(self, node: Start | Starts, ref: LRef, members: list[tuple[str, int]]) -> Opened:
        """Start vectors; one that is fixed is no Gaussian."""
        cov = self.context.program.group[node.group].cov
        found = np.zeros((len(members), len(self.members)))
        for row, (name, index) in enumerate(members):
            found[row, self.place[name, index]] = cov is None or cov[index][index] != 0
        shape = [size for _, size in self.context.axes[ref]]
        return Opened(found.reshape(*shape, len(self.members)), self.members)

    def total(self, node: Total | LinComb, ref: LRef) -> Opened | None:
        """A sum, of which some terms hold start vectors with given numbers."""
        axes = self.context.axes
        shape, found = [size for _, size in axes[ref]], False
        column = ("", len(self.members))
        total = np.zeros((*shape, column[1]))
        for number, scalar, vector, names in node.terms:
            opened = self.of(vector) if self.is_known(scalar) else None
            refs = [one for one in (scalar, vector) if one is not None]
            every = (*united(axes[one] for one in refs), column)
            if opened is None or np.prod([float(size) for _, size in every]) > LARGEST:
                continue
            part = float(number) * along(opened.numbers, (*axes[vector], column), every)
            if scalar is not None:
                data = data_of(self.context.nodes[scalar])
                assert data is not None
                own = np.array([float(value) for value in data.values])
                own = own.reshape([size for _, size in data.axes])
                part = part * along(own, axes[scalar], every)
            # A sum over an axis that a term lacks counts its cells, which its number holds.
            part = part.sum(
                axis=tuple(place for place, (name, _) in enumerate(every) if name in names)
            )
            kept = tuple(pair for pair in every if pair[0] not in names)
            total = total + along(part, kept, (*axes[ref], column))
            found = True
        return Opened(total, self.members) if found else None

    def stacked(self, node: Stack, ref: LRef) -> Opened | None:
        """Start vectors one after the other."""
        axes, column = self.context.axes[ref], ("", len(self.members))
        below = (*(pair for pair in axes if pair[0] != node.axis), column)
        items = list[Array]()
        for one in node.of:
            opened = self.of(one)
            if opened is None:
                return None
            own = along(opened.numbers, (*self.context.axes[one], column), below)
            items.append(np.broadcast_to(own, [size for _, size in below]))
        place = [name for name, _ in axes].index(node.axis)
        return Opened(np.stack(items, place), self.members)


_OPENED: Table[Opened | None] = Table(
    {
        Start: lambda node, ref, by: by.starts(node, ref, [(node.group, node.index)]),
        Starts: lambda node, ref, by: by.starts(
            node, ref, [one for one in by.members if one[0] == node.group]
        ),
        LinComb: lambda node, ref, by: by.total(node, ref),
        Total: lambda node, ref, by: by.total(node, ref),
        Rename: lambda node, ref, by: by.of(node.of),
        Stack: lambda node, ref, by: by.stacked(node, ref),
    },
    lambda node, ref, by: None,
)


def image_of(context: Context, ref: LRef) -> tuple[LRef, ...]:
    """The start vectors that a node is a given linear combination of; none for any other node."""
    node = lincomb_of(context.nodes[ref])
    if node is None or any(scalar is not None for scalar in node.scalars):
        return ()
    if len(node.vectors) < 2:  # a multiple of one start vector is that start vector
        return ()
    starts = all(start_of(context.nodes[vector]) is not None for vector in node.vectors)
    return node.vectors if starts else ()
