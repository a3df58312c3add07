"""Answers as data: dictionaries and lists of what JSON knows, and rows of numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from math import isfinite
from typing import Any, TypeVar

from tpcalc.names import Name
from tpcalc.results.estimate import Estimate
from tpcalc.results.exponent import Exponent
from tpcalc.shown import Rows

Item = TypeVar("Item")
Key = TypeVar("Key")


def as_plain(value: Any) -> Any:
    """A record as dictionaries and lists; exact numbers are text, what is not finite is null.

    Example:
        >>> from tpcalc.results import Method
        >>> as_plain(Estimate(0.5, float("nan"), Method.PARTICLES))
        {'value': 0.5, 'stderr': None, 'method': 'particles', 'status': 'converged'}
    """
    if isinstance(value, Estimate):
        return as_plain(_of_estimate(value))
    if isinstance(value, Exponent):
        return str(value)
    if is_dataclass(value) and not isinstance(value, type):
        parts = {key: as_plain(part) for key, part in fields_of(value)}
        return parts | _places(parts.get("name"))
    if isinstance(value, Mapping):
        return {str(key): as_plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple | frozenset | set):
        return [as_plain(part) for part in value]
    if hasattr(value, "tolist"):
        return as_plain(value.tolist())
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, float):
        return value if isfinite(value) else None
    return value if isinstance(value, str | int | bool | None) else str(value)


def _places(name: Any) -> dict[str, Any]:
    """Where an output of a training run is of, beside its name."""
    own = Name.tabled(name) if isinstance(name, str) else Name("")
    places = {"layer": own.number, "step": own.step, "input": own.input, "output": own.output}
    return {key: place for key, place in places.items() if place is not None}


def _of_estimate(found: Estimate) -> dict[str, Any]:
    """What is said of a number."""
    random = {"std": found.std, "std_error": found.std_error}
    return {
        "value": found.value,
        "stderr": found.stderr,
        "method": found.method.value,
        "status": found.status.name.lower(),
        **{key: value for key, value in random.items() if value is not None},
    }


def rows_of(record: Any) -> dict[str, Any]:
    """The rows of an answer by the name of their table; of one without rows its fields are one."""
    if isinstance(record, Rows):
        return {"rows": record}
    found = {key: value for key, value in fields_of(record) if is_rows(value) or _is_matrix(value)}
    return found or {"fields": (record,)}


def flat(row: Any) -> dict[str, Any]:
    """A row with numbers as they are: an estimate is its value beside its error and method."""
    if isinstance(row, Mapping):
        return dict(row)
    cells: dict[str, Any] = {}
    for key, value in fields_of(row):
        value = as_number(value)
        if isinstance(value, Estimate):
            cells |= {key: value.value, f"{key}_error": value.stderr}
            cells[f"{key}_method"] = value.method.value
        elif isinstance(value, Enum):
            cells[key] = value.value
        else:
            cells[key] = value if isinstance(value, bool | int | float | None) else str(value)
    return cells


def as_number(value: Any) -> Any:
    """A number that carries its error as an estimate; anything else as it is."""
    carried = hasattr(value, "estimate") and not getattr(value, "shape", ())
    return value.estimate() if carried else value


def fields_of(record: Any) -> Iterator[tuple[str, Any]]:
    """The fields of a record that it shows, by name."""
    if is_dataclass(record):
        for one in fields(record):
            if one.repr and not one.name.startswith("_"):
                yield one.name, getattr(record, one.name)


def grouped(items: Iterable[Item], key: Callable[[Item], Key]) -> dict[Key, list[Item]]:
    """The items of each key, in the order in which keys come."""
    found: dict[Key, list[Item]] = {}
    for item in items:
        found.setdefault(key(item), []).append(item)
    return found


def is_rows(value: Any) -> bool:
    """Whether a field holds records of one kind, or rows with names."""
    kind = type(value[0]) if isinstance(value, tuple) and value else None
    return (is_dataclass(kind) or kind is dict) and all(type(row) is kind for row in value)


def _is_matrix(value: Any) -> bool:
    return getattr(value, "ndim", 0) in (1, 2)
