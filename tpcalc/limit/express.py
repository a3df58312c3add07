"""Formulas of limit variables, under a size budget: text, LaTeX and MathML.

A vector output is written in terms of other named outputs, Gaussian hats and expectations:
``Z[h2] = hat(W2 x1) + c * Z[dh2]`` with ``c = E[...]``. sympy is imported here only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import product
from math import prod
from typing import Any

import numpy as np

from tpcalc.functions.expr import walk
from tpcalc.functions.symbolic import to_sympy
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
)
from tpcalc.limit.notation import array, block, escape, indexed, label, variable
from tpcalc.limit.views import data_of, rename_of, stack_of, the_product
from tpcalc.program.base import Table
from tpcalc.program.nodes import Data, Input, LinComb, Nonlin, Rename, Stack
from tpcalc.program.types import Axes
from tpcalc.results import Formula

__all__ = ["express"]

BUDGET = 40
PLACE = "placeholder"  # sympy sets the structure of a formula, with these for its symbols
HAT = "<mover><mi>Z</mi><mo>^</mo></mover>"
_Text = tuple[str, str, str]  # in three notations


def express(
    graph: LimitGraph, names: Iterable[str] | None = None, budget: int = BUDGET
) -> dict[str, Formula]:
    """Formulas of the outputs.

    Args:
        graph: The limit graph.
        names: Outputs to print; None: all.
        budget: Largest number of operations in a formula; larger ones are left out.

    Returns:
        For each output that fits its formula. A hat is a centred Gaussian with
        Cov = ratio * E[Z Z'] within one side of one matrix; ``c`` coefficients of a correction are
        E of the derivative by the earlier hat.

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
        writer = _Writer(graph, named, target.node, budget)
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
    budget: int
    symbols: dict[Any, _Text] = field(default_factory=dict)
    env: dict[str, str | int] = field(default_factory=dict)  # what axes are called, or a cell
    arrays: dict[str, Data] = field(default_factory=dict)

    def write(self) -> Any:
        try:
            self.env = {name: name for name, _ in self._axes(self.target)}
            return self._node(self.target, top=True)
        except _TooLarge:
            return None

    def formula(self, name: str, expression: Any, power: Any) -> Formula:
        """The formula with its head, in three notations."""
        vector = self.graph.vector_dim[self.target] is not None
        axes = self._axes(self.target)
        if self.graph.has_blocks:
            head = indexed(block(name), tuple(f"{axis}:{size}" for axis, size in axes))
        else:
            head = variable(name) if vector else label(name)
        scale = "" if power == 0 else f"n^({power}) "
        text, latex, markup = self._printed(expression)
        for own, data in self.arrays.items():
            shown = array(own, data.values, [size for _, size in data.axes])
            text, latex, markup = text + "; " + shown[0], latex + shown[1], markup + shown[2]
        prefix = f"<msup><mi>n</mi><mn>{power}</mn></msup>" if scale else ""
        tex_scale = f"n^{{{power}}} " if scale else ""
        return Formula(
            f"{name} ~ {scale}{head[0]}, {head[0]} = {text}" if scale else f"{head[0]} = {text}",
            f"{tex_scale}{head[1]} = {latex}" if not scale else f"{head[1]} = {latex}",
            f'<math display="block"><mrow>{prefix}{head[2]}<mo>=</mo>{markup}</mrow></math>'
            if not scale
            else f'<math display="block"><mrow>{head[2]}<mo>=</mo>{markup}</mrow></math>',
        )

    def _printed(self, expression: Any) -> _Text:
        """Print in three notations; symbols are replaced after sympy has set the structure."""
        import sympy
        from sympy.printing.mathml import mathml

        text = sympy.sstr(expression, order="none")
        latex = sympy.latex(
            expression,
            order="none",
            symbol_names={symbol: parts[1] for symbol, parts in self.symbols.items()},
        )
        markup = mathml(
            expression, printer="presentation", order="none", disable_split_super_sub=True
        )
        plain = {symbol.name: parts[0] for symbol, parts in self.symbols.items()}
        text = re.sub(rf"{PLACE}\d+", lambda found: plain[found[0]], text)
        tags = {symbol.name: parts[2] for symbol, parts in self.symbols.items()}
        markup = re.sub(rf"<mi>({PLACE}\d+)</mi>", lambda found: tags[found[1]], markup)
        return text, latex, markup

    # -- nodes -------------------------------------------------------------------------------

    def _symbol(self, parts: _Text) -> Any:
        import sympy

        for symbol, known in self.symbols.items():
            if known == parts:
                return symbol
        symbol = sympy.Symbol(f"{PLACE}{len(self.symbols)}", real=True)
        self.symbols[symbol] = parts
        return symbol

    def _spend(self, amount: int = 1) -> None:
        self.budget -= amount
        if self.budget < 0:
            raise _TooLarge

    def _node(self, ref: LRef, *, top: bool = False) -> Any:
        self._spend()
        if not top and ref in self.named:
            if self.graph.has_blocks:
                return self._symbol(self._block(self.named[ref], ref))
            vector = self.graph.vector_dim[ref] is not None
            return self._symbol(variable(self.named[ref]) if vector else label(self.named[ref]))
        return _FORMULAS(self.graph.nodes[ref], self, ref)

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

    def _block(self, name: str, ref: LRef) -> _Text:
        return self._indexed(block(name), ref)

    def _indexed(self, own: _Text, ref: LRef) -> _Text:
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

    def _data(self, node: Data, ref: LRef) -> Any:
        if len(set(node.values)) == 1:
            return self._number(Number(node.values[0]))
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

    def _summed(self, over: Axes, made: Callable[[], Any]) -> Any:
        """A sum over axes: of steps term by term, of all others with a sign."""
        steps = [(name, size) for name, size in over if name in self._steps]
        names = [(name, self._fresh(name), size) for name, size in over if name not in self._steps]
        env = self.env | {name: own for name, own, _ in names}
        total: Any = 0
        for cell in product(*(range(size) for _, size in steps)):
            self._spend()
            at = env | dict(zip(dict(steps), cell, strict=True))
            total = total + self._within(at, made)
        if not names or total == 0:
            return total
        text, latex, tag = self._printed(total)
        sizes = ", ".join(f"{own}:{size}" for _, own, size in names)
        below = ", ".join(rf"\text{{{own}}}" for _, own, _ in names)
        sign = f"<munder><mo>&#x2211;</mo><mtext>{escape(sizes)}</mtext></munder>"
        return self._symbol(
            (
                f"sum[{sizes}]({text})",
                rf"\sum_{{{below}}} \left({latex}\right)",
                f"<mrow>{sign}<mo>(</mo>{tag}<mo>)</mo></mrow>",
            )
        )

    @cached_property
    def _steps(self) -> set[str]:
        """The axes along which values are stacked, each with a formula of its own."""
        found = {node.axis for node in map(stack_of, self.graph.nodes) if node is not None}
        renames = [node for node in map(rename_of, self.graph.nodes) if node is not None]
        for node in renames:
            found |= {new for old, new in node.names if old in found}
        return found

    def _total(self, node: Total | LinComb) -> Any:
        import sympy

        over = node.over or ((),) * len(node.vectors)
        terms = []
        for x, s, v, names in zip(node.numbers, node.scalars, node.vectors, over, strict=True):
            number = sympy.Float(x, 6) if isinstance(x, float) else sympy.Rational(str(x))
            sizes = dict(self._axes(v)) | dict(self._axes(s) if s is not None else ())
            own = tuple((name, sizes[name]) for name in names if name in sizes)
            cell = self._chosen(s, own)
            left = tuple(axis for axis in own if axis[0] not in cell)
            factors = [v] if s is None or cell else [s, v]

            def term(factors: Sequence[LRef] = factors, number: Any = number) -> Any:
                return prod(map(self._node, factors), start=number)

            # A number goes to the sum that it is a factor of, but for those with a sign.
            made = partial(self._summed, left, partial(term, number=1)) if left else term
            terms.append((number if left else 1) * self._within({**self.env, **cell}, made))
        return sympy.Add(*terms)

    def _function(self, node: Nonlin) -> Any:
        self._spend(sum(1 for _ in walk(node.fn.expr)))
        own = [self._node(r) for r in node.vectors]
        return to_sympy(node.fn.expr, own, [self._node(r) for r in node.scalars])

    def _number(self, node: Number) -> Any:
        import sympy

        value = node.value
        return sympy.Float(value) if isinstance(value, float) else sympy.Rational(str(value))

    def _fluctuation(self, node: Fluctuation) -> Any:
        labels = [*_BASES(node.root, self.graph), *(self._label(v) for v in node.vectors)]
        plain, tex, tag = zip(*labels, strict=True)
        tags = "<mo>,</mo>".join(tag)
        return self._symbol(
            (
                f"G[{', '.join(plain)}]",
                f"G({', '.join(tex)})",
                f"<mrow><mi>G</mi><mo>(</mo>{tags}<mo>)</mo></mrow>",
            )
        )

    def _outer(self, node: OuterExpect) -> Any:
        raise _TooLarge

    def _expect(self, node: Expect) -> Any:
        parts = [self._label(ref) for ref in node.vectors]
        if node.fn.is_inner:
            left, right = parts[0], parts[-1]
            plain = f"{left[0]}^2" if len(parts) == 1 else f"{left[0]} {right[0]}"
            tex = f"({left[1]})^2" if len(parts) == 1 else f"{left[1]} {right[1]}"
            tag = (
                f"<msup><mrow>{left[2]}</mrow><mn>2</mn></msup>"
                if len(parts) == 1
                else f"{left[2]}<mspace width='0.2em'/>{right[2]}"
            )
        else:
            self._spend(sum(1 for _ in walk(node.fn.expr)))
            plain = node.fn.text
            for index, part in enumerate(parts):
                plain = re.sub(rf"\bx{index}\b", _constant(part[0]), plain)
            tex, tag = rf"\text{{{plain}}}", f"<mtext>{escape(plain)}</mtext>"
        return self._symbol(
            (
                f"E[{plain}]",
                rf"\mathbb E[{tex}]",
                f"<mrow><mi>E</mi><mo>[</mo>{tag}<mo>]</mo></mrow>",
            )
        )

    def _product(self, ref: LRef, node: Product) -> Any:
        """The hat, and one correction term for each earlier product on the other side."""
        x = self._label(node.vector)
        own, back = _side(node.matrix, node.transpose), _side(node.matrix, not node.transpose)
        total = self._symbol(
            (
                f"hat({own[0]} {x[0]})",
                rf"\hat Z^{{{own[1]} {x[1]}}}",
                f"<msup>{HAT}<mrow>{own[2]}<mspace width='0.15em'/>{x[2]}</mrow></msup>",
            )
        )
        earlier_products = self._earlier(ref)
        if earlier_products and node.matrix in self.graph.orthogonal:
            raise _TooLarge  # coefficients that solve a linear system
        for other in earlier_products:
            earlier = the_product(self.graph.nodes[other])
            self._spend(2)
            shared = dict(dict(self.graph.matrix_axes).get(node.matrix, ()))
            over = tuple(axis for axis in self._axes(other) if axis[0] not in shared)
            total = total + self._summed(over, partial(self._correction, x, earlier, back))
        return total

    def _correction(self, x: _Text, earlier: Product, back: _Text) -> Any:
        y = self._label(earlier.vector)
        below = f"<mo>&#x2202;</mo><msup>{HAT}<mrow>{back[2]}{y[2]}</mrow></msup>"
        c = self._symbol(
            (
                f"E[d {x[0]}/d hat({back[0]} {y[0]})]",
                rf"\mathbb E\frac{{\partial {x[1]}}}{{\partial \hat Z^{{{back[1]} {y[1]}}}}}",
                f"<mrow><mi>E</mi><mfrac><mrow><mo>&#x2202;</mo>{x[2]}</mrow>"
                f"<mrow>{below}</mrow></mfrac></mrow>",
            )
        )
        return c * self._node(earlier.vector)

    def _earlier(self, ref: LRef) -> Sequence[LRef]:
        """The earlier products of the correction whose coefficients are not 0 by symmetry."""
        found = correction(self.graph, ref)
        if found is None:
            raise _TooLarge
        return found.open

    def _label(self, ref: LRef) -> _Text:
        """A short name of a vector: its output name, or what it is made of."""
        if ref in self.named:
            name = self.named[ref]
            return self._block(name, ref) if self.graph.has_blocks else label(name)
        made = _LABELS(self.graph.nodes[ref], self)
        plain = (f"v{ref}", f"v_{{{ref}}}", f"<msub><mi>v</mi><mn>{ref}</mn></msub>")
        return made or self._indexed(plain, ref)

    def _product_label(self, node: Product) -> _Text | None:
        side, x = _side(node.matrix, node.transpose), self._label(node.vector)
        if len(x[0]) > 40:
            return None
        return f"{side[0]} {x[0]}", f"{side[1]} {x[1]}", f"<mrow>{side[2]}{x[2]}</mrow>"

    def _function_label(self, node: Nonlin) -> _Text | None:
        if len(node.vectors) > 2 or node.scalars:
            return None
        parts = [self._label(r) for r in node.vectors]
        plain = node.fn.text
        for index, part in enumerate(parts):
            plain = re.sub(rf"\bx{index}\b", _constant(part[0]), plain)
        if len(plain) > 60:
            return None
        return plain, rf"\text{{{plain}}}", f"<mtext>{escape(plain)}</mtext>"


_FORMULAS: Table[Any] = Table(
    {
        Start: lambda node, by, ref: by._symbol(_start(by.graph, node)),
        Product: lambda node, by, ref: by._product(ref, node),
        Nonlin: lambda node, by, ref: by._function(node),
        LinComb: lambda node, by, ref: by._total(node),
        Expect: lambda node, by, ref: by._expect(node),
        Number: lambda node, by, ref: by._number(node),
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
_LABELS: Table[_Text | None] = Table(
    {
        Start: lambda node, by: _start(by.graph, node),
        Product: lambda node, by: by._product_label(node),
        Nonlin: lambda node, by: by._function_label(node),
        Rename: lambda node, by: (
            (at := by._renamed(node)) and by._within(at[1], lambda: by._label(at[0]))
        ),
        Stack: lambda node, by: by._label(by._item(node)),
    },
    lambda node, by: None,
)


def _constant(text: str) -> Callable[[re.Match[str]], str]:
    """A replacement that is taken literally, backslashes included."""
    return lambda _: text


def _side(matrix: str, transpose: bool) -> _Text:
    """A matrix or its transpose."""
    if not transpose:
        return matrix, matrix, f"<mi>{escape(matrix)}</mi>"
    sign = f"<msup><mi>{escape(matrix)}</mi><mo>&#x22A4;</mo></msup>"
    return f"{matrix}^T", rf"{matrix}^{{\top}}", sign


# What a fluctuation is linear in besides its vectors.
_BASES: Table[list[_Text]] = Table(
    {
        Rows: lambda root, graph: [],
        Twice: lambda root, graph: [_side(root.matrix, root.transpose)] * 2,
        str: lambda root, graph: [_side(root, False)],
        Start: lambda root, graph: [_start(graph, root)],
    }
)


def _start(graph: LimitGraph, node: Start) -> _Text:
    size = next(group.size for group in graph.groups if group.name == node.group)
    name = node.group if size == 1 else f"{node.group}[{node.index}]"
    plain = label(node.group)
    if size == 1:
        return name, f"Z^{{{plain[1]}}}", f"<msup><mi>Z</mi>{plain[2]}</msup>"
    return (
        name,
        f"Z^{{{plain[1]}_{{{node.index}}}}}",
        f"<msup><mi>Z</mi><msub>{plain[2]}<mn>{node.index}</mn></msub></msup>",
    )
