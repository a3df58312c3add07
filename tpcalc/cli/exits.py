"""The one way out of the command line: whatever ends a command becomes a line and an exit code."""

from __future__ import annotations

import codecs
import io
import json
import os
import re
import shutil
import signal
import sys
import threading
import time
import traceback
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn, TextIO

import typer
from typer.core import TyperGroup

from tpcalc.errors import (
    Fault,
    Incomplete,
    Interrupted,
    OutOfMemory,
    StudyError,
    Terminated,
    TpcalcError,
    UsageError,
    raised,
)

SAYS_NO = 1  # of a check: trivial or unstable
TOLERANCE_NOT_MET = Incomplete.exit_code
TRACEBACK = "TPCALC_TRACEBACK"  # of the environment: where errors come from is printed too


WIDTHS = range(40, 401)  # of a terminal that is believed
GRACE = 5  # seconds after SIGTERM in which a run may end in order


class _Terminate(KeyboardInterrupt):
    """What SIGTERM raises: a run is ended as Ctrl-C ends it."""


def ends_in_order() -> None:
    """Let SIGTERM end a run with a word; what it was writing is not left half-written."""
    heard, told = os.pipe()
    os.set_blocking(told, False)

    def ended(number: int, _: object) -> NoReturn:
        raise _Terminate if number == signal.SIGTERM else KeyboardInterrupt

    def watch() -> None:  # an import may lose what is raised within, and C code hears nothing
        while os.read(heard, 1)[0] != signal.SIGTERM:
            pass
        time.sleep(GRACE)
        os.write(2, f"{Terminated('terminated')}\n".encode())
        os._exit(Terminated.exit_code)

    signal.set_wakeup_fd(told, warn_on_full_buffer=False)
    signal.signal(signal.SIGTERM, ended)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, ended)  # where it is raised tells it from a user's own
    threading.Thread(target=watch, daemon=True).start()


class Exits(TyperGroup):
    """All commands; whatever ends one of them ends here."""

    def main(
        self, args: Sequence[str] | None = None, prog_name: str | None = None, *_: Any, **__: Any
    ) -> NoReturn:
        """Carry out a command, and end the program with its exit code."""
        words = list(sys.argv[1:] if args is None else args)
        _open_streams()
        try:
            with self.make_context(prog_name or "tpcalc", list(words)) as context:
                self.invoke(context)
        except BaseException as error:
            command = words[0] if words and words[0] in self.commands else ""
            raise SystemExit(_ended(error, command, "--json" in words)) from error
        raise SystemExit(0)


def _ended(error: BaseException, command: str, as_json: bool) -> int:
    """Tell what ended a command; its exit code."""
    if isinstance(error, typer.Exit):
        return error.exit_code
    cause = error.__context__ if isinstance(error, SystemExit) else error  # rich ends by itself
    if isinstance(cause, BrokenPipeError):
        _drop(sys.stdout)  # the reader (head, less) has seen enough
        return 0
    told = _named(error)
    if os.environ.get(TRACEBACK):
        _say("".join(traceback.format_exception(error)), sys.stderr)
    if told.message:  # of no command at all: the help is printed
        _say(str(told), sys.stderr)
        if as_json and not isinstance(told, Incomplete):
            from tpcalc.cli import payload

            _say(payload.refusal(told, command), sys.stdout)
    return told.exit_code


# What Python is advised to write, values={'a': '1/2'}, is a flag here: --values a=1/2.
_ARGUMENT = re.compile(r"\b(values|at|given)=\{'([^']+)': '?([^'}]+)'?\}")


def _named(error: BaseException) -> TpcalcError:
    """What ended a command, as an error of this package."""
    if isinstance(error, TpcalcError):
        error.hint = error.hint and _ARGUMENT.sub(r"--\1 \2=\3", error.hint)
        return error
    if isinstance(error, _Terminate):
        return Terminated("terminated")
    from tpcalc.dsl.operands import raising_line

    line = raising_line(error.__traceback__)
    if isinstance(error, KeyboardInterrupt | typer.Abort) and line is None:
        return Interrupted("interrupted")
    if hasattr(error, "format_message"):  # typer's, of arguments
        context = getattr(error, "ctx", None)
        command = context.command_path if context else "tpcalc"
        message: str = error.format_message()
        end = "" if message.endswith((".", "?")) or not message else "."
        return UsageError(f"{message}{end}", where=command, hint=f"See {command} --help.")
    if line is not None:  # code of a file that ran later than the file itself
        return StudyError(raised(error), where=line)
    if isinstance(error, MemoryError):
        return OutOfMemory(
            "the memory of this machine is used up.",
            hint="Take fewer samples, smaller widths or fewer threads.",
        )
    if isinstance(error, OSError):
        # Files that were asked for have errors of their own; what is left is the output itself.
        if error.filename is None:
            _drop(sys.stdout)
        why = error.strerror or error
        return StudyError(f"the system refused it: {why}.", where=error.filename or "the output")
    hint = f"This is a fault of tpcalc; {TRACEBACK}=1 shows where it comes from."
    return Fault(f"{raised(error)}.", hint=hint)


def _say(text: str, stream: TextIO) -> None:
    try:
        typer.echo(text, stream)
    except OSError:  # nobody hears it
        _drop(stream)


def _drop(stream: TextIO) -> None:
    """Let nothing be written any more, at the end of the interpreter neither."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _open_streams() -> None:
    """Let streams take any text: closed ones drop it, others escape what their encoding lacks."""
    codecs.register_error("tpcalc", _escaped)
    for name in ("stdin", "stdout", "stderr"):  # in the order of the numbers that are free
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open("r+", encoding="utf-8"))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="tpcalc")
    width = shutil.get_terminal_size().columns
    if (
        "COLUMNS" in os.environ or width not in WIDTHS
    ):  # help and tables need some columns, and fill as many as there are
        os.environ["COLUMNS"] = str(min(max(width, WIDTHS.start), WIDTHS.stop - 1))


def _escaped(error: UnicodeError) -> tuple[str, int]:
    """Signs that an encoding lacks, as JSON writes them: a text in JSON stays what it is."""
    assert isinstance(error, UnicodeEncodeError)
    return json.dumps(error.object[error.start : error.end])[1:-1], error.end
