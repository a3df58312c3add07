"""The loss over the steps of a training run, from limits and networks of its outputs."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

import tpcalc as tp
from tpcalc.questions.losses import with_losses
from tpcalc.results import (
    Estimate,
    Exponent,
    FiniteRow,
    FiniteTable,
    LimitTable,
    Method,
    Provenance,
    ScalarRow,
    Status,
)

MADE = Provenance("0", "ab")
INPUTS = ((1.0, 0.5), (0.5, -1.0), (-0.25, 1.0))
CLASSES = tp.Samples(INPUTS, ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)))
NUMBERS = tp.Samples(INPUTS, ((1.0,), (-1.0,), (0.5,)))


def cross_entropy(f: Any, y: Any) -> float:
    return float(np.mean(np.log(np.exp(f).sum(axis=-1)) - (f * y).sum(axis=-1)))


def half_square(f: Any, y: Any) -> float:
    return float(np.mean(((f - y) ** 2).sum(axis=-1) / 2))


@pytest.mark.parametrize(
    ("data", "loss", "by_hand"),
    [(NUMBERS, "mse", half_square), (CLASSES, "xent", cross_entropy)],
)
def test_losses_are_those_of_the_outputs(data: tp.Samples, loss: str, by_hand: Any) -> None:
    """Batches of two go round the three samples; outputs have errors, and networks their own."""
    run = tp.Training(tp.MLP(1, "tanh"), "mup", data, steps=2, batch=2, loss=loss)
    draw = np.random.default_rng(0)
    f, off = draw.normal(size=(3, 2, data.outputs)), 0.05
    networks = draw.normal(size=(3, 2, data.outputs, 4))
    scalars, rows = [], []
    for t, b, k in product(range(3), range(2), range(data.outputs)):
        name = f"f[{t},{b},{k}]" if data.outputs > 1 else f"f[{t},{b}]"
        scalars.append(ScalarRow(name, Estimate(float(f[t, b, k]), off, Method.QUADRATURE)))
        rows.append(FiniteRow(name, "value", 64, tuple(networks[t, b, k])))
    limit = LimitTable(tuple(scalars), (), MADE)
    finite = FiniteTable(tuple(rows), (64,), 4, "lazy", MADE)
    shown, drawn = with_losses(run, limit, finite)
    assert shown.scalars[: len(scalars)] == limit.scalars
    assert drawn.rows[: len(rows)] == finite.rows
    for t in range(3):
        y = np.array([data.targets[(2 * t + b) % 3] for b in range(2)])
        (found,) = (row.estimate for row in shown.scalars if row.name == f"loss[{t}]")
        assert found.value == pytest.approx(by_hand(f[t], y), rel=1e-12)
        assert found.method is Method.QUADRATURE
        for signs in product((-1, 1), repeat=f[t].size):
            moved = by_hand(f[t] + off * np.reshape(signs, f[t].shape), y)
            assert abs(moved - found.value) <= found.stderr
        (row,) = (row for row in drawn.rows if row.name == f"loss[{t}]")
        assert row.width == 64
        for seed, value in enumerate(row.values):
            assert value == pytest.approx(by_hand(networks[t, ..., seed], y), rel=1e-12)


def test_what_has_no_number_has_no_loss() -> None:
    run = tp.Training(tp.MLP(1, "tanh"), "mup", tp.Samples(((1.0, 0.5),), ((1.0,),)), steps=3)
    plain, missed = Exponent.number(0), Status.TOLERANCE_NOT_REACHED
    sampled = Estimate(0.5, 0.1, Method.PARTICLES, status=missed)
    gaussian = Estimate(0.0, 0.0, Method.EXACT, std=1.0)
    rows = (
        ScalarRow("f[0,0]", gaussian, Exponent.of("-1/2")),  # random, but it tends to 0
        ScalarRow("f[1,0]", gaussian, plain),
        ScalarRow("f[2,0]", sampled, Exponent.of("1/2")),
        ScalarRow("f[3,0]", sampled, plain),
    )
    finite = FiniteTable((), (64,), 4, "lazy", MADE)
    shown, drawn = with_losses(run, LimitTable(rows, (), MADE), finite)
    found = {row.name: row.estimate for row in shown.scalars if row.name.startswith("loss")}
    assert found.keys() == {"loss[0]", "loss[3]"} and drawn.rows == ()
    assert found["loss[0]"].value == 0.5 and found["loss[0]"].method is Method.EXACT
    assert 0 < found["loss[0]"].stderr < 1e-13  # it is computed in floats
    assert found["loss[3]"].status is missed and found["loss[3]"].value == 0.125
    assert replace(shown, scalars=rows) == LimitTable(rows, (), MADE)


def test_the_loss_of_networks_tends_to_that_of_the_limit() -> None:
    run = tp.Training(tp.MLP(1, "tanh"), "mup", NUMBERS, steps=2, batch=3, watch=())
    limit = tp.limit(run.program, seed=0, rel_error=1e-3).table
    shown, drawn = with_losses(run, limit, tp.simulate(run.program, widths=[4096], seeds=8, seed=1))
    found = tp.compare(shown, drawn)
    rows = [row for row in found.rows if row.name.startswith("loss")]
    assert len(rows) == 3 and all(abs(row.z) < 5 for row in rows)
