"""The naive integrable parameterization: mean-field scales with constant learning rates."""

from __future__ import annotations

from tpcalc.exponents import as_ex
from tpcalc.sources import INTEGRABLE
from tpcalc.training.parameterization import Exponents, ParameterizationFamily, layers, shared


def exponents(depth: int, step: int) -> Exponents:
    """The table of Naive-IP: a = (0, 1, ..., 1), c = (-1, -2, ..., -2, -1).

    Source: Hajjar, Chizat, Giraud, section 2.2.
    """
    zero, one, two = as_ex(0), as_ex(1), as_ex(2)
    return shared(layers(depth, zero, one, one), layers(depth, -one, -two, -one))


ENTRY = ParameterizationFamily(
    "naive-ip",
    make=lambda: exponents,
    text="a = (0, 1, ..., 1), c = (-1, -2, ..., -2, -1): from 3 hidden layers on it learns nothing",
    source=INTEGRABLE.at("section 2.2"),
)
