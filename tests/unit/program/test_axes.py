"""Finite axes: they meet by name, with one size; sums and other names take them away."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import pytest
from properties.blocks import SHARES
from properties.programs import TANH, atoms

import tpcalc as tp
from tpcalc.errors import ProgramError
from tpcalc.exponents import as_ex
from tpcalc.functions import Fn, Par, Var
from tpcalc.program.codec import from_json, to_json
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
    Rename,
    RowNonlin,
    Scale,
    members,
)
from tpcalc.program.parse import from_text
from tpcalc.program.program import Builder, Program
from tpcalc.program.types import Type

ONE = Fraction(1)
ACT = Fn(TANH(Var(0)), 1)
PRODUCT = Fn(Var(0) * Var(1), 2)
TIMES = Fn(Var(0) * Par(0), 1, 1)
ROWS = {SHARES.name: SHARES}.__getitem__

X = Family("x", ("n",), (("b", 3),))
BASE: tuple[Node, ...] = (
    Input(X),  # %0
    Input(Family("y", ("n",), (("b", 4),))),  # %1
    Input(Family("z", ("n",), (("p", 2), ("q", 2)))),  # %2
    Input(Family("W", ("n", "n"))),  # %3
    Input(Family("V", ("n", "n"), (("p", 2),))),  # %4
    Data("e", (ONE, 2, 3), (("b", 3),)),  # %5
    Data("k", tuple(range(9)), (("b", 3), ("b'", 3))),  # %6
    Input(Family("s", ())),  # %7
    Rename(0, (("b", "b'"),)),  # %8
)
B, P, Q, BB = ("b", 3), ("p", 2), ("q", 2), ("b'", 3)


def program(*nodes: Node) -> Program:
    return Program((Dim("n"),), (*BASE, *nodes), ())


GOOD: list[tuple[Node, Type]] = [
    (Input(X, 2), Type(("n",))),
    (Data("c", (1, 2, 3, 4), (P, ("r", 2))), Type((), (P, ("r", 2)))),
    (MatMul(3, 0), Type(("n",), (B,))),
    (MatMul(4, 0), Type(("n",), (B, P))),
    (Nonlin(PRODUCT, (0, 2)), Type(("n",), (B, P, Q))),
    (Nonlin(TIMES, (2,), (5,)), Type(("n",), (P, Q, B))),
    (Nonlin(Fn(Par(0) ** 2, 0, 1), (), (6,)), Type((), (B, BB))),
    (Nonlin(PRODUCT, (0, 8)), Type(("n",), (B, BB))),
    (Moment(PRODUCT, (0, 8)), Type((), (B, BB))),
    (Moment(PRODUCT, (0, 0)), Type((), (B,))),
    (Moment(TIMES, (2,), (5,)), Type((), (P, Q, B))),
    (OuterNonlin(PRODUCT, (0,), (8,), (), 2), Type(("n",), (B, BB, P, Q))),
    (OuterNonlin(TIMES, (2,), (), (6,), 2), Type(("n",), (P, Q, B, BB))),
    (Scale(2, as_ex(1)), Type(("n",), (P, Q))),
    (RowNonlin(SHARES, 2, "q"), Type(("n",), (P, Q))),
    (RowNonlin(SHARES, 5, "b"), Type((), (B,))),
    (Rename(2, (("p", "q"), ("q", "p"))), Type(("n",), (("q", 2), ("p", 2)))),
    (Rename(2, (("q", "p'"),)), Type(("n",), (P, ("p'", 2)))),
    (LinComb((ONE, ONE), (None, 5), (0, 2)), Type(("n",), (B, P, Q))),
    (LinComb((ONE,), (6,), (8,), (("b'",),)), Type(("n",), (B,))),
    (LinComb((ONE,), (None,), (2,), (("p", "q"),)), Type(("n",))),
    (LinComb((ONE, ONE), (None, 5), (0, 0), ((), ("b",))), Type(("n",), (B,))),
    (LinComb((ONE,), (7,), (5,), (("b",),)), Type()),
    (LinComb((ONE, ONE), (None, None), (7, 5), ((), ("b",))), Type()),
    (LinComb((ONE, ONE), (None, None), (0, 1), (("b",), ("b",))), Type(("n",))),
]


@pytest.mark.parametrize(("node", "found"), GOOD, ids=lambda value: str(value)[:60])
def test_types(node: Node, found: Type) -> None:
    made = program(node)
    assert made.types[-1] == found
    assert from_text(str(made), atoms, ROWS) == made == from_json(to_json(made), atoms, ROWS)


BAD: list[tuple[Node, str]] = [
    (
        Nonlin(PRODUCT, (0, 1)),
        r"the axis 'b' has 3 cells in %0 \(n\[b:3\]\) and 4 in %1 \(n\[b:4\]\).*Axes meet by name",
    ),
    (Nonlin(TIMES, (1,), (5,)), r"'b' has 4 cells in %1 \(n\[b:4\]\) and 3 in %5 \(\[b:3\]\)"),
    (Moment(PRODUCT, (1, 0)), r"'b' has 4 cells in %1 .* and 3 in %0"),
    (OuterNonlin(PRODUCT, (0,), (0,), (), 1), r"'b' has 3 cells in %0 .* and 4 in %1"),
    (LinComb((ONE, ONE), (None, None), (0, 1)), r"'b' has 3 cells in %0 .* and 4 in %1"),
    (LinComb((ONE,), (5,), (1,)), r"'b' has 3 cells in %5 .* and 4 in %1"),
    (LinComb((ONE,), (5,), (1,), (("b",),)), r"'b' has 3 cells in %5 .* and 4 in %1"),
    (
        LinComb((ONE,) * 3, (None,) * 3, (0, 1, 0), ((), (), ("b",))),
        "the axis 'b' has 3 cells in one term and 4 in the term with %1",
    ),
    (LinComb((ONE,), (None,), (0,), ((),)), "no term is summed"),
    (
        LinComb((ONE, ONE), (None, 7), (5, 5)),
        r"scalars none of which is summed is a function of them.*map \{s0 \+ 2\*s1\}",
    ),
    (
        LinComb((ONE, ONE), (None, None), (0, 2), (("b",), ("b",))),
        r"a sum over 'b', which the term with %2 \(n\[p:2,q:2\]\) does not have",
    ),
    (LinComb((ONE,), (None,), (0,), (("b", "b"),)), "a sum over 'b', which the term with %0"),
    (LinComb((ONE, ONE), (None, None), (0, 0), (("b",),)), "as many coefficients as vectors"),
    (LinComb((ONE, ONE), (None, None), (0, 7)), "%7 is a scalar; a vector is needed here"),
    (
        RowNonlin(SHARES, 0, "p"),
        r"shares along 'p', which %0 \(n\[b:3\]\) does not have.*axes: b\.",
    ),
    (RowNonlin(SHARES, 7, "p"), r"shares along 'p', which %7 \(\(\)\) does not have.*axes: none\."),
    (RowNonlin(SHARES, 4, "p"), "taken of vectors or scalars, not of matrices"),
    (Rename(0, (("c", "d"),)), r"%0 \(n\[b:3\]\) has no axis 'c'.*Its axes: b\."),
    (Rename(7, (("b", "c"),)), r"%7 \(\(\)\) has no axis 'b'.*Its axes: none\."),
    (Rename(2, (("p", "q"),)), r"%2 \(n\[p:2,q:2\]\) is read with the name 'q' for two"),
    (Rename(2, (("p", "r"), ("q", "r"))), "with the name 'r' for two of its axes"),
    (Rename(2, (("p", "r"), ("p", "s"))), "the axis 'p' is given two names"),
    (Rename(0, ()), r"no axis of %0 \(n\[b:3\]\) is given another name"),
    (Rename(0, (("b", "two words"),)), "an axis is called by a word, not 'two words'"),
    (Data("c", (1, 2), (B,)), r"'c' of type \[b:3\] needs one number for each cell; 2 are given"),
    (Data("c", (1, math.nan, 3), (B,)), "a value of 'c' is not a finite number"),
    (Data("c", (1,) * 9, (B, B)), "'c' has the axis 'b' twice"),
    (Data("c", (), (("b", 0),)), "'c' has the axis 'b' without cells"),
    (Data("c", (1, 2, 3), (("", 3),)), "an axis is called by a word, not ''"),
    (Input(Family("x", ("n",), (("b", 4),))), r"twice, as n\[b:3\] and as n\[b:4\]"),
]


@pytest.mark.parametrize(("node", "message"), BAD, ids=lambda value: str(value)[:60])
def test_what_does_not_fit_is_named(node: Node, message: str) -> None:
    with pytest.raises(ProgramError, match=message) as caught:
        _ = program(node).types
    assert caught.value.where.startswith("%9")


@pytest.mark.parametrize("name", ["x", "s"])
def test_a_mean_that_is_not_written_is_0(name: str) -> None:
    """In the limit and at both finite widths."""
    families = {"x": Family("x", ("n",), (("b", 2),)), "s": Family("s", ())}
    written = {"x": replace(families["x"], mean=(0, 0)), "s": replace(families["s"], mean=(0,))}
    made = []
    for family in (families[name], written[name]):
        builder = Builder()
        ref = builder.add(members(family)[-1])
        square = Fn(Var(0) ** 2, 1) if family.width else Fn(Par(0) ** 2, 0, 1)
        found = Moment(square, (ref,)) if family.width else Nonlin(square, (), (ref,))
        builder.output("square", builder.add(found))
        made.append(builder.finish())
    for program in made:
        assert from_text(str(program), atoms) == program
    limits = [tp.limit(program)["square"].value for program in made]
    assert limits[0] == limits[1] == pytest.approx(1, abs=1e-3)
    for backend in ("lazy", "dense"):
        if backend == "dense":
            pytest.importorskip("torch")
        one, two = (tp.simulate(p, [16], seeds=3, backend=backend).rows[0].values for p in made)
        assert list(one) == list(two)


def test_a_family_as_a_whole_and_by_cells() -> None:
    builder = Builder()
    whole, cells = builder.add(Input(X)), [builder.add(cell) for cell in members(X)]
    assert builder.type(whole) == Type(("n",), (B,))
    assert {builder.type(cell) for cell in cells} == {Type(("n",))}
    assert [cell.index for cell in members(X)] == [0, 1, 2] and Input(X).index == 0
    made = builder.finish()
    assert list(made.inputs) == ["x", "x[0]", "x[1]", "x[2]"]
    assert made.families == made.group == {"x": X} and made.groups == (X,)


TEXT = """\
tpcalc program 2
dim n 1
dim m 2
family x : n[b:3,p:2] mean 0, 0, 0, 1, 1, 1
family W : m*n
family "the bias" : [b:3]
%0 : n[b:3,p:2] = input x
%1 : n = input x 4
%2 : m*n = input W
%3 : [b:3] = input "the bias"
%4 : [b:3,b':3] = data K[b:3,b':3] 1, 1/2, 0.25, 0, 0, 0, 0, 0, 0
%5 : n[b':3,p:2] = rename %0 b>b'
%6 : n[p:3,b:2] = rename %0 b>p, p>b
%7 : n[b:3,p:2] = sum 1*%4*%5 over b' + -0.5*%1
%8 : n[b:3] = sum 1*%4*%5 over b', p + 2*%3*%0 over p
%9 : m[b:3] = matmul %2 %8
%10 : [b:3] = moment {x0**2} (%9)
"""


def test_canonical_text() -> None:
    made = from_text(TEXT, atoms)
    assert str(made) == TEXT
    assert made.types[8] == Type(("n",), (B,))
    assert {group.name for group in made.groups} == {"x"}
    assert list(made.families) == ["x", "W", "the bias"]


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        (
            "%8 : n[b:3] =",
            "%8 : n[b:3,p:2] =",
            15,
            r"type of the node is n\[b:3\]; n\[b:3,p:2\] is",
        ),
        ("%10 : [b:3] =", "%10 : () =", 17, r"type of the node is \[b:3\]; \(\) is written"),
        ("family x : n[b:3,p:2]", "family x : n[b:3,p]", 4, "cannot be read.*family NAME : TYPE"),
        ("family x : n[b:3,p:2]", "family x : n[b:3p:2]", 4, "cannot be read.*family NAME : TYPE"),
        ("rename %0 b>b'", "rename %0 b", 12, "rename <of> <names>"),
        ("data K[b:3,b':3]", "data K[b:3b':3]", 11, r"data <name><axes><values\? >"),
        ("over b', p + 2", "over b' p + 2", 15, "cannot be read"),
    ],
)
def test_errors_carry_the_line(old: str, new: str, line: int, message: str) -> None:
    assert TEXT.count(old) == 1
    with pytest.raises(ProgramError, match=message) as caught:
        from_text(TEXT.replace(old, new), atoms)
    assert caught.value.where.split(" (")[0] == f"line {line}"
