"""Cells of a limit graph of blocks: what is below some of them, with a node for each cell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import product
from math import prod
from typing import Any

import numpy as np

from tpcalc.functions import Const, Expr, Fn, Par, Var, const
from tpcalc.functions.expr import Mul, add, mul, substitute
from tpcalc.limit.graph import (
    Expect,
    Fluctuation,
    LimitGraph,
    LNode,
    LRef,
    Number,
    OuterExpect,
    Product,
    Start,
    Starts,
    Target,
    Total,
    twice_of,
)
from tpcalc.names import Name, cell_name
from tpcalc.program.base import Table, references, renumbered
from tpcalc.program.nodes import Data, Input, LinComb, Nonlin, Rename, Stack

LARGEST = 5000  # cells below one that are written out
Where = Mapping[str, int]
_Key = tuple[LRef, tuple[int, ...]]
_Factor = tuple[Fraction | float, Expr]  # a number times scalars, ``Par`` of numbers of nodes
_ONE: _Factor = (Fraction(1), const(1))
_Form = dict[LRef, _Factor]  # a sum of vectors


def cells_below(
    graph: LimitGraph, name: str, cell: Sequence[int], called: str
) -> LimitGraph | None:
    """The graph of single vectors that a cell of a target rests on.

    Its targets are all cells of targets that it meets. Sums that have no name are written out.
    """
    target = dict(graph.targets)[name]
    if target.node is None:
        return None
    written = _Written(graph)
    if not written.write((target.node, tuple(cell))):
        return None
    found = [(called, Target(target.power, written.made[target.node, tuple(cell)]))]
    for own, one in graph.targets:
        sizes = (range(size) for _, size in graph.axes[one.node]) if one.node is not None else ()
        for at in product(*sizes):
            if one.node is not None and (one.node, at) in written.made:
                node = written.made[one.node, at]
                at = at or (0,) * (
                    Name.of(own).first is not None
                )  # all of a block are alike: the first one
                found.append((cell_name(own, at), Target(one.power, node)))
    return replace(
        graph,
        nodes=tuple(written.nodes),
        vector_dim=tuple(written.dims),
        targets=tuple(dict(reversed(found)).items())[::-1],
        matrices=tuple(one[:3] for one in graph.drawn),
        orthogonal=frozenset(one[0] for one in graph.drawn if one[3] == "orthogonal"),
        apart=frozenset(),
        axes=(),
        matrix_axes=(),
    )


@dataclass
class _Written:
    graph: LimitGraph
    nodes: list[LNode] = field(default_factory=list)
    dims: list[str | None] = field(default_factory=list)
    made: dict[_Key, LRef] = field(default_factory=dict)
    known: dict[LNode, LRef] = field(default_factory=dict)
    numbers: dict[_Key, Expr] = field(default_factory=dict)
    sums: dict[LRef, _Form] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.named = {target.node for _, target in self.graph.targets}

    def write(self, top: _Key) -> bool:
        """Write a cell and what it rests on; whether that is possible."""
        needed, left = {top}, [top]
        while left:
            ref, cell = left.pop()
            node = self.graph.nodes[ref]
            below = _BELOW(node, self, self.where(ref, cell))
            if below is None or len(needed) > LARGEST:
                return False
            left += set(below) - needed
            needed.update(below)
        for key in sorted(needed):
            ref, where = key[0], self.where(*key)
            node = self.graph.nodes[ref]
            self.made[key] = _CELLS(node, self, key, where)
        return True

    def where(self, ref: LRef, cell: Sequence[int]) -> dict[str, int]:
        return dict(zip(dict(self.graph.axes[ref]), cell, strict=True))

    def key(self, ref: LRef, where: Where) -> _Key:
        """The cell of an operand."""
        return ref, tuple(where[name] for name, _ in self.graph.axes[ref])

    def keys(self, refs: Sequence[LRef], where: Where) -> list[_Key]:
        return [self.key(ref, where) for ref in refs]

    def put(self, node: LNode, dim: str | None) -> LRef:
        ref = self.known.setdefault(node, len(self.nodes))
        if ref == len(self.nodes):
            self.nodes.append(node)
            self.dims.append(dim)
        return ref

    def number(self, key: _Key) -> Expr:
        """A scalar with its formula."""
        return self.numbers.get(key) or Par(self.made[key])

    def scalar(self, key: _Key, expr: Expr) -> LRef:
        """The node of a scalar that is given by a formula."""
        if isinstance(expr, Const) or key[0] not in self.named:
            self.numbers[key] = expr
        return self.valued(expr)

    def valued(self, expr: Expr) -> LRef:
        if isinstance(expr, Const):
            return self.put(Number(expr.value), None)
        if isinstance(expr, Par):
            return expr.index
        fn, _, used = Fn(expr, 0, len(self.nodes)).compact()
        return self.put(Nonlin(fn, (), used), None)

    def drawn(self, node: Any, key: _Key, where: Where) -> LRef:
        """A node with the cells of its operands."""
        own = as_drawn(node, self.graph, where)
        moved = renumbered(own, lambda ref: self.made[self.key(ref, where)])
        return self.put(moved, self.graph.vector_dim[key[0]])

    def function(self, node: Nonlin | Expect, key: _Key, where: Where) -> LRef:
        vectors = [self.made[one] for one in self.keys(node.vectors, where)]
        kept = sorted(set(vectors))
        given: dict[Expr, Expr] = {Var(i): Var(kept.index(v)) for i, v in enumerate(vectors)}
        scalars = self.keys(node.scalars, where)
        given |= {Par(i): self.number(one) for i, one in enumerate(scalars)}
        expr = substitute(node.fn.expr, given)
        if not vectors:
            return self.scalar(key, expr)
        fn, used, numbers = Fn(expr, len(kept), len(self.nodes)).compact()
        own = replace(node, fn=fn, vectors=tuple(kept[i] for i in used), scalars=numbers)
        return self.put(own, self.graph.vector_dim[key[0]])

    def total(self, node: Total | LinComb, key: _Key, where: Where) -> LRef:
        dim = self.graph.vector_dim[key[0]]
        if dim is None:
            terms = [
                mul((const(x), self.number(v), *(() if s is None else (self.number(s),))))
                for x, s, v in self.terms(node, where)
            ]
            return self.scalar(key, add(terms))
        form: _Form = {}
        for x, s, v in self.terms(node, where):
            factor = _times((x, const(1)), (Fraction(1), const(1) if s is None else self.number(s)))
            vector = self.made[v]
            for part, own in self.sums.get(vector, {vector: _ONE}).items():
                term = _times(factor, own)
                form[part] = _plus(form[part], term) if part in form else term
        if [*form.values()] == [_ONE]:
            return next(iter(form))
        ref = self.put(self.summed(form), dim)
        if key[0] not in self.named:
            self.sums[ref] = form
        return ref

    def summed(self, form: _Form) -> LinComb:
        numbers, scalars = list[Any](), list[LRef | None]()
        for number, rest in form.values():
            numbers.append(number)
            scalars.append(None if rest == const(1) else self.valued(rest))
        return LinComb(tuple(numbers), tuple(scalars), tuple(form))

    def terms(
        self, node: Total | LinComb, where: Where
    ) -> Iterator[tuple[Fraction | float, _Key | None, _Key]]:
        """The terms of a sum, those along axes that are summed over one by one."""
        for x, s, v, names in node.terms:
            sizes = dict(self.graph.axes[v]) | dict(self.graph.axes[s] if s is not None else ())
            # A sum over an axis that a term lacks counts its cells, which its number holds.
            own = [name for name in names if name in sizes]
            for cell in product(*(range(sizes[name]) for name in own)):
                at = {**where, **dict(zip(own, cell, strict=True))}
                yield x, None if s is None else self.key(s, at), self.key(v, at)


def _times(left: _Factor, right: _Factor) -> _Factor:
    rest = mul((left[1], right[1]))
    parts = rest.factors if isinstance(rest, Mul) else (rest,)
    plain = [part.value for part in parts if isinstance(part, Const)]
    number = prod(plain, start=left[0] * right[0])
    return number, mul(part for part in parts if not isinstance(part, Const))


def _plus(left: _Factor, right: _Factor) -> _Factor:
    if left[1] == right[1]:
        return left[0] + right[0], left[1]
    return Fraction(1), add(mul((const(number), rest)) for number, rest in (left, right))


def _of_rename(node: Rename, by: _Written, where: Where) -> list[_Key]:
    new = dict(node.names)
    own = {name: where[new.get(name, name)] for name, _ in by.graph.axes[node.of]}
    return [by.key(node.of, own)]


def _of_sum(node: Total | LinComb, by: _Written, where: Where) -> list[_Key]:
    return [key for _, s, v in by.terms(node, where) for key in (s, v) if key is not None]


def _view(node: Rename | Stack, by: _Written, key: _Key, where: Where) -> LRef:
    found = _BELOW(node, by, where)
    assert found is not None
    (of,) = found
    if of in by.numbers:
        by.numbers[key] = by.numbers[of]
    return by.made[of]


def _start(node: Starts, by: _Written, key: _Key, where: Where) -> LRef:
    sizes = [size for _, size in by.graph.axes[key[0]]]
    index = int(np.ravel_multi_index(key[1], sizes)) if sizes else 0
    return by.put(Start(node.group, index), by.graph.vector_dim[key[0]])


def _data(node: Data, by: _Written, key: _Key, where: Where) -> LRef:
    sizes = [size for _, size in node.axes]
    value = node.values[int(np.ravel_multi_index(key[1], sizes)) if sizes else 0]
    return by.scalar(key, const(value))


# The cells that a cell rests on; None: forms are written as blocks only.
_BELOW: Table[list[_Key] | None] = Table(
    {
        Stack: lambda node, by, where: [by.key(node.of[where[node.axis]], where)],
        Rename: _of_rename,
        Total: _of_sum,
        LinComb: _of_sum,
        OuterExpect: lambda node, by, where: None,
    },
    lambda node, by, where: by.keys(references(node), where),
)
_CELLS: Table[LRef] = Table(
    {
        Starts: _start,
        Data: _data,
        Number: lambda node, by, key, where: by.scalar(key, const(node.value)),
        Rename: _view,
        Stack: _view,
        Total: lambda node, by, key, where: by.total(node, key, where),
        LinComb: lambda node, by, key, where: by.total(node, key, where),
        Nonlin: lambda node, by, key, where: by.function(node, key, where),
        Expect: lambda node, by, key, where: by.function(node, key, where),
    },
    lambda node, by, key, where: by.drawn(node, key, where),
)


def _matrix(name: str, graph: LimitGraph, where: Where) -> str:
    """The name of a matrix, of a block that of a cell."""
    axes = dict(graph.matrix_axes).get(name, ())
    if not axes:
        return name
    cell = [where[axis] for axis, _ in axes]
    return f"{name}[{int(np.ravel_multi_index(cell, [size for _, size in axes]))}]"


def _fluctuation(node: Fluctuation, graph: LimitGraph, where: Where) -> Fluctuation:
    root, twice = node.root, twice_of(node.root)
    if twice is not None:
        root = replace(twice, matrix=_matrix(twice.matrix, graph, where))
    return replace(node, root=_matrix(root, graph, where) if isinstance(root, str) else root)


def _input(node: Input, graph: LimitGraph, where: Where) -> Input:
    axes = node.family.axes
    if not axes or node.cell is not None:
        return node
    cell = np.ravel_multi_index([where[axis] for axis, _ in axes], [size for _, size in axes])
    return Input(node.family.part(int(cell)))


# What stands in a cell of what is drawn as a block.
as_drawn: Table[Any] = Table(
    {
        Product: lambda node, graph, where: replace(
            node, matrix=_matrix(node.matrix, graph, where)
        ),
        Fluctuation: _fluctuation,
        Input: _input,
    },
    lambda node, graph, where: node,
)
