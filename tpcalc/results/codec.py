"""Result records as JSON, with a schema version.

One codec serves every record: the fields of the frozen dataclasses say how each value is read.
JSON has no number for what is not finite: ``nan``, ``inf`` and ``-inf`` are written as strings, and
read back only where the record has a float.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from fractions import Fraction
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from tpcalc import results
from tpcalc.errors import StudyError, UnknownName, short

SCHEMA = 1

# Matrices are kept as numpy writes them: ``Kernel.save``.
_IN_THEIR_OWN_FILES = ("Kernel",)
_NOT_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


def to_json(record: Any) -> dict[str, Any]:
    """A result record as plain dictionaries and lists, for ``json.dumps``.

    Example:
        >>> from tpcalc.results import Formula
        >>> to_json(Formula("x**2"))
        {'schema': 1, 'type': 'Formula', 'text': 'x**2', 'latex': '', 'mathml': '', 'html': ''}
    """
    name = type(record).__name__
    if _record_types().get(name) is not type(record):
        raise StudyError(
            f"a {name} is not a result record, so it has no JSON.",
            hint="Write it with its method save." if name in _IN_THEIR_OWN_FILES else None,
        )
    return {"schema": SCHEMA, "type": name, **_encode_fields(record, name)}


def from_json(data: Any) -> Any:
    """The record that ``to_json`` wrote."""
    if not isinstance(data, Mapping) or "schema" not in data:
        raise StudyError("this JSON is no tpcalc result: it has no schema version.", where="$")
    if data["schema"] != SCHEMA:
        raise StudyError(
            f"the result has schema version {data['schema']!r}; this release reads version "
            f"{SCHEMA}.",
            where="$.schema",
            hint="Read it with the release of tpcalc that wrote it, or compute it again.",
        )
    name = data.get("type")
    known = _record_types()
    if not isinstance(name, str) or name not in known:
        raise UnknownName("type of result", str(name), known, where="$.type")
    content = {key: value for key, value in data.items() if key not in ("schema", "type")}
    return _decode_record(content, known[name], name)


def save(record: Any, path: str | Path) -> None:
    """Write a result record to a JSON file.

    Raises:
        StudyError: The file cannot be written.
    """
    text = json.dumps(to_json(record), indent=1, allow_nan=False) + "\n"
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise StudyError(f"cannot be written: {error.strerror}.", where=str(path)) from None


def load(path: str | Path) -> Any:
    """Read a result record from a JSON file.

    Raises:
        StudyError: The file cannot be read, is not JSON, or holds no result of this version.
    """
    try:
        data = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise StudyError(f"cannot be read: {error.strerror}.", where=str(path)) from None
    except (ValueError, RecursionError) as error:  # not UTF-8, or not JSON
        raise StudyError(f"is not a JSON file: {error}.", where=str(path)) from None
    return from_json(data)


@cache
def _record_types() -> dict[str, type]:
    """The records that ``tpcalc.results`` exports, by name."""
    return {
        name: value
        for name, value in vars(results).items()
        if isinstance(value, type) and is_dataclass(value) and name not in _IN_THEIR_OWN_FILES
    }


class _Numbers:
    """Stands for ``NDArray`` in the types of fields: numpy is not loaded to read them."""

    def __class_getitem__(cls, kind: object) -> type[_Numbers]:
        return cls


@cache
def _hints(record: Any) -> dict[str, Any]:
    hints = get_type_hints(record, localns={"NDArray": _Numbers})
    return {item.name: hints[item.name] for item in fields(record) if item.init}


def _encode_fields(record: Any, place: str) -> dict[str, Any]:
    return {
        name: _encode(getattr(record, name), hint, f"{place}.{name}")
        for name, hint in _hints(record.__class__).items()
    }


def _encode(value: Any, hint: Any, place: str) -> Any:
    origin = get_origin(hint)
    if origin in (Union, UnionType):
        if value is None and NoneType in get_args(hint):
            return None
        return _encode(value, _only_choice(hint, place), place)
    if origin is tuple:
        kinds = _item_hints(hint, len(value) if isinstance(value, tuple | list) else -1, place)
        pairs = enumerate(zip(value, kinds, strict=True))
        return [_encode(item, kind, f"{place}[{index}]") for index, (item, kind) in pairs]
    if is_dataclass(hint) and isinstance(hint, type):
        if type(value) is not hint:
            raise _misfit(value, hint.__name__, place)
        return _encode_fields(value, place)
    if isinstance(hint, type) and issubclass(hint, Enum):
        if not isinstance(value, hint):
            raise _misfit(value, hint.__name__, place)
        return value.name
    if origin is Literal:
        return _word(value, hint, place)
    if hint is _Numbers:
        shape = [int(size) for size in value.shape]
        numbers = [_encode_plain(number, float, place) for number in value.ravel().tolist()]
        return {"shape": shape, "numbers": numbers}
    return _encode_plain(value, hint, place)


def _word(value: Any, hint: Any, place: str) -> str:
    words = get_args(hint)
    if not isinstance(value, str) or value not in words:
        raise _misfit(value, f"one of {', '.join(words)}", place)
    return value


def _encode_plain(value: Any, hint: Any, place: str) -> Any:
    if hint is float:
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError):
            raise _misfit(value, "a number", place) from None
        return number if math.isfinite(number) else str(number)
    if hint is Fraction and isinstance(value, Fraction | int):
        return str(value)
    if hint is bool and isinstance(value, bool):
        return value
    if hint is int and not isinstance(value, bool) and hasattr(value, "__index__"):
        return int(value)
    if hint is str and isinstance(value, str):
        return value
    raise _misfit(value, getattr(hint, "__name__", str(hint)), place)


def _decode(value: Any, hint: Any, place: str) -> Any:
    origin = get_origin(hint)
    if origin in (Union, UnionType):
        if value is None and NoneType in get_args(hint):
            return None
        return _decode(value, _only_choice(hint, place), place)
    if origin is tuple:
        if not isinstance(value, list):
            raise _misfit(value, "a list", place)
        kinds = _item_hints(hint, len(value), place)
        pairs = enumerate(zip(value, kinds, strict=True))
        return tuple(_decode(item, kind, f"{place}[{index}]") for index, (item, kind) in pairs)
    if is_dataclass(hint) and isinstance(hint, type):
        return _decode_record(value, hint, place)
    if isinstance(hint, type) and issubclass(hint, Enum):
        if not isinstance(value, str) or value not in hint.__members__:
            raise _misfit(value, f"one of {', '.join(hint.__members__)}", place)
        return hint[value]
    if origin is Literal:
        return _word(value, hint, place)
    if hint is _Numbers:
        return _array(value, place)
    return _decode_plain(value, hint, place)


def _array(value: Any, place: str) -> Any:
    import numpy as np

    if not isinstance(value, Mapping) or set(value) != {"shape", "numbers"}:
        raise _misfit(value, "an array, with a shape and numbers", place)
    shape = _decode(value["shape"], tuple[int, ...], f"{place}.shape")
    numbers = _decode(value["numbers"], tuple[float, ...], f"{place}.numbers")
    if any(size < 0 for size in shape) or math.prod(shape) != len(numbers):
        raise _misfit(shape, f"a shape of {len(numbers)} numbers", place)
    return np.array(numbers).reshape(shape)


def _decode_plain(value: Any, hint: Any, place: str) -> Any:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if hint is float and isinstance(value, str) and value in _NOT_FINITE:
        return _NOT_FINITE[value]
    if hint is float and number:
        try:
            found = float(value)
        except OverflowError:
            found = math.inf
        if math.isfinite(found):
            return found
    if hint is Fraction and isinstance(value, str):
        try:
            return Fraction(value)
        except (ValueError, ZeroDivisionError):
            raise _misfit(value, "a fraction", place) from None
    if hint is int and number and isinstance(value, int):
        return value
    if hint in (str, bool) and type(value) is hint:
        return value
    raise _misfit(value, getattr(hint, "__name__", str(hint)), place)


def _decode_record(value: Any, record: type, place: str) -> Any:
    if not isinstance(value, Mapping):
        raise _misfit(value, f"an object ({record.__name__})", place)
    hints = _hints(record)
    for name in value:
        if name not in hints:
            raise StudyError(
                f"{record.__name__} has no field {name!r}.",
                where=place,
                hint=f"Its fields: {', '.join(hints)}.",
            )
    optional = {
        item.name
        for item in fields(record)
        if item.default is not MISSING or item.default_factory is not MISSING
    }
    for name in hints:
        if name not in value and name not in optional:
            raise StudyError(f"the field {name!r} is missing.", where=place)
    return record(
        **{name: _decode(item, hints[name], f"{place}.{name}") for name, item in value.items()}
    )


def _only_choice(hint: Any, place: str) -> Any:
    """X of ``X | None``; a record with another choice could not be read back without a tag."""
    choices = [kind for kind in get_args(hint) if kind is not NoneType]
    if len(choices) != 1:
        raise StudyError(f"the type {hint} has several choices; JSON could not say which.")
    return choices[0]


def _item_hints(hint: Any, size: int, place: str) -> tuple[Any, ...]:
    kinds = get_args(hint)
    if len(kinds) == 2 and kinds[1] is Ellipsis and size >= 0:
        return (kinds[0],) * size
    if len(kinds) != size:
        raise StudyError(f"{len(kinds)} values are needed here, not {max(size, 0)}.", where=place)
    return kinds


def _misfit(value: Any, wanted: str, place: str) -> StudyError:
    return StudyError(f"{short(repr(value))} is not {wanted}.", where=place)
