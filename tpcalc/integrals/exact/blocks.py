"""Arrays in blocks that fit into the cache."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from tpcalc.integrals.exact.ball import Ball, finite_error
from tpcalc.integrals.exact.groups import Group

BLOCK = 8192


def entries(group: Group) -> list[Any]:
    """Means and the upper triangle of the covariances."""
    count = len(group.mean)
    return [*group.mean, *(group.cov[i][j] for i in range(count) for j in range(i, count))]


def shape_of(group: Group) -> tuple[int, ...]:
    """The shape that all entries broadcast to."""
    import numpy as np

    return np.broadcast_shapes(*(getattr(entry, "shape", ()) for entry in entries(group)))


def mapped(group: Group, change: Callable[[Any], Any]) -> Group:
    """The group with every array changed; numbers stay."""

    def of(entry: Any) -> Any:
        return change(entry) if hasattr(entry, "shape") else entry

    return replace(
        group,
        mean=tuple(of(entry) for entry in group.mean),
        cov=tuple(tuple(of(entry) for entry in row) for row in group.cov),
    )


def _slices(shape: tuple[int, ...]) -> Iterator[tuple[slice, ...]]:
    """Parts of an array of at most so many entries (where an axis allows it)."""
    size = 1
    for length in shape:
        size *= length
    if size <= BLOCK or not shape:
        yield (slice(None),) * len(shape)
        return
    inner = size // shape[0]
    rows = max(1, BLOCK // inner)
    for start in range(0, shape[0], rows):
        own = slice(start, min(start + rows, shape[0]))
        if rows > 1 or inner <= BLOCK:
            yield (own, *(slice(None),) * (len(shape) - 1))
        else:
            for rest in _slices(shape[1:]):
                yield (own, *rest)


def in_blocks(group: Group, work: Callable[[Group], Ball]) -> Ball:
    """A function of a group on arrays, block by block."""
    import numpy as np

    shape = shape_of(group)
    parts = list(_slices(shape))
    if len(parts) < 2:
        found = work(group)
        return Ball(found.value, 0.0, finite_error(found.error()))
    value, error = np.empty(shape), np.empty(shape)
    for part in parts:

        def cut(entry: Any, part: tuple[slice, ...] = part) -> Any:
            own = part[len(part) - entry.ndim :]
            chosen = zip(own, entry.shape, strict=True)
            return entry[tuple(slice(None) if n == 1 else s for s, n in chosen)]

        found = work(mapped(group, cut))
        value[part] = found.value
        error[part] = finite_error(found.error())
    return Ball(value, 0.0, error)
