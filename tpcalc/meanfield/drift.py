"""Lengths that settle nowhere: by which factor each layer changes them, and what follows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from tpcalc.activations.entries import lookup
from tpcalc.functions import Expr, Var, const
from tpcalc.functions.expr import substitute
from tpcalc.functions.fn import slope_or_none
from tpcalc.functions.form import degree
from tpcalc.integrals.bounded import EPS, Bounded
from tpcalc.meanfield.activations.length import sides, tails
from tpcalc.meanfield.maps.layer_map import LayerMap

FAR = (1e6, 1e8)
SAME = 1e-9  # of slopes there: tails that are straight


@dataclass(frozen=True)
class Drift:
    """Layers that multiply all lengths by one factor, at once or in the limit.

    Args:
        growth: The factor of second moments; squared gradients have it too.
        end: ``"any"``: for every length; ``"0"``, ``"infinity"``: for small or large ones, to which
            the others come.
        scaled: The layers with weights that keep such lengths: their correlations are those of the
            signals divided by their lengths.
    """

    growth: Bounded
    end: Literal["any", "0", "infinity"]
    scaled: LayerMap


def drift(layer: LayerMap) -> Drift | None:
    """What becomes of lengths that have no fixed point above 0.

    Example:
        >>> found = drift(LayerMap(lookup("relu").fn.expr, 1 / 3))
        >>> found.end, round(found.growth.value, 12), round(found.scaled.weights, 12)
        ('any', 0.166666666667, 2.0)
    """
    if layer.every_length or layer.fixed_points:
        return None
    exact = layer.biases == 0 and degree(layer.tau) == 1
    end: Literal["any", "0", "infinity"] = "any" if exact else "infinity" if layer.grow else "0"
    slopes = _slopes(layer.tau, end == "infinity")
    if slopes is None or (end == "0" and layer.biases > 0):
        return None
    left, right = slopes
    kept = (left * left + right * right) * 0.5
    if kept.value <= kept.error:
        return None
    tau = layer.tau if exact else _straight(left.value, right.value)
    weights = 1.0 / (float(layer.rank) * kept.value)
    scaled = replace(layer, tau=tau, weights=weights, biases=0.0, square=1.0)
    return Drift(layer.effective[0] * kept, end, scaled)


def _slopes(tau: Expr, far: bool) -> tuple[Bounded, Bounded] | None:
    """The slopes of straight tails, or on both sides of 0 for a function that is 0 there."""
    slope = slope_or_none(tau, Var(0))
    if slope is None:
        return None
    if not far:
        left, right = sides(slope)
        if sides(tau) != (0.0, 0.0) or not np.isfinite([left, right]).all():
            return None
        return Bounded(left, EPS * abs(left)), Bounded(right, EPS * abs(right))
    left, near_left, near_right, right = tails(slope, *FAR)
    size = max(abs(left), abs(right))
    off = max(abs(left - near_left), abs(right - near_right))
    if not np.isfinite(size + off) or off > SAME * size:
        return None
    return Bounded(left, off + EPS * size), Bounded(right, off + EPS * size)


def _straight(left: float, right: float) -> Expr:
    """The function with these slopes on the two sides of 0."""
    if left == right:
        return const(right) * Var(0)
    relu = lookup("relu").fn.expr
    return const(right) * relu - const(left) * substitute(relu, {Var(0): -1 * Var(0)})
