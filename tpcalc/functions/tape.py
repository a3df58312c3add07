"""Lowering of expressions to a straight list of array operations, and running it.

One tape serves every array library: ``run`` takes the namespace ``xp`` (numpy here, torch in
``finite``). Equal subexpressions are computed once; a register is dropped at its last use, so a run
over cache-sized blocks keeps few temporaries.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from tpcalc.functions.expr import Add, Call, Const, Expr, Mul, Par, Pow, Var
from tpcalc.functions.fn import Fn

__all__ = ["NumpySpace", "Tape", "evaluate", "lower", "run"]

Step = Callable[[Any, list[Any]], Any]


@dataclass(frozen=True, slots=True)
class Tape:
    """Steps that fill one register each; registers start with vectors, then scalars."""

    steps: tuple[tuple[Step, tuple[int, ...]], ...]
    result: int
    inputs: int


class NumpySpace:
    """The array namespace of numpy, with scipy's special functions loaded on first use."""

    def __init__(self) -> None:
        import numpy as np

        self.exp, self.log, self.sqrt = np.exp, np.log, np.sqrt
        self.tanh, self.sin, self.cos = np.tanh, np.sin, np.cos
        self.abs, self.sign, self.where = np.abs, np.sign, np.where
        self.maximum, self.minimum, self.log1p = np.maximum, np.minimum, np.log1p

    @property
    def erf(self) -> Callable[[Any], Any]:
        """The error function."""
        from scipy.special import erf

        found: Callable[[Any], Any] = erf
        return found


@lru_cache(maxsize=4096)
def lower(fn: Fn) -> Tape:
    """The tape of a function."""
    steps: list[tuple[Step, tuple[int, ...]]] = []
    registers: dict[Expr, int] = {}
    inputs = fn.vectors + fn.scalars

    def emit(step: Step, args: tuple[int, ...]) -> int:
        steps.append((step, args))
        return inputs + len(steps) - 1

    def visit(expr: Expr) -> int:
        if expr in registers:
            return registers[expr]
        if isinstance(expr, Var):
            place = expr.index
        elif isinstance(expr, Par):
            place = fn.vectors + expr.index
        elif isinstance(expr, Const):
            place = emit(_constant(float(expr.value)), ())
        elif isinstance(expr, Add):
            place = _fold(_add, [visit(term) for term in expr.terms], emit)
        elif isinstance(expr, Mul):
            place = _fold(_mul, [visit(factor) for factor in expr.factors], emit)
        elif isinstance(expr, Pow):
            place = emit(_power(expr), (visit(expr.base),))
        elif isinstance(expr, Call):
            place = emit(_call(expr), (visit(expr.arg),))
        else:  # every expression class is listed above
            raise AssertionError(type(expr))
        registers[expr] = place
        return place

    result = visit(fn.expr)  # fills the steps
    return Tape(tuple(steps), result, inputs)


def _fold(step: Step, places: list[int], emit: Callable[[Step, tuple[int, ...]], int]) -> int:
    place = places[0]
    for other in places[1:]:
        place = emit(step, (place, other))
    return place


def _constant(value: float) -> Step:
    return lambda xp, args: value


def _add(xp: Any, args: list[Any]) -> Any:
    return args[0] + args[1]


def _mul(xp: Any, args: list[Any]) -> Any:
    return args[0] * args[1]


def _power(expr: Pow) -> Step:
    exponent = expr.exponent
    if exponent == 2:
        return lambda xp, args: args[0] * args[0]
    if exponent == -1:
        return lambda xp, args: 1.0 / args[0]
    if exponent.denominator == 1:
        whole = int(exponent)
        return lambda xp, args: args[0] ** whole
    real = float(exponent)
    return lambda xp, args: args[0] ** real


def _call(expr: Call) -> Step:
    evaluate_atom = expr.atom.evaluate
    return lambda xp, args: evaluate_atom(xp, args[0])


def run(tape: Tape, xp: Any, arguments: Sequence[Any]) -> Any:
    """Run a tape on vectors then scalars; broadcasting follows the array library.

    The result of a constant function is a plain float: the caller broadcasts it.
    """
    registers = list(arguments)
    for step, places in tape.steps:
        registers.append(step(xp, [registers[place] for place in places]))
    return registers[tape.result]


@lru_cache(maxsize=1)
def numpy_space() -> NumpySpace:
    """The shared numpy namespace (stateless)."""
    return NumpySpace()


def evaluate(fn: Fn, vectors: Sequence[Any], scalars: Sequence[Any] = ()) -> Any:
    """Evaluate a function on numpy arrays or floats.

    Args:
        fn: The function.
        vectors: Arrays of one shape, one for each vector argument.
        scalars: Floats, one for each scalar argument.

    Returns:
        An array of that shape (a float where the function is constant).

    Example:
        >>> import numpy as np
        >>> evaluate(Fn(Var(0) ** 2 * Par(0), 1, 1), [np.array([1.0, 2.0])], [3.0])
        array([ 3., 12.])
    """
    return run(lower(fn), numpy_space(), [*vectors, *scalars])
