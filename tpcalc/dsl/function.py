"""``function``: an activation of the user's own, checked when it is made."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Sequence
from fractions import Fraction
from math import ceil, isfinite, log10
from numbers import Rational
from typing import TYPE_CHECKING, Any, Literal

from tpcalc.dsl.elementwise import Elementwise, UserAtom
from tpcalc.dsl.operands import as_rational, locate, misuse, noun, number, number_or_none, user_line
from tpcalc.errors import NotDifferentiable, TpcalcError, UnknownName, raised
from tpcalc.functions import Atom, Call, Expr, Facts, Fn, Var, const
from tpcalc.functions import derivative as derivative_of
from tpcalc.functions.expr import substitute, walk
from tpcalc.functions.tape import lower, numpy_space, run

if TYPE_CHECKING:
    from tpcalc.functions.symbolic import AtomByName

Numeric = Callable[[Any, Any], Any]
Rule = Callable[[Expr], Expr]

# Points of no special meaning, so that no kink is likely to lie on one.
POINTS = (-1.7313, -0.9137, -0.2371, 0.3119, 0.8623, 1.9471)
REACH, CELLS, JUMP = 8.1, 2**14, 0.02  # where jumps are looked for; a kink is less on a cell


def function(
    name: str,
    evaluate: Any,
    derivative: Any = None,
    *,
    parity: Literal["even", "odd", "none"] | None = None,
    homogeneity: int | Fraction | str | None = None,
    kinks: Sequence[float] = (),
    growth: int | float | Fraction | None = None,
    atom_of: AtomByName | None = None,
    check: bool = True,
) -> Elementwise:
    """An activation of your own.

    Args:
        name: Its name in the program, a Python identifier.
        evaluate: The function: of one argument, written with operators and tpcalc functions (then
            its derivative is found) or with numpy's functions; or ``evaluate(xp, z)`` with the
            array namespace ``xp`` (``exp, log, log1p, sqrt, tanh, sin, cos, erf, abs, sign,
            maximum, minimum, where``), which also runs on a GPU; or a sympy expression of one
            symbol.
        derivative: Its derivative, in any of these ways. Without one, a function that is not a
            formula runs forward only.
        parity: Declare it ``"even"`` or ``"odd"``; not found out from numbers.
        homogeneity: Declare the p with f(cz) = c^p f(z) for all c > 0.
        kinks: Points where it or one of its first two derivatives jumps.
        growth: Degree of its smallest polynomial bound; measured if not given.
        atom_of: Gives the named functions that a sympy expression mentions.
        check: Compare the derivative with differences of the function. Say False for a surrogate
            derivative (a straight-through estimator): it is for backward passes alone.

    Returns:
        Something to call on vectors, scalars, numbers and arrays.

    Raises:
        TraceError: The name is not usable, the function does not act coordinate by coordinate, or
            its derivative does not fit.

    Example:
        >>> import numpy as np
        >>> slope = lambda z: -2 * z * np.exp(-z * z)
        >>> bump = function("bump", lambda z: np.exp(-z * z), slope, parity="even")
        >>> round(bump(1.0), 6)
        0.367879
    """
    if not isinstance(name, str) or not name.isidentifier() or re.fullmatch(r"[xs]\d+", name):
        raise misuse(
            f"a function cannot be called {name!r}.",
            "Use a Python identifier; x0, x1, ... and s0, s1, ... are arguments.",
        )
    declared = parity is not None or homogeneity is not None or growth is not None or bool(kinks)
    expr = _formula(name, evaluate, atom_of)
    if expr is not None and derivative is None and not declared:
        return Elementwise(name, expr)
    numeric = _numeric(name, evaluate) if expr is None else _run(expr)
    line = user_line()
    slope: Rule | None
    if derivative is None:
        slope = None if expr is None else _differentiated(expr)
    else:
        slope = _slope(name, derivative, atom_of, line)
    facts = Facts(
        parity=parity or "none",
        homogeneity=None if homogeneity is None else as_rational(homogeneity, "the homogeneity"),
        kinks=tuple(float(number(point, f"a kink of {name!r}")) for point in kinks),
        growth=_measured_growth(numeric) if growth is None else as_rational(growth, "the growth"),
        value_at_zero=_at(numeric, 0.0),
        slope_at_zero=None if slope is None or 0 in kinks else _slope_at_zero(slope),
        analytic=False,  # nobody knows
        surrogate=slope is not None and not (check and _is_own(numeric, slope, expr)),
    )
    atom = UserAtom(name, numeric, slope, facts, line=line)
    made = Elementwise(name, atom(Var(0)))
    _check_facts(atom)
    if derivative is not None and slope is not None and check:
        _check_derivative(name, numeric, slope)
    return made


# ------------------------------------------------------------------------- what was handed over


def _formula(name: str, given: Any, atom_of: AtomByName | None) -> Expr | None:
    """The expression of ``x0`` that was handed over; None for code that only takes numbers."""
    expr: Expr | None = None
    if isinstance(given, Elementwise):
        expr = given.expr
    elif isinstance(given, Atom):
        expr = given(Var(0))
    elif isinstance(given, Expr):
        expr = given
    elif _is_sympy(given):
        expr = _from_sympy(name, given, atom_of)
    elif callable(given):
        expr = None if _takes_namespace(given) else _traced(given)
    else:
        raise misuse(
            f"the function {name!r} must be code or a formula, not {noun(given)}.",
            "Give a Python function of one argument, or a sympy expression.",
        )
    if expr is not None and any(part.text[:1] in "xs" and part != Var(0) for part in _leaves(expr)):
        raise misuse(
            f"the formula of {name!r}, {expr.text}, has other arguments than x0.",
            "A function of several vectors goes to t.nonlin directly.",
        )
    return expr


def _leaves(expr: Expr) -> list[Expr]:
    return [part for part in walk(expr) if re.fullmatch(r"[xs]\d+", part.text)]


def _is_sympy(given: Any) -> bool:
    sympy = sys.modules.get("sympy")  # without it loaded nobody can hold one of its expressions
    return sympy is not None and isinstance(given, sympy.Basic)


def _from_sympy(name: str, given: Any, atom_of: AtomByName | None) -> Expr:
    from tpcalc.functions.symbolic import from_sympy

    symbols = sorted(given.free_symbols, key=str)
    if len(symbols) > 1:
        raise misuse(
            f"the sympy expression of {name!r} holds the symbols "
            f"{', '.join(str(symbol) for symbol in symbols)}.",
            "Leave one symbol free, the argument, and substitute numbers for the others.",
        )
    try:
        return from_sympy(given, {symbol: Var(0) for symbol in symbols}, atom_of or _no_atoms)
    except TpcalcError as error:
        locate(error)
        raise


def _no_atoms(name: str, *params: object) -> Atom:
    raise UnknownName("function", name, ())


def _takes_namespace(given: Callable[..., Any]) -> bool:
    """Whether this is ``evaluate(xp, z)``."""
    try:
        parameters = inspect.signature(given).parameters.values()
    except (TypeError, ValueError):  # numpy's own functions have no signature
        return False
    needed = [
        parameter
        for parameter in parameters
        if parameter.default is parameter.empty
        and parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    ]
    return len(needed) == 2


def _traced(given: Callable[[Any], Any]) -> Expr | None:
    """The formula that code computes, found by calling it on the argument ``x0``.

    Code that branches on its argument may compute one branch only, so numbers have the last word.
    """
    try:
        expr = given(Var(0))
    except Exception:  # code for numbers fails in its own ways on anything else
        return None
    if not isinstance(expr, Expr):
        return None
    import numpy as np

    try:
        with np.errstate(all="ignore"):
            values = np.asarray(given(np.array(POINTS)), dtype=float)
    except Exception:  # a formula that numpy cannot run, such as one of exact fractions
        return expr
    return expr if np.allclose(_values(_run(expr)), values, equal_nan=True) else None


def _numeric(name: str, given: Callable[..., Any]) -> Numeric:
    """Code for numbers as ``evaluate(xp, z)``, checked on a few points."""
    numeric: Numeric = given if _takes_namespace(given) else _Hosted(given)
    import numpy as np

    points = np.array(POINTS)
    try:
        with np.errstate(all="ignore"):
            block = np.asarray(numeric(numpy_space(), points.reshape(2, 3)), dtype=float)
            single = [float(numeric(numpy_space(), points[i : i + 1])[0]) for i in range(6)]
    except Exception as error:  # whatever the user's code raises is the news here
        raise misuse(
            f"the function {name!r} fails on an array: {raised(error)}.",
            "Write it with numpy's functions; np.where stands for `if`, np.abs for abs.",
        ) from error
    if block.shape != (2, 3) or not np.allclose(block.ravel(), single, equal_nan=True):
        raise misuse(
            f"the function {name!r} does not act on each coordinate by itself.",
            "Averages over coordinates are t.mean and t.moment, kept apart from activations.",
        )
    return numeric


class _Hosted:
    """Numpy code as ``evaluate(xp, z)``: arrays of another library travel through numpy."""

    def __init__(self, code: Callable[[Any], Any]) -> None:
        self._code = code

    def __call__(self, xp: Any, z: Any) -> Any:
        if hasattr(z, "new_tensor"):
            host = z.detach().double().cpu().numpy()
            return z.new_tensor(self._code(host))
        return self._code(z)


def _run(expr: Expr) -> Numeric:
    tape = lower(Fn(expr, 1))
    return lambda xp, z: run(tape, xp, [z])


# ---------------------------------------------------------------------------------- derivatives


def _differentiated(expr: Expr) -> Rule | None:
    try:
        slope = derivative_of(expr, Var(0))
    except NotDifferentiable:
        return None
    return lambda arg: substitute(slope, {Var(0): arg})


def _slope(name: str, given: Any, atom_of: AtomByName | None, line: str | None) -> Rule:
    """The derivative that was handed over, as a rule on expressions."""
    value = None if callable(given) else number_or_none(given)
    if value is not None:
        return lambda arg: const(value)
    prime = f"{name}_prime"
    expr = _formula(prime, given, atom_of)
    if expr is None:
        atom = UserAtom(prime, _numeric(prime, given), None, line=line)
        return atom
    return lambda arg: substitute(expr, {Var(0): arg})


def _check_derivative(name: str, numeric: Numeric, slope: Rule) -> None:
    import numpy as np

    points, step = np.array(POINTS), 1e-5
    with np.errstate(all="ignore"):
        above, below = (numeric(numpy_space(), points + shift) for shift in (step, -step))
        differences = (np.asarray(above) - np.asarray(below)) / (2 * step)
    given = _values(_run(slope(Var(0))))
    for point, is_now, should_be in zip(POINTS, given, differences, strict=True):
        if isfinite(should_be) and not abs(is_now - should_be) <= 1e-4 * (1 + abs(should_be)):
            raise misuse(
                f"the derivative of {name!r} does not fit: at {point} it is {is_now:.6g}, and the "
                f"function rises by {should_be:.6g}.",
                "Mend derivative=, or say check=False if a surrogate is what you want.",
            )


def _is_own(numeric: Numeric, slope: Rule, expr: Expr | None) -> bool:
    """Whether a function rises by its derivative on all small steps: it jumps nowhere."""
    import numpy as np

    parts = () if expr is None else walk(expr)
    if any(isinstance(part, Call) and part.atom.facts.surrogate for part in parts):
        return False
    ends = np.linspace(-REACH, REACH, CELLS + 1)
    middles, width = (ends[1:] + ends[:-1]) / 2, 2 * REACH / CELLS
    with np.errstate(all="ignore"):
        values = np.asarray(numeric(numpy_space(), ends), dtype=float)
        rises = _run(slope(Var(0)))(numpy_space(), middles) * width
        off = np.abs(np.diff(values) - rises)
    return not np.any(off > JUMP * (1 + np.abs(values[1:])))


# ---------------------------------------------------------------------------------------- facts


def _values(numeric: Numeric) -> Any:
    import numpy as np

    with np.errstate(all="ignore"):
        values = np.asarray(numeric(numpy_space(), np.array(POINTS)), dtype=float)
    return np.broadcast_to(values, (len(POINTS),))


def _at(numeric: Numeric, point: float) -> float:
    import numpy as np

    with np.errstate(all="ignore"):
        return float(np.asarray(numeric(numpy_space(), np.array([point])), dtype=float).ravel()[0])


def _slope_at_zero(slope: Rule) -> float | None:
    value = _at(_run(slope(Var(0))), 0.0)
    return value if isfinite(value) else None


def _measured_growth(numeric: Numeric) -> Fraction | None:
    """Degree of growth between 1e2 and 1e4, rounded up to halves; None beyond every float."""
    degree = Fraction(0)
    for sign in (-1.0, 1.0):
        near, far = (abs(_at(numeric, sign * size)) for size in (1e2, 1e4))
        if not isfinite(far) or not isfinite(near):
            return None
        if far > near > 0:
            rise = (log10(far) - log10(near)) / 2
            degree = max(degree, Fraction(ceil(2 * rise - 0.01), 2))
    return degree


def _check_facts(atom: UserAtom) -> None:
    """Refuse a declaration that the function's own numbers contradict."""
    import numpy as np

    points = np.array(POINTS)
    values = _values(atom.evaluate)
    with np.errstate(all="ignore"):
        mirrored = np.asarray(atom.evaluate(numpy_space(), -points), dtype=float)
        doubled = np.asarray(atom.evaluate(numpy_space(), 2 * points), dtype=float)
    facts = atom.facts
    sign = {"even": 1, "odd": -1}.get(facts.parity)
    if sign is not None and not np.allclose(mirrored, sign * values, equal_nan=True):
        raise misuse(
            f"the function {atom.name!r} is declared {facts.parity}, and its values are not.",
            "Leave parity= out where you are not sure.",
        )
    power = facts.homogeneity
    degree = float(power) if isinstance(power, Rational) else None
    if degree is not None and not np.allclose(doubled, 2.0**degree * values, equal_nan=True):
        raise misuse(
            f"the function {atom.name!r} is declared homogeneous of degree {power}, and its values "
            "are not.",
            "Leave homogeneity= out where you are not sure.",
        )
