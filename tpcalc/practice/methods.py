"""Ways to make an activation more linear by one number: families tau(l, s)."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache, partial
from itertools import pairwise
from math import log, sqrt
from typing import Any, NamedTuple

import numpy as np

from tpcalc import checks
from tpcalc.activations.entries import atom
from tpcalc.errors import StudyError, TpcalcError, UnknownName, UsageError, placed
from tpcalc.functions import Expr, Var, const
from tpcalc.functions.expr import Add, Const, Mul, Par, add, substitute
from tpcalc.functions.parse import parse_fn
from tpcalc.integrals.activation_moments import Kernels
from tpcalc.integrals.bounded import Bounded, bounded
from tpcalc.integrals.given import Act, whole
from tpcalc.meanfield.activations.calibrate import CLOSE
from tpcalc.meanfield.activations.split import ratio, split
from tpcalc.results import Method
from tpcalc.shown import Shown

S = Var(0)
_SYMBOLS = {"s": "x0", "l": "s0"}
_NEAR = tuple(float(k) for k in range(-5, 9))
_WIDE = tuple(float(x) for x in np.geomspace(1e-3, 1e3, 19))
OWN = (*(-x for x in _WIDE[::-1]), 0.0, *_WIDE)
_AWAY = (0.0, *np.geomspace(1e-2, 1e8, 11).tolist())  # from where no line is left, in its size


@dataclass(frozen=True)
class Linearization(Shown):
    """A way to make an activation more linear by an amount l.

    Args:
        name: What it is called.
        made: The function of s for an activation and an amount: an expression, or what makes one.
        start: The amount at which the activation stands as it is, or near which l is wanted.
        amounts: Where amounts are looked for; by default between -1000 and 1000.

    Raises:
        UsageError: Fewer than two amounts.

    Source: Schoenherr, The nonlinearity coefficient, section 7.1 and table 3.1.

    Example:
        >>> METHODS["shift"].made(whole("relu").expr, 0.5).text
        'relu(0.5 + x0)'
    """

    name: str
    made: Callable[[Expr, float], Any] = field(repr=False)
    start: float
    amounts: tuple[float, ...] = field(default=OWN, repr=False)

    def __post_init__(self) -> None:
        amounts = sorted(checks.floats(self.amounts, "amounts"))
        if len(amounts) < 2:
            raise UsageError("amounts are looked for between two at least.", where=self.name)
        object.__setattr__(self, "amounts", tuple(amounts))


def _dilated(tau: Expr, by: float) -> Expr:
    return substitute(tau, {S: const(by) * S})


METHODS = {
    row.name: row
    for row in (
        Linearization("interpolate", lambda tau, by: tau + const(by) * S, 0.0),
        Linearization("shift", lambda tau, by: substitute(tau, {S: S + const(by)}), 0.0, _NEAR),
        Linearization("dilate", _dilated, 1.0, _WIDE),
        Linearization("sharpen", lambda tau, by: _dilated(tau, by) / by, 1.0, _WIDE),
    )
}
"""tau(s) + l s, tau(s + l), tau(l s) and tau(l s) / l."""

_LINES = (*(p / (10 - p) for p in range(10)), 1e11)
_MOVES = tuple(k / 4 for k in range(11))
STUDIED: dict[str, tuple[str, str, tuple[float, ...]]] = {
    "ReLU-interp.": ("relu", "interpolate", _LINES),
    "ReLU-shift": ("relu", "shift", _MOVES),
    "abs. val.": ("abs", "shift", _MOVES),
    "Swish": ("swish", "sharpen", (1e-10, *_LINES[1:])),
    "softplus": ("softplus", "sharpen", (0.5, 0.6, 0.7, 0.8, 0.9, *_LINES[5:])),
    "tanh-dilate": ("tanh", "dilate", (0.01, *_MOVES[1:])),
    "tanh-interp.": ("tanh", "interpolate", _LINES),
    "SELU": ("selu", "interpolate", _LINES),
    "even tanh": ("even_tanh", "interpolate", _LINES),
    "Gaussian": ("gaussian:1/2", "interpolate", _LINES),
    "odd square": ("odd_square", "interpolate", _LINES),
    "square": ("square", "interpolate", _LINES),
}
"""The linearization methods of the thesis: activation, method and amounts of the normed ones."""

_USUAL = {"abs": "shift", "swish": "sharpen", "softplus": "sharpen"}

Curve = list[tuple[float, float]]
Way = str | Linearization | Callable[[Any, float], Any]


class Parts(NamedTuple):
    """A function f under s ~ N(0, q): E f, Var f and E f'^2."""

    mean: Bounded
    spread: Bounded
    slope: Bounded


@dataclass(frozen=True)
class Family:
    """The functions tau(l, s) of one activation."""

    name: str
    tau: Expr
    way: Linearization

    @property
    def is_line(self) -> bool:
        """Whether a line is added, of which amounts have a closed form."""
        return self.way == METHODS["interpolate"]

    def at(self, amount: float) -> Expr:
        """tau(l, s)."""
        found = self.way.made(self.tau, amount)
        return found if isinstance(found, Expr) else whole(found, "method").expr

    def parts(self, amount: float, q: Bounded) -> Parts:
        """Its averages; that of a line needs none for another amount."""
        bent, line = apart(self.at(amount))
        if not line:
            return _parts(bent, q)
        own = _split(bent, q).with_line(line)
        return Parts(own.mean, own.spread, own.slope)

    def nlc(self, amount: float, q: Bounded) -> Bounded:
        """n(q, 0)."""
        own = self.parts(amount, q)
        return ratio(q * own.slope, own.spread).root()

    def excess(self, amount: float, q: Bounded) -> Bounded:
        """n(q, 0) - 1, however small it is: as a difference where its bend is but rounding.

        Source: Schoenherr, The nonlinearity coefficient, Theorem 3.
        """
        bent, line = apart(self.at(amount))
        found = [self.nlc(amount, q) - 1]
        with suppress(TpcalcError):
            found.append(_split(bent, q).with_line(line).excess)
        return min(found, key=lambda each: each.error)

    def grid(self, q: Bounded) -> tuple[float, ...]:
        """Where amounts are looked for."""
        if not self.is_line:
            return self.way.amounts
        own = _split(self.tau, q)
        unit, a = sqrt(own.rest.value / q.value), own.coefficient
        side = -unit if -a.value > a.error else unit  # where it starts from
        return tuple(side * x - a.value for x in _AWAY)

    def curve(self, q: Bounded) -> Curve:
        """n(q, 0) at the amounts that are looked at, where it exists."""
        return known(lambda at: self.nlc(at, q), self.grid(q))

    def roots(self, target: float, q: Bounded) -> tuple[Bounded, ...]:
        """The amounts at which n(q, 0) is the target, those nearest to the start first."""
        own = partial(self.nlc, q=q)
        found = self._lines(target, q) if self.is_line else crossings(own, target, self.curve(q))
        return nearest(found, self.way.start)

    def _lines(self, target: float, q: Bounded) -> list[Bounded]:
        """Both l with the coefficient n: q (a + l)^2 = (q w - v) / (n^2 - 1) - v.

        Source: Schoenherr, The nonlinearity coefficient, section 7.1.1.
        """
        own, over = _split(self.tau, q), bounded(target - 1) * bounded(target + 1)
        if target > own.rest_nlc.value * (1 + CLOSE):
            return []
        left = (own.curved / over - own.rest) / q
        if left.value < -left.error:
            return []
        away = left.root()
        return [away - own.coefficient, -away - own.coefficient]


_split = lru_cache(maxsize=512)(split)


@lru_cache(maxsize=512)
def _parts(tau: Expr, q: Bounded) -> Parts:
    kernels = Kernels(tau)
    mean, second = kernels.mean(q), kernels.second(q)
    spread = second - mean * mean
    if not spread.error <= CLOSE * spread.value:  # a small difference is an average of its own
        spread = Kernels(tau - const(mean.value)).second(q)
    return Parts(mean, spread, kernels.slope(q))


def apart(tau: Expr) -> tuple[Expr, float]:
    """A function without its line, and the slope of that.

    Example:
        >>> bent, line = apart(S**2 + 3 * S - 1)
        >>> bent.text, line
        ('-1 + x0**2', 3.0)
    """
    terms = tau.terms if isinstance(tau, Add) else (tau,)
    slopes = [_slope(term) for term in terms]
    line = sum(slope for slope in slopes if slope is not None)
    return add(t for t, slope in zip(terms, slopes, strict=True) if slope is None), line


def _slope(term: Expr) -> float | None:
    """The number of a term that is a multiple of the argument."""
    if term == S:
        return 1.0
    if isinstance(term, Mul) and len(term.factors) == 2 and term.factors[1] == S:
        first = term.factors[0]
        return float(first.value) if isinstance(first, Const) else None
    return None


def family(activation: Act, method: Way | None = None) -> Family:
    """The functions that a method makes of an activation.

    Example:
        >>> family("tanh").way.name, family("abs").way.name
        ('interpolate', 'shift')
    """
    own = whole(activation, "nlnorm")
    if _split(own.expr, bounded(1.0)).linear:
        raise StudyError(
            f"{own.text} is linear: its nonlinearity coefficient is 1 whatever is done to it.",
            hint="Take an activation that bends.",
        )
    way = method_of(_USUAL.get(own.text, "interpolate") if method is None else method)
    return Family(own.text, own.expr, way)


def method_of(method: Way) -> Linearization:
    """A method by its name, by a formula or a function of (s, l), or as it is."""
    if isinstance(method, Linearization):
        return method
    if callable(method):
        checks.called(method, "method", S, 1.0)
        called = partial(checks.answer, method, S, name="method")
        name = getattr(method, "__name__", "own")
        return Linearization(name, lambda tau, by: called(by), 1.0, OWN)
    if method in METHODS:
        return METHODS[method]
    if not re.search(r"\bl\b", checks.text(method, "method")):
        raise UnknownName("method", method, METHODS)
    with placed(f"the formula {method!r}"):
        text = re.sub(r"\b[sl]\b", lambda found: _SYMBOLS[found[0]], method)
        expr = parse_fn(text, 1, 1, atom).expr
    return Linearization(method, lambda tau, by: substitute(expr, {Par(0): const(by)}), 1.0, OWN)


def known(function: Callable[[float], Bounded], points: Sequence[float]) -> Curve:
    """Values of a function at points, where it has one."""
    found = []
    for point in points:
        with suppress(TpcalcError, ArithmeticError):
            found.append((point, float(function(point).value)))
    return found


def crossings(function: Callable[[float], Bounded], target: float, curve: Curve) -> list[Bounded]:
    """Where a positive function is a number, each with the error that its own errors leave."""
    from scipy.optimize import brentq

    def level(at: float) -> float:
        return log(function(at).value / target)

    found: list[Bounded] = []
    for (low, left), (high, right) in pairwise(curve):
        if (left - target) * (right - target) > 0:
            continue
        place = float(brentq(level, low, high, xtol=1e-15, rtol=1e-14))
        if not (found and found[-1].value == place):  # at a point itself
            here, step = function(place), 1e-5 * (high - low)
            turn = abs(function(place + step).value - here.value) / step
            off = here.error + abs(here.value - target)
            found.append(Bounded(place, off / turn if turn else high - low, Method.QUADRATURE))
    return found


def nearest(found: Sequence[Bounded], start: float) -> tuple[Bounded, ...]:
    """Amounts by their distance from one, of two that are as far the larger one first."""
    return tuple(sorted(found, key=lambda at: (abs(at.value - start), -at.value)))


def ends(curve: Curve) -> tuple[float, float]:
    """The least and the largest value; 1 where there is none."""
    values = [value for _, value in curve] or [1.0]
    return min(values), max(values)


def around(curve: Curve, at: float) -> tuple[float, float]:
    """The points around one between which values rise, or fall."""
    if len(curve) < 2:
        return at, at
    place = min(max(sum(point <= at for point, _ in curve), 1), len(curve) - 1)
    steps = [right[1] - left[1] for left, right in pairwise(curve)]
    same = [step * steps[place - 1] > 0 for step in steps]
    low = next((k + 1 for k in range(place - 2, -1, -1) if not same[k]), 0)
    high = next((k for k in range(place, len(steps)) if not same[k]), len(steps))
    return curve[low][0], curve[high][0]
