"""Networks trained from weights that depend on each other along the depth: accuracy, regularity."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product

import numpy as np

from tpcalc.data import images
from tpcalc.doors.numbers import exact
from tpcalc.experiments.growth import own_law
from tpcalc.experiments.parts import Heat
from tpcalc.experiments.records import records
from tpcalc.networks.architectures.resnet import ResNet
from tpcalc.progress import Progress
from tpcalc.questions.depth.at_depth import at_depth
from tpcalc.questions.depth.critical import critical_powers
from tpcalc.questions.depth.regularity import regularity
from tpcalc.results import Estimate, Method, Samples, TrainedRow
from tpcalc.results.images import Images
from tpcalc.tasks.kept import Kept
from tpcalc.tasks.task import Task
from tpcalc.training.training import Training


def heat_rows(
    training: Training,
    asked: Heat,
    depth: int,
    width: int,
    seeds: int,
    seed: int,
    kept: Kept,
    progress: Progress,
) -> tuple[TrainedRow, ...]:
    """Accuracies of all laws and powers, and what the weights are after training."""
    pictures = images("digits", train=asked.images, seed=seed)
    inputs = np.asarray(pictures.train, float) * pictures.dimension**-0.5
    targets = np.eye(pictures.classes)[pictures.train_labels]
    data = Samples(inputs.tolist(), targets.tolist(), pictures.origin)
    own = _Nets(training.replace(data=data), depth, width, range(seed, seed + seeds), pictures)
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
    return tuple(rows)


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
