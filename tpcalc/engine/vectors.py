"""Vector registers: an array, or a linear combination of stored rows that was not formed yet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tpcalc.engine.directions import Basis, SampleSpace, Store

__all__ = ["Buffer", "Key", "Pool", "Vector", "linear"]

Array = NDArray[np.float64]
Key = tuple[str, str, bool]  # ("e" | "q", matrix, transpose), ("stack" | "starts", space, False)


class Pool:
    """Reusable arrays of one space; touched once, so that later replicates have no page faults."""

    def __init__(self, space: SampleSpace) -> None:
        self.space = space
        self._free: list[Array] = []

    def take(self) -> Buffer:
        """An array with arbitrary contents up to the size and zeros beyond."""
        return Buffer(self._free.pop() if self._free else self.space.zeros(), self)

    def give(self, array: Array) -> None:
        """Take an array back."""
        self._free.append(array)


class Buffer:
    """An array on loan from a pool; it goes back when nobody refers to the buffer any more."""

    __slots__ = ("__weakref__", "array", "pool")

    def __init__(self, array: Array, pool: Pool) -> None:
        self.array = array
        self.pool = pool

    def __del__(self) -> None:
        self.pool.give(self.array)


@dataclass(slots=True)
class Vector:
    """A vector register.

    Args:
        dense: Its coordinates, if they were formed.
        form: Coefficients on stored rows, and buffers with their coefficients; None if it was
            computed coordinate by coordinate.
        coords: Its coordinates in the orthonormal basis of each matrix side it was applied to.
        row: Its row in the stack of its space.
    """

    dense: Buffer | None = None
    form: dict[Key, Array] | None = None
    others: list[tuple[Buffer, float]] = field(default_factory=list)
    coords: dict[Key, Array] = field(default_factory=dict)
    row: tuple[Key, int] | None = None

    @property
    def has_spare(self) -> bool:
        """Whether sums can do without the array."""
        return bool(self.coords) or self.row is not None or self.form is not None


def linear(
    vector: Vector,
    factor: float,
    total: dict[Key, Array],
    others: list[tuple[Buffer, float]],
    capacity: Mapping[Key, int],
) -> None:
    """Add ``factor`` times a vector to a linear combination under construction.

    Coordinates in a basis come first: many vectors share its rows, which a product reads anyway.
    """
    if vector.coords:
        key, coefficients = next(iter(vector.coords.items()))
        _grow(total, key, capacity)[: len(coefficients)] += factor * coefficients
    elif vector.row is not None:
        key, row = vector.row
        _grow(total, key, capacity)[row] += factor
    elif vector.dense is not None:
        others.append((vector.dense, factor))
    else:
        assert vector.form is not None
        for key, coefficients in vector.form.items():
            _grow(total, key, capacity)[: len(coefficients)] += factor * coefficients
        others.extend((buffer, factor * number) for buffer, number in vector.others)


def _grow(total: dict[Key, Array], key: Key, capacity: Mapping[Key, int]) -> Array:
    found = total.get(key)
    if found is None:
        found = total[key] = np.zeros(capacity[key])
    return found


Rows = Store | Basis
