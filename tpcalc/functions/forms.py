"""Bilinear forms: sums of products of a row and a column, the arguments of an outer function."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["forms_of"]


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
