"""Every result record goes to JSON and back unchanged; anything else is refused with its place."""

from __future__ import annotations

import copy
import json
import math
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from fractions import Fraction
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tpcalc import results
from tpcalc.errors import StudyError, UnknownName
from tpcalc.results import (
    Comparison,
    ComparisonRow,
    Estimate,
    Exponent,
    FiniteRow,
    FiniteTable,
    Formula,
    LimitTable,
    Method,
    PhaseCell,
    Provenance,
    Samples,
    ScalarRow,
    SlopeRow,
    Status,
    VectorRow,
)
from tpcalc.results.codec import from_json, load, save, to_json
from tpcalc.results.practice import Thresholds

RECORDS = [
    value
    for value in vars(results).values()
    if isinstance(value, type)
    and is_dataclass(value)
    # These hold arrays; those of the depth have a test of their own.
    and value
    not in (
        results.Kernel,
        results.EmpiricalKernel,
        results.Prediction,
        results.DepthArray,
        results.DepthTable,
        results.Exponent,
    )
]


def values(hint: Any) -> st.SearchStrategy[Any]:
    """Random values of a field's type."""
    origin, inside = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return st.one_of([values(kind) for kind in inside])
    if origin is tuple and len(inside) == 2 and inside[1] is Ellipsis:
        return st.lists(values(inside[0]), max_size=2).map(tuple)
    if origin is tuple:
        return st.tuples(*(values(kind) for kind in inside))
    if origin is dict:  # what is not finite is None there
        finite = st.floats(allow_nan=False, allow_infinity=False)
        plain = st.one_of(st.none(), st.booleans(), st.integers(), finite, st.text(max_size=5))
        return st.dictionaries(values(inside[0]), plain, max_size=3)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return st.sampled_from(hint)
    if origin is Literal:
        return st.sampled_from(inside)
    if is_dataclass(hint):
        return records(hint)
    return {
        NoneType: st.none(),
        float: st.floats(allow_nan=False),  # nan is not equal to itself: see the test below
        int: st.integers(),
        str: st.text(max_size=5),
        bool: st.booleans(),
        Fraction: st.fractions(),
    }[hint]


def records(kind: Any) -> st.SearchStrategy[Any]:
    if kind is Samples:  # its rows must be finite and of one length
        row = st.tuples(st.floats(-1e300, 1e300), st.floats(-1, 1))
        rows = st.lists(row, min_size=2, max_size=2).map(tuple)
        return st.builds(Samples, rows, rows, st.text(max_size=5))
    if kind is Exponent:
        number = st.fractions(max_denominator=9).map(Exponent.number)
        return st.one_of(number, st.sampled_from(["", "oo", "-oo", "1/2 - 3*a"]).map(Exponent.of))
    if kind is Thresholds:  # limits are in order
        up = st.tuples(st.floats(2, 5), st.floats(5, 9))
        names = [item.name for item in fields(kind) if item.name not in ("linear", "bend")]
        return st.builds(kind, **dict.fromkeys(names, up), bend=up.map(lambda own: own[::-1]))
    hints = get_type_hints(kind)
    return st.builds(kind, **{item.name: values(hints[item.name]) for item in fields(kind)})


def depth(hint: Any) -> int:
    """How many records lie within each other in a type."""
    own = [depth(inner) for inner in get_args(hint)]
    if isinstance(hint, type) and is_dataclass(hint):
        own += [1 + depth(inner) for inner in get_type_hints(hint).values()]
    return max(own, default=0)


@pytest.mark.parametrize("kind", RECORDS, ids=lambda kind: kind.__name__)
def test_every_record_reads_back(kind: type) -> None:
    """Large records with fewer examples: each holds many of those that have their own."""

    @settings(max_examples=20 if depth(kind) < 3 else 6)
    @given(records(kind))
    def check(record: Any) -> None:
        data = json.loads(json.dumps(to_json(record), allow_nan=False))
        assert (data["schema"], data["type"]) == (1, kind.__name__)
        assert from_json(data) == record

    check()


@pytest.mark.parametrize("shape", [(2, 1, 3), (0, 2), ()])
def test_arrays_along_the_depth_read_back(shape: tuple[int, ...]) -> None:
    values = np.random.default_rng(3).normal(size=shape)
    if values.size > 1:
        values.flat[1] = math.inf
    array = results.DepthArray(
        "features", "oo", ("p",), (0.0,), values, abs(values), Method.EXACT, ""
    )
    value = results.DepthValue("f[0,0]", "oo", VALUE, "a route")
    table = results.DepthTable(
        (value,), (results.DepthGap("3", "why", "f[0,0]"),), PROVENANCE, ("a note",), (array,)
    )
    data = json.loads(json.dumps(to_json(table), allow_nan=False))
    back = from_json(data)
    assert (back.rows, back.lacking, back.provenance, back.notes) == (
        (table.rows, table.lacking, table.provenance, table.notes)
    )
    (found,) = back.arrays
    assert (found.axes, found.places, found.method) == (array.axes, array.places, array.method)
    np.testing.assert_array_equal(found.values, values)
    np.testing.assert_array_equal(found.errors, array.errors)
    data["arrays"][0]["values"]["shape"] = [7]
    with pytest.raises(StudyError, match="shape of"):
        from_json(data)


PROVENANCE = Provenance("0.1.0", "ab" * 32, 7, (("samples", "1024"),), (("numpy", "2.4"),), 1.5)
VALUE = Estimate(0.5, 0.01, Method.PARTICLES, Status.CONVERGED, 1024, 8, 7, draws=(0.4, 0.6))
TABLE = LimitTable(
    (ScalarRow("f[0,0]", VALUE, Exponent.of("0"), Formula("s", "s", "<mi>s</mi>")),),
    (VectorRow("h[1,0,0]", VALUE, VALUE, Exponent.of("-1/2")),),
    PROVENANCE,
    ("a note",),
)
COMPARISON = Comparison(
    (ComparisonRow("f[0,0]", "value", 0.5, 0.01, 64, 0.6, 0.0, 4, math.inf, None, 0.2),),
    (SlopeRow("f[0,0]", "value", None, None, None, "one width"),),
    PROVENANCE,
)


def test_the_form_of_a_table() -> None:
    data = to_json(TABLE)
    assert data["scalars"][0]["estimate"]["method"] == "PARTICLES"
    assert data["scalars"][0]["formula"] == {
        "text": "s",
        "latex": "s",
        "mathml": "<mi>s</mi>",
        "html": "",
    }
    assert data["vectors"][0]["formula"] is None
    assert data["provenance"]["settings"] == [["samples", "1024"]]
    assert from_json(data) == TABLE


def test_numbers_that_are_not_finite() -> None:
    data = to_json(COMPARISON)
    assert data["rows"][0]["z"] == "inf"
    assert from_json(json.loads(json.dumps(data, allow_nan=False))) == COMPARISON
    lost = Estimate(math.nan, -math.inf, Method.FINITE)
    data = to_json(lost)
    assert (data["value"], data["stderr"]) == ("nan", "-inf")
    back = from_json(data)
    assert math.isnan(back.value) and back.stderr == -math.inf


def test_numpy_numbers_become_plain() -> None:
    row = FiniteRow("f", "value", np.int64(64), (np.float64(0.5), np.float32(0.25)))
    data = json.loads(json.dumps(to_json(FiniteTable((row,), (64,), 2, "lazy", PROVENANCE))))
    assert data["rows"][0]["width"] == 64 and data["rows"][0]["values"] == [0.5, 0.25]


def test_files(tmp_path: Path) -> None:
    path = tmp_path / "limit.json"
    save(TABLE, path)
    assert load(path) == TABLE
    with pytest.raises(StudyError, match="cannot be written"):
        save(TABLE, tmp_path / "absent" / "limit.json")
    with pytest.raises(StudyError, match="no such file"):
        load(tmp_path / "absent.json")
    for content in (b"{", b"\xff\xfe"):
        path.write_bytes(content)
        with pytest.raises(StudyError, match=r"is not (a JSON file|UTF-8)"):
            load(path)


def test_old_files_may_lack_what_has_a_default() -> None:
    data = to_json(TABLE)
    del data["notes"], data["scalars"][0]["n_power"]
    assert from_json(data).notes == ()


def broken(*path: Any, value: Any) -> dict[str, Any]:
    data = copy.deepcopy(to_json(TABLE))
    inner: Any = data
    for key in path[:-1]:
        inner = inner[key]
    if value is KeyError:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    return data


def place(path: tuple[Any, ...]) -> str:
    return "LimitTable" + "".join(f"[{k}]" if isinstance(k, int) else f".{k}" for k in path)


NUMBER = "input should be a valid number"
FIRST = ("scalars", 0, "estimate")


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("notes",), "abc", "'abc' does not fit: input should be a valid tuple"),
        (("notes", 0), 3, "3 does not fit: input should be a valid string"),
        (("provenance",), KeyError, "LimitTable .* field required"),
        (("provenance",), None, "None does not fit"),
        (("colour",), 1, "unexpected keyword"),
        ((*FIRST, "value"), "0.5", f"'0.5' does not fit: {NUMBER}"),
        ((*FIRST, "value"), True, f"True does not fit: {NUMBER}"),
        ((*FIRST, "value"), 10**400, NUMBER),
        ((*FIRST, "samples"), 1.5, "1.5 does not fit: input should be a valid integer"),
        (
            (*FIRST, "method"),
            "GUESS",
            "'GUESS' does not fit: .* 'EXACT', 'QUADRATURE', 'PARTICLES' or 'FINITE'",
        ),
    ],
)
def test_errors_say_where(path: tuple[Any, ...], value: Any, message: str) -> None:
    assert_told(broken(*path, value=value), place(path), message)


def assert_told(data: Any, where: str, message: str) -> None:
    with pytest.raises(StudyError, match=message) as caught:
        from_json(data)
    assert caught.value.where == where
    assert "\n" not in str(caught.value)


def test_errors_of_the_whole_and_of_pairs() -> None:
    for data in ([], {"type": "LimitTable"}):
        assert_told(data, "$", "no schema version")
    told = "schema version 2; this release reads version 1"
    assert_told(broken("schema", value=2), "$.schema", told)
    cut = broken("provenance", "settings", 0, value=["a"])
    assert_told(cut, "LimitTable.provenance.settings[0][1]", "field required")


def test_unknown_records() -> None:
    with pytest.raises(UnknownName, match=r"'LimitTabel'.*Did you mean 'LimitTable'"):
        from_json(broken("type", value="LimitTabel"))
    with pytest.raises(UnknownName):
        from_json({"schema": 1})

    @dataclass(frozen=True)
    class Formula:
        """Not the one of the package."""

        text: str

    for stranger in (Formula("x"), 3, None):
        with pytest.raises(StudyError, match="is not a result record"):
            to_json(stranger)


@pytest.mark.parametrize(
    ("record", "where"),
    [
        (Formula(3), "Formula.text"),  # type: ignore[arg-type]
        (Estimate("a", 0.0, Method.EXACT), "Estimate.value"),  # type: ignore[arg-type]
        (PhaseCell(0, "", (), (("0", "x"),), (), ""), "PhaseCell.vertices[0][1]"),  # type: ignore
        (Estimate(0.0, 0.0, "exact"), "Estimate.method"),  # type: ignore[arg-type]
        (ScalarRow("f", 0.5), "ScalarRow.estimate"),  # type: ignore[arg-type]
        (Estimate(0.0, 0.0, Method.EXACT, draws=0.5), "Estimate.draws"),  # type: ignore[arg-type]
        (Estimate(0.0, 0.0, Method.EXACT, samples=True), "Estimate.samples"),
    ],
)
def test_records_that_hold_what_their_types_forbid(record: Any, where: str) -> None:
    with pytest.raises(StudyError) as caught:
        to_json(record)
    assert caught.value.where == where
