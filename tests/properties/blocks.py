"""Strategies: well-typed programs of blocks, with few axes that meet often."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from hypothesis import strategies as st
from properties.programs import SIN, TANH

from tpcalc.activations.entries.exp import EXP
from tpcalc.exponents import as_ex
from tpcalc.functions import Expr, Fn, Par, Var, const
from tpcalc.functions.expr import add, mul
from tpcalc.functions.rows import RowFn
from tpcalc.program.nodes import (
    Data,
    Family,
    Input,
    Kind,
    LinComb,
    MatMul,
    Moment,
    Nonlin,
    OuterNonlin,
    Ref,
    Rename,
    RowNonlin,
    Scale,
    Stack,
)
from tpcalc.program.program import Builder, Program

SIZES = {"b": 2, "b'": 2, "in": 3, "p": 2}
NUMBERS = st.sampled_from([Fraction(0), Fraction(1), Fraction(-1, 2), 0.3])


# Softmax of a row that has one more entry, which is 0 and is left out of the image.
SHARES = RowFn(
    "shares",
    lambda row: [EXP(x) * add((const(1), *map(EXP, row))) ** -1 for x in row],
    lambda own, adjoint, total: own * (adjoint - total),
)


class _Grower:
    """Adds random nodes that fit what is there; small functions, so that numbers stay small."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw, self.builder = draw, Builder()
        self.count = 0
        for kind in (Input, Data, "matrix"):
            self.leaf(kind)

    def leaf(self, kind: Any) -> None:
        draw, self.count = self.draw, self.count + 1
        names = draw(st.lists(st.sampled_from(sorted(SIZES)), max_size=2, unique=True))
        axes = tuple((name, SIZES[name]) for name in names)
        name = f"leaf{self.count}"
        if kind is Data:
            size = Family(name, (), axes).size
            values = draw(st.lists(NUMBERS, min_size=size, max_size=size))
            self.builder.add(Data(name, tuple(values), axes))
        elif kind == "matrix":
            self.builder.add(Input(Family(name, ("n", "n"), axes)))
        else:
            block = Family(name, draw(st.sampled_from([("n",), ("n",), ()])), axes)
            cell = None
            if axes and draw(st.booleans()):
                cell = draw(st.integers(0, block.size - 1))
            self.builder.add(Input(block, cell))

    def some(self, kind: Kind, least: int, most: int) -> tuple[Ref, ...]:
        refs = [r for r in range(len(self.builder)) if self.builder.type(r).kind is kind]
        if not refs:
            return ()
        return tuple(self.draw(st.lists(st.sampled_from(refs), min_size=least, max_size=most)))

    def one_dim(self, refs: tuple[Ref, ...]) -> bool:
        return len({self.builder.type(ref).width for ref in refs}) == 1

    def fn(self, vectors: int, scalars: int) -> Fn:
        slots: list[Expr] = [*map(Var, range(vectors)), *map(Par, range(scalars))]
        terms = [mul((TANH(slot), SIN(slots[place - 1]))) for place, slot in enumerate(slots)]
        linear = self.draw(st.sampled_from(slots)) if slots else Par(0)
        expr = add((*terms, linear)) if slots else add(())
        if slots and self.draw(st.booleans()):
            expr = self.draw(st.sampled_from(slots))
        return Fn(expr, vectors, scalars)

    def grow(self, kind: Any) -> None:
        if kind in (Data, Input, "matrix"):
            self.leaf(kind)
            return
        node = self.node(kind)
        if node is not None:
            self.builder.add(node)

    def node(self, kind: Any) -> Any:
        draw = self.draw
        vectors, scalars = self.some(Kind.VECTOR, 1, 3), self.some(Kind.SCALAR, 0, 2)
        if kind is Nonlin:
            vectors = () if draw(st.booleans()) and scalars else vectors
            if not vectors and not scalars:
                return None
            return Nonlin(self.fn(len(vectors), len(scalars)), vectors, scalars)
        if kind is Scale:
            of, _ = self.named_axes((*vectors, *scalars))
            power = draw(st.sampled_from(["0", "-1/2", "1/4"]))
            return None if of is None else Scale(of, as_ex(power))
        if kind is RowNonlin:
            of, names = self.named_axes((*vectors, *scalars))
            return RowNonlin(SHARES, of, draw(st.sampled_from(names))) if names else None
        if kind is Rename:
            return self.rename((*vectors, *scalars))
        if kind is Stack:
            return self.stack(vectors if draw(st.booleans()) and vectors else scalars)
        return self.of_vectors(kind, vectors, scalars) if vectors else None

    def of_vectors(self, kind: Any, vectors: tuple[Ref, ...], scalars: tuple[Ref, ...]) -> Any:
        draw = self.draw
        if kind is MatMul:
            matrices = self.some(Kind.MATRIX, 1, 1)
            return MatMul(matrices[0], vectors[0], draw(st.booleans()))
        if kind is LinComb:
            return self.lincomb(vectors)
        if kind is OuterNonlin:
            rows, cols = vectors, self.some(Kind.VECTOR, 0, 2)
            fn = self.fn(len(rows) + len(cols), len(scalars))
            return OuterNonlin(fn, rows, cols, scalars, self.some(Kind.VECTOR, 1, 1)[0])
        return Moment(self.fn(len(vectors), len(scalars)), vectors, scalars)

    def stack(self, items: tuple[Ref, ...]) -> Stack | None:
        held = {name for one in items for name, _ in self.builder.type(one).axes}
        axis = f"k{len(items)}"  # one size for each name
        return Stack(items, axis) if items and axis not in held and self.one_dim(items) else None

    def rename(self, refs: tuple[Ref, ...]) -> Rename | None:
        of, names = self.named_axes(refs)
        swaps = {"b": "b'", "b'": "p", "p": "b"}
        chosen = [name for name in names if name in swaps and swaps[name] not in names][:1]
        return Rename(of, tuple((name, swaps[name]) for name in chosen)) if chosen else None

    def named_axes(self, refs: tuple[Ref, ...]) -> tuple[Any, list[str]]:
        """One of some nodes, with the names of its axes."""
        of = self.draw(st.sampled_from(refs)) if refs else None
        return of, [] if of is None else [name for name, _ in self.builder.type(of).axes]

    def lincomb(self, vectors: tuple[Ref, ...]) -> Any:
        draw = self.draw
        scalars = self.some(Kind.SCALAR, 1, 3)
        if draw(st.booleans()) and scalars:
            vectors = scalars
        factors = [None, *scalars]
        chosen = tuple(draw(st.sampled_from(factors)) for _ in vectors)
        over = []
        for scalar, vector in zip(chosen, vectors, strict=True):
            types = [self.builder.type(one) for one in (scalar, vector) if one is not None]
            names = sorted({name for one in types for name, _ in one.axes})
            over.append(tuple(name for name in names if draw(st.booleans())))
        if vectors == scalars and not any(over):
            return None  # a function of scalars
        numbers = tuple(draw(NUMBERS) for _ in vectors)
        return LinComb(numbers, chosen, vectors, tuple(over) if any(over) else ())


_KINDS = (Data, Input, "matrix", MatMul, Moment, OuterNonlin, RowNonlin, Scale, Stack)
_OFTEN = (Nonlin, LinComb, Rename)


@st.composite
def block_programs(draw: st.DrawFn, most: int = 8) -> Program:
    """A program of blocks with every node type; all vectors and scalars may be outputs."""
    grower = _Grower(draw)
    for kind in draw(st.lists(st.sampled_from(_KINDS + 2 * _OFTEN), min_size=2, max_size=most)):
        grower.grow(kind)
    builder = grower.builder
    for ref in range(len(builder)):
        if builder.type(ref).kind is not Kind.MATRIX:
            builder.output(f"v{ref}", ref)
    return builder.finish()
