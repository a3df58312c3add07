"""What is printed or saved reads back as it was."""

from __future__ import annotations

import json
from collections import Counter

from hypothesis import given, settings
from properties.programs import atoms, exponents, functions, programs

from tpcalc.exponents import Ex, parse_ex
from tpcalc.functions import Fn
from tpcalc.functions.parse import parse_fn
from tpcalc.program.codec import from_json, to_json
from tpcalc.program.nodes import NODE_TYPES, Input, Kind, Nonlin
from tpcalc.program.parse import from_text
from tpcalc.program.program import Program, prune
from tpcalc.program.rules import LOWERED, Level
from tpcalc.program.text import to_text


@settings(max_examples=30)
@given(programs())
def test_text_reads_back(program: Program) -> None:
    text = to_text(program)
    back = from_text(text, atoms)
    assert back == program
    assert back.types == program.types
    assert to_text(back) == text


@settings(max_examples=30)
@given(programs())
def test_json_reads_back(program: Program) -> None:
    data = json.loads(json.dumps(to_json(program), allow_nan=False))
    back = from_json(data, atoms)
    assert back == program
    assert to_text(back) == to_text(program)


@settings(max_examples=30)
@given(programs())
def test_each_thing_has_one_line(program: Program) -> None:
    lines = to_text(program).split("\n")
    things = len(program.dims) + len(program.families) + len(program.nodes) + len(program.outputs)
    assert len(lines) == 1 + things + 1 and lines[-1] == ""


@settings(max_examples=30)
@given(programs())
def test_pruning_keeps_what_outputs_need(program: Program) -> None:
    pruned = prune(program)
    assert [name for name, _ in pruned.outputs] == [name for name, _ in program.outputs]
    assert [pruned.types[ref] for _, ref in pruned.outputs] == [
        program.types[ref] for _, ref in program.outputs
    ]
    assert Program(pruned.dims, pruned.nodes, pruned.outputs).types == pruned.types
    assert prune(pruned) == pruned


@settings(max_examples=200)
@given(functions(2, 2))
def test_functions_read_back(fn: Fn) -> None:
    back = parse_fn(fn.text, 2, 2, atoms)
    assert back == fn and back.text == fn.text


@settings(max_examples=200)
@given(exponents())
def test_exponents_read_back(exponent: Ex) -> None:
    assert parse_ex(str(exponent)) == exponent


def test_the_strategy_reaches_every_node_type() -> None:
    seen: Counter[tuple[type, Kind]] = Counter()

    @settings(max_examples=80)
    @given(programs())
    def collect(program: Program) -> None:
        kinds = (found.kind for found in program.types)
        seen.update(zip(map(type, program.nodes), kinds, strict=True))

    collect()
    assert {node for node, _ in seen} == set(NODE_TYPES) - LOWERED[Level.VECTORS]
    assert {kind for node, kind in seen if node is Input} == set(Kind)
    assert {kind for node, kind in seen if node is Nonlin} == {Kind.VECTOR, Kind.SCALAR}
