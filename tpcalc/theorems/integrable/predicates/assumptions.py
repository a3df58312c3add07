"""Assumptions 2 and 3 on an activation, and what else theorems ask of it, one answer for each.

Derivatives are taken from the expression: a function that has two of them (as functions, no jumps)
is differentiable with a slope that is locally Lipschitz. That they are bounded by polynomials is
read off the growth of the parts where that says so, and checked on numbers where it does not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import inf, isfinite
from typing import Any

import numpy as np

from tpcalc.errors import NotDifferentiable, TpcalcError
from tpcalc.exponents import Ex
from tpcalc.functions import Call, Expr, Fn, Var, const, derivative
from tpcalc.functions.expr import walk
from tpcalc.functions.tape import evaluate
from tpcalc.limit.degrees import degree_of
from tpcalc.networks.architecture import activation_of, named
from tpcalc.results import Hypothesis
from tpcalc.shown import Shown
from tpcalc.theorems.integrable.forms.nonlinearity import Nonlinearity

LARGEST = 9  # functions are looked at up to |z| = 2^9
STEEPEST = 16.0  # and grow like no power above this one there
POLE = 1e12  # what is larger for |z| <= 1 has a pole there
HIGHEST = 8  # derivatives at 0 that are looked at
NUMBERS = f"checked on numbers, |z| <= {2**LARGEST}"
SYMBOL = "its power is a symbol"
TEXTS = {
    "differentiable": "sigma is differentiable",
    "lipschitz": "sigma is pseudo-Lipschitz",
    "smooth": "sigma' is pseudo-Lipschitz",
    "nonzero": "sigma and sigma' are not identically 0",
    "homogeneous": "sigma is positively homogeneous of a degree p >= 1",
    "high_degree": "sigma is positively homogeneous of a degree p >= 2",
    "one_sided": "sigma is not negative, and larger on the right: alpha > beta >= 0",
    "zero_at_zero": "sigma(0) = 0",
    "slope_at_zero": "sigma'(0) is there and not 0",
}
Found = tuple[bool, str]  # whether one of them is met, and what was found
OPEN, POWER = (False, SYMBOL), (True, "a power")
# Of relu^p, where p is a symbol: what depends on p is left open, so not met.
OF_SYMBOL = (OPEN, OPEN, OPEN, POWER, OPEN, OPEN, (True, "alpha = 1, beta = 0"), POWER, OPEN)

_NEAR = np.ldexp(1.0, np.arange(-200, 1, 4))
_GRID = np.concatenate([np.linspace(-8.0, 8.0, 801), _NEAR, -_NEAR])


@dataclass(frozen=True)
class Assumptions(Shown):
    """What the theorems ask of an activation, each with what was found.

    Args:
        differentiable: sigma has a slope everywhere.
        lipschitz: sigma is pseudo-Lipschitz.
        smooth: sigma' is pseudo-Lipschitz.
        nonzero: Neither sigma nor sigma' is identically 0.
        homogeneous: sigma(cz) = c^p sigma(z) for c > 0, with p >= 1.
        high_degree: The same with p >= 2.
        one_sided: sigma >= 0, and larger on the right: alpha > beta >= 0.
        zero_at_zero: sigma(0) = 0.
        slope_at_zero: sigma'(0) exists and is not 0.
        degree: The degree p; None where there is none.
        symbolic: Whether the power of the activation is a symbol.
    """

    differentiable: Hypothesis
    lipschitz: Hypothesis
    smooth: Hypothesis
    nonzero: Hypothesis
    homogeneous: Hypothesis
    high_degree: Hypothesis
    one_sided: Hypothesis
    zero_at_zero: Hypothesis
    slope_at_zero: Hypothesis
    degree: Fraction | None
    symbolic: bool = False

    def __iter__(self) -> Any:
        return iter((*self.second, *self.third, self.zero_at_zero, self.slope_at_zero))

    @property
    def second(self) -> tuple[Hypothesis, ...]:
        """The parts of Assumption 2."""
        return (self.differentiable, self.lipschitz, self.smooth, self.nonzero)

    @property
    def third(self) -> tuple[Hypothesis, ...]:
        """The parts of Assumption 3."""
        return (self.high_degree, self.one_sided)

    @property
    def supported(self) -> bool:
        """Whether the formulas for homogeneous activations hold: Assumption 3, or p = 1."""
        return self.homogeneous.met and self.one_sided.met


def assumptions(act: str | Callable[[Expr], Expr] | Expr) -> Assumptions:
    """What the theorems ask of an activation, each with what was found.

    Args:
        act: A catalogue name, or a function of an expression.

    Returns:
        A hypothesis for each part of Assumptions 2 and 3, and for the value and slope at 0.

    Raises:
        StudyError: It is neither.
        UnknownName: No such activation.

    Source: Hajjar, Chizat, Giraud, Definition 3.1, Assumptions 2 and 3.

    Example:
        >>> [part.met for part in assumptions("relu").second]
        [False, True, False, True]
        >>> assumptions("relu^2").one_sided.found
        'alpha = 1, beta = 0'
        >>> assumptions("tanh").high_degree.met
        False
    """
    if isinstance(act, Expr):
        return _found(act.text, act)
    return _found(named(act), activation_of(act, "the assumptions"))


@lru_cache(maxsize=256)
def _found(name: str, expr: Expr) -> Assumptions:
    found, symbolic = Nonlinearity(name, expr), _symbolic(expr)
    answers = OF_SYMBOL if symbolic else (*_smoothness(found), *_shape(found))
    texts = zip(TEXTS.items(), answers, strict=True)
    parts = {name: Hypothesis(text, *own) for (name, text), own in texts}
    degree = None if symbolic else found.degree
    return Assumptions(**parts, degree=degree, symbolic=symbolic)


def _shape(found: Nonlinearity) -> Iterator[Found]:
    """Whether sigma is constant, homogeneous and one-sided, and how it begins at 0."""
    slope, degree = _slope_at_zero(found), found.degree
    words = "it is not homogeneous" if degree is None else f"p = {degree}"
    right, left = sides(found.expr)
    yield _nonzero(found)
    for least in (1, 2):
        yield degree is not None and degree >= least, words
    both = f"alpha = {right:g}, beta = {left:g}" if degree is not None else words
    yield degree is not None and right > left >= 0, both
    yield _value_at_zero(found) == 0, _at_zero(found, order_at_zero(found))
    kink = "sigma has a kink at 0" if slope is None else f"sigma'(0) = {slope:g}"
    yield bool(slope), kink


def _symbolic(expr: Expr) -> bool:
    return any(
        isinstance(part, Call) and isinstance(part.atom.facts.homogeneity, Ex)
        for part in walk(expr)
    )


def _smoothness(nonlinearity: Nonlinearity) -> tuple[Found, Found, Found]:
    """Whether sigma is differentiable, and it and its slope are pseudo-Lipschitz."""
    first = _slope(nonlinearity.expr)
    if first is None:
        jumps = False, "its form shows a jump, or a slope that is not bounded"
        return jumps, jumps, jumps
    second = _slope(first)
    bounded, how = _polynomial(first, "sigma'")
    finite = _finite(first)
    differentiable = finite and _has_slope(nonlinearity, second)
    kink = "its form shows a kink" if finite else how
    there = "its slope has a slope that is a function"
    if second is None:
        there = f"sigma'(0) = {_slope_at_zero(nonlinearity):g}" if differentiable else kink
    smooth, why = (False, "its form shows that sigma' jumps, or has no bounded slope")
    if second is not None:
        smooth, why = _polynomial(second, "sigma''")
    return (
        (differentiable, there if differentiable else kink),
        (bounded, how),
        (bounded and smooth, why if bounded else how),
    )


def _has_slope(nonlinearity: Nonlinearity, second: Expr | None) -> bool:
    """Whether there is a slope at every kink; all kinks of the catalogue sit at 0."""
    if second is not None:
        return True
    kinks = {
        kink
        for part in walk(nonlinearity.expr)
        if isinstance(part, Call)
        for kink in part.atom.facts.kinks
    }
    alone = isinstance(nonlinearity.expr, Call) and nonlinearity.expr.arg == Var(0)
    return alone and kinks <= {0.0} and _slope_at_zero(nonlinearity) is not None


def _slope(expr: Expr) -> Expr | None:
    """The derivative; None where it is not a function."""
    try:
        return derivative(expr, Var(0))
    except NotDifferentiable:
        return None


def _polynomial(expr: Expr, name: str) -> Found:
    """Whether a function is finite and bounded by a polynomial, and how that is known."""
    if not _finite(expr):
        return False, f"{name} is not finite, or not defined, on the whole line"
    growth = degree_of(expr, (Fraction(1),), ())
    if growth is not None and growth < inf:
        return True, f"{name} is bounded by a polynomial of degree {growth}"
    if _grows_slowly(expr):
        return True, f"{name} is bounded by a polynomial ({NUMBERS})"
    return False, f"{name} grows faster than every polynomial ({NUMBERS})"


def _values(expr: Expr, z: Any) -> Any:
    """The values on an array; not finite where there are none."""
    with np.errstate(all="ignore"):
        try:
            return np.broadcast_to(evaluate(Fn(expr, 1), [z]), z.shape)
        except (TpcalcError, ArithmeticError, ValueError):
            return np.full(z.shape, np.nan)


def sides(expr: Expr) -> tuple[float, float]:
    """sigma(1) and sigma(-1): alpha and beta where sigma is homogeneous."""
    right, left = (float(value) + 0.0 for value in _values(expr, np.array([1.0, -1.0])))
    return right, left


def _finite(expr: Expr) -> bool:
    values = _values(expr, _GRID)
    inner = np.abs(values[np.abs(_GRID) <= 1])
    return bool(np.all(np.isfinite(values)) and np.max(inner) < POLE)


def _grows_slowly(expr: Expr) -> bool:
    ends = np.ldexp(1.0, np.arange(2, LARGEST + 1))
    for z in (ends, -ends):
        values = np.abs(_values(expr, z))
        if not np.all(np.isfinite(values)):
            return False
        if np.any(np.diff(np.log2(np.maximum(values, 1e-300))) > STEEPEST):
            return False
    return True


def _nonzero(nonlinearity: Nonlinearity) -> Found:
    if nonlinearity.expr == const(0) or _slope(nonlinearity.expr) == const(0):
        return False, "it is constant"
    return True, "neither is"


def order_at_zero(found: Nonlinearity) -> tuple[Fraction, float, float] | None:
    """The order q of vanishing at 0 with coefficients: sigma(z) ~ a z^q for z > 0, b |z|^q below.

    Args:
        found: The activation.

    Returns:
        (q, a, b), or None where it was not found.

    Source: Hajjar, Chizat, Giraud, Remark F.3.

    Example:
        >>> from tpcalc.theorems.integrable.forms.nonlinearity import nonlinearity
        >>> order_at_zero(nonlinearity("relu^2")), order_at_zero(nonlinearity("tanh"))
        ((Fraction(2, 1), 1.0, 0.0), (Fraction(1, 1), 1.0, -1.0))
    """
    value, slope = _value_at_zero(found), _slope_at_zero(found)
    if value != 0:
        return (Fraction(0), value, value) if isfinite(value) else None
    if found.degree is not None:
        return found.degree, *sides(found.expr)
    if slope:
        return Fraction(1), slope, -slope
    if slope is None:
        return _from_sides(found.expr)
    expr, factorial = found.expr, 1.0
    for order in range(1, HIGHEST + 1):
        derived = _slope(expr)
        if derived is None:
            return None
        expr, factorial = derived, factorial * order
        value = float(_values(expr, np.zeros(1))[0]) / factorial
        if value != 0:
            return Fraction(order), value, value * (-1.0) ** order
    return None


def _value_at_zero(nonlinearity: Nonlinearity) -> float:
    """sigma(0); not finite where it has no value."""
    return float(_values(nonlinearity.expr, np.zeros(1))[0])


def _slope_at_zero(nonlinearity: Nonlinearity) -> float | None:
    """sigma'(0); None where there is none."""
    try:
        return nonlinearity.slope_at_zero
    except (TpcalcError, ArithmeticError):
        return None


def _from_sides(expr: Expr) -> tuple[Fraction, float, float] | None:
    """The slopes on both sides of a kink, from numbers."""
    near = 2.0**-26
    right, left = (float(value) / near for value in _values(expr, np.array([near, -near])))
    if not np.isfinite([right, left]).all() or max(abs(right), abs(left)) < 1e-6:
        return None
    return Fraction(1), float(f"{right:.6g}"), float(f"{left:.6g}")


def _at_zero(nonlinearity: Nonlinearity, order: tuple[Fraction, float, float] | None) -> str:
    value = _value_at_zero(nonlinearity)
    if order is None or order[0] == 0:
        return f"sigma(0) = {value:g}" if isfinite(value) else "sigma has no value at 0"
    q, right, left = order
    return f"it vanishes to order {q} there: {right:g} z^{q} above 0, {left:g} |z|^{q} below"
