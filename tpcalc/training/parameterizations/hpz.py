"""The hybrid parameterization with zeros: a step of muP, then no initial weights at all."""

from __future__ import annotations

from tpcalc.sources import INTEGRABLE
from tpcalc.training.parameterization import Exponents, ParameterizationFamily, reinitialised
from tpcalc.training.parameterizations.mup import exponents as mup


def exponents(depth: int, step: int) -> Exponents:
    """muP, where W^l(0) is dropped after step 0: W^l(1) is the first update alone.

    Source: Hajjar, Chizat, Giraud, section 4.2.
    """
    found = mup(depth, step)
    return reinitialised(found, None) if step else found


ENTRY = ParameterizationFamily(
    "hpz",
    make=lambda: exponents,
    text="mup without its hidden initial weights after one step: the limit of ip-llr",
    source=INTEGRABLE.at("section 4.2, Theorem 4.2"),
    biases="first",
)
