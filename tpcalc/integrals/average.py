"""Gaussian averages: closed forms first, then quadrature, each number with a bound on its error."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from tpcalc.arrays import Array
from tpcalc.errors import EvaluationError
from tpcalc.functions import Expr
from tpcalc.integrals import exact, quadrature
from tpcalc.integrals.bounded import Bounded
from tpcalc.results import Method

GOOD = 1e-11  # of the largest value: an error that asks for no second way
Way = Callable[[Sequence[Expr], Sequence[Any], Sequence[Sequence[Any]]], Bounded | None]
_ROOMS: dict[Method, Any] = {Method.EXACT: exact, Method.QUADRATURE: quadrature}
METHODS = tuple(_ROOMS)


def ways(
    factors: Sequence[Expr], methods: Sequence[Method] = METHODS
) -> Iterator[tuple[Method, Way]]:
    """What averages such a product, the most exact way first."""
    for method in methods:
        if _ROOMS[method].supported(tuple(factors)):
            yield method, _ROOMS[method].expectation


def evaluated(
    factors: Sequence[Expr],
    cov: Sequence[Sequence[Any]],
    methods: Sequence[Method] = METHODS,
) -> Bounded:
    """E f_1(G_1) ... f_k(G_k) for centred Gaussians by the first way that has it, all at once."""
    for method, expectation in ways(factors, methods):
        found = expectation(factors, [0.0] * len(factors), cov)
        if found is not None:
            return Bounded(found.value, found.error, method)
    raise EvaluationError(
        f"no quadrature takes averages of {factors[0].text}.",
        hint="Use an activation whose kinks are declared.",
    )


def averages(factors: Sequence[Expr], cov: Sequence[Sequence[Any]]) -> Bounded:
    """E f_1(G_1) ... f_k(G_k) for centred Gaussians, at each entry of an array of covariances.

    Example:
        >>> from tpcalc.activations.entries import lookup
        >>> relu, q = lookup("relu").fn.expr, np.array([1.0, 4.0])
        >>> averages((relu, relu), [[q, q], [q, q]]).value
        array([0.5, 2. ])
    """
    table = [[np.asarray(entry, dtype=np.float64) for entry in row] for row in cov]
    size = max(entry.size for row in table for entry in row)
    table = [[np.broadcast_to(entry, (size,)) for entry in row] for row in table]
    best = _none(size)
    for method, expectation in ways(factors):
        best = better(best, _halved(expectation, factors, table), method)
        most = GOOD * np.abs(best.value).max(initial=0.0)
        if best.known.all() and bool((best.error <= most).all()):
            break
    return best


def _none(size: int) -> Bounded:
    return Bounded(np.full(size, np.nan), np.full(size, np.inf))


def better(left: Bounded, right: Bounded, method: Method) -> Bounded:
    """Of each entry the one with the smaller error, by a method."""
    take = right.error < left.error
    if not take.any():
        return left
    value = np.where(take, right.value, left.value)
    return Bounded(value, np.where(take, right.error, left.error), method)


def _halved(expectation: Way, factors: Sequence[Expr], table: list[list[Array]]) -> Bounded:
    """All entries at once; where one of them spoils the rest, the halves of the array.

    A part is given up where both of its ends are lost: what spoils an average (growth, kinks out
    of sight) is at an end of an ordered array.
    """
    size = len(table[0][0])
    found = _tried(expectation, factors, table)
    if found is not None:
        value, error = (
            np.array(np.broadcast_to(part, (size,))) for part in (found.value, found.error)
        )
        whole = Bounded(value, error)
        return whole.where(whole.known)
    if size == 1 or (size > 2 and _lost(expectation, factors, table)):
        return _none(size)
    middle = size // 2
    halves = [
        _halved(expectation, factors, [[entry[some] for entry in row] for row in table])
        for some in (slice(None, middle), slice(middle, None))
    ]
    parts = [(half.value, half.error) for half in halves]
    values, errors = (np.concatenate(own) for own in zip(*parts, strict=True))
    return Bounded(values, errors)


def _lost(expectation: Way, factors: Sequence[Expr], table: list[list[Array]]) -> bool:
    """Whether neither end of the array has an average."""
    ends = [
        [[entry[some] for entry in row] for row in table] for some in (slice(1), slice(-1, None))
    ]
    return all(_tried(expectation, factors, end) is None for end in ends)


def _tried(expectation: Way, factors: Sequence[Expr], table: list[list[Array]]) -> Bounded | None:
    """None also where an average is infinite."""
    with np.errstate(all="ignore"):
        try:
            return expectation(factors, [0.0] * len(factors), table)
        except EvaluationError:
            return None
