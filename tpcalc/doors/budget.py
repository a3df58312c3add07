"""What a run may take: time and memory, estimated before it starts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from time import perf_counter
from typing import Any, TypeVar

from tpcalc.doors.machine import CHOSEN, SHARING, Limits, available_memory, limits, memory_text
from tpcalc.doors.numbers import exact
from tpcalc.errors import OutOfMemory, TooLong, UsageError, short

T = TypeVar("T")

SMALL = 2**24  # bytes that are there
LONG = 2.0  # seconds: who waits longer is told
_UNITS = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}
_NAMES = ("most_seconds", "memory")
_TIMES = {"year": 31557600, "day": 86400, "hour": 3600, "minute": 60}
_SIZE = re.compile(r"([0-9.]+)\s*([KMGT]?)(i?B)?", re.IGNORECASE | re.ASCII)
NODE = 1.5e-3, 6000  # seconds and bytes that a node of a program takes, all in all
_TOLD: list[Callable[[str, float], None]] = []


def spend(
    what: str, *, seconds: float = 0.0, memory: float = 0.0, hint: str = "", where: str = ""
) -> None:
    """Refuse some work before it starts, where it would take more than it may.

    Example:
        >>> spend("one step", seconds=1)
        >>> spend("10^9 steps", seconds=1e9, hint="Take fewer.")
        Traceback (most recent call last):
        ...
        tpcalc.errors.TooLong: TPC605 10^9 steps would take about 32 years; 1 day is allowed. Take \
fewer.
    """
    # What there is takes a look at files of the system, and counts are checked often.
    most = limits().memory
    much = memory > (SMALL if most is None else min(SMALL, most))
    if much and memory > (free := available_memory()):
        raise OutOfMemory(
            f"{what} needs about {memory_text(memory)}; {memory_text(free)} are available.",
            hint=hint or None,
            where=where or None,
        )
    if (
        seconds > (allowed := limits().seconds) and not SHARING
    ):  # a task is part of what was estimated as a whole
        raise TooLong(
            f"{what} would take about {duration(seconds)}; {duration(allowed)} is allowed.",
            hint=hint or None,
            where=where or None,
        )
    if seconds >= LONG and _TOLD and not SHARING:
        _TOLD[-1](what, seconds)


def spend_nodes(what: str, count: float, **more: str) -> None:
    """The same for work on a program of about so many nodes."""
    spend(what, seconds=count * NODE[0], memory=count * NODE[1], **more)


class Pace:
    """How long some work takes all in all, from how far it is; asked while it goes on."""

    def __init__(self, what: str, total: int, hint: str = "") -> None:
        self._what, self._total, self._hint = what, total, hint
        self._began, self._next = perf_counter(), LONG / 2

    def reached(self, done: int) -> None:
        """Tell how long all of it takes, or refuse it; some parts are done."""
        gone = perf_counter() - self._began
        if gone > self._next and done:
            self._next = 2 * gone
            spend(self._what, seconds=gone * self._total / done, hint=self._hint)


def paced(items: Sequence[T], what: str, hint: str = "") -> Iterator[T]:
    """Things one by one, of which it is found while they are done how long all of them take."""
    pace = Pace(what, len(items), hint)
    for done, item in enumerate(items):
        pace.reached(done)
        yield item


@contextmanager
def within(allowed: Limits, tell: Callable[[str, float], None] | None = None) -> Iterator[None]:
    """Limits that hold meanwhile; who is told what takes long, and how long."""
    CHOSEN.append(allowed)
    if tell is not None:
        _TOLD.append(tell)
    try:
        yield
    finally:
        CHOSEN.remove(allowed)
        if tell is not None:
            _TOLD.remove(tell)


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


def limits_of(seconds: Any, memory: Any, names: tuple[str, str] = _NAMES) -> Limits:
    """Limits as they are given: numbers or texts, those of memory also with a unit.

    Example:
        >>> limits_of("60", "1.5GiB")
        Limits(seconds=60.0, memory=1610612736)
    """
    now = limits()
    most = now.seconds if seconds is None else float(exact(seconds, what=names[0]))
    size = now.memory if memory is None else _bytes(str(memory), names[1])
    if most <= 0:
        raise UsageError(f"{names[0]} is {seconds}.", hint="It is a number of seconds above 0.")
    return Limits(most, size)


def _bytes(text: str, what: str) -> int:
    found = _SIZE.fullmatch(text.strip())
    number = exact(found[1], what=what) if found else 0
    if found is None or number <= 0:
        raise UsageError(f"{what} is {short(text)!r}.", hint="Write it as 8GiB or 500MiB.")
    return int(number * 2 ** _UNITS[found[2].upper()])
