"""IDX files, arrays of bytes under a header with their shape, and MNIST, which comes in them."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tpcalc import checks
from tpcalc.data.files import ByteStream, opened, present
from tpcalc.data.pixels import Part, labelled, prepared
from tpcalc.errors import StudyError
from tpcalc.results.images import Images

if TYPE_CHECKING:
    from numpy.typing import NDArray


_BYTES = 0x08
_TYPES = {
    0x09: "signed bytes",
    0x0B: "16-bit integers",
    0x0C: "32-bit integers",
    0x0D: "floats",
    0x0E: "doubles",
}
_LARGEST = 1 << 29


def read_idx(path: str | Path, dimensions: int) -> NDArray[Any]:
    r"""An array of unsigned bytes from an IDX file, plain or packed by gzip.

    The header is believed only as far as the file bears it out: nothing is allocated for bytes
    that do not come. A file must end where its header says.

    Source:
        LeCun, Cortes, Burges, The MNIST database of handwritten digits, file formats.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = Path(folder) / "labels.idx"
        ...     _ = file.write_bytes(bytes([0, 0, 8, 1, 0, 0, 0, 3]) + b"\x07\x02\x01")
        ...     read_idx(file, 1).tolist()
        [7, 2, 1]
    """
    import numpy as np

    place = checks.file(path)
    dimensions = checks.whole(dimensions, "dimensions", least=1)
    with opened(place) as stream:
        shape = _shape(stream, dimensions)
        size = math.prod(shape)
        start = stream.position
        if stream.size is not None and stream.size < start + size:
            raise _cut(stream, stream.size, start + size)
        content = stream.take(size)
        if len(content) < size:
            raise _cut(stream, stream.position, start + size)
        if stream.take(1):  # reads the checksum of a gzip file too
            raise stream.error(
                f"the array ends at byte {start + size}, and the file goes on.",
                hint="It holds something else besides, or its header is wrong.",
            )
    return np.frombuffer(content, dtype=np.uint8).reshape(shape)


def _shape(stream: ByteStream, dimensions: int) -> tuple[int, ...]:
    magic = _header(stream, 4, 4 + 4 * dimensions)
    if magic[0] or magic[1]:
        at = 0 if magic[0] else 1
        raise stream.error(
            f"byte {at}: {magic[at]:#04x}, expected 0x00; this is no IDX file.",
            hint="An IDX file starts with two zero bytes.",
        )
    if magic[2] != _BYTES:
        kind = f" ({_TYPES[magic[2]]})" if magic[2] in _TYPES else ""
        raise stream.error(
            f"byte 2: type code {magic[2]:#04x}{kind}, expected 0x08 (unsigned bytes)."
        )
    if magic[3] != dimensions:
        raise stream.error(
            f"byte 3: {magic[3]} dimensions, expected {dimensions}.",
            hint="Labels have 1 dimension, images have 3; were two files exchanged?",
        )
    raw = _header(stream, 4 * dimensions, 4 + 4 * dimensions)
    shape = tuple(int.from_bytes(raw[k : k + 4], "big") for k in range(0, len(raw), 4))
    shown = " x ".join(map(str, shape))
    if 0 in shape:
        raise stream.error(
            f"byte {4 + 4 * shape.index(0)}: a dimension is 0, so the array of {shown} is empty."
        )
    if math.prod(shape) > _LARGEST:
        raise stream.error(
            f"bytes 4 to {3 + 4 * dimensions}: an array of {shown} bytes is announced; "
            f"at most {_LARGEST} are read.",
            hint="The header is wrong, or this is no data set of small images.",
        )
    return shape


def _header(stream: ByteStream, count: int, size: int) -> bytearray:
    found = stream.take(count)
    if len(found) < count:
        raise stream.error(
            f"the file ends at byte {stream.position}, inside its header of {size} bytes.",
            hint="Copy the file again.",
        )
    return found


def _cut(stream: ByteStream, end: int, size: int) -> Exception:
    return stream.error(
        f"the file ends at byte {end}; by its header it has {size} bytes.",
        hint="Copy the file again.",
    )


_SIDE = 28
_INSIDE = (".", "raw", "MNIST/raw")
_STEMS = ("train-images", "train-labels", "t10k-images", "t10k-labels")


def mnist(
    folder: str | Path,
    *,
    standardise: bool = True,
    train: int | None = None,
    test: int | None = None,
    seed: int = 0,
) -> Images:
    """MNIST from its four files, or another set in such files (Fashion-MNIST, KMNIST).

    Pixels are divided by 255 and then brought to mean 0 and variance 1 by the mean and the
    standard deviation of all training pixels together, one number each.

    Source:
        LeCun, Cortes, Burges, The MNIST database of handwritten digits.

    Example:
        >>> mnist("data/nowhere")
        Traceback (most recent call last):
        tpcalc.errors.StudyError: TPC100 data/nowhere: this is no folder that exists. ...
    """
    place = checks.file(folder, "folder")
    files = _files(place)
    return prepared(
        _part(*files[:2]),
        _part(*files[2:]),
        top=255,
        standardise=standardise,
        limits=(train, test),
        seed=seed,
        origin=f"MNIST files of {place}",
    )


def _files(folder: Path) -> list[Path]:
    found = {stem: present(folder, _INSIDE, _spellings(stem)) for stem in _STEMS}
    missing = [_spellings(stem)[0] for stem, path in found.items() if path is None]
    if missing:
        raise StudyError(
            f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing.",
            where=str(folder),
            hint="The folder needs all four files of MNIST, as they are or as .gz.",
        )
    return [path for path in found.values() if path is not None]


def _spellings(stem: str) -> tuple[str, ...]:
    kind = "idx3-ubyte" if stem.endswith("images") else "idx1-ubyte"
    return tuple(f"{stem}{dot}{kind}{end}" for end in ("", ".gz") for dot in ("-", "."))


def _part(images: Path, labels: Path) -> Part:
    pixels, kinds = read_idx(images, 3), read_idx(labels, 1)
    if pixels.shape[1:] != (_SIDE, _SIDE):
        raise StudyError(
            f"bytes 8 to 15: images of {pixels.shape[1]} x {pixels.shape[2]} pixels; "
            f"those of MNIST have {_SIDE} x {_SIDE}.",
            where=str(images),
        )
    return labelled(pixels.reshape(len(pixels), -1), kinds, images, labels, first_byte=8)
