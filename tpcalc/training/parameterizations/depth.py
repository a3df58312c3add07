"""Any powers of the depth: alpha in front of a block, gamma in updates."""

from __future__ import annotations

from tpcalc.training.deep_family import BASE, TABLE, powers
from tpcalc.training.parameterization import Argument, ParameterizationFamily
from tpcalc.training.parameterizations.mup import entrywise, exponents

ENTRY = ParameterizationFamily(
    "depth",
    make=lambda alpha, gamma, base=1: exponents,
    text="muP in the width, L^(-alpha) in front of blocks, updates of L^(-gamma)",
    source=TABLE,
    parameters=(
        Argument("alpha", "the power of 1/L in front of a block", required=True),
        Argument("gamma", "the power of 1/L in updates", required=True),
        BASE,
    ),
    entrywise=lambda alpha, gamma, base=1: entrywise,
    deep=powers,
)
