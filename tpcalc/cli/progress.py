"""A progress bar for long runs, on a terminal only."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tpcalc.progress import Progress


@contextmanager
def progress_bar(title: str) -> Iterator[Progress | None]:
    """A callback ``(fraction done, what is being done)``; None where nobody watches."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn())
    console = Console(stderr=True)
    with Bar(*columns, TimeRemainingColumn(), console=console, transient=True) as bar:
        task = bar.add_task(title, total=1.0)

        def show(fraction: float, text: str) -> None:
            bar.update(task, completed=fraction, description=f"{title}: {text}")

        yield show
