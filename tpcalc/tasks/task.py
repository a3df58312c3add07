"""``Task``: one of many computations that do not depend on each other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tpcalc.errors import TpcalcError

Call = Callable[..., Any]  # (shared, *args, progress) -> value; what another process can import


@dataclass(frozen=True, slots=True)
class Task:
    """One of many computations.

    Args:
        text: What a person calls it, ``"n = 512, seed 3"``.
        args: What it has beside what all tasks of a run share; small, and picklable.
        key: What its answer depends on, beside the label of the store; without one it is not kept.
    """

    text: str
    args: tuple[Any, ...] = ()
    key: str = ""


@dataclass(frozen=True, slots=True)
class Reply:
    """What became of a task.

    Args:
        value: What it returned.
        error: What it refused: an answer, as it would be anywhere.
        failed: What went wrong; empty if nothing did.
        where: The process or the worker.
        seconds: How long it took.
        cause: The error itself, where it happened in this process.
    """

    value: Any = None
    error: TpcalcError | None = None
    failed: str = ""
    where: str = ""
    seconds: float = 0.0
    cause: BaseException | None = None
