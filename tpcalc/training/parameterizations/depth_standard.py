"""No powers of the depth: the standard parametrization of deep networks."""

from __future__ import annotations

from tpcalc.training.deep_family import deep_family
from tpcalc.training.parameterizations.mup import entrywise, exponents

ENTRY = deep_family(
    "depth-standard",
    "0",
    "0",
    "nothing is scaled; the stream explodes at large depth",
    width=(exponents, entrywise),
)
