"""The nonlinearity coefficient from one batch, as a network in training can afford it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from tpcalc.errors import EvaluationError
from tpcalc.nonlinearity.tensors.batch_moments import batch_moments
from tpcalc.nonlinearity.tensors.noise import pulled
from tpcalc.nonlinearity.tensors.shard import shard_of
from tpcalc.nonlinearity.tensors.spread import spread_of
from tpcalc.nonlinearity.tensors.uncertainty import mean_of_draws, root_of_ratio
from tpcalc.results import Estimate


def single_batch_nlc(f: Callable[[Any], Any], x: Any, *, seed: int = 0) -> Estimate:
    """NLC^single: one batch gives inputs, their deviations, and the spread of outputs.

    Every x meets every x' of the batch, which is the mean over all ways to shuffle it.

    Args:
        f: A module or another function from a batch of inputs to one of outputs.
        x: The batch.
        seed: The seed.

    Returns:
        The coefficient, with its standard error.

    Raises:
        UsageError: Inputs that are too few or all equal.
        EvaluationError: The outputs have collapsed, or are not finite.

    Source: Schoenherr, The nonlinearity coefficient, section 4.4.5.

    Example:
        >>> from tpcalc.nonlinearity.tensors.surrogates import gaussian_inputs
        >>> found = single_batch_nlc(lambda x: 3 * x, gaussian_inputs(250, 20))
        >>> abs(found.value - 1) < 5 * found.stderr
        True
    """
    first = shard_of(x, None, seed)
    shard = shard_of(x, len(first) + first.left_out, seed)
    with batch_moments(f):
        spread = spread_of(f, shard)
        if spread.collapsed:
            raise EvaluationError(
                "outputs are equal within a few roundings (output collapse).",
                hint="The coefficient is 1 by convention; `nlc` reports it.",
            )
        noise = partial(shard.noise, what="outputs", draw=0)
        g = pulled(f, shard.rows, noise).flatten(1)
    away = (shard.rows - shard.mean).flatten(1)
    squares = ((g @ away.T) ** 2).double()
    rows, columns = (np.asarray(squares.mean(k).cpu().numpy())[None] for k in (1, 0))
    places = np.arange(len(shard))[None]
    over = mean_of_draws(rows, len(shard), places, places, columns).times(shard.correction)
    return root_of_ratio(over, spread.total, seed)
