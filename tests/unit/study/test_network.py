"""The network of a study, for questions that train it themselves."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from tpcalc.data import digits
from tpcalc.errors import StudyError, TraceError, UnknownName, UsageError
from tpcalc.networks.architectures.mlp import MLP
from tpcalc.study import Flag, Network, network_of, open_network, study_of
from tpcalc.training.parameterizations import lookup


def made(**sections: dict[str, Any]) -> Network:
    return network_of(study_of(sections))


def test_the_network_is_that_of_the_study() -> None:
    found = made(model={"depth": 4, "act": "relu^2", "param": "ip-llr", "p": 2, "bias": "first"})
    assert found.architecture == MLP(4, "relu^2", "first")
    assert found.parameterization == lookup("ip-llr", p=2)
    assert found.title == "relu^2 network of 4 hidden layers, ip-llr(p=2)"
    assert found.training.data is None
    assert found.description == {
        "architecture": "mlp",
        "depth": 4,
        "act": "relu^2",
        "param": "ip-llr",
        "p": 2.0,
        "bias": "first",
        "data": None,
    }


@pytest.mark.parametrize(
    "part", [{"data": "digits"}, {"samples": 4}, {"classes": [0, 1]}, {"seed": 0}]
)
def test_digits_that_are_asked_for_are_taken(part: dict[str, Any]) -> None:
    found = made(training={**part, "steps": 1})
    assert found.training.data == digits((0, 1), 4, 0)
    assert found.description["data"]["origin"] == "digits 0,1, 4 samples, seed 0"
    assert found.description["steps"] == 1


def test_data_are_read() -> None:
    found = made(training={"inputs": [[1, 2], [3, 4]], "targets": [1, -1]})
    assert found.training.data is not None and len(found.training.data) == 2


def test_only_what_was_given_is_passed_on() -> None:
    found = made(training={"steps": 0, "lr": 0.5, "batch": 1})
    run = found.training
    assert (run.steps, run.batch, run.lr, run.loss.name) == (0, 1, 0.5, "mse")
    assert found.run(2) is run
    assert made(training={"batch": 1}).run(2).steps == 2


def test_every_question_has_all_of_the_run() -> None:
    part = {"batch": 2, "loss": "linear", "schedule": "warmup:2", "groups": {"1": {"lr": "1/2"}}}
    run = made(training=part).training
    assert (run.batch, run.loss.name) == (2, "linear")
    assert run.factors == (0, Fraction(1, 2), 1)
    assert [run.own(mark).lr for mark in run.network.marks] == [Fraction(1, 2), 1, 1, 1]


def test_study_files_and_words(tmp_path: Path) -> None:
    study = tmp_path / "s.toml"
    study.write_text('[model]\ndepth = 2\nact = "tanh"\n')
    by_file = open_network(str(study))
    flags = [Flag("--depth", "model.depth", 2), Flag("--act", "model.act", "tanh")]
    by_words = open_network("mlp", flags)
    assert by_file.architecture == by_words.architecture == MLP(2, "tanh")
    assert by_file.description == by_words.description


FILE = """import tpcalc as tp

@tp.program
def deep(t):
    t.output("h", t.gaussian("h"))
"""


@pytest.mark.parametrize("word", ["net.py:deep", "net.py", "net.json"])
def test_programs_are_no_networks(
    word: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "net.py").write_text(FILE)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="is a program; this question is about a network"):
        open_network(word)


def test_misspelt_words() -> None:
    with pytest.raises(UnknownName, match="Did you mean 'mlp'"):
        open_network("mpl")
    with pytest.raises(UsageError, match="MODEL is a study file"):
        open_network("net.txt")


OWN = """import tpcalc as tp

class Net(tp.Network):
    def __init__(self, t, depth=1, act=tp.tanh):
        self.u, self.act = t.linear(t.n, "in"), act
        self.w = [t.linear(t.n, t.n) for _ in range(depth)]
        self.v = t.linear(t.outputs, t.n)
    def forward(self, x):
        h = self.u(x)
        for w in self.w:
            h = h + w(self.act(h))
        return self.v(h)
"""


def test_a_network_of_ones_own_is_read_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(OWN)
    word = str(tmp_path / "net.py:Net")
    found = open_network(word, [Flag("--depth", "model.depth", 2)])
    assert [mark.label for mark in found.architecture.marks] == ["u", "w.0", "w.1", "v"]
    assert found.title == "the network Net(depth=2) of 4 parameters, mup"
    study = tmp_path / "study.toml"
    study.write_text('[model]\narchitecture = "net.py:Net"\nparameters = {depth = 2}\n')
    assert open_network(str(study)).architecture == found.architecture
    with pytest.raises(UsageError, match="has no bias; it takes depth, act"):
        open_network(word, [Flag("--bias", "model.bias", "all")])
    (tmp_path / "net.py").write_text(OWN.replace("t.outputs, t.n", "t.outputs, 'n' * 2"))
    with pytest.raises(TraceError, match=r"net\.py:12: a map from the axis 'nn'"):
        open_network(word)


@pytest.mark.parametrize(
    ("rest", "message"),
    [
        ("p = 0\n", "model.p: "),
        ("[training]\nsteps = -1\n", "training.steps"),
        ('[training]\noptimizer = "nosuch"\n', "training.optimizer"),
        ("[training]\ninputs = [[1]]\n", "training.targets"),
        ("", "model.architecture: {folder}/net.py, line 1, in `1 / 0`: ZeroDivisionError"),
    ],
)
def test_a_python_file_runs_when_all_else_is_right(rest: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text("1 / 0\n")
    study = tmp_path / "study.toml"
    study.write_text(f'[model]\narchitecture = "net.py:net"\n{rest}')
    with pytest.raises(StudyError) as caught:
        open_network(str(study))
    assert message.format(folder=tmp_path) in f"{caught.value.where}: {caught.value.told}"


def test_parameters_are_those_of_python_files(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text("[model]\nparameters = {a = 1}\n")
    with pytest.raises(StudyError, match=r"model\.parameters: mlp has no parameters"):
        open_network(str(tmp_path / "study.toml"))
