"""exp(weight) P(X < h, Y < k) for a huge exponential and a tiny probability.

In polar coordinates around the corner (h, k), after whitening, the radial integral is known,

    int_0^oo r exp(-r^2 / 2 - r x) dr = psi(x) = 1 - x sqrt(pi / 2) erfcx(x / sqrt 2),

and what is left is an integral of psi(-n.e(t)) over the opening of the wedge, with n the whitened
means. All of it is positive. It is taken by Gauss-Legendre on panels that become shorter towards
both ends, with the bound for analytic functions: |psi(x)| <= psi(Re x).
"""

from __future__ import annotations

from itertools import pairwise
from math import pi, sqrt
from typing import Any

from tpcalc.integrals import rules
from tpcalc.integrals.exact.ball import UNIT, Ball

NODES = 24
BLOCK = 2**14  # values held at a time
# Sum of the half-axes of the ellipse of the error bound, in half lengths of a panel.
ELLIPSE = 2.5
WIDER = (ELLIPSE + 1 / ELLIPSE) / 2
HIGHER = (ELLIPSE - 1 / ELLIPSE) / 2
TRUNCATION = 64 / 15 * ELLIPSE ** (-2 * NODES) / (1 - ELLIPSE**-2)


def _psi(x: Any, scale: Any) -> Any:
    """exp(scale) psi(x)."""
    import numpy as np
    from scipy import special

    size = np.abs(x)
    found = np.exp(scale) * (1 - size * sqrt(pi / 2) * special.erfcx(size * sqrt(0.5)))
    if np.any(x < 0):
        hump = size * sqrt(2 * pi) * np.exp(scale + 0.5 * size * size)
        found = found + np.where(x < 0, hump, 0.0)
    return found


def _panels(reach: float) -> list[tuple[float, float]]:
    """Parts of [0, 1] that halve towards both ends until they are shorter than 1 / reach."""
    import numpy as np

    halvings = int(max(0.0, np.ceil(np.log2(max(reach, 1.0))))) if np.isfinite(reach) else 0
    marks = [0.0, *(2.0 ** -(j + 1) for j in range(min(halvings, 40), -1, -1))]
    left = list(pairwise(marks))
    return left + [(1 - b, 1 - a) for a, b in reversed(left)]


def wedge(means: tuple[Ball, Ball], rho: Ball, s: Ball, corner: Ball) -> tuple[Any, Any]:
    """The value and a bound of its error, for flat arrays."""
    import numpy as np

    first, second = means
    value, error = np.zeros_like(first.value), np.zeros_like(first.value)
    size = np.hypot(first.value, second.value)
    off = first.error() + second.error()
    turn = rho.error() * np.abs(s.value) + s.error() * np.abs(rho.value)
    off_corner = corner.error()
    steps = np.where(size > 1, np.ceil(np.log2(np.maximum(size, 1) * pi) / 3), 0)
    steps = np.where(np.isfinite(steps), steps, 0)
    for step in np.unique(steps):
        chosen = steps == step
        found, bound, peak = _opening(
            (first.value[chosen], second.value[chosen]),
            (rho.value[chosen], s.value[chosen]),
            corner.value[chosen],
            float(8.0**step),
        )
        value[chosen], error[chosen] = found, bound
        slide = _slide(found, peak, corner.value[chosen], size[chosen])
        error[chosen] += slide * np.broadcast_to(off, size.shape)[chosen]
        error[chosen] += peak * np.broadcast_to(turn, size.shape)[chosen]
        error[chosen] += found * np.expm1(np.broadcast_to(off_corner, size.shape)[chosen])
    return value, np.where(np.isfinite(error), error, np.inf)


def _opening(
    means: tuple[Any, Any], turn: tuple[Any, Any], scale: Any, reach: float
) -> tuple[Any, Any, Any]:
    """Value, error and the largest integrand (over 2 pi)."""
    import numpy as np

    (n1, n2), (rho, s) = means, turn
    start = np.arctan2(-rho, s)
    width = np.arctan2(s, -rho)  # up to pi / 2, where the first of the pair is 0
    size = np.hypot(n1, n2)
    towards = np.arctan2(n2, n1)
    value: Any = 0.0
    error: Any = 0.0
    largest: Any = 0.0
    for low, high in _panels(reach):
        half = 0.5 * (high - low) * width
        middle = start + 0.5 * (high + low) * width
        nodes, shares = rules.legendre(NODES)
        together = max(1, BLOCK // len(size))
        for first in range(0, NODES, together):
            some = slice(first, first + together)
            angle = middle + nodes[some, None] * half
            x = -(n1 * np.cos(angle) + n2 * np.sin(angle))
            value = value + half * (shares[some] @ _psi(x, scale))
        ahead = np.abs(np.mod(towards - middle + pi, 2 * pi) - pi)
        nearest = np.cos(np.maximum(ahead - WIDER * half, 0.0))
        most = size * np.maximum(nearest, 0.0) * np.cosh(HIGHER * half)
        peak = np.exp(scale) + sqrt(2 * pi) * most * np.exp(scale + 0.5 * most * most)
        largest = np.maximum(largest, peak)
        error = error + TRUNCATION * half * peak
    value, error, largest = value / (2 * pi), error / (2 * pi), largest / (2 * pi)
    # Rounding: of 1 - x erfcx, of the sum, and of the angles and x, all relative to the means.
    rounding = (8 * np.exp(scale) + 64 * value) * UNIT
    moved = 8 * UNIT * size * _slide(value, largest, scale, size)
    return value, error + rounding + moved, largest


def _slide(value: Any, largest: Any, scale: Any, size: Any) -> Any:
    """A bound of the integral of exp(scale) |psi'(x)| / (2 pi), which is what an error of x moves.

    x = -n.e(t) and its derivative by t have squares that add up to |n|^2. Where x >= 0, psi falls
    from 1 and |x psi'| < 1/2, so that |n| times the integral is at most that of |psi'| |dx/dt|, a
    total variation of 2, and that of |x psi'|, at most pi / 2: 4 in all. For x < 0,
    |psi'| < (|x| + 1.3) psi.
    """
    import numpy as np

    calm = np.exp(scale) * np.minimum(4.0, 4.0 / np.maximum(size, 1e-300)) / (2 * pi)
    return np.where(largest * (2 * pi) <= 6 * np.exp(scale), 2 * calm, calm + value * (size + 1.3))
