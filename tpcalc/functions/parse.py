"""Reading expressions back from their text.

The text is read through Python's own grammar (``ast``) and never evaluated; only numbers, the
arguments ``x0, x1, ..., s0, s1, ...``, the operators ``+ - * / **`` and calls of atoms are taken.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from fractions import Fraction

from tpcalc.doors.numbers import exact
from tpcalc.errors import ProgramError, StudyError, short
from tpcalc.functions.atoms import Atom
from tpcalc.functions.expr import Const, Expr, Par, Var, add, const, mul, power
from tpcalc.functions.fn import Fn
from tpcalc.functions.numbers import Number

AtomOf = Callable[[str, tuple[Number, ...]], Atom]

_ARGUMENT = re.compile(r"([xs])(0|[1-9][0-9]*)")
# Python's reader turns a sum into one nested object for each term and gives up near 3000.
_TERMS_AT_ONCE = 500


def parse_fn(text: str, vectors: int, scalars: int, atoms: AtomOf) -> Fn:
    """The function that a text denotes; ``parse_fn(fn.text, ...) == fn``.

    Example:
        >>> parse_fn("1/2*s0 + 2*x0**2", 1, 1, lambda name, params: None).text
        '1/2*s0 + 2*x0**2'
    """
    reader = _Reader(text, atoms)
    terms = _terms(text)
    chunks = [
        " + ".join(terms[start : start + _TERMS_AT_ONCE])
        for start in range(0, len(terms), _TERMS_AT_ONCE)
    ]
    try:
        expr = add([reader.read(_syntax(chunk, text)) for chunk in chunks])
    except RecursionError:
        raise _broken(text, "it is nested too deeply") from None
    return Fn(expr, vectors, scalars)


def parse_number(text: str) -> Number:
    """A printed number: ``-1/2`` is exact, ``0.5`` a float.

    Example:
        >>> parse_number("-1/2"), parse_number("1e-05")
        (Fraction(-1, 2), 1e-05)
    """
    try:
        number = exact(text, what="a number")
    except StudyError:
        raise ProgramError(
            f"{short(text)!r} is not a number in the range of a float.",
            hint="Write 3, -1/2, 0.25 or 1e-3, nothing infinite.",
        ) from None
    return float(text) if re.search(r"[.eE]", text) else number


def _terms(text: str) -> list[str]:
    """The text split at the `` + `` that stand outside brackets."""
    if text.count(" + ") < _TERMS_AT_ONCE:
        return [text]
    terms, depth, start = [], 0, 0
    for found in re.finditer(r"[(\[]|[)\]]| \+ ", text):
        if found[0] == " + ":
            if depth == 0:
                terms.append(text[start : found.start()])
                start = found.end()
        else:
            depth += 1 if found[0] in "([" else -1
    return [*terms, text[start:]]


def _syntax(chunk: str, text: str) -> ast.expr:
    try:
        return ast.parse(chunk.strip(), mode="eval").body
    except SyntaxError as error:
        raise _broken(text, error.msg) from None
    except (ValueError, MemoryError) as error:  # null bytes; a parser stack that is full
        raise _broken(text, str(error) or "it is nested too deeply") from None


def _broken(text: str, reason: str) -> ProgramError:
    return ProgramError(
        f"{short(text)!r} is not an expression: {reason}.",
        hint="Expressions hold numbers, x0 x1 ... s0 s1 ..., + - * / **, and names of functions.",
    )


class _Reader:
    """Builds expressions from Python syntax trees."""

    def __init__(self, text: str, atoms: AtomOf) -> None:
        self._text = text
        self._atoms = atoms

    def read(self, node: ast.expr) -> Expr:
        if isinstance(node, ast.BinOp):
            return self._chain(node)
        if isinstance(node, ast.Constant):
            return self._constant(node.value)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
            inner = self.read(node.operand)
            return -inner if isinstance(node.op, ast.USub) else inner
        if isinstance(node, ast.Name):
            found = _ARGUMENT.fullmatch(node.id)
            if found is None:
                raise self._fail(f"{node.id!r} is no argument; a function needs brackets")
            index = int(found[2])
            return Var(index) if found[1] == "x" else Par(index)
        if isinstance(node, ast.Call):
            return self._call(node)
        raise self._fail(f"{ast.unparse(node)[:40]!r} has no meaning here")

    def _fail(self, reason: str) -> ProgramError:
        return _broken(self._text, reason)

    def _constant(self, value: object) -> Const:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise _broken(self._text, f"{value!r} is not a real number")
        return const(value)

    def _chain(self, node: ast.BinOp) -> Expr:
        """A sum or product with all its terms at once: ``a + b - c`` is nested to the left."""
        kinds = _SUM if isinstance(node.op, _SUM) else _PRODUCT
        if isinstance(node.op, ast.Pow):
            return power(self.read(node.left), self._exponent(node.right))
        if not isinstance(node.op, kinds):
            raise self._fail(f"{ast.unparse(node)[:40]!r} uses an operator that is not known")
        parts: list[Expr] = []
        left: ast.expr = node
        while isinstance(left, ast.BinOp) and isinstance(left.op, kinds):
            right = self.read(left.right)
            if isinstance(left.op, ast.Sub):
                right = -right
            elif isinstance(left.op, ast.Div):
                right = power(right, Fraction(-1))
            parts.append(right)
            left = left.left
        parts.append(self.read(left))
        parts.reverse()
        return add(parts) if kinds is _SUM else mul(parts)

    def _exponent(self, node: ast.expr) -> Fraction:
        exponent = self.read(node)
        if isinstance(exponent, Const) and isinstance(exponent.value, Fraction):
            return exponent.value
        raise self._fail(f"the exponent {exponent.text} is not a rational number")

    def _call(self, node: ast.Call) -> Expr:
        if len(node.args) != 1 or node.keywords:
            raise self._fail("a function takes one argument")
        params: tuple[Number, ...] = ()
        head: ast.expr = node.func
        if isinstance(head, ast.Subscript):
            inside = head.slice.elts if isinstance(head.slice, ast.Tuple) else [head.slice]
            params = tuple(self._parameter(item) for item in inside)
            head = head.value
        if not isinstance(head, ast.Name):
            raise self._fail(f"{ast.unparse(head)[:40]!r} is not the name of a function")
        return self._atoms(head.id, params)(self.read(node.args[0]))

    def _parameter(self, node: ast.expr) -> Number:
        value = self.read(node)
        if isinstance(value, Const):
            return value.value
        raise self._fail(f"the parameter {value.text} is not a number")


_SUM = (ast.Add, ast.Sub)
_PRODUCT = (ast.Mult, ast.Div)
