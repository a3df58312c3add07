"""Integrable parameterizations: mean-field scales with learning rates of one's own."""

from __future__ import annotations

from tpcalc.exponents import as_ex
from tpcalc.sources import INTEGRABLE
from tpcalc.training.parameterization import (
    Argument,
    Exponents,
    ParameterizationFamily,
    Rule,
    layers,
    shared,
)
from tpcalc.training.parameterizations.custom import ROW, table


def make(c: object) -> Rule:
    """The table a = (0, 1, ..., 1) of integrable parameterizations with the rates c.

    Source: Hajjar, Chizat, Giraud, section 2.2.
    """
    rates = table(c, "c")

    def exponents(depth: int, step: int) -> Exponents:
        zero, one = as_ex(0), as_ex(1)
        return shared(layers(depth, zero, one, one), rates(depth, step))

    return exponents


ENTRY = ParameterizationFamily(
    "ip",
    make=make,
    text="a = (0, 1, ..., 1), the mean-field scales, with learning rates n^(-c_l) of one's own",
    source=INTEGRABLE.at("section 2.2"),
    parameters=(
        Argument("c", f"powers of the learning rates: {ROW}; rows by step", required=True),
    ),
)
