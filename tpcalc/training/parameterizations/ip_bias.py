"""The integrable parameterization with biases that are not scaled down."""

from __future__ import annotations

from fractions import Fraction

from tpcalc.exponents import Ex, as_ex
from tpcalc.sources import INTEGRABLE
from tpcalc.training.parameterization import Exponents, ParameterizationFamily, layers
from tpcalc.training.parameterizations.naive_ip import exponents as naive_ip


def _first_rates(depth: int) -> tuple[tuple[Ex, ...], tuple[Ex, ...]]:
    """Learning rates of weights and biases at step 0.

    Weights: c_1 = -(L+1)/2, c_l = -(L-l+4)/2 between, c_{L+1} = -1. Biases: -(L-l+2)/2, and 0 for
    the output's, which is a number.

    Source: Hajjar, Chizat, Giraud, equations (5.4) and (5.5).
    """
    half = Fraction(1, 2)
    between = [as_ex(-half * (depth - layer + 4)) for layer in range(2, depth + 1)]
    weights = (as_ex(-half * (depth + 1)), *between, as_ex(-1))
    biases = [as_ex(-half * (depth - layer + 2)) for layer in range(1, depth + 1)]
    return weights, (*biases, as_ex(0))


def exponents(depth: int, step: int) -> Exponents:
    """The table of IP-bias: the weights of IP, biases B = b with rates n^(-bias_c) of their own.

    Source: Hajjar, Chizat, Giraud, section 5.2, equations (5.4) and (5.5).
    """
    zero, one = as_ex(0), as_ex(1)
    later = naive_ip(depth, step)
    rates, bias_rates = later.c, layers(depth, -one, -one, zero)
    if step == 0:
        rates, bias_rates = _first_rates(depth)
    return Exponents(later.a, rates, layers(depth, zero, zero, zero), bias_rates)


ENTRY = ParameterizationFamily(
    "ip-bias",
    make=lambda: exponents,
    text="the weights of ip with biases of order one: what it learns hardly depends on the data",
    source=INTEGRABLE.at("section 5.2"),
)
