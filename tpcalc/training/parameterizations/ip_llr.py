"""The integrable parameterization with large initial learning rates."""

from __future__ import annotations

from fractions import Fraction

from tpcalc.errors import StudyError
from tpcalc.exponents import Ex, as_ex
from tpcalc.sources import INTEGRABLE
from tpcalc.training.parameterization import (
    Argument,
    Exponents,
    ParameterizationFamily,
    Rule,
    exponent,
    layers,
    shared,
)
from tpcalc.training.parameterizations.naive_ip import exponents as naive_ip


def gamma(depth: int, p: Ex) -> tuple[Ex, ...]:
    """The exponents gamma_1(p), ..., gamma_{L+1}(p) of the first step.

    Source: Hajjar, Chizat, Giraud, Definition 3.2.

    Example:
        >>> [str(c) for c in gamma(3, as_ex(1))]
        ['-2', '-5/2', '-5/2', '-2']
    """
    total, term = as_ex(0), as_ex(1)
    for _ in range(depth):
        total, term = total + term, term * p
    half = Fraction(1, 2)
    outer = -half * (total + 1)
    return layers(depth, outer, outer - half, outer)


def make(p: object = 1) -> Rule:
    """The table of IP-LLR: gamma_l(p) at step 0, the rates of Naive-IP afterwards.

    Source: Hajjar, Chizat, Giraud, section 4.
    """
    degree = exponent(p, what="p of ip-llr")
    value = degree.constant
    if value is not None and value <= 0:
        raise StudyError(
            f"p is {value}; it is the degree of homogeneity of the activation and positive.",
            where="ip-llr",
            hint="Take p = 1 for relu and p = 2 for relu^2.",
        )

    def exponents(depth: int, step: int) -> Exponents:
        later = naive_ip(depth, step)
        return later if step else shared(later.a, gamma(depth, degree))

    return exponents


ENTRY = ParameterizationFamily(
    "ip-llr",
    make=make,
    text="naive-ip with the first learning rates large enough, gamma_l(p), to leave its start",
    source=INTEGRABLE.at("Definition 3.2, section 4"),
    biases="first",
    parameters=(Argument("p", "degree of homogeneity of the activation; 1 by default"),),
)
