"""Constants and stacks: blocks of what is not drawn as one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from block_run import run as run_blocks
from numpy_run import draw, run

import tpcalc as tp
from tpcalc.passes.split import split
from tpcalc.program.nodes import Data


def values(program: Any, width: int = 7) -> dict[str, Any]:
    """All outputs of a split program, checked against the interpreter of blocks."""
    built = program.build()
    single = split(built)
    draws = draw(single, width, np.random.default_rng(0))
    found = run(single, width, draws)
    whole = run_blocks(built, width, draws)
    assert found.keys() == whole.keys()
    for name, value in found.items():
        np.testing.assert_allclose(value, whole[name], rtol=1e-13, atol=1e-13)
    return {**draws, **found}


def test_a_stack_of_vectors_has_them_for_cells() -> None:
    @tp.program
    def stacked(t: Any) -> None:
        x, block = t.gaussian("x"), t.gaussian("y", axes={"p": 2})
        t.output("z", t.stack([x, 2 * x - block, block * block], "k"))

    found = values(stacked)
    x, y = found["x[0]"], [found["y[0]"], found["y[1]"]]
    for p in range(2):
        np.testing.assert_allclose(found[f"z[0,{p}]"], x)
        np.testing.assert_allclose(found[f"z[1,{p}]"], 2 * x - y[p])
        np.testing.assert_allclose(found[f"z[2,{p}]"], y[p] ** 2)


def test_a_stack_of_scalars_and_its_sum() -> None:
    @tp.program
    def stacked(t: Any) -> None:
        x = t.gaussian("x")
        both = t.stack([tp.mean(x), tp.mean(x * x), t.scalar("c", 3)], "k")
        t.output("s", both)
        t.output("sum", t.sum(both * t.constant([1, -1, 0.5], ("k",)), "k"))

    found = values(stacked)
    x = found["x[0]"]
    wanted = [x.mean(), (x * x).mean(), 3.0]
    assert [found[f"s[{k}]"] for k in range(3)] == pytest.approx(wanted)
    assert found["sum"] == pytest.approx(wanted[0] - wanted[1] + 1.5)


def test_a_stack_of_cells_is_the_block_after_splitting() -> None:
    @tp.program
    def stacked(t: Any) -> None:
        x = t.gaussian("x", axes={"p": 3})
        t.output("x", t.stack([x.at(p=place) for place in range(3)], "p"))

    assert [type(node).__name__ for node in split(stacked.build()).nodes] == ["Input"] * 3


def test_equal_constants_are_one_and_others_have_names_of_their_own() -> None:
    @tp.program
    def constants(t: Any) -> None:
        x = t.gaussian("x", axes={"p": 2})
        for place, given in enumerate(([1, 2], [1, 2], [2, 1])):
            t.output(f"y{place}", t.constant(given, ("p",)) * x)

    nodes = [node for node in constants.build().nodes if isinstance(node, Data)]
    assert len(nodes) == 2
    assert tp.parse(str(constants.build())) == constants.build()
