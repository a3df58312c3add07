"""Arrays from files: what a header announces is looked at before it is believed."""

from __future__ import annotations

import zipfile
import zlib
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from tpcalc.doors.budget import spend
from tpcalc.doors.files import opened, text
from tpcalc.errors import StudyError, TpcalcError, short

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ARRAY = ".npy"
_MEMBERS = 10_000  # of an archive


def array(path: Path, what: str) -> NDArray[Any]:
    """The array of a ``.npy`` file."""
    with opened(path, what) as file:
        return _read(file, path.stat().st_size, str(path), what)


def table(path: Path, what: str) -> NDArray[Any]:
    """The numbers of a text, a row on each line, with commas (``.csv``) or spaces between them."""
    import numpy as np

    lines = [line.partition("#")[0] for line in text(path, what).splitlines()]
    if not any(map(str.strip, lines)):
        raise damaged(str(path), what, "it holds no number")
    comma = "," if path.suffix == ".csv" else None
    try:
        return np.loadtxt(lines, delimiter=comma, ndmin=2)
    except ValueError as error:
        raise damaged(str(path), what, str(error)) from None


def arrays(path: Path, what: str) -> dict[str, NDArray[Any]]:
    """The arrays of a ``.npz`` file by name, as ``array`` reads one."""
    found: dict[str, NDArray[Any]] = {}
    with opened(path, what) as file:
        try:
            with zipfile.ZipFile(file) as archive:
                members = archive.infolist()
                if len(members) > _MEMBERS:
                    raise damaged(str(path), what, f"it has {len(members)} entries")
                for member in members:
                    with archive.open(member) as entry:
                        name = member.filename.removesuffix(_ARRAY)
                        found[name] = _read(entry, member.file_size, str(path), what)
        except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError) as error:
            raise damaged(str(path), what, str(error)) from None
    return found


def damaged(where: str, what: str, reason: str) -> StudyError:
    """The error for a file that is not as it has to be."""
    reason = short(" ".join(reason.split()).rstrip("."))
    return StudyError(
        f"this is no {what} that can be read, or it is damaged: {reason}.", where=where
    )


def _read(file: Any, size: int, where: str, what: str) -> NDArray[Any]:
    """The array of a file of some bytes."""
    import numpy as np

    try:
        bytes_of = _announced(file)
        if bytes_of is None:
            raise damaged(where, what, "it holds objects, not numbers")
        if bytes_of > size:
            raise damaged(where, what, f"it announces {bytes_of:,} bytes and has {size:,}")
        spend(f"reading the {what}", memory=2 * bytes_of, where=where)
        file.seek(0)
        found: NDArray[Any] = np.lib.format.read_array(file, allow_pickle=False)
    except TpcalcError:
        raise
    except Exception as error:  # headers are read as Python, with all the errors of that
        raise damaged(where, what, str(error).partition(".")[0]) from None
    return found


def _announced(file: BinaryIO) -> int | None:
    """How many bytes of numbers the header of an array announces; None: it has objects."""
    import numpy as np

    form = np.lib.format
    version = form.read_magic(file)
    headers = {(1, 0): form.read_array_header_1_0, (2, 0): form.read_array_header_2_0}
    if version not in headers:
        raise ValueError(f"version {version} of its form is not read")
    shape, _, dtype = headers[version](file)
    return None if dtype.hasobject else prod(shape) * dtype.itemsize
