"""Gaussian averages over arrays of variances and covariances, with a bound on each error."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tpcalc.arrays import Array
from tpcalc.errors import EvaluationError
from tpcalc.functions import Expr
from tpcalc.integrals import exact, quadrature
from tpcalc.integrals.bounded import Bounded
from tpcalc.integrals.computed import Computed
from tpcalc.results import Method

GOOD = 1e-11  # of the largest value: an error that asks for no second way
_WAYS: tuple[tuple[Method, Any, Callable[..., Computed | None]], ...] = (
    (Method.EXACT, exact.supported, exact.expectation),
    (Method.QUADRATURE, quadrature.supported, quadrature.expectation),
)


@dataclass(frozen=True, eq=False)
class Values:
    """Numbers in an array, each with a bound on its error; infinite where there is no number.

    Args:
        value: The numbers.
        error: The bounds.
        method: The least exact method behind them.
    """

    value: Array
    error: Array
    method: Method

    @property
    def known(self) -> NDArray[np.bool_]:
        """Where there is a number."""
        return np.isfinite(self.value) & np.isfinite(self.error)

    def at(self, index: int) -> Bounded:
        """One of them."""
        if not self.known[index]:
            raise EvaluationError(
                "an average over the Gaussian does not exist, or is not found.",
                hint="The activation grows too fast, or bends in places that are not declared.",
            )
        return Bounded(float(self.value[index]), float(self.error[index]), self.method)


def averages(factors: Sequence[Expr], cov: Sequence[Sequence[Any]]) -> Values:
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
    best = Values(np.full(size, np.nan), np.full(size, np.inf), Method.EXACT)
    for method, supported, expectation in _WAYS:
        if not supported(factors):
            continue
        best = _better(best, _halved(expectation, factors, table, method))
        if _good(best):
            break
    return best


def _good(values: Values) -> bool:
    if not values.known.all():
        return False
    return bool((values.error <= GOOD * np.abs(values.value).max(initial=0.0)).all())


def _better(left: Values, right: Values) -> Values:
    take = right.error < left.error
    if not take.any():
        return left
    method = right.method
    return Values(
        np.where(take, right.value, left.value), np.where(take, right.error, left.error), method
    )


def _halved(
    expectation: Callable[..., Computed | None],
    factors: Sequence[Expr],
    table: list[list[Array]],
    method: Method,
) -> Values:
    """All entries at once; where one of them spoils the rest, the halves of the array.

    A part is given up where both of its ends are lost: what spoils an average (growth, kinks out
    of sight) is at an end of an ordered array.
    """
    size = len(table[0][0])
    found = _tried(expectation, factors, table)
    if found is not None:
        value = np.array(np.broadcast_to(found.value, (size,)))
        error = np.array(np.broadcast_to(found.error, (size,)))
        lost = ~(np.isfinite(value) & np.isfinite(error))
        return Values(np.where(lost, np.nan, value), np.where(lost, np.inf, error), method)
    if size == 1 or (size > 2 and _lost(expectation, factors, table)):
        return Values(np.full(size, np.nan), np.full(size, np.inf), method)
    middle = size // 2
    parts = [
        _halved(expectation, factors, [[entry[some] for entry in row] for row in table], method)
        for some in (slice(None, middle), slice(middle, None))
    ]
    return Values(
        np.concatenate([part.value for part in parts]),
        np.concatenate([part.error for part in parts]),
        method,
    )


def _lost(
    expectation: Callable[..., Computed | None], factors: Sequence[Expr], table: list[list[Array]]
) -> bool:
    """Whether neither end of the array has an average."""
    ends = [
        [[entry[some] for entry in row] for row in table] for some in (slice(1), slice(-1, None))
    ]
    return all(_tried(expectation, factors, end) is None for end in ends)


def _tried(
    expectation: Callable[..., Computed | None], factors: Sequence[Expr], table: list[list[Array]]
) -> Computed | None:
    """None also where an average is infinite."""
    with np.errstate(all="ignore"):
        try:
            return expectation(factors, [0.0] * len(factors), table)
        except EvaluationError:
            return None
