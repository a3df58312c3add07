"""The record of images with their classes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tpcalc.errors import StudyError, UsageError
from tpcalc.results.images import Images, class_shares

PIXELS = np.arange(12.0).reshape(4, 3)


def made(**changes: Any) -> Images:
    parts: dict[str, Any] = {
        "train": PIXELS,
        "train_labels": [0, 1, 2, 1],
        "test": PIXELS[:2],
        "test_labels": [2, 0],
        "classes": 3,
        "origin": "here",
    }
    return Images(**{**parts, **changes})


def test_arrays_have_one_form_and_cannot_be_written_to() -> None:
    given = PIXELS.astype(np.float32)
    found = made(train=given)
    assert (found.train.dtype, found.train_labels.dtype) == (np.float32, np.int64)
    assert found.dimension == 3
    for array in (found.train, found.train_labels, found.test, found.test_labels):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    given[0] = 1  # the caller's own array stays writable


def test_the_digest_is_of_content() -> None:
    assert made().digest == made(train=PIXELS.astype(np.float32), origin="there").digest
    changes: list[dict[str, Any]] = [
        {"train": PIXELS + 1},
        {"train_labels": [0, 1, 2, 2]},
        {"test_labels": [2, 1]},
        {"classes": 4},
        {"train": PIXELS[:2], "train_labels": [0, 1]},
    ]
    assert len({made(**change).digest for change in [{}, *changes]}) == len(changes) + 1


def test_shares() -> None:
    assert class_shares(made(test=PIXELS, test_labels=[0, 1, 0, 0])) == (0.75, 0.25, 0.0)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"train_labels": [0, 1]}, StudyError, "here: 4 training images and 2 labels"),
        ({"test_labels": [0, 3]}, StudyError, "label of test image 1 is 3; labels are 0 to 2"),
        ({"train_labels": [0, 1, 2, -1]}, StudyError, "label of training image 3 is -1"),
        ({"test_labels": [0.0, 1.0]}, StudyError, "hold float64 entries"),
        ({"test_labels": [[0], [1]]}, StudyError, r"labels have shape \(2, 1\)"),
        ({"test": PIXELS[:2, :2]}, StudyError, "have 3 pixels, test images 2"),
        ({"train": PIXELS - np.inf}, StudyError, "row 0, column 0 is"),
        ({"test": PIXELS[:2] * 1e300}, StudyError, "image 0 of test is inf in single precision"),
        ({"train": np.zeros((0, 3), np.float32), "train_labels": []}, StudyError, "it is empty"),
        ({"train": PIXELS[0]}, UsageError, r"train has shape \(3,\)"),
        ({"train": [["a"]]}, UsageError, "train holds"),
        ({"classes": 0}, UsageError, "classes is 0"),
        ({"origin": None}, UsageError, "origin is None"),
    ],
)
def test_what_does_not_fit(changes: dict[str, Any], error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        made(**changes)
