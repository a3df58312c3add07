"""Whether a function moves farther than its derivatives say: jumps, and steep parts not met."""

from __future__ import annotations

from math import inf, sqrt

import numpy as np

from tpcalc.errors import EvaluationError
from tpcalc.nonlinearity.laws import Law, Sphere
from tpcalc.nonlinearity.slopes import Blackbox

STEPS = (0.05, 0.01, 1e-3)  # small jumps show at small steps, rare ones at large steps
POINTS = 4096
CELLS = 2**21
MUCH, SIGMAS = 2.0, 5.0
ABOVE = 10.0  # times rounding


def unseen(box: Blackbox, law: Law, seed: int, samples: int) -> float:
    """How many times farther a function moves than its derivatives say, as a root mean square.

    E |f(x + h d) - f(x)|^2 / h^2 is an average of E |J d|^2 along the way, and not above it where f
    has no jumps.

    Example:
        >>> from tpcalc.nonlinearity.laws import Gaussian
        >>> unseen(Blackbox(lambda x: x + np.sign(x), 1), Gaussian(), 0, 4096) > 2
        True
    """
    rng = np.random.default_rng([seed, 4])
    count = max(16, min(samples, POINTS, CELLS // law.dimension))
    x = law.points(rng, count)
    # Toward other inputs, so that none leaves a convex set where the function is defined.
    inside = not (law.is_gaussian or isinstance(law, Sphere))
    d = law.points(rng, count) - x if inside else law.changes(rng, count)
    start, slopes = box.values(x), box.along(x, d).fine
    scale = max(float(np.abs(slopes).max()), float(np.abs(start - start.mean(axis=0)).max()))
    if not 0 < scale < inf:
        return 1.0
    squares = np.sum((slopes / scale) ** 2, axis=1)
    mean = float(squares.mean())
    known = MUCH * mean + SIGMAS * float(squares.std()) / sqrt(count)
    spread = float(np.sqrt(np.sum(((start - start.mean(axis=0)) / scale) ** 2, axis=1)).mean())
    rounding = ABOVE * box.noise(x, d) * max(spread, sqrt(mean))
    largest = 1.0
    for step in STEPS:
        if box.by_differences and step < 4 * box.step:
            continue
        try:
            moved = (box.values(x + step * d) - start) / scale
        except EvaluationError:
            continue
        size = sqrt(float(np.sum(moved**2, axis=1).mean()))
        if size > rounding and (size / step) ** 2 > known:
            largest = max(largest, size / step / sqrt(mean) if mean else inf)
    return largest
