"""What a task has of a machine: one thread of matrix products, and its share of cores and memory.

Last digits of products depend on the number of threads that BLAS and torch use, so that there is
one, wherever a task runs. Threads of the project's own passes change no digit.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from threadpoolctl import threadpool_limits

from tpcalc.doors.machine import SHARING, beside

_TORCH: list[int] = []
_INSIDE: ContextVar[bool] = ContextVar("inside", default=False)


def inside() -> bool:
    """Whether this is a task: what it asks for in turn is done here."""
    return _INSIDE.get()


def hold(torch: Any) -> None:
    """Keep torch on one thread while a task runs; it may be loaded there for the first time."""
    if SHARING:
        if not _TORCH:
            _TORCH.append(torch.get_num_threads())
        torch.set_num_threads(1)


@contextmanager
def alone(processes: int = 1) -> Iterator[None]:
    """Within it tasks run, in one of some processes of this machine.

    Example:
        >>> with alone(4):
        ...     inside(), beside()
        (True, 4)
    """
    import scipy.linalg  # noqa: F401  # it brings a BLAS of its own, which is limited as well

    SHARING.append(max(processes, beside()))  # a task within one has no more of the machine
    token = _INSIDE.set(True)
    try:
        if sys.modules.get("torch"):
            hold(sys.modules["torch"])  # before limits, which it would take for its own number
        with threadpool_limits(1):
            yield
    finally:
        _INSIDE.reset(token)
        SHARING.pop()
        if _TORCH and not SHARING:
            sys.modules["torch"].set_num_threads(_TORCH.pop())
