"""``depth_experiment``: networks of many blocks along their depth, beside what was published."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np

from tpcalc import checks
from tpcalc.data import images
from tpcalc.doors.numbers import exact
from tpcalc.errors import EvaluationError, UsageError
from tpcalc.experiments.growth import GrowthRun, own_law, walks
from tpcalc.experiments.plans import DepthPlan, Growth, Heat, Shape
from tpcalc.experiments.records import SOME, digest_of, records, task_of
from tpcalc.experiments.transfer import OO, transfer
from tpcalc.finite.simulate import simulate
from tpcalc.names import layered
from tpcalc.networks.architectures.resnet import ResNet
from tpcalc.progress import Progress, part
from tpcalc.questions.depth.at_depth import at_depth
from tpcalc.questions.depth.check import critical_powers
from tpcalc.questions.depth.limit import depth_limit
from tpcalc.questions.depth.regularity import regularity
from tpcalc.results import (
    DepthExperiment,
    DepthGap,
    DepthTable,
    Estimate,
    Method,
    Profile,
    Samples,
    TrainedRow,
    Transfer,
)
from tpcalc.results.data import grouped
from tpcalc.results.images import Images
from tpcalc.results.tables import provenance
from tpcalc.tasks.kept import Kept
from tpcalc.tasks.task import Task
from tpcalc.training.parameterizations import lookup
from tpcalc.training.training import Training

Lacking = tuple[tuple[str, str], ...]  # what has no numbers, and why
Made = tuple[dict[str, tuple[Any, ...]], Lacking]  # fields of the answer


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
    own, nets = plan.file, plan.file.depths
    checks.whole(nets.seeds, "seeds", each=checks.PART * max(len(nets.widths), 1))
    digest = digest_of(plan.training, own.profile, nets.seeds, seed, own.start, own.trained)
    stages = [key for key in (*_STAGES, "transfer") if getattr(own, key) is not None]
    found: dict[str, Any] = {"profiles": (), "transfer": None}
    lacking: Lacking = ()
    for place, key in enumerate(stages):
        told, asked = part(progress, place, place + 1, len(stages)), getattr(own, key)
        if key == "transfer":
            found[key] = _compared(plan, seed, device, work, told)
            continue
        with Kept(work, f"{key}-{digest}", digest) as kept:
            made, missing = _STAGES[key](plan, asked, seed, kept, told)
        found |= made
        lacking += missing
    settings = {"depths": ", ".join(plan.depths), "recipes": ", ".join(nets.recipes)}
    return DepthExperiment(
        own.name,
        own.title,
        own.source,
        references=plan.references,
        lacking=lacking,
        provenance=provenance(digest, seed, settings, time.perf_counter() - started),
        notes=own.notes,
        **found,
    )


def _compared(
    plan: DepthPlan, seed: int, device: str, work: str | Path | None, told: Progress
) -> Transfer:
    """The best learning rates of all recipes, depths and widths."""
    nets, asked = plan.file.depths, plan.file.transfer
    assert asked is not None
    return transfer(
        plan.training,
        [depth for depth in plan.depths if depth != OO or not nets.widths],
        recipes=nets.recipes,
        widths=nets.widths,
        seeds=nets.seeds,
        seed=seed,
        device=device,
        work=work,
        progress=told,
        **asked.model_dump(),
    )


def _grown(plan: DepthPlan, asked: Growth, seed: int, kept: Kept, progress: Progress) -> Made:
    """What becomes of the start."""
    network, sizes = plan.training.network, tuple(int(d) for d in plan.depths if d != OO)
    if not isinstance(network, ResNet) or not sizes:
        raise UsageError(
            f"the start of {network.words} at L = {', '.join(plan.depths)} is not followed.",
            hint="A residual network, and numbers of blocks.",
        )
    lacking = [(f"L = {OO}", "numbers of blocks are compared")] if OO in plan.depths else []
    nets = plan.file.depths
    own = GrowthRun(network, asked, sizes, nets.widths, nets.seeds, seed)
    found: dict[str, tuple[Any, ...]] = {}
    if asked.alphas:
        found = {"critical": own.critical, "ratios": own.rows(kept, progress)}
        found["agreements"] = own.agreements(found["ratios"])
    if asked.walks:
        found["paths"] = walks(asked, max(sizes), seed)
    return found, (*lacking, *own.lacking)


def _heated(plan: DepthPlan, asked: Heat, seed: int, kept: Kept, progress: Progress) -> Made:
    """Accuracies of all laws and powers, and what the weights are after training."""
    nets, sizes = plan.file.depths, [int(d) for d in plan.depths if d != OO]
    if not isinstance(plan.training.network, ResNet) or not sizes or not nets.widths:
        raise UsageError(
            "networks are trained at a number of blocks and a width.",
            hint="Give [depths] blocks and widths, of a resnet.",
        )
    pictures = images("digits", train=asked.images, seed=seed)
    inputs = np.asarray(pictures.train, float) * pictures.dimension**-0.5
    targets = np.eye(pictures.classes)[pictures.train_labels]
    data = Samples(inputs.tolist(), targets.tolist(), pictures.origin)
    depth, width, seeds = max(sizes), nets.widths[0], range(seed, seed + nets.seeds)
    own = _Nets(plan.training.replace(data=data), depth, width, seeds, pictures)
    tasks = [
        Task(
            f"{law}, alpha = {alpha}, rate {rate:g}",
            (_trained, law, alpha, rate),
            "|".join((law, alpha, str(depth), str(width), str(rate))),
        )
        for law, alpha, rate in product(asked.along, asked.alphas, asked.rates)
    ]
    found = [row for (row,) in records(tasks, kept, TrainedRow, shared=own, progress=progress)]
    rows, count = [], len(asked.rates)
    for start in range(0, len(found), count):
        tries = found[start : start + count]
        best = max(tries, key=lambda one: one.accuracy.value)
        rates = tuple((one.rate, one.accuracy.value) for one in tries)
        rows.append(replace(best, rates=rates))
    return {"trained": tuple(rows)}, ()


@dataclass(frozen=True)
class _Nets:
    """Which networks are trained."""

    training: Training
    depth: int
    width: int
    seeds: range
    pictures: Images


def _trained(
    nets: _Nets, law: str, alpha: str, rate: float, progress: Progress
) -> Iterator[TrainedRow]:
    """Accuracy of networks; exponents of the weights of the first one along the depth."""
    from tpcalc.finite.training.curve import tested

    network = nets.training.network
    assert isinstance(network, ResNet)
    network = own_law(network, law)
    regime = critical_powers(network).regime("outputs", Fraction(alpha))
    own = replace(network, alpha=Fraction(alpha))
    run = at_depth(nets.training.replace(network=own, lr=exact(rate, what="rate")), nets.depth)
    shares, first = [], None
    for place, seed in enumerate(nets.seeds):
        progress(place / len(nets.seeds), f"network {place + 1} of {len(nets.seeds)}")
        share, weights = tested(run, nets.width, seed, nets.pictures)
        shares.append(0.0 if weights is None else share)
        first = weights if place == 0 else first
    off = _error(shares, len(nets.pictures.test_labels))
    value = Estimate(float(np.mean(shares)), off, Method.FINITE, samples=len(shares))
    setting = law, alpha, str(nets.depth), str(nets.width), regime, rate
    row = TrainedRow(*setting, value, (), None, None, ())
    if first is not None:
        found, one = regularity(first, alphas=()), first[:, 0, 0]
        path = tuple(map(float, one / max(float(np.abs(one).max()), 1e-300)))
        row = replace(row, hurst=found.hurst, smoothness=found.smoothness, path=path)
    yield row


def _error(shares: Sequence[float], tested: int) -> float:
    """The standard error of the mean of shares of the same images: of these, and of networks.

    The images are a sample, binomial of a share that is not 0 or 1 where all or none are named: one
    more is counted of either kind.
    """
    share = (float(np.mean(shares)) * tested + 1) / (tested + 2)
    networks = np.var(shares, ddof=1) / len(shares) if len(shares) > 1 else 0.0
    return math.sqrt(share * (1 - share) / tested + networks)


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

    def rows(self, kept: Kept, progress: Progress) -> Made:
        """The numbers, and what has none."""
        plan, nets = self.plan, self.plan.file.depths
        widths = (OO, *map(str, nets.widths))
        cells = [(r, d, w) for r, d, w in product(nets.recipes, plan.depths, widths)
                 if w == OO or d != OO]  # fmt: skip
        named = (("{}, L = {}, n = {}".format(*cell), *cell) for cell in cells)
        tasks = [task_of(_Profiles.cell, *own) for own in named]
        found: list[Profile] = []
        lacking = []
        made = records(tasks, kept, Profile, DepthGap, shared=self, progress=progress, count=SOME)
        for task, rows in zip(tasks, made, strict=True):
            if rows and isinstance(rows[0], DepthGap):
                lacking.append((task.text, rows[0].reason))
            else:
                found += rows + (_slopes(rows) if self.shape.what == "distance" else [])
        return {"profiles": tuple(found)}, tuple(lacking)

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
        table = simulate(
            own.program, [int(width)], self.plan.file.depths.seeds, seed=self.seed, outputs=names
        )
        squares = {r.name: np.array(r.values) for r in table.rows if r.statistic == "second_moment"}
        for step, (place, layer) in product(shape.steps, layers.items()):
            found = [squares[layered("x", layer, step, i)] for i in range(batch)]
            roots = np.sqrt(np.mean(found, axis=0))
            error = float(np.std(roots, ddof=1) / len(roots) ** 0.5) if len(roots) > 1 else math.inf
            yield step, place, Estimate(float(roots.mean()), error, Method.PARTICLES)


def _profiled(plan: DepthPlan, asked: Shape, seed: int, kept: Kept, progress: Progress) -> Made:
    return _Profiles(plan, asked, seed).rows(kept, progress)


# What is asked of networks by its key in a file: of a plan, the key and a place what was made.
_STAGES: dict[str, Callable[..., Made]] = {
    "profile": _profiled,
    "start": _grown,
    "trained": _heated,
}


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
