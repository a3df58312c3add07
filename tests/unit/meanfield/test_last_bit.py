"""Bounds beside 50 digits: none is smaller than the rounding of its number."""

from __future__ import annotations

import mpmath
import numpy as np
from layered import Activation, Dense, Input, chain

from tpcalc import signal


def relu_states(layers: int, weights: float, c: float) -> tuple[mpmath.mpf, ...]:
    """q, c and g of relu layers by the closed forms of E relu(u) relu(v)."""
    q, c, g = mpmath.mpf(1), mpmath.mpf(c), mpmath.mpf(1)
    w = mpmath.mpf(weights)
    for _ in range(layers):
        q, c, g = w * q, w * c, w * g
        theta = mpmath.acos(c / q)
        c = q * (mpmath.sin(theta) + (mpmath.pi - theta) * mpmath.cos(theta)) / (2 * mpmath.pi)
        q, g = q / 2, g / 2
    return q, c, g


def test_relu_networks_to_the_last_bit() -> None:
    rng = np.random.default_rng(0)
    relu = Activation("relu")
    with mpmath.workdps(50):
        for _ in range(60):
            layers, weights = int(rng.integers(1, 6)), float(rng.uniform(0.3, 5))
            start = float(rng.uniform(0, 0.9))
            found = signal.nonlinearity(
                chain(
                    Input(1, start),
                    [part for _ in range(layers) for part in (Dense(weights), relu)],
                )
            )
            q, c, g = relu_states(layers, weights, start)
            wanted = mpmath.sqrt(g * (1 - mpmath.mpf(start)) / (q - c))
            last = found.layers[-1]
            for number, true in (
                (found.nlc, wanted),
                (last.bias, mpmath.sqrt(q / (q - c))),
                (last.square, q),
                (last.log_gradient, mpmath.log(g)),
            ):
                assert abs(mpmath.mpf(number.value) - true) <= number.stderr
