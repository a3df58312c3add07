"""``many``: a command whose tasks are carried out here, in processes, or on a cluster."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any

from tpcalc.cli.option import taking, told

_Jobs = Annotated[int | None, told("many", "jobs")]
_Scheduler = Annotated[str | None, told("many", "scheduler")]


def many(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command ``--jobs`` and ``--scheduler``."""

    @wraps(command)
    def wrapper(jobs: int | None = None, scheduler: str | None = None, **values: Any) -> None:
        from tpcalc.tasks.use import use

        with use(jobs=jobs, scheduler=scheduler):
            command(**values)

    parameters = inspect.signature(command, eval_str=True).parameters.values()
    return taking(wrapper, parameters, jobs=_Jobs, scheduler=_Scheduler)
