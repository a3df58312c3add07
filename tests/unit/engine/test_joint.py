"""Vectors that are read together have joint samples; others have samples of their own."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import tpcalc as tp
from tpcalc.engine.instructions import Matrix, Mean, Multiply, Script, Space, Starts, Sum
from tpcalc.engine.joint import joint
from tpcalc.engine.schedule import plan
from tpcalc.evaluate.particles.compile import compile_graph
from tpcalc.functions import Fn, Var
from tpcalc.limit.derive import derive


def start(*out):
    return Starts("n", (0.0,) * len(out), None, out)


def script(steps, count, scalars=0, vectors=(), matrices=("W",)):
    return Script(
        (Space("n"),), tuple(Matrix(name, "n", "n") for name in matrices), tuple(steps),
        ("n",) * count, scalars, ("",) * count, tuple(range(scalars)), vectors,
    )  # fmt: skip


def test_a_layer_is_a_group() -> None:
    """Three hidden layers: each matrix has one on either side, whatever the number of steps."""
    data = tp.Samples(((1.0, 0.5), (0.3, -1.0), (0.2, 0.7)), ((1.0,), (-1.0,), (1.0,)))
    program = tp.train(tp.MLP(3, "tanh"), "mup", data, steps=2, watch=())
    found = plan(compile_graph(derive(program)).script)
    assert found.joint.spaces == ("n", "n", "n")
    assert found.joint.images["W2", False] == found.joint.images["W3", True]
    assert len({found.joint.images[side] for side in found.directions}) == 3
    # two inputs and two backward passes; three forward passes and the head; three and two
    assert sorted(found.normals) == [4, 4, 5]


def test_a_matrix_that_is_applied_to_its_own_images_has_one_group() -> None:
    steps = [start(0), Multiply("W", False, (0,), (1,)), Multiply("W", False, (1,), (2,))]
    assert set(joint(script(steps, 3)).vectors) == {0}


def test_an_average_joins_vectors() -> None:
    steps = [start(0), start(1), Multiply("W", False, (0,), (2,))]
    assert joint(script(steps, 3)).vectors == (0, 1, 2)
    steps.append(Mean(Fn(Var(0) * Var(1), 2), (1, 2), (), 0))
    assert joint(script(steps, 3, 1)).vectors == (0, 1, 1)


def test_returned_coordinates_are_joint() -> None:
    steps = [start(0), start(1), start(2)]
    assert joint(script(steps, 3, vectors=(0, 2))).vectors == (0, 1, 0)


def test_matrices_that_multiply_nothing_are_left_out() -> None:
    steps = [start(0), Multiply("W", False, (0,), (1,))]
    found = plan(script(steps, 2, vectors=(1,), matrices=("V", "W")))
    assert [matrix.name for matrix in found.script.matrices] == ["W"]


@given(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=8))
def test_groups_are_the_components(pairs: list[tuple[int, int]]) -> None:
    """Beside the transitive closure of who meets whom."""
    count = 8 + len(pairs)
    sums = [Sum((1.0, 1.0), (None, None), pair, 8 + i) for i, pair in enumerate(pairs)]
    found = joint(script([*(start(i) for i in range(8)), *sums], count, matrices=())).vectors
    near = np.eye(count, dtype=bool)
    for i, pair in enumerate(pairs):
        for a in (*pair, 8 + i):
            for b in (*pair, 8 + i):
                near[a, b] = True
    closed = np.linalg.matrix_power(near.astype(float), count) > 0
    assert np.array_equal(np.equal.outer(found, found), closed)
