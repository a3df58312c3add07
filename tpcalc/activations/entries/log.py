"""The natural logarithm, for z > 0."""

from __future__ import annotations

from math import inf

from tpcalc.activations.activation import DLMF, ActivationFamily
from tpcalc.functions import Atom, Facts, in_sympy

LOG = Atom(
    "log",
    evaluate=lambda xp, z: xp.log(z),
    derivative=lambda z: 1 / z,
    # No polynomial bounds it near 0, where it tends to -infinity.
    facts=Facts(kinks=(0.0,), growth=None, order=0, value_at_zero=-inf),
    sympy=in_sympy(lambda sp, z: sp.log(z)),
)

ENTRY = ActivationFamily.of(
    LOG, "the natural logarithm, for z > 0 (of scalars, say)", DLMF.at("4.2.2"), domain=(0.0, inf)
)
