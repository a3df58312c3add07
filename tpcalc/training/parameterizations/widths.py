"""The parameterizations of wide networks: maximal update, neural tangent and standard.

Libraries store the effective weights W themselves: the standard parameterization has effective
weights N(0, 1/fan_in) and one learning rate for all. With W = n^(-a) w, their step
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

HALF = Fraction(1, 2)


def mup(depth: int, step: int) -> Exponents:
    """The table of muP: a = (0, 1/2, ..., 1/2, 1), c = -1; biases 0 with rates (-1, ..., -1, 0).

    A hidden bias is a vector as the input weights are, and an output's bias is a number: all are
    of order one and move by order one.

    Source: Hajjar, Chizat, Giraud, section 2.2; Yang and Hu, Definition 5.1 after Remark 2.1; for
        biases Yang, Hu and others, Tensor Programs V (2203.03466), Table 3.
    """
    return Exponents(
        layers(depth, 0, HALF, 1),
        layers(depth, -1, -1, -1),
        layers(depth, 0, 0, 0),
        layers(depth, -1, -1, 0),
    )


def mup_entrywise(depth: int, step: int) -> Exponents:
    """The same for Adam and sign: c = (0, 1/2, ..., 1/2, 0), biases 0.

    A step of w changes W = n^(-a) w by n^(-a-c), which is n^-1 where a product sums over the width.

    Source: Yang, Hu and others, Tensor Programs V (2203.03466), Table 3, in this gauge.
    """
    flat = layers(depth, 0, 0, 0)
    return replace(mup(depth, step), c=layers(depth, 0, HALF, 0), bias_c=flat)


MUP = ParameterizationFamily(
    "mup",
    make=lambda: mup,
    text="a = (0, 1/2, ..., 1/2, 1), c = -1: feature learning in every layer",
    source=Source(
        "Yang, Hu, Feature learning in infinite-width neural networks", "Table 1", "2011.14522"
    ),
    entrywise=lambda: mup_entrywise,
    aliases=("maximal-update",),
    by_updates=True,
)


def ntk(depth: int, step: int) -> Exponents:
    """The table of NTK: a = (0, 1/2, ..., 1/2) for weights, 0 for biases, c = 0.

    Source: Hajjar, Chizat, Giraud, section 2.2; Jacot, Gabriel, Hongler, section 3, for biases.
    """
    flat = layers(depth, 0, 0, 0)
    return Exponents(layers(depth, 0, HALF, HALF), flat, flat, flat)


def ntk_entrywise(depth: int, step: int) -> Exponents:
    """The same for Adam and sign, the operator regime: features move by n^(-1/2), outputs by 1.

    Source: Yang, Littwin, Tensor Programs IVb (2308.01814), the neural tangent parameterization.
    """
    rates, shifts = layers(depth, HALF, 1, HALF), layers(depth, HALF, HALF, 0)
    return replace(ntk(depth, step), c=rates, bias_c=shifts)


NTK = ParameterizationFamily(
    "ntk",
    make=lambda: ntk,
    text="a = (0, 1/2, ..., 1/2), c = 0: a kernel method in the limit",
    source=Source("Jacot, Gabriel, Hongler, Neural tangent kernel", "section 3", "1806.07572"),
    entrywise=lambda: ntk_entrywise,
    aliases=("ntp",),
    by_updates=True,
)


def make_standard(c: object = 0, *, gauge: int = 2) -> Rule:
    """The table of the standard parameterization with learning rate eta n^(-c).

    Source: Yang and Hu, Table 1 (with b = a there), after Hajjar, Chizat, Giraud, Remark 2.1.
    """
    slow = exponent(c, what="c of standard")

    def exponents(depth: int, step: int) -> Exponents:
        a = layers(depth, 0, HALF, HALF)
        return replace(shared(a, (slow - gauge * power for power in a)), stored=a)

    return exponents


STANDARD = ParameterizationFamily(
    "standard",
    make=make_standard,
    text="a = (0, 1/2, ..., 1/2), c_l = c - 2 a_l: the default of libraries, learning rate n^(-c)",
    source=Source(
        "Yang, Hu, Feature learning in infinite-width neural networks", "Table 1", "2011.14522"
    ),
    parameters=(Argument("c", "exponent of the learning rate n^(-c); 0 by default"),),
    entrywise=partial(make_standard, gauge=1),
    aliases=("sp",),
)

ENTRIES = (MUP, NTK, STANDARD)
