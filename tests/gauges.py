"""Gauges: parameterizations that are written differently and train the same network.

Moving a power of n from the multiplier of a layer to the initial scale of its weights, and the
learning rate with it, changes nothing: theta_l in a_l += theta_l, b_l -= theta_l and, for SGD,
c_l -= 2 theta_l; for Adam, whose steps do not feel the size of a gradient, c_l -= theta_l.
"""

from __future__ import annotations

from tpcalc.exponents import Ex
from tpcalc.training.optimizers import lookup as find_optimizer
from tpcalc.training.parameterizations import Exponents, Parameterization, lookup

__all__ = ["equivalent_gauge"]

STEPS = 8  # tables of the catalogue change after step 0 only; written ones have a row for each step


def equivalent_gauge(
    a: Parameterization | str,
    b: Parameterization | str,
    depth: int,
    optimizer: str = "sgd",
    biases: bool = False,
) -> bool:
    """Whether two parameterizations are the same up to the gauge, for a number of hidden layers.

    With ``biases`` the exponents of biases count, too.

    Source: Yang and Hu, Feature learning in infinite-width neural networks, section 3 (symmetries
        of abc-parametrizations).
    """
    degree = find_optimizer(optimizer).degree
    found = [lookup(own).layered().under(degree) for own in (a, b)]
    one, other = (
        [_invariants(own.exponents(depth, step), biases) for step in range(STEPS)] for own in found
    )
    return one == other


def _invariants(row: Exponents, biases: bool) -> tuple[object, ...]:
    """What no change of gauge moves: a + b; c - 2 b or, for Adam, c - b; means; what is left."""
    mean = tuple(row.mean) if any(row.mean) else ()
    left = row.kept or (Ex(),) * len(row.a)
    return row.a, row.c, mean, left, *((row.bias_a, row.bias_c) if biases else ())
