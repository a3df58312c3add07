"""Programs and the builder: sharing, names, places, pruning, depth."""

from __future__ import annotations

import time
from fractions import Fraction

import pytest
from hypothesis import given, settings
from properties.programs import TANH, atoms, programs

from tpcalc.errors import Exploded, ProgramError, UnknownName
from tpcalc.exponents import as_ex
from tpcalc.functions import Fn, Var
from tpcalc.program.nodes import Data, Dim, Family, Input, LinComb, MatMul, Moment, Nonlin, Scale
from tpcalc.program.parse import from_text
from tpcalc.program.program import Builder, Program, prune
from tpcalc.program.rules import Rules, interpret
from tpcalc.program.text import to_text

ACT = Fn(TANH(Var(0)), 1)
INNER = Fn(Var(0) * Var(1), 2)


X = Family.group("x", "n", (Fraction(0), Fraction(0)))
UNUSED = Family.group("unused", "n", (Fraction(0),))
W = Family("W", ("n", "n"))
TURNED = Family("W", ("n", "n"), law="orthogonal")


def chain(nodes: int) -> Program:
    """A program of about this many nodes, each of which needs the one before."""
    builder = Builder()
    x, w = builder.add(Input(X, 0)), builder.add(Input(W))
    step = 0
    while len(builder) < nodes:
        h = builder.add(MatMul(w, x, step % 2 == 1))
        h = builder.add(Scale(h, as_ex(Fraction(-1, 2))))
        y = builder.add(Nonlin(ACT, (h,)))
        m = builder.add(Moment(INNER, (x, y)))
        x = builder.add(LinComb((Fraction(1), Fraction(-1, 10)), (None, m), (y, x)))
        step += 1
        builder.output(f"m[{step}]", m)
    builder.output("last", x)
    return builder.finish()


# ---------------------------------------------------------------------------------- the builder


def test_equal_nodes_are_shared() -> None:
    builder = Builder()
    x = builder.add(Input(X, 0), where="model.py:3")
    first = builder.add(Nonlin(ACT, (x,)), where="model.py:4")
    assert builder.add(Nonlin(Fn(TANH(Var(0)), 1), (x,)), where="model.py:9") == first
    assert len(builder) == 2
    assert builder.finish().where == ("model.py:3", "model.py:4")


def test_a_refused_node_leaves_the_builder_as_it_was() -> None:
    builder = Builder()
    x = builder.add(Input(X, 0))
    with pytest.raises(ProgramError, match=r"%1 at model\.py:7: %0 is a vector, not a matrix"):
        builder.add(MatMul(x, x), where="model.py:7")
    assert len(builder) == 1
    assert builder.add(Nonlin(ACT, (x,))) == 1


def test_declarations_may_repeat_but_not_change() -> None:
    builder = Builder()
    builder.dim(Dim("n"))
    x = builder.add(Input(X, 0))
    assert builder.add(Input(Family.group("x", "n", (Fraction(0), Fraction(0))), 0)) == x
    with pytest.raises(ProgramError, match="declared twice, with ratios 1 and 2"):
        builder.dim(Dim("n", Fraction(2)))
    with pytest.raises(ProgramError, match="the input 'x' is declared twice, with another law"):
        builder.add(Input(Family.group("x", "n", (Fraction(1), Fraction(0))), 1))
    builder.output("out", x)
    builder.output("out", x)
    with pytest.raises(ProgramError, match="output 'out': named twice"):
        builder.output("out", builder.add(Input(X, 1)))
    assert dict(builder.outputs) == {"out": x}


def test_a_copy_goes_on_where_the_program_stopped() -> None:
    program = chain(20)
    builder = Builder.copy(program)
    assert builder.finish() == program
    again = builder.add(program.nodes[5])
    assert again == 5
    with pytest.raises(ProgramError, match="declared twice"):
        builder.add(Input(TURNED))
    new = builder.add(Nonlin(ACT, (program.ref("last"),)))
    assert new == len(program.nodes)
    assert builder.finish().where[-1] is None
    assert builder.dim_of("n") == Dim("n")


# --------------------------------------------------------------------------------- the program


def test_names_and_places() -> None:
    builder = Builder()
    x = builder.add(Input(X, 0), where="model.py:3")
    y = builder.add(Input(X, 1))
    builder.output("first", x)
    builder.output("second", x)
    program = builder.finish()
    assert (program.ref("second"), program.output) == (x, {"first": x, "second": x})
    assert program.place(x) == "%0 (first) at model.py:3"
    assert program.place(y) == "%1"
    assert set(program.dim) == {"n"} and program.group == {"x": X}
    assert program.inputs == {"x[0]": x, "x[1]": y}
    with pytest.raises(UnknownName, match="Did you mean 'first'"):
        program.ref("frist")


def test_the_digest_is_that_of_the_text() -> None:
    program = chain(20)
    assert program.digest == chain(20).digest != chain(30).digest
    assert len(program.digest) == 64
    assert str(program) == to_text(program)


def test_source_lines_are_not_part_of_equality() -> None:
    program = chain(20)
    plain = Program(program.dims, program.nodes, program.outputs)
    placed = Program(program.dims, program.nodes, program.outputs, ("a.py:1",) * 25)
    assert plain == placed and plain.digest == placed.digest


def test_pruning() -> None:
    builder = Builder()
    x = builder.add(Input(X, 1), where="a")
    builder.add(Input(UNUSED), where="b")
    y = builder.add(Nonlin(ACT, (x,)), where="c")
    builder.add(Moment(INNER, (x, y)), where="d")
    builder.output("y", y)
    pruned = builder.finish(keep_unused=False)
    assert pruned.nodes == (Input(X, 1), Nonlin(ACT, (0,)))
    assert pruned.unused == ("unused",)
    assert [group.name for group in pruned.groups] == ["x"]
    assert pruned.outputs == (("y", 1),) and pruned.where == ("a", "c")
    assert prune(Builder().finish()).nodes == ()


# ------------------------------------------------------------------------------ rules and depth


def test_a_table_without_a_rule_says_why() -> None:
    def number(node: object, ref: int, values: list[int], context: None) -> int:
        return ref

    rules: Rules[int, None] = Rules("demo", {Input: number}, {Data: "numbers are not given here."})
    builder = Builder()
    builder.output("x", builder.add(Input(X, 0)))
    assert interpret(builder.finish(), rules, None) == [0]
    builder.add(Data("lr"))
    with pytest.raises(ProgramError, match="%1: Data has no rule in 'demo': numbers are"):
        interpret(builder.finish(), rules, None)
    assert MatMul in rules.missing and not rules.missing & {Input, Data}
    large: Rules[float, None] = Rules("large", {Input: lambda *_: float(10**400)})
    with pytest.raises(Exploded, match="a number is beyond floats"):
        interpret(builder.finish(), large, None)


@settings(max_examples=20)
@given(programs())
def test_interpreting_walks_in_order(program: Program) -> None:
    kinds = {type(node) for node in program.nodes}
    rules = Rules("order", {kind: lambda node, ref, values, _: len(values) for kind in kinds})
    assert interpret(program, rules, None) == list(range(len(program.nodes)))


@pytest.mark.slow
def test_a_hundred_thousand_nodes() -> None:
    began = time.process_time()
    program = chain(100_000)
    assert len(program.nodes) >= 100_000
    text = to_text(program)
    assert from_text(text, atoms) == program
    assert prune(program).nodes == program.nodes
    assert Builder.copy(program).finish() == program
    assert Program(program.dims, program.nodes, program.outputs).types
    assert time.process_time() - began < 40  # about 4 s; anything quadratic takes hours
