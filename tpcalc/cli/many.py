"""``many``: a command whose tasks are carried out here, in processes, or on a cluster."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any

from tpcalc.cli.option import told

_Jobs = Annotated[int | None, told("many", "jobs")]
_Scheduler = Annotated[str | None, told("many", "scheduler")]


def many(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command ``--jobs`` and ``--scheduler``."""
    signature = inspect.signature(command, eval_str=True)
    keyword, flags = inspect.Parameter.KEYWORD_ONLY, {"jobs": _Jobs, "scheduler": _Scheduler}
    added = [inspect.Parameter(name, keyword, default=None, annotation=kind)
             for name, kind in flags.items()]  # fmt: skip

    @wraps(command)
    def wrapper(jobs: int | None = None, scheduler: str | None = None, **values: Any) -> None:
        from tpcalc.tasks.use import use

        with use(jobs=jobs, scheduler=scheduler):
            command(**values)

    parameters = [*signature.parameters.values(), *added]
    wrapper.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    wrapper.__annotations__ = {item.name: item.annotation for item in parameters}
    return wrapper
