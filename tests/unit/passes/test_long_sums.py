"""Deep networks: the program of a run grows as its blocks do, and says the same."""

from __future__ import annotations

import numpy as np
import pytest
from block_run import run as run_blocks
from numpy_run import draw, run

import tpcalc as tp
from tpcalc.program.base import lincomb_of

DATA = tp.Samples(((0.6, -0.4), (1.0, 0.3), (-0.2, 0.9)), ((0.5,), (-1.0,), (0.3,)))


def deep(blocks: int, **shape: object) -> tp.Training:
    net = tp.ResNet(blocks, "tanh", **shape)
    return tp.Training(net, "mup", DATA, steps=2, batch=2, lr=0.25, queries=DATA.inputs[2:])


def test_terms_of_sums_grow_as_the_blocks_do() -> None:
    terms = []
    for blocks in (10, 18, 26):
        sums = filter(None, map(lincomb_of, deep(blocks).program.nodes))
        terms.append(sum(len(node.vectors) for node in sums))
    first, second, third = terms
    assert third - second == second - first


@pytest.mark.parametrize("shape", [{}, {"nonlin": "post", "center": True}, {"layers": 2}])
def test_cells_of_a_deep_run_are_those_of_its_blocks(shape: dict[str, object]) -> None:
    unrolled = deep(11, **shape).unrolled
    inputs = draw(unrolled.cells, 7, np.random.default_rng(5))
    found, wanted = run(unrolled.cells, 7, inputs), run_blocks(unrolled.named, 7, inputs)
    assert found.keys() == wanted.keys()
    for name, value in wanted.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-9, atol=1e-12, err_msg=name)
