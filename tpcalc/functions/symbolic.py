"""Expressions as sympy expressions (for display), and back (for functions a user gives).

sympy is imported inside the functions: it takes longer to load than the rest of the package.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from math import isfinite
from typing import Any, Protocol

from tpcalc.errors import TraceError
from tpcalc.functions.atoms import Atom, Call
from tpcalc.functions.expr import Add, Const, Expr, Mul, Par, Pow, Var, add, const, mul, power
from tpcalc.functions.numbers import Number


class AtomByName(Protocol):
    """Gives a named function: ``atom_of("tanh")``, ``atom_of("leaky_relu", Fraction(1, 5))``."""

    def __call__(self, name: str, *params: Number) -> Atom: ...


def to_sympy(expr: Expr, vector_symbols: Sequence[Any], scalar_symbols: Sequence[Any] = ()) -> Any:
    """An expression in sympy, for display.

    Example:
        >>> import sympy
        >>> to_sympy(Var(0) ** 2 / 2, [sympy.Symbol("h")])
        h**2/2
    """
    import sympy

    if isinstance(expr, Const):
        value = expr.value
        if isinstance(value, Fraction):
            return sympy.Rational(value.numerator, value.denominator)
        return sympy.Float(value)
    if isinstance(expr, Var):
        return vector_symbols[expr.index]
    if isinstance(expr, Par):
        return scalar_symbols[expr.index]
    if isinstance(expr, Add):
        return sympy.Add(*(to_sympy(term, vector_symbols, scalar_symbols) for term in expr.terms))
    if isinstance(expr, Mul):
        factors = (to_sympy(factor, vector_symbols, scalar_symbols) for factor in expr.factors)
        return sympy.Mul(*factors)
    if isinstance(expr, Pow):
        exponent = sympy.Rational(expr.exponent.numerator, expr.exponent.denominator)
        return sympy.Pow(to_sympy(expr.base, vector_symbols, scalar_symbols), exponent)
    if isinstance(expr, Call):
        argument = to_sympy(expr.arg, vector_symbols, scalar_symbols)
        if expr.atom.sympy is not None:
            return expr.atom.sympy(argument)
        return sympy.Function(expr.atom.text)(argument)
    raise AssertionError(type(expr))  # every expression class is listed above


def from_sympy(expression: Any, symbols: Mapping[Any, Expr], atom_of: AtomByName) -> Expr:
    """A sympy expression as an expression of ours.

    Example:
        >>> import sympy
        >>> z = sympy.Symbol("z", real=True)
        >>> from_sympy(z**2 / 2 - 1, {z: Var(0)}, lambda name: None).text
        '-1 + 1/2*x0**2'
    """
    import sympy

    try:
        # Strict: a string would be evaluated as Python code.
        given = sympy.sympify(expression, strict=True)
    except sympy.SympifyError:
        raise TraceError(
            f"{expression!r} is not a sympy expression.",
            hint="Build it from sympy symbols and functions.",
        ) from None
    return _Translation(sympy, symbols, atom_of).of(given)


class _Translation:
    """One walk over a sympy expression, with a rule for each of its classes."""

    def __init__(self, sympy: Any, symbols: Mapping[Any, Expr], atom_of: AtomByName) -> None:
        self._symbols = symbols
        self._atom_of = atom_of
        self._rules: dict[Any, Callable[[Any], Expr]] = {
            sympy.Add: lambda part: add(self.of(term) for term in part.args),
            sympy.Mul: lambda part: mul(self.of(factor) for factor in part.args),
            sympy.Pow: self._power,
            sympy.Max: self._largest,
            sympy.Min: self._smallest,
            sympy.sinh: lambda part: self._hyperbolic(part, -1),
            sympy.cosh: lambda part: self._hyperbolic(part, 1),
            sympy.erfc: lambda part: 1 - self._apply("erf", part),
            sympy.Piecewise: self._piecewise,
        }
        for kind, name in (
            (sympy.exp, "exp"),
            (sympy.log, "log"),
            (sympy.sin, "sin"),
            (sympy.cos, "cos"),
            (sympy.tanh, "tanh"),
            (sympy.erf, "erf"),
            (sympy.Abs, "abs"),
            (sympy.sign, "sign"),
            (sympy.Heaviside, "step"),
        ):
            self._rules[kind] = self._named(name)
        self._undefined = sympy.core.function.AppliedUndef

    def of(self, part: Any) -> Expr:
        if part in self._symbols:
            return self._symbols[part]
        if part.is_Symbol:
            known = ", ".join(str(symbol) for symbol in self._symbols) or "none"
            raise TraceError(
                f"the symbol {part} in a sympy expression stands for nothing.",
                hint=f"Known symbols: {known}. A symbol with other assumptions (real=True) "
                "is another symbol.",
            )
        if part.is_Rational:
            return const(Fraction(int(part.p), int(part.q)))
        if part.is_number and not part.is_Pow:  # pi, log(2), a float; sqrt(2) stays exact
            return self._constant(part)
        if isinstance(part, self._undefined):
            return self._named(part.func.__name__)(part)
        rule = self._rules.get(part.func)
        if rule is None:
            raise TraceError(
                f"{part} ({part.func.__name__}) in a sympy expression has no translation.",
                hint="Write it with exp, log, sin, tanh, erf, Abs, Max and powers, or give its "
                "derivative rule.",
            )
        return rule(part)

    def _constant(self, part: Any) -> Expr:
        try:
            value = float(part)
        except (TypeError, ValueError, OverflowError):  # a complex number, or none at all
            value = float("nan")
        if not isfinite(value):
            raise TraceError(f"{part} in a sympy expression is not a finite real number.")
        return const(value)

    def _named(self, name: str) -> Callable[[Any], Expr]:
        def rule(part: Any) -> Expr:
            if len(part.args) != 1 and name != "step":  # Heaviside also carries its value at 0
                raise TraceError(
                    f"{part} in a sympy expression has {len(part.args)} arguments; named functions "
                    "take one.",
                )
            return self._apply(name, part)

        return rule

    def _apply(self, name: str, part: Any) -> Expr:
        return self._atom_of(name)(self.of(part.args[0]))

    def _power(self, part: Any) -> Expr:
        base, exponent = part.args
        if exponent.is_Rational:
            return power(self.of(base), Fraction(int(exponent.p), int(exponent.q)))
        if part.is_number:
            return self._constant(part)
        if exponent.is_Float:
            return self.of(base) ** float(exponent)
        raise TraceError(
            f"{part} in a sympy expression has an exponent that is not a number.",
            hint=f"Write exp(({exponent})*log({base})) if the base is positive.",
        )

    def _largest(self, part: Any) -> Expr:
        """max(a, b) = b + relu(a - b), so that max(0, x) is relu(x)."""
        relu = self._atom_of("relu")
        largest, *others = sorted((self.of(item) for item in part.args), key=_constants_first)
        for other in others:
            largest = largest + relu(other - largest)
        return largest

    def _smallest(self, part: Any) -> Expr:
        relu = self._atom_of("relu")
        smallest, *others = sorted((self.of(item) for item in part.args), key=_constants_first)
        for other in others:
            smallest = smallest - relu(smallest - other)
        return smallest

    def _hyperbolic(self, part: Any, sign: int) -> Expr:
        exp = self._atom_of("exp")
        argument = self.of(part.args[0])
        return (exp(argument) + sign * exp(-argument)) / 2

    def _piecewise(self, part: Any) -> Expr:
        raise TraceError(
            f"{part} in a sympy expression: pieces joined by conditions do not say what their "
            "derivative does where they meet.",
            hint="Write it with Max(0, x), Abs, sign or Heaviside.",
        )


def _constants_first(expr: Expr) -> tuple[bool, str]:
    return not isinstance(expr, Const), expr.text
