"""Numbers given in Python."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tpcalc.data import inline
from tpcalc.errors import StudyError


def test_lists_and_arrays_give_the_same() -> None:
    rows, goals = [[1, 2.5], [3, 4]], [1, -1]
    assert inline(rows, goals) == inline(np.array(rows), np.array(goals))
    assert inline(rows, goals).targets == ((1.0,), (-1.0,))


def test_rows_of_targets() -> None:
    assert inline([[1.0]], [[0, 1]]).outputs == 2


def test_numpy_numbers_become_python_numbers() -> None:
    assert type(inline(np.ones((1, 1), dtype=np.float32), [1]).inputs[0][0]) is float


@pytest.mark.parametrize(
    ("inputs", "targets", "message"),
    [
        ([[1, "a"]], [1], "input row 0, column 1 is 'a', not a number"),
        ([[1, 2]], [None], "target row 0, column 0 is None"),
        ([1, 2], [1, 2], "input row 0 is 1, not a list of numbers"),
        (3, [1], "the inputs are 3, not a list of rows"),
        ("12", [1], "the inputs are '12'"),
        ([[1], [1, 2]], [1, 2], "input row 1 has 2 numbers, row 0 has 1"),
        ([[1]], [1, 2], "1 inputs and 2 targets"),
        ([], [], "0 inputs and 0 targets"),
        ([[]], [1], "input row 0 is empty"),
        ([[math.nan]], [1], "input row 0, column 0 is nan"),
        ([[1]], [math.inf], "target row 0, column 0 is inf"),
        ([[10**400]], [1], "not a number"),
    ],
)
def test_bad_numbers(inputs: object, targets: object, message: str) -> None:
    with pytest.raises(StudyError, match=message.replace("[", r"\[")):
        inline(inputs, targets)  # type: ignore[arg-type]
