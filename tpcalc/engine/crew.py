"""Threads that share the work of a pass.

A pass falls into parts that do not depend on the number of threads: stretches of samples of one
replicate after those of another. Each thread takes some of them; what parts find is added in their
order, so that an answer has the same bits for any number of threads. Python runs on one thread.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import pairwise
from threading import Event
from typing import Any

import numpy as np

from tpcalc.arrays import Array

STRETCH = 32  # blocks of one part, where those of a replicate can be halved so often
WORTH_SHARING = 2**19  # numbers that are read: with fewer a thread takes too long to wake up

_CREW: ContextVar[tuple[int, ThreadPoolExecutor] | None] = ContextVar("crew", default=None)


@contextmanager
def at_work(threads: int) -> Iterator[None]:
    """Share passes among so many threads, this one included.

    Example:
        >>> found = [0] * 5
        >>> def work(part):
        ...     found[part] = [i * i for i in range(part.start, part.stop)]
        >>> with at_work(2):
        ...     share(5, 10**6, work)
        >>> found
        [0, 1, 4, 9, 16]
    """
    if threads < 2:
        yield
        return
    with ThreadPoolExecutor(threads - 1) as pool:
        before = _CREW.set((threads, pool))
        try:
            yield
        finally:
            _CREW.reset(before)


def watch(futures: Collection[Future[Any]], report: Callable[[], None]) -> None:
    """Wait for all, reporting; the first failure is raised at once."""
    pending = set(futures)
    while pending:
        finished, pending = wait(pending, timeout=0.1)
        for future in finished:
            future.result()
        report()


def carry_out(
    jobs: Sequence[Callable[[], Any]],
    threads: int,
    report: Callable[[float], None] = lambda fraction: None,
) -> None:
    """Do jobs, which threads take one after another; once one has failed no other is begun.

    Example:
        >>> found = []
        >>> carry_out([lambda k=k: found.append(k) for k in range(3)], 2)
        >>> sorted(found)
        [0, 1, 2]
    """
    if threads < 2:
        for number, job in enumerate(jobs, 1):
            job()
            report(number / len(jobs))
        return
    left, stop, done = iter(jobs), Event(), list[None]()

    def work() -> None:
        for job in left:  # of a list: no two threads get the same one
            if stop.is_set():
                return
            job()
            done.append(None)

    with ThreadPoolExecutor(threads) as pool:
        try:
            workers = [pool.submit(work) for _ in range(threads)]
            watch(workers, lambda: report(len(done) / len(jobs)))
        except BaseException:
            stop.set()
            raise


def share(count: int, size: int, work: Callable[[slice], None]) -> None:
    """Do a number of parts: all at once, or some on each thread."""
    crew = _CREW.get()
    threads = 1 if crew is None or size < WORTH_SHARING else min(crew[0], count)
    if crew is None or threads < 2:
        work(slice(0, count))
        return
    ends = [count * i // threads for i in range(threads + 1)]
    own, *others = (slice(*pair) for pair in pairwise(ends))
    futures = [crew[1].submit(work, part) for part in others]
    try:
        work(own)
    finally:
        wait(futures)  # also where this thread is interrupted: they write into its memory
    for future in futures:
        future.result()


def products(left: Array, right: Array) -> Array:
    """Matrix products, one for each replicate."""
    out = np.empty((*left.shape[:2], right.shape[2]))

    def work(own: slice) -> None:
        np.matmul(left[own], right[own], out=out[own])

    share(len(out), left.size * right.shape[2], work)
    return out


def stretches(blocks: int) -> int:
    """Parts of one replicate of so many blocks."""
    count = 1
    while blocks % (2 * count) == 0 and blocks >= 2 * count * STRETCH:
        count *= 2
    return count
