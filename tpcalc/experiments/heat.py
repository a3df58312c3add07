"""Networks trained from weights that depend on each other along the depth: accuracy, regularity."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from tpcalc.data import images
from tpcalc.experiments.growth import own_law
from tpcalc.experiments.kept import Kept
from tpcalc.networks.architectures.resnet import ResNet
from tpcalc.progress import Progress
from tpcalc.questions.depth.at_depth import at_depth
from tpcalc.questions.depth.critical import critical_powers
from tpcalc.questions.depth.regularity import regularity
from tpcalc.registry.values import exact
from tpcalc.results import Estimate, Method, Samples, TrainedRow
from tpcalc.training.training import Training


@dataclass(frozen=True, slots=True)
class Heat:
    """What is trained.

    Args:
        along: Laws of the weights along the depth at the start.
        alphas: Powers of 1/L in front of a block.
        rates: Learning rates, of which the best one is taken.
        images: How many training images of the digits; all the rest are tested.
    """

    along: tuple[str, ...]
    alphas: tuple[str, ...]
    rates: tuple[float, ...]
    images: int = 1000


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
    network = training.network
    assert isinstance(network, ResNet)
    rows, cells = [], list(product(asked.along, asked.alphas))
    for place, (law, alpha) in enumerate(cells):
        regime = critical_powers(own_law(network, law)).regime("outputs", Fraction(alpha))
        own = replace(own_law(network, law), alpha=Fraction(alpha))
        tries: list[TrainedRow] = []
        for k, rate in enumerate(asked.rates):
            words = f"{law}, alpha = {alpha}, rate {rate:g}"
            progress((place + k / len(asked.rates)) / len(cells), words)
            run = training.replace(network=own, data=data, lr=exact(rate, what="rate"))
            name = law, alpha, str(depth), str(width)
            networks = range(seed, seed + seeds)
            make = partial(_trained, (*name, regime, rate), run, networks, pictures)
            tries += kept.rows("|".join((*name, str(rate))), make)
        best = max(tries, key=lambda one: one.accuracy.value)
        rates = tuple((one.rate, one.accuracy.value) for one in tries)
        rows.append(replace(best, rates=rates))
    progress(1.0, "trained networks")
    return tuple(rows)


def _trained(
    setting: tuple[str, str, str, str, str, float], run: Training, networks: range, pictures: Any
) -> Iterator[TrainedRow]:
    """Accuracy of networks; exponents of the weights of the first one along the depth."""
    from tpcalc.finite.training.curve import tested

    _, _, depth, width, *_ = setting
    shares, first = [], None
    for seed in networks:
        share, weights = tested(at_depth(run, int(depth)), int(width), seed, pictures)
        shares.append(0.0 if weights is None else share)
        first = weights if seed == networks[0] else first
    off = _error(shares, len(pictures.test_labels))
    value = Estimate(float(np.mean(shares)), off, Method.FINITE, samples=len(shares))
    if first is None:
        yield TrainedRow(*setting, value, (), None, None, ())
        return
    found = regularity(first, alphas=())
    path = first[:, 0, 0] / max(float(np.abs(first[:, 0, 0]).max()), 1e-300)
    yield TrainedRow(*setting, value, (), found.hurst, found.smoothness, tuple(map(float, path)))


def _error(shares: Sequence[float], tested: int) -> float:
    """The standard error of the mean of shares of the same images: of these, and of networks.

    The images are a sample, binomial of a share that is not 0 or 1 where all or none are named: one
    more is counted of either kind.
    """
    share = (float(np.mean(shares)) * tested + 1) / (tested + 2)
    networks = np.var(shares, ddof=1) / len(shares) if len(shares) > 1 else 0.0
    return math.sqrt(share * (1 - share) / tested + networks)
