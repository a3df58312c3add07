"""What a run may take: time and memory, estimated before it starts."""

from __future__ import annotations

import re
from collections.abc import Callable

from tpcalc.doors.machine import available_memory, limits, memory_text
from tpcalc.doors.numbers import exact
from tpcalc.errors import OutOfMemory, TooLong, UsageError

LONG = 2.0  # seconds: who waits longer is told
_UNITS = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}
_TIMES = {"year": 31557600, "day": 86400, "hour": 3600, "minute": 60}
_SIZE = re.compile(r"([0-9.]+)\s*([KMGT]?)(i?B)?", re.IGNORECASE | re.ASCII)


_TOLD: list[Callable[[str, float], None]] = []


def spend(
    what: str, *, seconds: float = 0.0, memory: float = 0.0, hint: str = "", where: str = ""
) -> None:
    """Refuse some work before it starts, where it would take more than it may.

    Args:
        what: The work, for the message: ``"unrolling 10 steps"``.
        seconds: About how long it takes.
        memory: About how many bytes.
        hint: What to make smaller.
        where: What it is of.

    Raises:
        TooLong: It would take longer.
        OutOfMemory: It would need more.

    Example:
        >>> spend("one step", seconds=1)
        >>> spend("10^9 steps", seconds=1e9, hint="Take fewer.")
        Traceback (most recent call last):
        ...
        tpcalc.errors.TooLong: TPC605 10^9 steps would take about 32 years; 1 hour is allowed. \
Take fewer.
    """
    free = available_memory()
    if memory > free:
        raise OutOfMemory(
            f"{what} needs about {memory_text(memory)}; {memory_text(free)} are available.",
            hint=hint or None,
            where=where or None,
        )
    most = limits().seconds
    if seconds > most:
        raise TooLong(
            f"{what} would take about {duration(seconds)}; {duration(most)} is allowed.",
            hint=hint or None,
            where=where or None,
        )
    if seconds >= LONG and _TOLD:
        _TOLD[-1](what, seconds)


def duration(seconds: float) -> str:
    """A time in words.

    Example:
        >>> duration(3), duration(120), duration(7200), duration(1e12)
        ('3 seconds', '2 minutes', '2 hours', '31688 years')
    """
    unit, size = next((item for item in _TIMES.items() if seconds >= item[1]), ("second", 1))
    number = seconds / size
    shown = f"{number:.2g}" if number < 10 else f"{number:.0f}" if number < 1e6 else f"{number:.0e}"
    return f"{shown} {unit}{'' if shown == '1' else 's'}"


def size_of(text: str, what: str) -> int:
    """Bytes that are written with a unit.

    Example:
        >>> size_of("1.5GiB", "--memory"), size_of("200M", "--memory")
        (1610612736, 209715200)
    """
    found = _SIZE.fullmatch(text.strip())
    number = exact(found[1], what=what) if found else 0
    if found is None or number <= 0:
        raise UsageError(f"{what} is {text!r}.", hint="Write it as 8GiB or 500MiB.")
    return int(number * 2 ** _UNITS[found[2].upper()])
