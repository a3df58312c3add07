"""Dense runs: what they compute, and that nothing but seed and width decides it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction

import numpy as np
import pytest
from agree import agree
from unit.finite.dense_programs import (
    HALF,
    RELU,
    TANH,
    every_node,
    half_power,
    inner,
    plain,
    reference,
    round_trip,
)

from tpcalc.finite.dense import run_dense
from tpcalc.finite.dense_plan import plan_dense
from tpcalc.finite.dense_rules import _combine, _combine_stacked
from tpcalc.finite.draws import Network, draw_scalar
from tpcalc.finite.statistics import summary
from tpcalc.functions import Fn, Par, Var
from tpcalc.program.nodes import (
    Data,
    Dim,
    Family,
    Input,
    LinComb,
    MatMul,
    Moment,
    Nonlin,
    Scale,
    members,
)
from tpcalc.program.program import Builder

pytestmark = pytest.mark.torch


@contextmanager
def threads(count: int) -> Iterator[None]:
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    # Test runs share the cores already; threads that wait for each other then take seconds.
    with threads(1):
        yield


def same(left: dict, right: dict) -> None:
    assert left.keys() == right.keys()
    for key in left:
        np.testing.assert_array_equal(left[key], right[key], err_msg=str(key))


# ---------------------------------------------------------------------- against numpy, node by node


@pytest.mark.parametrize("width", [6, 34])
def test_every_node_type_against_a_plain_numpy_reading(width: int) -> None:
    program = every_node()
    found = run_dense(program, width, [3, 11])
    for index, seed in enumerate((3, 11)):
        expected = reference(program, width, seed)
        assert found.keys() == expected.keys()
        for key, value in expected.items():
            assert found[key][index] == pytest.approx(value, rel=1e-11, abs=1e-12), key


# -------------------------------------------------------------------------------- against the limit


def test_relu_between_a_matrix_and_its_transpose() -> None:
    # E z h = g/2 comes from the correction term alone: independent matrices would give 0.
    variance = 1.25
    found = run_dense(round_trip(RELU, variance=variance), 400, range(60))
    agree(summary(found["zh", "value"]), variance / 2)
    agree(summary(found["hh", "value"]), variance / 2 + variance / 4)
    agree(summary(found["z", "second_moment"]), variance)
    np.testing.assert_allclose(found["h", "second_moment"], found["hh", "value"], rtol=1e-12)


@pytest.mark.parametrize("ratio", [Fraction(1), HALF, Fraction(2)])
def test_orthogonal_matrix_is_an_isometry_of_its_short_side(ratio: Fraction) -> None:
    builder = Builder((Dim("n"), Dim("m", ratio)))
    z = builder.add(Input(Family.group("z", "n", (0.0,))))
    matrix = builder.add(Input(Family("W", ("n", "m"), law="orthogonal")))
    # Divided by the square root of the long side, W has orthonormal columns (or rows).
    long = max(Fraction(1), ratio)
    there = half_power(builder, builder.add(MatMul(matrix, z, True)))
    back = half_power(builder, builder.add(MatMul(matrix, there)))
    again = half_power(
        builder,
        builder.add(MatMul(matrix, half_power(builder, builder.add(MatMul(matrix, back, True))))),
    )
    gap = builder.add(LinComb((1 / long, Fraction(-1)), (None, None), (back, z)))
    projected = builder.add(LinComb((1 / long, Fraction(-1)), (None, None), (again, back)))
    builder.output("gap", gap)
    builder.output("projected", projected)
    builder.output("size", inner(builder, there, there))
    found = run_dense(builder.finish(), 40, range(4))
    assert np.all(found["projected", "second_moment"] < 1e-25)  # W W^T / long is a projection
    if ratio >= 1:
        assert np.all(found["gap", "second_moment"] < 1e-25)  # and the identity, if W is wide
    else:
        assert np.all(found["gap", "second_moment"] > 0.1)


def test_random_scalars_are_random_over_seeds_and_given_ones_are_not() -> None:
    builder = Builder()
    noise = builder.add(Input(Family.scalar("bias", HALF, Fraction(2))))
    given = builder.add(Data("rate", (Fraction(1, 4),)))
    both = builder.add(Nonlin(Fn(Par(0) * Par(1), 0, 2), (), (noise, given)))
    for name, ref in (("noise", noise), ("given", given), ("both", both)):
        builder.output(name, ref)
    found = run_dense(builder.finish(), 5, range(400))
    estimate = summary(found["noise", "value"], random=True)
    agree(estimate, HALF)
    assert estimate.std == pytest.approx(2, rel=0.2)
    assert set(found["given", "value"]) == {0.25}
    np.testing.assert_allclose(found["both", "value"], found["noise", "value"] / 4)
    other = run_dense(builder.finish(), 6, range(400))["noise", "value"]
    assert abs(np.corrcoef(other, found["noise", "value"])[0, 1]) < 0.25  # 5/sqrt(400)


def test_singular_covariance_gives_repeated_inputs() -> None:
    builder = Builder()
    rows = ((1.0, 1.0, 2.0), (1.0, 1.0, 2.0), (2.0, 2.0, 4.0))
    a, b, c = map(builder.add, members(Family.group("x", "n", (0.0, 0.0, 1.0), rows)))
    builder.output("ab", builder.add(LinComb((1.0, -1.0), (None, None), (a, b))))
    builder.output("ac", builder.add(LinComb((2.0, -1.0), (None, None), (a, c))))
    builder.output("a", a)
    found = run_dense(builder.finish(), 500, range(10))
    assert np.all(found["ab", "second_moment"] == 0)
    np.testing.assert_allclose(found["ac", "mean"], -1, atol=1e-12)
    agree(summary(found["a", "second_moment"]), 1.0)


def test_powers_of_n_and_of_depth_take_their_symbols_from_values() -> None:
    from tpcalc.exponents import Ex

    builder = Builder()
    one = builder.add(Data("one", (Fraction(1),)))
    builder.output("y", builder.add(Scale(one, Ex.symbol("a") * 2 - HALF, Ex.number(-1))))
    found = run_dense(builder.finish(), 16, [0], values={"a": HALF, "L": 8})
    assert found["y", "value"].tolist() == [4 / 8]


# ------------------------------------------------------------ only seed and width decide the answer


@pytest.mark.parametrize("width", [34, 66])
def test_same_bits_for_any_chunk(width: int) -> None:
    program = every_node()
    everything = run_dense(program, width, range(5))
    need = plan_dense(program, {"n": width, "m": width * 3 // 2}, 8).seed_bytes
    same(run_dense(program, width, range(5), memory_limit=2 * need), everything)
    alone = run_dense(program, width, [3])
    same(alone, {key: array[3:4] for key, array in everything.items()})


def test_same_bits_for_any_number_of_threads() -> None:
    program = every_node(1)
    everything = run_dense(program, 66, range(4))
    with threads(2):
        same(run_dense(program, 66, range(4)), everything)
        alone = run_dense(program, 66, [3])
    same(alone, {key: array[3:4] for key, array in everything.items()})


def test_same_bits_for_long_vectors() -> None:
    builder = Builder()
    x, y = map(builder.add, members(Family.group("x", "n", (0.0, 0.0))))
    builder.output("xy", inner(builder, x, y))
    builder.output("t", builder.add(Moment(Fn(TANH(Var(0)), 1), (x,))))
    program = builder.finish()
    everything = run_dense(program, 100_003, range(3))
    for count in (1, 2):
        with threads(count):
            alone = run_dense(program, 100_003, [1])
        same(alone, {key: array[1:2] for key, array in everything.items()})


def test_inputs_seeds_and_widths_are_independent() -> None:
    names = {
        (kind, name, seed, width)
        for kind in ("matrix", "group", "scalar")
        for name in ("W", "V")
        for seed in (0, 1)
        for width in (8, 9)
    }
    draws = {
        float(Network(seed, width).stream(kind, name).standard_normal())
        for kind, name, seed, width in names
    }
    assert len(draws) == len(names) == 24
    family = Family.scalar("s", HALF, Fraction(1))
    assert draw_scalar(family, Network(0, 12)) == draw_scalar(family, Network(0, 12))


@pytest.mark.parametrize(
    ("dtype", "tolerance"), [("float32", 2e-5), ("bfloat16", 0.1), ("bf16", 0.1)]
)
def test_lower_precision_is_close(dtype: str, tolerance: float) -> None:
    program = every_node()
    exact, rough = run_dense(program, 50, range(3)), run_dense(program, 50, range(3), dtype=dtype)
    for key in exact:
        assert rough[key].dtype == np.float64
        np.testing.assert_allclose(rough[key], exact[key], atol=tolerance, err_msg=str(key))
    assert any(np.any(rough[key] != exact[key]) for key in exact)


@pytest.mark.gpu
def test_cuda_gives_the_same_networks() -> None:
    program = every_node()
    here, there = run_dense(program, 64, range(4)), run_dense(program, 64, range(4), device="cuda")
    for key in here:
        np.testing.assert_allclose(there[key], here[key], rtol=1e-9, atol=1e-11, err_msg=str(key))


# ---------------------------------------------------------------------------------------- the parts


def test_sums_term_by_term_and_stacked_agree() -> None:
    import torch

    generator = torch.Generator().manual_seed(0)
    vectors = [torch.randn(3, 17, dtype=torch.float64, generator=generator) for _ in range(9)]
    coefficients = torch.randn(9, 3, dtype=torch.float64, generator=generator)
    expected = sum(c[:, None] * v for c, v in zip(coefficients, vectors, strict=True))
    torch.testing.assert_close(_combine(coefficients, vectors), expected)
    torch.testing.assert_close(_combine_stacked(torch, coefficients, vectors), expected)


def test_values_are_dropped_and_products_batched() -> None:
    program = every_node(4)
    plan = plan_dense(program, {"n": 64, "m": 96}, 8)
    assert sorted(plan.order) == sorted(set(plan.order))
    dropped = [ref for refs in plan.drops for ref in refs]
    assert sorted(dropped) == sorted(plan.order)
    sizes = sorted(len(batch) for batch in plan.batches.values())
    assert max(sizes) == 3 and plan.products == sum(sizes)
    # Vectors of past steps are gone, so memory hardly grows with the number of steps.
    longer = plan_dense(every_node(16), {"n": 64, "m": 96}, 8)
    assert longer.seed_bytes <= plan.seed_bytes


def test_nodes_that_no_output_needs_are_not_run() -> None:
    builder = Builder()
    x = builder.add(Input(Family.group("x", "n", (0.0,))))
    builder.add(Scale(x, plain(400)))  # would overflow
    builder.output("x", x)
    assert np.isfinite(run_dense(builder.finish(), 10, [0])["x", "mean"]).all()


def test_thousands_of_nodes() -> None:
    builder = Builder()
    x = builder.add(Input(Family.group("x", "n", (0.0,))))
    matrix = builder.add(Input(Family("W", ("n", "n"))))
    history = [x]
    for step in range(60):
        product = half_power(builder, builder.add(MatMul(matrix, x, step % 2 == 1)))
        weights = [inner(builder, product, past) for past in history[:-1]]
        moved = builder.add(
            LinComb(
                (*[Fraction(-1, 100)] * len(weights), Fraction(1)),
                (*weights, None),
                (*history[:-1], product),
            )
        )
        x = builder.add(Nonlin(Fn(TANH(Var(0)), 1), (moved,)))
        history.append(x)
    builder.output("x", x)
    program = builder.finish()
    assert len(program.nodes) > 1900
    seen: list[float] = []
    found = run_dense(program, 24, range(3), progress=lambda fraction, text: seen.append(fraction))
    assert np.all(found["x", "second_moment"] > 0)
    assert seen == sorted(seen) and len(seen) > 60 and seen[-1] == 1
