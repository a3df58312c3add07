"""Blocks of 1/L, updates of order one: the differential-equation limit; CompleteP in the depth."""

from __future__ import annotations

from tpcalc.sources import Source
from tpcalc.training.deep_family import deep_family
from tpcalc.training.parameterizations.mup import entrywise, exponents

ENTRY = deep_family(
    "complete-p",
    "1",
    "0",
    "blocks learn and are not linear in their updates; features are redundant",
    width=(exponents, entrywise),
    source=Source(
        "Dey and others, Don't be lazy: CompleteP enables compute-efficient deep transformers",
        "Table 1; the (1, 0) of Tensor Programs VI, section 7",
        "2505.01618",
    ),
    aliases=("depth-ode",),
)
