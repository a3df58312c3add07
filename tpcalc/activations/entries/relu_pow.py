"""Powers of ReLU, written ``relu^p``: positively homogeneous of degree p.

The power may be a symbol, as the word ``relu^p`` itself has it: then only exponents can be asked
for, as functions of p.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import Any

from tpcalc.activations.activation import ActivationFamily, Parameter
from tpcalc.activations.entries.relu import RELU
from tpcalc.activations.entries.step import STEP
from tpcalc.errors import NotDifferentiable, ScaleError
from tpcalc.exponents import Ex
from tpcalc.functions import Atom, Expr, Facts, in_sympy
from tpcalc.functions.tape import whole_power
from tpcalc.sources import INTEGRABLE


def relu_pow(p: Fraction | Ex) -> Atom:
    """The power max(z, 0)^p for a rational p > 0, or for a symbol; ReLU itself for p = 1.

    Source: Hajjar, Chizat, Giraud, Assumption 3 and Remark 3.2.
    """
    if isinstance(p, Ex):
        if p.constant is None:
            return _symbolic(p)
        p = p.constant
    if p == 1:
        return RELU
    whole = int(p) if p.denominator == 1 else None

    def evaluate(xp: Any, z: Any) -> Any:
        positive = xp.maximum(z, 0.0)
        return positive ** float(p) if whole is None else whole_power(positive, whole)

    def derivative(z: Expr) -> Expr:
        if p < 1:
            raise NotDifferentiable(
                f"relu_pow[{p}] has no derivative at 0: its slope grows without bound there.",
                hint="A backward pass needs relu^p with p >= 1, and second derivatives p >= 2.",
            )
        return p * relu_pow(p - 1)(z)

    facts = Facts(homogeneity=p, kinks=(0.0,), growth=p, slope_at_zero=0.0 if p > 1 else None)
    shown = in_sympy(lambda sp, z: sp.Max(z, 0) ** sp.Rational(p))
    pieces = None if whole is None else lambda z: z**p * STEP(z)
    return Atom("relu_pow", evaluate, derivative, facts, (p,), shown, pieces)


@lru_cache(maxsize=256)
def _symbolic(p: Ex) -> Atom:
    """The power for a p that holds symbols: a degree of homogeneity, and no values.

    Its derivative is given up to the positive factor p, which changes no exponent: a factor of an
    expression is a number. One object for each p, so that equal functions are the same atom.
    """

    def evaluate(xp: Any, z: Any) -> Any:
        raise ScaleError(
            f"relu^({p}) has no values: its power holds symbols.",
            hint="Give it a number, as in relu^2; symbols are for exponents alone.",
        )

    def display(z: Any) -> Any:
        import sympy

        degree = sum(
            sympy.Rational(number.numerator, number.denominator)
            * sympy.prod(sympy.Symbol(name, positive=True) ** power for name, power in monomial)
            for monomial, number in p.terms
        )
        return sympy.Max(z, 0) ** degree

    facts = Facts(homogeneity=p, kinks=(0.0,), growth=p, least=0.0)
    return Atom("relu_pow", evaluate, lambda z: relu_pow(p - 1)(z), facts, (p,), display)


ENTRY = ActivationFamily(
    "relu_pow",
    make=relu_pow,
    text="max(z, 0)^p, written relu^2; with a symbol, relu^p, for exponents alone",
    source=INTEGRABLE.at("Assumption 3, Remark 3.2"),
    parameters=(Parameter("p", "power", above=Fraction(0), symbolic=True),),
)
