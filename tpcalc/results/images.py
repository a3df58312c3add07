"""Data of a run: ``Images`` with their classes as arrays, ``Samples`` as numbers."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from tpcalc import checks
from tpcalc.errors import StudyError
from tpcalc.shown import Shown

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, eq=False, repr=False)
class Images(Shown):
    """Images for classification: one row of d pixels each, and a class from 0 to K - 1.

    Arrays are brought to float32 and int64 and cannot be written to. (``torch.tensor`` copies
    them; ``torch.from_numpy`` would warn.)

    Example:
        >>> found = Images([[0.5, 1.0], [0.0, -1.0]], [0, 1], [[1.0, 1.0]], [1], 2, "by hand")
        >>> found
        2 training and 1 test images of 2 pixels, 2 classes, by hand
        >>> found.train.dtype.name, found.dimension
        ('float32', 2)
    """

    train: NDArray[Any]  # training inputs, of shape (N, d)
    train_labels: NDArray[Any]  # their classes, of shape (N,)
    test: NDArray[Any]  # test inputs, of shape (M, d)
    test_labels: NDArray[Any]  # their classes, of shape (M,)
    classes: int  # number of classes K
    origin: str  # where they come from and how they were prepared, for the report

    def __post_init__(self) -> None:
        checks.text(self.origin, "origin")
        object.__setattr__(self, "classes", checks.whole(self.classes, "classes", least=1))
        for part, words in (("train", "training"), ("test", "test")):
            pixels = _pixels(getattr(self, part), part, self.origin)
            labels = _labels(getattr(self, f"{part}_labels"), words, self.classes, self.origin)
            if len(pixels) != len(labels):
                raise StudyError(
                    f"{len(pixels)} {words} images and {len(labels)} labels; each image has one.",
                    where=self.origin,
                )
            object.__setattr__(self, part, pixels)
            object.__setattr__(self, f"{part}_labels", labels)
        if self.train.shape[1] != self.test.shape[1]:
            raise StudyError(
                f"training images have {self.train.shape[1]} pixels, test images "
                f"{self.test.shape[1]}.",
                where=self.origin,
            )

    @property
    def dimension(self) -> int:
        """Number of pixels d."""
        return int(self.train.shape[1])

    @cached_property
    def digest(self) -> str:
        """SHA-256 of all pixels and labels, in hexadecimal, on every machine the same."""
        found = hashlib.sha256(
            f"{self.classes} {self.train.shape} {self.test.shape}".encode()
        )  # else two sets whose pixels are cut into rows otherwise had one digest
        for array, order in (
            (self.train, "<f4"),
            (self.train_labels, "<i8"),
            (self.test, "<f4"),
            (self.test_labels, "<i8"),
        ):
            found.update(array.astype(order, copy=False).data)
        return found.hexdigest()

    def __repr__(self) -> str:
        return (
            f"{len(self.train)} training and {len(self.test)} test images of {self.dimension} "
            f"pixels, {self.classes} classes, {self.origin}"
        )

    __str__ = __repr__


def class_shares(images: Images) -> tuple[float, ...]:
    """The share of each class in the test images.

    The share of class k is the accuracy of a predictor that answers k always. A network whose
    outputs are all 0 answers class 0, where ties go to the smallest class.

    Source:
        Hajjar, Chizat, Giraud, Training integrable parameterizations of deep neural networks in
        the infinite-width limit, Table 3: 0.098 is the share of the digit 0 in MNIST.

    Example:
        >>> found = Images([[0.5]], [0], [[0.1], [0.2], [0.3], [0.4]], [1, 0, 1, 1], 2, "by hand")
        >>> class_shares(found)
        (0.25, 0.75)
    """
    import numpy as np

    counts = np.bincount(images.test_labels, minlength=images.classes)
    return tuple(int(count) / len(images.test_labels) for count in counts)


def _pixels(value: Any, name: str, origin: str) -> NDArray[Any]:
    import numpy as np

    given = np.asarray(value)
    # Single precision is checked as it is: a float64 copy of a data set takes gigabytes.
    found = given if given.dtype == np.float32 and given.ndim == 2 else checks.inputs(given, name)
    if not len(found) or not found.shape[1]:
        raise StudyError(f"{name} has shape {found.shape}: it is empty.", where=origin)
    with np.errstate(over="ignore"):
        found = np.ascontiguousarray(found, dtype=np.float32).view()
    if not np.isfinite(found).all():
        row, column = (int(index) for index in np.argwhere(~np.isfinite(found))[0])
        raise StudyError(
            f"pixel {column} of image {row} of {name} is {found[row, column]} in single precision; "
            "every pixel must be finite.",
            where=origin,
        )
    found.flags.writeable = False
    return found


def _labels(value: Any, words: str, classes: int, origin: str) -> NDArray[Any]:
    import numpy as np

    given = np.asarray(value)
    if given.ndim != 1 or given.dtype.kind not in "ui":
        raise StudyError(
            f"the {words} labels have shape {given.shape} and hold {given.dtype} entries; they "
            "are one whole number for each image.",
            where=origin,
        )
    bad = np.flatnonzero((given < 0) | (given >= classes))
    if len(bad):
        raise StudyError(
            f"the label of {words} image {bad[0]} is {given[bad[0]]}; "
            f"labels are 0 to {classes - 1}.",
            where=origin,
        )
    found = given.astype(np.int64)
    found.flags.writeable = False
    return found


Row = Sequence[float] | NDArray[Any]
Rows = Sequence[Row] | NDArray[Any]


@dataclass(frozen=True)
class Samples(Shown):
    """Inputs with their targets, row by row.

    Lists, arrays and data frames are taken too; they become tuples of floats.

    Args:
        inputs: One row of d numbers for each sample.
        targets: One row of K numbers for each sample (one-hot for classes), or one number.
        origin: Where they come from, for the report.

    Raises:
        StudyError: Rows of unequal length, no rows, or an entry that is not a finite number.

    Example:
        >>> data = Samples(((1.0, 0.5), (-0.5, 1.0)), ((1.0,), (-1.0,)))
        >>> len(data), data.dimension, data.outputs
        (2, 2, 1)
    """

    inputs: tuple[tuple[float, ...], ...]
    targets: tuple[tuple[float, ...], ...]
    origin: str = "inline"

    if TYPE_CHECKING:  # what is taken is more than what is kept

        def __init__(self, inputs: Rows, targets: Rows | Row, origin: str = "inline") -> None: ...

    def __post_init__(self) -> None:
        origin = checks.text(self.origin, "origin")
        object.__setattr__(self, "inputs", checks.rows(self.inputs, "input", origin))
        targets = checks.rows(self.targets, "target", origin, single=True)
        object.__setattr__(self, "targets", targets)
        if not self.inputs or len(self.inputs) != len(self.targets):
            raise StudyError(
                f"{len(self.inputs)} inputs and {len(self.targets)} targets; "
                "at least one sample is needed, and one target for each.",
                where=self.origin,
            )

    @property
    def dimension(self) -> int:
        """Number of input features d."""
        return len(self.inputs[0])

    @property
    def outputs(self) -> int:
        """Number of outputs K."""
        return len(self.targets[0])

    def __len__(self) -> int:
        return len(self.inputs)
