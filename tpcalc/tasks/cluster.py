"""``Cluster``: tasks on the workers of a Dask scheduler that is there already."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from typing import Any
from uuid import uuid4

from tpcalc.errors import EvaluationError
from tpcalc.tasks.pool import Pool
from tpcalc.tasks.task import Reply
from tpcalc.tasks.worker import Job, Unwanted, carry_out, seldom, stopped_unless

DEATHS = 3  # of workers that had a task, before it counts as what kills them
AHEAD = 256  # tasks that wait: a cluster that grows with its queue sees them
_LOG = logging.getLogger("tpcalc")


class Cluster(Pool):
    """Tasks on the workers of a cluster."""

    def __init__(self, client: Any, job: Job, shared: bytes) -> None:
        super().__init__()
        self._client, self._job = client, job
        self._name = f"tpcalc-{uuid4().hex[:12]}"
        self._told: dict[int, tuple[float, str]] = {}
        # As a task, it is made anew where the worker that has it dies.
        self._shared = client.submit(_same, shared, key=f"{self._name}-shared")
        client.subscribe_topic(self._name, self._hear)
        if not self._workers():
            _LOG.warning("no worker is at %s yet; tasks wait for one", client.scheduler.address)

    @property
    def ahead(self) -> int:
        """Some for each worker, and those that wait."""
        return AHEAD + 2 * len(self._workers())

    def close(self, *, broken: bool) -> None:
        """Tasks that nobody waits for are taken back, and workers end those they are at."""
        with suppress(Exception):  # of a scheduler that is no more, too
            self._client.cancel([*self._futures.values(), self._shared], force=True)
            self._client.unsubscribe_topic(self._name)
        self._futures.clear()

    def told(self) -> Mapping[int, tuple[float, str]]:
        """What workers said."""
        return dict(self._told)

    def _hear(self, event: tuple[Any, tuple[int, float, str]]) -> None:
        _, (number, share, text) = event
        self._told[number] = share, text

    def _workers(self) -> dict[str, Any]:
        found: dict[str, Any] = self._client.scheduler_info(n_workers=-1)["workers"]
        return found

    def _sent(self, number: int, args: bytes) -> Any:
        return self._client.submit(
            _do,
            self._job,
            self._shared,
            self._name,
            number,
            args,
            key=f"{self._name}-{number}-{uuid4().hex[:8]}",
            allow_other_workers=True,
            retries=0,
        )

    def _reply(self, future: Any) -> Reply | None:
        from distributed.scheduler import KilledWorker

        try:
            return super()._reply(future)
        except KilledWorker as error:
            return Reply(failed=str(error), where=str(self._client.scheduler.address))
        except Exception as error:
            if self._client.status != "running" or future.cancelled():
                raise EvaluationError(
                    f"the scheduler {self._client.scheduler.address} does not answer any more: "
                    f"{type(error).__name__}.",
                    hint="Start it again; with a folder for what is kept, the same call goes on.",
                ) from error
            return Reply(failed=f"{type(error).__name__}: {error}", where="a worker")


def processes(client: Any) -> int:
    """The largest number of workers on one machine."""
    workers = client.scheduler_info(n_workers=-1)["workers"].values()
    return max(Counter(worker["host"] for worker in workers).values(), default=1)


def _same(shared: bytes) -> bytes:
    return shared


def _do(job: Job, shared: bytes, topic: str, number: int, args: bytes) -> bytes:
    from distributed import get_worker

    worker = get_worker()
    key = worker.get_current_task()

    def wanted() -> bool:
        own = worker.state.tasks.get(key)
        return own is not None and own.state not in ("cancelled", "released", "forgotten")

    def tell(fraction: float, text: str) -> None:
        worker.log_event(topic, (number, fraction, text))

    try:
        with stopped_unless(wanted):
            return carry_out(job, shared, args, seldom(tell), f"the worker {worker.address}")
    except Unwanted:
        return b""  # for nobody
