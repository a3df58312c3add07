"""Errors -> one line on the error stream and an exit code."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import wraps
from typing import Annotated, ParamSpec

import typer

from tpcalc.errors import OutOfMemory, StudyError, TpcalcError

SAYS_NO = 1  # of a check: trivial or unstable
TOLERANCE_NOT_MET = 4
INTERRUPTED = 130  # what a shell reports for Ctrl-C
WHOLE: ContextVar[bool] = ContextVar("whole", default=False)
"""Whether all rows of an answer are printed, however many there are."""

_All = Annotated[bool, typer.Option("--all", help="Print all rows of every table.")]
P = ParamSpec("P")


def clean(command: Callable[P, None]) -> Callable[P, None]:
    """A command that ends with a message and an exit code, never with a traceback of an error."""
    signature = inspect.signature(command, eval_str=True)

    @wraps(command)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> None:
        WHOLE.set(bool(kwargs.pop("whole", False)))
        with _told():
            command(*args, **kwargs)

    if "as_json" in signature.parameters:  # what prints an answer can print all of it
        whole = inspect.Parameter(
            "whole", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=_All
        )
        parameters = [*signature.parameters.values(), whole]
        wrapper.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        wrapper.__annotations__ = {item.name: item.annotation for item in parameters}
    return wrapper


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except TpcalcError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(error.exit_code) from None
    except KeyboardInterrupt:
        typer.echo("interrupted", err=True)
        raise typer.Exit(INTERRUPTED) from None
    except MemoryError:
        full = OutOfMemory(
            "the memory of this machine is used up.",
            hint="Take fewer samples, smaller widths or fewer threads.",
        )
        typer.echo(str(full), err=True)
        raise typer.Exit(full.exit_code) from None
    except BrokenPipeError:
        _drop_output()  # the reader (head, less) has seen enough
        raise typer.Exit(0) from None
    except OSError as error:
        # Files that were asked for have errors of their own; what is left is the output itself.
        _drop_output()
        place = f" {error.filename}" if error.filename else ""
        typer.echo(f"the system refused{place}: {error.strerror or error}", err=True)
        raise typer.Exit(StudyError.exit_code) from None


def _drop_output() -> None:
    """Let nothing be written any more, at the end of the interpreter neither."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
