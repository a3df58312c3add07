"""Formulas of limit variables, under a size budget.

A vector output is written in terms of other named outputs, Gaussian hats and expectations:
``Z[h2] = hat(W2 x1) + c Z[dh2]`` with ``c = E[...]``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, partial
from itertools import product as cells
from typing import Any

import numpy as np

from tpcalc.functions.expr import Expr, Var, add, const, mul, substitute, walk
from tpcalc.functions.notation import (
    Piece,
    call,
    difference,
    equation,
    index,
    mapped,
    power,
    product,
    subscript,
    summed,
    transposed,
    word,
    written,
)
from tpcalc.functions.spelling import notations, plain
from tpcalc.limit.corrections import correction
from tpcalc.limit.graph import (
    Expect,
    Fluctuation,
    LimitGraph,
    LRef,
    Number,
    OuterExpect,
    Product,
    Rows,
    Start,
    Starts,
    Total,
    Twice,
    data_of,
    rename_of,
    stack_of,
    the_product,
)
from tpcalc.names import Name
from tpcalc.program.base import Table
from tpcalc.program.nodes import Data, Input, LinComb, Nonlin, Rename, Stack, slots_of
from tpcalc.program.types import Axes
from tpcalc.results import Formula

WIDEST = 6  # rows and columns of an array that is printed

BUDGET = 40
LONGEST = 40, 60  # letters of a label of a product, and of a function


def express(graph: LimitGraph, names: Iterable[str] | None = None) -> dict[str, Formula]:
    """Formulas of the outputs.

    Source: Hajjar, Chizat, Giraud, Appendix B.2 (ZHat, ZDot).
    """
    wanted = None if names is None else set(names)
    named: dict[LRef, str] = {}
    for name, target in graph.targets:
        if target.node is not None:
            named.setdefault(target.node, name)
    out: dict[str, Formula] = {}
    for name, target in graph.targets:
        if target.node is None or (wanted is not None and name not in wanted):
            continue
        writer = _Writer(graph, named, target.node)
        expression = writer.write()
        if expression is not None:
            out[name] = writer.formula(name, expression, target.power)
    return out


class _TooLarge(Exception):
    """The formula passes the budget."""


@dataclass
class _Writer:
    graph: LimitGraph
    named: dict[LRef, str]
    target: LRef
    budget: int = BUDGET
    symbols: dict[Piece, Expr] = field(default_factory=dict)
    env: dict[str, str | int] = field(default_factory=dict)  # what axes are called, or a cell
    arrays: dict[str, Data] = field(default_factory=dict)

    def write(self) -> Expr | None:
        try:
            self.env = {name: name for name, _ in self._axes(self.target)}
            return self._node(self.target, top=True)
        except _TooLarge:
            return None

    def formula(self, name: str, expression: Expr, power: Any) -> Formula:
        """The formula with its head."""
        vector = self.graph.vector_dim[self.target] is not None
        axes = self._axes(self.target)
        if self.graph.has_blocks:
            head = indexed(block(name), tuple(f"{axis}:{size}" for axis, size in axes))
        else:
            head = variable(name) if vector else label(name)
        text, latex, mathml, html = notations(equation(head, self._printed(expression)))
        if power != 0:
            text = f"{name} ~ n^({power}) {plain(head)}, {text}"
        for own, data in self.arrays.items():
            shown = array(own, data.values, [size for _, size in data.axes])
            text, latex, mathml = text + "; " + shown[0], latex + shown[1], mathml + shown[2]
        display = f'<math display="block"><mrow>{mathml}</mrow></math>'
        return Formula(text, latex, display, "" if self.arrays or power != 0 else html)

    def _printed(self, expression: Expr) -> Piece:
        return written(expression, list(self.symbols), [])

    # -- nodes -------------------------------------------------------------------------------

    def _symbol(self, piece: Piece) -> Expr:
        return self.symbols.setdefault(piece, Var(len(self.symbols)))

    def _spend(self, amount: int = 1) -> None:
        self.budget -= amount
        if self.budget < 0:
            raise _TooLarge

    def _node(self, ref: LRef, *, top: bool = False) -> Expr:
        self._spend()
        if not top and ref in self.named:
            if self.graph.has_blocks:
                return self._symbol(self._block(self.named[ref], ref))
            vector = self.graph.vector_dim[ref] is not None
            return self._symbol(variable(self.named[ref]) if vector else label(self.named[ref]))
        found: Expr = _FORMULAS(self.graph.nodes[ref], self, ref)
        return found

    # -- blocks ------------------------------------------------------------------------------

    def _axes(self, ref: LRef) -> Axes:
        return self.graph.axes[ref] if self.graph.axes else ()

    def _within(self, env: dict[str, str | int], made: Callable[[], Any]) -> Any:
        """What is made under other names of axes."""
        before, self.env = self.env, env
        try:
            return made()
        finally:
            self.env = before

    def _block(self, name: str, ref: LRef) -> Piece:
        return self._indexed(block(name), ref)

    def _indexed(self, own: Piece, ref: LRef) -> Piece:
        """A block with its axes where they are called differently here."""
        axes = self._axes(ref)
        moved = any(self.env[axis] != axis for axis, _ in axes)
        return indexed(own, tuple(str(self.env[axis]) for axis, _ in axes) if moved else ())

    def _renamed(self, node: Rename) -> tuple[LRef, dict[str, str | int]]:
        new = dict(node.names)
        return node.of, {name: self.env[new.get(name, name)] for name, _ in self._axes(node.of)}

    def _item(self, node: Stack) -> LRef:
        """The item of a stack that is meant."""
        found = self.env[node.axis]
        if isinstance(found, str):
            raise _TooLarge
        return node.of[found]

    def _data(self, node: Data, ref: LRef) -> Expr:
        if len(set(node.values)) == 1:
            return const(node.values[0])
        self.arrays[node.name] = node  # a small letter: capitals are values of the network
        return self._symbol(self._indexed(label(node.name), ref))

    def _chosen(self, scalar: LRef | None, over: Axes) -> dict[str, int]:
        """The cell that a sum chooses; none where it is a sum of several."""
        data = None if scalar is None else data_of(self.graph.nodes[scalar])
        if data is None or not data.axes or not {*data.axes} <= {*over}:
            return {}
        if sorted(data.values) != [0] * (len(data.values) - 1) + [1]:
            return {}
        cell = np.unravel_index(data.values.index(1), [size for _, size in data.axes])
        return dict(zip(dict(data.axes), map(int, cell), strict=True))

    def _fresh(self, axis: str) -> str:
        while axis in self.env.values():
            axis += "'"
        return axis

    def _summed(self, over: Axes, made: Callable[[], Expr]) -> Expr:
        """A sum over axes: of steps term by term, of all others with a sign."""
        steps = [(name, size) for name, size in over if name in self._steps]
        names = [(name, self._fresh(name), size) for name, size in over if name not in self._steps]
        env = self.env | {name: own for name, own, _ in names}
        terms = []
        for cell in cells(*(range(size) for _, size in steps)):
            self._spend()
            at = env | dict(zip(dict(steps), cell, strict=True))
            terms.append(self._within(at, made))
        total = add(terms)
        if not names or total == const(0):
            return total
        sizes = ", ".join(f"{own}:{size}" for _, own, size in names)
        return self._symbol(summed(sizes, self._printed(total)))

    @cached_property
    def _steps(self) -> set[str]:
        """The axes along which values are stacked, each with a formula of its own."""
        found = {node.axis for node in map(stack_of, self.graph.nodes) if node is not None}
        renames = [node for node in map(rename_of, self.graph.nodes) if node is not None]
        for node in renames:
            found |= {new for old, new in node.names if old in found}
        return found

    def _total(self, node: Total | LinComb) -> Expr:
        terms = []
        for x, s, v, names in node.terms:
            sizes = dict(self._axes(v)) | dict(self._axes(s) if s is not None else ())
            own = tuple((name, sizes[name]) for name in names if name in sizes)
            cell = self._chosen(s, own)
            left = tuple(axis for axis in own if axis[0] not in cell)
            factors = [v] if s is None or cell else [s, v]

            def term(factors: Sequence[LRef] = factors) -> Expr:
                return mul(map(self._node, factors))

            # A number goes to the sum that it is a factor of, but for those with a sign.
            made = partial(self._summed, left, term) if left else term
            terms.append(const(x) * self._within({**self.env, **cell}, made))
        return add(terms)

    def _function(self, node: Nonlin) -> Expr:
        self._spend(sum(1 for _ in walk(node.fn.expr)))
        own = {slot: self._node(ref) for slot, ref in slots_of(node)}
        return substitute(node.fn.expr, own)

    def _fluctuation(self, node: Fluctuation) -> Expr:
        parts = [*_BASES(node.root, self.graph), *(self._label(v) for v in node.vectors)]
        return self._symbol(Piece("fluctuation", tuple(parts)))

    def _outer(self, node: OuterExpect) -> Expr:
        raise _TooLarge

    def _expect(self, node: Expect) -> Expr:
        parts = [self._label(ref) for ref in node.vectors]
        if node.fn.is_inner:
            inside = power(parts[0], "2") if len(parts) == 1 else product(*parts)
        else:
            self._spend(sum(1 for _ in walk(node.fn.expr)))
            scalars = [self._printed(self._node(ref)) for ref in node.scalars]
            inside = written(node.fn.expr, parts, scalars)
        return self._symbol(Piece("expectation", (inside,)))

    def _product(self, ref: LRef, node: Product) -> Expr:
        """The hat, and one correction term for each earlier product on the other side."""
        x = self._label(node.vector)
        own, back = _side(node.matrix, node.transpose), _side(node.matrix, not node.transpose)
        terms = [self._symbol(Piece("hat", (mapped(own, x),)))]
        earlier_products = self._earlier(ref)
        if earlier_products and node.matrix in self.graph.orthogonal:
            raise _TooLarge  # coefficients that solve a linear system
        for other in earlier_products:
            earlier = the_product(self.graph.nodes[other])
            self._spend(2)
            shared = dict(dict(self.graph.matrix_axes).get(node.matrix, ()))
            over = tuple(axis for axis in self._axes(other) if axis[0] not in shared)
            terms.append(self._summed(over, partial(self._correction, x, earlier, back)))
        return add(terms)

    def _correction(self, x: Piece, earlier: Product, back: Piece) -> Expr:
        hat = Piece("hat", (mapped(back, self._label(earlier.vector)),))
        c = self._symbol(Piece("expectation", (difference(x, hat),)))
        return c * self._node(earlier.vector)

    def _earlier(self, ref: LRef) -> Sequence[LRef]:
        """The earlier products of the correction whose coefficients are not 0 by symmetry."""
        found = correction(self.graph, ref)
        if found is None:
            raise _TooLarge
        return found.open

    def _label(self, ref: LRef) -> Piece:
        """A short name of a vector: its output name, or what it is made of."""
        if ref in self.named:
            name = self.named[ref]
            return self._block(name, ref) if self.graph.has_blocks else label(name)
        made = _LABELS(self.graph.nodes[ref], self)
        return made or self._indexed(word(f"v{ref}"), ref)

    def _product_label(self, node: Product) -> Piece | None:
        found = mapped(_side(node.matrix, node.transpose), self._label(node.vector))
        return found if len(plain(found)) <= LONGEST[0] else None

    def _function_label(self, node: Nonlin) -> Piece | None:
        if len(node.vectors) > 2 or node.scalars:
            return None
        found = written(node.fn.expr, [self._label(ref) for ref in node.vectors], [])
        return found if len(plain(found)) <= LONGEST[1] else None

    def _sum_label(self, node: LinComb) -> Piece | None:
        if len(node.vectors) > 2 or any(node.over) or any(s is not None for s in node.scalars):
            return None
        total = add(const(number) * Var(place) for place, number in enumerate(node.numbers))
        found = written(total, [self._label(ref) for ref in node.vectors], [])
        return found if len(plain(found)) <= LONGEST[0] else None


_FORMULAS: Table[Any] = Table(
    {
        Start: lambda node, by, ref: by._symbol(_start(by.graph, node)),
        Product: lambda node, by, ref: by._product(ref, node),
        Nonlin: lambda node, by, ref: by._function(node),
        LinComb: lambda node, by, ref: by._total(node),
        Expect: lambda node, by, ref: by._expect(node),
        Number: lambda node, by, ref: const(node.value),
        Input: lambda node, by, ref: by._symbol(label(node.name)),
        Fluctuation: lambda node, by, ref: by._fluctuation(node),
        OuterExpect: lambda node, by, ref: by._outer(node),
        Total: lambda node, by, ref: by._total(node),
        Data: lambda node, by, ref: by._data(node, ref),
        Starts: lambda node, by, ref: by._symbol(by._indexed(label(node.group), ref)),
        Rename: lambda node, by, ref: (
            (at := by._renamed(node)) and by._within(at[1], lambda: by._node(at[0]))
        ),
        Stack: lambda node, by, ref: by._node(by._item(node)),
    }
)
# What a vector is made of, where that is short.
_LABELS: Table[Piece | None] = Table(
    {
        Start: lambda node, by: _start(by.graph, node),
        Product: lambda node, by: by._product_label(node),
        Nonlin: lambda node, by: by._function_label(node),
        LinComb: lambda node, by: by._sum_label(node),
        Rename: lambda node, by: (
            (at := by._renamed(node)) and by._within(at[1], lambda: by._label(at[0]))
        ),
        Stack: lambda node, by: by._label(by._item(node)),
    },
    lambda node, by: None,
)


def _side(matrix: str, transpose: bool) -> Piece:
    """A matrix or its transpose."""
    return transposed(word(matrix)) if transpose else word(matrix)


# What a fluctuation is linear in besides its vectors.
_BASES: Table[list[Piece]] = Table(
    {
        Rows: lambda root, graph: [],
        Twice: lambda root, graph: [_side(root.matrix, root.transpose)] * 2,
        str: lambda root, graph: [_side(root, False)],
        Start: lambda root, graph: [_start(graph, root)],
    }
)


def _start(graph: LimitGraph, node: Start) -> Piece:
    size = next(group.size for group in graph.groups if group.name == node.group)
    name = node.group if size == 1 else f"{node.group}[{node.index}]"
    return Piece("start", (label(name),))


def block(name: str) -> Piece:
    """A block: a capital.

    Example:
        >>> block("h[2,1,:]").text
        'H[2,1]'
    """
    own = Name.of(name)
    letter = word(own.what[:-1] + own.what[-1].upper())
    shown = replace(own, what=letter.text, first=own.first or None)
    if not shown.parts:
        return letter
    return Piece("output", (subscript(letter, ",".join(shown.parts)),), str(shown))


def indexed(own: Piece, axes: Sequence[str]) -> Piece:
    """A block with names of its axes."""
    return call(own, word(",".join(axes))) if axes else own


def array(
    name: str, values: Sequence[Fraction | float], shape: Sequence[int]
) -> tuple[str, str, str]:
    """Given numbers as a matrix, or as their range where there are too many."""
    numbers = np.array([float(value) for value in values]).reshape(shape)
    if len(shape) > 2 or max(shape) > WIDEST:
        ends = f"[{numbers.min():.6g}, {numbers.max():.6g}]"
        return (
            f"{name} in {ends}",
            rf",\quad \mathrm{{{name}}} \in {ends}",
            f"<mo>;</mo><mi>{name}</mi><mo>&#x2208;</mo><mtext>{ends}</mtext>",
        )
    rows = [[f"{x:.6g}" for x in row] for row in np.atleast_2d(numbers)]
    plain = ", ".join("[" + ", ".join(row) + "]" for row in rows)
    tex = r" \\ ".join(" & ".join(row) for row in rows)
    cells = "".join(
        "<mtr>" + "".join(f"<mtd><mn>{x}</mn></mtd>" for x in row) + "</mtr>" for row in rows
    )
    return (
        f"{name} = {plain if numbers.ndim == 1 else f'[{plain}]'}",
        rf",\quad \mathrm{{{name}}} = \begin{{pmatrix}}{tex}\end{{pmatrix}}",
        f"<mo>;</mo><mi>{name}</mi><mo>=</mo><mo>(</mo><mtable>{cells}</mtable><mo>)</mo>",
    )


def label(name: str) -> Piece:
    """A name, its numbers as indices."""
    own = Name.of(name)
    if not own.parts or own.since or not all(part.isdecimal() for part in own.parts):
        return word(name)
    layer, *rest = own.parts
    layered = len(rest) == 2
    letter = index(own.what, layer) if layered else word(own.what)
    return Piece("output", (subscript(letter, ",".join(rest if layered else own.parts)),), name)


def variable(name: str) -> Piece:
    """The Z of a name."""
    return Piece("variable", (label(name),))
