"""A grid of settings: keys of a study with the values that each takes, checked before a run."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from copy import deepcopy
from itertools import product
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from tpcalc.errors import TpcalcError, UnknownName, UsageError
from tpcalc.study.load import located, merged_with
from tpcalc.study.schema import Study
from tpcalc.study.sections import Flag, problems_of, refusal, value_of

MOST = 100_000  # cells
FIT = f"1 to {MOST} can be swept: name keys and values, as --grid depth=2,3"
Cell = tuple[Flag, ...]


def sweep_of(sections: dict[str, Any], folder: Path, where: str | None) -> tuple[str, list[Cell]]:
    """The question of a study and its cells; all that is wrong with either is told at once."""
    problems, axes = _problems(sections), dict[str, list[Flag]]()
    asked = Study.model_validate({} if problems else {"sweep": sections.pop("sweep", {})}).sweep
    for word, values in _flat(asked.grid):
        try:
            key = _key(word)
            if key in axes:
                raise UsageError(f"{key} is given twice.")
            axes[key] = _axis(key, values, folder)
        except TpcalcError as error:
            problems.append((f"sweep.grid.{word}", error.told))
    cells = math.prod(map(len, axes.values())) if axes else 0
    if not problems and not 0 < cells <= MOST:
        problems = [("sweep.grid", f"it has {cells} cells; {FIT}.")]
    flags = [flag for axis in axes.values() for flag in axis]
    problems = problems or [each for one in flags for each in _problems(merged_with({}, [one]))]
    if problems:
        raise refusal(problems, [Flag(key, key, None) for key, _ in problems if not where], where)
    return asked.question, list(product(*axes.values()))


def _flat(grid: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Keys with a dot are sections of TOML where they are not quoted."""
    for word, values in grid.items():
        inner = values if isinstance(values, Mapping) else {"": values}
        yield from ((f"{word}.{key}".rstrip("."), own) for key, own in inner.items())


def _problems(sections: Mapping[str, Any]) -> list[tuple[str, str]]:
    try:
        Study.model_validate(sections)
    except ValidationError as error:
        return problems_of(error, Study)
    return []


def _key(word: str) -> str:
    """The key of a study that a word stands for, where it has no dot."""
    parts: dict[str, Any] = {name: own.annotation for name, own in Study.model_fields.items()}
    del parts["sweep"]
    keys = [f"{name}.{key}" for name, part in parts.items() for key in part.model_fields]
    found = [key for key in keys if key.partition(".")[2] == word] or [word]
    if len(found) > 1:
        raise UsageError(f"several sections have this key: {', '.join(found)}.")
    if "." not in found[0] or found[0].startswith("sweep."):
        raise UnknownName("key of a study", word, keys)
    return found[0]


def _axis(key: str, values: Any, folder: Path) -> list[Flag]:
    """The values of a key; of a text those between bars or commas."""
    if isinstance(values, str):
        values = [value_of(word.strip()) for word in values.split("|" if "|" in values else ",")]
    values = values if isinstance(values, list | tuple) else [values]
    if len({json.dumps(value, default=str) for value in values}) < max(len(values), 1):
        raise UsageError("one value or more is needed, and none of them twice.")
    section, _, name = key.partition(".")
    parts = (located({section: {name: deepcopy(value)}}, folder)[section] for value in values)
    return [Flag(key, key, part[name]) for part in parts]
