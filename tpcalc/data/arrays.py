"""Numbers given in Python as the data of a training run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

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
    return Samples(inputs, targets)  # type: ignore[arg-type]
