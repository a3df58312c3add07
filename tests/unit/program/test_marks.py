"""Marks of parameters and slots for data: their text, their types, what is no mark."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties.programs import NAMES, NUMBERS, atoms, programs

import tpcalc as tp
from tpcalc.errors import ProgramError, UsageError
from tpcalc.exponents import Ex, as_ex
from tpcalc.networks.network import Architecture, written
from tpcalc.passes.split import split
from tpcalc.program.codec import from_json, to_json
from tpcalc.program.family import ROLES, Mark
from tpcalc.program.nodes import Data, Family, Input
from tpcalc.program.parse import from_text
from tpcalc.program.program import Builder, Program
from tpcalc.program.text import to_text

TEXT = """\
tpcalc program 2
dim n 1
family U : n[in:2] param "1" input 1 of "u v"
family W : n*n orthogonal param "the map" hidden 2 rate 1/3 start 0
family v : n[out:2] mean 1, 1 cov 2, 1; 1, 2 param v readout 3 rate 2 speed n^(1) init n^(-1/2)
family b : () param v bias 3 start 1.5 group "my norms"
family K : [out:2,in:2] param K finite 1
%0 : [in:2] = data x[in:2]
%1 : () = data y
%2 : n[in:2] = input U
%3 : n = sum 1*%0*%2 over in
%4 : n*n = input W
%5 : n = matmul %4 %3
%6 : n[out:2] = input v
%7 : [out:2] = moment {x0*x1} (%6, %5)
%8 : () = input b
%9 : [out:2,in:2] = input K
%10 : [out:2] = sum 1*%9*%0 over in
%11 : [out:2] = map {s0 + s1*s2 + s3} (; %7, %1, %8, %10)
output f %11
"""


def test_canonical_text() -> None:
    program = from_text(TEXT, atoms)
    assert to_text(program) == TEXT
    marks = {name: family.mark for name, family in program.families.items()}
    assert marks["W"] == Mark("the map", "hidden", 2, Fraction(1, 3), Fraction(0))
    assert marks["U"] == Mark("1", "input", 1, whole="u v")
    half = as_ex(Fraction(-1, 2))
    assert marks["v"] == Mark("v", "readout", 3, Fraction(2), init=half, speed=as_ex(1))
    assert marks["b"] == Mark("v", "bias", 3, start=1.5, group="my norms")
    assert [name for name, mark in marks.items() if mark and mark.bias] == ["b"]
    assert [name for name, mark in marks.items() if mark and mark.at_zero] == ["W"]
    assert program.nodes[:2] == (Data("x", (), (("in", 2),)), Data("y", ()))
    assert str(program.types[0]) == "[in:2]" and str(program.types[1]) == "()"


def test_a_mark_is_a_part_of_the_program() -> None:
    """What is trained is another program than what is not; the digest tells them apart."""
    program = from_text(TEXT, atoms)
    plain = from_text(TEXT.replace(' param v bias 3 start 1.5 group "my norms"', ""), atoms)
    assert program != plain and program.digest != plain.digest
    filled = from_text(TEXT.replace("data y", "data y 2"), atoms)
    assert program != filled and program.digest != filled.digest


def test_cells_keep_the_mark_and_slots_stay_slots() -> None:
    found = split(from_text(TEXT, atoms))
    assert {str(f.type) for f in found.families.values() if f.mark is None} == set()
    assert found.families["K[2]"].mark == Mark("K", "finite", 1)
    assert [node.name for node in found.nodes if isinstance(node, Data)] == ["x[0]", "x[1]", "y"]
    assert all(node.values == () for node in found.nodes if isinstance(node, Data))
    assert from_text(to_text(found), atoms) == found


POWERS = st.sampled_from([as_ex(0), as_ex(Fraction(-3, 2)), Ex.symbol("a") - 1])


@st.composite
def networks(draw: st.DrawFn) -> Program:
    """A random program, some of its inputs marked, some of its data without values."""
    program = draw(programs())
    marked: dict[str, Family] = {}
    for name, family in program.families.items():
        roles = [role for role, widths in ROLES.items() if len(family.width) in widths]
        mark = Mark(
            draw(NAMES),
            draw(st.sampled_from(roles)),
            draw(st.integers(1, 10**6)),
            draw(NUMBERS),
            abs(draw(NUMBERS)),
            draw(st.one_of(st.just(""), NAMES.filter(lambda name: name not in ROLES))),
            draw(st.none() | POWERS),
            draw(POWERS),
            draw(st.just("") | NAMES),
        )
        marked[name] = replace(family, mark=draw(st.sampled_from([None, mark])))
    nodes = []
    for node in program.nodes:
        if isinstance(node, Input):
            node = replace(node, family=marked[node.family.name])
        elif isinstance(node, Data) and draw(st.booleans()):
            node = replace(node, values=())
        nodes.append(node)
    return Program(program.dims, tuple(nodes), program.outputs)


@given(networks())
def test_text_and_json_read_back(program: Program) -> None:
    text = to_text(program)
    back = from_text(text, atoms)
    assert back == program and back.types == program.types and to_text(back) == text
    assert from_json(json.loads(json.dumps(to_json(program))), atoms) == program


@pytest.mark.parametrize("net", [tp.MLP(2, "tanh", "all"), tp.ResNet(2), tp.RNN(2, outputs="all")])
def test_networks_of_the_catalogue_read_back(net: Architecture, tmp_path: Path) -> None:
    program = written(net, 4, 2)
    tp.save(program, tmp_path / "network.json")
    again = tp.load(tmp_path / "network.json")
    assert again == program


def changed(line: str, by: str) -> str:
    assert TEXT.count(line) == 1
    return TEXT.replace(line, by)


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        (changed('param "1" input', 'param "1" weights'), 3, "input, hidden, .*, not 'weights'"),
        (changed('param "1" input', 'param "1" finite'), 3, "'finite' is a number"),
        (changed('"the map" hidden', '"the map" bias'), 4, "'bias' is a number or a vector"),
        (changed("start 1.5", "start -1"), 6, "a deviation from 0, not 'v', 3, 1, -1"),
        (changed("rate 1/3", "rate 1/0"), 4, "'1/0' is not a number"),
        (changed("rate 1/3", "rate fast"), 4, r"cannot be read.*\[rate NUMBER\]"),
        (changed("hidden 2 rate 1/3 start 0", "hidden 2 start 0 rate 1/3"), 4, "cannot be read"),
        (changed("param v readout 3 rate 2", "param v readout"), 5, "cannot be read.*LAYER"),
    ],
)
def test_errors_carry_the_line(text: str, line: int, message: str) -> None:
    with pytest.raises(ProgramError, match=message) as caught:
        from_text(text, atoms)
    assert caught.value.where.split(" (")[0] == f"line {line}"


@pytest.mark.parametrize(
    ("width", "mark", "message"),
    [
        (("n",), Mark("", "input", 1), "a parameter has a label"),
        (("n",), Mark("a", "input", 0), "a layer from 1"),
        (("n",), Mark("a", "input", 1, float("nan")), "a finite rate"),
        (("n",), Mark("a", "input", 1, start=float("inf")), "a deviation from 0"),
        (("n",), Mark("a", "hidden", 1), "a parameter that is 'hidden' is a matrix"),
        (("n", "n"), Mark("a", "readout", 1), "a parameter that is 'readout' is a vector"),
        (("n",), Mark("a", "input", 1, group="bias"), "is called 'bias', as a role is"),
        ((), Mark("a", "input", 1), "a parameter that is 'input' is a vector"),
        (("n", "n"), Mark("a", "gain", 1), "not 'gain'"),
    ],
)
def test_what_is_no_mark(width: tuple[str, ...], mark: Mark, message: str) -> None:
    builder = Builder()
    with pytest.raises(ProgramError, match=message) as caught:
        builder.add(Input(Family("W", width, mark=mark)))
    assert "W" in str(caught.value)


@pytest.mark.parametrize("blocks", [True, False])
def test_a_slot_is_filled_before_a_run(blocks: bool) -> None:
    program = written(tp.MLP(1, "tanh"), 2, 1)
    program = program if blocks else split(program)
    name = "'x'" if blocks else r"'x\[0\]'"
    runs = (
        lambda: tp.limit(program),
        lambda: tp.orders(program),
        lambda: tp.kernel(program),
        lambda: tp.simulate(program, [8], seeds=1),
        lambda: tp.equivalent(program, program),
        lambda: tp.dependencies(program),
    )
    for run in runs:
        with pytest.raises(UsageError, match=f"the data {name} have no values"):
            run()
