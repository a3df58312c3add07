"""Small data for tests of training, and networks to train on it."""

from __future__ import annotations

import numpy as np

from tpcalc.catalog.parameterizations import lookup
from tpcalc.finite.device import resolve_device, resolve_dtype
from tpcalc.finite.training.network import Network, Shape, draw
from tpcalc.finite.training.scales import start_scales
from tpcalc.results.images import Images


def mixture(
    images: int = 96, features: int = 6, classes: int = 3, distance: float = 1.0, seed: int = 5
) -> Images:
    """A mixture of Gaussians, one for each class; as many training as test images."""
    rng = np.random.default_rng(seed)
    centers = distance * rng.standard_normal((classes, features))
    labels = rng.integers(0, classes, 2 * images)
    pixels = centers[labels] + rng.standard_normal((2 * images, features))
    return Images(
        pixels[:images], labels[:images], pixels[images:], labels[images:], classes, "a mixture"
    )


def start(
    parameterization: str,
    shape: Shape,
    act: str = "tanh",
    std: float = 1.0,
    trial: int = 0,
    batch: int = 64,
) -> Network:
    """A network at its start, in float64 on the CPU."""
    return draw(
        shape,
        act,
        start_scales(lookup(parameterization), shape.depth, shape.width),
        std,
        7,
        trial,
        dtype=resolve_dtype("float64"),
        device=resolve_device("cpu"),
        batch=batch,
    )
