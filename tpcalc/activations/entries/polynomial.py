"""Polynomials, and the square: written out as sums of powers, so exact rules see their form."""

from __future__ import annotations

from fractions import Fraction

from tpcalc.activations.activation import (
    NONLINEARITY,
    ActivationFamily,
    Composite,
    Parameter,
    listed,
)
from tpcalc.errors import StudyError
from tpcalc.functions import Expr, Facts, const, in_sympy
from tpcalc.functions.expr import add, mul, power

SOURCE = NONLINEARITY.at("Table 2.1")


def polynomial(*coefficients: Fraction) -> Composite:
    """The polynomial with these coefficients, constant term first.

    Example:
        >>> from tpcalc.functions import Var
        >>> polynomial(Fraction(1), Fraction(0), Fraction(1, 2))(Var(0)).text
        '1 + 1/2*x0**2'
    """
    terms = {degree: number for degree, number in enumerate(coefficients) if number != 0}
    if not terms:
        raise StudyError(
            "a polynomial activation needs a coefficient other than 0.",
            hint="poly:1,0,1/2 is 1 + z^2/2: the constant term comes first.",
        )
    degrees = list(terms)

    def build(z: Expr) -> Expr:
        return add(mul((const(c), power(z, Fraction(d)))) for d, c in terms.items())

    even = not any(d % 2 for d in degrees)
    odd = all(d % 2 for d in degrees)
    facts = Facts(
        parity="even" if even else "odd" if odd else "none",
        homogeneity=Fraction(degrees[0]) if len(degrees) == 1 else None,
        growth=Fraction(degrees[-1]),
        value_at_zero=float(terms.get(0, 0)),
        slope_at_zero=float(terms.get(1, 0)),
    )
    kept = coefficients[: degrees[-1] + 1]
    return Composite(
        f"poly{listed(kept)}",
        build,
        facts,
        in_sympy(lambda sp, z: sum(sp.Rational(c) * z**d for d, c in terms.items())),
    )


ENTRIES = (
    ActivationFamily(
        "poly",
        make=polynomial,
        text="c0 + c1 z + c2 z^2 + ...",
        source=SOURCE,
        parameters=(Parameter("c", "coefficients, constant term first"),),
        aliases=("polynomial",),
        variadic=True,
    ),
    ActivationFamily(
        "square",
        make=lambda: polynomial(Fraction(0), Fraction(0), Fraction(1)),
        text="z^2",
        source=SOURCE,
    ),
)
