"""``tpcalc kernel``: what it asks, what it prints and writes, how it ends.

The analysis itself is replaced by a hand-made answer; each call is recorded.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from golden.kernels import KERNEL

import tpcalc as tp
from tpcalc.program.program import Program
from tpcalc.results import Kernel, load_kernel
from tpcalc.training.parameterizations import lookup

Run = Callable[..., Any]


@dataclass
class Asked:
    """The calls of the analysis, and with what it answers."""

    calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = field(default_factory=list)
    error: Exception | None = None

    def __call__(self, model: Any, X: Any = None, **named: Any) -> Kernel:
        self.calls.append(((model, X), named))
        if self.error is not None:
            raise self.error
        size = 8 if X is None else len(X)
        matrix = np.eye(size) + 0.5
        kinds = {kind: matrix if kind in named["kinds"] else None for kind in ("nngp", "ntk")}
        return replace(KERNEL, labels=(), **kinds)

    @property
    def only(self) -> tuple[Any, Any, dict[str, Any]]:
        (((model, inputs), named),) = self.calls
        return model, inputs, named


@pytest.fixture(autouse=True)
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    found = Asked()
    module = SimpleNamespace(kernel=found)
    monkeypatch.setitem(sys.modules, "tpcalc.questions.kernel.kernel", module)
    return found


def test_defaults_are_those_of_kernels(tpcalc: Run, asked: Asked) -> None:
    ran = tpcalc("kernel", "mlp")
    assert (ran.code, ran.err) == (0, "")
    model, inputs, named = asked.only
    assert model == tp.MLP(3)
    assert inputs == tp.digits(tuple(range(10)), samples=100).inputs
    assert named == {
        "kinds": ("nngp", "ntk"),
        "method": "auto",
        "seed": 0,
        "threads": None,
        "progress": None,
        "parameterization": lookup("ntk"),
        "scale": None,
    }
    lines = ran.out.splitlines()
    assert lines[:2] == ["relu network of 3 hidden layers, ntk", "NNGP and NTK in closed form"]
    assert "Inputs: digits 0,1,2,3,4,5,6,7,8,9, 100 samples, seed 0." in ran.out
    assert "the mean of |x|^2 over all digits is 1" in " ".join(ran.out.split())


def test_flags_are_handed_on(tpcalc: Run, asked: Asked) -> None:
    words = ("--depth", 2, "--act", "erf", "--param", "mup", "--kinds", "ntk", "--seed", 3)
    more = ("--method", "particles", "--threads", 2, "--classes", "3,8", "--samples", 6)
    assert tpcalc("kernel", "mlp", *words, *more, "--data-seed", 5, "--scale", 0.5).code == 0
    model, inputs, named = asked.only
    assert model == tp.MLP(2, "erf")
    assert inputs == tp.digits((3, 8), samples=6, seed=5).inputs
    assert named["parameterization"] == lookup("mup")
    assert (named["kinds"], named["method"]) == (("ntk",), "particles")
    assert (named["seed"], named["threads"], named["scale"]) == (3, 2, 0.5)


def test_all_digits_can_be_asked_for(tpcalc: Run, asked: Asked) -> None:
    assert tpcalc("kernel", "mlp", "--samples", 500).code == 0  # more than two classes have
    assert len(asked.only[1]) == 500


def test_json(tpcalc: Run, tmp_path: Path) -> None:
    save, out = tmp_path / "k.npz", tmp_path / "k.md"
    words = ("--samples", 3, "--kinds", "nngp", "--save", save, "--out", out)
    found = tpcalc("kernel", "mlp", *words, "--json").json
    assert found["command"] == "kernel"
    assert set(found) == {"tpcalc", "command", "model", "result", "provenance"}
    assert found["model"]["param"] == "ntk" and found["model"]["data"]["samples"] == 3
    data = found["model"].pop("data")
    assert data == {"origin": data["origin"], "samples": 3, "dimension": 64}
    own = {"depth": 3, "act": "relu", "bias": "none"}
    assert found["model"] == {"architecture": "mlp", "param": "ntk", **own}
    result = found["result"]
    assert result["nngp"] == [[1.5, 0.5, 0.5], [0.5, 1.5, 0.5], [0.5, 0.5, 1.5]]
    assert result["ntk"] is None
    assert (result["method"], result["error"]) == ("exact", 3.21e-15)
    assert (result["coincident_error"], result["independent"]) == (4e-13, True)
    assert result["symmetric"] is True
    assert result["labels"] == ["0", "1", "2"]
    assert result["notes"][0] == KERNEL.notes[0] and result["notes"][1].startswith("Inputs: digits")
    assert (result["save"], result["out"]) == (str(save), str(out))
    assert found["provenance"]["program"] == "ab12cd34"


def test_a_recurrent_network_takes_the_digits(tpcalc: Run) -> None:
    found = tpcalc("kernel", "rnn", "--samples", 2, "--json").json["model"]
    found.pop("data")
    own = {"length": 4, "act": "erf"}
    assert found == {"architecture": "rnn", "param": "ntk", **own}


def test_classes_are_those_of_digits(tpcalc: Run, tmp_path: Path) -> None:
    data = tmp_path / "a.csv"
    data.write_text("x1,x2,y\n1,2,1\n3,4,-1\n", encoding="utf-8")
    ran = tpcalc("kernel", "mlp", "--data", data, "--classes", "0,1")
    assert (ran.code, ran.out) == (3, "")
    assert "chooses among the digits" in ran.err and "a.csv" in ran.err


def test_files_are_written(tpcalc: Run, tmp_path: Path) -> None:
    save, out = tmp_path / "k.npz", tmp_path / "k.html"
    ran = tpcalc("kernel", "mlp", "--samples", 5, "--classes", "7,1", "--save", save, "-o", out)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines()[-2:] == [str(save), str(out)]
    found = load_kernel(save)
    assert found.shape == (5, 5) and found.labels == ("7", "1", "7", "1", "7")
    page = out.read_text(encoding="utf-8")
    assert "<h1>Relu network of 3 hidden layers, ntk</h1>" in page
    assert "data:image/png;base64" in page


def csv_file(folder: Path, *lines: str) -> Path:
    path = folder / "data.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_a_file_is_taken_whole(tpcalc: Run, asked: Asked, tmp_path: Path) -> None:
    data = csv_file(tmp_path, "x1,x2,y", "1,0,1", "0,1,-1", "1,1,1", "2,1,-1")
    found = tpcalc("kernel", "mlp", "--data", data, "--json").json["result"]
    assert asked.only[1] == ((1.0, 0.0), (0.0, 1.0), (1.0, 1.0), (2.0, 1.0))
    assert found["labels"] == ["1", "-1", "1", "-1"]
    assert found["notes"][-1] == f"Inputs: {data}."


@pytest.mark.parametrize(
    ("lines", "labels"),
    [
        (("x1,y1,y2", "1,0,1", "2,1,0"), ["1", "0"]),
        (("x1,y1,y2", "1,0.5,1", "2,1,0"), []),
        (("x1,y", "1,0.5", "2,0.25", "3,0.1"), []),  # numbers, not classes
    ],
)
def test_classes_of_a_file(
    tpcalc: Run, tmp_path: Path, lines: tuple[str, ...], labels: list[str]
) -> None:
    data = csv_file(tmp_path, *lines)
    assert tpcalc("kernel", "mlp", "--data", data, "--json").json["result"]["labels"] == labels


@pytest.mark.parametrize(
    ("text", "param", "count"),
    [
        ("[model]\ndepth = 2\n", "ntk", 100),
        ('[model]\ndepth = 2\nparam = "mup"\n', "mup", 100),
        ("[model]\ndepth = 2\n[training]\nsamples = 7\n", "ntk", 7),
        ('[model]\ndepth = 2\n[training]\nloss = "xent"\nclasses = [1, 2, 3]\n', "ntk", 100),
        ('[model]\ndepth = 2\n[training]\nloss = "logistic"\n', "ntk", 100),
        ("[model]\ndepth = 2\n[training]\ninputs = [[1.0], [2.0]]\ntargets = [1.0, 0]\n", "ntk", 2),
    ],
)
def test_study_files(
    tpcalc: Run, asked: Asked, tmp_path: Path, text: str, param: str, count: int
) -> None:
    study = tmp_path / "study.toml"
    study.write_text(text)
    assert tpcalc("kernel", study).code == 0
    model, inputs, named = asked.only
    assert model == tp.MLP(2) and len(inputs) == count
    assert named["parameterization"] == lookup(param)


@pytest.mark.parametrize("suffix", [".py", ".json"])
def test_programs_bring_their_inputs(
    tpcalc: Run, asked: Asked, tmp_path: Path, suffix: str
) -> None:
    path = tmp_path / f"mine{suffix}"
    source = (
        "import tpcalc as tp\n@tp.program\ndef walk(t):\n"
        "    v = t.gaussian('v')\n    t.output('size', tp.mean(v * v))\n"
    )
    if suffix == ".py":
        path.write_text(source)
    else:
        space: dict[str, Any] = {}
        exec(source, space)
        tp.save(space["walk"], path)
    ran = tpcalc("kernel", path, "--seed", 4)
    assert (ran.code, ran.err) == (0, "")
    model, inputs, named = asked.only
    assert isinstance(model, Program) and inputs is None
    assert "parameterization" not in named and named["seed"] == 4
    assert "--scale: a program in a file" in tpcalc("kernel", path, "--scale", 1).err
    refused = tpcalc("kernel", path, "--samples", 4)
    assert refused.code == 2 and "--samples: a program in a file is complete" in refused.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--kinds", "nkt"], "--kinds: 'nkt' names none of nngp, ntk"),
        (["--kinds", ""], "--kinds: '' names none"),
        (["--method", "magic"], "there is no method called 'magic'"),
        (["--samples", "0"], "--samples: it should be greater than or equal to 1"),
        (["--samples", "1798"], "These classes have 1797"),
        (["--save", "k.txt"], "--save: a kernel is written as .npz"),
        (["--save", "no/where/k.npz"], "--save: the kernel cannot be written: there is no folder"),
        (["--out", "k.pdf"], "--out: a report is written as .html or .md"),
        (["--steps", "3"], "--steps: a kernel is that of the network at the start"),
        (["--particles", "64"], "No such option"),
    ],
)
def test_wrong_usage_is_2_and_nothing_is_run(
    tpcalc: Run, asked: Asked, words: list[str], message: str
) -> None:
    ran = tpcalc("kernel", "mlp", *words)
    assert (ran.code, ran.out) == (2, "")
    assert message in " ".join(ran.err.split())
    assert asked.calls == []


def test_errors_of_the_analysis_end_as_theirs(tpcalc: Run, asked: Asked, tmp_path: Path) -> None:
    from tpcalc.errors import EvaluationError, LimitError

    save = tmp_path / "k.npz"
    for error, code in ((LimitError("no limit"), 3), (EvaluationError("no number"), 4)):
        asked.error = error
        ran = tpcalc("kernel", "mlp", "--save", save)
        assert (ran.code, ran.out) == (code, "") and str(error) in ran.err
    assert not save.exists()
