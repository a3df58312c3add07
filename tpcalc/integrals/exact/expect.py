"""Expectations of products of functions of jointly Gaussian variables, as floats."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import lru_cache, reduce
from typing import Any

from tpcalc.errors import EvaluationError
from tpcalc.functions import Call, Expr, Fn
from tpcalc.functions.expr import mul, walk
from tpcalc.functions.tape import evaluate
from tpcalc.integrals.bounded import Bounded
from tpcalc.integrals.exact.ball import UNIT, Ball, better, finite_error
from tpcalc.integrals.exact.delta import DELTA, no_density
from tpcalc.integrals.exact.floats import FLOATS, ball
from tpcalc.integrals.exact.gauss import Variables
from tpcalc.integrals.exact.groups import Group, by_code, chosen, grouped, in_blocks
from tpcalc.integrals.exact.piece import Unsupported, level
from tpcalc.integrals.exact.pieces import REACH, decompose, expanded, norm, rate, remainder
from tpcalc.integrals.exact.plan import Plan, Prepared, compiled, integral, planned, prepared


def supported(factors: Sequence[Expr]) -> bool:
    """Whether the functions have a form that is integrated, for means and covariances that allow.

    Three half-lines (powers of smooth steps count each) need means of 0, as do real powers.

    Example:
        >>> from tpcalc.activations.entries import lookup
        >>> supported([lookup("gelu").fn.expr] * 2), supported([lookup("tanh").fn.expr])
        (True, False)
    """
    return compiled(tuple(factors)) is not None


def terms(factors: Sequence[Expr]) -> int:
    """How many products of pieces such a form is a sum of; 0 where there is none."""
    plan = compiled(tuple(factors))
    return 0 if plan is None else len(plan.terms)


def expectation(
    factors: Sequence[Expr], mean: Sequence[Any], cov: Sequence[Sequence[Any]]
) -> Bounded | None:
    """E[f_1(G_1) ... f_k(G_k)] for jointly Gaussian G, in closed form.

    The covariances are taken to be exactly the floats given; they may be singular. A variance of 0
    makes its variable a number, at which the function itself is taken.

    Example:
        >>> from tpcalc.activations.entries import lookup
        >>> relu = lookup("relu").fn.expr
        >>> found = expectation([relu, relu], [0, 0], [[1.0, 0.5], [0.5, 1.0]])
        >>> round(found.value, 11), found.error < 1e-14
        (0.30449889052, True)
    """
    means = [_entry(value) for value in mean]
    count = len(factors)
    rows = [[_entry(cov[min(i, j)][max(i, j)]) for j in range(count)] for i in range(count)]
    parts = []
    for group in grouped(tuple(factors), means, rows):
        part = _group(group)
        if part is None:
            return None
        parts.append(part)
    found = reduce(operator.mul, parts) if parts else Ball(1.0)
    error = found.error() if len(parts) == 1 else finite_error(found.error())
    if not getattr(found.value, "shape", ()):
        return Bounded(float(found.value), float(error))
    return _equal_apart(factors, means, rows, Bounded(found.value, error))


def _equal_apart(
    factors: Sequence[Expr], mean: list[Any], cov: list[list[Any]], found: Bounded
) -> Bounded:
    """Entries of arrays where two variables are equal, and not in all: they are one function."""
    import numpy as np

    finite = np.isfinite(found.error)
    if finite.all() or not finite.any():
        return found
    lost = np.broadcast_to(~finite, found.value.shape)
    pairs = [(i, j) for j in range(len(factors)) for i in range(j)]
    for i, j in pairs:
        same = (cov[i][i] == cov[j][j]) & (cov[i][j] == cov[i][i]) & (mean[i] == mean[j])
        chosen = lost & same
        if chosen.any():

            def pick(entry: Any, chosen: Any = chosen) -> Any:
                whole = hasattr(entry, "shape")
                return np.broadcast_to(entry, chosen.shape)[chosen] if whole else entry

            own = expectation(factors, [*map(pick, mean)], [[*map(pick, row)] for row in cov])
            if own is not None:
                value = np.array(found.value)
                error = np.array(np.broadcast_to(found.error, value.shape))
                value[chosen], error[chosen] = own.value, own.error
                found, lost = Bounded(value, error), lost & ~chosen
    return found


def _entry(value: Any) -> Any:
    """A float or an array; the number 0 as such."""
    import numpy as np

    if isinstance(value, np.ndarray) and value.ndim:
        return np.asarray(value, dtype=np.float64)
    number = float(value)
    return 0 if number == 0.0 else number


def _group(group: Group) -> Ball | None:
    """The expectation over variables that depend on each other."""
    if compiled(group.factors) is None:
        return None
    import numpy as np

    # What is infinite on the way ends as an infinite bound.
    with np.errstate(all="ignore"):
        try:
            return in_blocks(group, lambda part: by_regime(part, with_series))
        except Unsupported:
            return None


def by_regime(group: Group, work: Callable[[Group], Ball]) -> Ball:
    """The expectation, where variables without variance are numbers."""
    import numpy as np

    variances = [group.cov[i][i] for i in range(len(group.mean))]
    least = [x if isinstance(x, int | float) else x.min(initial=1.0) for x in variances]
    if any(x < 0 for x in least):
        raise EvaluationError("a variance is negative.", hint="Give covariances of Gaussians.")
    if not any(x == 0 for x in least):
        return work(group)
    codes: Any = 0
    for i, variance in enumerate(variances):
        codes = codes + (1 << i) * np.equal(variance, 0)
    return by_code(codes, group, lambda part, code: _some_fixed(part, code, work))


def _some_fixed(group: Group, code: int, work: Callable[[Group], Ball]) -> Ball:
    """The expectation where the variables of a bit set are numbers."""
    fixed = [i for i in range(len(group.mean)) if code >> i & 1]
    free = [i for i in range(len(group.mean)) if not code >> i & 1]
    out = Ball(1.0)
    for i in fixed:
        out = out * at_point(group.factors[i], group.mean[i])
    if not free:
        return out
    return out * work(chosen(group.factors, group.mean, group.cov, free))


def at_point(factor: Expr, point: Any) -> Ball:
    """f(point) for a float or an array.

    The bound is that of a sum of its pieces in any order.
    """
    import numpy as np

    if any(isinstance(part, Call) and part.atom == DELTA for part in walk(factor)):
        raise no_density()
    at = np.float64(point) if type(point) in (int, float) else point
    value = evaluate(Fn(factor, 1), [at])
    size: Any = 0.0
    z = np.abs(at)
    for piece, polynomial in decompose(factor).items():
        exponent = level(piece.square) * at * at + level(piece.slope) * at
        height = np.exp(exponent) * (1 + np.abs(exponent))
        if piece.wave is not None:
            height = height * (1 + np.abs(level(piece.wave.frequency) * at))
        if piece.positive is not None:
            height = height * z ** float(piece.positive[1]) * (1 + float(piece.positive[1]))
        for degree, coefficient in polynomial.items():
            size = size + abs(level(coefficient)) * (1 + degree) * z**degree * height
    if not np.ndim(value):
        value, size = float(value), float(size)
    return Ball(value, 0.0, 64 * UNIT * size)


@lru_cache(maxsize=512)
def _plan(factors: tuple[Expr, ...], code: int) -> Plan:
    return planned(
        tuple(
            expanded(factor) if code >> i & 1 else decompose(factor)
            for i, factor in enumerate(factors)
        )
    )


@lru_cache(maxsize=512)
def _rates(factors: tuple[Expr, ...]) -> tuple[float, ...]:
    if len(factors) > 2:
        return (0.0,) * len(factors)
    if any(piece.delta is not None for factor in factors for piece in decompose(factor)):
        return (0.0,) * len(factors)
    return tuple(rate(factor) for factor in factors)


def with_series(group: Group) -> Ball:
    """The expectation for positive variances."""
    import numpy as np

    plan = compiled(group.factors)
    if plan is None:
        raise Unsupported("no closed form")
    codes: Any = 0
    for i, growth in enumerate(_rates(group.factors)):
        if growth:
            reach = np.sqrt(group.cov[i][i]) + np.abs(group.mean[i])
            codes = codes + (1 << i) * np.less_equal(growth * reach, REACH)

    def of(part: Group, code: int) -> Ball:
        found = run(plan, part)
        return _better(found, part, code) if code else found

    return by_code(codes, group, of)


def _better(ball: Ball, group: Group, code: int) -> Ball:
    try:
        return better(ball, _series(group, code))
    except Unsupported:
        return ball


def _series(group: Group, code: int) -> Ball:
    """The expectation with the functions of a bit set expanded."""
    import numpy as np

    value = run(_plan(group.factors, code), group)
    count = len(group.factors)
    sizes, lost = [], []
    for i, factor in enumerate(group.factors):
        mean, deviation = group.mean[i], np.sqrt(group.cov[i][i])
        if code >> i & 1:
            lost.append(remainder(factor, mean, deviation))
            sizes.append(norm(factor, mean, deviation))
        else:
            lost.append(0.0)
            sizes.append(1.0 if count == 1 else _root_mean_square(group, i))
    cut = lost[0] if count == 1 else lost[0] * (sizes[1] + lost[1]) + sizes[0] * lost[1]
    return Ball(value.value, 0.0, value.error() + cut)


def _root_mean_square(group: Group, i: int) -> Any:
    """A bound of sqrt(E f_i^2)."""
    import numpy as np

    square = mul((group.factors[i], group.factors[i]))
    plan = compiled((square,))
    if plan is None:
        raise Unsupported("no norm")
    found = run(plan, Group((square,), (group.mean[i],), ((group.cov[i][i],),)))
    return np.sqrt(np.maximum(found.value, 0.0) + found.error())


def run(plan: Plan, group: Group) -> Ball:
    """The value of a plan at the means and covariances of a group."""
    count = len(group.mean)
    mean = [value if type(value) is int else Ball(value) for value in group.mean]
    cov: list[list[Any]] = [[0] * count for _ in range(count)]
    for i in range(count):
        for j in range(i, count):
            value = group.cov[i][j]
            if type(value) is not int:
                value = Ball(value, positive=i == j)
            cov[i][j] = cov[j][i] = value
    return ball(integral(_prepared(plan), FLOATS, Variables(FLOATS, mean, cov)))


@lru_cache(maxsize=1024)
def _prepared(plan: Plan) -> list[Prepared]:
    return prepared(plan, FLOATS)
