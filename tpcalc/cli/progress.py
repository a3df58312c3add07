"""A progress bar for long runs, on a terminal only."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["Progress", "progress_bar"]

Progress = Callable[[float, str], None]


@contextmanager
def progress_bar() -> Iterator[Progress | None]:
    """A callback ``(fraction done, what is being done)``; None where nobody watches."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn())
    with Bar(*columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=1.0)

        def show(fraction: float, text: str) -> None:
            bar.update(task, completed=fraction, description=text)

        yield show
