"""CSV files: what is read, and what each kind of bad file is told."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tpcalc.data import csv, queries
from tpcalc.errors import StudyError


def written(folder: Path, content: str | bytes) -> Path:
    path = folder / "data.csv"
    raw = content if isinstance(content, bytes) else content.encode()
    path.write_bytes(raw)
    return path


def test_inputs_and_one_target(tmp_path: Path) -> None:
    path = written(tmp_path, "x1,x2,y\n0.5,-1e-3,1\n2,3,-1\n")
    data = csv(path)
    assert data.inputs == ((0.5, -0.001), (2.0, 3.0))
    assert data.targets == ((1.0,), (-1.0,))
    assert data.origin == str(path)


def test_several_targets(tmp_path: Path) -> None:
    data = csv(written(tmp_path, "x1,y1,y2,y3\n1,0,0,1\n"))
    assert (data.dimension, data.outputs, data.targets) == (1, 3, ((0.0, 0.0, 1.0),))


def test_byte_order_mark_windows_lines_spaces_and_empty_lines_are_harmless(tmp_path: Path) -> None:
    path = written(tmp_path, b"\xef\xbb\xbfx1, x2 ,y\r\n\r\n 1 ,2,3\r\n,,\r\n\r\n")
    assert csv(path).inputs == ((1.0, 2.0),)


@given(
    st.lists(
        st.tuples(*[st.floats(allow_nan=False, allow_infinity=False)] * 3), min_size=1, max_size=5
    )
)
def test_every_finite_number_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[float, ...]]
) -> None:
    text = "\n".join(["x1,x2,y", *(",".join(map(repr, row)) for row in rows)])
    data = csv(written(tmp_path_factory.mktemp("csv"), text))
    assert [(*x, *y) for x, y in zip(data.inputs, data.targets, strict=True)] == rows


BAD = {
    "no header": ("0.5,1,1\n2,3,-1\n", "line 1: the header is missing"),
    "wrong name": ("x1,x3,y\n1,2,3\n", "line 1: column 2 of the header is called 'x3'"),
    "foreign first name": ("a,b,y\n1,2,3\n", "column 1 of the header is called 'a'"),
    "wrong output name": ("x1,y1,y3\n1,2,3\n", "column 3 of the header is called 'y3'"),
    "target twice": ("x1,y,y\n1,2,3\n", "column 3 of the header is called 'y'"),
    "target before input": ("y,x1\n1,2\n", "column 1 of the header is called 'y'"),
    "no target": ("x1,x2\n1,2\n", "line 1: the header has inputs and no target"),
    "semicolons": ("x1;x2;y\n1;2;3\n", "line 1: columns are not separated by commas"),
    "empty file": ("", "the file is empty"),
    "only blank lines": ("\n\n", "the file is empty"),
    "header alone": ("x1,y\n", "there is a header and no sample"),
    "short line": ("x1,x2,y\n1,2,3\n4,5\n", "line 3: this line has 2 columns, the header has 3"),
    "long line": ("x1,y\n1,2,3\n", "line 2: this line has 3 columns, the header has 2"),
    "line counted past blanks": ("x1,y\n\n\n1\n", "line 4: this line has 1 columns"),
    "word": ("x1,y\n1,2\nfive,3\n", "line 3: in column x1 'five' is not a number"),
    "digits with underscore": ("x1,y\n1_000,3\n", "line 2: in column x1 '1_000' is not a number"),
    "empty entry": ("x1,x2,y\n1,,3\n", "line 2: in column x2 the entry is empty"),
    "nan": ("x1,y\n1,nan\n", "line 2: in column y 'nan' is not finite"),
    "infinity": ("x1,y\n-inf,1\n", "line 2: in column x1 '-inf' is not finite"),
    "overflow": ("x1,y\n1e999,1\n", "line 2: in column x1 '1e999' is not finite"),
    "open quote": ('x1,y\n1,"2\n', "line 2: this is not CSV"),
    "Latin-1": (b"x1,y\n1,2\n3,4 \xe9\n", "line 3: byte 0xe9 is not UTF-8 text"),
    "UTF-16": ("x1,y\n1,2\n".encode("utf-16"), "line 1: byte 0xff is not UTF-8 text"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_file_is_named_with_line_and_reason(tmp_path: Path, name: str) -> None:
    content, message = BAD[name]
    path = written(tmp_path, content)
    with pytest.raises(StudyError) as caught:
        csv(path)
    assert message in str(caught.value)
    assert str(path) in str(caught.value.where)


def test_queries_need_no_target_and_drop_one(tmp_path: Path) -> None:
    assert queries(written(tmp_path, "x1,x2\n1,2\n3,4\n")) == ((1.0, 2.0), (3.0, 4.0))
    assert queries(written(tmp_path, "x1,x2,y\n1,2,9\n"), 2) == ((1.0, 2.0),)


def test_queries_of_another_dimension(tmp_path: Path) -> None:
    path = written(tmp_path, "x1,x2\n1,2\n")
    with pytest.raises(StudyError, match="2 input columns, the training data has 64"):
        queries(path, 64)


def test_queries_with_a_bad_header(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match=r"x1,\.\.\.,xd; targets may follow"):
        queries(written(tmp_path, "z1,z2\n1,2\n"))
