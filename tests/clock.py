"""A limit on the CPU time of a block of code."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["OutOfTime", "cpu_time"]


class OutOfTime(BaseException):
    """Not an ``Exception``, so that nothing between here and the timer takes it for its own."""


@contextmanager
def cpu_time(seconds: float) -> Iterator[None]:
    """Raise ``OutOfTime`` in the block after so much CPU time."""

    def stop(*_: object) -> None:
        raise OutOfTime

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
