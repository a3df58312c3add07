"""The first step of an optimizer's text by the sizes of what it reads, whole parameters included.

Entries of a gradient and of a weight stand for a power of n each times what is of order one. In a
function of a sum the largest power counts. A norm is a number of its size; of a polar factor the
entries have one size, as all singular values that are not 0 are 1.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from tpcalc.activations.entries.sign import SIGN
from tpcalc.exponents import as_ex
from tpcalc.functions import Expr, Var, const
from tpcalc.functions.expr import Add, walk
from tpcalc.functions.numbers import Number
from tpcalc.passes.separate import scaled
from tpcalc.training.optimizer_text import (
    FUNCTIONS,
    ZERO,
    Functions,
    OverArrays,
    Powers,
    number_of,
    sum_of,
    times,
)

START = Var(-2)  # the initial value, in expressions of gradients
SIDES = ("rows", "cols")
ONE = const(Fraction(1))
Numbers = tuple[tuple[str, tuple[Number, Fraction]], ...]  # hyperparameters


@dataclass(frozen=True, slots=True)
class Entries:
    """What a step reads of a parameter, as powers of n.

    Args:
        gradient: Of the entries of its gradient.
        weight: Of its own entries; None: it is 0.
        sides: The number of its infinite sides: of one it is the rows, but of a readout's.
        role: Its role.
        norm: Of the norm of the gradients of all parameters together; None: it is bounded.
    """

    gradient: Fraction
    weight: Fraction | None = Fraction(0)
    sides: int = 0
    role: str = ""
    norm: Fraction | None = None


@dataclass(frozen=True, slots=True)
class FirstStep:
    """What a first step does to a parameter."""

    # the exponent of what it adds to the entries beside multiples of the weight; None: 0
    size: Fraction | None
    share: Fraction | None  # that of the part of the weight that decay takes; None: it takes none
    is_along: bool  # whether the step is a number times the gradient
    by_weight: bool  # whether the weight stands where the gradient should decide


@lru_cache(maxsize=4096)
def first_step(
    name: str,
    lines: tuple[tuple[str, ast.expr], ...],
    settings: Numbers,
    rate: Fraction,
    at: Entries,
) -> FirstStep:
    """The first step of a text at a learning rate n^(-rate).

    Example:
        >>> text = (("w", ast.parse("w - lr * polar(g)", mode="eval").body),)
        >>> first_step("mine", text, (), Fraction(0), Entries(Fraction(-1), sides=2)).size
        Fraction(-1, 1)
    """
    start: Powers = {} if at.weight is None else {as_ex(at.weight): START}
    cols = at.sides if at.role == "readout" else at.sides // 2
    names = {own: number_of(number, as_ex(power)) for own, (number, power) in settings}
    names |= {part: {} for part, _ in lines}
    names |= {"w": start, "g": {as_ex(at.gradient): Var(0)}, "lr": {as_ex(-rate): ONE}}
    names |= {"t": {ZERO: ONE}, "rows": {as_ex(at.sides - cols): ONE}, "cols": {as_ex(cols): ONE}}
    reader = _BySizes(name, names, at)
    for part, line in lines:
        names[part] = reader.read(line)
    change = sum_of((names["w"], times(start, -1)))
    terms = [
        (power.at({}), term)
        for power, expr in change.items()
        for term in (expr.terms if isinstance(expr, Add) else (expr,))
    ]
    kept = [power - (at.weight or 0) for power, term in terms if scaled(term)[1] == START]
    moved = [(power, term) for power, term in terms if scaled(term)[1] != START]
    size = max((power for power, _ in moved), default=None)
    leading = [term for power, term in moved if power == size]
    along = all(scaled(term)[1] == Var(0) for term in leading)
    by_weight = any(part == START for term in leading for part in walk(term))
    return FirstStep(size, max(kept, default=None), along, by_weight)


class _BySizes(OverArrays):
    """Formulas in which of sums inside functions the largest power of n counts."""

    def __init__(self, name: str, names: Mapping[str, Powers], at: Entries) -> None:
        super().__init__(name, names)
        self.norm, self.half = at.norm, as_ex(Fraction(at.sides, 2))
        self._functions = {**FUNCTIONS, **WHOLE}

    def single(self, value: Powers, degree: Fraction, function: Callable[[Expr], Expr]) -> Powers:
        """A homogeneous function of the largest power."""
        return super().single(_leading(value), degree, function)


def _leading(*values: Powers) -> Powers:
    """The largest power of n; of equal ones that of the first."""
    terms = [pair for value in values for pair in value.items()]
    return dict([max(terms, key=lambda pair: pair[0].at({}))]) if terms else {}


def _polar(reader: _BySizes, value: Powers) -> Powers:
    """The exact polar factor: entries as those of a matrix of finite rank with norm one."""
    found = _leading(value)
    return {-reader.half: SIGN(*found.values())} if found else {}


def _ratio(reader: _BySizes, above: Powers, below: Powers) -> Powers:
    """A quotient, 1 where one of both is 0."""
    return reader.over(_leading(above), below) if above and below else {ZERO: ONE}


def _clipped(reader: _BySizes, value: Powers, limit: Powers) -> Powers:
    """A gradient, shortened where the norm of all gradients is above a limit."""
    left = [own.at({}) - reader.norm for own in _leading(limit) if reader.norm is not None]
    factor = as_ex(min([*left, Fraction(0)]))
    return {power + factor: expr for power, expr in value.items()}


# Functions of a whole parameter, and of numbers that are made of one: their sizes.
WHOLE: Functions = {
    "norm": (1, lambda reader, value: {power + reader.half: ONE for power in _leading(value)}),
    "rms": (1, lambda reader, value: dict.fromkeys(_leading(value), ONE)),
    "polar": (1, _polar),
    "factored": (1, lambda reader, value: value),
    "ratio": (2, _ratio),
    "max": (2, lambda reader, left, right: _leading(left, right)),
    "clipped": (2, _clipped),
}
