"""Formulas of an optimizer's text, read as sums of powers of the width."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from functools import partial

from tpcalc import checks
from tpcalc.activations.entries.abs import ABS
from tpcalc.activations.entries.sign import SIGN
from tpcalc.doors.numbers import exact
from tpcalc.errors import StudyError, UnknownName
from tpcalc.exponents import Ex, as_ex
from tpcalc.functions import Const, Expr, const
from tpcalc.functions.expr import LARGEST_POWER, Mul, Pow, add, mul, power
from tpcalc.functions.form import least, reciprocal
from tpcalc.functions.numbers import Number, root
from tpcalc.passes.separate import sign_of

ZERO = as_ex(0)
DECAYS = {"": "g = g + decay w", "w": "w = (1 - lr decay) w"}  # coupled, decoupled: by suffix
Powers = dict[Ex, Expr]  # a sum of powers of n, each with its expression
UNBOUNDED = "a division by what may be 0 where its numerator is not"


class OutsideError(StudyError):
    """A step that can be read, and that only the sizes of first steps are known of."""


def broken(optimizer: str, text: str, reason: str) -> StudyError:
    """What is wrong with the text of an optimizer."""
    return StudyError(
        f"{text!r} cannot be read: {reason}.",
        where=f"optimizer {optimizer}",
        hint="Write lines such as 'm = b1 m + (1 - b1) g' and 'w = w - lr m'.",
    )


def number_of(value: Number, power: Ex) -> Powers:
    """A number times a power of n."""
    return {power: const(value)} if value != 0 else {}


class Reader:
    """Formulas of a text, in which names stand for sums of powers of n."""

    def __init__(self, name: str, names: Mapping[str, Powers]) -> None:
        self._of, self._names, self._at, self._functions = name, names, "", FUNCTIONS

    def read(self, node: ast.expr) -> Powers:
        """What a formula is."""
        if isinstance(node, ast.Constant) and type(node.value) in (int, float):
            return number_of(exact(node.value, what="a number"), ZERO)
        if isinstance(node, ast.Name):
            if node.id not in self._names:
                raise UnknownName(f"name in optimizer {self._of}", node.id, sorted(self._names))
            return self._names[node.id]
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
            inner = self.read(node.operand)
            return times(inner, -1) if isinstance(node.op, ast.USub) else inner
        if isinstance(node, ast.BinOp) and type(node.op) in _OPERATIONS:
            left, right = self.read(node.left), self.read(node.right)
            self._at = ast.unparse(node)
            return _OPERATIONS[type(node.op)](self, left, right)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            checks.one_of(f"function in optimizer {self._of}", node.func.id, self._functions)
            count, function = self._functions[node.func.id]
            if len(node.args) == count:
                return function(self, *map(self.read, node.args))
        raise broken(self._of, ast.unparse(node), "it is no formula")

    def single(self, value: Powers, degree: Fraction, function: Callable[[Expr], Expr]) -> Powers:
        """A homogeneous function of one power of n."""
        if not value:
            return {}
        if len(value) > 1:
            powers = " and ".join(f"n^({exponent})" for exponent in value)
            raise OutsideError(
                f"a nonlinear function of a sum of {powers}.",
                where=f"optimizer {self._of}",
                hint="Entrywise functions take the gradient beside eps alone; decouple the decay.",
            )
        ((exponent, expr),) = value.items()
        return {exponent * degree: function(expr)}

    def product(self, left: Powers, right: Powers) -> Powers:
        """The product of two."""
        return sum_of([{p + q: mul((a, b))} for p, a in left.items() for q, b in right.items()])

    def over(self, left: Powers, right: Powers) -> Powers:
        """One over another, which is a single power of n."""
        if not right:
            raise broken(self._of, self._at, "a division by 0")
        return self.product(left, self.single(right, Fraction(-1), self._reciprocal))

    def raised(self, left: Powers, right: Powers) -> Powers:
        """One to the power of a number."""
        exponent = right.get(ZERO, const(0))
        if not isinstance(exponent, Const) or set(right) - {ZERO}:
            raise broken(self._of, self._at, "a power is a number")
        number = Fraction(exponent.value)
        if abs(number) > LARGEST_POWER and not _is_number(left):
            raise broken(self._of, self._at, f"a power is at most {LARGEST_POWER}")
        if number.denominator == 1 and number >= 0 and not _is_number(left):
            found: Powers = number_of(Fraction(1), ZERO)
            for _ in range(int(number)):
                found = self.product(found, left)
            return found
        if number < 0:
            return self.over(
                number_of(Fraction(1), ZERO), self.raised(left, {ZERO: const(-number)})
            )
        return self.single(left, number, lambda expr: power(expr, number))

    def _reciprocal(self, expr: Expr) -> Expr:
        """One over a number, over a root that is 0 where gradients are, or over a shifted one."""
        if isinstance(expr, Const) or least(expr) > 0:
            return power(expr, Fraction(-1))
        root = _rooted(expr)
        if root is None or least(root[1].base) < 0:
            raise broken(self._of, self._at, UNBOUNDED)
        return _under(*root)


class OverArrays(Reader):
    """The same over what a state has become: that of a root is nowhere below 0, as was read."""

    def _reciprocal(self, expr: Expr) -> Expr:
        root = _rooted(expr)
        return power(expr, Fraction(-1)) if root is None else _under(*root)


def _rooted(expr: Expr) -> tuple[Const, Pow] | None:
    """A number times a positive power."""
    number, rest = (
        (expr.factors[0], mul(expr.factors[1:])) if isinstance(expr, Mul) else (const(1), expr)
    )
    if isinstance(number, Const) and isinstance(rest, Pow) and rest.exponent > 0:
        return number, rest
    return None


def _under(number: Const, root: Pow) -> Expr:
    return mul((power(number, Fraction(-1)), reciprocal(root.exponent)(root.base)))


def _is_number(value: Powers) -> bool:
    return len(value) == 1 and all(isinstance(expr, Const) for expr in value.values())


def sum_of(parts: Iterable[Powers]) -> Powers:
    """A sum, without what is 0."""
    terms: dict[Ex, list[Expr]] = {}
    for part in parts:
        for exponent, expr in part.items():
            terms.setdefault(exponent, []).append(expr)
    found = {exponent: add(exprs) for exponent, exprs in terms.items()}
    return {exponent: expr for exponent, expr in found.items() if expr != const(0)}


def times(value: Powers, number: int) -> Powers:
    """A multiple."""
    return {exponent: mul((const(number), expr)) for exponent, expr in value.items()}


_OPERATIONS: dict[type, Callable[[Reader, Powers, Powers], Powers]] = {
    ast.Add: lambda reader, left, right: sum_of((left, right)),
    ast.Sub: lambda reader, left, right: sum_of((left, times(right, -1))),
    ast.Mult: Reader.product,
    ast.Div: Reader.over,
    ast.Pow: Reader.raised,
}
Functions = dict[str, tuple[int, Callable[..., Powers]]]  # of how many, and what they make of them
FUNCTIONS: Functions = {
    "sqrt": (1, lambda reader, value: reader.single(value, Fraction(1, 2), _square_root)),
    "sign": (1, lambda reader, value: reader.single(value, Fraction(0), partial(sign_of, SIGN))),
    "abs": (1, lambda reader, value: reader.single(value, Fraction(1), ABS)),
}


def _square_root(expr: Expr) -> Expr:
    if isinstance(expr, Const):
        return const(root(Fraction(expr.value)))
    return power(expr, Fraction(1, 2))
