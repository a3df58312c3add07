"""NL1D: the nonlinearity of a function of one number on an interval."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from math import inf, pi, sqrt
from typing import Any

import numpy as np
from numpy.polynomial import legendre

from tpcalc import checks
from tpcalc.arrays import Array
from tpcalc.errors import EvaluationError, UsageError
from tpcalc.functions import Expr, Fn
from tpcalc.integrals import rules
from tpcalc.nonlinearity.formulas import numpy_form
from tpcalc.results import Estimate, Method
from tpcalc.shown import Shown

ORDER = 12
MOST_PANELS = 2**13
WANTED = 1e-13
ROUNDING = 1e-8  # a change that may be rounding alone
WORST = 1e-3
TRUST = 1e3  # times rounding
EPS = 2.0**-52
Code = Callable[[Array], Array]


@dataclass(frozen=True)
class IntervalNonlinearity(Shown):
    """How far a function of one number is from a line on an interval."""

    nl1d: Estimate  # |dom| / |co| sqrt(E F'(s)^2) for s uniform on the interval; 1 for lines alone
    # |dom| / |co| E |F'(s)|: the total variation over the range; 1 where F is monotone
    absolute: Estimate
    # the nonlinearity coefficient under the uniform law: sd(s) / sd(F) sqrt(E F'(s)^2)
    nlc: Estimate


def interval_nlc(
    function: Any,
    low: float,
    high: float,
    *,
    slope: Callable[[Any], Any] | None = None,
    kinks: Sequence[float] = (),
) -> IntervalNonlinearity:
    """NL1D of a function, its absolute version, and its coefficient under the uniform law.

    The interval is split at kinks and halved until integrals settle; on each part the function is
    a polynomial of degree 11, whose derivative stands for F' where none is given.

    Args:
        function: A function of an array of numbers, or an expression of x0.
        low: The lower end.
        high: The upper end.
        slope: F', a function of an array; by default it follows from F.
        kinks: Where F is not smooth; those of a formula need not be given.

    Returns:
        The three numbers, with bounds on their errors.

    Raises:
        UsageError: No interval, or a function that does not fit.
        EvaluationError: Values that are not finite, a constant function, or integrals that do not
            settle: a jump, or a kink that was not given.

    Source: Schoenherr, The nonlinearity coefficient, section 4.2.

    Example:
        >>> found = interval_nlc(np.sin, 0, 2 * np.pi)
        >>> round(found.nl1d.value, 9), round(found.absolute.value, 9)
        (2.221441469, 2.0)
    """
    ends = [float(checks.real(value, "an end of the interval")) for value in (low, high)]
    if not ends[0] < ends[1]:
        raise UsageError(f"the interval from {low} to {high} is empty.")
    values, slopes = _code(function, slope)
    own = [float(checks.real(kink, "a kink")) for kink in (*kinks, *_declared(function, ends))]
    edges = np.array(sorted({*ends, *(kink for kink in own if ends[0] < kink < ends[1])}))
    start = values(_panels(edges, 8))
    scale = float(np.abs(start - start[0]).max())
    if not scale > 64 * EPS * float(np.abs(start).max()):
        raise EvaluationError(
            "the function is constant on the interval; NL1D is a ratio to its range."
        )
    # Less a number and in units of its size: its squares stay in the range of floats.
    unit = partial(_integrals, lambda x: (values(x) - start[0]) / scale, slopes, scale)
    noise = EPS * float(np.abs(start).max()) / scale
    (square, absolute, variance, reach, mismatch), error = _settled(unit, edges, noise)
    if mismatch > WORST * absolute + TRUST * noise:
        raise EvaluationError(
            "the slope that is given is not that of the function: its integrals are not the "
            "changes of the function.",
            hint="Leave slope= out. A function that jumps has no slope.",
        )
    length, steep = ends[1] - ends[0], sqrt(square)
    found = (
        length / reach * steep,
        length / reach * absolute,
        length / sqrt(12.0) * steep / sqrt(variance),
    )
    return IntervalNonlinearity(
        *(Estimate(each, (error + 32 * EPS) * each, Method.QUADRATURE) for each in found)
    )


def _settled(
    integrals: Callable[[Array], Array], edges: Array, noise: float
) -> tuple[list[float], float]:
    """Integrals, and the larger relative change by the last two halvings."""
    # More panels are better only until rounding, which they magnify, outweighs what is gained.
    parts, last = 2, inf
    previous = integrals(_panels(edges, parts))
    best, change = previous, inf
    while parts * (len(edges) - 1) < MOST_PANELS:
        parts *= 2
        found = integrals(_panels(edges, parts))
        moved = _distance(found[:4], previous[:4])
        if max(moved, last) < change:
            best, change = found, max(moved, last)
        elif change < ROUNDING:
            break
        previous, last = found, moved
        if change < WANTED:
            break
    # Where halvings change more and more, and not by rounding, there is a jump.
    growing = change >= ROUNDING and last > max(2 * change, TRUST * noise * parts)
    if growing or not change < WORST:
        raise EvaluationError(
            "the integrals of the function do not settle: the last halvings changed "
            f"{max(change, last if growing else 0.0):.1g}.",
            hint="Give the places where it has kinks: kinks=[...]. A jump has no slope.",
        )
    return best.tolist(), change


def _distance(new: Array, old: Array) -> float:
    """The largest relative difference."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.max(np.where(new == old, 0.0, np.abs(new - old) / np.abs(new))))


def _panels(edges: Array, parts: int) -> Array:
    pieces = [np.linspace(a, b, parts + 1)[:-1] for a, b in pairwise(edges)]
    return np.concatenate([*pieces, edges[-1:]])


def _integrals(values: Code, slopes: Code | None, scale: float, edges: Array) -> Array:
    """E F'^2, E |F'|, Var F, the length of the range of F; changes of F that are none of F'."""
    nodes, weights, fit = rules.expanding(ORDER)
    weights = weights / 2
    half, middle = np.diff(edges) / 2, (edges[1:] + edges[:-1]) / 2
    x = middle[:, None] + half[:, None] * nodes
    share, y = half / half.sum(), values(x)
    forms = y @ fit
    if slopes is None:
        steep = legendre.legder(forms, axis=1) / half[:, None]
        gradient = steep @ legendre.legvander(nodes, ORDER - 2).T
    else:
        gradient = slopes(x) / scale
        steep = gradient @ fit
    mean = share @ y @ weights
    extremes = _extremes(forms, steep)
    rises = np.abs(np.diff(extremes, axis=1)).sum()
    missing = np.abs(extremes[:, -1] - extremes[:, 0] - 2 * half * (gradient @ weights)).sum()
    return np.array(
        [
            share @ gradient**2 @ weights,
            rises / (2 * half.sum()),
            share @ (y - mean) ** 2 @ weights,
            extremes.max() - extremes.min(),
            missing / (2 * half.sum()),
        ]
    )


def _extremes(forms: Array, steep: Array) -> Array:
    """The function at the ends of each panel and where its slope changes sign, in order."""
    points = np.concatenate([[-1.0], np.cos(np.linspace(pi, 0, 2 * ORDER))[1:-1], [1.0]])
    slope = steep @ legendre.legvander(points, steep.shape[1] - 1).T
    left = np.broadcast_to(points[:-1], slope[:, :-1].shape).copy()
    right = np.broadcast_to(points[1:], left.shape).copy()
    crosses = np.sign(slope[:, :-1]) * slope[:, 1:] < 0
    rows, columns = np.nonzero(crosses)
    a, b, below = left[rows, columns], right[rows, columns], slope[rows, columns]
    for _ in range(30):
        centre = (a + b) / 2
        own = np.sum(legendre.legvander(centre, steep.shape[1] - 1) * steep[rows], axis=1)
        same = np.sign(below) * own > 0
        a, b = np.where(same, centre, a), np.where(same, b, centre)
    places = right
    places[rows, columns] = a
    # Rows have the value at the end in other places, so that differences add up to the variation.
    places = np.concatenate([np.full((len(steep), 1), -1.0), places, np.ones((len(steep), 1))], 1)
    return np.asarray(
        np.sum(legendre.legvander(places, forms.shape[1] - 1) * forms[:, None, :], axis=2)
    )


def _code(function: Any, slope: Callable[[Any], Any] | None) -> tuple[Code, Code | None]:
    if isinstance(function, Expr | Fn):
        forms = numpy_form(function)
        function, slope = (lambda x, form=form: form(x.reshape(-1, 1)) for form in forms)
    if not callable(function):
        raise UsageError(f"the function is a {type(function).__name__}.")
    return _checked(function, "the function"), None if slope is None else _checked(slope, "slope")


def _checked(function: Callable[[Any], Any], name: str) -> Code:
    def call(x: Array) -> Array:
        with np.errstate(all="ignore"):
            found = np.asarray(function(x.ravel()))
        if found.dtype.kind not in "biuf" or found.size not in (1, x.size):
            raise UsageError(f"{name} does not give one real number for each of an array.")
        full = np.broadcast_to(found.astype(float).ravel(), (x.size,)).reshape(x.shape)
        if not np.isfinite(full).all():
            at = float(x[~np.isfinite(full)][0])
            raise EvaluationError(f"{name} is not finite at {at:.6g}.")
        return full

    return call


def _declared(function: Any, ends: Sequence[float]) -> list[float]:
    """Where a formula says that it has kinks."""
    from tpcalc.integrals.quadrature.shape import shape

    expr = function.expr if isinstance(function, Fn) else function
    known = shape(expr) if isinstance(expr, Expr) else None
    if known is None:
        return []
    return [part.place for part in known.features if part.kink and ends[0] < part.place < ends[1]]
