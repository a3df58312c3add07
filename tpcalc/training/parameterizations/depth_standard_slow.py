"""The standard parametrization with rates that fall like 1/L."""

from __future__ import annotations

from tpcalc.training.deep_family import deep_family
from tpcalc.training.parameterizations.mup import entrywise, exponents

ENTRY = deep_family(
    "depth-standard-slow",
    "0",
    "1",
    "updates of 1/L, blocks are not scaled; the stream explodes at large depth",
    width=(exponents, entrywise),
)
