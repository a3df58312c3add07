"""Answers on the screen and in files, and bars for long runs."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from tpcalc.cli.option import OUTPUT, WHOLE
from tpcalc.doors import write
from tpcalc.errors import EvaluationError, Exploded, Incomplete, StudyError, TpcalcError, UsageError
from tpcalc.results import DepthTable, LimitTable, Status

if TYPE_CHECKING:
    from rich.console import RenderableType

    from tpcalc.progress import Progress

# What is piped into a file has no width of its own; tables must not be folded to 80 columns there.
_PIPE_WIDTH = 120


def put(text: str) -> None:
    """Print text as it is."""
    typer.echo(text, OUTPUT.get())


def put_table(table: RenderableType, heading: str = "") -> None:
    """Print rich tables, under a heading."""
    from rich.console import Console
    from rich.text import Text

    out = OUTPUT.get() or sys.stdout
    wide: dict[str, Any] = {} if out.isatty() else {"width": _PIPE_WIDTH}
    console = Console(file=out, highlight=False, **wide)
    # Captured, because rich would end the program itself where a pipe is closed early.
    with console.capture() as capture:
        if heading:
            console.print(Text(heading, style="bold"))
        console.print(table)
    lines = (line.rstrip() for line in capture.get().splitlines())
    put("\n".join(lines))


def answer(
    command: str,
    model: Mapping[str, Any],
    found: Any,
    title: str,
    as_json: bool,
    *,
    more: Mapping[str, Any] | None = None,
    written: Mapping[str, Path | None] | None = None,
    beside: Iterable[Any] = (),
) -> None:
    """Print an answer: one JSON object, or its tables and where more of it was written."""
    from tpcalc.cli import payload

    places = {flag: str(place) for flag, place in (written or {}).items() if place is not None}
    if as_json:
        result = {**payload.result(found), **(more or {}), **places}
        put(payload.document(command, model, result, payload.provenance(found.provenance)))
        return
    from tpcalc.views.faces import seen
    from tpcalc.views.terminal import group, text

    shown = seen(found)
    for other in filter(None, beside):
        shown = shown.beside(seen(other))
    if title:
        put(title)
    if WHOLE.get():
        put_table(group(shown))
    else:
        put(text(shown))
    for place in places.values():
        put(place)


def write_page(out: Path | None, title: str, found: Any, **parts: Any) -> None:
    """Write the report of one answer, where a place for it is given."""
    from tpcalc.views.record import FIELDS, ReportInput

    if out is not None:
        from tpcalc.views.page import write

        write(ReportInput(title, **{FIELDS[type(found)]: found}, **parts), out)


def check_gaps(found: DepthTable) -> None:
    """End as incomplete where something that was asked has no number."""
    if found.lacking:
        gone = [f"{gap.name or 'all'} at L = {gap.depth}" for gap in found.lacking]
        raise Incomplete(f"no number of {_some(gone)}.", hint="The answer says why.")


def check_tolerance(table: LimitTable) -> None:
    """End with the exit code for it where a number was not had, or not to its error target.

    Where a network explodes with its width, that its numbers do so is part of the answer.
    """
    failed = [row for row in table.uncovered if table.exploded is None or _no_number(row.error)]
    if failed:
        first = max(failed, key=lambda row: row.code)  # an explosion explains the others
        names = _some([row.name for row in failed])
        raise Incomplete(f"no number of {names}: {first.reason}", hint=first.hint)
    missed = [
        row.name for row in table.scalars if row.estimate.status is Status.TOLERANCE_NOT_REACHED
    ]
    if missed:
        raise Incomplete(
            f"the error target was not met for {_some(missed)}.",
            hint="Raise --max-particles or --rel-error.",
        )


def _no_number(error: TpcalcError) -> bool:
    return isinstance(error, EvaluationError) and not isinstance(error, Exploded)


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:6]) + (", ..." if len(names) > 6 else "")


def check_place(flag: str, path: Path, suffixes: tuple[str, ...], what: str) -> None:
    """Refuse a place that cannot be written."""
    if path.suffix.lower() not in suffixes:
        raise UsageError(
            f"{flag}: {what} is written as {' or '.join(suffixes)}, and {path} does not end so.",
            hint=f"Call it {path.stem or 'answer'}{suffixes[0]}.",
        )
    try:
        write.check(path, what.removeprefix("a "))
    except StudyError as error:
        raise UsageError(f"{flag}: {error.message}", hint=error.hint) from None


def check_page(out: Path | None) -> None:
    """The same for the report of ``--out``, where there is one."""
    if out is not None:
        check_place("--out", out, (".html", ".md"), "a report")


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
