"""Check the declared facts of an activation against its values.

A wrong parity or homogeneity gives wrong exponents without a word, so every entry of the catalogue
is checked by ``verify`` in the tests; who writes an activation checks it the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import inf, isfinite
from numbers import Rational
from typing import Any

from tpcalc.activations.activation import Activation
from tpcalc.errors import NotDifferentiable
from tpcalc.functions import Fn, Var
from tpcalc.functions.tape import evaluate

# Facts are looked at on this interval, at points that miss 0 and simple fractions.
REACH = 4.0
STEP = 1e-3
# Length of the pieces on which a smooth function is a polynomial of this degree to 1e-9.
PIECE = 0.1
DEGREE = 8


@dataclass(frozen=True, slots=True)
class Violation:
    """A declared fact that does not hold."""

    fact: str  # its name ("parity")
    text: str  # what was declared and what was found


def verify(activation: Activation) -> tuple[Violation, ...]:
    """The declared facts that do not hold numerically; none for a sound activation.

    Checked: value and slope at 0, parity and homogeneity (both ways: what holds must be declared),
    kinks (a polynomial through the values on one side must miss the other side at a kink and
    nowhere else), growth, the derivative, the sympy form, and the pieces. Features are seen on the
    scale of one: a function that oscillates within 0.1 is not resolved.

    Example:
        >>> from tpcalc.activations.entries import lookup
        >>> verify(lookup("tanh"))
        ()
    """
    return tuple(
        Violation(fact, text) for fact, check in _CHECKS.items() for text in check(activation)
    )


def _grid(activation: Activation, count: int = 240) -> Any:
    import numpy as np

    low, high = activation.domain
    points = np.linspace(-REACH, REACH, count) + 1.3e-3
    return points[(points > low + 3 * STEP) & (points < high - 3 * STEP)]


def _values(activation: Activation, z: Any) -> Any:
    """Values as a float array; a number outside the range is inf, one undefined is nan."""
    import numpy as np

    with np.errstate(all="ignore"):
        found = np.asarray(activation.evaluate(np.asarray(z, dtype=float)), dtype=float)
        return np.broadcast_to(found, np.shape(z))


def _value(activation: Activation) -> Iterator[str]:
    import numpy as np

    found = float(_values(activation, [0.0])[0])
    declared = activation.facts.value_at_zero
    if not (found == declared or np.isclose(found, declared, rtol=1e-12, atol=1e-14)):
        yield f"declared f(0) = {declared}, found {found}"


def _least(activation: Activation) -> Iterator[str]:
    import numpy as np

    grid = _grid(activation)
    values = _values(activation, grid)
    place = int(np.nanargmin(values))
    if values[place] < activation.facts.least:
        yield (
            f"declared f >= {activation.facts.least}, found {values[place]} at {grid[place]:.3f}"
        )


def _tame(activation: Activation) -> Iterator[str]:
    """Whether log(1/f) stays below a line: its slope settles far out."""
    import numpy as np

    if not activation.facts.tame:
        return
    for sign in (-1.0, 1.0):
        values = _values(activation, sign * np.array([16.0, 24.0, 32.0]))
        if values.min() <= 0:
            yield f"declared tame, found {values.min()}"
            return
        first, second = np.diff(-np.log(values))
        if second > max(first, 0.0) + 1e-3:
            yield f"declared tame, log(1/f) steepens from {first} to {second}"


def _period(activation: Activation) -> Iterator[str]:
    import numpy as np

    period = activation.facts.period
    if period is None:
        return
    grid = _grid(activation)
    gap = np.abs(_values(activation, grid + period) - _values(activation, grid))
    place = int(np.argmax(gap))
    if not (period > 0 and gap[place] <= 1e-9):
        yield f"declared the period {period}, values {gap[place]:.2g} apart at {grid[place]:.3f}"


def _slope(activation: Activation) -> Iterator[str]:
    import numpy as np

    declared = activation.facts.slope_at_zero
    low, high = activation.domain
    if not low < 0.0 < high:
        if declared is not None:
            yield f"declared f'(0) = {declared}, but 0 is outside the domain"
        return
    sides = []
    for h in (1e-3, -1e-3, 1e-9, -1e-9):
        here, near = _values(activation, [0.0, h])
        sides.append(float(near - here) / h)
    right, left, right_near, left_near = sides
    exists = abs(right_near - left_near) < 1e-4 * (1 + abs(right_near)) and (
        abs(right_near - right) + abs(left_near - left) < 0.1 * (1 + abs(right_near))
    )
    middle = (right_near + left_near) / 2
    if declared is None:
        if exists:
            yield f"declared no slope at 0, found {middle:.6g}"
    elif not exists or not np.isclose(middle, declared, rtol=1e-5, atol=1e-4):
        yield f"declared f'(0) = {declared}, found {left_near:.6g} and {right_near:.6g}"


def _parity(activation: Activation) -> Iterator[str]:
    import numpy as np

    declared = activation.facts.parity
    if activation.domain != (-inf, inf):
        if declared != "none":
            yield f"declared {declared} on a domain that is not symmetric"
        return
    z = _grid(activation)
    here, mirrored = _values(activation, z), _values(activation, -z)
    holds = {
        "even": np.allclose(mirrored, here, rtol=1e-12, atol=1e-14),
        "odd": np.allclose(mirrored, -here, rtol=1e-12, atol=1e-14),
    }
    found = [name for name, true in holds.items() if true] or ["none"]
    if declared not in found:
        yield f"declared {declared}, found {found[0]}"


def _homogeneity(activation: Activation) -> Iterator[str]:
    import numpy as np

    declared = activation.facts.homogeneity
    z = _grid(activation)
    base = _values(activation, z)

    def holds(degree: float) -> bool:
        return all(
            np.allclose(_values(activation, c * z), c**degree * base, rtol=1e-9, atol=1e-12)
            for c in (0.5, 2.0, 3.0)
        )

    if isinstance(declared, Rational):
        if not holds(float(declared)):
            yield f"declared degree {declared}, but f(cz) is not c^{declared} f(z)"
        return
    one, two = np.abs(_values(activation, [1.0, 2.0]))
    if one > 0 and two > 0:
        degree = float(np.log2(two / one))
        if holds(degree):
            yield f"none declared, but f is homogeneous of degree {degree:.6g}"


def _distance(activation: Activation, at: Any) -> Any:
    """How far each point is from the declared kinks and from the end of the domain."""
    import numpy as np

    marks = np.array([*activation.facts.kinks, *activation.domain], dtype=float)
    return np.abs(at[:, None] - marks).min(axis=1)


def _misses(activation: Activation, at: Any, width: Any) -> Any:
    """Whether the polynomial through values left of each point misses values right of it."""
    import numpy as np

    nodes = np.cos(np.pi * (np.arange(DEGREE + 1) + 0.5) / (DEGREE + 1))
    ahead = np.linspace(0.25, 1.0, 4)
    left = at[:, None] + width[:, None] * (nodes - 1) / 2
    right = at[:, None] + width[:, None] * ahead
    here = _values(activation, left.ravel()).reshape(left.shape)
    there = _values(activation, right.ravel()).reshape(right.shape)
    powers = np.vander(nodes, DEGREE + 1)
    onward = np.vander(1 + 2 * ahead, DEGREE + 1)
    guess = (onward @ np.linalg.solve(powers, here.T)).T
    scale = np.maximum(np.abs(here).max(axis=1), np.abs(there).max(axis=1))
    return np.abs(guess - there).max(axis=1) > 5e-9 + 1e-7 * scale


def _kinks(activation: Activation) -> Iterator[str]:
    import numpy as np

    low, high = activation.domain
    declared = np.array([k for k in activation.facts.kinks if low < k < high], dtype=float)
    sharp = _misses(activation, declared, np.full(declared.shape, PIECE))
    for kink in declared[~sharp]:
        yield f"declared a kink at {kink}, but f is smooth there"
    grid = np.arange(-REACH, REACH, PIECE / 2) + 1.3e-3
    grid = grid[(grid > low) & (grid < high)]
    # Short pieces near a declared kink: what is smooth there is so on the scale of the distance.
    width = np.minimum(PIECE, 0.08 * _distance(activation, grid))
    for point in grid[_misses(activation, grid, width)][:3]:
        yield f"no kink declared near {point:.3f}, but f is not smooth there"


def _growth(activation: Activation) -> Iterator[str]:
    import numpy as np

    declared = activation.facts.growth
    low, high = activation.domain
    near, far = 1e3, 1e5
    measured = -inf
    for side, end in ((-1.0, low), (1.0, high)):
        if isfinite(end):
            continue
        window = np.linspace(1.0, 1.01, 201)
        first = np.abs(_values(activation, side * near * window)).max()
        second = np.abs(_values(activation, side * far * window)).max()
        if first > 0 and second > 0:
            with np.errstate(divide="ignore", invalid="ignore"):
                slope = np.log(second / first) / np.log(far / near)
            measured = max(measured, inf if np.isnan(slope) else float(slope))
    ends = [end for end in (low, high) if isfinite(end)]
    steps = [(end, 1.0 if end == low else -1.0) for end in ends]
    unbounded = any(
        abs(_values(activation, [end + way * 1e-200])[0])
        > 2 * abs(_values(activation, [end + way * 1e-50])[0]) + 1
        for end, way in steps
    )
    if declared is None:
        if not unbounded and measured < 20:
            yield f"declared faster than every power, found degree {max(measured, 0):.3g}"
    elif unbounded:
        yield f"declared degree {declared}, but f is unbounded at the end of its domain"
    elif isinstance(declared, Rational) and abs(max(measured, 0.0) - float(declared)) > 0.02:
        yield f"declared degree {declared}, found {max(measured, 0):.3g}"


def _derivative(activation: Activation) -> Iterator[str]:
    import numpy as np

    kinks = np.array(activation.facts.kinks, dtype=float)
    try:
        slope = activation.fn.by(0)
    except NotDifferentiable:
        # Slopes across a jump or a root grow as the gap closes; bounded ones do not.
        wide, narrow = (
            np.abs(_values(activation, kinks + gap) - _values(activation, kinks - gap)) / gap
            for gap in (1e-6, 1e-10)
        )
        if not np.any(narrow > 1.5 * wide + 1e-3):
            yield "none declared, but f has a bounded slope"
        return
    z = _grid(activation)
    away = _distance(activation, z)
    h = np.minimum(STEP, away / 100)
    z, h = z[away > STEP], h[away > STEP]
    near = [_values(activation, z + k * h) for k in (-2, -1, 1, 2)]
    measured = (near[0] - 8 * near[1] + 8 * near[2] - near[3]) / (12 * h)
    declared = np.broadcast_to(np.asarray(evaluate(slope, [z]), dtype=float), z.shape)
    scale = 1 + np.abs(measured) + np.abs(_values(activation, z))
    bad = ~(np.abs(measured - declared) < 1e-8 * scale)
    if bad.any():
        point = int(np.argmax(bad))
        yield f"at {z[point]:.4f} declared {declared[point]:.10g}, found {measured[point]:.10g}"


def _display(activation: Activation) -> Iterator[str]:
    import numpy as np
    import sympy
    from scipy import special

    argument = sympy.Symbol("z", real=True)
    shown = activation.sympy(argument)
    if shown is None:
        yield "no sympy form"
        return
    z = np.append(_grid(activation), [0.0] if activation.domain[0] < 0 else [])
    run = sympy.lambdify(argument, shown, modules=[{"erf": special.erf}, "numpy"])
    made = np.vectorize(run, otypes=[float])(z)  # in sympy 1.13 Max takes no arrays
    for at, found, here in _apart(activation, z, made):
        yield f"at {at:.4f} the sympy form is {found}, the value {here}"


def _pieces(activation: Activation) -> Iterator[str]:
    made_of = getattr(activation.function, "pieces", None)
    if made_of is None:
        return
    # At a kink pieces may take another value: no Gaussian sees a point.
    z = _grid(activation)
    z = z[_distance(activation, z) > STEP]
    for at, found, here in _apart(activation, z, evaluate(Fn(made_of(Var(0)), 1), [z])):
        yield f"at {at:.4f} the pieces make {found}, the value is {here}"


def _apart(activation: Activation, z: Any, made: Any) -> Iterator[tuple[float, float, float]]:
    """The first point where another form of a function has another value, with both."""
    import numpy as np

    found = np.broadcast_to(np.asarray(made, dtype=float), z.shape)
    here = _values(activation, z)
    for point in np.flatnonzero(~np.isclose(found, here, rtol=1e-11, atol=1e-13))[:1]:
        yield z[point], found[point], here[point]


def _near_zero(activation: Activation) -> Iterator[str]:
    """Whether the sum that stands for a function near 0 is off by terms of a higher order."""
    import numpy as np

    near = getattr(activation.function, "near_zero", None)
    if near is None:
        return
    for order in (1, 2, 3):
        for z in (-0.01, 0.01):
            made = float(evaluate(Fn(near(Var(0), order), 1), [np.array(z)]))
            gap = abs(made - float(_values(activation, [z])[0]))
            if gap > 10 * abs(z) ** (order + 1) + 1e-14:
                yield f"at {z} the sum of order {order} is off by {gap:.2g}"


def _analytic(activation: Activation) -> Iterator[str]:
    """Whether a function that is analytic between its kinks is 0 on all of a piece or on none."""
    import numpy as np

    facts = activation.function.facts
    if not facts.analytic:
        return
    z = _grid(activation)
    pieces = np.searchsorted(np.sort(facts.kinks), z)
    for piece in np.unique(pieces):
        zero = _values(activation, z[pieces == piece]) == 0
        if 3 <= zero.sum() < zero.size:
            yield f"it is 0 on a part of the piece at {z[pieces == piece][zero][0]:.3g}"


def _order(activation: Activation) -> Iterator[str]:
    import numpy as np

    declared = activation.facts.order
    if declared is None:
        return
    low, high = activation.domain
    sides = [side for side, end in ((-1.0, low), (1.0, high)) if not isfinite(end)]
    near, far = (
        max(abs(np.log(abs(_values(activation, [side * size])[0]))) for side in sides)
        for size in (100.0, 400.0)
    )
    found = np.log(far / near) / np.log(4.0)
    if activation.facts.growth is not None or found > declared + 0.2:
        yield f"declared order {declared}, found {found:.3g}"


_CHECKS: dict[str, Callable[[Activation], Iterator[str]]] = {
    "value_at_zero": _value,
    "slope_at_zero": _slope,
    "least": _least,
    "tame": _tame,
    "analytic": _analytic,
    "period": _period,
    "parity": _parity,
    "homogeneity": _homogeneity,
    "kinks": _kinks,
    "growth": _growth,
    "order": _order,
    "derivative": _derivative,
    "sympy": _display,
    "pieces": _pieces,
    "near_zero": _near_zero,
}
