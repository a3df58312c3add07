"""Programs of blocks: their text, and that splitting them changes nothing at any width."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from properties.blocks import SHARES, block_programs
from properties.programs import atoms

from tests import block_run, numpy_run
from tpcalc.passes.split import split
from tpcalc.program.nodes import NODE_TYPES
from tpcalc.program.parse import from_text
from tpcalc.program.program import Program
from tpcalc.program.rules import LOWERED, Level
from tpcalc.program.text import to_text


@settings(max_examples=150, deadline=None)
@given(block_programs())
def test_split_is_exact(program: Program) -> None:
    lowered = split(program)
    assert not lowered.has_blocks
    inputs = numpy_run.draw(lowered, 6, np.random.default_rng(0))
    inputs |= _unused(program, inputs)
    wanted = block_run.run(program, 6, inputs)
    found = numpy_run.run(lowered, 6, inputs)
    assert found.keys() == wanted.keys()
    for name, value in wanted.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-9, atol=1e-9, err_msg=name)


def _unused(program: Program, inputs: dict[str, object]) -> dict[str, object]:
    """Draws of what no output needs: any will do."""
    rng, found = np.random.default_rng(1), {}
    for family in program.families.values():
        for cell in range(family.size) if family.axes else (None,):
            name = block_run.named(family, cell)
            if name not in inputs:
                found[name] = rng.standard_normal((6,) * len(family.width))
    return found


@settings(max_examples=60, deadline=None)
@given(block_programs())
def test_text_reads_back(program: Program) -> None:
    text = to_text(program)
    back = from_text(text, atoms, {SHARES.name: SHARES}.__getitem__)
    assert back == program
    assert to_text(back) == text


def test_the_strategy_reaches_every_node_type() -> None:
    seen: set[type] = set()

    @settings(max_examples=150)
    @given(block_programs())
    def collect(program: Program) -> None:
        seen.update(map(type, program.nodes))

    collect()
    assert seen == set(NODE_TYPES) - LOWERED[Level.BLOCKS]
