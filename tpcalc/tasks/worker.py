"""``carry_out``: one task, wherever it runs, and what becomes of it."""

from __future__ import annotations

import ctypes
import platform
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from tpcalc.errors import MissingBackend, OutOfMemory, StudyError, TpcalcError, raised
from tpcalc.progress import Progress
from tpcalc.sources import library_versions, own_version
from tpcalc.tasks.alone import alone
from tpcalc.tasks.payload import packed, unpacked
from tpcalc.tasks.task import Call, Reply

TOLD = 0.3  # seconds between two words of a task on how far it is
_SHARED: dict[str, Any] = {}
_ONE = threading.Lock()  # tasks of one process run one after another: limits are the process's


def versions() -> tuple[tuple[str, str], ...]:
    """What numbers depend on beside their arguments; local builds of one version count as equal."""
    python = ".".join(platform.python_version_tuple()[:2])
    found = (("Python", python), ("tpcalc", own_version()), *library_versions())
    return tuple((name, one.partition("+")[0]) for name, one in found)


@dataclass(frozen=True)
class Job:
    """What all tasks of a run share."""

    digest: str  # of the function and its shared argument
    versions: tuple[tuple[str, str], ...]  # of the libraries of the process that asks
    processes: int  # that share a machine


class Unwanted(BaseException):
    """Nobody waits for this task any more."""


def tried(call: Call, shared: Any, args: tuple[Any, ...], tell: Progress, where: str) -> Reply:
    """Do a task; what it refuses and what fails are replies as well."""
    began = time.perf_counter()
    try:
        value = call(shared, *args, tell)
        return Reply(value, where=where, seconds=time.perf_counter() - began)
    except TpcalcError as error:
        return Reply(error=error, where=where)
    except MemoryError as error:
        full = OutOfMemory("the memory of this machine is used up.", hint="Use fewer processes.")
        return Reply(error=full, where=where, cause=error)
    except Exception as error:
        return Reply(failed=raised(error), where=where, cause=error)


def carry_out(
    job: Job, shared: bytes | Path, args: bytes, tell: Callable[..., None], where: str
) -> list[bytes]:
    """Do some tasks that another process packed; their replies, packed."""
    _check(job.versions, where)
    while not _ONE.acquire(timeout=TOLD):  # in steps, so that what nobody waits for can be ended
        pass
    try:
        with alone(job.processes):
            try:
                (call, own), given = _shared(job.digest, shared), unpacked(args)
            except Exception as error:
                raise StudyError(
                    f"{where} cannot read what its tasks need: {raised(error)}.",
                    hint="Install there, or put where workers start, the files that it imports.",
                ) from error
            return [
                _sent(tried(call, own, one, seldom(partial(tell, number)), where))
                for number, one in given
            ]
    finally:
        _ONE.release()


def _sent(reply: Reply) -> bytes:
    try:
        return packed(replace(reply, cause=None), "its answer")
    except TpcalcError as error:
        return packed(Reply(error=error, where=reply.where), "a reply")


def _shared(digest: str, shared: bytes | Path) -> Any:
    """The function and the argument of all tasks; unpacked once in a process."""
    if digest not in _SHARED:
        while len(_SHARED) > 3:
            _SHARED.pop(next(iter(_SHARED)))
        _SHARED[digest] = unpacked(shared.read_bytes() if isinstance(shared, Path) else shared)
    return _SHARED[digest]


def _check(asked: tuple[tuple[str, str], ...], where: str) -> None:
    own = dict(versions())
    other = [f"{name} {own[name]} ({one} here)" for name, one in asked if own.get(name, one) != one]
    if other:
        raise MissingBackend(
            f"{where} has {', '.join(other)}.", hint="Install the same versions there as here."
        )


@contextmanager
def stopped_unless(wanted: Callable[[], bool]) -> Iterator[None]:
    """End what this thread does as soon as nobody wants it."""
    thread, over = ctypes.c_ulong(threading.get_ident()), threading.Event()

    def watch() -> None:
        while not over.wait(TOLD):
            if not wanted():
                ctypes.pythonapi.PyThreadState_SetAsyncExc(thread, ctypes.py_object(Unwanted))
                return

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()
        ctypes.pythonapi.PyThreadState_SetAsyncExc(thread, None)  # what came too late


def seldom(tell: Progress) -> Progress:
    """Tell how far a task is, but not at every step of it."""
    last = [0.0]

    def told(fraction: float, text: str) -> None:
        now = time.monotonic()
        if now - last[0] > TOLD:
            last[0] = now
            tell(fraction, text)

    return told
