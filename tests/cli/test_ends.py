"""What ends a command: users' files that raise anything, streams that take little, bad files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tpcalc.errors import StudyError

ROOT = Path(__file__).parents[2]
Run = Callable[..., Any]

OWN = """
import numpy as np
import tpcalc as tp

class Own(BaseException):
    pass

class Silent(Exception):
    def __str__(self):
        raise Own

def deep():
    return deep()

def fail():
    {statement}

@tp.program
def program(t):
    fail()

CALLS = []
print("noise")

@tp.network
def later(t, x):
    print("noise")
    CALLS.append(1)
    if len(CALLS) > 1:
        fail()
    return t.linear(t.outputs, t.n)(tp.tanh(t.linear(t.n, "in")(x)))

def values(z):
    fail()
    return np.tanh(z)
"""


@pytest.mark.parametrize(
    "words", [("limit", "{}:program"), ("limit", "{}:later", "--steps", 0), ("sheet", "{}:values")]
)
@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("raise Own('mine')", "Own: mine"),
        ("raise Silent", "Silent: (an error without a text)"),
        ("raise GeneratorExit", "GeneratorExit"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("raise SystemExit(0)", "SystemExit: 0"),
        ("raise ValueError('x' * 1_000_000)", "ValueError:"),
        ("raise ValueError('a\\nb\\x00\\ud800')", "ValueError: a b\\x00\\ud800"),
        ("deep()", "RecursionError: maximum recursion"),
        ("open('/nowhere/at/all')", "FileNotFoundError: [Errno 2]"),
    ],
)
def test_a_user_s_file_is_told_as_theirs(
    tpcalc: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: Any, statement: str,
    told: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    Path("own.py").write_text(OWN.format(statement=statement))
    ran = tpcalc(*(str(word).format("own.py") for word in words), "--json")
    line = ran.err.replace("noise\n", "").removesuffix("\n")
    assert (ran.code, line.startswith("TPC"), len(line) <= 200) == (3, True, True)
    assert "own.py" in line and told in line and "\n" not in line
    error = ran.json["error"]
    assert line.startswith(f"{error['code']} {error['where']}:")


def test_what_a_user_s_code_prints_is_no_answer(tpcalc: Run, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(OWN.format(statement="return"))
    ran = tpcalc("limit", f"{tmp_path / 'own.py'}:later", "--steps", 0, "--json")
    assert (ran.code, set(ran.err.split())) == (0, {"noise"})
    assert ran.json["result"]["scalars"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["limit", "mlp", "--optimizer", "nowhere.opt"], "nowhere.opt: there is no such file"),
        (["limit", "mlp", "--optimizer", "bad.opt"], "bad.opt: the first line is 'w = w'"),
        (["limit", "mlp", "--data", "nowhere.csv"], "nowhere.csv: there is no such file"),
        (["limit", "nowhere.toml"], "nowhere.toml: there is no such file"),
        (["limit", "nowhere.py:net"], "nowhere.py: there is no such file"),
        (["limit", "nowhere.json"], "nowhere.json"),
        (["limit", "mlp", "--loss", "logistic", "--classes", "0,1,2"], "takes one output"),
        (["nlc", "nowhere.txt"], "nowhere.txt: there is no such file"),
        (["nlc", "nowhere.py:net"], "nowhere.py: there is no such file"),
        (["sweep", "nowhere.toml"], "nowhere.toml: there is no such file"),
        (["experiment", "nowhere.toml"], "nowhere.toml: there is no such file"),
        (["regularity", "nowhere.npy"], "nowhere.npy: there is no such file"),
        (["limit", "x" * 5000], "File name too long"),
    ],
)
def test_a_file_that_cannot_be_read_is_3(
    tpcalc: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], told: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bad.opt").write_text("w = w")
    ran = tpcalc(*words, "--json")
    assert (ran.code, len(ran.err.splitlines())) == (3, 1)
    assert told in ran.err and len(ran.err) <= 201
    assert ran.json["error"]["where"] in ran.err or len(words[-1]) > 200


def test_a_flag_that_a_section_refuses_is_2(tpcalc: Run) -> None:
    ran = tpcalc("limit", "resnet", "--param", "depth-mup", "--along", "nowhere")
    assert ran.code == 2 and "--param, --along: there is no law 'nowhere'" in ran.err


@pytest.mark.parametrize(
    ("variables", "shell", "code", "out", "err"),
    [
        pytest.param(
            {"PYTHONIOENCODING": "latin-1"}, "sheet gelu", 0, "\\u", "", marks=pytest.mark.slow
        ),
        ({"PYTHONIOENCODING": "cp1252"}, "é --json", 2, '"code": "TPC101"', "TPC101"),
        ({"PYTHONIOENCODING": "latin-1"}, "Ж --json", 2, r"'\u0416'", "TPC101"),
        ({}, "list losses >&-", 0, "", ""),
        ({}, "limt --json >&- 2>&-", 2, "", ""),
        ({}, "--help > /dev/full", 3, "", "TPC100 the output: the system refused it: No space"),
        ({}, "limt 2> /dev/full", 2, "", ""),
        ({"COLUMNS": "1"}, "--help", 0, "Usage: tpcalc", ""),
        ({"COLUMNS": "9" * 5000}, "--help", 0, "Usage: tpcalc", ""),
    ],
)
def test_streams_that_take_little(
    variables: Mapping[str, str], shell: str, code: int, out: str, err: str
) -> None:
    ran = subprocess.run(
        f'"{sys.executable}" -m tpcalc {shell}',
        shell=True,
        cwd=ROOT,
        env={**os.environ, **variables},
        capture_output=True,
    )
    printed, said = ran.stdout.decode("latin-1"), ran.stderr.decode("latin-1")
    assert (ran.returncode, "Traceback" in said) == (code, False)
    assert out in printed and said.startswith(err[:3]) and err in said
    if "--json" in shell and printed:
        assert json.loads(printed)["error"]["code"] == "TPC101"


@pytest.mark.parametrize(
    ("message", "where", "hint", "line"),
    [
        ("it is wrong.", "--act", "Do this.", "TPC100 --act: it is wrong. Do this."),
        ("two\nlines\x00.", None, None, "TPC100 two lines\\x00."),
        (f"{'x' * 90!r} is no number.", None, None, f"TPC100 '{'x' * 77}...' is no number."),
        ("a " * 200, "--act", "Do this.", f"TPC100 --act: {'a ' * 80}"),
        (
            f"there is {'x' * 300!r}.",
            f"{'folder/' * 40}s.toml: model.act",
            f"Known: {', '.join(map(str, range(40)))}.",
            "TPC100 ",
        ),
    ],
)
def test_a_text_is_one_line(message: str, where: str | None, hint: str | None, line: str) -> None:
    error = StudyError(message, where=where, hint=hint)
    assert str(error).startswith(line) and len(str(error)) <= 200
    assert (error.message, error.where, error.hint) == (message, where, hint)
    if line == "TPC100 ":
        assert "s.toml: model.act: there is 'xxx" in str(error)
        assert "Known: 0, 1, 2, " in str(error)
