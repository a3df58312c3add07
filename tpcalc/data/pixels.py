"""Whole-number pixels made into inputs of a network, the same way for every set of images."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tpcalc import checks
from tpcalc.errors import StudyError
from tpcalc.results.images import Images

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ROWS = 1024  # at a time, so that no copy of all pixels as wide integers is made


@dataclass(frozen=True, eq=False, slots=True)
class Part:
    """Images as they were read, for training or for the test."""

    pixels: NDArray[Any]  # whole numbers from 0 on, one row for each image
    labels: NDArray[Any]  # their classes


def labelled(
    pixels: NDArray[Any],
    labels: NDArray[Any],
    images: Path,
    kinds: Path,
    *,
    first_byte: int | None = None,
    stride: int = 1,
) -> Part:
    """Images with the labels that were read for them."""
    import numpy as np

    if len(pixels) != len(labels):
        other = images.name if images != kinds else "it"
        raise StudyError(
            f"{len(labels)} labels; {other} has {len(pixels)} images.",
            where=str(kinds),
            hint="Each image has one label; do the files belong together?",
        )
    if not len(labels):
        raise StudyError("there are no images in it.", where=str(images))
    bad = np.flatnonzero(labels > 9)
    if len(bad):
        at = int(bad[0])
        byte = "" if first_byte is None else f"byte {first_byte + at * stride}: "
        raise StudyError(
            f"{byte}the label of image {at} is {labels[at]}; labels are 0 to 9.", where=str(kinds)
        )
    return Part(pixels, labels)


def prepared(
    train: Part,
    test: Part,
    *,
    top: int,
    standardise: bool,
    limits: tuple[int | None, int | None],
    seed: int,
    origin: str,
) -> Images:
    """Images of ten classes, scaled, and as many of them as asked for.

    Pixels are divided by the largest value, then all of them are brought to mean 0 and variance 1
    by one mean and one standard deviation: those of all pixels of all training images, however
    few of them are kept, so that an image does not change with the question. Both are found in
    whole numbers and rounded once; so the inputs are the same on every machine.
    """
    import numpy as np

    seed = checks.seed(seed)
    kept = [
        _first(len(part.labels), limit, seed, name, origin)
        for part, limit, name in zip((train, test), limits, ("train", "test"), strict=True)
    ]
    shift, scale = _scale(train.pixels, top, origin) if standardise else (0.0, 1.0)
    # One value for each brightness: rounded once, and looked up for each pixel.
    values = ((np.arange(top + 1) / top - shift) / scale).astype(np.float32)
    arrays = [
        (_looked_up(values, part.pixels[rows]), part.labels[rows])
        for part, rows in zip((train, test), kept, strict=True)
    ]
    words = [origin]
    if any(limit is not None for limit in limits):
        words.append(f"chosen by seed {seed}")
    if not standardise:
        words.append("pixels from 0 to 1")
    return Images(*arrays[0], *arrays[1], classes=10, origin=", ".join(words))


def _first(size: int, limit: int | None, seed: int, name: str, origin: str) -> slice | NDArray[Any]:
    """Which images are kept: all, or the first of a permutation, so that few are among more."""
    import numpy as np

    if limit is None:
        return slice(None)
    hint = f"Ask for 1 to {size}, or leave it out for all images."
    wanted = checks.whole(limit, name, least=1, most=size, hint=hint)
    return np.random.default_rng(seed).permutation(size)[:wanted]


def _looked_up(values: NDArray[Any], pixels: NDArray[Any]) -> NDArray[Any]:
    import numpy as np

    found = np.empty(pixels.shape, dtype=values.dtype)
    for start in range(0, len(pixels), _ROWS):
        found[start : start + _ROWS] = values[pixels[start : start + _ROWS]]
    return found


def _scale(pixels: NDArray[Any], top: int, origin: str) -> tuple[float, float]:
    """Mean and standard deviation of pixels in units of ``top``."""
    import numpy as np

    total = squares = 0
    for start in range(0, len(pixels), _ROWS):
        rows = pixels[start : start + _ROWS].astype(np.int64)
        total += int(rows.sum())
        squares += int((rows**2).sum())
    size = pixels.size
    spread = size * squares - total**2  # the variance, times size**2
    if not spread:
        raise StudyError(
            "all training pixels are equal, so they have no standard deviation.",
            where=origin,
            hint="Use standardise=False, or check the files.",
        )
    return total / (size * top), math.sqrt(spread / (size * top) ** 2)
