"""Errors of scalars that are drawn alone, where the numbers are known."""

from __future__ import annotations

from math import e, erfc, exp, pi, sqrt

import pytest

import tpcalc as tp
from tpcalc.results import Status


def beyond(x: float) -> float:
    """The chance of a Gaussian above x."""
    return erfc(x / sqrt(2)) / 2


# E 1/(1 + g^2); that of its square is 1/2.
FLAT = sqrt(pi * e / 2) * 2 * beyond(1)
KNOWN = {
    "square": (lambda b: b**2, 1.0, sqrt(2)),
    "far": (lambda b: tp.step(b - 3), beyond(3), sqrt(beyond(3) * (1 - beyond(3)))),
    "flat": (lambda b: 1 / (1 + b**2), FLAT, sqrt(0.5 - FLAT**2)),
    "farther": (lambda b: tp.step(b - 5), beyond(5), sqrt(beyond(5) * (1 - beyond(5)))),
    "wild": (lambda b: tp.exp(2 * b), exp(2), sqrt(exp(8) - exp(4))),
}
RARE = {"farther", "wild"}


@tp.program
def functions(t: tp.Tracer) -> None:
    b = t.random_scalar("b", std=1)
    for name, (function, _, _) in KNOWN.items():
        t.output(name, function(b))


@pytest.mark.parametrize("seed", range(5))
def test_errors_hold_or_are_marked(seed: int) -> None:
    """Where no sample of 2^18 sees an event, what is drawn is not certain."""
    found = tp.limit(functions, seed=seed)
    for name, (_, mean, std) in KNOWN.items():
        own = found[name]
        assert own.z(mean) < 5, name
        assert own.std is not None and own.std_error is not None
        assert (own.status is Status.RARE) is (name in RARE)
        if name not in RARE:
            assert abs(own.std - std) < 5 * own.std_error
            assert own.stderr < 1e-2 * std
    assert abs(found["farther"].std - KNOWN["farther"][2]) < 2 * found["farther"].std_error
