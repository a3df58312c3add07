"""ELU and SELU, with the slope of each as an atom of its own."""

from __future__ import annotations

from fractions import Fraction
from math import factorial
from typing import Any

from tpcalc.activations.activation import ActivationFamily, Parameter
from tpcalc.activations.entries.exp import EXP
from tpcalc.activations.entries.relu import RELU
from tpcalc.activations.entries.relu_pow import relu_pow
from tpcalc.activations.entries.step import STEP
from tpcalc.functions import Atom, Expr, Facts, in_sympy
from tpcalc.sources import Source

# With these two the map keeps mean 0 and variance 1 of a Gaussian (the fixed point of the paper).
SELU_ALPHA = 1.6732632423543772
SELU_SCALE = 1.0507009873554805


def _elu(xp: Any, z: Any, alpha: float) -> Any:
    # exp(z) - 1 for z <= 0 by tanh(z / 2): exact near 0, where the difference would cancel.
    half = xp.tanh(0.5 * xp.minimum(z, 0.0))
    return xp.where(z > 0, z, (2.0 * alpha) * half / (1.0 - half))


def _slope(xp: Any, z: Any, alpha: float) -> Any:
    return xp.where(z > 0, 1.0, alpha * xp.exp(xp.minimum(z, 0.0)))


def _pieces(z: Expr, alpha: Fraction | float) -> Expr:
    return z * STEP(z) + alpha * (EXP(z) - 1) * STEP(-z)


def _slope_pieces(z: Expr, alpha: Fraction | float) -> Expr:
    return STEP(z) + alpha * EXP(z) * STEP(-z)


def _near_zero(z: Expr, order: int, alpha: Fraction | float) -> Expr:
    """Alpha (exp(z) - 1), and what it takes for z > 0 to make it z, by powers of relu."""
    found = alpha * (EXP(z) - 1) + (1 - alpha) * RELU(z)
    for k in range(2, order + 1):
        found = found - alpha * Fraction(1, factorial(k)) * relu_pow(Fraction(k))(z)
    return found


def _slope_near_zero(z: Expr, order: int, alpha: Fraction | float) -> Expr:
    """The derivative of that."""
    found = alpha * EXP(z) + (1 - alpha) * STEP(z)
    for k in range(1, order + 1):
        power = RELU if k == 1 else relu_pow(Fraction(k))
        found = found - alpha * Fraction(1, factorial(k)) * power(z)
    return found


def elu_slope(alpha: Fraction) -> Atom:
    """The derivative of ELU: 1 for z > 0, alpha * exp(z) for z <= 0.

    Source: Clevert, Unterthiner, Hochreiter, section 3.
    """
    number = float(alpha)

    return Atom(
        "elu_slope",
        lambda xp, z: _slope(xp, z, number),
        (lambda z: elu_slope(alpha)(z) - STEP(z)) if alpha == 1 else None,  # else it jumps at 0
        Facts(
            kinks=(0.0,),
            growth=Fraction(0),
            value_at_zero=number,
        ),
        (alpha,),
        in_sympy(lambda sp, z: sp.Piecewise((1, z > 0), (sp.Rational(alpha) * sp.exp(z), True))),
        lambda z: _slope_pieces(z, alpha),
        lambda z, order: _slope_near_zero(z, order, alpha),
    )


def elu(alpha: Fraction) -> Atom:
    """ELU: z for z > 0, alpha * (exp(z) - 1) for z <= 0.

    Source: Clevert, Unterthiner, Hochreiter, section 3.
    """
    number = float(alpha)

    return Atom(
        "elu",
        lambda xp, z: _elu(xp, z, number),
        elu_slope(alpha),
        Facts(kinks=(0.0,), growth=Fraction(1), slope_at_zero=1.0 if alpha == 1 else None),
        (alpha,),
        in_sympy(
            lambda sp, z: sp.Piecewise((z, z > 0), (sp.Rational(alpha) * (sp.exp(z) - 1), True))
        ),
        lambda z: _pieces(z, alpha),
        lambda z, order: _near_zero(z, order, alpha),
    )


SELU_SLOPE = Atom(
    "selu_slope",
    evaluate=lambda xp, z: SELU_SCALE * _slope(xp, z, SELU_ALPHA),
    derivative=None,
    facts=Facts(kinks=(0.0,), growth=Fraction(0), value_at_zero=SELU_SCALE * SELU_ALPHA),
    sympy=in_sympy(
        lambda sp, z: SELU_SCALE * sp.Piecewise((1, z > 0), (SELU_ALPHA * sp.exp(z), True))
    ),
    pieces=lambda z: SELU_SCALE * _slope_pieces(z, SELU_ALPHA),
    near_zero=lambda z, order: SELU_SCALE * _slope_near_zero(z, order, SELU_ALPHA),
)
SELU = Atom(
    "selu",
    evaluate=lambda xp, z: SELU_SCALE * _elu(xp, z, SELU_ALPHA),
    derivative=SELU_SLOPE,
    facts=Facts(kinks=(0.0,), growth=Fraction(1)),
    sympy=in_sympy(
        lambda sp, z: SELU_SCALE * sp.Piecewise((z, z > 0), (SELU_ALPHA * (sp.exp(z) - 1), True))
    ),
    pieces=lambda z: SELU_SCALE * _pieces(z, SELU_ALPHA),
    near_zero=lambda z, order: SELU_SCALE * _near_zero(z, order, SELU_ALPHA),
)

ELU_SOURCE = Source(
    "Clevert, Unterthiner, Hochreiter, Fast and accurate deep network learning by exponential "
    "linear units",
    "section 3",
    "1511.07289",
)
SELU_SOURCE = Source(
    "Klambauer, Unterthiner, Mayr, Hochreiter, Self-normalizing neural networks",
    "eq. 2",
    "1706.02515",
)
ALPHA = (
    Parameter("alpha", "minus the value at -infinity", default=Fraction(1), above=Fraction(0)),
)

ENTRIES = (
    ActivationFamily(
        "elu",
        make=elu,
        text="z for z > 0, alpha (exp(z) - 1) for z <= 0",
        source=ELU_SOURCE,
        parameters=ALPHA,
    ),
    ActivationFamily(
        "elu_slope",
        make=elu_slope,
        text="1 for z > 0, alpha exp(z) for z <= 0 (the slope of elu)",
        source=ELU_SOURCE,
        parameters=ALPHA,
    ),
    ActivationFamily.of(SELU, "1.0507 times elu with alpha = 1.6733", SELU_SOURCE),
    ActivationFamily.of(SELU_SLOPE, "the slope of selu", SELU_SOURCE),
)
