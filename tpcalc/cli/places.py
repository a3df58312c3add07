"""Where answers are written, checked before the long run and not after it."""

from __future__ import annotations

from pathlib import Path

from tpcalc.doors import write
from tpcalc.errors import StudyError, UsageError


def check_place(flag: str, path: Path, suffixes: tuple[str, ...], what: str) -> None:
    """Refuse a place that cannot be written."""
    if path.suffix.lower() not in suffixes:
        raise UsageError(
            f"{flag}: {what} is written as {' or '.join(suffixes)}, and {path} does not end so.",
            hint=f"Call it {path.stem or 'answer'}{suffixes[0]}.",
        )
    try:
        write.check(path, what.removeprefix("a "))
    except StudyError as error:
        raise UsageError(f"{flag}: {error.message}", hint=error.hint) from None


def check_page(out: Path | None) -> None:
    """The same for the report of ``--out``, where there is one."""
    if out is not None:
        check_place("--out", out, (".html", ".md"), "a report")
