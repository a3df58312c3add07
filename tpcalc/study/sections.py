"""Sections of a TOML file and flags laid over them; what is wrong with them, key by key."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from tpcalc.doors import files
from tpcalc.doors.files import from_toml
from tpcalc.doors.numbers import exact, whole
from tpcalc.errors import StudyError, UsageError, short

BRANCH = "|"
"""Begins the tag of one of two types of a value, which is no part of its key."""


@dataclass(frozen=True, slots=True)
class Flag:
    """A value given on the command line."""

    name: str  # the flag as typed ("--particles")
    key: str  # the key of a study that it sets ("limit.samples")
    value: Any


def value_of(text: str) -> Any:
    """A number or a truth value where a text says one."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    number = whole(text)
    if number is None:
        with suppress(StudyError):
            return float(exact(text, what="a value"))
    return text if number is None else number


def read_sections(path: Path) -> dict[str, Any]:
    """Section -> key -> value, of a TOML file."""
    return from_toml(files.text(path, "study file"), str(path))


def problems_of(error: ValidationError, root: type[BaseModel]) -> list[tuple[str, str]]:
    """The dotted key of each problem, and what it is."""
    return [_problem(found, root) for found in error.errors() if not _echo(found)]


def refusal(
    problems: Sequence[tuple[str, str]], flags: Sequence[Flag], where: str | None
) -> StudyError:
    """One error for all problems; a key that a flag set goes by the name of the flag."""
    owners = [_owner(key, flags, where) for key, _ in problems]
    found = [(owner or key, text) for owner, (key, text) in zip(owners, problems, strict=True)]
    (place, text), *others = dict.fromkeys(found)
    more = " ".join(f"{name}: {text}" for name, text in others)
    hint = f"{len(others)} more: {more}" if others else None
    if all(owners):
        return UsageError(text, where=place, hint=hint)
    return StudyError(text, where=f"{where}: {place}" if where else place, hint=hint)


def _owner(key: str, flags: Sequence[Flag], where: str | None) -> str:
    """The flag that set a key, or where there is no file the flags that set those of a section."""
    own = [f.name for f in flags if key == f.key or key.startswith(f.key + ".")]
    inside = [f.name for f in flags if f.key.startswith(key + ".") and where is None]
    return own[0] if own else ", ".join(inside)


def _echo(found: Any) -> bool:
    """Whether a list is called too short only because its entries are wrong, which is said too."""
    return bool(found["type"] == "too_short" and len(found["input"]) >= found["ctx"]["min_length"])


def _problem(found: Any, root: type[BaseModel]) -> tuple[str, str]:
    """The dotted key of a problem and what it is."""
    place = [str(part) for part in found["loc"] if not str(part).startswith(BRANCH)]
    key = ".".join(place)
    if found["type"] == "extra_forbidden":
        known = _known_keys(place[:-1], root)
        near = difflib.get_close_matches(place[-1], known, n=3, cutoff=0.5)
        kind = "key" if len(place) > 1 else "section"
        words = "Did you mean " if near else f"Known {kind}s: "
        names = near or known
        return key, f"there is no such {kind}. {words}{', '.join(names)}{'?' if near else '.'}"
    if found["type"].startswith("model_"):
        return key, f"a section with keys is needed, not {found['input']!r}."
    if found["type"] == "unknown_name":
        return key, found["msg"]
    if found["type"] == "too_short":
        least = found["ctx"]["min_length"]
        return key, f"it should have {least} or more entries; it is {short(repr(found['input']))}."
    sentence = found["msg"].replace("Input should", "it should")
    return key, f"{sentence}; it is {short(repr(found['input']))}."


def _known_keys(place: Sequence[str], root: type[BaseModel]) -> list[str]:
    part = root
    for name in place:
        if name.isdigit():  # the place of an entry in a list
            continue
        inner = {field.alias or key: field.annotation for key, field in part.model_fields.items()}
        part = _section(inner[name])
    return [field.alias or key for key, field in part.model_fields.items()]


def _section(annotation: Any) -> type[BaseModel]:
    """The schema of a section, or of the entries of a list of sections."""
    found = [annotation, *get_args(annotation)]
    return next(kind for kind in found if isinstance(kind, type) and issubclass(kind, BaseModel))
