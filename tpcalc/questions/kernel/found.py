"""What the routes to a kernel return, before it becomes a record."""

from __future__ import annotations

from dataclasses import dataclass, field

from tpcalc.arrays import Array
from tpcalc.results import Method


@dataclass(frozen=True)
class Found:
    """A kernel with how it was found.

    Args:
        matrices: For each kind the matrix, of shape (N, M) or (N, K, M, K).
        method: The least certain method of an entry.
        error: The largest error, in units of sqrt(K_ii K_jj).
        coincident: That of different inputs that nearly coincide; None if not told apart.
        independent: Whether gradient independence holds.
        notes: For the reader.
        settings: What else the numbers depend on.

    Example:
        >>> Found({}, Method.EXACT, 0.0).notes
        ()
    """

    matrices: dict[str, Array]
    method: Method
    error: float
    coincident: float | None = None
    independent: bool | None = None
    notes: tuple[str, ...] = ()
    settings: dict[str, str] = field(default_factory=dict)
