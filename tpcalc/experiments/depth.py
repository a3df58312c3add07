"""``depth_experiment``: networks of many blocks along their depth, beside what was published."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np

from tpcalc import checks
from tpcalc.errors import EvaluationError, UsageError
from tpcalc.experiments.growth import GrowthRun, walks
from tpcalc.experiments.heat import heat_rows
from tpcalc.experiments.parts import Growth, Heat, Rates, Shape
from tpcalc.experiments.rates import OO
from tpcalc.experiments.records import SOME, digest_of, records
from tpcalc.experiments.transfer import transfer
from tpcalc.finite.simulate import simulate
from tpcalc.names import layered
from tpcalc.networks.architectures.resnet import ResNet
from tpcalc.progress import Progress, part
from tpcalc.questions.depth.at_depth import at_depth
from tpcalc.questions.depth.limit import depth_limit
from tpcalc.results import (
    DepthExperiment,
    DepthGap,
    DepthTable,
    Estimate,
    Method,
    Profile,
    Reference,
    TrainedRow,
)
from tpcalc.results.data import grouped
from tpcalc.results.tables import provenance
from tpcalc.tasks.kept import Kept
from tpcalc.tasks.task import Task
from tpcalc.training.parameterizations import lookup
from tpcalc.training.training import Training


@dataclass(frozen=True, slots=True)
class DepthPlan:
    """A study of networks of many blocks."""

    name: str
    title: str  # what it is about
    source: str  # where it was published
    training: Training  # the run, of a network of L blocks
    recipes: tuple[str, ...]  # parameterizations with powers of the depth
    depths: tuple[str, ...]  # numbers of blocks; "oo" at infinite width
    widths: tuple[int, ...] = ()  # widths of networks beside the limit
    seeds: int = 4  # networks of each width
    shape: Shape | None = None  # what is followed along the depth
    rates: Rates | None = None  # which learning rates are compared
    references: tuple[Reference, ...] = ()  # reference numbers
    notes: tuple[str, ...] = ()  # what a reader should know besides
    growth: Growth | None = None  # what is asked of networks at the start
    # what is trained from weights that depend on each other along the depth
    heat: Heat | None = None


def depth_experiment(
    plan: DepthPlan,
    *,
    seed: int = 0,
    device: str = "cpu",
    work: str | Path | None = None,
    progress: Progress | None = None,
) -> DepthExperiment:
    """Carry a study of networks of many blocks out."""
    started = time.perf_counter()
    checks.whole(plan.seeds, "seeds", each=checks.PART * max(len(plan.widths), 1))
    asked_for = (plan.shape, plan.rates, plan.growth, plan.heat)
    parts = sum(one is not None for one in asked_for)
    stages = (part(progress, k, k + 1, parts) for k in range(parts))
    digest = digest_of(plan.training, plan.shape, plan.seeds, seed, plan.growth, plan.heat)
    profiles: tuple[Profile, ...] = ()
    lacking: tuple[tuple[str, str], ...] = ()
    if plan.shape is not None:
        with Kept(work, f"profiles-{digest}", digest) as kept:
            profiles, lacking = _Profiles(plan, plan.shape, seed).rows(kept, next(stages))
    found = None
    if plan.rates is not None:
        found = transfer(
            plan.training,
            [depth for depth in plan.depths if depth != OO or not plan.widths],
            plan.rates.rates,
            recipes=plan.recipes,
            multipliers=plan.rates.multipliers,
            widths=plan.widths,
            seeds=plan.seeds,
            average=plan.rates.average,
            seed=seed,
            device=device,
            work=work,
            progress=next(stages),
        )
    ratios: dict[str, tuple[Any, ...]] = {}
    if plan.growth is not None:
        with Kept(work, f"start-{digest}", digest) as kept:
            ratios, missing = _grown(plan, plan.growth, seed, kept, next(stages))
        lacking += missing
    if plan.heat is not None:
        with Kept(work, f"trained-{digest}", digest) as kept:
            ratios["trained"] = _heated(plan, plan.heat, seed, kept, next(stages))
    asked = {"depths": ", ".join(plan.depths), "recipes": ", ".join(plan.recipes)}
    made_of = provenance(digest, seed, asked, time.perf_counter() - started)
    return DepthExperiment(
        plan.name,
        plan.title,
        plan.source,
        profiles,
        found,
        plan.references,
        lacking,
        made_of,
        plan.notes,
        **ratios,
    )


def _grown(
    plan: DepthPlan, asked: Growth, seed: int, kept: Kept, progress: Progress
) -> tuple[dict[str, tuple[Any, ...]], tuple[tuple[str, str], ...]]:
    """What becomes of the start, by field of the answer, and what has no numbers."""
    network, sizes = plan.training.network, tuple(int(d) for d in plan.depths if d != OO)
    if not isinstance(network, ResNet) or not sizes:
        raise UsageError(
            f"the start of {network.words} at L = {', '.join(plan.depths)} is not followed.",
            hint="A residual network, and numbers of blocks.",
        )
    lacking = [(f"L = {OO}", "numbers of blocks are compared")] if OO in plan.depths else []
    own = GrowthRun(network, asked, sizes, plan.widths, plan.seeds, seed)
    found: dict[str, tuple[Any, ...]] = {}
    if asked.alphas:
        found = {"critical": own.critical, "ratios": own.rows(kept, progress)}
        found["agreements"] = own.agreements(found["ratios"])
    if asked.walks:
        found["paths"] = walks(asked, max(sizes), seed)
    return found, (*lacking, *own.lacking)


def _heated(
    plan: DepthPlan, asked: Heat, seed: int, kept: Kept, progress: Progress
) -> tuple[TrainedRow, ...]:
    sizes = [int(d) for d in plan.depths if d != OO]
    if not isinstance(plan.training.network, ResNet) or not sizes or not plan.widths:
        raise UsageError(
            "networks are trained at a number of blocks and a width.",
            hint="Give [depths] blocks and widths, of a resnet.",
        )
    width, seeds = plan.widths[0], plan.seeds
    return heat_rows(plan.training, asked, max(sizes), width, seeds, seed, kept, progress)


@dataclass(frozen=True)
class _Profiles:
    """The numbers along the depth of all recipes, depths and widths."""

    plan: DepthPlan
    shape: Shape
    seed: int

    def __post_init__(self) -> None:
        plan, shape = self.plan, self.shape
        hint = "Raise the steps of the training."
        checks.whole(max(shape.steps), "a step", most=plan.training.steps, hint=hint)
        if shape.what == "distance" and shape.start + max(shape.places) > 1:
            raise UsageError(
                f"distances from {shape.start} leave the network at {max(shape.places)}.",
                hint="Places and the start add up to 1 at most.",
            )

    def rows(
        self, kept: Kept, progress: Progress
    ) -> tuple[tuple[Profile, ...], tuple[tuple[str, str], ...]]:
        """The numbers, and what has none."""
        plan, widths = self.plan, (OO, *map(str, self.plan.widths))
        cells = [(r, d, w) for r, d, w in product(plan.recipes, plan.depths, widths)
                 if w == OO or d != OO]  # fmt: skip
        tasks = [
            Task("{}, L = {}, n = {}".format(*cell), (_Profiles.cell, *cell), "|".join(cell))
            for cell in cells
        ]
        found: list[Profile] = []
        lacking = []
        made = records(tasks, kept, Profile, DepthGap, shared=self, progress=progress, count=SOME)
        for task, rows in zip(tasks, made, strict=True):
            if rows and isinstance(rows[0], DepthGap):
                lacking.append((task.text, rows[0].reason))
            else:
                found += rows + (_slopes(rows) if self.shape.what == "distance" else [])
        return tuple(found), tuple(lacking)

    def cell(
        self, recipe: str, depth: str, width: str, progress: Progress
    ) -> list[Profile] | list[DepthGap]:
        """The numbers of a recipe at a depth and a width."""
        run = self.plan.training.replace(parameterization=lookup(recipe), lr_depth=None)
        try:
            made = self._limit(run, depth) if width == OO else self._networks(run, depth, width)
            return [Profile(recipe, depth, width, t, self.shape.what, p, own) for t, p, own in made]
        except EvaluationError as error:
            return [DepthGap(depth, error.told)]

    def _limit(self, run: Training, depth: str) -> Iterator[tuple[int, float, Estimate]]:
        shape, batch = self.shape, run.batch
        places = shape.places
        if shape.what == "distance":
            places = tuple(shape.start + one for one in (0.0, *places))
        if depth != OO:
            _check_places(places, int(depth))
        table = depth_limit(run, (depth,), places=places, seed=self.seed)
        for step in shape.steps:
            own = range(step * batch, (step + 1) * batch)
            for index, place in enumerate(shape.places):
                yield step, place, self._root(table, depth, index, own)

    def _root(self, table: DepthTable, depth: str, index: int, own: Sequence[int]) -> Estimate:
        """The root of the mean square over the samples of a step."""
        size = self.shape.what == "size"
        array = table.along("features" if size else "distances", depth)
        place = (index,) if size else (0, index + 1)
        cells = [(*place, i, i) for i in own]
        square = math.fsum(array.values[cell] for cell in cells) / len(cells)
        error = math.fsum(array.errors[cell] for cell in cells) / len(cells)
        value = math.sqrt(max(square, 0.0))
        # The root of what is 0 but for its error is known up to the root of that.
        off = error / (2 * value) if value * value > error else math.sqrt(error)
        return Estimate(value, off, array.method)

    def _networks(
        self, run: Training, depth: str, width: str
    ) -> Iterator[tuple[int, float, Estimate]]:
        shape, batch, blocks = self.shape, run.batch, int(depth)
        if shape.what != "size":
            raise EvaluationError("distances are those of infinite width; give no widths.")
        _check_places(shape.places, blocks)
        layers = {place: round(place * blocks) for place in shape.places}
        last = max(shape.steps)
        own = at_depth(run, blocks).replace(watch=("x",), steps=last)
        names = [
            layered("x", layer, step, i)
            for step in shape.steps
            for layer in layers.values()
            for i in range(batch)
        ]
        table = simulate(own.program, [int(width)], self.plan.seeds, seed=self.seed, outputs=names)
        squares = {r.name: np.array(r.values) for r in table.rows if r.statistic == "second_moment"}
        for step, (place, layer) in product(shape.steps, layers.items()):
            found = [squares[layered("x", layer, step, i)] for i in range(batch)]
            roots = np.sqrt(np.mean(found, axis=0))
            error = float(np.std(roots, ddof=1) / len(roots) ** 0.5) if len(roots) > 1 else math.inf
            yield step, place, Estimate(float(roots.mean()), error, Method.PARTICLES)


def _check_places(places: Sequence[float], depth: int) -> None:
    """That places are layers, so that numbers of several depths are of the same places."""
    for place in places:
        if abs(place * depth - round(place * depth)) > 1e-9:
            raise EvaluationError(
                f"{place} of {depth} blocks is no layer.",
                hint="Take places that all numbers of blocks share.",
            )


def _slopes(rows: Sequence[Profile]) -> list[Profile]:
    """Local slopes of distances, at the geometric mean of two places."""
    found = []
    for step, own in grouped(rows, lambda row: row.step).items():
        for one, two in pairwise(sorted(own, key=lambda row: row.place)):
            if min(one.value.value, two.value.value) <= 0:
                continue
            span = math.log(two.place / one.place)
            slope = math.log(two.value.value / one.value.value) / span
            error = sum(r.value.stderr / r.value.value for r in (one, two)) / span
            method = max(one.value.method, two.value.method)
            middle = math.sqrt(one.place * two.place)
            value = Estimate(slope, error, method)
            found.append(Profile(one.recipe, one.depth, one.width, step, "slope", middle, value))
    return found
