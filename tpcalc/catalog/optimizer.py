"""Optimizers as texts: lines over a weight w, its gradient g and a state, read for every entry."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

from tpcalc.catalog.activations.abs import ABS
from tpcalc.catalog.activations.sign import SIGN
from tpcalc.catalog.update_kinds import is_lasting
from tpcalc.catalog.values import exact, root
from tpcalc.errors import StudyError, UnknownName
from tpcalc.functions import Call, Const, Expr, Fn, Var, const
from tpcalc.functions.expr import Add, Mul, Pow, add, children, mul, power, substitute, walk
from tpcalc.functions.fn import derivative
from tpcalc.functions.least import least
from tpcalc.functions.numbers import Number
from tpcalc.functions.reciprocal import RECIPROCAL, reciprocal
from tpcalc.functions.tape import evaluate
from tpcalc.orders import Ex, as_ex, parse_ex
from tpcalc.passes.course import Path, Rate
from tpcalc.passes.separate import sign_of
from tpcalc.sources import Source

__all__ = ["Optimizer", "Setting", "setting"]

ZERO = as_ex(0)
START = Var(-2)  # the initial value, in expressions of gradients
LONG = 10**15  # denominators beyond it are rounded
Powers = dict[Ex, Expr]  # a sum of powers of n, each with its expression
Setting = tuple[Number, Ex]  # a number times a power of n
UNBOUNDED = "a division by what may be 0 where its numerator is not"
_PRODUCT = re.compile(r"(?<=[\w)])\s+(?=[\w(])")
_SETTING = re.compile(r"(.*?)\*?\s*\bn(?:\s*(?:\^|\*\*)\s*(.+))?")


def setting(value: object, what: str) -> Setting:
    """A hyperparameter: a number, or a text with a power of the width.

    Args:
        value: ``0.1``, ``"1/10"``, ``"0.1 n^-1"``, ``"n^(-3/2)"``.
        what: Its name, for messages.

    Raises:
        StudyError: It is neither.

    Example:
        >>> number, power = setting("0.1 n^(-1/2)", "eps")
        >>> str(number), str(power)
        ('1/10', '-1/2')
    """
    found = _SETTING.fullmatch(value.strip()) if isinstance(value, str) else None
    if found is None:
        return exact(value, what=what), ZERO
    number = exact(found[1].strip() or 1, what=what)
    return number, parse_ex(found[2]) if found[2] else as_ex(1)


@dataclass(frozen=True)
class Optimizer:
    r"""An entry of the catalogue: the rule of an update, read off its text.

    The text has a line for each part of the state and one for ``w``, in order; in it stand the
    weight ``w``, its gradient ``g``, the learning rate ``lr``, the number ``t`` = 1, 2, ... of the
    step, the hyperparameters, ``sqrt``, ``sign``, ``abs``; a blank is a product. The state starts
    at 0. Every parameter has its own, entry by entry.

    Args:
        name: The name it is listed under.
        program: The text.
        text: What it is, in one line.
        source: Where it is defined.
        values: The hyperparameters with their values: numbers, or texts with a power of n.
        aliases: Other names.

    Raises:
        StudyError: The text cannot be read, or has a name that nothing stands for.

    Example:
        >>> lion = Optimizer(
        ...     "lion",
        ...     "w = (1 - lr decay) w - lr sign(b1 m + (1 - b1) g)\nm = b2 m + (1 - b2) g",
        ...     "the sign of a momentum", Source(""), {"b1": "9/10", "b2": "99/100", "decay": 0},
        ... )
        >>> lion.degree
        0
        >>> [(str(power), psi.text) for power, psi in lion.path([(1, as_ex(0))]).moves]
        [('0', '-1*sign(x0)')]
    """

    name: str
    program: str
    text: str
    source: Source
    values: Mapping[str, Any] = field(default_factory=dict, hash=False)
    aliases: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", dict(self.values))
        for name in self.values:
            if not name.isidentifier() or name in TAKEN:
                raise self._broken(name, "a hyperparameter is a name that means nothing else")
        self.path([(Fraction(1), ZERO)] * 2)  # reads the whole text, also with a state

    @property
    def parameters(self) -> tuple[str, ...]:
        """The hyperparameters with their values: ``decay=0``."""
        values = self.values.items()
        return tuple(f"{name}={str(value).replace(' ', '*')}" for name, value in values)

    @property
    def label(self) -> str:
        """Its name with its hyperparameters, as ``lookup`` takes it."""
        return f"{self.name}({', '.join(self.parameters)})" if self.values else self.name

    @property
    def rule(self) -> str:
        """Its lines, as one."""
        return "; ".join(name + " = " + line.strip() for name, line in self._written)

    @cached_property
    def settings(self) -> Mapping[str, Setting]:
        """The hyperparameters as numbers times powers of n."""
        return {name: self._setting(name, value) for name, value in self.values.items()}

    def _setting(self, name: str, value: object) -> Setting:
        return setting(value, f"the hyperparameter {name} of {self.name}")

    def with_settings(self, **values: object) -> Optimizer:
        """The same optimizer with other hyperparameters.

        Args:
            values: By name.

        Raises:
            UnknownName: It has no such hyperparameter.
            StudyError: A value that is neither a number nor a number times a power of n.
        """
        for name, value in values.items():
            if name not in self.values:
                raise UnknownName(f"hyperparameter of {self.name}", name, list(self.values))
            self._setting(name, value)
        return replace(self, values={**self.values, **values}) if values else self

    @cached_property
    def is_plain(self) -> bool:
        """Whether it is w - lr g."""
        first = self.path([(Fraction(1), ZERO)])
        return len(self._written) == 1 and first.moves == ((ZERO, -Var(0)),) and self._keeps(first)

    @staticmethod
    def _keeps(path: Path) -> bool:
        return path.start == ((ZERO, Fraction(1)),)

    @cached_property
    def is_lasting(self) -> bool:
        """Whether updates are sums of gradients, or bounded functions of them, at every step."""
        numbers = {name: value != 0 for name, (value, _) in self.settings.items()}
        return is_lasting(self._lines, {**numbers, "lr": True, "t": True})

    @cached_property
    def has_units(self) -> bool:
        """Whether it acts on 2 w in another way than on w: by decay, or by eps."""
        path = self.path([(Fraction(1), ZERO)])
        fn = Fn(add(psi for _, psi in path.moves), 1)
        near, far = (float(evaluate(fn, [x])) for x in (0.75, 3.0))
        homogeneous = abs(far - near * 4.0**self.degree) < 1e-9 * abs(near)
        return not (self._keeps(path) and homogeneous)

    @cached_property
    def degree(self) -> int:
        """The degree of an update in the gradient: 1 of sums of gradients, 0 of Adam and sign.

        What vanishes beside the gradient (eps) counts as absent.

        Raises:
            StudyError: Updates have no degree of 0 or 1.
        """
        bare = self.with_settings(eps=0) if "eps" in self.values else self
        moves = bare.path([(Fraction(1), ZERO)]).moves
        fn = Fn(add(psi for _, psi in moves), 1)
        near, far = (float(evaluate(fn, [x])) for x in (0.75, 3.0))
        for degree in (0, 1):
            if near and abs(far / near - 4.0**degree) < 1e-9:
                return degree
        raise StudyError(
            f"an update of {self.name} is neither linear in the gradient nor of degree 0.",
            hint="Learning rates are known for such optimizers alone.",
        )

    @cached_property
    def _written(self) -> tuple[tuple[str, str], ...]:
        lines = [line for line in self.program.splitlines() if line.strip()]
        found = [line.partition("=") for line in lines]
        return tuple((name.strip(), text) for name, _, text in found)

    @cached_property
    def _lines(self) -> tuple[tuple[str, ast.expr], ...]:
        found = []
        for name, text in self._written:
            if name in ("lr", "t", *_FUNCTIONS, *self.values):
                raise self._broken(name, "a line stands for w, g or a part of the state")
            if not name.isidentifier():
                raise self._broken(name, "a line is 'name = formula'")
            written = _PRODUCT.sub("*", text.strip()).replace("^", "**")
            try:
                found.append((name, ast.parse(written, mode="eval").body))
            except SyntaxError as error:
                raise self._broken(text.strip(), str(error.msg)) from None
        if "w" not in dict(found):
            raise self._broken(self.program.strip(), "no line says what becomes of w")
        return tuple(found)

    def _broken(self, text: str, reason: str) -> StudyError:
        return StudyError(
            f"{text!r} cannot be read: {reason}.",
            where=f"optimizer {self.name}",
            hint="Write lines such as 'm = b1 m + (1 - b1) g' and 'w = w - lr m'.",
        )

    def path(self, rates: Sequence[Rate]) -> Path:
        """What a parameter has become, as a function of its gradients.

        Args:
            rates: For each step the factor and the exponent c of its learning rate.

        Raises:
            StudyError: An update that is a nonlinear function of the initial value, or of sums
                with several powers of n.
        """
        return _path(self, tuple(self.settings.items()), tuple(rates))


@lru_cache(maxsize=4096)
def _path(
    optimizer: Optimizer, values: tuple[tuple[str, Setting], ...], rates: tuple[Rate, ...]
) -> Path:
    shift = next((-power for name, (_, power) in values if name == "eps"), ZERO)
    weight, _ = _walked(optimizer, values, rates, shift)
    start: dict[Ex, Number] = {}
    moves: dict[Ex, Expr] = {}
    for exponent, expr in weight.items():
        kept = derivative(expr, START)
        if not isinstance(kept, Const):
            raise StudyError(
                "an entrywise function of the initial weights, a random matrix with entries of "
                "its own, is outside the theory.",
                where=f"optimizer {optimizer.name}",
                hint="Decouple the decay: w = (1 - lr decay) w - lr (...), as in adamw.",
            )
        if kept.value != 0:
            start[exponent] = kept.value
        moved = _signed(substitute(expr, {START: const(0)}))
        if _divides(moved):
            raise optimizer._broken(moved.text, UNBOUNDED)
        if moved != const(0):
            moves[exponent] = moved
    return Path(tuple(start.items()), tuple(moves.items()), shift)


@lru_cache(maxsize=4096)
def _walked(
    optimizer: Optimizer,
    values: tuple[tuple[str, Setting], ...],
    rates: tuple[Rate, ...],
    shift: Ex,
) -> tuple[Powers, dict[str, Powers]]:
    """The weight and the state after some steps."""
    if not rates:
        return {ZERO: START}, {}
    weight, state = _walked(optimizer, values, rates[:-1], shift)
    step, (factor, exponent) = len(rates), rates[-1]
    names: dict[str, Powers] = {name: _number(*value) for name, value in values}
    names |= {name: state.get(name, {}) for name, _ in optimizer._lines}
    names |= {
        "w": weight,
        "g": {-shift: Var(step - 1)},
        "t": _number(Fraction(step), ZERO),
        "lr": _number(factor, -exponent),
    }
    reader = _Reader(optimizer, names)
    for name, line in optimizer._lines:
        names[name] = {p: _rounded(expr) for p, expr in reader.read(line).items()}
    kept = {name: names[name] for name, _ in optimizer._lines if name not in ("w", "g")}
    return names["w"], kept


def _number(value: Number, power: Ex) -> Powers:
    return {power: const(value)} if value != 0 else {}


class _Reader:
    """Formulas of the text as sums of powers of n."""

    def __init__(self, optimizer: Optimizer, names: Mapping[str, Powers]) -> None:
        self._of, self._names, self._at = optimizer, names, ""

    def read(self, node: ast.expr) -> Powers:
        if isinstance(node, ast.Constant) and type(node.value) in (int, float):
            return _number(exact(node.value, what="a number"), ZERO)
        if isinstance(node, ast.Name):
            if node.id not in self._names:
                raise UnknownName(f"name in optimizer {self._of.name}", node.id, self._known)
            return self._names[node.id]
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
            inner = self.read(node.operand)
            return _times(inner, -1) if isinstance(node.op, ast.USub) else inner
        if isinstance(node, ast.BinOp) and type(node.op) in _OPERATIONS:
            left, right = self.read(node.left), self.read(node.right)
            self._at = ast.unparse(node)
            return _OPERATIONS[type(node.op)](self, left, right)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and len(node.args) == 1:
            if node.func.id not in _FUNCTIONS:
                raise UnknownName(
                    f"function in optimizer {self._of.name}", node.func.id, _FUNCTIONS
                )
            degree, function = _FUNCTIONS[node.func.id]
            inner = self.read(node.args[0])
            return self._single(inner, degree, function)
        raise self._of._broken(ast.unparse(node), "it is no formula")

    @property
    def _known(self) -> list[str]:
        return sorted(self._names)

    def _single(self, value: Powers, degree: Fraction, function: Callable[[Expr], Expr]) -> Powers:
        """A homogeneous function of one power of n."""
        if not value:
            return {}
        if len(value) > 1:
            powers = " and ".join(f"n^({exponent})" for exponent in value)
            raise StudyError(
                f"a nonlinear function of a sum of {powers}.",
                where=f"optimizer {self._of.name}",
                hint="Entrywise functions take the gradient beside eps alone; decouple the decay.",
            )
        ((exponent, expr),) = value.items()
        return {exponent * degree: function(expr)}

    def product(self, left: Powers, right: Powers) -> Powers:
        return _sum([{p + q: mul((a, b))} for p, a in left.items() for q, b in right.items()])

    def over(self, left: Powers, right: Powers) -> Powers:
        if not right:
            raise self._of._broken(self._at, "a division by 0")
        return self.product(left, self._single(right, Fraction(-1), self._reciprocal))

    def raised(self, left: Powers, right: Powers) -> Powers:
        exponent = right.get(ZERO, const(0)) if len(right) <= 1 else START
        if not isinstance(exponent, Const) or set(right) - {ZERO}:
            raise self._of._broken(self._at, "a power is a number")
        number = Fraction(exponent.value)
        if number.denominator == 1 and number >= 0:
            found: Powers = _number(Fraction(1), ZERO)
            for _ in range(int(number)):
                found = self.product(found, left)
            return found
        if number < 0:
            return self.over(_number(Fraction(1), ZERO), self.raised(left, {ZERO: const(-number)}))
        return self._single(left, number, lambda expr: power(expr, number))

    def _reciprocal(self, expr: Expr) -> Expr:
        """One over a number, over a root that is 0 where gradients are, or over a shifted one."""
        if isinstance(expr, Const) or least(expr) > 0:
            return power(expr, Fraction(-1))
        number, rest = (
            (expr.factors[0], mul(expr.factors[1:])) if isinstance(expr, Mul) else (const(1), expr)
        )
        if (
            isinstance(rest, Pow)
            and rest.exponent > 0
            and isinstance(number, Const)
            and least(rest.base) >= 0
        ):
            return mul((power(number, Fraction(-1)), reciprocal(rest.exponent)(rest.base)))
        raise self._of._broken(self._at, UNBOUNDED)


def _sum(parts: Iterable[Powers]) -> Powers:
    terms: dict[Ex, list[Expr]] = {}
    for part in parts:
        for exponent, expr in part.items():
            terms.setdefault(exponent, []).append(expr)
    found = {exponent: add(exprs) for exponent, exprs in terms.items()}
    return {exponent: expr for exponent, expr in found.items() if expr != const(0)}


def _times(value: Powers, number: int) -> Powers:
    return {exponent: mul((const(number), expr)) for exponent, expr in value.items()}


_OPERATIONS: dict[type, Callable[[_Reader, Powers, Powers], Powers]] = {
    ast.Add: lambda reader, left, right: _sum((left, right)),
    ast.Sub: lambda reader, left, right: _sum((left, _times(right, -1))),
    ast.Mult: _Reader.product,
    ast.Div: _Reader.over,
    ast.Pow: _Reader.raised,
}
# Homogeneous functions: their degree, and what they make of an expression.
_FUNCTIONS: dict[str, tuple[Fraction, Callable[[Expr], Expr]]] = {
    "sqrt": (Fraction(1, 2), lambda expr: _square_root(expr)),
    "sign": (Fraction(0), lambda expr: sign_of(SIGN, expr)),
    "abs": (Fraction(1), ABS),
}
TAKEN = ("w", "g", "lr", "t", *_FUNCTIONS)  # names that every text has


def _square_root(expr: Expr) -> Expr:
    if isinstance(expr, Const):
        return const(root(Fraction(expr.value)))
    return power(expr, Fraction(1, 2))


def _signed(expr: Expr) -> Expr:
    """A sum whose quotients of a single gradient are signs: b g / sqrt(a g^2)."""
    if isinstance(expr, Add):
        return add(_signed(term) for term in expr.terms)
    used = {part for part in walk(expr) if isinstance(part, Var)}
    divided = [p for p in walk(expr) if isinstance(p, Call) and p.atom.name == RECIPROCAL]
    if len(used) != 1 or len(divided) != 1 or not isinstance(expr, Mul):
        return expr
    (own,), call = used, divided[0]
    half = call.atom.params == (Fraction(1, 2),)
    above = mul(factor for factor in expr.factors if factor is not call)
    b, a = derivative(above, own), derivative(derivative(call.arg, own), own)
    if not half or not isinstance(b, Const) or not isinstance(a, Const):
        return expr
    size = root(Fraction(a.value) / 2, Fraction(-1, 2))
    return mul((b, const(size), SIGN(own)))


def _divides(expr: Expr) -> bool:
    """Whether something is divided by a root that may be 0 where it is not."""
    for part in walk(expr):
        factors = part.factors if isinstance(part, Mul) else (part,)
        for below in factors:
            if isinstance(below, Call) and below.atom.name == RECIPROCAL:
                used = (own for own in walk(below.arg) if isinstance(own, Var))
                none: dict[Expr, Expr] = dict.fromkeys(used, const(0))
                above = mul(factor for factor in factors if factor is not below)
                if isinstance(part, Mul) and substitute(above, none) != const(0):
                    return True
    return False


def _rounded(expr: Expr) -> Expr:
    """An expression whose long fractions are floats."""
    if isinstance(expr, Const):
        long = isinstance(expr.value, Fraction) and expr.value.denominator > LONG
        return const(float(expr.value)) if long else expr
    below = children(expr)
    parts = [_rounded(part) for part in below]
    if all(a is b for a, b in zip(parts, below, strict=True)):
        return expr
    if isinstance(expr, Add):
        return add(parts)
    if isinstance(expr, Mul):
        return mul(parts)
    if isinstance(expr, Pow):
        return power(parts[0], expr.exponent)
    assert isinstance(expr, Call)
    return expr.atom(parts[0])
