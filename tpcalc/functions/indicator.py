"""What a function with a kink does where the leading term of its argument is exactly 0.

That happens on a part of the coordinates where an earlier gate was shut; there the next term
decides. ``AT_ZERO`` picks these coordinates; ``hidden`` stands for a value on them that is of order
one and not followed.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from tpcalc.functions.atoms import Atom, Facts

HIDDEN = "hidden"
EXACTLY = 1e-12  # below it a sum of numbers of order one is 0 but for rounding


def _evaluate(xp: Any, z: Any) -> Any:
    return xp.where(xp.abs(z) <= EXACTLY, 1.0, 0.0)


def _display(z: Any) -> Any:
    import sympy

    return sympy.KroneckerDelta(z, 0)


AT_ZERO = Atom(
    "at_zero",
    _evaluate,
    None,
    Facts(
        parity="even",
        homogeneity=Fraction(0),
        kinks=(0.0,),
        growth=Fraction(0),
        value_at_zero=1.0,
    ),
    (),
    _display,
)


def hidden(number: int) -> Atom:
    """A bounded function about which nothing else is known; it has no value.

    Example:
        >>> hidden(1) == hidden(2)
        False
    """
    return Atom(HIDDEN, _no_value, None, Facts(kinks=(0.0,), growth=Fraction(0)), (number,))


def _no_value(xp: Any, z: Any) -> Any:
    raise AssertionError("a hidden value is never evaluated")
