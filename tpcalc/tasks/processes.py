"""``Processes``: tasks in processes of this machine (loky), which stay warm between runs."""

from __future__ import annotations

import os
import tempfile
import threading
import time
from collections.abc import Mapping
from concurrent.futures import CancelledError
from contextlib import suppress
from pathlib import Path
from typing import Any

from tpcalc.tasks.pool import Pool
from tpcalc.tasks.worker import Job, carry_out

# A BLAS or OpenMP that is loaded later than tasks are limited reads these.
ALONE = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "NUMEXPR")}
ALONE["LOKY_MAX_MEMORY_LEAK_SIZE"] = "1e18"  # else a process that had large arrays begins anew
IDLE = 300  # seconds that processes wait for the next run


class Processes(Pool):
    """Tasks in so many processes of this machine."""

    def __init__(self, jobs: int, job: Job, shared: bytes) -> None:
        super().__init__()
        self._jobs, self._job = jobs, job
        self._folder = tempfile.TemporaryDirectory(prefix="tpcalc-", ignore_cleanup_errors=True)
        self._place = Path(self._folder.name)
        (self._place / "shared").write_bytes(shared)
        self._renewed()

    def _renewed(self) -> None:
        from loky import get_reusable_executor

        self._executor = get_reusable_executor(
            self._jobs, timeout=IDLE, env=ALONE, initializer=_follow, initargs=(os.getpid(),)
        )

    @property
    def slots(self) -> int:
        """Processes."""
        return self._jobs

    def close(self, *, broken: bool) -> None:
        """Processes that are in the middle of tasks nobody waits for are killed."""
        if broken:
            self._executor.shutdown(wait=True, kill_workers=True)
        self._folder.cleanup()

    def told(self) -> Mapping[int, tuple[float, str]]:
        """Tasks write how far they are into files."""
        found = {}
        for number in self.flying:
            with suppress(OSError, ValueError):
                share, _, text = (self._place / str(number)).read_text("utf-8").partition(" ")
                found[number] = float(share), text
        return found

    def _sent(self, args: bytes) -> Any:
        try:
            return self._executor.submit(_do, self._job, self._place, args)
        except RuntimeError:  # a process was killed; others take its place
            self._renewed()
            return self._executor.submit(_do, self._job, self._place, args)

    def _found(self, future: Any) -> list[bytes] | None:
        try:
            return list(future.result())
        except (CancelledError, RuntimeError):  # a process was killed: all that was under way ends
            return None


def _do(job: Job, place: Path, args: bytes) -> list[bytes]:
    def tell(number: int, share: float, text: str) -> None:
        with suppress(OSError):
            (place / str(number)).write_text(f"{share} {text}", "utf-8")

    return carry_out(job, place / "shared", args, tell, f"process {os.getpid()}")


def _follow(parent: int) -> None:
    """End this process when the one that began it is no more, in the middle of a task as well."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
