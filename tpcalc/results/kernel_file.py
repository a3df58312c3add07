"""Matrices with a text beside them in one ``.npz`` file, without pickles."""

from __future__ import annotations

import contextlib
import os
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any

from tpcalc.errors import StudyError

if TYPE_CHECKING:
    from numpy.typing import NDArray

_TEXT = "kernel"  # the entry that holds everything but the matrices
BROKEN = (ValueError, KeyError, EOFError, OSError, zipfile.BadZipFile, zlib.error, MemoryError)


def write_matrices(place: Path, text: str, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write a file, which appears whole or not at all."""
    import numpy as np

    if place.suffix.lower() != ".npz":
        raise StudyError(
            f"a kernel is written as .npz, not as {place.suffix or 'a bare name'!r}.",
            where=str(place),
            hint=f"Call it {place.stem or 'kernel'}.npz.",
        )
    write_whole(place, {_TEXT: np.array(text), **arrays}, "kernel")


def write_whole(place: Path, entries: Mapping[str, Any], what: str) -> None:
    """Write arrays by name to a ``.npz`` file, which appears whole or not at all."""
    import numpy as np

    target = Path(os.path.realpath(place))  # a link stays a link
    beside = target.with_name(f".{target.name}.{token_hex(4)}")
    try:
        with beside.open("xb") as file:
            np.savez(file, **dict(entries))
        if target.is_dir():
            raise IsADirectoryError(0, "it is a folder")
        beside.replace(target)
    except OSError as error:
        raise StudyError(
            f"the {what} could not be written: {error.strerror or error}.",
            where=str(place),
            hint="Choose a place where you may write.",
        ) from error
    finally:
        with contextlib.suppress(OSError):
            beside.unlink()


def read_matrices(place: Path, names: Iterable[str]) -> tuple[str, dict[str, NDArray[Any]]]:
    """Read what ``write_matrices`` wrote."""
    import numpy as np

    try:
        with place.open("rb") as file:
            found = np.load(file, allow_pickle=False)
            if not isinstance(found, np.lib.npyio.NpzFile):
                raise misfit(place, "it holds one array without its description")
            entries = {name: found[name] for name in (_TEXT, *names) if name in found.files}
    except FileNotFoundError:
        raise StudyError("there is no such file.", where=str(place)) from None
    except IsADirectoryError:
        raise StudyError("this is a folder, not a kernel.", where=str(place)) from None
    except BROKEN as error:
        reason = " ".join(str(getattr(error, "strerror", None) or error).split())
        raise StudyError(
            f"this is no file that tpcalc wrote a kernel to, or it is damaged ({reason[:120]}).",
            where=str(place),
            hint="Give a file that Kernel.save wrote.",
        ) from None
    text = entries.pop(_TEXT, None)
    if text is None or text.dtype.kind != "U" or text.ndim:
        raise misfit(place, "it has no description")
    for name, array in entries.items():
        if array.dtype != "float64":
            raise misfit(place, f"the {name.upper()} is of {array.dtype}, not of float64")
    return str(text[()]), entries


def misfit(place: Path, reason: str) -> StudyError:
    """The error for a file that holds something else."""
    return StudyError(
        f"this is no kernel: {reason}.",
        where=str(place),
        hint="Give a file that Kernel.save wrote.",
    )
