"""``Cluster``: tasks on the workers of a Dask scheduler that is there already."""

from __future__ import annotations

import logging
import math
import time
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import CancelledError
from contextlib import suppress
from typing import Any
from uuid import uuid4

from tpcalc.errors import EvaluationError, TpcalcError, raised
from tpcalc.tasks.pool import Pool
from tpcalc.tasks.worker import Job, Unwanted, carry_out, stopped_unless

MOMENT = 2  # seconds
LARGE = 2**17  # bytes; Dask does tasks where what they share is, less goes with each of them
_LOG = logging.getLogger("tpcalc")


class Cluster(Pool):
    """Tasks on the workers of a cluster."""

    ahead = 8  # a cluster that grows with its queue sees them
    patience = 1  # Dask itself lets some workers die

    def __init__(self, client: Any, job: Job, shared: bytes) -> None:
        super().__init__()
        self._client, self._job = client, job
        self._name = f"tpcalc-{uuid4().hex[:12]}"
        self._count, self._counted = 0, -math.inf
        self._told: dict[int, tuple[float, str]] = {}
        self._shared: Any = shared
        if len(shared) > LARGE:  # as a task: it is made anew where the worker that has it dies
            self._shared = client.submit(_same, shared, key=f"{self._name}-shared")
        client.subscribe_topic(self._name, self._hear)
        if not self._workers():
            _LOG.warning("no worker is at %s yet; tasks wait for one", client.scheduler.address)

    @property
    def slots(self) -> int:
        """Workers that were there a moment ago."""
        if time.monotonic() > self._counted + MOMENT:
            self._count, self._counted = len(self._workers()), time.monotonic()
        return max(1, self._count)

    def close(self, *, broken: bool) -> None:
        """Tasks that nobody waits for are taken back, and workers end those they are at."""
        with suppress(Exception):  # of a scheduler that is no more, too
            self._client.cancel(list(self._futures.values()), force=True)
            self._client.unsubscribe_topic(self._name)
        self._futures.clear()
        self._shared = None

    def told(self) -> Mapping[int, tuple[float, str]]:
        """What workers said."""
        return {number: self._told[number] for number in self.flying & self._told.keys()}

    def _hear(self, event: tuple[Any, tuple[int, float, str]]) -> None:
        _, (number, share, text) = event
        self._told[number] = share, text

    def _workers(self) -> dict[str, Any]:
        return dict(self._client.scheduler_info(n_workers=-1)["workers"])

    def _sent(self, args: bytes) -> Any:
        key = f"{self._name}-{uuid4().hex[:12]}"
        return self._client.submit(_do, self._job, self._shared, self._name, args, key=key)

    def _found(self, future: Any) -> list[bytes] | None:
        from distributed.scheduler import KilledWorker

        try:
            return list(future.result())
        except TpcalcError:
            raise
        except KilledWorker:
            return None
        except (OSError, CancelledError) as error:
            raise EvaluationError(
                f"the scheduler {self._client.scheduler.address} does not answer any more.",
                hint="Start it again; with a folder for what is kept, the same call goes on.",
            ) from error
        except Exception as error:  # tpcalc is not there
            raise EvaluationError(
                f"a worker cannot do tasks: {raised(error)}.",
                hint="Install the same tpcalc there as here.",
            ) from error


def processes(client: Any) -> int:
    """The largest number of workers on one machine."""
    workers = client.scheduler_info(n_workers=-1)["workers"].values()
    return max(Counter(worker["host"] for worker in workers).values(), default=1)


def _same(shared: bytes) -> bytes:
    return shared


def _do(job: Job, shared: bytes, topic: str, args: bytes) -> list[bytes]:
    from distributed import get_worker

    worker = get_worker()
    key = worker.get_current_task()

    def wanted() -> bool:
        own = worker.state.tasks.get(key)
        return own is not None and own.state != "cancelled"

    def tell(number: int, share: float, text: str) -> None:
        worker.log_event(topic, (number, share, text))

    try:
        with stopped_unless(wanted):
            return carry_out(job, shared, args, tell, f"the worker {worker.address}")
    except Unwanted:
        return []  # for nobody
