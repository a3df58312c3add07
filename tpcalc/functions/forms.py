"""Bilinear forms: sums of products of a row and a column, the arguments of an outer function."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tpcalc.functions.fn import Fn
from tpcalc.functions.tape import lower, numpy_space, run

__all__ = ["forms_of", "tiles"]

ENTRIES = 2**15  # of a tile: its temporaries stay in the cache


def forms_of(rows: Sequence[Any], cols: Sequence[Any], forms: Sequence[int]) -> list[Any]:
    """The sum of row * column for each form.

    Args:
        rows: Anything that can be multiplied and added.
        cols: One for each row.
        forms: For each pair the number of its form.

    Example:
        >>> forms_of([1, 2, 3], [4, 5, 6], [0, 1, 1])
        [4, 28]
    """
    found: dict[int, Any] = {}
    for row, col, form in zip(rows, cols, forms, strict=True):
        part = row * col
        found[form] = found[form] + part if form in found else part
    return [found[form] for form in sorted(found)]


def tiles(
    fn: Fn,
    rows: Sequence[Any],
    cols: Sequence[Any],
    scalars: Sequence[Any] = (),
    forms: Sequence[int] = (),
    xp: Any = None,
    entries: int = ENTRIES,
) -> Iterator[tuple[int, int, Any]]:
    """An outer function of arrays, some rows at a time: the whole is never kept.

    Args:
        fn: The function, of rows and columns, or of forms.
        rows: Arrays of one length, that of their last axis.
        cols: Arrays of one length.
        scalars: Numbers.
        forms: For each pair of a row and a column the number of its form.
        xp: The array namespace; None: numpy.
        entries: Of a tile.

    Yields:
        The first and the last row of a tile, and its values (broadcastable to rows and columns).

    Example:
        >>> import numpy as np
        >>> from tpcalc.functions import Var
        >>> ones, two = np.ones(3), np.array([1.0, 2.0])
        >>> [(a, b, block.tolist()) for a, b, block in tiles(Fn(Var(0) * Var(1), 2), [two], [ones])]
        [(0, 2, [[1.0, 1.0, 1.0], [2.0, 2.0, 2.0]])]
    """
    size, inner = rows[0].shape[-1], cols[0].shape[-1] if cols else 1
    lines = [col[..., None, :] for col in cols]
    tape, space = lower(fn), xp or numpy_space()
    height = max(1, entries // inner)
    for start in range(0, size, height):
        part = [row[..., start : start + height, None] for row in rows]
        arguments = forms_of(part, lines, forms) if forms else [*part, *lines]
        yield start, min(start + height, size), run(tape, space, [*arguments, *scalars])
