"""``Pool``: what carries tasks out, in bundles, each a future of another process."""

from __future__ import annotations

import queue
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from typing import Any

from tpcalc.tasks.payload import packed, unpacked
from tpcalc.tasks.task import Reply, Task

Bundle = tuple[int, ...]


class Pool(AbstractContextManager["Pool"]):
    """Processes that carry tasks out; used within ``with``, which leaves none of them busy."""

    def __init__(self) -> None:
        self._ended: queue.SimpleQueue[tuple[Bundle, Any]] = queue.SimpleQueue()
        self._futures: dict[Bundle, Any] = {}

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self.close(broken=kind is not None)

    ahead = 2  # bundles for each process
    patience = 2  # processes that die under a task before it is done alone, which tells

    @property
    @abstractmethod
    def slots(self) -> int:
        """Tasks that are done at once."""

    @abstractmethod
    def close(self, *, broken: bool) -> None:
        """Leave; where something broke off, what is under way ends."""

    @abstractmethod
    def _sent(self, args: bytes) -> Any:
        """The future of a bundle."""

    @abstractmethod
    def _found(self, future: Any) -> list[bytes] | None:
        """The packed replies of a bundle; None where its process is no more."""

    @abstractmethod
    def told(self) -> Mapping[int, tuple[float, str]]:
        """How far tasks are, by number, where they said it."""

    @property
    def bundles(self) -> int:
        """How many are under way or wait."""
        return len(self._futures)

    @property
    def flying(self) -> frozenset[int]:
        """The numbers of tasks that are under way or wait for a process."""
        return frozenset(number for bundle in self._futures for number in bundle)

    def submit(self, numbers: Sequence[int], tasks: Sequence[Task]) -> None:
        """Give some tasks to one process."""
        bundle = tuple(numbers)
        text = f"what {tasks[bundle[0]].text} needs"
        future = self._sent(packed([(number, tasks[number].args) for number in bundle], text))
        self._futures[bundle] = future
        future.add_done_callback(lambda future: self._ended.put((bundle, future)))

    def ended(self, timeout: float) -> Iterator[tuple[int, Reply | None]]:
        """Tasks that ended, with their replies; None where the process is no more."""
        with suppress(queue.Empty):
            bundle, future = self._ended.get(timeout=timeout)
            del self._futures[bundle]
            replies = self._found(future)
            for place, number in enumerate(bundle):
                yield number, None if replies is None else unpacked(replies[place])
