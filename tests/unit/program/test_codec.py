"""Programs in JSON files. (Round trips of random programs: tests/properties.)"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from properties.programs import atoms

from tpcalc.errors import ProgramError, StudyError
from tpcalc.program.codec import from_json, load, save, to_json
from tpcalc.program.parse import from_text

TEXT = """\
tpcalc program 2
dim n 1
family x : n[k:2] mean 0, 0.5 cov 1, 1/2; 1/2, 1
family W : n*n
%0 : n = input x 0
%1 : n*n = input W
%2 : n = matmul %1.T %0
%3 : n = scale %2 n^(-1/2) L^(a)
%4 : n = map {leaky_relu[1/5](x0)} (%3)
%5 : () = moment {x0**2} (%4)
%6 : n = sum -0.1*%5*%4 + 2*%0
output y %6
"""
PROGRAM = from_text(TEXT, atoms)


def test_files(tmp_path: Path) -> None:
    path = tmp_path / "program.json"
    save(PROGRAM, path)
    assert load(path, atoms) == PROGRAM
    assert json.loads(path.read_text()) == to_json(PROGRAM)


def test_the_json_is_the_text() -> None:
    assert to_json(PROGRAM) == {"schema": 2, "text": TEXT.splitlines()}
    assert from_json(to_json(PROGRAM), atoms) == PROGRAM


def changed(old: str, by: str) -> dict[str, Any]:
    assert TEXT.count(old) == 1
    return {"schema": 2, "text": TEXT.replace(old, by).splitlines()}


def without(key: str) -> dict[str, Any]:
    return {name: value for name, value in to_json(PROGRAM).items() if name != key}


@pytest.mark.parametrize(
    ("data", "where", "message"),
    [
        ([], "$", "is an object"),
        (None, "$", "is an object"),
        (TEXT, "$", "is an object"),
        (to_json(PROGRAM) | {"schema": 1}, "$.schema", "version 1; this release reads version 2"),
        (to_json(PROGRAM) | {"schema": "2"}, "$.schema", "schema version '2'"),
        (without("schema"), "$.schema", "schema version None"),
        (without("text"), "$.text", "a list of lines is needed"),
        (to_json(PROGRAM) | {"text": TEXT}, "$.text", "a list of lines is needed"),
        (to_json(PROGRAM) | {"text": ["tpcalc program 2", 3]}, "$.text", "a list of lines"),
        (to_json(PROGRAM) | {"text": [None]}, "$.text", "a list of lines"),
        (to_json(PROGRAM) | {"text": []}, "line 1", "an empty text is not a program"),
        (changed("dim n 1", "dim n 1.5"), "line 2", "the ratio 1.5 must be exact"),
        (changed("leaky_relu[1/5](x0)", "x1"), "line 9", "uses x1 but has 1 vector"),
        (changed("output y %6", "output y %1"), "line 12", "%1 is a matrix"),
    ],
)
def test_errors_say_where(data: Any, where: str, message: str) -> None:
    with pytest.raises(ProgramError, match=message) as caught:
        from_json(data, atoms)
    assert caught.value.where.split(" (")[0] == where


@pytest.mark.parametrize(
    ("content", "message"), [(b"{", "is not a JSON file"), (b"\xff\xfe", "is not UTF-8 text")]
)
def test_files_that_are_no_json(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "broken.json"
    path.write_bytes(content)
    with pytest.raises(StudyError, match=message) as caught:
        load(path, atoms)
    assert (caught.value.where or "").startswith(str(path))


def test_files_that_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="no such file"):
        load(tmp_path / "absent.json", atoms)
    with pytest.raises(StudyError, match="cannot be written"):
        save(PROGRAM, tmp_path / "absent" / "program.json")
