"""Names of the nodes of a limit graph, by the outputs of its program."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from tpcalc.functions.numbers import number_text
from tpcalc.limit.cells import as_drawn
from tpcalc.limit.derive import graph_of
from tpcalc.limit.graph import (
    Fluctuation,
    LimitGraph,
    LRef,
    Noise,
    Product,
    Start,
    Total,
    data_of,
    start_of,
    starts_of,
)
from tpcalc.names import cell_name
from tpcalc.program.base import Table
from tpcalc.program.nodes import Input, LinComb, Nonlin, Rename, Stack
from tpcalc.questions.dependence.gates import image_of
from tpcalc.questions.dependence.sets import Cell, Home, Sets, Weights
from tpcalc.results.dependencies import GaussianRow

LONGEST = 40
SHOWN = 4
NUMBERS = r"(?<=[\[,])(\d+)(?=[\],])"  # of cells


@dataclass
class Names:
    """Names of cells of nodes, and of Gaussians."""

    sets: Sets  # the graph, and what depends on what
    leads: Mapping[str, LRef | None]  # for outputs of the program the node of their leading term
    _of: dict[Home, str] = field(default_factory=dict)
    _rows: dict[int, GaussianRow] = field(default_factory=dict)
    _blocks: dict[int, GaussianRow | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, ref in self.leads.items():
            if ref is not None and not self.sets.context.axes[ref]:
                self._of.setdefault(self._source(ref, ()), name)

    def vector(self, ref: LRef, cell: Cell = ()) -> str:
        """A vector by its output, or by what it is made of."""
        ref, cell = self._source(ref, cell)
        if (ref, cell) in self._of:
            return self._of[ref, cell]
        number, alone = self.sets.start_part((ref, cell))
        if number is not None and alone:
            return self._image(number)
        context = self.sets.context
        node = context.nodes[ref]
        if (start := self._member(ref, cell)) is not None:
            return self._start(*start)
        if image_of(context, ref):
            return self._image(next(self.sets.names(self.sets.whole(ref))))
        text = _FORMULAS(node, ref, cell, self)
        return text if text and len(text) <= LONGEST else cell_name(f"v{ref}", cell)

    def home(self, name: str) -> Home | None:
        """The cell that the leading term of an output is; None where there is none."""
        lead = self.leads[name]
        return None if lead is None else self._source(lead, ())

    def gaussian(self, number: int) -> GaussianRow:
        """A Gaussian of a dependency set."""
        if number not in self._rows:
            ref, cell = self.sets.homes[number]
            weights = self.sets.weights.get(number, ())
            if len(weights) == 1:
                self._rows[number] = _row(self._start(*weights[0][0]))
            elif weights:
                self._rows[number] = GaussianRow(self._image(number), "start", self._sum(weights))
            else:
                self._rows[number] = _ROWS(self.sets.context.nodes[ref], ref, cell, self)
        return self._rows[number]

    def listed(self, bits: int, doubtful: int = 0) -> list[tuple[GaussianRow, bool]]:
        """The Gaussians of a set, those of a whole block as one, and whether they are doubtful."""
        found = list[tuple[GaussianRow, bool]]()
        while bits:
            number = next(self.sets.names(bits))
            own = self.sets.homed[self.sets.homes[number][0]]
            block = self._block(own) if own & ~bits == 0 and doubtful & own in (0, own) else None
            found.append((block or self.gaussian(number), bool(doubtful >> number & 1)))
            bits &= ~(own if block else 1 << number)
        return found

    def _block(self, numbers: int) -> GaussianRow | None:
        """All Gaussians of a block as one row; None where its names do not tell its cells."""
        if numbers not in self._blocks:
            rows = [self.gaussian(number) for number in self.sets.names(numbers)]
            name = block_name([row.name for row in rows]) if len(rows) > 1 else None
            law = (
                block_name([row.law for row in rows])
                or f"{len(rows)} of one kind: {rows[0].law}, ..."
            )
            row = None if name is None else GaussianRow(name, rows[0].kind, law)
            self._blocks[numbers] = row
        return self._blocks[numbers]

    def part(self, of: LRef, ref: LRef, cell: Cell) -> str:
        """What the cell of a node reads of an operand."""
        return self.vector(*self.sets.part(of, ref, cell))

    def matrix(self, hat: int) -> str:
        """The matrix of a product."""
        ref, cell = self.sets.homes[hat]
        name: str = self.drawn(self.sets.context.nodes[ref], ref, cell).matrix
        return name

    def drawn(self, node: Any, ref: LRef, cell: Cell) -> Any:
        """What a cell of a block of draws is."""
        where = dict(zip(dict(self.sets.context.axes[ref]), cell, strict=True))
        return as_drawn(node, self._graph, where) if where else node

    @cached_property
    def _graph(self) -> LimitGraph:
        return graph_of(self.sets.context, ())

    def _source(self, ref: LRef, cell: Cell) -> Home:
        """The cell that another one is only a name of."""
        while (found := _SOURCES(self.sets.context.nodes[ref], ref, cell, self)) is not None:
            ref, cell = found
        return ref, cell

    def _member(self, ref: LRef, cell: Cell) -> tuple[str, int] | None:
        node = self.sets.context.nodes[ref]
        if (start := start_of(node)) is not None:
            return start.group, start.index
        if (starts := starts_of(node)) is not None:
            shape = [size for _, size in self.sets.context.axes[ref]]
            return starts.group, int(np.ravel_multi_index(cell, shape)) if shape else 0
        return None

    def _start(self, group: str, index: int) -> str:
        return group if self.sets.context.program.group[group].size == 1 else f"{group}[{index}]"

    def _image(self, number: int) -> str:
        """A sum of start vectors by its output, else by the first one that holds it."""
        home = self.sets.homes[number]
        own = not self.sets.context.axes[home[0]] or self.sets.start_part(home)[1]
        if own and home in self._of:
            return self._of[home]
        for name, lead in self.leads.items():
            if lead is not None and self.sets.whole(lead) >> number & 1:
                return f"start of {name}"
        ref, cell = home
        return cell_name(f"v{ref}", cell)

    def _sum(self, weights: Weights) -> str:
        """A sum of start vectors, written out; of a long one its beginning and end."""
        terms = []
        for member, number in weights:
            text, name = f"{float(number):.4g}" if number != 1 else "", self._start(*member)
            terms.append(f"{text}*{name}" if text else name)
        if len(terms) > 2 * SHOWN:
            terms = [*terms[:SHOWN], "...", *terms[-1:]]
        return " + ".join(terms).replace("+ -", "- ")


def _picked(node: Total, ref: LRef, cell: Cell, names: Names) -> Home | None:
    """The cell that a sum of one term chooses by data that are 0 in all others."""
    context = names.sets.context
    if len(node.vectors) != 1 or node.scalars[0] is None or node.numbers[0] != 1:
        return None
    data, (vector,), (over,) = data_of(context.nodes[node.scalars[0]]), node.vectors, node.over
    if data is None or {name for name, _ in data.axes} != set(over):
        return None
    held = {k: value for k, value in enumerate(data.values) if value != 0}
    if list(held.values()) != [1]:
        return None
    shape = [size for _, size in data.axes]
    chosen = np.unravel_index(next(iter(held)), shape)
    where = dict(zip(dict(context.axes[ref]), cell, strict=True))
    where |= {name: int(k) for (name, _), k in zip(data.axes, chosen, strict=True)}
    return vector, tuple(where[name] for name, _ in context.axes[vector])


def _item(node: Stack, ref: LRef, cell: Cell, names: Names) -> Home:
    where = dict(zip(dict(names.sets.context.axes[ref]), cell, strict=True))
    return names.sets.part(node.of[where[node.axis]], ref, cell)


_SOURCES: Table[Home | None] = Table(
    {
        Rename: lambda node, ref, cell, names: (node.of, cell),
        Stack: _item,
        Total: _picked,
    },
    lambda node, ref, cell, names: None,
)


def _product(node: Product, ref: LRef, cell: Cell, names: Names) -> str:
    matrix = names.drawn(node, ref, cell).matrix
    return f"{side(matrix, node.transpose)} {names.part(node.vector, ref, cell)}"


def _combination(node: LinComb, ref: LRef, cell: Cell, names: Names) -> str:
    if len(node.vectors) == 1 or any(node.over) or any(s is not None for s in node.scalars):
        return ""
    parts = (names.part(vector, ref, cell) for vector in node.vectors)
    numbers = ("" if number == 1 else f"{number_text(number)}*" for number in node.numbers)
    text = " + ".join(map("".join, zip(numbers, parts, strict=True)))
    return f"({text})"


def _function(node: Nonlin, ref: LRef, cell: Cell, names: Names) -> str:
    if node.scalars:
        return ""

    def summed(match: re.Match[str]) -> str:
        """A sum that stands in the function of a block, by the name of its own node."""
        parts = tuple(node.vectors[int(k)] for k in re.findall(r"\d+", match[0]))
        whole = names.sets.summed(parts)
        if whole is not None:
            return names.part(whole, ref, cell)
        return " + ".join(names.part(one, ref, cell) for one in parts)

    return re.sub(r"\bx\d+\b( \+ x\d+\b)*", summed, node.fn.text)


_FORMULAS: Table[str] = Table(
    {Product: _product, Nonlin: _function, LinComb: _combination}, lambda node, ref, cell, names: ""
)


def _row(name: str) -> GaussianRow:
    return GaussianRow(name, "start", name)


def _hat_row(node: Product, ref: LRef, cell: Cell, names: Names) -> GaussianRow:
    product = _product(node, ref, cell, names)
    return GaussianRow(f"hat {product}", "hat", f"Gaussian part of {product}")


def _draw_row(node: Input, ref: LRef, cell: Cell, names: Names) -> GaussianRow:
    own = names.drawn(node, ref, cell)
    law = f"N({number_text(own.family.means[0])}, {number_text(own.family.std)}^2)"
    return GaussianRow(own.name, "scalar", law)


def _fluctuation_row(node: Fluctuation, ref: LRef, cell: Cell, names: Names) -> GaussianRow:
    *g, x = (names.part(vector, ref, cell) for vector in node.vectors)
    root = _ROOTS(names.drawn(node, ref, cell).root, names)
    law = f"limit of sqrt(n) times the average of {' '.join((*g, *root, x))}, a Gaussian"
    return GaussianRow(f"G({', '.join((*root, *g, x))})", "scalar", law)


def _noise_row(node: Noise, ref: LRef, cell: Cell, names: Names) -> GaussianRow:
    law = "sqrt(n) times an average of expectation 0; its law is not computed"
    return GaussianRow(cell_name(f"average v{ref}", cell), "average", law)


_ROOTS: Table[list[str]] = Table(
    {
        Start: lambda root, names: [names._start(root.group, root.index)],
        str: lambda root, names: [root],
    },
    lambda root, names: [],
)
_ROWS: Table[GaussianRow] = Table(
    {
        Product: _hat_row,
        Input: _draw_row,
        Fluctuation: _fluctuation_row,
        Noise: _noise_row,
    }
)


def block_name(names: Sequence[str]) -> str | None:
    """One name of all cells of a block, which differ in one number; None where they do not.

    Example:
        >>> block_name(["hat W2 x[1,0,0]", "hat W2 x[1,0,1]"]), block_name(["x[2,4]", "x[2,5]"])
        ('hat W2 x[1,0,0:2]', 'x[2,4:6]')
    """
    parts = [re.split(NUMBERS, name) for name in names]
    if any(len(part) != len(parts[0]) for part in parts):
        return None
    differ = [place for place, column in enumerate(zip(*parts, strict=True)) if len({*column}) > 1]
    if len(differ) != 1 or not differ[0] % 2:
        return None
    found = [int(part[differ[0]]) for part in parts]
    if found != [*range(found[0], found[0] + len(found))]:
        return None
    parts[0][differ[0]] = f"{found[0]}:{found[-1] + 1}"
    return "".join(parts[0])


def side(matrix: str, transpose: bool) -> str:
    """A matrix or its transpose.

    Example:
        >>> side("W2", True)
        'W2^T'
    """
    return f"{matrix}^T" if transpose else matrix
