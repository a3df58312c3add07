"""``Option``: a flag that sets keys of a study."""

from __future__ import annotations

import inspect
import sys
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import redirect_stdout
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache, wraps
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from tpcalc import checks
from tpcalc.errors import UsageError

if TYPE_CHECKING:
    from tpcalc.study.load import Flag as StudyFlag

Flags = Sequence["StudyFlag"]
WHOLE: ContextVar[bool] = ContextVar("whole", default=False)
"""Whether all rows of an answer are printed, however many there are."""
OUTPUT: ContextVar[TextIO | None] = ContextVar("output", default=None)
"""Where answers are printed, and nothing else: what a user's code prints is none."""

_KINDS = (str, int, float, bool, list, tuple, dict, set)
_TYPES: dict[str, type] = {kind.__name__: kind for kind in _KINDS}


@dataclass(frozen=True, slots=True)
class Option:
    """A flag that sets keys of a study."""

    name: str  # as typed
    keys: tuple[str, ...]  # the keys that it sets
    # int, float, str, list for whole numbers with commas, tuple for words with commas, dict for
    # settings by pattern, a flag for each pattern, or set for values by name, a flag for each name
    type: type
    help: str  # one line
    panel: str  # the heading under which --help lists it
    metavar: str | None = None  # what stands for the value in --help

    @property
    def parameter(self) -> inspect.Parameter:
        """The parameter of the command that typer reads."""
        kind: Any = str if self.type in (list, tuple) else self.type
        kind = list[str] if self.type in (dict, set) else kind
        option = typer.Option(
            self.name,
            help=self.help,
            rich_help_panel=self.panel,
            metavar=self.metavar,
            show_default=False,
        )
        return inspect.Parameter(
            self.name.lstrip("-").replace("-", "_"),
            inspect.Parameter.KEYWORD_ONLY,
            default=None,
            annotation=Annotated[kind | None, option],
        )

    def given(self, value: Any) -> list[StudyFlag]:
        """The study flags that a value on the command line stands for."""
        from tpcalc.study.load import Flag

        if self.type is list:
            value = whole_numbers(self.name, value)
        elif self.type is tuple:
            from tpcalc.cli.values import COMMA

            value = [word for word in COMMA.split(value) if word]
        elif self.type is dict:
            value = _settings(self.name, value)
        elif self.type is set:
            from tpcalc.cli.values import ANY, pairs
            from tpcalc.study.sections import value_of

            form = self.metavar or ""
            read = value_of if "=" in form else str
            value = {name: read(word) for name, word in pairs(self.name, value, form, ANY)}
        return [Flag(self.name, key, value) for key in self.keys]


def whole_numbers(name: str, text: str) -> list[int]:
    """Whole numbers with commas between them."""
    return [checks.whole(word, name, hint="Write them as 1,2,3.") for word in text.split(",")]


def _settings(name: str, texts: Iterable[str]) -> dict[str, dict[str, str]]:
    """Settings by pattern."""
    found: dict[str, dict[str, str]] = {}
    for text in texts:
        pattern, colon, given = text.partition(":")
        pairs = [word.partition("=") for word in given.split()]
        if not colon or not pairs or not all(key and value for key, _, value in pairs):
            raise UsageError(
                f"{name}: {text!r} does not say which parameters have which settings.",
                hint="Write it as 'hidden: lr=0.5 power=-1/2'.",
            )
        own = found.setdefault(pattern.strip(), {})
        for key, _, value in pairs:
            if own.setdefault(key, value) != value:
                raise UsageError(
                    f"{name}: {pattern.strip()} has {key}={own[key]} and {key}={value}.",
                    hint="Say it once.",
                )
    return found


def options(
    heading: str, parts: Sequence[str], flags: Mapping[str, Mapping[str, str]]
) -> tuple[Option, ...]:
    """The flags under one heading of the help, of keys in some parts of a study."""
    return tuple(_option(heading, parts, name, **flag) for name, flag in flags.items())


def _option(
    heading: str,
    parts: Sequence[str],
    name: str,
    help: str,
    value: str | None = None,
    type: str = "str",
    key: str = "",
) -> Option:
    own = key or name.replace("-", "_")
    keys = tuple(f"{part}.{own}" for part in parts)
    return Option(f"--{name}", keys, _TYPES[type], help, heading, value)


@cache
def _words() -> dict[str, dict[str, Any]]:
    return tomllib.loads(Path(__file__).with_name("words.toml").read_text(encoding="utf-8"))


def _told(command: str, own: inspect.Parameter) -> inspect.Parameter:
    """A parameter of a command with its words, as typer reads it; one that has some stays."""
    if hasattr(own.annotation, "__metadata__") or own.kind is own.VAR_KEYWORD:
        return own
    key, known = own.name.replace("_", "-"), _words()
    words = known.get(command, {})
    said = words.get(key) or known.get(words.get("like", ""), {}).get(key) or known["flags"][key]
    said = dict(known["flags"][said["as"]] if "as" in said else said)
    names, metavar = said.pop("names", ()), said.pop("value", None)
    if own.annotation is bool and not names:
        names = (f"--{key}",)
    kind = typer.Argument if said.pop("argument", False) else typer.Option
    words = kind(*names, metavar=metavar, **said)
    return own.replace(annotation=Annotated[own.annotation, words])


def taking(
    wrapper: Callable[..., None], parameters: Iterable[inspect.Parameter], **flags: Any
) -> Callable[..., None]:
    """A command with other parameters and some flags, none of them given, as typer reads them."""
    keyword = inspect.Parameter.KEYWORD_ONLY
    more = [inspect.Parameter(name, keyword, default=None, annotation=kind)
            for name, kind in flags.items()]  # fmt: skip
    made = inspect.Signature([*parameters, *more])
    wrapper.__signature__ = made  # type: ignore[attr-defined]
    wrapper.__annotations__ = {name: own.annotation for name, own in made.parameters.items()}
    return wrapper


def many(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command ``--jobs`` and ``--scheduler``."""

    @wraps(command)
    def wrapper(jobs: int | None = None, scheduler: str | None = None, **values: Any) -> None:
        from tpcalc.tasks.use import use

        with use(jobs=jobs, scheduler=scheduler):
            command(**values)

    parameters = signature(command, eval_str=True).parameters.values()
    return taking(wrapper, parameters, jobs=int | None, scheduler=str | None)


def answering(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command its limits, the output for its answer alone, ``--all`` where it has tables."""
    parameters = signature(command, eval_str=True).parameters

    @wraps(command)
    def wrapper(
        whole: bool | None = None,
        most_seconds: str | None = None,
        memory: str | None = None,
        **values: Any,
    ) -> None:
        from tpcalc.doors.budget import limits_of, within

        WHOLE.set(bool(whole))
        OUTPUT.set(sys.stdout)
        limits = limits_of(most_seconds, memory, ("--most-seconds", "--memory"))
        with redirect_stdout(sys.stderr), within(limits, _tell()):
            command(**values)

    flags: dict[str, Any] = {"whole": bool | None} if "as_json" in parameters else {}
    flags |= {"most_seconds": str | None, "memory": str | None}
    taken = signature(taking(wrapper, parameters.values(), **flags)).parameters.values()
    return taking(wrapper, [_told(command.__name__, own) for own in taken])


def _tell() -> Callable[[str, float], None]:
    """What says how long something takes to who waits for it, and again where it is longer."""
    from tpcalc.doors.budget import duration

    longest = 0.0

    def tell(what: str, seconds: float) -> None:
        nonlocal longest
        if sys.stderr.isatty() and seconds > 2 * longest:
            longest = seconds
            typer.echo(f"{what}: about {duration(seconds)}", err=True)

    return tell
