"""Expressions of coordinatewise functions: a small immutable algebra.

An expression is built over vector arguments ``x0, x1, ...`` (one coordinate of each vector),
scalar arguments ``s0, s1, ...`` (limits of moments, learning rates), rational or float constants,
sums, products, rational powers, and *atoms* (named functions of one variable, such as ``relu``).

Constructors normalise (flatten, fold constants, collect like terms, sort), so that equal functions
written in another order are the same object by value. Nothing here evaluates: see ``tape``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tpcalc.functions.atoms import Atom

__all__ = [
    "Add",
    "Call",
    "Const",
    "Expr",
    "Mul",
    "Number",
    "Par",
    "Pow",
    "Var",
    "add",
    "const",
    "mul",
    "number_text",
    "power",
    "rebuild",
    "walk",
]

Number = Fraction | float


class Expr:
    """Base of all expressions; immutable, compared by value, with the operators ``+ - * / **``."""

    __slots__ = ()

    def __add__(self, other: Expr | Number | int) -> Expr:
        return add((self, _lift(other)))

    def __radd__(self, other: Expr | Number | int) -> Expr:
        return add((_lift(other), self))

    def __sub__(self, other: Expr | Number | int) -> Expr:
        return add((self, mul((const(-1), _lift(other)))))

    def __rsub__(self, other: Expr | Number | int) -> Expr:
        return add((_lift(other), mul((const(-1), self))))

    def __mul__(self, other: Expr | Number | int) -> Expr:
        return mul((self, _lift(other)))

    def __rmul__(self, other: Expr | Number | int) -> Expr:
        return mul((_lift(other), self))

    def __truediv__(self, other: Expr | Number | int) -> Expr:
        return mul((self, power(_lift(other), Fraction(-1))))

    def __rtruediv__(self, other: Expr | Number | int) -> Expr:
        return mul((_lift(other), power(self, Fraction(-1))))

    def __pow__(self, exponent: int | Fraction) -> Expr:
        return power(self, Fraction(exponent))

    def __neg__(self) -> Expr:
        return mul((const(-1), self))

    @property
    def text(self) -> str:
        raise NotImplementedError  # every concrete class has one

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Const(Expr):
    """A number: exact (Fraction) or float."""

    value: Number

    @cached_property
    def text(self) -> str:
        return number_text(self.value)


@dataclass(frozen=True)
class Var(Expr):
    """Coordinate of vector argument ``index``."""

    index: int

    @cached_property
    def text(self) -> str:
        return f"x{self.index}"


@dataclass(frozen=True)
class Par(Expr):
    """Scalar argument ``index``."""

    index: int

    @cached_property
    def text(self) -> str:
        return f"s{self.index}"


@dataclass(frozen=True)
class Add(Expr):
    """A sum of at least two terms."""

    terms: tuple[Expr, ...]

    @cached_property
    def text(self) -> str:
        return " + ".join(term.text for term in self.terms)

    @cached_property
    def _hash(self) -> int:
        return hash(("add", self.terms))

    def __hash__(self) -> int:
        return self._hash


@dataclass(frozen=True)
class Mul(Expr):
    """A product of at least two factors."""

    factors: tuple[Expr, ...]

    @cached_property
    def text(self) -> str:
        return "*".join(_bracket(factor) for factor in self.factors)

    @cached_property
    def _hash(self) -> int:
        return hash(("mul", self.factors))

    def __hash__(self) -> int:
        return self._hash


@dataclass(frozen=True)
class Pow(Expr):
    """A rational power."""

    base: Expr
    exponent: Fraction

    @cached_property
    def text(self) -> str:
        simple = self.exponent.denominator == 1 and self.exponent >= 0
        shown = str(self.exponent) if simple else f"({self.exponent})"
        base = self.base.text
        if not isinstance(self.base, Var | Par | Call):
            base = f"({base})"
        return f"{base}**{shown}"


@dataclass(frozen=True)
class Call(Expr):
    """A named function of one variable, applied."""

    atom: Atom
    arg: Expr
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash(("call", self.atom, self.arg)))

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def text(self) -> str:
        return f"{self.atom.text}({self.arg.text})"


def number_text(value: Number) -> str:
    """Print a number so that it reads back the same: ``1/2``, ``0.3``.

    Example:
        >>> number_text(Fraction(-1, 2)), number_text(0.1)
        ('-1/2', '0.1')
    """
    return str(value) if isinstance(value, Fraction) else repr(float(value))


def _bracket(expr: Expr) -> str:
    if isinstance(expr, Add):
        return f"({expr.text})"
    if isinstance(expr, Const) and isinstance(expr.value, Fraction) and expr.value.denominator != 1:
        return f"({expr.text})"
    return expr.text


def _lift(value: Expr | Number | int) -> Expr:
    return value if isinstance(value, Expr) else const(value)


def const(value: Number | int) -> Const:
    """A constant; integers become exact.

    Example:
        >>> const(2).value
        Fraction(2, 1)
    """
    if isinstance(value, Fraction):
        return Const(value)
    if isinstance(value, int):
        return Const(Fraction(value))
    return Const(float(value))


def _split_coefficient(term: Expr) -> tuple[Number, Expr | None]:
    """A term as (number, the rest); the rest is None for a plain number."""
    if isinstance(term, Const):
        return term.value, None
    if isinstance(term, Mul) and isinstance(term.factors[0], Const):
        rest = term.factors[1:]
        return term.factors[0].value, rest[0] if len(rest) == 1 else Mul(rest)
    return Fraction(1), term


def _key(expr: Expr) -> tuple[int, str]:
    return (0 if isinstance(expr, Const) else 1, expr.text)


def add(terms: Iterable[Expr]) -> Expr:
    """A normalised sum.

    Example:
        >>> add((Var(0), Var(1), Var(0))).text
        '2*x0 + x1'
    """
    constant: Number = Fraction(0)
    collected: dict[Expr, Number] = {}
    stack = list(terms)[::-1]
    while stack:
        term = stack.pop()
        if isinstance(term, Add):
            stack.extend(term.terms[::-1])
            continue
        coefficient, rest = _split_coefficient(term)
        if rest is None:
            constant = constant + coefficient
        else:
            collected[rest] = collected.get(rest, Fraction(0)) + coefficient
    out = [mul((Const(number), rest)) for rest, number in collected.items() if number != 0]
    out.sort(key=_key)
    if constant != 0 or not out:
        out.insert(0, Const(constant))
    return out[0] if len(out) == 1 else Add(tuple(out))


def mul(factors: Iterable[Expr]) -> Expr:
    """A normalised product (sums are not expanded).

    Example:
        >>> mul((Var(1), const(2), Var(0), Var(1))).text
        '2*x0*x1**2'
    """
    constant: Number = Fraction(1)
    collected: dict[Expr, Fraction] = {}
    stack = list(factors)[::-1]
    while stack:
        factor = stack.pop()
        if isinstance(factor, Mul):
            stack.extend(factor.factors[::-1])
        elif isinstance(factor, Const):
            constant = constant * factor.value
        else:
            base, exponent = (
                (factor.base, factor.exponent) if isinstance(factor, Pow) else (factor, Fraction(1))
            )
            collected[base] = collected.get(base, Fraction(0)) + exponent
    if constant == 0:
        return Const(Fraction(0))
    out = [power(base, exponent) for base, exponent in collected.items() if exponent != 0]
    out.sort(key=_key)
    if not out:
        return Const(constant)
    if constant != 1:
        # A number in front of a single sum is multiplied in, so that -(a + b) has one spelling.
        if len(out) == 1 and isinstance(out[0], Add):
            return add(mul((Const(constant), term)) for term in out[0].terms)
        out.insert(0, Const(constant))
    return out[0] if len(out) == 1 else Mul(tuple(out))


def power(base: Expr, exponent: Fraction) -> Expr:
    """A normalised rational power.

    Example:
        >>> power(power(Var(0), Fraction(2)), Fraction(3)).text
        'x0**6'
    """
    if exponent == 0:
        return Const(Fraction(1))
    if exponent == 1:
        return base
    whole = exponent.denominator == 1
    if isinstance(base, Const) and whole and (base.value != 0 or exponent > 0):
        return Const(base.value ** int(exponent))
    if isinstance(base, Pow) and whole:  # (x**a)**n = x**(a n) holds for every real x only then
        return power(base.base, base.exponent * exponent)
    if isinstance(base, Mul) and whole:
        return mul(power(factor, exponent) for factor in base.factors)
    return Pow(base, exponent)


def rebuild(expr: Expr, leaf: Callable[[Expr], Expr]) -> Expr:
    """Rebuild an expression with every Const, Var and Par passed through ``leaf``.

    Example:
        >>> rebuild(Var(0) + 1, lambda e: Var(3) if e == Var(0) else e).text
        '1 + x3'
    """
    if isinstance(expr, Add):
        return add(rebuild(term, leaf) for term in expr.terms)
    if isinstance(expr, Mul):
        return mul(rebuild(factor, leaf) for factor in expr.factors)
    if isinstance(expr, Pow):
        return power(rebuild(expr.base, leaf), expr.exponent)
    if isinstance(expr, Call):
        return expr.atom(rebuild(expr.arg, leaf))
    return leaf(expr)


def substitute(expr: Expr, mapping: Mapping[Expr, Expr]) -> Expr:
    """Replace arguments by expressions.

    Example:
        >>> substitute(Var(0) * Var(1), {Var(1): Var(0)}).text
        'x0**2'
    """
    return rebuild(expr, lambda part: mapping.get(part, part))


def walk(expr: Expr) -> Iterable[Expr]:
    """All subexpressions, parents first."""
    stack = [expr]
    while stack:
        part = stack.pop()
        yield part
        if isinstance(part, Add):
            stack.extend(part.terms)
        elif isinstance(part, Mul):
            stack.extend(part.factors)
        elif isinstance(part, Pow):
            stack.append(part.base)
        elif isinstance(part, Call):
            stack.append(part.arg)
