"""Networks trained from weights that depend on each other along the depth: accuracy, regularity."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from tpcalc.analyses.depth.at_depth import at_depth
from tpcalc.analyses.depth.critical import critical_powers
from tpcalc.analyses.depth.growth import own_law
from tpcalc.analyses.depth.kept import Kept
from tpcalc.analyses.depth.regularity import regularity
from tpcalc.catalog.architectures.resnet import ResNet
from tpcalc.catalog.training import Training
from tpcalc.catalog.values import exact
from tpcalc.data import images
from tpcalc.results import Estimate, Method, Samples, TrainedRow

__all__ = ["Heat", "heat_rows"]

Progress = Callable[[float, str], None]


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
    progress: Progress | None,
) -> tuple[TrainedRow, ...]:
    """Accuracies of all laws and powers, and what the weights are after training.

    Args:
        training: The run, of a network of L blocks; its data are replaced by digits.
        asked: What is trained.
        depth: L.
        width: n.
        seeds: Networks of each.
        seed: The first seed, and that of the digits.
        kept: Where numbers are kept.
        progress: Called with the fraction done and what is being done.
    """
    pictures = images("digits", train=asked.images, seed=seed)
    inputs = np.asarray(pictures.train, float) * pictures.dimension**-0.5
    targets = np.eye(pictures.classes)[pictures.train_labels]
    data = Samples(inputs.tolist(), targets.tolist(), pictures.origin)
    network = training.network
    assert isinstance(network, ResNet)
    rows, cells = [], list(product(asked.along, asked.alphas))
    for place, (law, alpha) in enumerate(cells):
        regime = critical_powers(own_law(network, law)).regime("outputs", Fraction(alpha))
        tries = []
        for k, rate in enumerate(asked.rates):
            words = f"{law}, alpha = {alpha}, rate {rate:g}"
            if progress is not None:
                progress((place + k / len(asked.rates)) / len(cells), words)
            key = "|".join(map(str, (law, alpha, depth, width, rate)))
            if key not in kept:
                own = replace(own_law(network, law), alpha=Fraction(alpha))
                run = training.replace(network=own, data=data, lr=exact(rate, what="rate"))
                numbers = [
                    _trained(at_depth(run, depth), width, seed + s, pictures) for s in range(seeds)
                ]
                kept.put(key, numbers)
            tries.append((rate, kept[key]))
        best = max(tries, key=lambda one: float(np.mean([own[0] for own in one[1]])))
        tested = len(pictures.test_labels)
        rows.append(_row(law, alpha, depth, width, regime, best, tries, tested))
    if progress is not None:
        progress(1.0, "trained networks")
    return tuple(rows)


def _trained(run: Training, width: int, seed: int, pictures: Any) -> list[Any]:
    """Accuracy, exponents of the weights along the depth, one of them."""
    from tpcalc.finite.training.curve import tested

    share, weights = tested(run, width, seed, pictures)
    if weights is None:
        return [0.0, None, None, []]
    found = regularity(weights, alphas=())
    path = weights[:, 0, 0] / max(float(np.abs(weights[:, 0, 0]).max()), 1e-300)
    return [
        share,
        [found.hurst.value, found.hurst.stderr],
        [found.smoothness.value, found.smoothness.stderr],
        list(map(float, path)),
    ]


def _row(
    law: str,
    alpha: str,
    depth: int,
    width: int,
    regime: str,
    best: tuple[float, Any],
    tries: list[tuple[float, Any]],
    tested: int,
) -> TrainedRow:
    rate, numbers = best
    shares = [own[0] for own in numbers]
    share = float(np.mean(shares))
    exponents = [
        None
        if numbers[0][k] is None
        else Estimate(numbers[0][k][0], numbers[0][k][1], Method.FINITE)
        for k in (1, 2)
    ]
    return TrainedRow(
        law,
        alpha,
        str(depth),
        str(width),
        regime,
        rate,
        Estimate(share, _error(shares, tested), Method.FINITE, samples=len(shares)),
        tuple((one, float(np.mean([own[0] for own in found]))) for one, found in tries),
        exponents[0],
        exponents[1],
        tuple(numbers[0][3]),
    )


def _error(shares: Sequence[float], tested: int) -> float:
    """The standard error of the mean of shares of the same images: of these, and of networks.

    The images are a sample, binomial of a share that is not 0 or 1 where all or none are named: one
    more is counted of either kind.
    """
    share = (float(np.mean(shares)) * tested + 1) / (tested + 2)
    networks = np.var(shares, ddof=1) / len(shares) if len(shares) > 1 else 0.0
    return math.sqrt(share * (1 - share) / tested + networks)
