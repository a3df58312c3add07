"""``use``: where tasks are carried out."""

from __future__ import annotations

import logging
import re
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tpcalc import checks
from tpcalc.doors import files
from tpcalc.doors.budget import limits_of
from tpcalc.doors.machine import CHOSEN, Limits
from tpcalc.errors import EvaluationError, MissingBackend, StudyError, UsageError

MOST = 1024  # processes
WAIT = 10  # seconds for an answer of a scheduler


@dataclass
class Use(AbstractContextManager["Use"]):
    """Where tasks are carried out: what ``use`` returns, for ``with``."""

    jobs: int = 1  # processes of this machine; 1 is this process
    client: Any = None  # of a cluster, or None
    own: bool = False  # whether the client was made here
    limits: Limits | None = None  # what runs may take meanwhile, or None

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Go back to what was used before."""
        if self in _CHOSEN:
            _CHOSEN.remove(self)
        if self.limits in CHOSEN:
            CHOSEN.remove(self.limits)
        if self.own and self.client is not None:
            self.client.close()
            self.client = None


_CHOSEN: list[Use] = []
HERE = Use()


def use(
    *,
    jobs: int | None = None,
    scheduler: Any = None,
    most_seconds: Any = None,
    memory: Any = None,
) -> Use:
    """Carry independent tasks out in processes of this machine or on a cluster, within limits.

    Trials, seeds, widths, tiles, cells and rates of all questions are such tasks. Answers have the
    same bits wherever they are carried out.

    Args:
        jobs: Processes of this machine; 1 is this process alone.
        scheduler: The address of a Dask scheduler, ``"tcp://host:8786"``, the file it wrote
            (``"scheduler.json"``), or a client or a cluster of ``dask.distributed``.
        most_seconds: What is estimated to take longer is refused; 86,400 (a day) without it.
        memory: Bytes, or a text such as ``"8GiB"``: what is estimated to need more is refused;
            what the machine has without it.

    Returns:
        What ends with ``with``, or with its method ``close``; without these it holds for the rest
        of the process.

    Raises:
        UsageError: Both, or what is no number of processes, no address.
        MissingBackend: Dask is not installed (``pip install 'tpcalc[dask]'``).
        EvaluationError: No scheduler answers.

    Example:
        >>> import tpcalc as tp
        >>> @tp.program
        ... def start(t):
        ...     v = t.gaussian("v")
        ...     t.output("square", t.inner(v, v))
        >>> with use(jobs=1):
        ...     len(tp.simulate(start, [8, 16], 2).rows)
        2
    """
    if scheduler is not None and jobs is not None:
        raise UsageError(
            "jobs are processes of this machine, and a scheduler has workers of its own.",
            hint="Give one of the two.",
        )
    found = chosen()
    if jobs is not None:
        hint = "A machine is busy with as many processes as it has cores."
        found = Use(checks.whole(jobs, "jobs", least=1, most=MOST, hint=hint))
    if scheduler is not None:
        found = _connected(scheduler)
    taken = None
    if most_seconds is not None or memory is not None:
        taken = limits_of(most_seconds, memory)
        CHOSEN.append(taken)
    found = replace(found, own=found.own and scheduler is not None, limits=taken)
    _CHOSEN.append(found)
    return found


def chosen() -> Use:
    """What is used now."""
    return _CHOSEN[-1] if _CHOSEN else HERE


def _connected(scheduler: Any) -> Use:
    try:
        from distributed import Client
    except ImportError as error:
        raise MissingBackend(
            "a scheduler needs Dask, which is not installed.",
            hint="Run pip install 'tpcalc[dask]'.",
        ) from error
    if isinstance(scheduler, Client):
        return Use(client=scheduler)
    address = _address(str(scheduler)) if isinstance(scheduler, str | Path) else scheduler
    for name in ("client", "comm", "core"):  # what went wrong is said here, in one line
        logging.getLogger(f"distributed.{name}").setLevel(logging.CRITICAL)
    try:
        client = Client(  # type: ignore[no-untyped-call]
            address, timeout=WAIT, set_as_default=False
        )
    except (OSError, ValueError, TypeError) as error:  # a timeout is an OSError
        raise EvaluationError(
            f"no scheduler answers at {address}: {error or type(error).__name__}.",
            hint="Start one with `dask scheduler`, and workers with `dask worker ADDRESS`.",
        ) from error
    return Use(client=client, own=True)


def _address(named: str) -> str:
    """The address of a scheduler, which its file names."""
    found: Any = named
    if named.endswith(".json"):
        with suppress(StudyError, LookupError, TypeError):
            found = files.from_json(files.text(Path(named)), named)["address"]
    if not re.fullmatch(r"(tcp|tls|ucx|wss?)://\S+:\d+", str(found)):
        raise UsageError(
            f"{named!r} is no address of a scheduler, and no file that one wrote.",
            hint="Write it as tcp://host:8786, as `dask scheduler` prints it.",
        )
    return str(found)
