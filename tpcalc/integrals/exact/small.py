"""Where arguments are small, the series instead of the closed form, if its bound is lower."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from tpcalc.functions import Expr
from tpcalc.functions.expr import mul
from tpcalc.integrals.exact.ball import Ball, better
from tpcalc.integrals.exact.blocks import mapped, shape_of
from tpcalc.integrals.exact.floats import FLOATS, ball
from tpcalc.integrals.exact.gauss import Variables
from tpcalc.integrals.exact.groups import Group
from tpcalc.integrals.exact.integral import Prepared, integral, prepared
from tpcalc.integrals.exact.piece import Unsupported
from tpcalc.integrals.exact.pieces import decompose
from tpcalc.integrals.exact.plan import Plan, compiled, planned
from tpcalc.integrals.exact.series import REACH, expanded, norm, rate, remainder


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
    found = run(plan, group)
    codes: Any = 0
    for i, growth in enumerate(_rates(group.factors)):
        if growth:
            reach = np.sqrt(group.cov[i][i]) + np.abs(group.mean[i])
            codes = codes + (1 << i) * np.less_equal(growth * reach, REACH)
    if not np.any(codes):
        return found
    shape = shape_of(group)
    if not shape:
        return _better(found, group, int(codes))
    codes = np.broadcast_to(codes, shape)
    value = np.array(np.broadcast_to(found.value, shape))
    error = np.array(np.broadcast_to(found.error(), shape))
    for code in np.unique(codes[codes > 0]):
        chosen = codes == code

        def pick(entry: Any, chosen: Any = chosen) -> Any:
            return np.broadcast_to(entry, shape)[chosen]

        now = Ball(value[chosen], 0.0, error[chosen])
        best = _better(now, mapped(group, pick), int(code))
        value[chosen], error[chosen] = best.value, best.error()
    return Ball(value, 0.0, error)


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
