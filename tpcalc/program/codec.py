"""Programs as JSON, with a schema version.

Exact numbers are strings (``"1/2"``), floats are JSON numbers; functions and exponents are the text
that ``functions.parse`` and ``orders.parse`` read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import cache
from numbers import Rational
from pathlib import Path
from typing import Any

from tpcalc.errors import ProgramError, ScaleError, StudyError, TpcalcError
from tpcalc.functions import Fn
from tpcalc.functions.numbers import Number, as_number, is_finite, number_text
from tpcalc.functions.parse import AtomOf, parse_fn, parse_number
from tpcalc.orders import Ex, parse_ex
from tpcalc.program.check import Checker
from tpcalc.program.nodes import (
    Dim,
    Group,
    InputMatrix,
    InputScalar,
    InputVector,
    LinComb,
    MatMul,
    Moment,
    Node,
    Nonlin,
    OuterNonlin,
    Ref,
    ScalarFn,
    Scale,
)
from tpcalc.program.program import Program
from tpcalc.program.rules import Rules, interpret
from tpcalc.program.text import FunctionNames

__all__ = ["JSON_RULES", "SCHEMA", "from_json", "load", "save", "to_json"]

SCHEMA = 1

Record = dict[str, Any]


def to_json(program: Program) -> Record:
    """A program as plain dictionaries and lists, for ``json.dumps``.

    Raises:
        ProgramError: Two different functions have one name, so it could not be read back.

    Example:
        >>> from tpcalc.program.program import Builder
        >>> to_json(Builder().finish())["dims"]
        [{'name': 'n', 'ratio': '1'}]
    """
    return {
        "schema": SCHEMA,
        "dims": [{"name": dim.name, "ratio": number_text(dim.ratio)} for dim in program.dims],
        "groups": [_group(group) for group in program.groups],
        "nodes": interpret(program, JSON_RULES, FunctionNames()),
        "outputs": [{"name": name, "node": ref} for name, ref in program.outputs],
    }


def from_json(data: Any, atoms: AtomOf) -> Program:
    """The program that ``to_json`` wrote; ``from_json(to_json(p), atoms) == p``.

    Args:
        data: What ``json.loads`` gives.
        atoms: ``atoms(name, params)``: the named function; raises ``UnknownName``.

    Raises:
        ProgramError: Another schema version, a field that is missing or has the wrong form, or an
            ill-typed program; the message says where.
        TpcalcError: From ``atoms`` (``UnknownName``, say), with the place.
    """
    if not isinstance(data, Mapping):
        raise ProgramError("the JSON of a program is an object.", where="$")
    if data.get("schema") != SCHEMA:
        raise ProgramError(
            f"the program has schema version {data.get('schema')!r}; this release reads version "
            f"{SCHEMA}.",
            where="$.schema",
            hint="tp.load reads what tp.save wrote; for another version take the release of tpcalc "
            "that wrote it.",
        )
    checker, nodes = Checker(), _NodeReader(atoms)
    read: list[Node] = []

    def take_node(fields: _Fields) -> None:
        node = nodes.read(fields)
        checker.node(node, f"%{len(read)}")
        read.append(node)

    for part, take in (
        ("dims", lambda fields: checker.dim(Dim(fields.text("name"), fields.exact("ratio")))),
        ("groups", lambda fields: checker.group(_read_group(fields))),
        ("nodes", take_node),
        ("outputs", lambda fields: checker.output(fields.text("name"), fields.ref("node"))),
    ):
        items = data.get(part)
        if not isinstance(items, list):
            raise ProgramError("a list is needed here.", where=f"$.{part}")
        for index, item in enumerate(items):
            _at(f"$.{part}[{index}]", item, take)
    program = Program(
        tuple(checker.dims.values()),
        tuple(checker.groups.values()),
        tuple(read),
        tuple(checker.outputs.items()),
    )
    program.__dict__["types"] = tuple(checker.types)  # checked part by part
    return program


def save(program: Program, path: str | Path) -> None:
    """Write a program to a JSON file.

    Raises:
        StudyError: The file cannot be written.
    """
    text = json.dumps(to_json(program), indent=1, allow_nan=False) + "\n"
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise StudyError(f"cannot be written: {error.strerror}.", where=str(path)) from None


def load(path: str | Path, atoms: AtomOf) -> Program:
    """Read a program from a JSON file.

    Raises:
        StudyError: The file cannot be read or is not JSON.
        ProgramError: Its content is not a program.
    """
    try:
        data = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise StudyError(f"cannot be read: {error.strerror}.", where=str(path)) from None
    except (ValueError, RecursionError) as error:  # not UTF-8, or not JSON
        raise StudyError(
            f"is not a JSON file: {error}.",
            where=str(path),
            hint="tp.load reads what tp.save wrote; the text of a program is read by tp.parse.",
        ) from None
    return from_json(data, atoms)


def _number(value: Number) -> str | float:
    return number_text(value) if isinstance(value, Rational) else float(value)


def _group(group: Group) -> Record:
    cov = None if group.cov is None else [[_number(value) for value in row] for row in group.cov]
    mean = [_number(value) for value in group.mean]
    return {"name": group.name, "dim": group.dim, "mean": mean, "cov": cov}


def _input_vector(
    node: InputVector, ref: Ref, values: list[Record], names: FunctionNames
) -> Record:
    return {"op": "vector", "group": node.group, "index": node.index}


def _input_matrix(
    node: InputMatrix, ref: Ref, values: list[Record], names: FunctionNames
) -> Record:
    shape = {"rows": node.rows, "cols": node.cols}
    return {"op": "matrix", "name": node.name, **shape, "law": node.law}


def _input_scalar(
    node: InputScalar, ref: Ref, values: list[Record], names: FunctionNames
) -> Record:
    numbers = {"value": _number(node.value), "std": _number(node.std)}
    return {"op": "scalar", "name": node.name, **numbers}


def _matmul(node: MatMul, ref: Ref, values: list[Record], names: FunctionNames) -> Record:
    refs = {"matrix": node.matrix, "vector": node.vector}
    return {"op": "matmul", **refs, "transpose": node.transpose}


def _nonlin(node: Nonlin, ref: Ref, values: list[Record], names: FunctionNames) -> Record:
    return {"op": "nonlin", **_applied(node, names)}


def _moment(node: Moment, ref: Ref, values: list[Record], names: FunctionNames) -> Record:
    return {"op": "moment", **_applied(node, names)}


def _applied(node: Nonlin | Moment, names: FunctionNames) -> Record:
    refs = {"vectors": list(node.vectors), "scalars": list(node.scalars)}
    return {"fn": names.text(node.fn), **refs}


def _lincomb(node: LinComb, ref: Ref, values: list[Record], names: FunctionNames) -> Record:
    refs = {"scalars": list(node.scalars), "vectors": list(node.vectors)}
    return {"op": "lincomb", "numbers": [_number(value) for value in node.numbers], **refs}


def _outer(node: OuterNonlin, ref: Ref, values: list[Record], names: FunctionNames) -> Record:
    refs = {"rows": list(node.rows), "cols": list(node.cols), "scalars": list(node.scalars)}
    return {"op": "outer", "fn": names.text(node.fn), **refs, "vector": node.vector}


def _scalar_fn(node: ScalarFn, ref: Ref, values: list[Record], names: FunctionNames) -> Record:
    return {"op": "scalarfn", "fn": names.text(node.fn), "scalars": list(node.scalars)}


def _scale(node: Scale, ref: Ref, values: list[Record], names: FunctionNames) -> Record:
    powers = {"n_power": str(node.n_power), "depth_power": str(node.depth_power)}
    return {"op": "scale", "of": node.of, **powers}


JSON_RULES: Rules[Record, FunctionNames] = Rules(
    "json",
    {
        InputVector: _input_vector,
        InputMatrix: _input_matrix,
        InputScalar: _input_scalar,
        MatMul: _matmul,
        Nonlin: _nonlin,
        LinComb: _lincomb,
        Moment: _moment,
        OuterNonlin: _outer,
        ScalarFn: _scalar_fn,
        Scale: _scale,
    },
)


def _at(place: str, item: Any, take: Callable[[_Fields], None]) -> None:
    """Read one item; errors say where in the document it stands."""
    try:
        take(_Fields(item))
    except (ProgramError, ScaleError) as error:
        where = place + (f" ({error.where})" if error.where else "")
        raise ProgramError(error.message, where=where, hint=error.hint) from None
    except TpcalcError as error:  # from the catalogue of functions
        error.where = error.where or place
        raise


class _Fields:
    """The fields of one JSON object, each checked as it is taken."""

    def __init__(self, item: Any) -> None:
        if not isinstance(item, Mapping):
            raise ProgramError("an object is needed here.")
        self._item = item

    def _take(self, name: str) -> Any:
        if name not in self._item:
            raise ProgramError(f"the field {name!r} is missing.")
        return self._item[name]

    def _wrong(self, name: str, wanted: str) -> ProgramError:
        return ProgramError(f"the field {name!r} must be {wanted}, not {self._item[name]!r:.60}.")

    def text(self, name: str) -> str:
        value = self._take(name)
        if not isinstance(value, str):
            raise self._wrong(name, "a string")
        return value

    def flag(self, name: str) -> bool:
        value = self._take(name)
        if not isinstance(value, bool):
            raise self._wrong(name, "true or false")
        return value

    def ref(self, name: str) -> Ref:
        value = self._take(name)
        if not _is_ref(value):
            raise self._wrong(name, "the index of a node")
        return int(value)

    def refs(self, name: str) -> tuple[Ref, ...]:
        value = self._take(name)
        if not isinstance(value, list) or not all(_is_ref(item) for item in value):
            raise self._wrong(name, "a list of indices of nodes")
        return tuple(value)

    def optional_refs(self, name: str) -> tuple[Ref | None, ...]:
        value = self._take(name)
        if not isinstance(value, list) or not all(item is None or _is_ref(item) for item in value):
            raise self._wrong(name, "a list of indices of nodes and nulls")
        return tuple(value)

    def number(self, name: str) -> Number:
        return self._as_number(name, self._take(name))

    def exact(self, name: str) -> Fraction:
        value = self.number(name)
        if not isinstance(value, Fraction):
            raise self._wrong(name, 'an exact number in quotes, such as "1/2"')
        return value

    def numbers(self, name: str) -> tuple[Number, ...]:
        return self._row(name, self._take(name))

    def table(self, name: str) -> tuple[tuple[Number, ...], ...] | None:
        value = self._take(name)
        if value is None:
            return None
        if not isinstance(value, list):
            raise self._wrong(name, "a list of rows, or null")
        return tuple(self._row(name, row) for row in value)

    def _row(self, name: str, row: Any) -> tuple[Number, ...]:
        if not isinstance(row, Sequence) or isinstance(row, str):
            raise self._wrong(name, "a list of numbers")
        return tuple(self._as_number(name, value) for value in row)

    def _as_number(self, name: str, value: Any) -> Number:
        if isinstance(value, str):
            return parse_number(value)
        if isinstance(value, bool) or not is_finite(value):
            raise self._wrong(name, "a finite number")
        return as_number(value)


def _is_ref(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _read_group(fields: _Fields) -> Group:
    return Group(
        fields.text("name"), fields.text("dim"), fields.numbers("mean"), fields.table("cov")
    )


class _NodeReader:
    """Reads nodes; a function or exponent that repeats is parsed once."""

    def __init__(self, atoms: AtomOf) -> None:
        self._fn: Callable[[str, int, int], Fn] = cache(
            lambda text, vectors, scalars: parse_fn(text, vectors, scalars, atoms)
        )
        self._ex: Callable[[str], Ex] = cache(parse_ex)
        self._readers: dict[str, Callable[[_Fields], Node]] = {
            "vector": lambda f: InputVector(f.text("group"), f.ref("index")),
            "matrix": lambda f: InputMatrix(
                f.text("name"), f.text("rows"), f.text("cols"), f.text("law")
            ),
            "scalar": lambda f: InputScalar(f.text("name"), f.number("value"), f.number("std")),
            "matmul": lambda f: MatMul(f.ref("matrix"), f.ref("vector"), f.flag("transpose")),
            "nonlin": lambda f: Nonlin(*self._applied(f)),
            "moment": lambda f: Moment(*self._applied(f)),
            "lincomb": lambda f: LinComb(
                f.numbers("numbers"), f.optional_refs("scalars"), f.refs("vectors")
            ),
            "outer": self._outer,
            "scalarfn": self._scalar_fn,
            "scale": lambda f: Scale(
                f.ref("of"), self._ex(f.text("n_power")), self._ex(f.text("depth_power"))
            ),
        }

    def read(self, fields: _Fields) -> Node:
        op = fields.text("op")
        if op not in self._readers:
            raise ProgramError(
                f"there is no node called {op!r}.", hint=f"Known: {', '.join(self._readers)}."
            )
        return self._readers[op](fields)

    def _applied(self, fields: _Fields) -> tuple[Fn, tuple[Ref, ...], tuple[Ref, ...]]:
        vectors, scalars = fields.refs("vectors"), fields.refs("scalars")
        return self._fn(fields.text("fn"), len(vectors), len(scalars)), vectors, scalars

    def _outer(self, fields: _Fields) -> Node:
        rows, cols, scalars = fields.refs("rows"), fields.refs("cols"), fields.refs("scalars")
        fn = self._fn(fields.text("fn"), len(rows) + len(cols), len(scalars))
        return OuterNonlin(fn, rows, cols, scalars, fields.ref("vector"))

    def _scalar_fn(self, fields: _Fields) -> Node:
        scalars = fields.refs("scalars")
        return ScalarFn(self._fn(fields.text("fn"), 0, len(scalars)), scalars)
