"""How wide a Gaussian may be before quadrature meets kinks that were not declared."""

from __future__ import annotations

from math import inf

from tpcalc.functions import Expr
from tpcalc.integrals.quadrature.shape import shape

MANY = 16  # kinks: an activation with more of them goes on bending
SIGMAS = 8.0


def longest(tau: Expr) -> float:
    """The standard deviation up to which averages are taken; infinite for most activations.

    Example:
        >>> from tpcalc.activations.entries import lookup
        >>> longest(lookup("relu").fn.expr), longest(lookup("sawtooth").fn.expr)
        (inf, 15.875)
    """
    found = shape(tau)
    kinks = [] if found is None else [part.place for part in found.features if part.kink]
    return inf if len(kinks) <= MANY else max(map(abs, kinks)) / SIGMAS
