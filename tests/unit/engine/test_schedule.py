"""Scheduling: batches, inner products from coordinates, images of start vectors, memory."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

import tpcalc as tp
from tpcalc.engine.execute import Workspace
from tpcalc.engine.instructions import Dot, Multiply, Starts
from tpcalc.engine.needs import memory_needed
from tpcalc.engine.schedule import plan
from tpcalc.engine.setting import Mode, Setting
from tpcalc.engine.starts import factor
from tpcalc.errors import ProgramError
from tpcalc.evaluate.particles.compile import compile_graph
from tpcalc.finite.compile import compile_program
from tpcalc.limit.derive import derive

RNG = np.random.default_rng(0)


def data(rows: int, d: int) -> tp.Samples:
    xs = RNG.standard_normal((rows, d))
    return tp.Samples(tuple(map(tuple, xs.tolist())), ((1.0,),) * rows)


def planned(program: tp.Program) -> object:
    return plan(compile_graph(derive(program)).script)


def test_a_batch_is_one_product() -> None:
    program = tp.train(tp.MLP(3, "tanh"), "mup", data(8, 3), steps=2, batch=8, watch=())
    products = [s for s in planned(program).script.instructions if isinstance(s, Multiply)]
    assert {len(step.vectors) for step in products} == {8}
    # two hidden matrices, three forward and two backward passes
    assert len(products) == 2 * (3 + 2)


def test_inner_products_come_from_coordinates() -> None:
    """Hidden updates need no array: every Dot of two multiplied vectors follows their products."""
    program = tp.train(tp.MLP(3, "tanh"), "mup", data(5, 3), steps=4, watch=())
    found = planned(program)
    pushed: set[int] = set()
    gathered = 0
    for step in found.script.instructions:
        if isinstance(step, Multiply):
            pushed.update(step.vectors)
        if isinstance(step, Dot) and set(step.others) <= pushed:
            assert step.vector in pushed
            gathered = max(gathered, len(step.others))
    assert gathered == 4


def test_only_images_of_the_input_layer_are_drawn() -> None:
    program = tp.train(tp.MLP(2, "relu"), "mup", data(3, 50), steps=4, watch=())
    found = planned(program)
    starts = [s for s in found.script.instructions if isinstance(s, Starts)]
    assert sorted(step.rank for step in starts) == [1, 3]  # the readout, and three inputs
    assert found.start_rows == {"n": 4}


@pytest.mark.parametrize("mode", ["limit", "finite"])
@pytest.mark.parametrize("param", ["mup", "ntk"])
def test_memory_covers_everything_that_is_allocated(param: str, mode: Mode) -> None:
    """Batches, images under way, fluctuations: as Python counts it, second replicate included."""
    program = tp.train(tp.MLP(2, "relu"), param, data(16, 3), steps=2, batch=16, watch=())
    setting = Setting(mode, 2**12)
    if mode == "limit":
        script = compile_graph(derive(program)).script
    else:
        script = compile_program(program, setting.width)[0]
    found = plan(script)
    Workspace(found, setting).run([(1,)])  # compiles and imports what is needed
    tracemalloc.start()
    space = Workspace(found, setting)
    for seed in (1, 2):
        space.run([(seed,)])
    _, used = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert used / 1.05 <= memory_needed(found, setting) < 1.6 * used


@pytest.mark.parametrize("size", [1, 3, 6])
def test_factor_of_any_rank(size: int) -> None:
    for rank in range(1, size + 1):
        root = RNG.standard_normal((size, rank))
        cov = root @ root.T
        found = np.array(factor(cov, "g"))
        assert found.shape == (size, rank)
        np.testing.assert_allclose(found @ found.T, cov, atol=1e-9 * np.trace(cov))


def test_factor_of_zero_and_of_nonsense() -> None:
    assert factor(np.zeros((2, 2)), "g") == ((), ())
    with pytest.raises(ProgramError, match="positive semidefinite"):
        factor(np.array([[1.0, 2.0], [2.0, 1.0]]), "g")
    with pytest.raises(ProgramError, match="positive semidefinite"):
        factor(np.array([[0.0, 1.0], [1.0, 0.0]]), "g")
