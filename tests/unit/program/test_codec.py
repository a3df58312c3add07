"""Programs in JSON files. (Round trips of random programs: tests/properties.)"""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from properties.programs import atoms

from tpcalc.errors import ProgramError, StudyError, UnknownName
from tpcalc.program.codec import from_json, load, save, to_json
from tpcalc.program.parse import from_text

TEXT = """\
tpcalc program 1
dim n 1
group x on n mean 0, 0.5 cov 1, 1/2; 1/2, 1
%0 = vector x 0
%1 = matrix W n n gaussian
%2 = matmul %1.T %0
%3 = scale %2 n^(-1/2) L^(a)
%4 = nonlin {leaky_relu[1/5](x0)} (%3)
%5 = moment {x0**2} (%4)
%6 = lincomb -0.1*%5*%4 + 2*%0
output y %6
"""
PROGRAM = from_text(TEXT, atoms)


def test_files(tmp_path: Path) -> None:
    path = tmp_path / "program.json"
    save(PROGRAM, path)
    assert load(path, atoms) == PROGRAM
    assert json.loads(path.read_text())["schema"] == 1


def test_exact_numbers_are_strings_and_floats_numbers() -> None:
    data = to_json(PROGRAM)
    assert data["groups"][0]["mean"] == ["0", 0.5]
    assert data["groups"][0]["cov"] == [["1", "1/2"], ["1/2", "1"]]
    assert data["nodes"][6] == {
        "op": "lincomb",
        "numbers": [-0.1, "2"],
        "scalars": [5, None],
        "vectors": [4, 0],
    }
    assert data["nodes"][3] == {"op": "scale", "of": 2, "n_power": "-1/2", "depth_power": "a"}
    data["nodes"][6]["numbers"][1] = 2  # a whole number may stand without quotes
    assert from_json(data, atoms) == PROGRAM


def broken(*path: Any, value: Any) -> dict[str, Any]:
    data = copy.deepcopy(to_json(PROGRAM))
    inner: Any = data
    for key in path[:-1]:
        inner = inner[key]
    if value is KeyError:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    return data


@pytest.mark.parametrize(
    ("data", "where", "message"),
    [
        ([], "$", "is an object"),
        (broken("schema", value=2), "$.schema", "schema version 2; this release reads version 1"),
        (broken("schema", value=KeyError), "$.schema", "schema version None"),
        (broken("nodes", value=KeyError), "$.nodes", "a list is needed"),
        (broken("dims", 0, "ratio", value=1.5), "$.dims[0]", "must be an exact number in quotes"),
        (broken("dims", 0, "ratio", value="0"), "$.dims[0]", "the ratio 0 is not above 0"),
        (broken("dims", 0, "name", value=3), "$.dims[0]", "'name' must be a string, not 3"),
        (broken("dims", 0, value="n"), "$.dims[0]", "an object is needed"),
        (broken("groups", 0, "mean", value="00"), "$.groups[0]", "must be a list of numbers"),
        (broken("groups", 0, "mean", 0, value=None), "$.groups[0]", "must be a finite number"),
        (broken("groups", 0, "mean", 0, value=float("nan")), "$.groups[0]", "a finite number"),
        (broken("groups", 0, "cov", value=1), "$.groups[0]", "must be a list of rows, or null"),
        (broken("nodes", 0, "index", value=True), "$.nodes[0]", "must be the index of a node"),
        (broken("nodes", 0, "op", value="tensor"), "$.nodes[0]", "no node called 'tensor'"),
        (broken("nodes", 2, "vector", value=7), "$.nodes[2]", "%7 is not an earlier node"),
        (broken("nodes", 2, "vector", value=KeyError), "$.nodes[2]", "'vector' is missing"),
        (broken("nodes", 2, "transpose", value=1), "$.nodes[2]", "must be true or false"),
        (broken("nodes", 3, "n_power", value="1/a"), "$.nodes[3]", "is not a polynomial"),
        (broken("nodes", 4, "fn", value="x1"), "$.nodes[4]", "uses x1 but has 1 vector"),
        (broken("nodes", 4, "vectors", value=[0.5]), "$.nodes[4]", "a list of indices of nodes"),
        (broken("nodes", 6, "scalars", value="ab"), "$.nodes[6]", "indices of nodes and nulls"),
        (broken("outputs", 0, "node", value=1), "$.outputs[0]", "%1 is a matrix"),
    ],
)
def test_errors_say_where(data: Any, where: str, message: str) -> None:
    with pytest.raises(ProgramError, match=message) as caught:
        from_json(data, atoms)
    assert caught.value.where is not None
    assert caught.value.where.split(" (")[0] == where


def test_unknown_functions_say_where() -> None:
    with pytest.raises(UnknownName, match=r"\$\.nodes\[4\]: .*'rellu'.*Did you mean 'relu'"):
        from_json(broken("nodes", 4, "fn", value="rellu(x0)"), atoms)


@pytest.mark.parametrize(
    ("content", "message"), [(b"{", "is not a JSON file"), (b"\xff\xfe", "is not a JSON file")]
)
def test_files_that_are_no_json(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "broken.json"
    path.write_bytes(content)
    with pytest.raises(StudyError, match=message) as caught:
        load(path, atoms)
    assert caught.value.where == str(path)


def test_files_that_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="cannot be read"):
        load(tmp_path / "absent.json", atoms)
    with pytest.raises(StudyError, match="cannot be written"):
        save(PROGRAM, tmp_path / "absent" / "program.json")
