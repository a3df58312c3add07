"""The step: the derivative of ReLU. It takes the value 0 at 0."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from tpcalc.activations.activation import ActivationFamily
from tpcalc.functions import Atom, Facts, in_sympy
from tpcalc.sources import Source


def _evaluate(xp: Any, z: Any) -> Any:
    # Not where(z > 0, 1, 0): this keeps the number type of z, and lets NaN show.
    return xp.maximum(xp.sign(z), 0.0)


STEP = Atom(
    "step",
    evaluate=_evaluate,
    derivative=None,
    facts=Facts(homogeneity=Fraction(0), kinks=(0.0,), growth=Fraction(0), least=0.0),
    sympy=in_sympy(lambda sp, z: sp.Heaviside(z, 0)),
)

ENTRY = ActivationFamily.of(
    STEP,
    "1 for z > 0, else 0 (the slope of relu)",
    Source("Cho, Saul, Kernel methods for deep learning", "section 2.2"),
    aliases=("heaviside",),
)
