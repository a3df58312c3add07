"""``Recorder``: the program under construction, with what errors need to speak the user's names."""

from __future__ import annotations

import re
from fractions import Fraction

from tpcalc.dsl.operands import Number, misuse, noun, user_line
from tpcalc.errors import ProgramError, TraceError, UnknownName
from tpcalc.exponents import Ex
from tpcalc.functions import Atom, Call, Fn, Var
from tpcalc.functions.expr import walk
from tpcalc.functions.numbers import is_finite, number_text
from tpcalc.program.along import along_of
from tpcalc.program.base import Table, applied_of, leaf_of, scale_of
from tpcalc.program.nodes import (
    Dim,
    Family,
    LinComb,
    MatMul,
    Moment,
    Node,
    Nonlin,
    Ref,
    Scale,
    members,
)
from tpcalc.program.program import Builder, Program

Term = tuple[Number, Ref | None, Ref]
"""number * (scalar or 1) * vector, as in a linear combination."""


def bracketed(text: str) -> str:
    """A formula in brackets, unless it is one name or one call.

    Example:
        >>> bracketed("x + y"), bracketed("relu(x + y)")
        ('(x + y)', 'relu(x + y)')
    """
    depth = 0
    for letter in text:
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if letter == " " and depth == 0:
            return f"({text})"
    return text


class Recorder:
    """Records the nodes of one traced program."""

    def __init__(self, title: str, base: Program | None = None) -> None:
        self.title = title
        self.along = ""
        self.line: str | None = None
        self.builder = Builder() if base is None else Builder.copy(base)
        self.dims: dict[str, Dim] = {"n": Dim("n")} if base is None else dict(base.dim)
        self._vector_names: dict[Ref, str] = {}
        self._taken: dict[tuple[str, str], str | None] = {}
        self._atoms: dict[str, Atom] = {}
        self._checked: set[Fn] = set()
        self._closed = False
        if base is not None:
            self._take(base)

    def _take(self, base: Program) -> None:
        """Hold the names and functions of a program that is there already."""
        for ref, node in enumerate(base.nodes):
            line = base.line_of(ref)
            if (leaf := leaf_of(node)) is not None:
                self._taken["input", leaf.name] = line
            self._check_names(node)
        for name in base.families:
            self._taken.setdefault(("input", name), None)
        for name, ref in base.outputs:
            self._taken["output", name] = base.line_of(ref)

    def add(self, node: Node, line: str | None = None) -> Ref:
        """Append a node, with the user's line."""
        if self._closed:
            raise misuse(
                f"the program {self.title!r} is finished; its vectors cannot be used any more.",
                "Compute everything inside the traced function and name results with t.output.",
            )
        self._check_names(node)
        return self.builder.add(node, line or self.line or user_line())

    def linear(self, terms: tuple[Term, ...], line: str | None) -> Ref:
        """The node of a sum of terms, with like terms collected.

        A sum that is one vector alone is that vector: no node is added.
        """
        collected: dict[tuple[Ref | None, Ref], Number] = {}
        for number, scalar, vector in terms:
            key = (scalar, vector)
            if not (is_finite(number) and is_finite(collected.get(key, 0))):
                raise TraceError(
                    f"the coefficients of {self.describe_terms(terms)} leave the range of a float.",
                    where=line,
                    hint="Rescale them, or write large factors as powers of n.",
                )
            collected[key] = collected[key] + number if key in collected else number
        kept = {key: number for key, number in collected.items() if number != 0}
        if not kept:  # a zero vector still needs its dimension
            kept = {(None, terms[0][2]): Fraction(0)}
        if len(kept) == 1:
            ((scalar, vector), number) = next(iter(kept.items()))
            if scalar is None and number == 1:
                return vector
        return self.add(
            LinComb(
                tuple(kept.values()),
                tuple(scalar for scalar, _ in kept),
                tuple(vector for _, vector in kept),
            ),
            line,
        )

    def scaled(self, ref: Ref, n_power: Ex, depth_power: Ex) -> Ref:
        """The node of a vector or scalar times powers of n and L; two in a row become one."""
        inner = scale_of(self.builder.node(ref))
        if inner is not None:
            n_power, depth_power = n_power + inner.n_power, depth_power + inner.depth_power
            ref = inner.of
        if n_power.constant == 0 and depth_power.constant == 0:
            return ref
        return self.add(Scale(ref, n_power, depth_power), self.builder.line_of(ref))

    def law_along(self, text: str = "") -> str:
        """The law along the depth of what is drawn now: one asked for, or that of the block."""
        if not text:
            return self.along
        try:
            law = str(along_of(text))
        except ProgramError as error:
            raise misuse(error.message, error.hint) from None
        if not self.along:
            raise misuse(
                f"something is {law} along the depth outside of a block that is repeated L times.",
                "Draw it in t.repeat('L', x, block); tp.at_depth gives L a number.",
            )
        return law

    def claim(self, kind: str, name: object) -> str:
        """Reserve the name of an input or an output."""
        if not isinstance(name, str):
            raise misuse(f"the name of a {kind} is a text, not {noun(name)}.")
        if not name or not name.isprintable() or name != name.strip() or '"' in name:
            raise misuse(
                f"{name!r} cannot name a {kind}.",
                "Use a printable name without quotes and outer spaces.",
            )
        key = ("output" if kind == "output" else "input", name)
        if key in self._taken:
            line = self._taken[key]
            raise misuse(
                f"there is already an {key[0]} called {name!r}"
                f"{f', made at {line}' if line else ''}.",
                "Keep the first one in a variable to use it again, or give this one another name.",
            )
        self._taken[key] = user_line()
        return name

    def declare_dim(self, dim: Dim) -> None:
        """Declare a dimension class."""
        known = self.dims.setdefault(dim.name, dim)
        if known != dim:
            raise misuse(
                f"the dimension class {dim.name!r} already has ratio {known.ratio}, not "
                f"{dim.ratio}.",
                "Give the second one another name.",
            )
        self.builder.dim(dim)

    def dim_name(self, name: object) -> str:
        """A declared dimension class; None means ``n``."""
        if name is None:
            return "n"
        if not isinstance(name, str) or name not in self.dims:
            raise UnknownName("dimension class", str(name), self.dims, where=user_line())
        return name

    def group(self, group: Family, names: list[str]) -> list[Ref]:
        """Append the members of a Gaussian group."""
        refs = [self.add(cell) for cell in members(group)]
        self._vector_names.update(zip(refs, names, strict=True))
        return refs

    def finish(self) -> Program:
        """The nodes that an output needs; nothing can be recorded afterwards."""
        self._closed = True
        return self.builder.finish(keep_unused=False)

    def _check_names(self, node: Node) -> None:
        """Refuse two functions of one name: the printed program could not tell them apart."""
        applied = applied_of(node)
        if applied is None or applied.fn in self._checked:
            return
        self._checked.add(applied.fn)
        for part in walk(applied.fn.expr):
            if not isinstance(part, Call):
                continue
            if self._atoms.setdefault(part.atom.text, part.atom) != part.atom:
                raise misuse(
                    f"two different functions called {part.atom.text!r} meet in the program "
                    f"{self.title!r}.",
                    "Give one of them another name.",
                )

    # ------------------------------------------------------------------ what a node is called

    def describe(self, ref: Ref, depth: int = 3) -> str:
        """A node in the user's names, cut off below ``depth`` levels."""
        node = self.builder.node(ref)
        if (leaf := leaf_of(node)) is not None:
            return self._vector_names.get(ref, leaf.name)
        return "..." if depth == 0 else _DESCRIPTIONS(node, self, depth)

    def _describe_matmul(self, node: MatMul, depth: int) -> str:
        side = ".T" if node.transpose else ""
        return f"{self.describe(node.matrix)}{side} @ {self._inner(node.vector, depth)}"

    def _describe_scale(self, node: Scale, depth: int) -> str:
        powers = [
            f"{base}**({exponent})"
            for base, exponent in (("n", node.n_power), ("L", node.depth_power))
            if exponent.constant != 0
        ]
        return " * ".join([*powers, self._inner(node.of, depth)])

    def describe_terms(self, terms: tuple[Term, ...], depth: int = 3) -> str:
        """A sum in the user's names."""
        shown: list[str] = []
        for number, scalar, vector in terms[:3]:
            size = -number if number < 0 else number
            factors = [] if size == 1 else [number_text(size)]
            factors += [] if scalar is None else [self._inner(scalar, depth)]
            text = "*".join([*factors, self._inner(vector, depth)])
            sign = "-" if number < 0 else "+"
            shown.append(f" {sign} {text}" if shown else ("-" if sign == "-" else "") + text)
        return "".join(shown) + (" + ..." if len(terms) > 3 else "")

    def _inner(self, ref: Ref, depth: int) -> str:
        return bracketed(self.describe(ref, depth - 1))

    def _describe_fn(self, node: Nonlin | Moment, depth: int) -> str:
        fn = node.fn
        names = {f"x{i}": self._inner(ref, depth) for i, ref in enumerate(node.vectors)}
        names |= {f"s{i}": self._inner(ref, depth) for i, ref in enumerate(node.scalars)}
        if isinstance(fn.expr, Call) and fn.expr.arg == Var(0):
            return f"{fn.expr.atom.text}({self.describe(node.vectors[0], depth - 1)})"
        return re.sub(r"\b[xs]\d+\b", lambda found: names.get(found[0], found[0]), fn.text)


def _sum(node: LinComb, of: Recorder, depth: int) -> str:
    return of.describe_terms(
        tuple(zip(node.numbers, node.scalars, node.vectors, strict=True)), depth
    )


_DESCRIPTIONS: Table[str] = Table(
    {
        MatMul: lambda node, of, depth: of._describe_matmul(node, depth),
        LinComb: _sum,
        Scale: lambda node, of, depth: of._describe_scale(node, depth),
        Nonlin: lambda node, of, depth: of._describe_fn(node, depth),
        Moment: lambda node, of, depth: f"mean({of._describe_fn(node, depth)})",
    },
    lambda node, of, depth: f"{node.grammar.partition(' ')[0]}(...)",
)
