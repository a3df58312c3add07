"""Blocks that are repeated along the depth: their text, and that writing them out is a loop."""

from __future__ import annotations

import json

import numpy as np
from hypothesis import given, settings
from properties.programs import atoms
from properties.repeats import repeat_programs

from tests import numpy_run
from tpcalc.passes.at_depth import at_depth
from tpcalc.program.codec import from_json, to_json
from tpcalc.program.nodes import NODE_TYPES
from tpcalc.program.parse import from_text
from tpcalc.program.program import Program
from tpcalc.program.rules import LOWERED, Level
from tpcalc.program.text import to_text

WIDTH, DEPTH = 5, 3


@settings(max_examples=100, deadline=None)
@given(repeat_programs())
def test_text_and_json_read_back(program: Program) -> None:
    assert from_text(to_text(program), atoms) == program
    assert from_json(json.loads(json.dumps(to_json(program))), atoms) == program


@settings(max_examples=100, deadline=None)
@given(repeat_programs())
def test_written_out_it_is_a_loop(program: Program) -> None:
    flat = at_depth(program, DEPTH)
    assert not flat.repeats and not LOWERED[Level.BLOCKS].intersection(map(type, flat.nodes))
    inputs = numpy_run.draw(flat, WIDTH, np.random.default_rng(0))
    found = numpy_run.run(flat, WIDTH, inputs)
    looped = numpy_run.run(program, WIDTH, inputs, DEPTH)
    assert looped.keys() == found.keys()
    for name, value in looped.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-10, atol=1e-10, err_msg=name)


def test_the_strategy_reaches_what_it_is_for() -> None:
    seen: set[type] = set()

    @settings(max_examples=50)
    @given(repeat_programs())
    def collect(program: Program) -> None:
        seen.update(map(type, program.nodes))

    collect()
    assert LOWERED[Level.BLOCKS] <= seen <= set(NODE_TYPES)
