"""A plan on floats."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from tpcalc.integrals.exact.ball import Ball
from tpcalc.integrals.exact.floats import FLOATS, ball
from tpcalc.integrals.exact.gauss import Variables
from tpcalc.integrals.exact.groups import Group
from tpcalc.integrals.exact.integral import Prepared, integral, prepared
from tpcalc.integrals.exact.plan import Plan


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
