"""Expressions of coordinatewise functions: a small immutable algebra.

An expression is built over vector arguments ``x0, x1, ...`` (one coordinate of each vector),
scalar arguments ``s0, s1, ...`` (limits of moments, learning rates), rational or float constants,
sums, products, rational powers, and *atoms* (named functions of one variable, such as ``relu``).

Constructors normalise (flatten, fold constants, collect like terms, sort), so that equal functions
written in another order are the same object by value. With exact numbers, ``add`` and ``mul``
commute and associate; with floats they do so up to the rounding of the numbers. An exact number and
a float of the same value are different constants (``1/2`` is not ``0.5``), so that what is printed
reads back as it was (``parse``). Nothing here evaluates: see ``tape``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import gcd, lcm
from numbers import Real
from operator import is_

from tpcalc.errors import ProgramError, short
from tpcalc.functions.numbers import Number as Number
from tpcalc.functions.numbers import as_number, finite, rational, rounded, whole_power
from tpcalc.functions.numbers import number_text as number_text

LARGEST_POWER = 2**14


class Expr:
    """Base of all expressions; immutable, compared by value, with the operators ``+ - * / **``."""

    __slots__ = ()

    def __add__(self, other: Expr | Number | int) -> Expr:
        right = _lift(other)
        return NotImplemented if right is None else add((self, right))

    def __radd__(self, other: Expr | Number | int) -> Expr:
        return self.__add__(other)

    def __sub__(self, other: Expr | Number | int) -> Expr:
        right = _lift(other)
        return NotImplemented if right is None else add((self, -right))

    def __rsub__(self, other: Expr | Number | int) -> Expr:
        return (-self).__add__(other)

    def __mul__(self, other: Expr | Number | int) -> Expr:
        right = _lift(other)
        return NotImplemented if right is None else mul((self, right))

    def __rmul__(self, other: Expr | Number | int) -> Expr:
        return self.__mul__(other)

    def __truediv__(self, other: Expr | Number | int) -> Expr:
        right = _lift(other)
        return NotImplemented if right is None else mul((self, power(right, Fraction(-1))))

    def __rtruediv__(self, other: Expr | Number | int) -> Expr:
        left = _lift(other)
        return NotImplemented if left is None else mul((left, power(self, Fraction(-1))))

    def __pow__(self, exponent: int | float | Fraction) -> Expr:
        if not isinstance(exponent, Real):
            return NotImplemented
        number = as_number(exponent)
        return power(self, number if isinstance(number, Fraction) else rational(number))

    def __neg__(self) -> Expr:
        return mul((Const(Fraction(-1)), self))

    @property
    def text(self) -> str:
        raise NotImplementedError  # every concrete class has one

    @property
    def parts(self) -> tuple[Expr, ...]:
        """The expressions it is made of."""
        return ()

    def made_of(self, parts: Sequence[Expr]) -> Expr:
        """The same of other expressions."""
        return self

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, eq=False)
class Const(Expr):
    """A number: exact (Fraction) or float; a zero is always exact."""

    value: Number

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", finite(self.value))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Const):
            return NotImplemented
        return type(self.value) is type(other.value) and self.value == other.value

    def __hash__(self) -> int:
        return hash((type(self.value), self.value))

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

    @property
    def parts(self) -> tuple[Expr, ...]:
        return self.terms

    def made_of(self, parts: Sequence[Expr]) -> Expr:
        return add(parts)

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

    @property
    def parts(self) -> tuple[Expr, ...]:
        return self.factors

    def made_of(self, parts: Sequence[Expr]) -> Expr:
        return mul(parts)

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

    @property
    def parts(self) -> tuple[Expr, ...]:
        return (self.base,)

    def made_of(self, parts: Sequence[Expr]) -> Expr:
        return power(parts[0], self.exponent)

    @cached_property
    def text(self) -> str:
        simple = self.exponent.denominator == 1 and self.exponent >= 0
        shown = str(self.exponent) if simple else f"({self.exponent})"
        base = self.base.text
        if isinstance(self.base, Const | Add | Mul | Pow):
            base = f"({base})"
        return f"{base}**{shown}"


def _bracket(expr: Expr) -> str:
    return f"({expr.text})" if isinstance(expr, Add) else expr.text


def _lift(value: object) -> Expr | None:
    """An operand as an expression; None where it is neither one nor a number."""
    if isinstance(value, Expr):
        return value
    return const(value) if isinstance(value, Real) else None


def const(value: Number | int | Real) -> Const:
    """A constant; integers become exact.

    Example:
        >>> const(2).value
        Fraction(2, 1)
    """
    return Const(as_number(value))


ZERO, ONE = Const(Fraction(0)), Const(Fraction(1))
_NONE, _UNIT = Fraction(0), Fraction(1)
_ARGUMENTS, _OPENED = (Par, Var), (Const, Mul, Pow)


def split_coefficient(term: Expr) -> tuple[Number, Expr | None]:
    """A term as (number, the rest); the rest is None for a plain number."""
    if isinstance(term, Const):
        return term.value, None
    if isinstance(term, Mul) and isinstance(term.factors[0], Const):
        rest = term.factors[1:]
        return term.factors[0].value, rest[0] if len(rest) == 1 else Mul(rest)
    return _UNIT, term


def _coefficient(term: Expr) -> Number:
    """The number of a term."""
    first = term.factors[0] if isinstance(term, Mul) else term
    return first.value if isinstance(first, Const) else _UNIT


def _with_coefficient(number: Const, rest: Expr) -> Expr:
    """Number times a product that carries no number and is not a sum."""
    if number.value == 1:
        return rest
    return Mul((number, *(rest.factors if isinstance(rest, Mul) else (rest,))))


def _exactly(number: Number) -> Fraction:
    """A number as a fraction; one that is a fraction is not made again."""
    return number if isinstance(number, Fraction) else Fraction(number)


def _text(expr: Expr) -> str:
    return expr.text


def _arguments_first(factor: Expr) -> tuple[bool, str]:
    base = factor.base if isinstance(factor, Pow) else factor
    return not isinstance(base, _ARGUMENTS), factor.text


def add(terms: Iterable[Expr]) -> Expr:
    """A normalised sum.

    Example:
        >>> add((Var(0), Var(1), Var(0))).text
        '2*x0 + x1'
    """
    # None collects the plain number; each entry is (sum, whether every number in it was exact).
    collected: dict[Expr | None, tuple[Fraction, bool]] = {}
    stack = list(terms)[::-1]
    while stack:
        term = stack.pop()
        if isinstance(term, Add):
            stack.extend(term.terms[::-1])
            continue
        coefficient, rest = split_coefficient(term)
        part, exact = _exactly(coefficient), isinstance(coefficient, Fraction)
        known = collected.get(rest)
        collected[rest] = (part, exact) if known is None else (known[0] + part, known[1] and exact)
    constant = Const(rounded(*collected.pop(None, (_NONE, True))))
    out: list[Expr] = [constant] if constant.value else []
    # Ordered by what stands behind the number, so that a multiple of a sum keeps its order.
    for rest in sorted((rest for rest in collected if rest is not None), key=_text):
        number = Const(rounded(*collected[rest]))
        if number.value:
            out.append(_with_coefficient(number, rest))
    if not out:
        return ZERO
    return out[0] if len(out) == 1 else Add(tuple(out))


def _primitive(base: Add) -> tuple[Fraction, Add]:
    """A sum as number times a sum with coprime coefficients, the first one positive.

    The one spelling of a sum as a factor: without it ``2*(a + b)*c`` and ``(2*a + 2*b)*c`` would
    differ. A sum that holds a float keeps its coefficients up to the sign.
    """
    numbers = [_coefficient(term) for term in base.terms]
    exact = [number for number in numbers if isinstance(number, Fraction)]
    content = Fraction(1)
    if len(exact) == len(numbers):
        content = Fraction(
            gcd(*(number.numerator for number in exact)),
            lcm(*(number.denominator for number in exact)),
        )
    if numbers[0] < 0:
        content = -content
    if content == 1:
        return content, base
    terms: list[Expr] = []
    for number, term in zip(numbers, base.terms, strict=True):
        rest = split_coefficient(term)[1]
        scaled = Const(number / content)
        terms.append(scaled if rest is None else _with_coefficient(scaled, rest))
    return content, Add(tuple(terms))


def _base(factor: Expr) -> tuple[Expr, Fraction]:
    """A factor as a base and an exponent."""
    return (factor.base, factor.exponent) if isinstance(factor, Pow) else (factor, _UNIT)


def mul(factors: Iterable[Expr]) -> Expr:
    """A normalised product (sums are not expanded, but a number is multiplied into a lone sum).

    Example:
        >>> mul((Var(1), const(2), Var(0), Var(1))).text
        '2*x0*x1**2'
    """
    constant, exact = _UNIT, True
    collected: dict[Expr, Fraction] = {}
    stack = list(factors)[::-1]
    while stack:
        while stack:
            factor = stack.pop()
            if isinstance(factor, Mul):
                stack.extend(factor.factors[::-1])
                continue
            if isinstance(factor, Const):
                value = _exactly(factor.value)
                constant = value if constant is _UNIT else constant * value
                exact = exact and isinstance(factor.value, Fraction)
                continue
            base, exponent = _base(factor)
            if isinstance(base, Add) and exponent.denominator == 1:
                content, base = _primitive(base)
                constant *= Fraction(whole_power(content, int(exponent)))
            known = collected.get(base)
            collected[base] = exponent if known is None else known + exponent
        # Fractional powers of a composite base can add up to a whole one, which opens it again.
        for base, exponent in [*collected.items()]:
            if exponent.denominator == 1 and _opens(base):
                del collected[base]
                stack.append(power(base, exponent))
    return _product(Const(rounded(constant, exact)), collected)


def _product(number: Const, powers: Mapping[Expr, Fraction]) -> Expr:
    """A number times powers of bases that differ."""
    if not number.value:
        return ZERO
    out = [
        base if exponent == 1 else Pow(base, exponent)
        for base, exponent in powers.items()
        if exponent
    ]
    if not out:
        return number
    if len(out) == 1 and isinstance(out[0], Add):
        # -(a + b) has one spelling: the sum.
        return out[0] if number.value == 1 else add(_times(number, t) for t in out[0].terms)
    out.sort(key=_arguments_first)
    return _with_coefficient(number, out[0] if len(out) == 1 else Mul(tuple(out)))


def _opens(base: Expr) -> bool:
    """Whether a whole power of it is written otherwise."""
    return isinstance(base, _OPENED) or (isinstance(base, Add) and _primitive(base)[0] != 1)


def _times(number: Const, term: Expr) -> Expr:
    """Number times one term of a sum."""
    value, rest = split_coefficient(term)
    exact = isinstance(value, Fraction) and isinstance(number.value, Fraction)
    scaled = Const(rounded(Fraction(number.value) * Fraction(value), exact))
    return scaled if rest is None or scaled == ZERO else _with_coefficient(scaled, rest)


def power(base: Expr, exponent: Fraction) -> Expr:
    """A normalised rational power.

    Example:
        >>> power(power(Var(0), Fraction(2)), Fraction(3)).text
        'x0**6'
    """
    if exponent == 0:
        return ONE
    if exponent == 1:
        return base
    whole = exponent.denominator == 1
    if isinstance(base, Const):
        return _number_power(base, exponent)
    if abs(exponent) > LARGEST_POWER:
        raise ProgramError(
            f"a power of {short(str(exponent), 20)}; it must be at most {LARGEST_POWER}.",
            hint="The average of a larger one leaves the range of a float.",
        )
    if isinstance(base, Pow) and whole:  # (x**a)**n = x**(a n) holds for every real x only then
        return power(base.base, base.exponent * exponent)
    if isinstance(base, Mul) and whole:
        return mul(power(factor, exponent) for factor in base.factors)
    if isinstance(base, Add) and whole:
        content, inner = _primitive(base)
        number = Const(whole_power(content, int(exponent)))
        return _with_coefficient(number, Pow(inner, exponent))
    return Pow(base, exponent)


def _number_power(base: Const, exponent: Fraction) -> Expr:
    value = base.value
    if value == 0 and exponent < 0:
        raise ProgramError("a division by the constant 0.")
    if value in (0, 1):
        return base
    if exponent.denominator == 1:
        return Const(whole_power(value, int(exponent)))
    if value < 0:
        raise ProgramError(
            f"the negative number {base.text} to the power {exponent} is not a real number."
        )
    return Pow(base, exponent)


def substitute(expr: Expr, mapping: Mapping[Expr, Expr]) -> Expr:
    """Replace arguments, or whole calls of atoms, by expressions.

    Example:
        >>> substitute(Var(0) * Var(1), {Var(1): Var(0)}).text
        'x0**2'
    """
    found = mapping.get(expr)
    if found is not None:
        return found
    parts = [substitute(part, mapping) for part in expr.parts]
    return expr if all(map(is_, parts, expr.parts)) else expr.made_of(parts)


def walk(expr: Expr) -> Iterable[Expr]:
    """All subexpressions, parents first."""
    stack = [expr]
    while stack:
        part = stack.pop()
        yield part
        stack.extend(part.parts)


def variables(expr: Expr) -> frozenset[int]:
    """The numbers of the variables that an expression holds."""
    return frozenset(part.index for part in walk(expr) if isinstance(part, Var))
