"""Triangle and square wave: the second is the slope of the first, so they share a file."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from tpcalc.activations.activation import NONLINEARITY, ActivationFamily, Parameter
from tpcalc.functions import Atom, Facts

# Kinks are declared as far as a Gaussian with a standard deviation of 10 amplitudes reaches. Under
# wider ones every phase is as likely, and one period tells all.
DECLARED = 64


def _kinks(amplitude: Fraction) -> tuple[float, ...]:
    right = [float((2 * k + 1) * amplitude) for k in range(DECLARED)]
    return (*(-place for place in reversed(right)), *right)


def square_wave(amplitude: Fraction) -> Atom:
    """The slope of ``sawtooth``: 1 and -1 in turn, each over a length of two amplitudes.

    Source: Schoenherr, The Nonlinearity Coefficient, Table 2.1.
    """
    a = float(amplitude)

    def evaluate(xp: Any, z: Any) -> Any:
        return xp.sign(2.0 * a - (z + a) % (4.0 * a))

    def display(z: Any) -> Any:
        import sympy

        a = sympy.Rational(amplitude.numerator, amplitude.denominator)
        return sympy.sign(2 * a - sympy.Mod(z + a, 4 * a))

    facts = Facts(
        parity="even",
        kinks=_kinks(amplitude),
        growth=Fraction(0),
        value_at_zero=1.0,
        slope_at_zero=0.0,
        period=4 * a,
    )
    return Atom("square_wave", evaluate, None, facts, (amplitude,), display)


def sawtooth(amplitude: Fraction) -> Atom:
    """The triangle wave of slope 1 and -1 through 0.

    Source: Schoenherr, The Nonlinearity Coefficient, Table 2.1.
    """
    a = float(amplitude)

    def evaluate(xp: Any, z: Any) -> Any:
        # Near 0 the argument itself: the remainder of a small number loses its digits.
        wave = a - xp.abs((z + a) % (4.0 * a) - 2.0 * a)
        return xp.where(xp.abs(z) < a, z, wave)

    def display(z: Any) -> Any:
        import sympy

        a = sympy.Rational(amplitude.numerator, amplitude.denominator)
        return a - sympy.Abs(sympy.Mod(z + a, 4 * a) - 2 * a)

    facts = Facts(
        parity="odd",
        kinks=_kinks(amplitude),
        growth=Fraction(0),
        slope_at_zero=1.0,
        period=4 * a,
    )
    return Atom("sawtooth", evaluate, square_wave(amplitude), facts, (amplitude,), display)


SOURCE = NONLINEARITY.at("Table 2.1")
AMPLITUDE = (Parameter("amplitude", "largest value", default=Fraction(1), above=Fraction(0)),)

ENTRIES = (
    ActivationFamily(
        "sawtooth",
        make=sawtooth,
        text="the triangle wave of slope 1 and -1 through 0",
        source=SOURCE,
        parameters=AMPLITUDE,
        aliases=("triangle_wave",),
    ),
    ActivationFamily(
        "square_wave",
        make=square_wave,
        text="1 and -1 in turn (the slope of sawtooth)",
        source=SOURCE,
        parameters=AMPLITUDE,
    ),
)
