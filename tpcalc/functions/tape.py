"""Lowering of expressions to a straight list of array operations, and running it.

One tape serves every array library: ``run`` takes the namespace ``xp`` (numpy here, torch in
``finite``). Equal subexpressions are computed once; a register is dropped at its last use, so a run
over cache-sized blocks keeps few temporaries.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

from tpcalc.functions.atoms import Atom, Call
from tpcalc.functions.expr import ONE, Add, Const, Expr, Mul, Par, Pow, Var, split_coefficient, walk
from tpcalc.functions.fn import Fn

ROUNDING = 1e-14
Step = Callable[[Any, list[Any]], Any]


@dataclass(frozen=True, slots=True)
class Tape:
    """Steps that fill one register each; registers start with vectors, then scalars."""

    # for each step the operation and the registers it reads
    steps: tuple[tuple[Step, tuple[int, ...]], ...]
    result: int  # the register that holds the value
    inputs: int  # number of vector and scalar arguments
    drops: tuple[tuple[int, ...], ...]  # for each step the registers that nothing reads after it


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
    writer = _Writer(fn)
    longer = (part for part in walk(fn.expr) if isinstance(part, Add) and len(part.terms) > 2)
    for part in sorted(longer, key=lambda part: len(part.terms)):
        writer.visit(part)
    result = writer.visit(fn.expr)  # fills the steps
    return Tape(tuple(writer.steps), result, writer.inputs, _last_uses(writer.steps, result))


class _Writer:
    """A tape that is written."""

    def __init__(self, fn: Fn) -> None:
        self.steps: list[tuple[Step, tuple[int, ...]]] = []
        self.vectors, self.inputs = fn.vectors, fn.vectors + fn.scalars
        self._registers: dict[Expr, int] = {}
        self._sums: list[tuple[dict[Expr, float], int]] = []

    def emit(self, step: Step, args: tuple[int, ...]) -> int:
        """The register of a new step."""
        self.steps.append((step, args))
        return self.inputs + len(self.steps) - 1

    def visit(self, expr: Expr) -> int:
        """The register of an expression."""
        if expr not in self._registers:
            self._registers[expr] = self._visited(expr)
        return self._registers[expr]

    def _visited(self, expr: Expr) -> int:
        if isinstance(expr, Var):
            return expr.index
        if isinstance(expr, Par):
            return self.vectors + expr.index
        if isinstance(expr, Const):
            return self.emit(_constant(float(expr.value)), ())
        if isinstance(expr, Add):
            return self._sum(expr)
        if isinstance(expr, Mul):
            return _fold(_mul, [self.visit(factor) for factor in expr.factors], self.emit)
        if isinstance(expr, Pow):
            return self.emit(_power(expr.exponent), (self.visit(expr.base),))
        assert isinstance(expr, Call)  # every expression class is listed here
        if isinstance(expr.arg, Const):
            return self.emit(_constant(_at_number(expr.atom, float(expr.arg.value))), ())
        return self.emit(_call(expr), (self.visit(expr.arg),))

    def _sum(self, expr: Add) -> int:
        """A sum, from a multiple of the last one that it goes on: averages over time do."""
        numbers = dict(_parts(term) for term in expr.terms)
        found = ((_factor(known, numbers), known, at) for known, at in reversed(self._sums))
        factor, known, start = next((one for one in found if one[0]), (0.0, {}, 0))
        left = [term for term in expr.terms if _parts(term)[0] not in known]
        if not known:
            start = self.visit(left.pop(0))
        elif factor != 1.0:
            start = self.emit(_mul, (self.emit(_constant(factor), ()), start))
        place = start
        for term in left:
            rest, number = _parts(term)
            if number == -1.0 and isinstance(term, Mul):
                place = self.emit(_subtract, (place, self.visit(rest)))
            else:
                place = self.emit(_add, (place, self.visit(term)))
        self._sums.append((numbers, place))
        return place


def _parts(term: Expr) -> tuple[Expr, float]:
    """What stands behind the number of a term, and this number."""
    number, rest = split_coefficient(term)
    return ONE if rest is None else rest, float(number)


def _factor(known: Mapping[Expr, float], numbers: Mapping[Expr, float]) -> float:
    """What a known sum is to be multiplied with to be a part of a sum of more terms; 0: it is none.

    Numbers were rounded: ratios that are as close are the same.
    """
    if not 1 < len(known) < len(numbers):
        return 0.0
    factor = 0.0
    for rest, number in known.items():
        ratio = numbers.get(rest, 0.0) / number
        factor = factor or ratio
        if ratio == 0.0 or abs(ratio / factor - 1.0) > ROUNDING:
            return 0.0
    return factor


def _last_uses(
    steps: list[tuple[Step, tuple[int, ...]]], result: int
) -> tuple[tuple[int, ...], ...]:
    seen = {result}
    drops: list[tuple[int, ...]] = []
    for _, places in reversed(steps):
        drops.append(tuple(place for place in dict.fromkeys(places) if place not in seen))
        seen.update(places)
    return tuple(reversed(drops))


def _fold(step: Step, places: list[int], emit: Callable[[Step, tuple[int, ...]], int]) -> int:
    place = places[0]
    for other in places[1:]:
        place = emit(step, (place, other))
    return place


def _constant(value: float) -> Step:
    return lambda xp, args: value


def _add(xp: Any, args: list[Any]) -> Any:
    return args[0] + args[1]


def _subtract(xp: Any, args: list[Any]) -> Any:
    return args[0] - args[1]


def _mul(xp: Any, args: list[Any]) -> Any:
    return args[0] * args[1]


def _power(exponent: Fraction) -> Step:
    if exponent.denominator == 1:
        whole = int(exponent)
        return lambda xp, args: whole_power(args[0], whole)
    if exponent == Fraction(1, 2):
        return lambda xp, args: _root(xp, args[0])
    real = float(exponent)
    return lambda xp, args: _real_power(args[0], real)


def whole_power(base: Any, exponent: int) -> Any:
    """Power by repeated squaring: array libraries take a hundred times longer through pow."""
    if exponent < 0:
        below = whole_power(base, -exponent)
        if isinstance(below, float | int) and below == 0:  # Python would raise, arrays do not
            return math.copysign(math.inf, below)
        return 1.0 / below
    out, square = None, base
    while True:
        if exponent & 1:
            out = square if out is None else out * square
        exponent >>= 1
        if not exponent:
            return out
        square = square * square


def _root(xp: Any, base: Any) -> Any:
    return _real_power(base, 0.5) if isinstance(base, float | int) else xp.sqrt(base)


def _real_power(base: Any, exponent: float) -> Any:
    if not isinstance(base, float | int):
        return base**exponent
    if base < 0:  # Python would turn to complex numbers
        return math.nan
    if base == 0:
        return 0.0 if exponent > 0 else math.inf
    try:
        return math.pow(base, exponent)
    except OverflowError:
        return math.inf


def _at_number(atom: Atom, value: float) -> float:
    import numpy as np

    with np.errstate(all="ignore"):
        return float(atom.evaluate(numpy_space(), np.float64(value)))


def _call(expr: Call) -> Step:
    evaluate_atom = expr.atom.evaluate
    return lambda xp, args: evaluate_atom(xp, args[0])


def run(tape: Tape, xp: Any, arguments: Sequence[Any]) -> Any:
    """Run a tape on vectors then scalars; broadcasting follows the array library.

    The result of a constant function is a plain float: the caller broadcasts it.
    """
    registers = list(arguments)
    for (step, places), drops in zip(tape.steps, tape.drops, strict=True):
        registers.append(step(xp, [registers[place] for place in places]))
        for place in drops:
            registers[place] = None
    return registers[tape.result]


@lru_cache(maxsize=1)
def numpy_space() -> NumpySpace:
    """The shared numpy namespace (stateless)."""
    return NumpySpace()


def evaluate(fn: Fn, vectors: Sequence[Any], scalars: Sequence[Any] = ()) -> Any:
    """Evaluate a function on numpy arrays or floats.

    Example:
        >>> import numpy as np
        >>> evaluate(Fn(Var(0) ** 2 * Par(0), 1, 1), [np.array([1.0, 2.0])], [3.0])
        array([ 3., 12.])
    """
    return run(lower(fn), numpy_space(), [*vectors, *scalars])


def values(fn: Fn, at: Any) -> Any:
    """A function of one number at each entry of an array, as floats; constants have all of them.

    Example:
        >>> import numpy as np
        >>> values(Fn(Var(0) * 0 + 2, 1), np.array([1.0, 2.0]))
        array([2., 2.])
    """
    import numpy as np

    at = np.asarray(at, dtype=np.float64)
    with np.errstate(all="ignore"):
        found = np.asarray(evaluate(fn, [at]), dtype=np.float64)
    return np.broadcast_to(found, at.shape)
