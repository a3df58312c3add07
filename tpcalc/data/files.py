"""Bytes of local files, plain or packed by gzip, and never more of them than asked for."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from tpcalc.doors import files
from tpcalc.errors import StudyError

_GZIP = b"\x1f\x8b"
_CHUNK = 1 << 20  # a length that a file only claims must not be allocated at once


class ByteStream:
    """The bytes of one open file, unpacked, with the place reached."""

    def __init__(self, path: Path, source: IO[bytes], size: int | None) -> None:
        self.path = path
        self.size = size
        self.position = 0
        self._source = source

    def take(self, count: int) -> bytearray:
        """The next bytes; fewer where the file ends."""
        found = bytearray()
        while len(found) < count:
            try:
                part = self._source.read(min(_CHUNK, count - len(found)))
            except (EOFError, zlib.error, gzip.BadGzipFile) as error:
                raise self.error(
                    f"the gzip data is damaged, at unpacked byte {self.position} or behind it "
                    f"({error}).",
                    hint="Copy the file again.",
                ) from None
            except OSError as error:
                raise self.error(f"cannot be read ({error.strerror or error}).") from None
            if not part:
                break
            found += part
            self.position += len(part)
        return found

    def error(self, message: str, *, hint: str | None = None) -> StudyError:
        """An error about this file."""
        return StudyError(message, where=str(self.path), hint=hint)


@contextmanager
def opened(path: Path) -> Iterator[ByteStream]:
    """A file as a stream; what starts like gzip data is unpacked, whatever the file is called."""
    with files.opened(path) as file:
        packed = file.read(len(_GZIP)) == _GZIP
        file.seek(0)
        source: Any = gzip.GzipFile(fileobj=file) if packed else file
        yield ByteStream(path, source, None if packed else path.stat().st_size)


def present(folder: Path, inside: tuple[str, ...], names: tuple[str, ...]) -> Path | None:
    """The first of some files that exists."""
    try:
        if not folder.is_dir():
            reason = "a file, not a folder" if folder.exists() else "no folder that exists"
            raise StudyError(f"this is {reason}.", where=str(folder), hint="Name a folder.")
        for place in inside:
            for name in names:
                if (folder / place / name).is_file():
                    return folder / place / name
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise StudyError(f"cannot be searched ({reason}).", where=str(folder)) from None
    return None
