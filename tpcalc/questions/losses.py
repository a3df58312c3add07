"""The loss of a training run over its steps, where the outputs are known: nothing is run again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np

from tpcalc.arrays import Array
from tpcalc.errors import EvaluationError
from tpcalc.names import stepped
from tpcalc.results import Estimate, FiniteRow, FiniteTable, LimitTable, Method, ScalarRow, Status
from tpcalc.training.loss import loss_values, slope_values
from tpcalc.training.training import Training

ROUNDING = 64 * float(np.finfo(float).eps)  # of a loss that is computed in floats


def loss_of(run: Training, step: int, at: Callable[[str], Estimate]) -> Estimate:
    """The mean loss of the batch of a step, before its update, from the outputs there.

    Of outputs that stay random it is the mean over networks, which a square has by mean and spread.
    """
    names, y = _batch(run, step)
    found = [[at(name) for name in row] for row in names]
    f, off, spread, blur = (
        np.array([[getattr(one, part) or 0.0 for one in row] for row in found])
        for part in ("value", "stderr", "std", "std_error")
    )
    if spread.any() and (name := run.loss.name) != "mse":
        raise EvaluationError(f"outputs are random in the limit: {name} over networks is open.")
    several = y.shape[1], run.network.positions
    loss = loss_values(run.loss, *several)(f, y).mean() + (spread**2).sum(axis=1).mean() / 2
    # Errors of outputs may be dependent: sizes add up; a square of them is at a minimum.
    slope = np.abs(slope_values(run.loss, *several)(f, y))
    error = slope * off + off**2 + spread * blur + blur**2
    every = [one for row in found for one in row]
    status = max((one.status for one in every), key=list(Status).index)
    method = max(one.method for one in every)
    return Estimate(float(loss), float(error.sum(axis=1).mean()), method, status)


def with_losses(
    run: Training, limit: LimitTable, finite: FiniteTable
) -> tuple[LimitTable, FiniteTable]:
    """The tables of a run with the loss of each step whose outputs they have."""
    known = {row.name: one for row in limit.scalars if (one := _limit(row)) is not None}
    drawn = {(row.name, row.width): row.values for row in finite.rows}
    scalars, rows = list(limit.scalars), list(finite.rows)
    if run.network.positions == 1:  # else a loss is a sum over places, and outputs have other names
        for step in range(run.steps + 1):
            name, (names, y) = stepped("loss", step), _batch(run, step)
            asked = [own for row in names for own in row]
            if known.keys() >= set(asked):
                found = loss_of(run, step, known.__getitem__)
                error = found.stderr + ROUNDING * abs(found.value)
                scalars.append(ScalarRow(name, replace(found, stderr=error)))
            value = loss_values(run.loss, y.shape[1])
            for width in finite.widths:
                if all((own, width) in drawn for own in asked):
                    f = np.array([drawn[own, width] for own in asked]).T.reshape(-1, *y.shape)
                    with np.errstate(all="ignore"):  # a network that explodes has no loss
                        losses = tuple(float(value(one, y).mean()) for one in f)
                    rows.append(FiniteRow(name, "value", width, losses))
    return replace(limit, scalars=tuple(scalars)), replace(finite, rows=tuple(rows))


def _batch(run: Training, step: int) -> tuple[list[list[str]], Array]:
    """The names of the outputs of the batch of a step, sample by sample, and their targets."""
    assert run.data is not None
    outputs = run.data.outputs
    ends = [(k,) for k in range(outputs)] if outputs > 1 else [()]
    names = [[stepped("f", step, b, *end) for end in ends] for b in range(run.batch)]
    rows = [(step * run.batch + b) % len(run.data) for b in range(run.batch)]
    return names, np.array([run.data.targets[row] for row in rows], float)


def _limit(row: ScalarRow) -> Estimate | None:
    """What an output tends to, where that is a number."""
    power = row.n_power.constant
    if power is not None and power < 0:
        return Estimate(0.0, 0.0, Method.EXACT)
    return row.estimate if power == Fraction(0) and not row.estimate.random else None
