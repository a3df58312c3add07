"""Powers of ReLU, written ``relu^p``: positively homogeneous of degree p."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from tpcalc.catalog.activation import ActivationFamily, Parameter
from tpcalc.catalog.activations.relu import RELU
from tpcalc.errors import NotDifferentiable
from tpcalc.functions import Atom, Expr, Facts
from tpcalc.sources import Source


def relu_pow(p: Fraction) -> Atom:
    """The power max(z, 0)^p for a rational p > 0; ReLU itself for p = 1.

    Args:
        p: The power.

    Source: Hajjar, Chizat, Giraud, Assumption 3 and Remark 3.2.
    """
    if p == 1:
        return RELU
    exponent = float(p)
    whole = int(p) if p.denominator == 1 else None

    def evaluate(xp: Any, z: Any) -> Any:
        positive = xp.maximum(z, 0.0)
        if whole is None:
            return positive**exponent
        # Repeated squaring: library powers are many times slower than a few products.
        out, base, rest = None, positive, whole
        while True:
            if rest & 1:
                out = base if out is None else out * base
            rest >>= 1
            if not rest:
                return out
            base = base * base

    def derivative(z: Expr) -> Expr:
        if p < 1:
            raise NotDifferentiable(
                f"relu_pow[{p}] has no derivative at 0: its slope grows without bound there.",
                hint="A backward pass needs relu^p with p >= 1, and second derivatives p >= 2.",
            )
        return p * relu_pow(p - 1)(z)

    def display(z: Any) -> Any:
        import sympy

        return sympy.Max(z, 0) ** sympy.Rational(p.numerator, p.denominator)

    facts = Facts(
        homogeneity=p,
        kinks=(0.0,),
        growth=p,
        slope_at_zero=0.0 if p > 1 else None,
    )
    return Atom("relu_pow", evaluate, derivative, facts, (p,), display)


ENTRY = ActivationFamily(
    "relu_pow",
    make=relu_pow,
    text="max(z, 0)^p, written relu^p",
    source=Source(
        "Hajjar, Chizat, Giraud, Training integrable parameterizations",
        "Assumption 3, Remark 3.2",
        arxiv="2110.15596",
    ),
    parameters=(Parameter("p", "power", above=Fraction(0)),),
)
