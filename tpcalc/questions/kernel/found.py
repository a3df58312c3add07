"""What the routes to a kernel return, before it becomes a record."""

from __future__ import annotations

from dataclasses import dataclass, field

from tpcalc.arrays import Array
from tpcalc.results import Method


@dataclass(frozen=True)
class Found:
    """A kernel with how it was found.

    Example:
        >>> Found({}, Method.EXACT, 0.0).notes
        ()
    """

    matrices: dict[str, Array]  # for each kind the matrix, of shape (N, M) or (N, K, M, K)
    method: Method  # the least certain method of an entry
    error: float  # the largest error, in units of sqrt(K_ii K_jj)
    # that of different inputs that nearly coincide; None if not told apart
    coincident: float | None = None
    independent: bool | None = None  # whether gradient independence holds
    notes: tuple[str, ...] = ()  # for the reader
    settings: dict[str, str] = field(default_factory=dict)  # what else the numbers depend on
