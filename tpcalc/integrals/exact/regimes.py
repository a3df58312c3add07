"""Entries of arrays that need another treatment: variances that are 0."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tpcalc.errors import EvaluationError
from tpcalc.integrals.exact.ball import Ball
from tpcalc.integrals.exact.blocks import mapped, shape_of
from tpcalc.integrals.exact.groups import Group
from tpcalc.integrals.exact.points import at_point


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
    if not np.ndim(codes) or np.all(codes == codes.flat[0]):
        return _some_fixed(group, int(np.asarray(codes).flat[0]), work)
    shape = shape_of(group)
    codes = np.broadcast_to(codes, shape)
    value, error = np.empty(shape), np.empty(shape)
    for code in np.unique(codes):
        chosen = codes == code

        def pick(entry: Any, chosen: Any = chosen) -> Any:
            return np.broadcast_to(entry, shape)[chosen]

        found = _some_fixed(mapped(group, pick), int(code), work)
        value[chosen] = found.value
        error[chosen] = found.error()
    return Ball(value, 0.0, error)


def _some_fixed(group: Group, code: int, work: Callable[[Group], Ball]) -> Ball:
    """The expectation where the variables of a bit set are numbers."""
    fixed = [i for i in range(len(group.mean)) if code >> i & 1]
    free = [i for i in range(len(group.mean)) if not code >> i & 1]
    out = Ball(1.0)
    for i in fixed:
        out = out * at_point(group.factors[i], group.mean[i])
    if not free:
        return out
    rest = Group(
        tuple(group.factors[i] for i in free),
        tuple(group.mean[i] for i in free),
        tuple(tuple(group.cov[i][j] for j in free) for i in free),
    )
    return out * work(rest)
