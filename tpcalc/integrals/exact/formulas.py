"""Expectations as formulas: the same rules on sympy expressions."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from tpcalc.functions import Const, Expr
from tpcalc.functions.symbolic import to_sympy
from tpcalc.integrals.exact.ball import infinite, no_covariance
from tpcalc.integrals.exact.gauss import Variables
from tpcalc.integrals.exact.groups import Group, chosen, grouped
from tpcalc.integrals.exact.piece import Unsupported
from tpcalc.integrals.exact.plan import compiled, integral, prepared

# A float in an expression is a fraction with a larger power of two below.
SIMPLE = 1 << 40


def formula(
    factors: Sequence[Expr], mean: Sequence[Any], cov: Sequence[Sequence[Any]]
) -> Any | None:
    """E[f_1(G_1) ... f_k(G_k)] for jointly Gaussian G, as a formula.

    Example:
        >>> from tpcalc.activations.entries import lookup
        >>> erf = lookup("erf").fn.expr
        >>> formula([erf, erf], [0, 0], [[1, 1], [1, 1]])
        2*asin(2/3)/pi
    """
    import sympy

    count = len(factors)
    spreads = [sympy.sympify(cov[i][i]) for i in range(count)]
    unsigned = dict.fromkeys(s for s in spreads if s.is_Symbol and not s.is_positive)
    positive = {symbol: sympy.Dummy(symbol.name, positive=True) for symbol in unsigned}

    def known(value: Any) -> Any:
        found = sympy.sympify(value).xreplace(positive)
        return 0 if found.is_zero else found

    means = [known(value) for value in mean]
    rows = [[known(cov[min(i, j)][max(i, j)]) for j in range(count)] for i in range(count)]
    out = sympy.Integer(1)
    for group in grouped(tuple(factors), means, rows):
        part = _group(group)
        if part is None:
            return None
        out = out * part
    if out.is_polynomial(*out.free_symbols):
        out = sympy.expand(out)
    return out.xreplace({dummy: symbol for symbol, dummy in positive.items()})


def _group(group: Group) -> Any | None:
    import sympy

    out = sympy.Integer(1)
    free = []
    for i, factor in enumerate(group.factors):
        if group.cov[i][i] == 0:
            out = out * to_sympy(factor, [sympy.sympify(group.mean[i])])
        else:
            free.append(i)
    rest = chosen(group.factors, group.mean, group.cov, free)
    plan = compiled(rest.factors)
    if plan is None:
        return None
    numbers = Formulas()
    base = Variables(numbers, rest.mean, rest.cov)
    try:
        return out * integral(prepared(plan, numbers), numbers, base)
    except Unsupported:
        return None


class Formulas:
    """The number system of sympy expressions.

    Example:
        >>> Formulas().fraction(Fraction(1, 2))
        1/2
    """

    def __init__(self) -> None:
        import sympy

        self._sympy = sympy
        self._half = sympy.Rational(1, 2)

    def constant(self, expr: Expr) -> Any:
        return constant(expr)

    def fraction(self, value: Fraction) -> Any:
        return self._sympy.Rational(value.numerator, value.denominator)

    def total(self, terms: Sequence[Any]) -> Any:
        return self._sympy.Add(*terms)

    def close_total(self, terms: Sequence[Any]) -> Any:
        return self._sympy.Add(*terms)

    def over(self, x: Any, y: Any) -> Any:
        return 0 if x == 0 or y == 0 else x / y

    def minor(self, a: Any, d: Any, b: Any, c: Any, definite: bool) -> Any:
        found = self._sympy.expand(a * d - b * c)
        if definite and found.is_negative:
            raise no_covariance()
        return 0 if found.is_zero else found

    def tilted(self, square: Any, variance: Any) -> Any:
        found = self._sympy.expand(1 - 2 * square * variance)
        if found.is_nonpositive:
            raise infinite()
        return found

    def root(self, x: Any) -> Any:
        return self._sympy.sqrt(self._sympy.together(x))

    def exponential(self, weight: Any) -> Any:
        return self._sympy.exp(self._sympy.expand(weight))

    def wave(self, kind: str, phase: Any) -> Any:
        return self._sympy.cos(phase) if kind == "cos" else self._sympy.sin(phase)

    def per_root_tau(self, count: int) -> Any:
        return (2 * self._sympy.pi) ** self._sympy.Rational(-count, 2)

    def known_side(self, kind: str, mean: Any) -> Any:
        sign = self._sympy.sign(mean)
        return sign if kind == "sign" else (1 + sign) / 2

    def half(self, kind: str, weights: tuple[Any, Any], mean: Any, variance: Any) -> Any:
        sympy = self._sympy
        factor = self.exponential(weights[0])
        height = mean / sympy.sqrt(2 * variance)
        if kind == "sign":
            return factor * sympy.erf(height)
        if height.could_extract_minus_sign():
            return factor * sympy.erfc(-height) / 2
        return factor * (1 + sympy.erf(height)) / 2

    def quarter(
        self, kinds: tuple[str, str], weights: tuple[Any, ...], means: Any, entries: Any
    ) -> Any:
        sympy = self._sympy
        first, second, covariance, _ = entries
        factor = self.exponential(weights[0])
        if covariance == 0:
            one = self.half(kinds[0], (0, 0), means[0], first)
            return factor * one * self.half(kinds[1], (0, 0), means[1], second)
        if any(mean != 0 for mean in means):
            raise Unsupported("a bivariate normal probability with means")
        correlation = covariance / sympy.sqrt(sympy.expand(first * second))
        if kinds == ("step", "step"):
            return factor * (sympy.pi - sympy.acos(correlation)) / (2 * sympy.pi)
        signs = factor * 2 * sympy.asin(correlation) / sympy.pi
        return signs if kinds == ("sign", "sign") else signs / 2

    def ramps(self, entries: Any) -> Any:
        sympy = self._sympy
        first, second, covariance, minor = entries
        turned = sympy.pi - sympy.acos(covariance / sympy.sqrt(sympy.expand(first * second)))
        return (sympy.sqrt(minor) + covariance * turned) / (2 * sympy.pi)

    def power(self, exponent: Fraction, variance: Any) -> Any:
        sympy = self._sympy
        p = self.fraction(exponent)
        return (2 * variance) ** (p / 2) * sympy.gamma((p + 1) / 2) / (2 * sympy.sqrt(sympy.pi))

    def powers(self, exponents: tuple[Fraction, Fraction], entries: Any) -> Any:
        sympy = self._sympy
        first, second, covariance, _ = entries
        p, q = (self.fraction(exponent) for exponent in exponents)
        square = covariance**2 / sympy.expand(first * second)
        rho = covariance / sympy.sqrt(sympy.expand(first * second))
        half = self._half
        even = (
            sympy.gamma((p + 1) / 2)
            * sympy.gamma((q + 1) / 2)
            * sympy.hyper((-p / 2, -q / 2), (half,), square)
        )
        odd = (
            2
            * rho
            * sympy.gamma(p / 2 + 1)
            * sympy.gamma(q / 2 + 1)
            * sympy.hyper(((1 - p) / 2, (1 - q) / 2), (3 * half,), square)
        )
        scale = first ** (p / 2) * second ** (q / 2) * 2 ** ((p + q) / 2) / (4 * sympy.pi)
        return scale * (even + odd)


def constant(expr: Expr) -> Any:
    """A constant expression in sympy; floats that are multiples of roots of pi are written so."""
    import sympy

    if isinstance(expr, Const):
        return _number(Fraction(expr.value))
    shown = to_sympy(expr, [])
    replaced = {
        number: _number(Fraction(int(number.p), int(number.q)))
        for number in shown.atoms(sympy.Rational)
        if number.q > SIMPLE
    }
    return shown.xreplace(replaced) if replaced else shown


def _number(value: Fraction) -> Any:
    """A fraction, or what a float was meant to be if that holds a root of pi; else the float."""
    import sympy

    if value.denominator <= SIMPLE or value.denominator & (value.denominator - 1):
        return sympy.Rational(value.numerator, value.denominator)
    near = float(value)
    for halves in (-1, -2, 1, 2):
        for radicand in (1, 2):
            unit = sympy.pi ** sympy.Rational(halves, 2) * sympy.sqrt(radicand)
            ratio = Fraction(near / float(unit)).limit_denominator(64)
            if ratio and abs(near / float(unit) / float(ratio) - 1) < 1e-15:
                return sympy.Rational(ratio.numerator, ratio.denominator) * unit
    return sympy.Float(near)
