"""The line of the user's own code that is being run, for errors and for ``Program.where``."""

from __future__ import annotations

import os
import re
import sys
from functools import lru_cache
from pathlib import Path
from types import CodeType, FrameType, TracebackType

from tpcalc.errors import TpcalcError, TraceError


def user_line() -> str | None:
    """File name (without folders) and line of the innermost frame that the user wrote.

    The frames of this package, of the standard library and of installed packages are passed over.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        author, name = _author_of(frame)
        if author == "user":
            return f"{name}:{frame.f_lineno}"
        frame = None if author == "launcher" else frame.f_back
    return None


def _author_of(frame: FrameType) -> tuple[str, str]:
    filename = frame.f_code.co_filename
    if filename == "<string>" and str(frame.f_globals.get("__name__")).startswith("tpcalc."):
        return "package", filename  # a method that a dataclass generated
    return _author(filename)


@lru_cache(maxsize=1024)
def _author(filename: str) -> tuple[str, str]:
    """Who wrote a file (the user, or one whose lines tell the user nothing), and its short name."""
    path = Path(filename)
    package = Path(user_line.__code__.co_filename).parents[1]
    author = "user"
    if package in path.parents:
        # Below the command line lie only the scripts that started it.
        author = "launcher" if path.relative_to(package).parts[0] == "cli" else "package"
    elif (
        {"site-packages", "dist-packages"} & set(path.parts)
        or filename.startswith("<frozen")
        or Path(os.__file__).parent in path.parents
    ):
        author = "library"
    return author, path.name


def line_of(function: object) -> str | None:
    """Where a Python function is written; None for anything else."""
    code = getattr(function, "__code__", None)
    if not isinstance(code, CodeType):
        return None
    return f"{_author(code.co_filename)[1]}:{code.co_firstlineno}"


def misuse(
    message: str,
    hint: str | None = None,
    *,
    kind: type[TraceError] = TraceError,
    where: str | None = None,
) -> TraceError:
    """An error about what the user wrote, with the line."""
    return kind(message, where=where or user_line(), hint=hint)


def locate(error: TpcalcError) -> None:
    """Give an error that names no line the user's line that led to it."""
    if error.where is not None and re.search(r":\d", error.where):
        return
    line = _last_user_line(error.__traceback__) or user_line()
    if line is not None:
        error.where = f"{error.where} at {line}" if error.where else line
        error.args = (str(error),)


def _last_user_line(traceback: TracebackType | None) -> str | None:
    line = None
    while traceback is not None:
        author, name = _author_of(traceback.tb_frame)
        if author == "user":
            line = f"{name}:{traceback.tb_lineno}"
        traceback = traceback.tb_next
    return line
