"""``outcomes``, ``results``: tasks carried out wherever they are to be, in any order."""

from __future__ import annotations

import hashlib
import os
from collections import Counter, deque
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from typing import Any

from tpcalc.doors.budget import Pace
from tpcalc.errors import OutOfMemory, TaskFailed
from tpcalc.progress import Progress, part
from tpcalc.tasks.alone import alone, inside
from tpcalc.tasks.kept import Kept
from tpcalc.tasks.payload import packed
from tpcalc.tasks.pool import Pool
from tpcalc.tasks.task import Call, Reply, Task
from tpcalc.tasks.use import chosen
from tpcalc.tasks.worker import Job, tried, versions

POLL = 0.2  # seconds between two looks at how far tasks are
TRIES = 2
BUNDLE = 0.25  # seconds of tasks that are sent together
SHARES = 4  # bundles of a process that are left at least, so that all end together

Ending = Generator[tuple[int, Reply], None, None]


def elsewhere() -> bool:
    """Whether tasks are carried out in other processes."""
    now = chosen()
    return not inside() and (now.client is not None or now.jobs > 1)


def results(
    call: Call,
    tasks: Sequence[Task],
    *,
    shared: Any = None,
    progress: Progress | None = None,
    kept: Kept | None = None,
) -> list[Any]:
    """The values of tasks, in their order; the first of them that fails is told.

    Example:
        >>> def power(base, exponent, progress):
        ...     return base**exponent
        >>> results(power, [Task(f"2^{k}", (k,)) for k in range(4)], shared=2)
        [1, 2, 4, 8]
    """
    found: dict[int, Any] = {}
    failed: dict[int, Reply] = {}
    ending = outcomes(call, tasks, shared=shared, progress=progress, kept=kept)
    with closing(ending):
        for number, reply in ending:
            if reply.error is None and not reply.failed:
                found[number] = reply.value
            else:
                failed[number] = reply
            # Wherever tasks run, the failure that is told is that of the first which fails.
            if failed and all(k in found for k in range(min(failed))):
                raise error_of(tasks[min(failed)], failed[min(failed)])
    return [found[number] for number in range(len(tasks))]


def error_of(task: Task, reply: Reply) -> Exception:
    """What is raised where a task has no value."""
    if reply.error is not None:
        return reply.error
    error = TaskFailed(
        f"{task.text or 'a task'} failed {TRIES} times, the last time in {reply.where}: "
        f"{reply.failed}.",
        hint="What other tasks gave is kept, where a folder for it was given.",
    )
    error.__cause__ = reply.cause
    return error


def outcomes(
    call: Call,
    tasks: Sequence[Task],
    *,
    shared: Any = None,
    progress: Progress | None = None,
    kept: Kept | None = None,
) -> Ending:
    """What becomes of tasks, by number, as they end; values are kept as they come."""
    bar = _Bar(tasks, progress)
    waiting = deque[int]()
    for number, task in enumerate(tasks):
        if kept is not None and task.key in kept:
            bar.end(number)
            yield number, Reply(kept[task.key])
        else:
            waiting.append(number)
    if not waiting:
        return
    run = _there if elsewhere() and len(tasks) > 1 else _here
    pace = Pace(f"{len(waiting)} tasks ({tasks[waiting[0]].text}, ...)", len(waiting))
    with closing(run(call, tasks, waiting, shared, bar)) as ending:  # no process stays busy
        for done, (number, reply) in enumerate(ending, 1):
            pace.reached(done)
            if kept is not None and tasks[number].key and not (reply.failed or reply.error):
                kept[tasks[number].key] = reply.value
            bar.end(number)
            yield number, reply


def _here(call: Call, tasks: Sequence[Task], waiting: deque[int], shared: Any, bar: _Bar) -> Ending:
    for number in waiting:
        try:
            with alone():
                for tries in range(1, TRIES + 1):
                    reply = tried(call, shared, tasks[number].args, bar.of(number), "this process")
                    if not _again(reply, tries):
                        break
        except _Stopped as stop:
            if inside():  # of the task that asked for this one
                raise
            raise stop.args[0] from None
        yield number, reply


def _there(
    call: Call, tasks: Sequence[Task], waiting: deque[int], shared: Any, bar: _Bar
) -> Ending:
    failures, deaths = Counter[int](), Counter[int]()
    done, seconds = 0, 0.0
    with _pool(call, shared, len(waiting)) as pool:

        def risky(number: int) -> bool:
            return deaths[number] >= pool.patience

        while waiting or pool.flying:
            while waiting and pool.bundles < (pool.ahead if done else 2) * pool.slots:
                # What may be what kills processes is done when nothing else is under way.
                suspect = risky(waiting[0])
                if pool.flying and (suspect or any(map(risky, pool.flying))):
                    break
                # Short tasks go together, so that sending them costs little.
                share = len(waiting) // (SHARES * pool.slots)
                size = min(int(BUNDLE * done / seconds), share) if seconds and not suspect else 1
                pool.submit([waiting.popleft() for _ in range(max(1, size))], tasks)
            for number, reply in pool.ended(POLL):
                if reply is None and not risky(number):
                    deaths[number] += 1
                    waiting.appendleft(number)
                    continue
                reply = reply or Reply(failed="its process dies of it", where="a process alone")
                done, seconds = done + 1, seconds + reply.seconds
                failures[number] += 1
                if _again(reply, failures[number]):
                    waiting.append(number)
                    continue
                yield number, reply
            bar.show(pool.told())


def _again(reply: Reply, tries: int) -> bool:
    """Whether a task is tried once more: what is refused is refused again."""
    passing = reply.failed or isinstance(reply.error, OutOfMemory)
    return bool(passing) and tries < TRIES


def _pool(call: Call, shared: Any, tasks: int) -> Pool:
    data = packed((call, shared), "what all tasks share")
    digest, now = hashlib.sha256(data).hexdigest(), chosen()
    if now.client is not None:
        from tpcalc.tasks.cluster import Cluster, processes

        return Cluster(now.client, Job(digest, versions(), processes(now.client)), data)
    from tpcalc.tasks.processes import Processes

    # As many whenever a machine has the cores, so that they stay warm; else no more than have work.
    jobs = min(now.jobs, max(tasks, os.cpu_count() or 1))
    return Processes(jobs, Job(digest, versions(), jobs), data)


class _Stopped(BaseException):
    """Who is told of progress raises an error, which is none of the task."""


class _Bar:
    """How far all tasks are together."""

    def __init__(self, tasks: Sequence[Task], progress: Progress | None) -> None:
        self._tasks, self._progress = tasks, progress
        self._done = 0

    def of(self, number: int) -> Progress:
        """What a task in this process tells."""
        tell = part(self._progress, self._done, self._done + 1, len(self._tasks))
        text = self._tasks[number].text

        def told(fraction: float, more: str) -> None:
            try:
                tell(fraction, _joint(text, more))
            except Exception as error:
                raise _Stopped(error) from error

        return told

    def end(self, number: int) -> None:
        """One more has ended."""
        self._done += 1
        if self._progress is not None:
            self._progress(self._done / len(self._tasks), self._tasks[number].text)

    def show(self, told: Mapping[int, tuple[float, str]]) -> None:
        """What tasks elsewhere tell."""
        if self._progress is not None and told:
            number, (_, more) = max(told.items())
            sofar = self._done + sum(share for share, _ in told.values())
            self._progress(sofar / len(self._tasks), _joint(self._tasks[number].text, more))


def _joint(text: str, more: str) -> str:
    return f"{text}: {more}" if text and more else text or more
