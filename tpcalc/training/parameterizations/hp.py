"""The hybrid parameterization: a step of muP, then the initial weights of integrable ones."""

from __future__ import annotations

from fractions import Fraction

from tpcalc.exponents import as_ex
from tpcalc.sources import INTEGRABLE
from tpcalc.training.parameterization import Exponents, ParameterizationFamily, reinitialised
from tpcalc.training.parameterizations.mup import exponents as mup


def exponents(depth: int, step: int) -> Exponents:
    """muP, where W^l(0) is divided by n^(1/2) after step 0: W^l(1) = w^l(0) / n + its update.

    Source: Hajjar, Chizat, Giraud, section 4.1.
    """
    found = mup(depth, step)
    return reinitialised(found, as_ex(Fraction(1, 2))) if step else found


ENTRY = ParameterizationFamily(
    "hp",
    make=lambda: exponents,
    text="mup with the hidden initial weights of ip after one step: the networks of ip-llr",
    source=INTEGRABLE.at("section 4.1, Proposition 4.1"),
    biases="first",
)
