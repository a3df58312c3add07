"""Every question takes a network of one's own, and limit and finite networks agree."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from agreements.own_networks import NETWORKS

import tpcalc as tp
from tests.agree import agree
from tpcalc.results import Estimate, Method, ScalarRow

WIDTHS = (512, 1024, 2048, 4096)
NAMES = list(NETWORKS)


def finite_mean(values: Any) -> Estimate:
    """The mean over seeds with its error."""
    numbers = np.array(values)
    stderr = float(numbers.std(ddof=1)) / len(numbers) ** 0.5
    return Estimate(float(numbers.mean()), stderr, Method.FINITE, replicates=len(numbers))


@pytest.fixture(
    scope="module",
    params=[pytest.param(one, marks=[pytest.mark.slow] * (one == "blocks")) for one in NAMES],
)
def case(request: pytest.FixtureRequest) -> tuple[Any, tp.Samples]:
    return NETWORKS[request.param]


def test_limits_of_training_agree_with_networks(case: tuple[Any, tp.Samples]) -> None:
    net, data = case
    program = tp.train(net, "mup", data, steps=1, watch=("x",))
    found = tp.limit(program, samples=2**14, seed=1)
    finite = tp.simulate(program, widths=WIDTHS, seeds=24, seed=2)
    compared = 0
    for row in (*found.table.scalars, *found.table.vectors):
        if str(row.n_power) != "0":
            continue
        parts = {"mean": row.mean, "second_moment": row.second_moment} if not isinstance(
            row, ScalarRow
        ) else {"value": row.estimate}  # fmt: skip
        for statistic, limit in parts.items():
            assert limit.stderr <= 1e-3
            for one in finite.rows:
                if (one.name, one.statistic) == (row.name, statistic):
                    own = finite_mean(one.values)
                    slack = 6 / one.width * max(1.0, abs(limit.value))  # corrections like 1/n
                    agree(limit, own, rounding=slack)
                    compared += 1
    assert compared >= 3 * len(WIDTHS)


def test_kernels_agree_with_networks(case: tuple[Any, tp.Samples]) -> None:
    net, data = case
    kernel = tp.kernel(net, data.inputs, parameterization="ntk", scale=1, seed=3)
    program = tp.train(net, "ntk", data, steps=0, batch=2, watch=())
    finite = tp.simulate(program, widths=[1024], seeds=256, seed=4)
    f = np.array([[v for r in finite.rows if r.name == f"f[0,{i}]" for v in r.values]
                  for i in range(2)])  # fmt: skip
    assert kernel.nngp is not None
    for i, j in ((0, 0), (0, 1), (1, 1)):
        products = f[i] * f[j]
        agree(float(kernel.nngp[i, j]), finite_mean(products), rounding=0.01 + 5 * kernel.error)


def test_the_tangent_kernel_is_the_first_step(case: tuple[Any, tp.Samples]) -> None:
    """At a small rate f_1 - f_0 is the rate times the kernel, of the loss -f."""
    net, data = case
    kernel = tp.kernel(net, data.inputs, parameterization="ntk", scale=1, seed=3)
    eta = 1e-3
    first = tp.Samples(data.inputs[:1], data.targets[:1])
    program = tp.train(
        net, "ntk", first, steps=1, loss="linear", lr=eta, queries=[data.inputs[1]], watch=()
    )
    finite = tp.simulate(program, widths=[2048], seeds=24, seed=5)
    rows = {row.name: np.array(row.values) for row in finite.rows}
    assert kernel.ntk is not None
    for index in range(2):
        moved = (rows[f"f[1,{index}]"] - rows[f"f[0,{index}]"]) / eta
        entry = float(kernel.ntk[0, index])
        agree(entry, finite_mean(moved), rounding=0.02 * abs(entry) + 5 * kernel.error)


CASES = [
    pytest.param(
        name, param, verdict, marks=[pytest.mark.slow] * (name == "blocks" or param == "ntk")
    )
    for name in NAMES
    for param, verdict in (("mup", "feature-learning"), ("ntk", "kernel"), ("standard", "unstable"))
    if name != "blocks" or param == "mup"  # the others take half a minute
]


@pytest.mark.parametrize(("name", "param", "verdict"), CASES)
def test_verdicts_are_told_parameter_by_parameter(name: str, param: str, verdict: str) -> None:
    net, data = NETWORKS[name]
    found = tp.check(net, param, data, steps=1)
    assert found.verdict == verdict
    assert found.valid_for == ("all t" if verdict == "unstable" else "t<=1")
    marks = [mark for mark in tp.network(net).marks if not mark.bias]
    assert [layer.name for layer in found.layers] == [mark.label for mark in marks]
    if param == "mup":
        assert all(layer.moves for layer in found.layers)


def test_the_rates_that_move_everything_are_those_of_mup(case: tuple[Any, tp.Samples]) -> None:
    net, data = case
    found = tp.solve(net, "standard", data, steps=1, multipliers=True)
    roles = {mark.label: mark.role for mark in tp.network(net).marks}
    powers = {"input": "0", "hidden": "1/2", "readout": "1"}
    assert dict(found.closed) == {f"a[{label}]": powers[role] for label, role in roles.items()}
    assert set(found.steps[0].c) == {"-1"}


def test_all_other_questions_are_answered(case: tuple[Any, tp.Samples]) -> None:
    net, data = case
    program = tp.train(net, "mup", data, steps=1, watch=("x", "dW_x"))
    orders = tp.orders(program)
    assert str(orders["f[1,0]"]) and {row.n for row in orders.table.rows if row.name == "f[1,0]"}
    phases = tp.phases(
        net, "ac:0,a,1;-1,c,-1", {"a": ("1/2", 1), "c": (-1, 0)}, data, steps=1, verify=False
    )
    assert any(cell.verdict == "feature-learning" for cell in phases.cells)
    assert tp.dependencies(tp.train(net, "mup", data, steps=0, watch=("x",)))
