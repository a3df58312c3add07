"""Programs, networks and activations in Python files: ``file.py:name``."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import inspect
import sys
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

from tpcalc.activations import entries as activations
from tpcalc.dsl import Traced
from tpcalc.dsl import as_program as program_of
from tpcalc.dsl.elementwise import Elementwise
from tpcalc.engine.device.devices import load_torch
from tpcalc.errors import StudyError, TpcalcError, UnknownName, UsageError, raised
from tpcalc.networks import architectures
from tpcalc.networks.architecture import ArchitectureFamily
from tpcalc.networks.network import Architecture
from tpcalc.networks.own import Network, Own, as_network, is_network
from tpcalc.program.program import Program
from tpcalc.sources import Source
from tpcalc.tasks.payload import OF_A_FILE
from tpcalc.training import losses, optimizers, parameterizations, schedules


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


@dataclass(frozen=True)
class _Kind:
    """What is taken from a file."""

    word: str  # it in words
    plural: str  # several of them
    makes: str  # how to write one
    # whether a value of a module stands for one when no name is given
    holds: Callable[[Any, ModuleType], bool]
    named: Callable[[Any], bool]  # whether a value that is named stands for one


def _is_network(value: Any, module: ModuleType) -> bool:
    """Networks, and the classes of networks that the file itself writes."""
    if inspect.isclass(value):
        return issubclass(value, Network) and value.__module__ == module.__name__
    return isinstance(value, Architecture)


def _is_program(value: Any) -> bool:
    return isinstance(value, Program | Traced)


MODEL = _Kind(
    "program or network",
    "programs or networks",
    "Put @tp.program or @tp.network above a function; of a module of PyTorch say what it reads, "
    "--input NAME:SHAPE.",
    lambda value, module: _is_program(value) or _is_network(value, module),
    lambda value: _is_program(value) or is_network(value),
)
NETWORK = _Kind(
    "network",
    "networks",
    "Put @tp.network above a function net(t, x), or inherit from tp.Network.",
    _is_network,
    is_network,
)
ACTIVATION = _Kind(
    "activation",
    "activations",
    "Make one with tp.function, or write a function of expressions.",
    lambda value, module: isinstance(value, Elementwise),
    callable,
)


MODULE = _Kind(
    "module",
    "modules",
    "Write make(n), which returns a torch.nn.Module, or name a class of modules.",
    lambda value, module: _written_in(value, module) and _makes_modules(value),
    lambda value: callable(value) and not (_is_program(value) or isinstance(value, Architecture)),
)
FUNCTION = _Kind(
    "function",
    "functions",
    "Write optimizer(model, n), which returns an optimizer of torch.",
    lambda value, module: inspect.isfunction(value) and _written_in(value, module),
    callable,
)


def _written_in(value: Any, module: ModuleType) -> bool:
    return getattr(value, "__module__", None) == module.__name__


def _makes_modules(value: Any) -> bool:
    """Whether something is a class of modules, or called as what makes them is."""
    if inspect.isclass(value):
        return issubclass(value, load_torch().nn.Module)
    return inspect.isfunction(value) and value.__name__ == "make"


def load_named(path: str | Path, name: str | None = None) -> tuple[str, Program | Architecture]:
    """Import a Python file and take a program or a network from it."""
    found, value = _named(Path(path), name, MODEL)
    if not _is_program(value):
        return found, _network(Path(path), value)
    with user_errors(Path(path)):  # a decorated function runs here, on the user's own lines
        return found, program_of(value)


def load_network(path: str | Path, name: str | None = None) -> tuple[str, Architecture]:
    """Import a Python file and take a network from it."""
    found, value = _named(Path(path), name, NETWORK)
    return found, _network(Path(path), value)


def load_activation(path: str | Path, name: str | None = None) -> tuple[str, Any]:
    """Import a Python file and take an activation from it."""
    return _named(Path(path), name, ACTIVATION)


def load_module(path: str | Path, name: str | None = None) -> tuple[str, Any]:
    """Import a Python file and take from it what makes a module of PyTorch."""
    return _named(Path(path), name, MODULE)


def load_function(path: str | Path, name: str | None = None) -> tuple[str, Any]:
    """Import a Python file and take a function from it."""
    return _named(Path(path), name, FUNCTION)


def _network(path: Path, value: Any) -> Architecture:
    with user_errors(path):
        found = as_network(value)
        _ = found.smallest
        return found


def _named(path: Path, name: str | None, kind: _Kind) -> tuple[str, Any]:
    """A value of a file by its name, or the only one there is."""
    module = _run(path, path.stat().st_mtime_ns if path.is_file() else 0)
    there = {key: value for key, value in vars(module).items() if kind.holds(value, module)}
    if name is None:
        return _only(there, path, kind)
    if not hasattr(module, name):
        raise UnknownName(kind.word, name, there, where=str(path))
    value = getattr(module, name)
    if not kind.named(value):
        listing = f"In this file: {', '.join(there)}." if there else kind.makes
        raise StudyError(
            f"{name} is a value of type {type(value).__name__}, no {kind.word}.",
            where=str(path),
            hint=listing,
        )
    return name, value


def _only(there: dict[str, Any], path: Path, kind: _Kind) -> tuple[str, Any]:
    if len(there) == 1:
        return next(iter(there.items()))
    raise StudyError(
        f"the file has several {kind.plural}." if there else f"the file has no {kind.word}.",
        where=str(path),
        hint=f"Say which: {', '.join(f'{path}:{name}' for name in there)}."
        if there
        else kind.makes,
    )


@contextlib.contextmanager
def user_errors(path: Path) -> Iterator[None]:
    """Run what a user's file says: its errors name its lines, what it prints is no answer."""
    with _user_errors(path), _folder_first(path), contextlib.redirect_stdout(sys.stderr):
        yield


@lru_cache(maxsize=16)
def _run(path: Path, changed: int) -> ModuleType:
    """The file as a module; it runs once until it changes."""
    if path.is_dir():
        raise StudyError("this is a folder, not a Python file.", where=str(path))
    if not path.is_file():
        raise StudyError("there is no such file.", where=str(path), hint="Check the path.")
    # A name of its own, so that a file called like a library hides nothing.
    digest = hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:12]
    spec = importlib.util.spec_from_file_location(f"{OF_A_FILE}{digest}", path)
    assert spec is not None and spec.loader is not None  # the name ends in .py
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses and pickles in the file look themselves up
    with user_errors(path):
        # from its text: compiled files tell changes by seconds and sizes
        exec(compile(path.read_bytes(), str(path), "exec"), vars(module))
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
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # whatever a user's file raises
        where, message, hint = _user_line(path, error), raised(error), None
        if isinstance(error, SyntaxError) and error.lineno is not None:
            where = f"{error.filename or path}, line {error.lineno}"
            message = f"this is not Python: {error.msg}."
        elif isinstance(error, SystemExit):
            message = f"the file ends the program ({message})."
            hint = "Guard what is to run as a script by if __name__ == '__main__'."
        raise StudyError(message, where=where, hint=hint) from error


def _user_line(path: Path, error: BaseException) -> str:
    own = path.resolve()
    frames = [
        f"{path}, line {frame.lineno}" + (f", in `{frame.line}`" if frame.line else "")
        for frame in traceback.extract_tb(error.__traceback__)
        if Path(frame.filename).resolve() == own
    ]
    return frames[-1] if frames else str(path)


def find_architecture(name: str) -> ArchitectureFamily:
    """The networks of a name: of the catalogue, or one in a Python file.

    Example:
        >>> find_architecture("mlp").name
        'mlp'
    """
    in_python = split_model(name)
    if in_python is None:
        return architectures.lookup(name)
    title, found = load_named(*in_python)
    if not isinstance(found, Own):
        raise StudyError(
            f"{title} is no network.",
            where=in_python[0],
            hint="Put @tp.network above a function net(t, x), or inherit from tp.Network.",
        )
    return ArchitectureFamily(
        name, found.with_, found.words, Source(in_python[0], title), own=found.takes or ()
    )


def architecture_names() -> tuple[str, ...]:
    """The architectures of the catalogue, in the order of their names."""
    return tuple(architectures.REGISTRY)


def catalogue() -> dict[str, list[dict[str, Any]]]:
    """Every entry of the catalogue by kind: name, aliases, text, parameters, source."""
    kinds = {
        "activations": activations,
        "architectures": architectures,
        "parameterizations": parameterizations,
        "optimizers": optimizers,
        "schedules": schedules,
        "losses": losses,
    }
    return {
        kind: [_listed(name, entry) for name, entry in module.REGISTRY.items()]
        for kind, module in kinds.items()
    }


def _listed(name: str, entry: Any) -> dict[str, Any]:
    parameters = getattr(entry, "parameters", ())
    return {
        "name": name,
        "aliases": list(getattr(entry, "aliases", ())),
        "text": entry.text,
        "parameters": [getattr(parameter, "name", parameter) for parameter in parameters],
        "source": str(entry.source),
    }
