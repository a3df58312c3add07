"""``transfer``: the best learning rate against the number of blocks, recipe by recipe."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from tpcalc import checks
from tpcalc.engine.device.devices import known_device
from tpcalc.errors import EvaluationError, UsageError
from tpcalc.experiments.kept import Kept, digest_of
from tpcalc.networks.network import Architecture
from tpcalc.progress import Progress, part
from tpcalc.questions.depth.at_depth import at_depth
from tpcalc.questions.depth.limit import depth_limit, depth_text
from tpcalc.questions.losses import loss_of
from tpcalc.registry.values import exact, not_negative
from tpcalc.results import DepthTable, Estimate, LossRow, Method, Optimum, Transfer
from tpcalc.results.tables import provenance
from tpcalc.training.parameterizations import lookup
from tpcalc.training.training import Training

OO = "oo"
XTOL, CLOSE, EPS = 1e-9, 1e-2, float(np.finfo(float).eps)
RATES = tuple(2.0**k for k in range(-10, 3))
CAUTION = (
    "That a limit exists, or that features are learned, does not imply that the best learning "
    "rate stays where it is: this table says where it is for this run, and no more."
)


def transfer(
    training: Training,
    depths: Sequence[int | str] = (8, 16, 32, 64),
    rates: Sequence[float] = RATES,
    *,
    recipes: Iterable[str] = (),
    multipliers: Sequence[float] = (1.0,),
    widths: Sequence[int] = (),
    seeds: int = 4,
    average: int = 1,
    seed: int = 0,
    device: str = "cpu",
    work: str | Path | None = None,
    progress: Progress | None = None,
) -> Transfer:
    """The loss over learning rates and numbers of blocks, and where it is least.

    At infinite width losses are those of ``tp.depth_limit``; where they are exact, the least is
    found between the rates. At a finite width networks are trained with their matrices formed.

    Args:
        training: A run of a network of L blocks; its learning rate and multiplier are factors of
            those that are tried.
        depths: Numbers of blocks, ``"oo"`` at infinite width alone.
        rates: Learning rates, at the base depth of a recipe.
        recipes: Parameterizations with powers of the depth, ``"depth-mup"``, that are compared;
            without any that of the run.
        multipliers: Numbers in front of a block, at the base depth.
        widths: Widths of networks; without any the width is infinite.
        seeds: Networks behind each loss, of a finite width.
        average: The losses of how many last steps are averaged.
        seed: Of the first network, and of samples.
        device: Where torch trains networks.
        work: A folder where losses are kept; the same call goes on from them.
        progress: Called with the fraction done and what is being done.

    Returns:
        All losses, and for each recipe, depth and width the best rate, with the slope of its
        logarithm.

    Raises:
        UsageError: Depths, rates or multipliers that are none; a network without a multiplier; a
            limit in the depth at a finite width.
        StudyError: A folder that cannot be used.

    Source: Yang, Yu, Zhu, Hayou, Tensor Programs VI, sections 5 and 10.2.

    Example:
        >>> import tpcalc as tp
        >>> data = tp.Samples(((1.0,),), ((1.0,),))
        >>> still = {"input": {"lr": 0}, "readout": {"lr": 0}}
        >>> net = tp.ResNet("L", "identity", nonlin="post")
        >>> run = tp.Training(net, "depth-mup", data, steps=1, groups=still)
        >>> found = transfer(run, (8, 64), recipes=("depth-mup", "depth-only-multiplier"))
        >>> for one in found.optima:
        ...     print(one.recipe, one.depth, round(one.rate, 6))
        depth-mup 8 0.438462
        depth-mup 64 0.376528
        depth-only-multiplier 8 0.15502
        depth-only-multiplier 64 0.047066
    """
    started = time.perf_counter()
    checks.called(progress, "progress")
    known_device(device)
    asked = _Asked(
        training,
        checks.names(recipes, "recipes") or (training.parameterization.text,),
        tuple(dict.fromkeys(map(depth_text, checks.sequence(depths, "depths")))),
        tuple(sorted(_positive(rates, "rates", "a learning rate"))),
        _positive(multipliers, "multipliers", "a multiplier"),
        tuple(str(checks.whole(n, "a width", least=1)) for n in checks.sequence(widths, "widths"))
        or (OO,),
        checks.whole(seeds, "seeds", least=1),
        checks.whole(average, "average", least=1),
        seed,
        device,
        bool(recipes),
    )
    if widths and OO in asked.depths:
        raise UsageError(
            "networks of a finite width have a number of blocks.",
            hint="Leave 'oo' out of the depths, or the widths.",
        )
    if average > training.steps + 1:
        raise UsageError(
            f"the losses of {average} steps are averaged, and the run has {training.steps + 1}.",
            hint="Give more steps, or a smaller average.",
        )
    digest = digest_of(training, average, seeds, seed)
    kept = Kept(work, "transfer", digest)
    rows: list[LossRow] = []
    optima: list[Optimum] = []
    cells = list(product(asked.recipes, asked.widths, asked.depths))
    for place, (recipe, width, depth) in enumerate(cells):
        told = part(progress, place, place + 1, len(cells))
        cell = _Cell(asked, recipe, depth, width, kept, told)
        rows += cell.rows
        best = cell.best
        if best is not None:
            optima.append(_sloped(best, optima))
    last = training.steps
    steps = f"step {last}" if average == 1 else f"steps {last + 1 - average}..{last}"
    settings = {"depths": ", ".join(asked.depths), "recipes": ", ".join(asked.recipes)}
    made = provenance(digest, seed, settings, time.perf_counter() - started)
    measured = f"the mean {training.loss.name} loss of the batch, {steps}"
    return Transfer(tuple(rows), tuple(optima), measured, made, (CAUTION,))


@dataclass(frozen=True)
class _Asked:
    """What is asked."""

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


class _Cell:
    """The losses of a recipe at a depth and a width."""

    def __init__(
        self,
        asked: _Asked,
        recipe: str,
        depth: str,
        width: str,
        kept: Kept,
        progress: Progress,
    ) -> None:
        self.asked, self.kept = asked, kept
        self.recipe, self.depth, self.width = recipe, depth, width
        self.rows: list[LossRow] = []
        tries = list(product(asked.multipliers, asked.rates))
        for place, (multiplier, rate) in enumerate(tries):
            progress(place / len(tries), f"{recipe}, L = {depth}, n = {width}, rate {rate:g}")
            self.rows.append(self.row(multiplier, rate))
        progress(1.0, f"{recipe}, L = {depth}, n = {width}")

    def row(self, multiplier: float, rate: float) -> LossRow:
        """The loss at a multiplier and a rate, computed or kept."""
        own = (self.recipe, self.depth, self.width)

        def make() -> Iterator[LossRow]:
            run = self.asked.run(self.recipe, multiplier, rate)
            found = self._limit(run) if self.width == OO else self._networks(run)
            yield LossRow(*own, multiplier, rate, *found)

        (row,) = self.kept.rows("|".join((*own, repr(multiplier), repr(rate))), make)
        assert isinstance(row, LossRow)
        return row

    def _limit(self, run: Training) -> tuple[Estimate | None, str]:
        table = depth_limit(run, (self.depth,), seed=self.asked.seed)
        try:
            return self._loss(run, table)
        except EvaluationError as error:  # an output that is read has no number
            return None, error.told

    def _loss(self, run: Training, table: DepthTable) -> tuple[Estimate | None, str]:
        steps = range(run.steps + 1 - self.asked.average, run.steps + 1)
        found = [loss_of(run, step, lambda name: table.at(name, self.depth)) for step in steps]
        loss = math.fsum(one.value for one in found) / len(found)
        error = math.fsum(one.stderr for one in found) / len(found)
        if not math.isfinite(loss):
            return None, "the loss leaves the range of floats"
        return Estimate(loss, error, max(one.method for one in found)), ""

    def _networks(self, run: Training) -> tuple[Estimate | None, str]:
        from tpcalc.finite.training.curve import losses_of

        asked, own = self.asked, at_depth(run, int(self.depth))
        found = []
        for k in range(asked.seeds):
            losses = losses_of(own, int(self.width), asked.seed + k, device=asked.device)
            if len(losses) <= run.steps:
                return None, f"a network is no longer finite at step {len(losses)}"
            found.append(math.fsum(losses[-asked.average :]) / asked.average)
        error = float(np.std(found, ddof=1) / len(found) ** 0.5) if len(found) > 1 else math.inf
        return Estimate(float(np.mean(found)), error, Method.PARTICLES), ""

    @property
    def best(self) -> Optimum | None:
        """The least loss."""
        known = [row for row in self.rows if row.loss is not None]
        if not known:
            return None
        best = min(known, key=_loss)
        same = [row for row in self.rows if row.multiplier == best.multiplier]  # by rising rates
        place = same.index(best)
        low = next((r.rate for r in reversed(same[:place]) if _worse(r, best)), None)
        high = next((r.rate for r in same[place + 1 :] if _worse(r, best)), None)
        made = Optimum(
            self.recipe, self.depth, self.width, best.multiplier, best.rate, low, high,
            self._known(best), None, "grid",
        )  # fmt: skip
        exact = self._known(best).method in (Method.EXACT, Method.QUADRATURE)
        return self._minimised(made) if exact and low and high else made

    @staticmethod
    def _known(row: LossRow) -> Estimate:
        assert row.loss is not None
        return row.loss

    def _minimised(self, grid: Optimum) -> Optimum:
        """The least loss between the rates beside the best one that was tried."""
        from scipy.optimize import minimize_scalar

        assert grid.low and grid.high

        def loss(log: float) -> float:
            return _loss(self.row(grid.multiplier, math.exp(log)))

        # Bracketed: golden sections and parabolas find a least loss inside.
        bracket = math.log(grid.low), math.log(grid.rate), math.log(grid.high)
        found = minimize_scalar(loss, bracket=bracket, method="brent", options={"xtol": XTOL})
        rate = math.exp(float(found.x))
        least = self._known(self.row(grid.multiplier, rate))
        near = [loss(float(found.x) + h) for h in (-CLOSE, CLOSE)]
        bend = (sum(near) - 2 * least.value) / CLOSE**2
        # Where a loss is least is known up to the root of its own error.
        error = least.stderr + 4 * EPS * (abs(least.value) + max(near))
        off = rate * (XTOL + math.sqrt(2 * error / bend)) if bend > 0 else rate
        return replace(
            grid, rate=rate, low=rate - off, high=rate + off, loss=least, how="minimised"
        )


def _loss(row: LossRow) -> float:
    return math.inf if row.loss is None else row.loss.value


def _worse(row: LossRow, best: LossRow) -> bool:
    """Whether the loss of a row is known to be larger than the least: by two combined errors."""
    if row.loss is None:
        return True
    assert best.loss is not None
    off = math.hypot(row.loss.stderr, best.loss.stderr)
    return row.loss.value - best.loss.value > 2 * off


def _sloped(best: Optimum, before: Iterable[Optimum]) -> Optimum:
    """The optimum with the slope since the depth before."""
    own = [one for one in before if (one.recipe, one.width) == (best.recipe, best.width)]
    if not own or OO in (own[-1].depth, best.depth):
        return best
    step = math.log(int(best.depth) / int(own[-1].depth))
    return replace(best, slope=math.log(best.rate / own[-1].rate) / step) if step else best


def _multiplied(network: Architecture, factor: float) -> Architecture:
    if not hasattr(network, "multiplier"):
        raise UsageError(
            f"{network.words} has no number in front of its blocks that can be changed.",
            hint="Leave multipliers out; ResNet has one.",
        )
    own: Any = network
    found: Architecture = replace(own, multiplier=own.multiplier * exact(factor, what="multiplier"))
    return found


def _positive(values: Sequence[float], name: str, what: str) -> tuple[float, ...]:
    given = checks.sequence(values, name)
    found = tuple(float(not_negative(value, what, above=True)) for value in given)
    if not found:
        raise UsageError(f"no {what.removeprefix('a ')} is given.", hint="Give a list of them.")
    return found
