"""MODEL: study files, programs in files, catalogue words; and what users' files may do."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import tpcalc as tp
from tpcalc.errors import StudyError, TpcalcError, UnknownName, UsageError
from tpcalc.study import Flag, load_named, open_model
from tpcalc.study.program_file import catalogue, split_model

PROGRAMS = """
import tpcalc as tp
import beside

print("noise")

@tp.program
def there(t):
    v = t.gaussian("v")
    t.output("size", tp.mean(v * v))

built = there.build()
number = beside.VALUE
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "beside.py").write_text("VALUE = 3\n")
    path = tmp_path / "mine.py"
    path.write_text(PROGRAMS)
    return path


def failing(folder: Path, text: str, name: str = "p") -> str:
    path = folder / "bad.py"
    path.write_text(text)
    with pytest.raises(TpcalcError) as caught:
        load_named(path, name)
    assert caught.value.exit_code == 3
    return str(caught.value)


def test_split_model() -> None:
    assert split_model("a/b.py:c") == ("a/b.py", "c")
    assert split_model("C:\\nets\\b.py:c") == ("C:\\nets\\b.py", "c")
    assert split_model("b.py") == ("b.py", None)
    assert split_model("study.toml") is None


def test_decorated_functions_and_programs_are_programs(file: Path) -> None:
    assert load_named(file, "there") == ("there", load_named(file, "built")[1])
    assert [name for name, _ in load_named(file, "there")[1].outputs] == ["size"]


def test_the_import_path_is_left_as_it_was(file: Path) -> None:
    before = list(sys.path)
    load_named(file, "there")
    assert sys.path == before


def test_a_misspelt_name_gets_the_nearest(file: Path) -> None:
    with pytest.raises(
        UnknownName, match=r"no program or network called 'thre'\. Did you mean 'there'"
    ):
        load_named(file, "thre")


def test_something_else_than_a_program(file: Path) -> None:
    with pytest.raises(StudyError, match=r"number is a value of type int.*there, built"):
        load_named(file, "number")


def test_without_a_name(file: Path, tmp_path: Path) -> None:
    with pytest.raises(
        StudyError, match=r"several programs or networks. Say which: .*mine.py:there"
    ):
        load_named(file)
    one = tmp_path / "one.py"
    one.write_text(PROGRAMS.replace("built = there.build()", ""))
    assert load_named(one)[0] == "there"
    none = tmp_path / "none.py"
    none.write_text("x = 1\n")
    with pytest.raises(StudyError, match="the file has no program"):
        load_named(none)


def test_errors_in_the_file_are_told_with_its_line(tmp_path: Path) -> None:
    told = failing(tmp_path, "def f():\n    return 1 / 0\n\nf()\n")
    assert told.endswith("bad.py, line 2, in `return 1 / 0`: ZeroDivisionError: division by zero")
    told = failing(tmp_path, "import json\njson.loads('{')\n")
    assert "bad.py, line 2, in `json.loads('{')`: JSONDecodeError" in told
    assert "bad.py, line 1: this is not Python" in failing(tmp_path, "def f(:\n")
    assert "No module named 'nolib'" in failing(tmp_path, "import nolib\n")
    assert "line 2, in `sys.exit(3)`: the file ends the program" in failing(
        tmp_path, "import sys\nsys.exit(3)\n"
    )


def test_errors_while_tracing_are_told_with_the_user_s_line(tmp_path: Path) -> None:
    start = "import tpcalc as tp\n@tp.program\ndef p(t):\n"
    assert "bad.py, line 4, in `1 / 0`" in failing(tmp_path, start + "    1 / 0\n")
    told = failing(tmp_path, start + "    t.output('h', t.matrix('W', 'n', 'm') @ t.gaussian('v'))")
    assert "bad.py:4: there is no dimension class called 'm'" in told
    assert "has no output" in failing(tmp_path, start + "    t.gaussian('v')\n")


def test_what_a_command_watches_yields_to_what_was_said(tmp_path: Path) -> None:
    flags = [Flag("--depth", "model.depth", 1), Flag("--steps", "training.steps", 1)]

    def letters(*more: Flag) -> set[str]:
        model = open_model("mlp", [*flags, *more], ["h", "dW_x"])
        return {name.partition("[")[0] for name, _ in model.program.outputs}

    assert letters() == {"f", "h", "dW_x"}
    assert letters(Flag("--watch", "training.watch", ["x", "dB"])) == {"f", "x"}


def test_programs_in_files_take_no_network_flags(file: Path) -> None:
    model = open_model(f"{file}:there", [Flag("--particles", "limit.samples", 64)])
    assert model.study.limit.samples == 64
    assert model.title == "the program there of mine.py"
    assert model.description == {"file": str(file), "name": "there"}
    assert model.facts["Outputs"] == "1 scalar, 0 vectors" and "v" in model.facts["Drawn"]
    flags = [Flag("--depth", "model.depth", 1), Flag("--lr", "training.lr", 1.0)]
    with pytest.raises(UsageError, match="--depth, --lr: a program in a file is complete"):
        open_model(f"{file}:there", flags)


def test_saved_programs(file: Path, tmp_path: Path) -> None:
    _, program = load_named(file, "there")
    tp.save(program, tmp_path / "kept.json")
    model = open_model(str(tmp_path / "kept.json"))
    assert model.program == program
    assert model.title == "the program kept of kept.json"
    with pytest.raises(TpcalcError, match=r"nowhere\.json"):
        open_model(str(tmp_path / "nowhere.json"))


@pytest.mark.parametrize("word", ["folder/net", "net.txt", "mlp.yaml"])
def test_files_of_other_kinds(word: str) -> None:
    with pytest.raises(UsageError, match="MODEL is a study file"):
        open_model(word)


def test_the_catalogue_lists_every_kind_with_sources() -> None:
    found = catalogue()
    assert list(found) == [
        "activations",
        "architectures",
        "parameterizations",
        "optimizers",
        "schedules",
        "losses",
    ]
    names = {kind: {entry["name"] for entry in entries} for kind, entries in found.items()}
    assert names["activations"] >= {"relu", "tanh", "gelu", "leaky_relu"}
    assert names["architectures"] == {"mlp", "resnet", "rnn"}
    assert names["parameterizations"] >= {"ntk", "mup", "standard", "naive-ip", "ip-llr", "ac"}
    assert names["losses"] >= {"mse", "linear", "logistic", "xent"}
    for entries in found.values():
        for entry in entries:
            assert entry["text"] and entry["source"], entry
