"""Reading exponents from text: ``-1/2 + 2*a``."""

from __future__ import annotations

import ast
from fractions import Fraction

from tpcalc.errors import ScaleError, short
from tpcalc.exponents.ex import Ex

# Of a sum and of a single term: an opened power of a sum grows fast in its number of terms.
_LARGEST_POWERS = (12, 1000)


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
        raise _broken(text, "it is too long or nested too deeply") from None


def _broken(text: str, reason: str) -> ScaleError:
    return ScaleError(
        f"{short(text)!r} is not an exponent: {reason}.",
        hint="Write a number or a polynomial in symbols, such as -1/2 or a_1 - p/2.",
    )


def _read(node: ast.expr, text: str) -> Ex:
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return Ex.number(_decimal(node, text))
    if isinstance(node, ast.Name):
        return Ex.symbol(node.id)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        inner = _read(node.operand, text)
        return -inner if isinstance(node.op, ast.USub) else inner
    if isinstance(node, ast.BinOp):
        return _combine(node, text)
    raise _broken(text, f"{ast.unparse(node)[:40]!r} has no meaning in it")


def _decimal(node: ast.Constant, text: str) -> Fraction:
    value = node.value
    if isinstance(value, int):
        return Fraction(value)
    shown = repr(value)  # the shortest decimal of this float, taken as it is written
    if shown in ("inf", "nan"):
        raise _broken(text, "a number in it is too large")
    return Fraction(shown)


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
