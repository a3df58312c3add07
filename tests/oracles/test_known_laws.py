"""What is known of a law is not sampled: coefficients of corrections, spreads of fluctuations."""

from __future__ import annotations

import numpy as np

import tpcalc as tp
from tpcalc.results import Method

POINTS = np.linspace(-10, 10, 601)  # the trapezoidal rule is exact to its last digits here
WEIGHTS = np.exp(-(POINTS**2) / 2)
WEIGHTS /= WEIGHTS.sum()
SMALL, LARGE = tp.n**-0.5, tp.n**0.5


def mean(values: np.ndarray) -> float:
    """Over N(0, 1) along each axis."""
    for _ in range(values.ndim):
        values = values @ WEIGHTS
    return float(values)


def start(z: np.ndarray) -> np.ndarray:
    return z + np.sin(z) ** 2


WRITTEN = np.sqrt(mean(start(POINTS) ** 2)) * POINTS  # what the matrix writes
SLOPE = mean(1 - np.tanh(WRITTEN) ** 2)  # of the correction of its transpose


@tp.program
def mixed(t: tp.Tracer) -> None:
    v, w, W = t.gaussian("v"), t.gaussian("w"), t.matrix("W")
    g = SMALL * (W.T @ tp.tanh(SMALL * (W @ (v + tp.sin(v) ** 2))))
    h = tp.tanh(g + v * tp.tanh(g * v))  # no function of one Gaussian
    f = LARGE * tp.mean(w * h)
    t.output("g", g)
    t.output("f", f)
    t.output("shifted", 2 * f + tp.mean(v * v))
    t.output("square", tp.mean(h * h))


def test_coefficients_are_those_of_the_limit() -> None:
    (term,) = tp.corrections(mixed).rows[-1].terms
    assert term.coefficient is not None and term.coefficient.method is Method.QUADRATURE
    assert term.coefficient.stderr < 1e-12
    assert abs(term.coefficient.value - SLOPE) < 1e-9


def test_the_spread_of_a_fluctuation_is_a_second_moment() -> None:
    """f = n^(1/2) mean(w h) is N(0, E h^2): its mean is 0, and no number of draws shows."""
    z, v = np.meshgrid(POINTS, POINTS)
    g = np.sqrt(mean(np.tanh(WRITTEN) ** 2)) * z + SLOPE * start(v)
    square = mean(np.tanh(g + v * np.tanh(g * v)) ** 2)
    found = tp.limit(mixed, samples=2**12)
    for name, factor, shift in (("f", 1.0, 0.0), ("shifted", 2.0, 1.0)):
        own = found[name]
        assert own.random and own.std is not None and own.std_error is not None
        assert abs(own.value - shift) <= own.stderr < 1e-12
        assert own.std_error < 1e-3
        assert abs(own.std - factor * np.sqrt(square)) < 5 * own.std_error + 1e-6
    assert str(found["f"]).startswith("random, mean 0, sd 0.70")
    sampled = tp.limit(mixed, samples=2**8, method="particles")["f"]
    assert sampled.z(0.0) < 5 and sampled.draws
