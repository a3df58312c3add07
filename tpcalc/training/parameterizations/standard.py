"""The standard parameterization: effective weights N(0, 1/fan_in), one learning rate for all.

Libraries store the effective weights W themselves. With W = n^(-a) w, their step
W <- W - rate * grad_W is, in terms of w, with grad_W = n^a grad_w,

    w = n^a W  changes by  -rate * n^a grad_W = -rate * n^(2a) grad_w,

so a rate that does not depend on n has c_l = -2 a_l: c_1 = 0 (the input dimension is fixed) and
c_l = -1 for l >= 2. A rate eta n^(-c) adds c to every c_l; with c = 0 the first step makes the
outputs explode, with c = 1 the limit is a kernel method. The step of an optimizer whose updates do
not grow with the gradient is W <- W - rate * Q: w changes by n^a, so that c_l = c - a_l.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import partial

from tpcalc.exponents import as_ex
from tpcalc.sources import Source
from tpcalc.training.parameterization import (
    Argument,
    Exponents,
    ParameterizationFamily,
    Rule,
    exponent,
    layers,
    shared,
)


def make(c: object = 0, *, gauge: int = 2) -> Rule:
    """The table of the standard parameterization with learning rate eta n^(-c).

    Source: Yang and Hu, Table 1 (with b = a there), after Hajjar, Chizat, Giraud, Remark 2.1.
    """
    slow = exponent(c, what="c of standard")

    def exponents(depth: int, step: int) -> Exponents:
        half = as_ex(Fraction(1, 2))
        a = layers(depth, as_ex(0), half, half)
        return replace(shared(a, (slow - gauge * power for power in a)), stored=a)

    return exponents


ENTRY = ParameterizationFamily(
    "standard",
    make=make,
    text="a = (0, 1/2, ..., 1/2), c_l = c - 2 a_l: the default of libraries, learning rate n^(-c)",
    source=Source(
        "Yang, Hu, Feature learning in infinite-width neural networks", "Table 1", "2011.14522"
    ),
    parameters=(Argument("c", "exponent of the learning rate n^(-c); 0 by default"),),
    entrywise=partial(make, gauge=1),
    aliases=("sp",),
)
