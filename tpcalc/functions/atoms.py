"""Atoms: named functions of one variable, with their derivative and declared facts.

An atom is defined once (in ``activations/entries`` or by a user) and everything else reads it:
the backward pass its derivative, the engine its evaluation, the exponent calculus its facts.
"""

from __future__ import annotations

import keyword
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from math import inf
from types import FunctionType
from typing import Any, Literal, Protocol

from tpcalc.errors import NotDifferentiable, TraceError
from tpcalc.functions.expr import Expr
from tpcalc.functions.numbers import Number, finite, number_text

Parity = Literal["even", "odd", "none"]


class Degree(Protocol):
    """A degree that may hold symbols: a fraction, or a polynomial in symbols (an ``Ex``).

    Example:
        >>> half: Degree = Fraction(1, 2)
        >>> half + half
        Fraction(1, 1)
    """

    def __add__(self, other: Any, /) -> Any: ...

    def __sub__(self, other: Any, /) -> Any: ...

    def __mul__(self, other: Any, /) -> Any: ...


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known about a function of one variable."""

    parity: Parity = "none"  # "even", "odd" or "none"
    # the p with f(cz) = c^p f(z) for every c > 0, or None; it may hold symbols
    homogeneity: Degree | None = None
    # points where f is not smooth: f or a derivative jumps or is unbounded
    kinks: tuple[float, ...] = ()
    # degree of the smallest polynomial bound of |f|; None if f grows faster; it may hold symbols
    growth: Degree | None = Fraction(1)
    # a k such that |log |f|| is at most of order |z|^k far from 0, for a growth of None: 0 of
    # logarithms; None where nothing is known
    order: int | None = None
    value_at_zero: float = 0.0  # f(0)
    slope_at_zero: float | None = None  # f'(0), or None where f has no derivative at 0
    least: float = -inf  # a number that f is nowhere below
    # whether f is positive and log(1/f) grows at most linearly, so that 1/f of a Gaussian has all
    # moments
    tame: bool = False
    # whether f is the sum of its Taylor series near every point that is no kink, and the derivative
    # that is given is its own
    analytic: bool = True
    # whether the derivative that is given may be another's, so that backward passes take it and
    # nothing is concluded from it
    surrogate: bool = False
    # a P with f(z + P) = f(z), where there is one; kinks of all periods are declared as far as an
    # average is to see them
    period: float | None = None


@dataclass(frozen=True, eq=False)
class Atom:
    """A named function of one variable.

    Two atoms are equal when name, parameters and facts are, and their functions come from the same
    lines of code: a second function that a user gives the same name is another atom, and nothing
    that was computed for the first is used for it.

    Example:
        >>> from tpcalc.functions.expr import Var
        >>> square = Atom("square", lambda xp, z: z * z, lambda z: 2 * z)
        >>> square(Var(0)).text, square.differentiate(Var(0)).text
        ('square(x0)', '2*x0')
    """

    name: str  # the catalogue name, a Python identifier
    # evaluate(xp, z): the function on an array, written with the array namespace xp (exp, log,
    # tanh, sin, cos, erf, abs, maximum, minimum, where, sqrt, sign)
    evaluate: Callable[[Any, Any], Any] = field(repr=False)
    # the derivative as an expression of the argument; None where it is not a function (the
    # derivative of a jump)
    derivative: Callable[[Expr], Expr] | None = field(repr=False)
    facts: Facts = field(default=Facts(), repr=False)  # declared facts
    # parameters, such as the slope of a leaky ReLU. One that holds symbols is printed; such a text
    # is for reading alone.
    params: tuple[Number | Degree, ...] = ()
    # sympy(z): the function as a sympy expression, for display
    sympy: Callable[[Any], Any] | None = field(default=None, repr=False)
    # pieces(z): the same function, but for its values at kinks, made of sums and products of step,
    # normal_cdf, normal_pdf, exp, sin, cos, powers and constants, from which Gaussian expectations
    # follow in closed form. None where there is no such form, and for these functions themselves.
    pieces: Callable[[Expr], Expr] | None = field(default=None, repr=False)
    # near_zero(z, order): of a function with a kink at 0 a sum of smooth and homogeneous functions
    # that agrees with it there up to terms of a higher order
    near_zero: Callable[[Expr, int], Expr] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        readable = self.name.isidentifier() and not keyword.iskeyword(self.name)
        if not readable or unicodedata.normalize("NFKC", self.name) != self.name:
            raise TraceError(
                f"a function cannot be called {self.name!r}: programs are printed and read back.",
                hint="Give it a name of letters, digits and underscores.",
            )
        object.__setattr__(self, "params", tuple(map(_parameter, self.params)))

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Atom):
            return NotImplemented
        return (
            self.text == other.text
            and _same(self.evaluate, other.evaluate)
            and _same(self.derivative, other.derivative)
            and _same(self.pieces, other.pieces)
            and self.facts == other.facts
        )

    def __hash__(self) -> int:
        return hash((self.name, self.params))

    def __call__(self, arg: Expr) -> Expr:
        return Call(self, arg)

    def differentiate(self, arg: Expr) -> Expr:
        """The derivative at ``arg``."""
        if self.derivative is None:
            raise NotDifferentiable(
                f"{self.name} jumps, so its derivative is not a function.",
                hint="Correction terms take the Stein form and need no such derivative; "
                "a backward pass through it does. Use an activation without jumps.",
            )
        return self.derivative(arg)

    @property
    def jumps(self) -> bool:
        """Whether it may jump: it has no derivative of its own that is known."""
        return self.derivative is None or self.facts.surrogate

    @property
    def text(self) -> str:
        if not self.params:
            return self.name
        shown = (number_text(v) if isinstance(v, float | Fraction) else str(v) for v in self.params)
        return f"{self.name}[{', '.join(shown)}]"


def _parameter(value: Number | Degree) -> Number | Degree:
    return finite(value) if isinstance(value, float | Fraction | int) else value


def in_sympy(form: Callable[[Any, Any], Any]) -> Callable[[Any], Any]:
    """A form ``form(sympy, z)`` as a function of z that imports sympy when asked."""

    def shown(z: Any) -> Any:
        import sympy

        return form(sympy, z)

    return shown


def _same(left: object, right: object, depth: int = 1) -> bool:
    """Whether two functions do the same because they come from the same lines and values."""
    if left is right:
        return True
    if type(left) is not type(right):
        return False
    if isinstance(left, Atom) and isinstance(right, Atom):  # no deeper: an atom may hold itself
        return left.text == right.text
    if isinstance(left, FunctionType) and isinstance(right, FunctionType):
        return (
            depth >= 0
            and left.__module__ == right.__module__
            and left.__code__ == right.__code__
            and _same_values(left.__defaults__ or (), right.__defaults__ or (), depth)
            and _same_values(_held(left), _held(right), depth)
        )
    if isinstance(left, str | int | float | Fraction):
        return left == right
    return False


def _same_values(left: tuple[object, ...], right: tuple[object, ...], depth: int) -> bool:
    return len(left) == len(right) and all(
        _same(a, b, depth - 1) for a, b in zip(left, right, strict=True)
    )


def _held(function: FunctionType) -> tuple[object, ...]:
    """What the function took from around it; a name not yet bound stands for itself."""
    held: list[object] = []
    for cell in function.__closure__ or ():
        try:
            held.append(cell.cell_contents)
        except ValueError:
            held.append(None)
    return tuple(held)


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

    @property
    def parts(self) -> tuple[Expr, ...]:
        return (self.arg,)

    def made_of(self, parts: Sequence[Expr]) -> Expr:
        return self.atom(parts[0])

    @cached_property
    def text(self) -> str:
        return f"{self.atom.text}({self.arg.text})"
