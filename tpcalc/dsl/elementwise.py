"""Coordinatewise functions as a user calls them: ``tp.relu(h)``, and the user's own.

A function can be handed over in three ways: as a formula (a Python function of operators and of
other tpcalc functions, or a sympy expression), which is differentiated by itself; as a numpy-style
function with ``derivative=``; or as a numpy-style function alone, which runs forward only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from numbers import Real
from typing import Any, overload

from tpcalc.dsl.handles import Scalar, scalar_fn
from tpcalc.dsl.operands import Number, Operand, last_user_line, misuse, noun, number_or_none
from tpcalc.dsl.vectors import Vector, nonlin
from tpcalc.errors import NotDifferentiable, TpcalcError, raised
from tpcalc.functions import Atom, Call, Expr, Fn, Par, Var, const
from tpcalc.functions.expr import substitute
from tpcalc.functions.tape import evaluate


class Elementwise:
    """A function of one variable, applied to each coordinate.

    Args:
        name: Its name.
        expr: The function, of the argument ``x0``.
        doc: Its docstring.

    Example:
        >>> square = Elementwise("square", Var(0) ** 2)
        >>> square(3.0), square(Var(1)).text
        (9.0, 'x1**2')
    """

    def __init__(self, name: str, expr: Expr, doc: str | None = None) -> None:
        self.__name__ = name
        self.__qualname__ = name
        self.__doc__ = doc or _doc(name, expr)
        self._fn = Fn(expr, 1)

    @property
    def expr(self) -> Expr:
        """The function, of the argument ``x0``."""
        return self._fn.expr

    @property
    def atom(self) -> Atom | None:
        """The named function that this is; None for a composite."""
        expr = self.expr
        return expr.atom if isinstance(expr, Call) and expr.arg == Var(0) else None

    @overload
    def __call__(self, z: Vector) -> Vector: ...
    @overload
    def __call__(self, z: Scalar) -> Scalar: ...
    @overload
    def __call__(self, z: Expr) -> Expr: ...
    @overload
    def __call__(self, z: float | Fraction) -> float: ...
    @overload
    def __call__(self, z: Any) -> Any: ...
    def __call__(self, z: Any) -> Any:
        if isinstance(z, Vector):
            return nonlin(self._fn, [z])
        if isinstance(z, Scalar):
            return scalar_fn(substitute(self.expr, {Var(0): Par(0)}), [z])
        if isinstance(z, Expr):
            return substitute(self.expr, {Var(0): z})
        if isinstance(z, list | tuple) and any(isinstance(item, Operand) for item in z):
            return [self(item) for item in z]
        return self._number(z)

    def _number(self, z: Any) -> Any:
        import numpy as np

        if not isinstance(z, Operand):
            value = number_or_none(z)
            if value is not None:
                return float(evaluate(self._fn, [np.float64(value)]))
            array = _real_array(z)
            if array is not None:
                return np.broadcast_to(evaluate(self._fn, [array]), array.shape).copy()
        hint = "It takes a vector or scalar of a program, a number or an array."
        if isinstance(z, Operand):
            hint = "Coordinatewise functions act on vectors; entrywise ones on a matrix, t.outer."
        raise misuse(f"{self.__name__} cannot take {noun(z)}.", hint)

    def __repr__(self) -> str:
        return f"<function {self.__name__}: x0 -> {self.expr.text}>"


def _real_array(z: Any) -> Any:
    """An array of floats; None for what does not hold real numbers alone."""
    import numpy as np

    try:
        array = np.asarray(z)
    except ValueError:  # rows of different lengths
        return None
    exact = array.dtype == object and all(isinstance(item, Real) for item in array.flat)
    return array.astype(float) if exact or array.dtype.kind in "biuf" else None


def _doc(name: str, expr: Expr) -> str:
    return (
        f"{name} of each coordinate: x0 -> {expr.text}.\n\n"
        "Args:\n"
        "    z: A vector or scalar of a program, a number, or an array.\n\n"
        "Returns:\n"
        "    The same kind.\n\n"
        "Example:\n"
        f"    >>> y = {name}(0.5)\n"
    )


@dataclass(frozen=True, eq=False)
class UserAtom(Atom):
    """A named function that a user gave as code.

    It equals itself alone: two functions of one name may hold different code, and what was computed
    for one is never used for the other.
    """

    line: str | None = field(default=None, repr=False)  # the user's line that made it

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return hash((self.name, id(self)))

    def differentiate(self, arg: Expr) -> Expr:
        if self.derivative is None:
            raise NotDifferentiable(
                f"the function {self.name!r} has no derivative, and a backward pass goes through "
                "it.",
                where=self.line,
                hint="Give derivative= to tp.function: a function, or a sympy expression.",
            )
        return self.derivative(arg)


def expression(rule: object, what: str) -> Expr:
    """What a function gives for the argument ``x0``.

    Example:
        >>> expression(lambda z: z * z, "a function").text
        'x0**2'
    """
    own = "Write it as tp.tanh, or numeric code as tp.function(name, evaluate, ...)."
    if not callable(rule):
        raise misuse(f"{what} is needed, not {noun(rule)}.", own)
    try:
        found = rule(Var(0))
    except TpcalcError:
        raise
    except Exception as error:  # whatever code that expects numbers does with an expression
        name = getattr(rule, "__name__", type(rule).__name__)
        raise misuse(
            f"{name} does not take expressions, as {what} does: {raised(error)}.",
            own,
            where=last_user_line(error.__traceback__),
        ) from error
    if isinstance(found, Expr):
        return found
    value = number_or_none(found)
    if value is None:
        raise misuse(f"{what} is needed, not a function that gives {noun(found)}.", own)
    return const(value)


def elementwise(rule: Atom | Callable[[Expr], Expr], doc: str | None = None) -> Elementwise:
    """A named function as something to call on vectors, scalars, numbers and arrays.

    Args:
        rule: The named function, or anything that gives its value on an expression.
        doc: The docstring of the result.

    Returns:
        A function of vectors, scalars, numbers and arrays.

    Raises:
        TraceError: It does not give an expression.

    Example:
        >>> square = Atom("square", lambda xp, z: z * z, lambda z: 2 * z)
        >>> elementwise(square)([1.0, 2.0])
        array([1., 4.])
    """
    expr = expression(rule, "an activation")
    name = getattr(rule, "text", None) or getattr(rule, "__name__", "f")
    return Elementwise(str(name), expr, doc)


Coordinatewise = Elementwise | Atom | Fn | Callable[..., Any]


def formula_of(fn: Coordinatewise, vectors: int, scalars: int) -> Fn:
    """The function that a user hands over for one of coordinates."""
    if isinstance(fn, Fn):
        if (fn.vectors, fn.scalars) != (vectors, scalars):
            raise misuse(
                f"{fn.text} takes {fn.vectors} vectors and {fn.scalars} scalars; {vectors} and "
                f"{scalars} are given."
            )
        return fn
    if not callable(fn):
        raise misuse(
            f"a coordinatewise function is needed, not {noun(fn)}.",
            "Give an activation, or a Python function of the coordinates.",
        )
    return Fn(_formula(fn, vectors, scalars), vectors, scalars)


def _formula(fn: Callable[..., Any], vectors: int, scalars: int) -> Expr:
    """What a Python function computes from one coordinate of each vector, and the scalars."""
    name = getattr(fn, "__name__", type(fn).__name__)
    arguments = [*map(Var, range(vectors)), *map(Par, range(scalars))]
    try:
        found = fn(*arguments)
    except TpcalcError:
        raise
    except Exception as error:  # whatever the user's code raises is the news here
        raise misuse(
            f"the function {name!r} fails on a formula: {raised(error)}.",
            "Write it with tp.tanh (not np.tanh), or numpy code as tp.function(name, evaluate).",
        ) from error
    value: Number | None = None if isinstance(found, Expr | Operand) else number_or_none(found)
    if value is not None:
        return const(value)
    if not isinstance(found, Expr):
        raise misuse(
            f"the function {name!r} returns {noun(found)}, not a formula of its arguments.",
            "Hand vectors and scalars over as arguments; inside, use operators and tpcalc "
            "functions.",
        )
    return found
