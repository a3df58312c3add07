"""Numbers given in Python as the data of a training run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tpcalc.errors import StudyError
from tpcalc.results import Samples

__all__ = ["inline"]


def inline(inputs: Iterable[Any], targets: Iterable[Any]) -> Samples:
    """Inputs and targets given as lists or arrays.

    Args:
        inputs: One row of d numbers for each sample.
        targets: One number for each sample, or one row of K numbers.

    Returns:
        The samples, with origin ``"inline"``.

    Raises:
        StudyError: An entry is no number or not finite, a row is no row, or rows differ in length.

    Example:
        >>> inline([[1, 0], [0, 1]], [1, -1]).targets
        ((1.0,), (-1.0,))
    """
    rows = tuple(
        _row(row, f"input row {index}") for index, row in enumerate(_entries(inputs, "inputs"))
    )
    goals = tuple(
        _row(row if _is_row(row) else (row,), f"target row {index}")
        for index, row in enumerate(_entries(targets, "targets"))
    )
    return Samples(rows, goals)


def _is_row(value: Any) -> bool:
    return hasattr(value, "__iter__") and not isinstance(value, str)


def _entries(values: Any, what: str) -> list[Any]:
    if not _is_row(values):
        raise StudyError(
            f"the {what} are {values!r}, not a list of rows.", where="inline", hint="Pass a list."
        )
    return list(values)


def _row(row: Any, place: str) -> tuple[float, ...]:
    if not _is_row(row):
        raise StudyError(
            f"{place} is {row!r}, not a list of numbers.",
            where="inline",
            hint="An input is a row of d numbers, even if d is 1: [[0.5], [1.0]].",
        )
    numbers = []
    for column, value in enumerate(row):
        try:
            numbers.append(float(value))
        except (TypeError, ValueError, OverflowError) as error:
            raise StudyError(
                f"{place}, column {column} is {value!r}, not a number.", where="inline"
            ) from error
    return tuple(numbers)
