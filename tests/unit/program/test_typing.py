"""Each condition under which a node list is a Tensor Program, with its message."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from properties.programs import TANH, programs

from tpcalc.errors import ProgramError
from tpcalc.exponents import as_ex
from tpcalc.functions import Fn, Par, Var
from tpcalc.program.base import references, renumbered
from tpcalc.program.nodes import (
    Data,
    Dim,
    Family,
    Input,
    LinComb,
    MatMul,
    Moment,
    Node,
    Nonlin,
    OuterNonlin,
    Scale,
)
from tpcalc.program.program import Program
from tpcalc.program.types import Type

ONE = Fraction(1)
TANH_OF_ONE = Fn(TANH(Var(0)), 1)
PRODUCT = Fn(Var(0) * Var(1), 2)
SHIFTED = Fn(Var(0) + Par(0), 1, 1)

X = Family.group("x", "n", (Fraction(0), Fraction(1)))
Y = Family.group("y", "m", (0.5,))
# %0 a vector on n, %1 a vector on m, %2 a matrix from n to m, %3 a scalar
BASE: tuple[Node, ...] = (
    Input(X, 0),
    Input(Y),
    Input(Family("W", ("m", "n"))),
    Data("c", (Fraction(2),)),
)
DIMS = (Dim("n"), Dim("m", Fraction(3, 2)))


def program(*nodes: Node) -> Program:
    return Program(DIMS, (*BASE, *nodes), (("out", len(BASE) + len(nodes) - 1),))


@dataclass(frozen=True)
class Stranger:
    """Not a node of the language."""


ILL_TYPED: list[tuple[Any, str]] = [
    (Input(X, 2), "'x' has 2 members; there is no 2"),
    (Input(X, -1), "'x' has 2 members; there is no -1"),
    (Input(Y, 0), "'y' has 1 members; there is no 0"),
    (Input(X, 0), r"the input 'x\[0\]' is declared twice"),
    (Input(Y), "the input 'y' is declared twice"),
    (Input(Family("V", ("k", "n"))), "dimension class 'k' is not declared. Declared: n, m"),
    (Input(Family("V", ("n", "k"))), "dimension class 'k' is not declared"),
    (Input(Family("V", ("n", "n"), law="cauchy")), "there is no law 'cauchy' of matrices"),
    (Input(Family("v", ("n",), law="orthogonal")), "and other inputs are Gaussian"),
    (Input(Family("V", ("n", "n"), mean=(ONE,))), "entries of a matrix have mean 0"),
    (Input(Family("V", ("n", "n"), cov=((ONE,),))), "entries of a matrix have .* variance 1"),
    (Input(Family("T", ("n", "n", "n"))), "has 3 width axes; a matrix has two"),
    (Input(Family("W", ("n", "n"))), r"'W' is declared twice, as m\*n and as n\*n"),
    (Input(Family("W", ("m", "n"), law="orthogonal")), "'W' is declared twice, with another law"),
    (Input(Family.scalar("d", math.nan)), "not a finite number"),
    (Input(Family.scalar("d", 0.0, math.inf)), "not a finite number"),
    (Input(Family("d", (), cov=((-1.0,),))), "negative eigenvalue -1"),
    (Input(Family.scalar("c", Fraction(2), ONE)), "the input 'c' is declared twice"),
    (Data("c", (Fraction(3),)), "the input 'c' is declared twice"),
    (Data("W", (ONE,)), "the input 'W' is declared twice; one name stands for one object"),
    (Data("d", (math.nan,)), "a value of 'd' is not a finite number"),
    (Data("d", (ONE, ONE)), r"'d' of type \(\) needs one number for each cell; 2 are given"),
    (MatMul(0, 0), "%0 is a vector, not a matrix"),
    (MatMul(2, 3), "%3 is a scalar; a vector is needed here"),
    (MatMul(2, 1), r"W \(%2\) takes vectors on 'n'; %1 lives on 'm'.*transpose"),
    (MatMul(2, 0, True), r"W\.T \(%2\) takes vectors on 'm'; %0 lives on 'n'"),
    (MatMul(2, 4), "%4 is not an earlier node"),
    (MatMul(2, -1), "%-1 is not an earlier node"),
    (Nonlin(PRODUCT, (0,)), r"x0\*x1 takes 2 vectors and 0 scalars; 1 and 0 are given"),
    (Nonlin(PRODUCT, (0, 1)), "%0 lives on 'n' and %1 on 'm'.*moment"),
    (Nonlin(PRODUCT, (0, 2)), "%2 is a matrix; a vector is needed"),
    (Nonlin(SHIFTED, (0,), (1,)), "%1 is a vector; a scalar is needed"),
    (LinComb((ONE,), (None,), (0, 0)), "as many coefficients as vectors"),
    (LinComb((ONE,), (), (0,)), "as many coefficients as vectors"),
    (LinComb((math.inf,), (None,), (0,)), "coefficient of the linear combination is not finite"),
    (LinComb((Fraction(10**400),), (None,), (0,)), "is not finite"),
    (LinComb((ONE,), (0,), (0,)), "%0 is a vector; a scalar is needed"),
    (LinComb((ONE, ONE), (None, None), (0, 1)), "different dimension classes"),
    (LinComb((), (), ()), "at least one vector is needed"),
    (LinComb((ONE,), (None,), (3,)), "none of which is summed is a function of them.*a Nonlin"),
    (LinComb((ONE, ONE), (None, None), (3, 0)), "%0 is a vector; a scalar is needed"),
    (Moment(PRODUCT, (0, 1)), "different dimension classes"),
    (Moment(Fn(Par(0), 0, 1), (), (3,)), "at least one vector is needed"),
    (Moment(TANH_OF_ONE, (3,)), "%3 is a scalar; a vector is needed"),
    (Moment(SHIFTED, (0,)), "takes 1 vectors and 1 scalars; 1 and 0 are given"),
    (Moment(SHIFTED, (0,), (1,)), "%1 is a vector; a scalar is needed"),
    (OuterNonlin(PRODUCT, (0,), (1,), (), 0), "different dimension classes"),
    (OuterNonlin(PRODUCT, (0,), (), (), 1), "takes 2 vectors and 0 scalars; 1 and 0 are given"),
    (OuterNonlin(TANH_OF_ONE, (), (1,), (), 1), "at least one vector is needed"),
    (OuterNonlin(SHIFTED, (0,), (), (0,), 1), "%0 is a vector; a scalar is needed"),
    (OuterNonlin(PRODUCT, (0,), (1,), (), 2), "%2 is a matrix; a vector is needed"),
    (Nonlin(TANH_OF_ONE, (), (3,)), "takes 1 vectors and 0 scalars; 0 and 1 are given"),
    (Nonlin(Fn(Par(0), 0, 1), (), (0,)), "%0 is a vector; a scalar is needed"),
    (Scale(2, as_ex(1)), "a power of n in front of a matrix.*front of the product"),
    (Scale(0, Fraction(1, 2)), "must be exponents"),  # type: ignore[arg-type]
    (Scale(0, as_ex(1), Fraction(1, 2)), "must be exponents"),  # type: ignore[arg-type]
    (Stranger(), "Stranger is not a node of the language"),
]


@pytest.mark.parametrize(("node", "message"), ILL_TYPED, ids=lambda value: str(value)[:50])
def test_ill_typed_nodes_are_named(node: Node, message: str) -> None:
    with pytest.raises(ProgramError, match=message) as caught:
        _ = program(node).types
    assert caught.value.where.startswith("%4")


@pytest.mark.parametrize(
    ("dim", "message"),
    [
        (Dim("k", Fraction(0)), "the ratio 0 is not above 0"),
        (Dim("k", Fraction(-1)), "the ratio -1 is not above 0"),
        (Dim("n", Fraction(2)), "declared twice, with ratios 1 and 2"),
        (Dim("n"), "declared twice"),
        (Dim("two words"), "a dimension class is called by a word"),
    ],
)
def test_dimension_classes_grow_with_n(dim: Dim, message: str) -> None:
    with pytest.raises(ProgramError, match=message) as caught:
        _ = Program((*DIMS, dim), (), ()).types
    assert caught.value.where == f"dimension {dim.name!r}"


def test_one_name_is_one_family() -> None:
    with pytest.raises(
        ProgramError, match=r"'x' is declared twice, as n\[k:2\] and as n;"
    ) as caught:
        _ = program(Input(Family.group("x", "n", (ONE,)))).types
    assert caught.value.where.startswith("%4")


def square(*rows: tuple[float, ...]) -> Family:
    return Family.group("z", "n", (Fraction(0),) * len(rows), rows)


@pytest.mark.parametrize(
    ("group", "message"),
    [
        (Family.group("z", "n", ()), r"the type n\[k:0\] has the axis 'k' without cells"),
        (Family.group("", "n", (ONE,)), "needs a name"),
        (Family("z", ("n",), (("k", 2),), mean=(ONE,)), "2 cells have 1 means"),
        (Family.group("z", "n", (math.nan,)), "not a finite number"),
        (Family.group("z", "n", (ONE,), ((ONE, ONE),)), "must be 1 x 1"),
        (Family.group("z", "n", (ONE,), ()), "must be 1 x 1"),
        (square((1.0, math.nan), (math.nan, 1.0)), "not a finite number"),
        (square((1.0, 0.5), (0.25, 1.0)), r"not symmetric at \(1, 0\)"),
        (square((1.0, 2.0), (2.0, 1.0)), "negative eigenvalue -1"),
        (square((Fraction(-1),)), "negative eigenvalue -1"),
    ],
    ids=str,
)
def test_groups_are_gaussian_vectors(group: Family, message: str) -> None:
    with pytest.raises(ProgramError, match=message) as caught:
        _ = program(Input(group)).types
    assert caught.value.where == f"%4 (out) (the input {group.name!r})"


def test_a_negative_standard_deviation_is_not_squared_away() -> None:
    with pytest.raises(ProgramError, match=r"deviation of 's' is -0\.5, which is negative"):
        Family.scalar("s", 1, -0.5)
    assert Family.scalar("s", 1, 0).std == 0


def test_singular_covariances_are_fine() -> None:
    rows = [(0.1, 0.2, 0.3), (0.1, 0.2, 0.3), (0.0, 0.0, 0.0)]
    cov = tuple(
        tuple(sum(a * b for a, b in zip(left, right, strict=True)) for right in rows)
        for left in rows
    )
    found = Program(DIMS, (Input(Family.group("z", "n", (0.0,) * 3, cov)),), ()).types
    assert found == (Type(("n",), (("k", 3),)),)


@pytest.mark.parametrize(
    ("outputs", "message"),
    [
        ((("a", 0), ("a", 1)), "named twice"),
        ((("a", 4),), "%4 is not a node"),
        ((("a", -1),), "%-1 is not a node"),
        ((("a", 2),), "%2 is a matrix"),
        ((("", 0),), "needs a name"),
    ],
)
def test_outputs(outputs: tuple[tuple[str, int], ...], message: str) -> None:
    with pytest.raises(ProgramError, match=message):
        _ = Program(DIMS, BASE, outputs).types


@settings(max_examples=30)
@given(programs())
def test_references_are_seen_and_renamed(program: Program) -> None:
    for node in program.nodes:
        shifted = renumbered(node, lambda ref: ref + 7)
        assert list(references(shifted)) == [ref + 7 for ref in references(node)]
        assert renumbered(shifted, lambda ref: ref - 7) == node
