"""CIFAR-10 from a local folder, in its python or its binary version."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tpcalc import checks
from tpcalc.data.files import opened, present
from tpcalc.data.pickled import read_pickle
from tpcalc.data.pixels import Part, labelled, prepared
from tpcalc.errors import StudyError
from tpcalc.results.images import Images

if TYPE_CHECKING:
    from numpy.typing import NDArray

_PIXELS = 3 * 32 * 32
_RECORD = 1 + _PIXELS
_LARGEST = 1 << 26
_BATCHES = (*(f"data_batch_{number}" for number in range(1, 6)), "test_batch")
_PYTHON = (".", "cifar-10-batches-py")
_BINARY = (".", "cifar-10-batches-bin")
_ARCHIVES = ("cifar-10-python.tar.gz", "cifar-10-binary.tar.gz")
_LUMINANCE = (299, 587, 114)  # thousandths of red, green and blue


def cifar10(
    folder: str | Path,
    *,
    gray: bool = True,
    standardise: bool = True,
    train: int | None = None,
    test: int | None = None,
    seed: int = 0,
) -> Images:
    """CIFAR-10 from its six batches.

    Gray is 0.299 red + 0.587 green + 0.114 blue, and is not rounded. Pixels are divided by their
    largest value and then brought to mean 0 and variance 1 by the mean and the standard deviation
    of all training pixels together, one number each.

    Batches of the python version are pickles. They are read by a machine that builds numbers,
    texts, lists, dictionaries and arrays of bytes and can do nothing else; a file that asks for
    more is refused.

    Source:
        Krizhevsky, Learning multiple layers of features from tiny images; weights of the colours:
        ITU-R BT.601.

    Example:
        >>> cifar10("data/nowhere")
        Traceback (most recent call last):
        tpcalc.errors.StudyError: TPC100 data/nowhere: this is no folder that exists. ...
    """
    import numpy as np

    place = checks.file(folder, "folder")
    files, read = _version(place)
    parts: list[Part] = []
    for path in files:
        found = read(path)
        if parts and len(found.labels) != len(parts[0].labels):
            raise StudyError(
                f"{len(found.labels)} images; {files[0].name} has {len(parts[0].labels)}, and all "
                "batches have the same number.",
                where=str(path),
                hint="One of them is cut off.",
            )
        parts.append(Part(_gray(found.pixels), found.labels) if gray else found)
    return prepared(
        Part(
            np.concatenate([part.pixels for part in parts[:-1]]),
            np.concatenate([part.labels for part in parts[:-1]]),
        ),
        parts[-1],
        top=255 * sum(_LUMINANCE) if gray else 255,
        standardise=standardise,
        limits=(train, test),
        seed=seed,
        origin=f"CIFAR-10 of {place}, {'gray' if gray else 'colour'}",
    )


def _version(folder: Path) -> tuple[list[Path], Callable[[Path], Part]]:
    """The six files and what reads them: the version of which more is there."""
    python = [present(folder, _PYTHON, (name,)) for name in _BATCHES]
    binary = [present(folder, _BINARY, (f"{name}.bin",)) for name in _BATCHES]
    whole, read, end = python, _from_pickle, ""
    if python.count(None) > binary.count(None):
        whole, read, end = binary, _from_records, ".bin"
    found = [path for path in whole if path is not None]
    if len(found) == len(_BATCHES):
        return found, read
    missing = [f"{name}{end}" for name, path in zip(_BATCHES, whole, strict=True) if path is None]
    archive = present(folder, (".",), _ARCHIVES)
    raise StudyError(
        f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing.",
        where=str(folder),
        hint=f"Unpack the archive first: tar xzf {archive.name}."
        if archive
        else "The folder needs all six batches, of the python version or of the binary one.",
    )


def _from_pickle(path: Path) -> Part:
    import numpy as np

    content = read_pickle(path)
    for key in ("data", "labels"):
        if key not in content:
            raise StudyError(
                f"the dictionary has no {key!r}.",
                where=str(path),
                hint="Batches of CIFAR-10 have 'data' and 'labels' (those of CIFAR-100 do not).",
            )
    pixels, labels = content["data"], content["labels"]
    if not isinstance(pixels, np.ndarray) or pixels.ndim != 2 or pixels.shape[1] != _PIXELS:
        shown = f"shape {pixels.shape}" if isinstance(pixels, np.ndarray) else "no array"
        raise StudyError(
            f"'data' has {shown}; it must be an array of bytes of shape (N, {_PIXELS}).",
            where=str(path),
        )
    if isinstance(labels, np.ndarray) and labels.ndim == 1:
        kinds = labels
    elif isinstance(labels, list) and all(type(label) is int for label in labels):
        kinds = _classes(labels, path)
    else:
        raise StudyError("'labels' is no list of whole numbers.", where=str(path))
    return labelled(pixels, kinds, path, path)


def _classes(labels: list[int], path: Path) -> NDArray[Any]:
    import numpy as np

    for index, label in enumerate(labels):
        if not 0 <= label <= 9:
            # Python refuses to write numbers of thousands of digits.
            shown = label if abs(label) < 10**9 else f"a number of {label.bit_length()} bits"
            raise StudyError(
                f"the label of image {index} is {shown}; labels are 0 to 9.", where=str(path)
            )
    return np.array(labels, dtype=np.uint8)


def _from_records(path: Path) -> Part:
    import numpy as np

    with opened(path) as stream:
        content = stream.take(_LARGEST + 1)
    if len(content) > _LARGEST:
        raise stream.error(f"the file has more than {_LARGEST} bytes; batches are smaller.")
    count, rest = divmod(len(content), _RECORD)
    if rest:
        raise stream.error(
            f"the file ends at byte {len(content)}, {rest} bytes into image {count}; "
            f"each takes {_RECORD} bytes.",
            hint="Copy the file again.",
        )
    records = np.frombuffer(content, dtype=np.uint8).reshape(count, _RECORD)
    return labelled(records[:, 1:], records[:, 0].copy(), path, path, first_byte=0, stride=_RECORD)


def _gray(pixels: NDArray[Any]) -> NDArray[Any]:
    """Luminance in thousandths: whole numbers from 0 to 255000."""
    import numpy as np

    planes = pixels.reshape(len(pixels), 3, -1)
    found = np.zeros((len(pixels), planes.shape[2]), dtype=np.int32)
    for plane, weight in enumerate(_LUMINANCE):
        found += planes[:, plane].astype(np.int32) * weight
    return found
