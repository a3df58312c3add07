"""Finite networks of blocks: every node, memory, names of cells, refusals."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from agree import agree
from hypothesis import given, settings
from properties.blocks import block_programs
from unit.finite.dense_programs import EXP, HALF, TANH, half_power, inner

import tpcalc as tp
from tests.run_blocks import on_digits
from tpcalc.errors import Exploded, OutOfMemory, UsageError
from tpcalc.finite.compile import compile_program
from tpcalc.finite.dense import run_dense
from tpcalc.finite.dense_plan import plan_dense
from tpcalc.finite.simulate import run_lazy
from tpcalc.finite.statistics import summary
from tpcalc.functions import Fn, Var
from tpcalc.passes.split import split
from tpcalc.program.nodes import (
    Data,
    Family,
    Input,
    LinComb,
    MatMul,
    Nonlin,
    OuterNonlin,
    Ref,
    Rename,
    Stack,
)
from tpcalc.program.program import Builder, Program

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

ONE = Fraction(1)


def same(found: dict, wanted: dict, tolerance: float = 1e-12) -> None:
    assert found.keys() == wanted.keys()
    for key, value in wanted.items():
        np.testing.assert_allclose(
            found[key], value, rtol=tolerance, atol=tolerance, err_msg=str(key)
        )


@settings(max_examples=100, deadline=None)
@given(block_programs())
def test_dense_blocks_are_the_split_program(program: Program) -> None:
    same(run_dense(program, 18, [3, 5]), run_dense(split(program), 18, [3, 5]))


def two_matrices() -> Builder:
    """Two matrices in one family, on vectors that have its axis and on such that do not."""
    builder = Builder()
    u = builder.add(Input(Family("u", ("n",), (("p", 2), ("h", 2)))))
    v = builder.add(Input(Family("v", ("n",), (("p", 2),))))
    matrix = builder.add(Input(Family("W", ("n", "n"), (("h", 2),))))
    for name, vector in (("u", u), ("v", v)):
        out = half_power(builder, builder.add(MatMul(matrix, vector)))
        builder.output(name, out)
        builder.output(f"{name}'", half_power(builder, builder.add(MatMul(matrix, out, True))))
    return builder


@pytest.mark.parametrize("run", [run_dense, run_lazy])
def test_cells_of_a_family_of_matrices_differ(run: object) -> None:
    builder = Builder()
    v, family = builder.add(Input(Family("v", ("n",)))), Family("W", ("n", "n"), (("h", 2),))
    pair = [builder.add(MatMul(builder.add(Input(family, cell)), v)) for cell in (0, 1)]
    first, second = (half_power(builder, one) for one in pair)
    builder.output("overlap", inner(builder, first, second))
    program = builder.finish()
    assert not program.has_blocks
    agree(summary(run(program, 200, range(50))["overlap", "value"]), 0.0)  # type: ignore[operator]


def test_a_matrix_under_another_name_of_its_axis_is_that_matrix() -> None:
    builder = two_matrices()
    matrix = next(k for k in range(len(builder)) if builder.type(k).width == ("n", "n"))
    other, v = builder.add(Rename(matrix, (("h", "k"),))), builder.output
    x = builder.outputs["v"]
    v("again", half_power(builder, builder.add(MatMul(other, x))))
    program = builder.finish()
    same(run_dense(program, 20, range(3)), run_dense(split(program), 20, range(3)))
    assert run_lazy(program, 20, [0])["again[0,1,1]", "second_moment"] > 0


def test_a_sum_over_an_axis_that_another_term_has() -> None:
    builder = Builder()
    x = builder.add(Input(Family("x", ("n",), (("p", 3),))))
    x = builder.add(Nonlin(Fn(TANH(Var(0)), 1), (x,)))
    builder.output("y", builder.add(LinComb((ONE, -HALF), (None, None), (x, x), (("p",), ()))))
    program = builder.finish()
    same(run_dense(program, 20, range(3)), run_dense(split(program), 20, range(3)))
    same(run_lazy(program, 20, range(3)), run_lazy(split(program), 20, range(3)))


@pytest.mark.parametrize("more", [False, True])
def test_outer_functions_of_forms(more: bool) -> None:
    """Of a vector with axes of its own the full matrix is made once for all cells."""
    builder = Builder()
    axes = (("b", 3),)
    r, c, x = (builder.add(Input(Family(name, ("n",), axes))) for name in "rcx")
    z = builder.add(Rename(x, (("b", "k"),))) if more else builder.add(Input(Family("z", ("n",))))
    fn = Fn(TANH(Var(0)) * Var(1), 2)
    form = OuterNonlin(fn, (r, r, c), (c, x, x), (), z, (0, 1, 1), ("b",))
    builder.output("form", builder.add(form))
    builder.output("plain", builder.add(OuterNonlin(fn, (r,), (c,), (), z)))
    program = builder.finish()
    same(run_dense(program, 30, range(3)), run_dense(split(program), 30, range(3)))
    same(run_lazy(program, 30, range(3)), run_lazy(split(program), 30, range(3)), 1e-9)


# ------------------------------------------------------------------------------------------ memory


def test_a_history_is_one_block_of_memory() -> None:
    run = on_digits(12, 4)
    plan = plan_dense(run.blocks, {"n": 256}, 8)
    begun = [place for place in plan.stacks.values() if place.before < 0]
    assert len(begun) == 4 and len(plan.stacks) == 4 * 12  # rows and columns of two matrices
    assert {place.capacity for place in begun} == {12}
    more = plan_dense(on_digits(24, 4).blocks, {"n": 256}, 8)
    matrices = 2 * 256 * 256 * 8
    assert more.seed_bytes - matrices < 2.2 * (plan.seed_bytes - matrices)


def test_what_does_not_fit_is_said_before_it_runs() -> None:
    program = two_matrices().finish()
    need = plan_dense(program, {"n": 64}, 8).seed_bytes
    assert need > 2 * 64 * 64 * 8
    with pytest.raises(OutOfMemory, match=r"64 x 64 matrix 'W' alone 64\.00 KiB"):
        run_dense(program, 64, [0], memory_limit=need - 1)
    with pytest.raises(OutOfMemory):
        run_lazy(program, 64, [0], memory_limit=1000)
    run_dense(program, 64, [0], memory_limit=need)


def test_a_seed_is_the_same_network_in_every_chunk() -> None:
    program = on_digits(3, 4).blocks
    whole = run_dense(program, 34, range(5))
    need = plan_dense(program, {"n": 34}, 8).seed_bytes
    same(run_dense(program, 34, range(5), memory_limit=2 * need), whole)
    rough = run_dense(program, 34, range(5), dtype="float32")
    same(rough, whole, 1e-4)


def test_stacks_that_do_not_continue_each_other() -> None:
    builder = Builder()
    x = builder.add(Input(Family("x", ("n",), (("b", 2),))))
    y = builder.add(Input(Family("y", ("n",))))
    z = builder.add(Input(Family("z", ("n",))))
    stacks = {
        "one": Stack((y,), "s"),
        "two": Stack((y, z), "s"),
        "wider": Stack((y, x), "s"),  # y is repeated along b
        "named": Stack((y, z), "k"),
        "third": Stack((y, z, y), "s"),
    }
    for name, node in stacks.items():
        builder.output(name, builder.add(Nonlin(Fn(Var(0) ** 3, 1), (builder.add(node),))))
    program = builder.finish()
    same(run_dense(program, 10, range(3)), run_dense(split(program), 10, range(3)))
    same(run_lazy(program, 10, range(3)), run_lazy(split(program), 10, range(3)), 1e-9)


# ------------------------------------------------------------------------------ names and refusals


def exploding() -> tuple[Builder, Ref]:
    builder = Builder()
    x = builder.add(Input(Family("x", ("n",), (("b", 2),), mean=(1, 1000))))
    builder.output("x[2,:]", x)
    builder.output("f", inner(builder, x, x))
    return builder, builder.add(Nonlin(Fn(EXP(Var(0)), 1), (x,)))


@pytest.mark.parametrize("backend", ["dense", "lazy"])
def test_a_block_that_explodes_is_named(backend: str) -> None:
    builder, large = exploding()
    builder.output("large", large)
    asked: dict[str, Any] = {"widths": [10], "backend": backend, "reading": "blocks"}
    table = tp.simulate(builder.finish(), seeds=2, **asked)
    assert {row.name for row in table.rows} == {"x[2,0]", "x[2,1]", "f[0]", "f[1]"}
    assert "at large;" in table.notes[0]
    with pytest.raises(Exploded):
        tp.simulate(replace(builder.finish(), outputs=(("large", large),)), **asked)


def test_products_reveal_gaussian_and_orthogonal_blocks_alone() -> None:
    builder = Builder()
    v = builder.add(Input(Family("v", ("n",), (("b", 2),))))
    matrix = builder.add(Input(Family("W", ("n", "n"), (("h", 2),), law="rademacher")))
    builder.output("y", builder.add(MatMul(matrix, v)))
    with pytest.raises(UsageError, match="rademacher"):
        run_lazy(builder.finish(), 10, [0])
    assert len(run_dense(builder.finish(), 10, [0])) == 8


def test_given_numbers_stay_numbers() -> None:
    """A sum of data is data: no instruction computes it."""
    builder = Builder()
    x, y = (builder.add(Data(name, (1, 2, 3, 4), (("b", 2), ("i", 2)))) for name in "xy")
    other = builder.add(Rename(y, (("b", "c"),)))
    gram = builder.add(LinComb((ONE,), (x,), (other,), (("i",),)))
    v = builder.add(Input(Family("v", ("n",), (("c", 2),))))
    builder.output("y", builder.add(LinComb((ONE,), (gram,), (v,), (("c",),))))
    script, keys = compile_program(builder.finish(), 10)
    assert [type(step).__name__ for step in script.instructions[:2]] == ["Starts", "Panel"]
    assert [name for name, _ in keys] == ["y[0]", "y[0]", "y[1]", "y[1]"]
