"""``Ex``: exact exponents, polynomials over the rationals in named symbols.

A power of the width is written ``n**e`` with e an ``Ex``. Equality and hash are structural, so
identically equal exponents merge without any decision.
"""

from __future__ import annotations

import ast
import keyword
import math
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from tpcalc.errors import ScaleError, short

# Of a sum and of a single term: an opened power of a sum grows fast in its number of terms.
_LARGEST_POWERS = (12, 1000)
_BITS = 1100  # of a number: it is one of a float, the smallest ones included

Monomial = tuple[tuple[str, int], ...]
NO_NUMBERS = {"nan", "inf", "infinity"}  # a text that holds one is a failed computation


def without_number(name: str, *, where: str | None = None, more: str = "") -> ScaleError:
    """The error for a symbol in the exponents of a program that has no number."""
    hint = f"Give it one, values={{{name!r}: '1/2'}}{more}."
    if name == "L":
        hint = "It is the depth: tp.at_depth(program, 8) writes the program of 8 blocks."
    message = f"an exponent of the program holds the symbol {name!r}, which has no value here."
    return ScaleError(message, where=where, hint=hint)


@dataclass(frozen=True)
class Ex:
    """A polynomial over Q in named symbols.

    Example:
        >>> a = Ex.symbol("a")
        >>> print(2 * a - Fraction(1, 2))
        -1/2 + 2*a
        >>> (2 * a - 1).at({"a": Fraction(1, 2)})
        Fraction(0, 1)
    """

    # sorted pairs (monomial, coefficient), no zero coefficient; a monomial is a sorted tuple of
    # (symbol, power)
    terms: tuple[tuple[Monomial, Fraction], ...] = ()

    @staticmethod
    def number(value: int | float | Fraction) -> Ex:
        """A constant exponent; the float 0.1 means 1/10."""
        if isinstance(value, float):
            if not math.isfinite(value):
                raise ScaleError(f"an exponent must be finite, not {value}.")
            simple = Fraction(value).limit_denominator(10**6)
            value = simple if float(simple) == value else Fraction(value)
        return _from({(): Fraction(value)})

    @staticmethod
    def symbol(name: str) -> Ex:
        """A named symbol.

        Raises:
            ScaleError: The name is not an identifier, so that it could not be read back.
        """
        plain = unicodedata.normalize("NFKC", name)
        if not plain.isidentifier() or keyword.iskeyword(plain) or plain.lower() in NO_NUMBERS:
            raise ScaleError(
                f"a symbol cannot be called {name!r}: exponents are printed and read back.",
                hint="Use letters, digits and underscores; no word of Python (lambda_) and no nan.",
            )
        return Ex(((((plain, 1),), Fraction(1)),))

    @property
    def constant(self) -> Fraction | None:
        """The value if no symbol occurs, else None."""
        if not self.terms:
            return Fraction(0)
        if len(self.terms) == 1 and self.terms[0][0] == ():
            return self.terms[0][1]
        return None

    @property
    def symbols(self) -> frozenset[str]:
        """Names of the symbols that occur."""
        return frozenset(name for monomial, _ in self.terms for name, _ in monomial)

    def at(self, point: Mapping[str, Fraction]) -> Fraction:
        """The value at a point."""
        total = Fraction(0)
        for monomial, coefficient in self.terms:
            part = coefficient
            for name, degree in monomial:
                if name not in point:
                    raise without_number(name, where=f"n^({self})")
                part *= Fraction(point[name]) ** degree
            total += part
        return total

    def put(self, values: Mapping[str, Ex | Fraction]) -> Ex:
        """The exponent with some symbols replaced by numbers or other exponents.

        Example:
            >>> print((Ex.symbol("a") * Ex.symbol("p")).put({"p": Fraction(2)}))
            2*a
        """
        if not self.symbols & values.keys():
            return self
        total = Ex()
        for monomial, coefficient in self.terms:
            part = Ex.number(coefficient)
            for name, degree in monomial:
                part = part * as_ex(values.get(name, Ex.symbol(name))) ** degree
            total = total + part
        return total

    def __add__(self, other: Ex | int | Fraction) -> Ex:
        total = dict(self.terms)
        for monomial, coefficient in as_ex(other).terms:
            total[monomial] = total.get(monomial, Fraction(0)) + coefficient
        return _from(total)

    __radd__ = __add__

    def __neg__(self) -> Ex:
        return Ex(tuple((monomial, -coefficient) for monomial, coefficient in self.terms))

    def __sub__(self, other: Ex | int | Fraction) -> Ex:
        return self + (-as_ex(other))

    def __rsub__(self, other: Ex | int | Fraction) -> Ex:
        return as_ex(other) - self

    def __mul__(self, other: Ex | int | Fraction) -> Ex:
        total: dict[Monomial, Fraction] = {}
        for left, a in self.terms:
            for right, b in as_ex(other).terms:
                degrees = dict(left)
                for name, degree in right:
                    degrees[name] = degrees.get(name, 0) + degree
                monomial = tuple(sorted(degrees.items()))
                total[monomial] = total.get(monomial, Fraction(0)) + a * b
        return _from(total)

    __rmul__ = __mul__

    def __truediv__(self, other: int | Fraction) -> Ex:
        if other == 0:
            raise ScaleError(f"the exponent {self} is divided by 0.")
        return self * (1 / Fraction(other))

    def __pow__(self, degree: int) -> Ex:
        if degree < 0:
            raise ScaleError(f"{self} to the power {degree} is not a polynomial.")
        out = Ex.number(1)
        for _ in range(degree):
            out = out * self
        return out

    def __str__(self) -> str:
        if not self.terms:
            return "0"
        pieces: list[str] = []
        for monomial, coefficient in self.terms:
            names = [name if degree == 1 else f"{name}**{degree}" for name, degree in monomial]
            if names and abs(coefficient) == 1:
                body = "*".join(names)
            else:
                body = "*".join([str(abs(coefficient)), *names])
            sign = "-" if coefficient < 0 else "+"
            pieces.append(f" {sign} {body}" if pieces else ("-" if sign == "-" else "") + body)
        return "".join(pieces)

    __repr__ = __str__  # readable in the tuples that hold the exponents of all layers


def _from(total: Mapping[Monomial, Fraction]) -> Ex:
    kept = [(monomial, value) for monomial, value in total.items() if value != 0]
    return Ex(tuple(sorted(kept, key=lambda item: (sum(d for _, d in item[0]), item[0]))))


def as_ex(value: Ex | int | float | Fraction) -> Ex:
    """A number or an exponent as an exponent.

    Example:
        >>> str(as_ex(Fraction(-1, 2)))
        '-1/2'
    """
    return value if isinstance(value, Ex) else Ex.number(value)


def parse_ex(text: str) -> Ex:
    """The exponent that a text denotes; ``parse_ex(str(e)) == e``.

    Example:
        >>> print(parse_ex("(a + 1)/2 - 1"))
        -1/2 + 1/2*a
    """
    try:
        return _read(ast.parse(text.strip(), mode="eval").body, text)
    except SyntaxError as error:
        raise _broken(text, error.msg) from None
    except (ValueError, MemoryError, RecursionError):
        raise _broken(text, "it is too large or too long, or nested too deeply") from None


def _broken(text: str, reason: str) -> ScaleError:
    return ScaleError(
        f"{short(text)!r} is not an exponent: {reason}.",
        hint="Write a number or a polynomial in symbols, such as -1/2 or a_1 - p/2.",
    )


def _read(node: ast.expr, text: str) -> Ex:
    if isinstance(node, ast.Name):
        return Ex.symbol(node.id)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        inner = _read(node.operand, text)
        return -inner if isinstance(node.op, ast.USub) else inner
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        # The shortest decimal of a float is taken as it is written.
        found = Ex.number(Fraction(repr(node.value)))
    elif isinstance(node, ast.BinOp):
        found = _combine(node, text)
    else:
        raise _broken(text, f"{ast.unparse(node)[:40]!r} has no meaning in it")
    if max(map(_bits, found.terms), default=0) > _BITS:
        raise _broken(text, "a number in it is too large")
    return found


def _bits(term: tuple[Monomial, Fraction]) -> int:
    return max(abs(term[1].numerator), term[1].denominator).bit_length()


def _combine(node: ast.BinOp, text: str) -> Ex:
    left, right = _read(node.left, text), _read(node.right, text)
    if isinstance(node.op, ast.Add):
        return left + right
    if isinstance(node.op, ast.Sub):
        return left - right
    if isinstance(node.op, ast.Mult):
        return left * right
    number = right.constant
    if isinstance(node.op, ast.Div) and number is not None:
        return left / number
    if isinstance(node.op, ast.Pow) and number is not None:
        largest = _LARGEST_POWERS[len(left.terms) <= 1]
        if number.denominator == 1 and 0 <= number <= largest:
            return left ** int(number)
        raise _broken(text, f"a power of {left} must be a whole number from 0 to {largest}")
    raise _broken(text, f"{ast.unparse(node)[:40]!r} is not a polynomial")
