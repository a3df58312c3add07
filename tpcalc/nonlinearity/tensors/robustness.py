"""Errors of a classifier on inputs that are moved toward other inputs' place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from typing import Any

import numpy as np

from tpcalc import checks
from tpcalc.engine.device.devices import load_torch
from tpcalc.errors import UsageError
from tpcalc.nonlinearity.tensors.batch_moments import batch_moments
from tpcalc.nonlinearity.tensors.directions import Directions
from tpcalc.nonlinearity.tensors.shard import Shard, numbers, shard_of
from tpcalc.nonlinearity.tensors.uncertainty import estimate, mean_of, median
from tpcalc.results import Estimate
from tpcalc.shown import Rows

Tensor = Any
Error = Callable[[Tensor, Tensor], Tensor]


def class_error(outputs: Tensor, labels: Tensor) -> Tensor:
    """1 for each input whose largest output is not that of its class, else 0.

    Example:
        >>> torch = load_torch()
        >>> class_error(torch.tensor([[1.0, 2.0], [3.0, 0.0]]), torch.tensor([1, 1])).tolist()
        [0.0, 1.0]
    """
    return (outputs.argmax(1) != labels).to(outputs.dtype)


def noise_errors(
    f: Callable[[Any], Any],
    x: Any,
    labels: Any,
    weights: Sequence[float],
    *,
    error: Error = class_error,
    batch: int | None = None,
    seed: int = 0,
) -> tuple[Estimate, ...]:
    """NCE: the mean error of f(w u + (1 - w) x) with u ~ N(0, Cov_x), for each w.

    It rises where w reaches about 1 / NLC.

    Args:
        f: A module or another function from a batch of inputs to one of outputs.
        x: The inputs.
        labels: A tensor with a label for each input.
        weights: The w.
        error: Takes outputs and labels of a batch and gives an error for each input.
        batch: Inputs of a batch; None: 250, or all if there are fewer.
        seed: The seed.

    Returns:
        An error for each w, with its standard error.

    Raises:
        UsageError: Not one label for each input, or inputs that are too few or all equal.

    Source: Schoenherr, The nonlinearity coefficient, section 4.4.8.

    Example:
        >>> torch = load_torch()
        >>> x = torch.tensor([[-2.0, 0.0], [2.0, 0.0], [-1.0, 0.0], [1.0, 0.0]])
        >>> flip = lambda x: torch.stack([-x[:, 0], x[:, 0]], 1)
        >>> [found.value for found in noise_errors(flip, x, [0, 1, 0, 1], [0.0, 1e-9])]
        [0.0, 0.0]
    """
    shard, known = _labelled(x, labels, batch, seed)
    directions = Directions(shard)
    found = []
    with batch_moments(f), load_torch().no_grad():
        for weight in weights:
            terms = []
            for number, part in enumerate(shard.batches()):
                u = directions.gaussian(shard.stream("noise", number), len(part))
                own = known[number * shard.batch : (number + 1) * shard.batch]
                terms.append(numbers(error(f(weight * u + (1 - weight) * part), own)))
            mean = mean_of(np.concatenate(terms))
            found.append(estimate(mean.value, mean.stderr, mean.samples, seed))
    return Rows(found)


def error_radius(
    f: Callable[[Any], Any],
    x: Any,
    labels: Any,
    *,
    error: Error = class_error,
    tolerance: float = 1.05,
    batch: int | None = None,
    samples: int = 20,
    smallest: float = 1e-4,
    per_decade: int = 24,
    seed: int = 0,
) -> Estimate:
    """MES: the median C by which the inputs' spread is larger than moves that errors survive.

    C >= 1 is the least with sum_b max_{c < 1/C} e(f(x + c d), y) <= (1 + T) sum_b e(f(x), y), for
    directions d with the covariance of the inputs, each batch a sample.

    Args:
        f: A module or another function from a batch of inputs to one of outputs.
        x: The inputs.
        labels: A tensor with a label for each input.
        error: Takes outputs and labels of a batch and gives an error for each input.
        tolerance: T.
        batch: Inputs of a batch; None: 250, or all if there are fewer.
        samples: How many batches.
        smallest: The smallest c that is looked at.
        per_decade: Values of c for each power of ten.
        seed: The seed.

    Returns:
        The median; infinite where errors grow below the smallest c.

    Raises:
        UsageError: Not one label for each input, or inputs that are too few or all equal.

    Source: Schoenherr, The nonlinearity coefficient, section 4.4.8.

    Example:
        >>> torch = load_torch()
        >>> x = torch.tensor([[-2.0, 0.0], [2.0, 0.0], [-1.0, 0.0], [1.0, 0.0]])
        >>> same = lambda x: torch.stack([0 * x[:, 0], 0 * x[:, 0] + 1], 1)
        >>> error_radius(same, x, [1, 1, 1, 1]).value
        1.0
    """
    samples = checks.whole(samples, "samples", least=2)
    checks.real(tolerance, "tolerance", least=0)
    checks.real(smallest, "smallest", above=0, most=1)
    shard, known = _labelled(x, labels, batch, seed)
    directions, torch = Directions(shard), load_torch()
    steps = int(np.ceil(-np.log10(smallest) * checks.whole(per_decade, "per_decade", least=1)))
    distances = np.geomspace(smallest, 1.0, steps + 1)
    found = []
    with batch_moments(f), torch.no_grad():
        for sample in range(samples):
            generator = shard.stream("inputs", sample)
            chosen = torch.from_numpy(generator.choice(len(shard), shard.batch, replace=False))
            chosen = chosen.to(shard.rows.device)
            part, own = shard.rows[chosen], known[chosen]
            d = directions.sphere(generator, len(part))
            worst = error(f(part), own)
            allowed = (1 + tolerance) * float(worst.sum())
            reach = 0.0
            for c in distances:
                worst = torch.maximum(worst, error(f(part + float(c) * d), own))
                if float(worst.sum()) > allowed:
                    break
                reach = float(c)
            found.append(1 / reach if reach else inf)
    return median(np.array(found), seed)


def _labelled(x: Any, labels: Any, batch: int | None, seed: int) -> tuple[Shard, Tensor]:
    shard = shard_of(x, batch, seed)
    if not isinstance(labels, load_torch().Tensor):
        labels = checks.reals(labels, "labels")
    if len(labels) != len(shard) + shard.left_out:
        raise UsageError(f"{len(labels)} labels for {len(shard) + shard.left_out} inputs.")
    known = load_torch().as_tensor(labels, device=shard.rows.device)
    return shard, known[shard.order]
