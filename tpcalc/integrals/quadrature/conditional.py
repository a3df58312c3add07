"""Polynomials of Gaussians, given two directions: their conditional mean is a polynomial again."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import product
from operator import mul

import numpy as np

from tpcalc.arrays import Array
from tpcalc.integrals.quadrature.polynomial import Coefficients

Surface = dict[tuple[int, int], Array]
Exponents = tuple[int, ...]


def conditional_mean(
    polynomials: Sequence[Coefficients],
    mean: Sequence[Array],
    along: Sequence[Array],
    across: Sequence[Array],
    residual: Sequence[Sequence[Array]],
) -> Surface:
    """E[p_1(g_1) p_2(g_2) ... | z, w] in powers of z and w.

    Source: Isserlis, On a formula for the product-moment coefficient of any order of a normal
    frequency distribution in any number of variables (with means).
    """
    known: dict[Exponents, Surface] = {(0,) * len(polynomials): {(0, 0): np.ones(())}}
    centre: list[Surface] = [
        {(0, 0): m, (1, 0): a, (0, 1): b} for m, a, b in zip(mean, along, across, strict=True)
    ]

    def moment(exponents: Exponents) -> Surface:
        if exponents in known:
            return known[exponents]
        first = next(j for j, power in enumerate(exponents) if power)
        rest = _lower(exponents, first)
        out = _times(centre[first], moment(rest))
        for other, power in enumerate(rest):
            if power:
                below = moment(_lower(rest, other))
                _accumulate(out, below, power * residual[first][other])
        known[exponents] = out
        return out

    total: Surface = {}
    for exponents in product(*(range(len(numbers)) for numbers in polynomials)):
        factor = reduce(
            mul, (float(p[k]) for p, k in zip(polynomials, exponents, strict=True)), 1.0
        )
        if factor:
            _accumulate(total, moment(exponents), np.asarray(factor))
    nothing = [key for key, value in total.items() if not np.any(value)]
    for key in nothing:
        del total[key]
    return total or {(0, 0): np.zeros(())}


def squared_mean(polynomial: Coefficients, mean: Array, variance: Array) -> Array:
    """E p(g)^2: the natural scale of a factor."""
    zero = np.zeros(())
    found = conditional_mean(
        [polynomial, polynomial],
        [mean, mean],
        [zero, zero],
        [zero, zero],
        [[variance, variance], [variance, variance]],
    )
    return found[0, 0]


def _lower(exponents: Exponents, index: int) -> Exponents:
    return (*exponents[:index], exponents[index] - 1, *exponents[index + 1 :])


def _times(left: Surface, right: Surface) -> Surface:
    out: Surface = {}
    for (a, b), x in left.items():
        if np.any(x):
            for (c, d), y in right.items():
                key = (a + c, b + d)
                out[key] = out[key] + x * y if key in out else x * y
    return out


def _accumulate(total: Surface, added: Surface, factor: Array) -> None:
    for key, value in added.items():
        total[key] = total[key] + value * factor if key in total else value * factor
