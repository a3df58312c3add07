"""Variables sorted into groups that do not depend on each other, equal ones made one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from tpcalc.functions import Expr
from tpcalc.functions.expr import mul


@dataclass(frozen=True, slots=True)
class Group:
    """Functions of jointly Gaussian variables.

    Args:
        factors: The functions.
        mean: Means.
        cov: Covariances, full rows.
    """

    factors: tuple[Expr, ...]
    mean: tuple[Any, ...]
    cov: tuple[tuple[Any, ...], ...]


def grouped(
    factors: tuple[Expr, ...], mean: Sequence[Any], cov: Sequence[Sequence[Any]]
) -> list[Group]:
    """The groups; the expectation is the product of theirs."""
    kept: list[int] = []
    functions: dict[int, Expr] = {}
    for i, factor in enumerate(factors):
        twin = next((j for j in kept if _equal_variables(i, j, mean, cov)), None)
        if twin is None:
            kept.append(i)
            functions[i] = factor
        else:
            functions[twin] = _product(functions[twin], factor)
    groups = []
    while kept:
        members, stack = [], [kept.pop(0)]
        while stack:
            i = stack.pop()
            members.append(i)
            near = [j for j in kept if not _is_zero(cov[i][j])]
            stack += near
            kept = [j for j in kept if j not in near]
        members.sort()
        groups.append(
            Group(
                tuple(functions[i] for i in members),
                tuple(mean[i] for i in members),
                tuple(tuple(cov[i][j] for j in members) for i in members),
            )
        )
    return groups


@lru_cache(maxsize=1024)
def _product(one: Expr, other: Expr) -> Expr:
    return mul((one, other))


def _is_zero(value: Any) -> bool:
    return type(value) is int and value == 0


def _equal_variables(i: int, j: int, mean: Sequence[Any], cov: Sequence[Sequence[Any]]) -> bool:
    return (
        not _is_zero(cov[i][j])
        and _same(cov[i][i], cov[j][j])
        and _same(cov[i][i], cov[i][j])
        and _same(mean[i], mean[j])
    )


def _same(x: Any, y: Any) -> bool:
    """Whether two entries are the same everywhere."""
    if x is y:
        return True
    if hasattr(x, "shape") or hasattr(y, "shape"):
        import numpy as np

        return (
            (
                getattr(x, "shape", None) == getattr(y, "shape", None)
                and x.flat[0] == y.flat[0]
                and bool(np.array_equal(x, y))
            )
            if getattr(x, "size", 0) and getattr(y, "size", 0)
            else False
        )
    return bool(x == y)
