"""Depth-muP: blocks of L^(-1/2), updates of L^(-1/2)."""

from __future__ import annotations

from tpcalc.training.deep_family import deep_family
from tpcalc.training.parameterizations.mup import entrywise, exponents

ENTRY = deep_family(
    "depth-mup",
    "1/2",
    "1/2",
    "blocks learn, and differ from each other",
    width=(exponents, entrywise),
)
