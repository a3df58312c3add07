"""``transfer``: the best learning rate against the width and the number of blocks.

Each loss is a task that depends on nothing but what is asked; where losses are exact, the search
for the least between the rates that were tried is a task, too.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from tpcalc import checks
from tpcalc.doors.numbers import exact
from tpcalc.engine.device.devices import known_device, load_torch
from tpcalc.errors import EvaluationError, LimitError, ScaleError, UsageError
from tpcalc.evaluate.limit import limit
from tpcalc.experiments.records import SOME, digest_of, records, task_of
from tpcalc.networks.network import Architecture
from tpcalc.progress import Progress, part
from tpcalc.questions.depth.at_depth import at_depth
from tpcalc.questions.depth.limit import depth_limit, depth_text
from tpcalc.questions.losses import loss_of
from tpcalc.results import Estimate, LossRow, Method, Optimum, Status, Transfer
from tpcalc.results.tables import provenance
from tpcalc.tasks.kept import Kept
from tpcalc.tasks.task import Task
from tpcalc.training.loss import no_samples
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
        return task_of(_loss_at, text, recipe, depth, width, multiplier, rate)

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


RATES = tuple(2.0**k for k in range(-10, 3))
DEPTHS = ("8", "16", "32", "64")
CAUTION = (
    "That a limit exists, or that features are learned, does not imply that the best learning "
    "rate stays where it is as the width or the number of blocks grows: this table says where it "
    "is for this run, and no more."
)


def transfer(
    training: Training,
    depths: Sequence[int | str] = (),
    rates: Sequence[float] = RATES,
    *,
    recipes: Iterable[str] = (),
    multipliers: Sequence[float] = (1.0,),
    widths: Sequence[float | str] = (OO,),
    seeds: int = 4,
    average: int = 1,
    seed: int = 0,
    device: str = "cpu",
    work: str | Path | None = None,
    progress: Progress | None = None,
) -> Transfer:
    """The loss over learning rates, widths and numbers of blocks, and where it is least.

    At infinite width losses are those of ``tp.limit``, of networks of L blocks those of
    ``tp.limit(..., depths=)``; where they are exact, the least is found between the rates. At a
    finite width networks are trained with their matrices formed, all rates and widths from the
    same seeds.

    Args:
        training: A run with data; its learning rate and multiplier are factors of those that are
            tried.
        depths: Of a network of L blocks numbers of them (8, 16, 32, 64 by default), ``"oo"`` at
            infinite width alone.
        rates: Learning rates, at the base depth of a recipe.
        recipes: Parameterizations that are compared, ``"mup"``, ``"depth-mup"``; without any that
            of the run.
        multipliers: Numbers in front of a block, at the base depth.
        widths: Widths of networks, and ``"oo"``: infinite width.
        seeds: Networks behind each loss, of a finite width.
        average: The losses of how many last steps are averaged.
        seed: Of the first network, and of samples.
        device: Where torch trains networks.
        work: A folder where losses are kept; the same call goes on from them.
        progress: Called with the fraction done and what is being done.

    Returns:
        All losses, and for each recipe, depth and width the best rate, with the slopes of its
        logarithm. A loss that infinite width does not have says why.

    Raises:
        UsageError: No data; widths, depths, rates or multipliers that are none; depths of a network
            that has no blocks, multipliers of one that has none; a limit in the depth at a finite
            width.
        StudyError: A folder that cannot be used.
        MissingBackend: A finite width, and torch is not installed.

    Source: Yang, Hu and others, Tensor Programs V, Figure 1; Yang, Yu, Zhu, Hayou, Tensor Programs
        VI, sections 5 and 10.2.

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
        >>> linear = tp.Training(tp.MLP(1, "identity"), "mup", data)
        >>> best = transfer(linear, rates=(0.25, 0.5, 1)).best("mup")
        >>> best.width, round(best.rate, 6), best.loss.method.value
        ('oo', 0.5, 'exact')
    """
    started = time.perf_counter()
    checks.called(progress, "progress", 0.0, "")
    known_device(device)
    checks.of_type(training, Training, "training", hint="Give tp.Training(network, 'mup', data).")
    if training.data is None:
        raise no_samples(None)
    named = checks.names(recipes, "recipes")
    asked = Asked(
        training,
        named or (training.parameterization.text,),
        _depths(training, depths),
        tuple(sorted(_positive(rates, "rates", "a learning rate"))),
        _positive(multipliers, "multipliers", "a multiplier"),
        _widths(widths),
        checks.whole(seeds, "seeds", least=1, each=checks.PART),
        checks.whole(average, "average", least=1, most=training.steps + 1),
        checks.seed(seed),
        device,
        bool(named),
    )
    if asked.widths != (OO,):
        if OO in asked.depths:
            raise UsageError(
                "networks of a finite width have a number of blocks.",
                hint="Leave 'oo' out of the depths, or the widths.",
            )
        load_torch()
    for recipe, multiplier in product(asked.recipes, asked.multipliers):
        asked.run(recipe, multiplier, asked.rates[0])  # what cannot be asked is said at once
    digest = digest_of(training, average, seeds, seed, device, asked.named)
    with Kept(work, f"transfer-{digest}", digest) as kept:
        rows, optima = _found(asked, kept, progress)
    last = training.steps
    steps = f"step {last}" if average == 1 else f"steps {last + 1 - average}..{last}"
    asked_for = {"depths": asked.depths, "widths": asked.widths, "recipes": asked.recipes}
    settings = {
        name: ", ".join(filter(None, words)) for name, words in asked_for.items() if any(words)
    }
    source = provenance(digest, seed, settings, time.perf_counter() - started)
    measured = f"the mean {training.loss.name} loss of the batch, {steps}"
    return Transfer(rows, optima, measured, source, (CAUTION,))


def _found(
    asked: Asked, kept: Kept, progress: Progress | None
) -> tuple[tuple[LossRow, ...], tuple[Optimum, ...]]:
    """All losses, and the least of each recipe, width and depth."""
    cells = list(product(asked.recipes, asked.widths, asked.depths))
    tries = list(product(asked.multipliers, asked.rates))
    tasks = [asked.task(*cell, *one) for cell, one in product(cells, tries)]
    first, whole = len(tasks), len(tasks) + len(cells)
    told = part(progress, 0, first, whole), part(progress, first, whole, whole)
    made = records(tasks, kept, LossRow, shared=asked, progress=told[0], count=SOME)
    rows = tuple(row for (row,) in made)
    groups = [rows[k : k + len(tries)] for k in range(0, first, len(tries))]
    grids = [best for group in groups if (best := best_of(group)) is not None]
    between = list(filter(searched, grids))
    made = records(list(map(search, between)), kept, Optimum, shared=asked, progress=told[1])
    least = {grid: best for grid, (best,) in zip(between, made, strict=True)}
    optima: list[Optimum] = []
    for best in grids:
        optima.append(_sloped(least.get(best, best), optima))
    told[1](1.0, "best rates")
    return rows, tuple(optima)


def _sloped(best: Optimum, before: Iterable[Optimum]) -> Optimum:
    """The optimum with the slopes since the depth and the width before."""
    for one in before:
        if one.recipe == best.recipe and one.width == best.width:
            best = replace(best, slope=_slope(one, best, one.depth, best.depth))
        if one.recipe == best.recipe and one.depth == best.depth:
            best = replace(best, width_slope=_slope(one, best, one.width, best.width))
    return best


def _slope(one: Optimum, two: Optimum, start: str, end: str) -> float | None:
    if not (start.isdigit() and end.isdigit()) or start == end:
        return None
    return math.log(two.rate / one.rate) / math.log(int(end) / int(start))


def _depths(training: Training, depths: Sequence[int | str]) -> tuple[str, ...]:
    given = checks.sequence(depths, "depths")
    if training.network.smallest.repeats:
        return tuple(dict.fromkeys(map(depth_text, given))) or DEPTHS
    if given:
        raise UsageError(
            f"the depth of {training.network.words} is a number; depths are compared of L blocks.",
            hint="Give widths, or a network such as tp.ResNet('L', ...).",
        )
    return ("",)


def _widths(widths: Sequence[float | str]) -> tuple[str, ...]:
    given = checks.sequence(widths, "widths") or (OO,)
    plain = [int(n) if isinstance(n, float) and n.is_integer() else n for n in given]
    found = [OO if n == OO else str(checks.whole(n, "a width", least=1)) for n in plain]
    if len(set(found)) < len(found):
        raise UsageError(f"widths are {', '.join(found)}; each is given once.")
    return tuple(found)


def _positive(values: Sequence[float], name: str, what: str) -> tuple[float, ...]:
    given = checks.sequence(values, name)
    found = tuple(float(checks.real(value, what, above=0)) for value in given)
    if not found:
        raise UsageError(f"no {what.removeprefix('a ')} is given.", hint="Give a list of them.")
    return found
