"""Result records as JSON, with a schema version.

One codec serves every record: pydantic reads the types of the fields of the frozen dataclasses.
JSON has no number for what is not finite: ``nan``, ``inf`` and ``-inf`` are written as strings, and
read back only where the record has a float. Members of an enumeration are written by name.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tpcalc import results
from tpcalc.doors import files
from tpcalc.doors.write import put
from tpcalc.errors import StudyError, UnknownName, short

SCHEMA = 1
OTHER_RELEASE = "Read it with the release of tpcalc that wrote it, or compute it again."

# Matrices are kept as numpy writes them: ``Kernel.save``.
_IN_THEIR_OWN_FILES = ("Kernel",)
_NO_RESULTS = (*_IN_THEIR_OWN_FILES, "Exponent")  # which stands in records, as it is printed
_NOT_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


def to_json(record: Any) -> dict[str, Any]:
    """A result record as plain dictionaries and lists, for ``json.dumps``.

    Example:
        >>> from tpcalc.results import Formula
        >>> to_json(Formula("x**2"))
        {'schema': 1, 'type': 'Formula', 'text': 'x**2', 'latex': '', 'mathml': '', 'html': ''}
    """
    name = type(record).__name__
    if not is_record(record):
        raise StudyError(
            f"a {name} is not a result record, so it has no JSON.",
            hint="Write it with its method save." if name in _IN_THEIR_OWN_FILES else None,
        )
    content = _codec(name).written(record)
    _codec(name).read(content)  # what a field's type forbids is found before it lies in a file
    return {"schema": SCHEMA, "type": name, **content}


def is_record(record: Any) -> bool:
    """Whether an answer is a record that has a JSON of its own."""
    return _record_types().get(type(record).__name__) is type(record)


def from_json(data: Any) -> Any:
    """The record that ``to_json`` wrote."""
    if not isinstance(data, Mapping) or "schema" not in data:
        raise StudyError("this JSON is no tpcalc result: it has no schema version.", where="$")
    if data["schema"] != SCHEMA:
        raise StudyError(
            f"the result has schema version {data['schema']!r}; this release reads version "
            f"{SCHEMA}.",
            where="$.schema",
            hint=OTHER_RELEASE,
        )
    name = data.get("type")
    if not isinstance(name, str) or name not in _record_types():
        raise UnknownName("type of result", str(name), _record_types(), where="$.type")
    content = {key: value for key, value in data.items() if key not in ("schema", "type")}
    return _codec(name).read(content)


def save(record: Any, path: str | Path) -> None:
    """Write a result record to a JSON file.

    Raises:
        StudyError: The file cannot be written.
    """
    text = json.dumps(to_json(record), indent=1, allow_nan=False) + "\n"
    put(Path(path), text, "result")


def load(path: str | Path) -> Any:
    """Read a result record from a JSON file.

    Raises:
        StudyError: The file cannot be read, is not JSON, or holds no result of this version.
    """
    return from_json(files.from_json(files.text(Path(path), "result"), str(path)))


@cache
def _record_types() -> dict[str, type]:
    """The records that ``tpcalc.results`` exports, by name."""
    return {
        name: value
        for name, value in vars(results).items()
        if isinstance(value, type) and is_dataclass(value) and name not in _NO_RESULTS
    }


class _Codec:
    """One kind of record, written to plain values and read from them."""

    def __init__(self, kind: type) -> None:
        from pydantic import ConfigDict, TypeAdapter
        from pydantic_core import SchemaSerializer, SchemaValidator

        # A list, because a dataclass takes no settings from outside, but those of what holds it.
        settings = ConfigDict(extra="forbid", defer_build=True)
        adapter = TypeAdapter(list[kind], config=settings)  # type: ignore[valid-type]
        adapter.rebuild(_types_namespace={"NDArray": _Array})
        schema = _in_json(adapter.core_schema)
        self._name = kind.__name__
        self._reader, self._writer = SchemaValidator(schema), SchemaSerializer(schema)

    def written(self, record: Any) -> dict[str, Any]:
        """The fields of a record."""
        (fields,) = self._writer.to_python([record], mode="json", warnings=False, fallback=_refused)
        return dict(fields)

    def read(self, fields: dict[str, Any]) -> Any:
        """The record with these fields."""
        from pydantic_core import ValidationError

        try:
            (record,) = self._reader.validate_python([fields])
        except ValidationError as errors:
            wrong = errors.errors(include_url=False)[0]
            parts = (f"[{at}]" if isinstance(at, int) else f".{at}" for at in wrong["loc"][1:])
            absent = wrong["type"] in ("missing", "unexpected_keyword_argument")
            given = f"this {self._name}" if absent else short(repr(wrong["input"]))
            why = wrong["msg"].removeprefix("Value error, ")
            raise StudyError(
                f"{given} does not fit: {why[0].lower()}{why[1:]}.",
                where=self._name + "".join(parts),
                hint=OTHER_RELEASE,
            ) from None
        return record


@cache
def _codec(name: str) -> _Codec:
    return _Codec(_record_types()[name])


@dataclass
class _Stored:
    """An array as JSON has it."""

    shape: tuple[int, ...]
    numbers: tuple[float, ...]


class _Array:
    """Stands for ``NDArray`` in the types of fields: numpy is not loaded to read them."""

    def __class_getitem__(cls, kind: object) -> type[_Array]:
        return cls

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        def made(stored: _Stored) -> Any:
            import numpy as np

            shape, size = stored.shape, len(stored.numbers)
            if min(shape, default=0) < 0 or math.prod(shape) != size:
                raise ValueError(f"{shape} is no shape of {size} numbers")
            return np.array(stored.numbers).reshape(shape)

        def stored(array: Any) -> dict[str, Any]:
            numbers = [_number_written(number) for number in array.ravel().tolist()]
            return {"shape": list(array.shape), "numbers": numbers}

        return _kept(handler(_Stored), made, stored)


def _in_json(schema: Any) -> Any:
    """A schema of pydantic with numbers and members as they stand in JSON, nothing coerced."""
    from pydantic_core import core_schema

    if isinstance(schema, list):
        return [_in_json(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    match schema.get("type"):
        case "float":
            number = core_schema.float_schema(strict=True)
            read = core_schema.no_info_before_validator_function(_number_read, number)
            return _kept(read, float, _number_written)
        case "int":
            return _kept(core_schema.int_schema(strict=True), int, _plain)
        case "bool":
            return core_schema.bool_schema(strict=True)
        case "dataclass" if schema["cls"] is results.Exponent:
            exponent = _kept(core_schema.str_schema(strict=True), results.Exponent.of, str)
            return {**exponent, "ref": schema["ref"]}
        case "enum":
            names = core_schema.literal_schema(list(schema["cls"].__members__))
            member = _kept(names, schema["cls"].__getitem__, lambda each: each.name)
            return {**member, "ref": schema["ref"]}
    return {key: _in_json(value) for key, value in schema.items()}


def _kept(schema: Any, read: Callable[[Any], Any], write: Callable[[Any], Any]) -> Any:
    from pydantic_core import core_schema

    def written(value: Any) -> Any:
        try:
            return write(value)
        except (AttributeError, OverflowError, TypeError, ValueError):
            return value  # that it is of another type is found where it is read

    return core_schema.no_info_after_validator_function(
        read,
        schema,
        serialization=core_schema.plain_serializer_function_ser_schema(written),
    )


def _number_read(value: Any) -> Any:
    return _NOT_FINITE.get(value, value) if isinstance(value, str) else value


def _number_written(value: Any) -> float | str:
    number = float(value)
    return number if math.isfinite(number) else str(number)


def _plain(value: Any) -> Any:
    """A number of numpy as one of Python."""
    return value.item() if hasattr(value, "item") else value


def _refused(value: Any) -> Any:
    raise StudyError(f"{short(repr(value))} has no JSON.")
