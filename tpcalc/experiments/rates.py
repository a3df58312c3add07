"""The loss of a run at a rate, of finite and of infinite width, and the rate at which it is least.

Each loss is a task that depends on nothing but what is asked; where losses are exact, the search
for the least between the rates that were tried is a task, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from tpcalc.doors.numbers import exact
from tpcalc.errors import EvaluationError, LimitError, ScaleError, UsageError
from tpcalc.evaluate.limit import limit
from tpcalc.networks.network import Architecture
from tpcalc.progress import Progress
from tpcalc.questions.depth.at_depth import at_depth
from tpcalc.questions.depth.limit import depth_limit
from tpcalc.questions.losses import loss_of
from tpcalc.results import Estimate, LossRow, Method, Optimum, Status
from tpcalc.tasks.task import Task
from tpcalc.training.parameterizations import lookup
from tpcalc.training.training import Training

OO = "oo"
XTOL, CLOSE, EPS = 1e-9, 1e-2, float(np.finfo(float).eps)
Loss = tuple[Estimate | None, str]  # the loss; or why there is none


@dataclass(frozen=True)
class Asked:
    """What is asked of all rates, widths and depths; without blocks the depth is ``""``."""

    training: Training
    recipes: tuple[str, ...]
    depths: tuple[str, ...]
    rates: tuple[float, ...]
    multipliers: tuple[float, ...]
    widths: tuple[str, ...]
    seeds: int
    average: int
    seed: int
    device: str
    named: bool

    def run(self, recipe: str, multiplier: float, rate: float) -> Training:
        """The run of a recipe with a multiplier and a rate."""
        run = self.training
        changes: dict[str, Any] = {}
        if self.named:
            changes = {"parameterization": lookup(recipe), "lr_depth": None}
        if multiplier != 1:
            changes["network"] = _multiplied(run.replace(**changes).network, multiplier)
        own = run.lr
        factor = exact(rate, what="rate")
        changes["lr"] = (
            (lambda layer, step: own(layer, step) * rate) if callable(own) else own * factor
        )
        return run.replace(**changes)

    @staticmethod
    def task(recipe: str, width: str, depth: str, multiplier: float, rate: float) -> Task:
        """The task of a loss."""
        blocks = f", L = {depth}" if depth else ""
        text = f"{recipe}{blocks}, n = {width}, rate {rate:g}"
        own = recipe, depth, width, multiplier, rate
        return Task(text, (_loss_at, *own), "|".join((*own[:3], *map(repr, own[3:]))))

    @np.errstate(over="ignore", invalid="ignore")  # far above the best rate losses are huge
    def row(self, recipe: str, depth: str, width: str, multiplier: float, rate: float) -> LossRow:
        """The loss at a rate."""
        run = self.run(recipe, multiplier, rate)
        found = self._limit(run, depth) if width == OO else self._networks(run, depth, int(width))
        return LossRow(recipe, depth, width, multiplier, rate, *found)

    def _limit(self, run: Training, depth: str) -> Loss:
        steps = range(run.steps + 1 - self.average, run.steps + 1)
        try:
            at = _outputs(run, depth, steps, self.seed)
            parts = [loss_of(run, step, at) for step in steps]
        except (EvaluationError, LimitError, ScaleError) as error:
            return None, error.told
        loss = math.fsum(one.value for one in parts) / len(parts)
        off = math.fsum(one.stderr for one in parts) / len(parts)
        if not math.isfinite(loss):
            return None, "the loss leaves the range of floats"
        status = max((one.status for one in parts), key=list(Status).index)
        return Estimate(loss, off, max(one.method for one in parts), status), ""

    def _networks(self, run: Training, depth: str, width: int) -> Loss:
        from tpcalc.finite.training.curve import losses_of

        own = at_depth(run, int(depth)) if depth else run
        found = []
        for k in range(self.seeds):
            losses = losses_of(own, width, self.seed + k, device=self.device)
            if len(losses) <= run.steps:
                return None, f"a network is no longer finite at step {len(losses)}"
            found.append(math.fsum(losses[-self.average :]) / self.average)
        error = float(np.std(found, ddof=1) / len(found) ** 0.5) if len(found) > 1 else math.inf
        mean = float(np.mean(found))
        return Estimate(mean, error, Method.FINITE, replicates=len(found)), ""


def best_of(rows: Sequence[LossRow]) -> Optimum | None:
    """The least loss of a recipe, a depth and a width, by rising rates of each multiplier."""
    best = min(rows, key=_loss)
    if best.loss is None:
        return None
    same = [row for row in rows if row.multiplier == best.multiplier]
    place = same.index(best)
    low = next((r.rate for r in reversed(same[:place]) if _worse(r, best)), None)
    high = next((r.rate for r in same[place + 1 :] if _worse(r, best)), None)
    return Optimum(
        best.recipe, best.depth, best.width, best.multiplier, best.rate, low, high, best.loss,
        None, "grid",
    )  # fmt: skip


def searched(best: Optimum) -> bool:
    """Whether the least loss can be told between the rates that were tried."""
    exact = best.loss.method in (Method.EXACT, Method.QUADRATURE)
    return exact and best.low is not None and best.high is not None


def search(best: Optimum) -> Task:
    """The task of the least loss between the rates beside the best one that was tried."""
    places = map(repr, (best.multiplier, best.low, best.rate, best.high))
    key = "|".join(("least", best.recipe, best.depth, best.width, *places))
    return Task(f"{best.recipe}, n = {best.width}, least loss", (_least_of, best), key)


def _loss_at(asked: Asked, *own: Any) -> Iterator[LossRow]:
    yield asked.row(*own[:-1])  # all but the progress


def _least_of(asked: Asked, grid: Optimum, progress: Progress) -> Iterator[Optimum]:
    from scipy.optimize import minimize_scalar

    assert grid.low and grid.high

    @cache
    def row(log: float) -> LossRow:
        own = grid.recipe, grid.depth, grid.width, grid.multiplier
        return asked.row(*own, math.exp(log))

    def loss(log: float) -> float:
        return _loss(row(float(log)))

    # Bracketed: golden sections and parabolas find a least loss inside.
    bracket = math.log(grid.low), math.log(grid.rate), math.log(grid.high)
    found = minimize_scalar(loss, bracket=bracket, method="brent", options={"xtol": XTOL})
    place = float(found.x)
    rate, least = math.exp(place), row(place).loss
    assert least is not None
    near = [loss(place + h) for h in (-CLOSE, CLOSE)]
    bend = (sum(near) - 2 * least.value) / CLOSE**2
    # Where a loss is least is known up to the root of its own error.
    error = least.stderr + 4 * EPS * (abs(least.value) + max(near))
    off = rate * (XTOL + math.sqrt(2 * error / bend)) if bend > 0 else rate
    yield replace(grid, rate=rate, low=rate - off, high=rate + off, loss=least, how="minimised")


def _outputs(
    run: Training, depth: str, steps: Sequence[int], seed: int
) -> Callable[[str], Estimate]:
    """The outputs at infinite width, by name."""
    if depth:
        table = depth_limit(run, (depth,), seed=seed)
        return lambda name: table.at(name, depth)
    own = run.replace(watch=(), queries=())
    found = limit(own.blocks, outputs=[f"f[{step},*" for step in steps], seed=seed)
    known = {row.name: row.estimate for row in found.table.scalars}
    return lambda name: known.get(name) or found[name]  # which says why there is none


def _loss(row: LossRow) -> float:
    return math.inf if row.loss is None else row.loss.value


def _worse(row: LossRow, best: LossRow) -> bool:
    """Whether the loss of a row is known to be larger than the least: by two combined errors."""
    if row.loss is None:
        return True
    assert best.loss is not None
    off = math.hypot(row.loss.stderr, best.loss.stderr)
    return row.loss.value - best.loss.value > 2 * off


def _multiplied(network: Architecture, factor: float) -> Architecture:
    if not hasattr(network, "multiplier"):
        raise UsageError(
            f"{network.words} has no number in front of its blocks that can be changed.",
            hint="Leave multipliers out; ResNet has one.",
        )
    own: Any = network
    found: Architecture = replace(own, multiplier=own.multiplier * exact(factor, what="multiplier"))
    return found
