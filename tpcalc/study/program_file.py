"""Programs, networks and activations in Python files: ``file.py:name``."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import sys
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from tpcalc.dsl import Traced
from tpcalc.dsl import as_program as program_of
from tpcalc.dsl.elementwise import Elementwise
from tpcalc.errors import StudyError, TpcalcError, UnknownName, UsageError
from tpcalc.networks.network import Architecture
from tpcalc.networks.own import Network, as_network, is_network
from tpcalc.program.program import Program

__all__ = ["load_activation", "load_network", "load_program", "split_model"]


def split_model(model: str) -> tuple[str, str | None] | None:
    """Take ``file.py:name`` apart; None if the text is not of that form.

    Example:
        >>> split_model("nets/mine.py:deep"), split_model("mine.py"), split_model("mlp")
        (('nets/mine.py', 'deep'), ('mine.py', None), None)
    """
    if model.endswith(".py"):
        return model, None
    file, found, name = model.rpartition(".py:")
    return (file + ".py", name) if found else None


def load_program(path: str | Path, name: str | None = None) -> tuple[str, Program]:
    """Import a Python file and take a program from it.

    Args:
        path: The file. It is run as a module, with its folder first on the import path; what it
            prints goes to the error stream.
        name: The variable that holds the program; may be left out if there is one program only.

    Returns:
        The name and the program.

    Raises:
        StudyError: There is no such file, running it fails (the message names the line in the
            file), it holds no program, or the name is something else.
        UnknownName: The file has no such name.
    """
    return _program(Path(path), *_named(Path(path), name, PROGRAM))


def load_network(path: str | Path, name: str | None = None) -> tuple[str, Architecture]:
    """Import a Python file and take a network from it.

    Args:
        path: The file, as for ``load_program``.
        name: The variable that holds the network; may be left out if there is one only.

    Returns:
        The name and the network.

    Raises:
        StudyError: As for ``load_program``.
        UnknownName: The file has no such name.
    """
    found, value = _named(Path(path), name, NETWORK)
    return found, as_network(value)


def load_activation(path: str | Path, name: str | None = None) -> tuple[str, Any]:
    """Import a Python file and take an activation from it.

    Args:
        path: The file, as for ``load_program``.
        name: The variable that holds it; may be left out if there is one only.

    Returns:
        The name, and what was given for an activation.

    Raises:
        StudyError: As for ``load_program``.
        UnknownName: The file has no such name.
    """
    return _named(Path(path), name, ACTIVATION)


@dataclass(frozen=True)
class _Kind:
    """What is taken from a file.

    Args:
        word: It in a word.
        holds: Whether a value stands for one when no name is given.
        makes: How to write one.
        named: Whether a value that is named stands for one.
    """

    word: str
    holds: Callable[[Any], bool]
    makes: str
    named: Callable[[Any], bool]


def _is_program(value: Any) -> bool:
    return isinstance(value, Program | Traced)


def _is_own(value: Any) -> bool:
    """Whether a value is a network that was made in the file: its base class is none."""
    return isinstance(value, Architecture) or (is_network(value) and value is not Network)


PROGRAM = _Kind("program", _is_program, "Put @tp.program above a function.", _is_program)
NETWORK = _Kind("network", _is_own, "Put @tp.network above a function net(t, x).", is_network)
ACTIVATION = _Kind(
    "activation",
    lambda value: isinstance(value, Elementwise),
    "Make one with tp.function, or write a function of expressions.",
    callable,
)


def _named(path: Path, name: str | None, kind: _Kind) -> tuple[str, Any]:
    """A value of a file by its name, or the only one there is."""
    module = _run(path)
    there = {key: value for key, value in vars(module).items() if kind.holds(value)}
    if name is None:
        return _only(there, path, kind)
    if not hasattr(module, name):
        raise UnknownName(kind.word, name, there, where=str(path))
    value = getattr(module, name)
    if not kind.named(value):
        article = "an" if kind.word[0] in "aeiou" else "a"
        raise StudyError(
            f"{name} is {_described(value)}, not {article} {kind.word}.",
            where=str(path),
            hint=f"{kind.makes} {_listing(there, kind)}",
        )
    return name, value


def _program(path: Path, name: str, value: Any) -> tuple[str, Program]:
    # A decorated function runs here, on the user's own lines.
    with _user_errors(path), _folder_first(path), contextlib.redirect_stdout(sys.stderr):
        return name, program_of(value)


def _only(there: dict[str, Any], path: Path, kind: _Kind) -> tuple[str, Any]:
    if len(there) == 1:
        return next(iter(there.items()))
    raise StudyError(
        f"the file has several {kind.word}s." if there else f"the file has no {kind.word}.",
        where=str(path),
        hint=f"Say which: {', '.join(f'{path}:{name}' for name in there)}."
        if there
        else kind.makes,
    )


def _listing(there: dict[str, Any], kind: _Kind) -> str:
    if not there:
        return "There is none here."
    return f"{kind.word.capitalize()}s in this file: {', '.join(there)}."


def _described(value: Any) -> str:
    return f"a value of type {type(value).__name__}"


def _run(path: Path) -> ModuleType:
    if path.is_dir():
        raise StudyError("this is a folder, not a Python file.", where=str(path))
    if not path.is_file():
        raise StudyError("there is no such file.", where=str(path), hint="Check the path.")
    # A name of its own, so that a file called like a library hides nothing.
    digest = hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:12]
    spec = importlib.util.spec_from_file_location(f"_tpcalc_file_{digest}", path)
    assert spec is not None and spec.loader is not None  # the name ends in .py
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses and pickles in the file look themselves up
    with _user_errors(path), _folder_first(path), contextlib.redirect_stdout(sys.stderr):
        spec.loader.exec_module(module)
    return module


@contextlib.contextmanager
def _folder_first(path: Path) -> Iterator[None]:
    folder = str(path.parent.resolve())
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):
            sys.path.remove(folder)


@contextlib.contextmanager
def _user_errors(path: Path) -> Iterator[None]:
    """What goes wrong in a user's file is told with the line of that file, without our frames."""
    try:
        yield
    except TpcalcError as error:
        if error.where is None:
            error.where = _user_line(path, error)
        if error.exit_code == UsageError.exit_code:
            error.exit_code = StudyError.exit_code  # the file is wrong, not the command line
        raise
    except SyntaxError as error:
        where = f"{error.filename or path}, line {error.lineno}"
        raise StudyError(f"this is not Python: {error.msg}.", where=where) from error
    except SystemExit as error:
        raise StudyError(
            f"the file ends the program (exit {error.code}).",
            where=_user_line(path, error),
            hint="Guard what is to run as a script by if __name__ == '__main__'.",
        ) from error
    except Exception as error:
        text = str(error)
        raise StudyError(
            f"{type(error).__name__}{f': {text}' if text else ''}", where=_user_line(path, error)
        ) from error


def _user_line(path: Path, error: BaseException) -> str:
    own = path.resolve()
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if Path(frame.filename).resolve() == own
    ]
    if not frames:
        return str(path)
    frame = frames[-1]
    return f"{path}, line {frame.lineno}" + (f", in `{frame.line}`" if frame.line else "")
