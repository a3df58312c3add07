"""``Task``: one of many computations that do not depend on each other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tpcalc.errors import TpcalcError

Call = Callable[..., Any]  # (shared, *args, progress) -> value; what another process can import


@dataclass(frozen=True, slots=True)
class Task:
    """One of many computations."""

    text: str  # what a person calls it, "n = 512, seed 3"
    # what it has beside what all tasks of a run share; small, and picklable
    args: tuple[Any, ...] = ()
    # what its answer depends on, beside the label of the store; without one it is not kept
    key: str = ""


@dataclass(frozen=True, slots=True)
class Reply:
    """What became of a task."""

    value: Any = None  # what it returned
    error: TpcalcError | None = None  # what it refused: an answer, as it would be anywhere
    failed: str = ""  # what went wrong; empty if nothing did
    where: str = ""  # the process or the worker
    seconds: float = 0.0  # how long it took
    cause: BaseException | None = None  # the error itself, where it happened in this process
