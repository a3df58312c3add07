"""Formulas of limit variables, under a size budget: text, LaTeX and MathML.

A vector output is written in terms of other named outputs, Gaussian hats and expectations:
``Z[h2] = hat(W2 x1) + c * Z[dh2]`` with ``c = E[...]``. sympy is imported here only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

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
    Twice,
)
from tpcalc.limit.views import the_product
from tpcalc.program.base import Table
from tpcalc.program.nodes import Input, LinComb, Nonlin
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

    def write(self) -> Any:
        try:
            return self._node(self.target, top=True)
        except _TooLarge:
            return None

    def formula(self, name: str, expression: Any, power: Any) -> Formula:
        """Print in three notations; symbols are replaced after sympy has set the structure."""
        import sympy
        from sympy.printing.mathml import mathml

        vector = self.graph.vector_dim[self.target] is not None
        head = _z(name) if vector else _scalar(name)
        scale = "" if power == 0 else f"n^({power}) "
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
        prefix = f"<msup><mi>n</mi><mn>{power}</mn></msup>" if scale else ""
        tex_scale = f"n^{{{power}}} " if scale else ""
        return Formula(
            f"{name} ~ {scale}{head[0]}, {head[0]} = {text}" if scale else f"{head[0]} = {text}",
            f"{tex_scale}{head[1]} = {latex}" if not scale else f"{head[1]} = {latex}",
            f'<math display="block"><mrow>{prefix}{head[2]}<mo>=</mo>{markup}</mrow></math>'
            if not scale
            else f'<math display="block"><mrow>{head[2]}<mo>=</mo>{markup}</mrow></math>',
        )

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
            vector = self.graph.vector_dim[ref] is not None
            return self._symbol(_z(self.named[ref]) if vector else _scalar(self.named[ref]))
        return _FORMULAS(self.graph.nodes[ref], self, ref)

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

    def _combine(self, node: LinComb) -> Any:
        import sympy

        terms = []
        for number, scalar, vector in zip(node.numbers, node.scalars, node.vectors, strict=True):
            value = (
                sympy.Float(number, 6) if isinstance(number, float) else sympy.Rational(str(number))
            )
            factor = value if scalar is None else value * self._node(scalar)
            terms.append(factor * self._node(vector))
        return sympy.Add(*terms)

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
            tex, tag = rf"\text{{{plain}}}", f"<mtext>{_escape(plain)}</mtext>"
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
            total = total + c * self._node(earlier.vector)
        return total

    def _earlier(self, ref: LRef) -> Sequence[LRef]:
        """The earlier products of the correction whose coefficients are not 0 by symmetry."""
        found = correction(self.graph, ref)
        if found is None:
            raise _TooLarge
        return found.open

    def _label(self, ref: LRef) -> _Text:
        """A short name of a vector: its output name, or what it is made of."""
        if ref in self.named:
            return _plain(self.named[ref])
        made = _LABELS(self.graph.nodes[ref], self)
        return made or (f"v{ref}", f"v_{{{ref}}}", f"<msub><mi>v</mi><mn>{ref}</mn></msub>")

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
        return plain, rf"\text{{{plain}}}", f"<mtext>{_escape(plain)}</mtext>"


_FORMULAS: Table[Any] = Table(
    {
        Start: lambda node, by, ref: by._symbol(_start(by.graph, node)),
        Product: lambda node, by, ref: by._product(ref, node),
        Nonlin: lambda node, by, ref: by._function(node),
        LinComb: lambda node, by, ref: by._combine(node),
        Expect: lambda node, by, ref: by._expect(node),
        Number: lambda node, by, ref: by._number(node),
        Input: lambda node, by, ref: by._symbol(_scalar(node.name)),
        Fluctuation: lambda node, by, ref: by._fluctuation(node),
        OuterExpect: lambda node, by, ref: by._outer(node),
    }
)
# What a vector is made of, where that is short.
_LABELS: Table[_Text | None] = Table(
    {
        Start: lambda node, by: _start(by.graph, node),
        Product: lambda node, by: by._product_label(node),
        Nonlin: lambda node, by: by._function_label(node),
    },
    lambda node, by: None,
)


def _constant(text: str) -> Callable[[re.Match[str]], str]:
    """A replacement that is taken literally, backslashes included."""
    return lambda _: text


def _side(matrix: str, transpose: bool) -> _Text:
    """A matrix or its transpose."""
    if not transpose:
        return matrix, matrix, f"<mi>{_escape(matrix)}</mi>"
    sign = f"<msup><mi>{_escape(matrix)}</mi><mo>&#x22A4;</mo></msup>"
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


def _escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _plain(name: str) -> _Text:
    found = re.fullmatch(r"(\w+)\[([\d,\s]+)\]", name)
    if found is None:
        return name, rf"\mathrm{{{name}}}", f"<mi>{_escape(name)}</mi>"
    base, index = found.groups()
    parts = index.replace(" ", "").split(",")
    if len(parts) == 3:
        layer, step, sample = parts
        return (
            name,
            rf"{_tex_base(base)}^{{{layer}}}_{{{step},{sample}}}",
            f"<msubsup><mi>{base}</mi><mrow><mn>{step}</mn><mo>,</mo><mn>{sample}</mn></mrow>"
            f"<mn>{layer}</mn></msubsup>",
        )
    return name, rf"{_tex_base(base)}_{{{index}}}", f"<msub><mi>{base}</mi><mn>{index}</mn></msub>"


def _tex_base(base: str) -> str:
    return base if len(base) == 1 else rf"\mathrm{{{base}}}"


def _z(name: str) -> _Text:
    plain, tex, tag = _plain(name)
    return f"Z[{plain}]", f"Z^{{{tex}}}", f"<msup><mi>Z</mi>{tag}</msup>"


def _scalar(name: str) -> _Text:
    return _plain(name)


def _start(graph: LimitGraph, node: Start) -> _Text:
    size = next(group.size for group in graph.groups if group.name == node.group)
    name = node.group if size == 1 else f"{node.group}[{node.index}]"
    plain = _plain(node.group)
    if size == 1:
        return name, f"Z^{{{plain[1]}}}", f"<msup><mi>Z</mi>{plain[2]}</msup>"
    return (
        name,
        f"Z^{{{plain[1]}_{{{node.index}}}}}",
        f"<msup><mi>Z</mi><msub>{plain[2]}<mn>{node.index}</mn></msub></msup>",
    )
