"""Notes on networks for which a parameterization was not defined."""

from __future__ import annotations

import pytest

import tpcalc as tp
from tpcalc.questions.check import meant_for
from tpcalc.training.parameterizations import lookup


@pytest.mark.parametrize(
    ("act", "name", "degree"),
    [
        ("relu^2", "ip-llr", "2"),
        ("square", "ip-llr", "2"),
        ("relu", "ip-llr:2", "1"),
        ("identity", "ip-llr:2", "1"),
        ("relu^p", "ip-llr", "p"),
    ],
)
def test_another_degree_is_told(act: str, name: str, degree: str) -> None:
    (note,) = meant_for(lookup(name), tp.MLP(3, act, bias="first"))
    assert note.endswith(f"which is ip-llr:{degree}")


@pytest.mark.parametrize(
    ("act", "name"),
    [
        ("relu", "ip-llr"),
        ("relu^2", "ip-llr:2"),
        ("relu^5/2", "ip-llr:5/2"),
        ("relu^p", "ip-llr:p"),
        ("tanh", "ip-llr"),
        ("relu^2", "mup"),
    ],
)
def test_nothing_is_said_where_it_fits(act: str, name: str) -> None:
    assert meant_for(lookup(name), tp.MLP(3, act)) == ()


@pytest.mark.parametrize(
    ("bias", "name", "words"),
    [
        ("all", "ip-llr", "first layer alone"),
        ("hidden", "hp", "first layer alone"),
        ("none", "ip-bias", "biases in all layers"),
    ],
)
def test_biases_where_it_has_none(bias: str, name: str, words: str) -> None:
    (note,) = meant_for(lookup(name), tp.MLP(3, "relu", bias=bias))
    assert words in note


def test_another_architecture_is_left_alone() -> None:
    assert meant_for(lookup("ip-bias"), tp.ResNet(2, "relu")) == ()


def test_check_passes_it_on() -> None:
    found = tp.check(tp.MLP(3, "relu^2", bias="first"), "ip-llr", steps=1)
    assert found.verdict == "trivial"
    assert "ip-llr:2" in found.notes[0]
