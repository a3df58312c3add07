"""Small files: regular, no larger than they may be, text in UTF-8, JSON and TOML within bounds."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from tpcalc.errors import StudyError

MOST = 1 << 26  # bytes
_DOTS = re.compile(r"(?<![\w.])(?:[\w\"'-]++\s*+\.\s*+){40}", re.ASCII)


@contextmanager
def opened(path: Path, what: str = "file") -> Iterator[BinaryIO]:
    """A regular file, open: what is a folder, a device or a pipe may never end, or never start."""
    where = str(path)
    try:
        if not path.is_file():
            reason = "there is no such file"
            if path.is_dir():
                reason = f"this is a folder, not a {what}"
            elif path.exists():
                reason = "this is a device or a pipe, no regular file"
            raise StudyError(f"{reason}.", where=where, hint="Check the path.")
        with path.open("rb") as file:
            yield file
    except (OSError, ValueError) as error:  # a path with a zero character is a ValueError
        reason = getattr(error, "strerror", None) or str(error)
        raise StudyError(f"the {what} cannot be read ({reason}).", where=where) from None


def content(path: Path, what: str = "file", most: int = MOST) -> bytes:
    """The bytes of a file."""
    with opened(path, what) as file:
        size = os.fstat(file.fileno()).st_size
        if size > most:
            raise StudyError(
                f"the {what} has {size:,} bytes; at most {most:,} are read.", where=str(path)
            )
        return file.read()


def text(path: Path, what: str = "file", most: int = MOST) -> str:
    """The text of a file in UTF-8.

    Raises:
        StudyError: As ``content``, or it is no such text.
    """
    found = content(path, what, most)
    try:
        return found.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = found.count(b"\n", 0, error.start) + 1
        raise StudyError(
            f"byte {found[error.start]:#04x} is not UTF-8 text.",
            where=f"{path}, line {line}",
            hint=f"Save the {what} as plain text in UTF-8.",
        ) from None


def from_json(text: str | bytes, where: str, hint: str = "") -> Any:
    """What a text in JSON holds."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:  # too many digits are a ValueError
        raise _broken("a JSON file", error, where, hint) from None


def from_toml(text: str, where: str) -> dict[str, Any]:
    """What a text in TOML holds."""
    import tomllib

    dotted = _DOTS.search(text)
    if dotted:
        line = text.count("\n", 0, dotted.start()) + 1
        raise StudyError("a key has more than 40 parts.", where=f"{where}, line {line}")
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise _broken("TOML", error, where, "") from None


def _broken(form: str, error: Exception, where: str, hint: str) -> StudyError:
    reason = str(error).rstrip(".")
    if isinstance(error, RecursionError):
        reason = "it is nested too deeply"
    elif "digits" in reason:
        reason = "a number in it has more than 4300 digits"
    return StudyError(f"this is not {form}: {reason}.", where=where, hint=hint or None)
