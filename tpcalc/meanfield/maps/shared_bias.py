"""One scalar bias shared by all directions of a low-rank layer: lengths stay random."""

from __future__ import annotations

from math import sqrt

import numpy as np

from tpcalc import checks
from tpcalc.integrals.bounded import Bounded, bounded
from tpcalc.meanfield.maps.layer_map import LayerMap
from tpcalc.results import Estimate, Method


def shared_bias_length(layer: LayerMap, q: Bounded | float) -> Estimate:
    """The length after a layer whose bias is b (C_1 + ... + C_r) with one scalar b.

    It is gamma (sigma_w^2 E tau^2 + b^2): random at any width, also an infinite one. Its mean is
    that of independent biases.

    Args:
        layer: The layer; its biases are the variance of b.
        q: The length before it.

    Returns:
        The mean, with the standard deviation sqrt(2) gamma sigma_b^2 as ``std``.

    Source: On the initialisation of wide low-rank feedforward neural networks, section 1, whose
        equation 3 holds for independent biases in each direction.

    Example:
        >>> from tpcalc.activations.entries import lookup
        >>> found = shared_bias_length(LayerMap(lookup("tanh").fn.expr, 6, 0.4, rank=0.25), 0.6)
        >>> round(found.value, 5), round(found.std, 6), found.random
        (0.55594, 0.141421, True)
    """
    mean = layer.length(bounded(q))
    spread = sqrt(2) * float(layer.rank) * float(layer.biases)
    return Estimate(mean.value, mean.error, mean.method, std=spread)


def shared_bias_lengths(
    layer: LayerMap, start: float, depth: int, samples: int = 4096, seed: int = 0
) -> tuple[Estimate, ...]:
    """The law of the lengths over many such layers: mean and standard deviation by sampling b.

    Args:
        layer: The layers.
        start: The length before the first of them.
        depth: How many.
        samples: Draws of the biases.
        seed: The seed.

    Returns:
        An estimate for each layer, random, with its standard deviation.

    Raises:
        StudyError: Fewer than two samples.

    Source: As ``shared_bias_length``, layer after layer with a fresh b.

    Example:
        >>> from tpcalc.activations.entries import lookup
        >>> layer = LayerMap(lookup("erf").fn.expr, 6, 0.4, rank=0.25)
        >>> [found.random for found in shared_bias_lengths(layer, 0.6, 2, samples=64)]
        [True, True]
    """
    checks.of_type(layer, LayerMap, "layer")
    count = checks.whole(samples, "samples", least=2)
    start = float(checks.real(start, "start", above=0))
    rng = np.random.default_rng(checks.seed(seed))
    w, b = (part.value for part in layer.effective)
    plain = LayerMap(layer.tau, w)
    q, found = np.full(count, float(start)), []
    for _ in range(checks.whole(depth, "depth", least=1)):
        q = plain.lengths(q).value + b * rng.standard_normal(count) ** 2
        spread = float(q.std(ddof=1))
        found.append(
            Estimate(
                float(q.mean()),
                spread / sqrt(count),
                Method.PARTICLES,
                samples=count,
                seed=seed,
                std=spread,
            )
        )
    return tuple(found)
