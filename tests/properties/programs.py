"""Strategies: small random expressions and well-typed programs of single vectors."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from hypothesis import strategies as st

from tpcalc.errors import UnknownName
from tpcalc.exponents import Ex
from tpcalc.functions import Atom, Const, Expr, Facts, Fn, Par, Var, const
from tpcalc.functions.expr import add, mul, power
from tpcalc.functions.numbers import Number
from tpcalc.program.nodes import (
    Data,
    Dim,
    Family,
    Input,
    Kind,
    LinComb,
    MatMul,
    Moment,
    Node,
    Nonlin,
    OuterNonlin,
    Ref,
    Scale,
    members,
)
from tpcalc.program.program import Builder, Program

# ------------------------------------------------------------------------------- named functions

STEP = Atom("step", lambda xp, z: xp.where(z > 0, 1.0, 0.0), None)
RELU = Atom("relu", lambda xp, z: xp.maximum(z, 0.0), lambda z: STEP(z), Facts(kinks=(0.0,)))
TANH = Atom("tanh", lambda xp, z: xp.tanh(z), lambda z: 1 - TANH(z) ** 2)
SIN = Atom("sin", lambda xp, z: xp.sin(z), lambda z: COS(z))
COS = Atom("cos", lambda xp, z: xp.cos(z), lambda z: -SIN(z))
EXP = Atom("exp", lambda xp, z: xp.exp(z), lambda z: EXP(z))


def leaky_relu(slope: Number) -> Atom:
    number = float(slope)
    return Atom(
        "leaky_relu",
        lambda xp, z: xp.where(z > 0, z, number * z),
        lambda z: const(slope) + (1 - const(slope)) * STEP(z),
        params=(slope,),
    )


_PLAIN = {atom.name: atom for atom in (STEP, RELU, TANH, SIN, COS, EXP)}


def atoms(name: str, params: tuple[Number, ...] = ()) -> Atom:
    """The functions of these tests by name, as a catalogue gives them."""
    if name == "leaky_relu" and len(params) == 1:
        return leaky_relu(params[0])
    if name in _PLAIN and not params:
        return _PLAIN[name]
    raise UnknownName("function", name, [*_PLAIN, "leaky_relu"])


# -------------------------------------------------------------------------- numbers, expressions

FRACTIONS = st.fractions(min_value=-4, max_value=4, max_denominator=6)
POSITIVE = st.fractions(min_value=Fraction(1, 6), max_value=4, max_denominator=6)
FLOATS = st.floats(min_value=-8, max_value=8, allow_nan=False).filter(
    lambda value: value == 0 or abs(value) > 1e-30
)
NUMBERS: st.SearchStrategy[Number] = st.one_of(FRACTIONS, FLOATS)
SMOOTH = st.sampled_from([TANH, SIN, COS])
ANY_ATOM = st.one_of(
    st.sampled_from([*_PLAIN.values()]), st.sampled_from([Fraction(1, 5), 0.3]).map(leaky_relu)
)
POWERS = st.sampled_from([Fraction(2), Fraction(3), Fraction(1, 2), Fraction(-1), Fraction(-3, 2)])


def leaves(
    vectors: int, scalars: int, numbers: st.SearchStrategy[Number] = NUMBERS
) -> st.SearchStrategy[Expr]:
    kinds: list[st.SearchStrategy[Expr]] = [numbers.map(const)]
    if vectors:
        kinds.append(st.integers(0, vectors - 1).map(Var))
    if scalars:
        kinds.append(st.integers(0, scalars - 1).map(Par))
    return st.one_of(kinds)


def polynomials(
    vectors: int, scalars: int, numbers: st.SearchStrategy[Number] = FRACTIONS
) -> st.SearchStrategy[Expr]:
    """Sums, products, squares and bounded smooth functions: finite and smooth everywhere."""
    return grown(leaves(vectors, scalars, numbers), SMOOTH, 8)


def grown(
    start: st.SearchStrategy[Expr], functions: st.SearchStrategy[Atom], most: int
) -> st.SearchStrategy[Expr]:
    """Sums, products and squares of leaves, and functions of these."""
    return st.recursive(
        start,
        lambda inner: st.one_of(
            st.lists(inner, min_size=2, max_size=3).map(add),
            st.lists(inner, min_size=2, max_size=3).map(mul),
            inner.map(lambda part: part**2),
            st.tuples(functions, inner).map(lambda pair: pair[0](pair[1])),
        ),
        max_leaves=most,
    )


def _raised(base: Expr, exponent: Fraction) -> Expr:
    """A power, where a number would have to be positive for it."""
    if isinstance(base, Const) and (base.value == 0 or exponent.denominator != 1):
        return base
    return power(base, exponent)


def expressions(vectors: int, scalars: int) -> st.SearchStrategy[Expr]:
    """Every kind of expression, numbers of both kinds."""
    return st.recursive(
        leaves(vectors, scalars),
        lambda inner: st.one_of(
            st.lists(inner, min_size=2, max_size=4).map(add),
            st.lists(inner, min_size=2, max_size=4).map(mul),
            st.tuples(inner, POWERS).map(lambda pair: _raised(*pair)),
            st.tuples(ANY_ATOM, inner).map(lambda pair: pair[0](pair[1])),
        ),
        max_leaves=10,
    )


def functions(vectors: int, scalars: int) -> st.SearchStrategy[Fn]:
    return expressions(vectors, scalars).map(lambda expr: Fn(expr, vectors, scalars))


# ------------------------------------------------------------------------------------- exponents

SYMBOLS = ("a", "b_1", "p", "γ")


@st.composite
def exponents(draw: st.DrawFn) -> Ex:
    """Constants mostly, else polynomials of degree at most 3."""
    total = Ex.number(draw(FRACTIONS))
    for _ in range(draw(st.integers(0, 2))):
        term = Ex.number(draw(FRACTIONS))
        for name in draw(st.lists(st.sampled_from(SYMBOLS), max_size=3)):
            term = term * Ex.symbol(name)
        total = total + term
    return total


# -------------------------------------------------------------------------------------- programs

NAMES = st.one_of(
    st.sampled_from(["h", "W1", "x_2", "f[0,1]", "h[2,0,-1]", "the output", 'a "b"', "\n", "μ"]),
    st.text(min_size=1, max_size=4),
)


@st.composite
def groups(draw: st.DrawFn, name: str, dim: str) -> Family:
    size = draw(st.integers(1, 3))
    mean = tuple(draw(st.lists(NUMBERS, min_size=size, max_size=size)))
    if draw(st.booleans()):
        return Family.group(name, dim, mean)
    # A Gram matrix in exact arithmetic is symmetric and positive semidefinite; often singular.
    rank = draw(st.integers(0, size))
    rows = [draw(st.lists(FRACTIONS, min_size=rank, max_size=rank)) for _ in range(size)]
    cov = tuple(
        tuple(sum((a * b for a, b in zip(left, right, strict=True)), Fraction(0)) for right in rows)
        for left in rows
    )
    return Family.group(name, dim, mean, cov)


# What is drawn where one class of nodes is several things.
VECTOR, MATRIX, SCALAR, SCALAR_MAP = "vector", "matrix", "scalar", "map of scalars"


class _Grower:
    """Adds random nodes that fit what is there."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        ratios = draw(st.lists(POSITIVE, min_size=1, max_size=3))
        self.dims = [Dim(f"d{index}", ratio) for index, ratio in enumerate(ratios)]
        self.builder = Builder(self.dims)
        self.members: list[Input] = []
        for dim in self.dims:  # one group at least on each, so that every dimension has a vector
            cells = members(draw(groups(f"g_{dim.name}", dim.name)))
            self.members += cells
            self.builder.add(cells[0])

    def refs(self, kind: Kind, dim: str | None = None) -> list[Ref]:
        types = [self.builder.type(ref) for ref in range(len(self.builder))]
        return [
            ref
            for ref, found in enumerate(types)
            if found.kind is kind and (dim is None or found.width[0] == dim)
        ]

    def some(self, refs: list[Ref], least: int, most: int = 3) -> tuple[Ref, ...]:
        if not refs:
            return ()
        return tuple(self.draw(st.lists(st.sampled_from(refs), min_size=least, max_size=most)))

    def vectors(self, least: int = 1) -> tuple[Ref, ...]:
        dim = self.draw(st.sampled_from(self.dims)).name
        return self.some(self.refs(Kind.VECTOR, dim), least)

    def scalars(self) -> tuple[Ref, ...]:
        return self.some(self.refs(Kind.SCALAR), 0, 2)

    def fn(self, vectors: int, scalars: int) -> Fn:
        return self.draw(functions(vectors, scalars))

    def node(self, kind: Any) -> Node | None:
        """A node of this kind, or None where the program has nothing it could be applied to."""
        draw = self.draw
        if kind is VECTOR:
            return draw(st.sampled_from(self.members))
        if kind is MATRIX:
            rows, cols = (draw(st.sampled_from(self.dims)).name for _ in range(2))
            law = draw(st.sampled_from(["gaussian", "orthogonal"]))
            return Input(Family(f"W{len(self.builder)}", (rows, cols), law=law))
        if kind is SCALAR:
            std = draw(st.one_of(POSITIVE, st.just(0.5)))
            return Input(Family.scalar(f"c{len(self.builder)}", draw(NUMBERS), std))
        if kind is Data:
            return Data(f"c{len(self.builder)}", (draw(NUMBERS),))
        if kind is MatMul:
            return self._matmul()
        if kind is SCALAR_MAP:
            scalars = self.scalars()
            return Nonlin(self.fn(0, len(scalars)), (), scalars)
        if kind is Scale:
            of = draw(st.sampled_from(self.refs(Kind.VECTOR) + self.refs(Kind.SCALAR)))
            return Scale(of, draw(exponents()), draw(exponents()))
        vectors, scalars = self.vectors(), self.scalars()
        if kind is LinComb:
            return self._lincomb(vectors)
        if kind is OuterNonlin:
            return self._outer(vectors, scalars)
        made: Node = kind(self.fn(len(vectors), len(scalars)), vectors, scalars)
        return made  # Nonlin or Moment

    def _matmul(self) -> Node | None:
        matrices = self.refs(Kind.MATRIX)
        if not matrices:
            return None
        matrix, transpose = self.draw(st.sampled_from(matrices)), self.draw(st.booleans())
        side = self.builder.type(matrix).width[0 if transpose else 1]
        vector = self.draw(st.sampled_from(self.refs(Kind.VECTOR, side)))
        return MatMul(matrix, vector, transpose)

    def _lincomb(self, vectors: tuple[Ref, ...]) -> Node:
        size = len(vectors)
        numbers = self.draw(st.lists(NUMBERS, min_size=size, max_size=size))
        choices: list[Any] = [None, *self.refs(Kind.SCALAR)]
        scalars = self.draw(st.lists(st.sampled_from(choices), min_size=size, max_size=size))
        return LinComb(tuple(numbers), tuple(scalars), vectors)

    def _outer(self, rows: tuple[Ref, ...], scalars: tuple[Ref, ...]) -> Node:
        vector = self.draw(st.sampled_from(self.refs(Kind.VECTOR)))
        cols = self.some(self.refs(Kind.VECTOR, self.builder.type(vector).width[0]), 0, 2)
        fn = self.fn(len(rows) + len(cols), len(scalars))
        return OuterNonlin(fn, rows, cols, scalars, vector)


# Matrices and scalars more often: products and scalar arguments need them.
_KINDS = (
    VECTOR,
    MATRIX,
    MATRIX,
    Data,
    SCALAR,
    MatMul,
    MatMul,
    Nonlin,
    LinComb,
    Moment,
    OuterNonlin,
    SCALAR_MAP,
    Scale,
)


@st.composite
def programs(draw: st.DrawFn, max_nodes: int = 14) -> Program:
    """A well-typed program; node types, dimension classes, laws and numbers of every kind."""
    grower = _Grower(draw)
    for kind in draw(st.lists(st.sampled_from(_KINDS), max_size=max_nodes)):
        node = grower.node(kind)
        if node is not None:
            grower.builder.add(node, where=draw(st.sampled_from([None, "line 3"])))
    named = grower.some(grower.refs(Kind.VECTOR) + grower.refs(Kind.SCALAR), 0, 4)
    names = draw(st.lists(NAMES, min_size=len(named), max_size=len(named), unique=True))
    for name, ref in zip(names, named, strict=True):
        grower.builder.output(name, ref)
    return grower.builder.finish()
