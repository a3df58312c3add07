"""``Pool``: what carries tasks out; futures of other processes, told apart by their numbers."""

from __future__ import annotations

import queue
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from tpcalc.tasks.payload import packed, unpacked
from tpcalc.tasks.task import Reply, Task


class Lost(Exception):
    """The process that had a task is no more."""


class Pool(ABC):
    """Processes that carry tasks out; used within ``with``, which leaves none of them busy."""

    def __init__(self) -> None:
        self._ended: queue.SimpleQueue[tuple[int, Any]] = queue.SimpleQueue()
        self._futures: dict[int, Any] = {}

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self.close(broken=kind is not None)

    @property
    @abstractmethod
    def ahead(self) -> int:
        """Tasks that may be under way or wait for a process."""

    @abstractmethod
    def close(self, *, broken: bool) -> None:
        """Leave; where something broke off, what is under way ends."""

    @abstractmethod
    def _sent(self, number: int, args: bytes) -> Any:
        """The future of a task."""

    def told(self) -> Mapping[int, tuple[float, str]]:
        """How far tasks are, by number, where they said it."""
        return {}

    def submit(self, number: int, task: Task) -> None:
        """Give a task to a process."""
        future = self._sent(number, packed(task.args, f"what {task.text} needs"))
        self._futures[number] = future
        future.add_done_callback(lambda future: self._ended.put((number, future)))

    def ended(self, timeout: float) -> Iterator[tuple[int, Reply | None]]:
        """Tasks that ended, with their replies; None where the process is no more."""
        with suppress(queue.Empty):
            found = [self._ended.get(timeout=timeout)]
            while not self._ended.empty():
                found.append(self._ended.get_nowait())
            for number, future in found:
                if self._futures.get(number) is future:
                    del self._futures[number]
                    yield number, self._reply(future)

    def _reply(self, future: Any) -> Reply | None:
        try:
            reply: Reply = unpacked(future.result())
        except Lost:
            return None
        return reply
