"""Files that are written: beside their place, then renamed, so that they are whole or not there."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from typing import BinaryIO

from tpcalc.errors import StudyError

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def put(place: Path, content: str | bytes, what: str = "file") -> Path:
    """Write a file; what was there stays where that fails.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     put(Path(folder) / "a.txt", "words").read_text()
        'words'
    """
    with writing(place, what) as file:
        file.write(content if isinstance(content, bytes) else content.encode())
    return place


@contextmanager
def writing(place: Path, what: str = "file") -> Iterator[BinaryIO]:
    """A file to write to, which takes its place when all is written."""
    with allowed(place, f"the {what} cannot be written"):
        target = _target(place, what)
        beside = _beside(target)
        try:
            with beside.open("xb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            if target.exists():
                shutil.copymode(target, beside)
            beside.replace(target)
        finally:
            with suppress(OSError):
                beside.unlink(missing_ok=True)


def check(place: Path, what: str = "file") -> None:
    """Try a place before the long run that is written there.

    Raises:
        StudyError: It is none, or the system refuses it.
    """
    with allowed(place, f"the {what} cannot be written"):
        beside = _beside(_target(place, what))
        beside.touch(exist_ok=False)
        beside.unlink()


def _target(place: Path, what: str) -> Path:
    target = Path(os.path.realpath(place))  # a link stays a link
    reason = ""
    if target.is_dir():
        reason = "it is a folder"
    elif target.exists() and not target.is_file():
        reason = "it is a device or a pipe"
    elif not target.parent.is_dir():
        reason = f"there is no folder {str(place.parent)!r}"
    if reason:
        raise StudyError(
            f"the {what} cannot be written: {reason}.",
            where=str(place),
            hint="Name a file in a folder that exists.",
        )
    return target


def _beside(target: Path) -> Path:
    name = target.name[:200]  # with a mark it must not be longer than names may be
    return target.with_name(f".{name}.{token_hex(4)}")


@contextmanager
def allowed(place: Path, what: str) -> Iterator[None]:
    """Say it where the system refuses a place."""
    try:
        yield
    except (OSError, ValueError) as error:  # a zero character is a ValueError
        full = getattr(error, "errno", None) in _FULL
        raise StudyError(
            f"{what}: {getattr(error, 'strerror', None) or error}.",
            where=str(place),
            hint="Make room there, or choose another place."
            if full
            else "Choose a place where you may write.",
        ) from error
