"""Blocks of L^(-1/2), Adam at the rate of one block."""

from __future__ import annotations

from tpcalc.training.deep_family import deep_family
from tpcalc.training.parameterizations.mup import entrywise, exponents

ENTRY = deep_family(
    "depth-only-multiplier",
    "1/2",
    "0",
    "branches are scaled, rates of Adam are not; training explodes at large depth",
    width=(exponents, entrywise),
)
