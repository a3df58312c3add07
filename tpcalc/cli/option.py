"""``Option``: a flag that sets keys of a study."""

from __future__ import annotations

import inspect
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tpcalc import checks
from tpcalc.errors import UsageError

if TYPE_CHECKING:
    from tpcalc.study.load import Flag as StudyFlag

Flags = Sequence["StudyFlag"]


_KINDS = (str, int, float, bool, list, tuple, dict, set)
_TYPES: dict[str, type] = {kind.__name__: kind for kind in _KINDS}


@dataclass(frozen=True, slots=True)
class Option:
    """A flag that sets keys of a study.

    Args:
        name: As typed.
        keys: The keys that it sets.
        type: ``int``, ``float``, ``str``, ``list`` for whole numbers with commas, ``tuple`` for
            words with commas, ``dict`` for settings by pattern, a flag for each pattern, or ``set``
            for values by name, a flag for each name.
        help: One line.
        panel: The heading under which ``--help`` lists it.
        metavar: What stands for the value in ``--help``.
    """

    name: str
    keys: tuple[str, ...]
    type: type
    help: str
    panel: str
    metavar: str | None = None

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
def _words() -> dict[str, dict[str, dict[str, Any]]]:
    return tomllib.loads(Path(__file__).with_name("words.toml").read_text(encoding="utf-8"))


def told(command: str, name: str) -> Any:
    """An argument (in capitals) or a flag of a command, with its words, as typer reads it."""
    said = dict(_words()[command][name])
    names, metavar = said.pop("names", ()), said.pop("value", None)
    kind = typer.Argument if name.isupper() else typer.Option
    return kind(*names, metavar=metavar, **said)
