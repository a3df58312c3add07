"""Studies become the programs that ``train`` makes, on the data they name."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from tpcalc.data import digits, inline
from tpcalc.errors import StudyError
from tpcalc.networks.architectures.mlp import MLP
from tpcalc.study import Model, build, study_of
from tpcalc.training.training import train


def made(**sections: dict[str, Any]) -> Model:
    return build(study_of(sections))


def outputs(model: Model, name: str) -> list[str]:
    return [found for found, _ in model.program.outputs if found.startswith(f"{name}[")]


def test_the_program_is_that_of_train() -> None:
    model = made(
        model={"depth": 2, "act": "tanh", "param": "ntk", "bias": "all"},
        training={"lr": 0.5, "steps": 2, "samples": 2, "seed": 3, "batch": 2, "watch": ["h"]},
    )
    data = digits((0, 1), 2, 3)
    network = MLP(2, "tanh", "all")
    expected = train(network, "ntk", data, steps=2, lr=0.5, batch=2, watch=("h",))
    assert model.program == expected
    assert model.input_names == ("sample 1 of the batch", "sample 2 of the batch")
    assert model.description["data"] == {
        "origin": "digits 0,1, 2 samples, seed 3",
        "samples": 2,
        "dimension": 64,
        "outputs": 1,
    }


def test_inline_numbers_and_p() -> None:
    part = {"inputs": [[1, 2], [3, 4]], "targets": [1, -1], "steps": 1}
    model = made(model={"depth": 1, "param": "ip-llr", "p": 2, "act": "relu^2"}, training=part)
    data = inline([[1, 2], [3, 4]], [1, -1])
    from tpcalc.training.parameterizations import lookup

    expected = train(MLP(1, "relu^2"), lookup("ip-llr", p=2), data, steps=1)
    assert model.program == expected
    assert "ip-llr(p=2)" in model.title


def test_csv_file_with_queries(tmp_path: Path) -> None:
    data, query = tmp_path / "data.csv", tmp_path / "query.csv"
    data.write_text("x1,x2,y1,y2\n1,2,0,1\n3,4,1,0\n5,6,0,1\n")
    query.write_text("x1,x2\n0,1\n1,0\n")
    part = {"data": str(data), "query": str(query), "steps": 1, "samples": 2, "loss": "xent"}
    model = made(model={"depth": 1}, training=part)
    assert outputs(model, "f")[:6] == [f"f[0,{i},{k}]" for i in range(3) for k in range(2)]
    assert model.input_names == ("sample of the step", "query 1", "query 2")
    assert model.facts["Queries"] == f"2 inputs of {query}"
    assert model.facts["Data"] == f"{data}, first 2: 2 features, 2 outputs"


def test_cross_entropy_makes_two_classes_one_hot() -> None:
    model = made(model={"depth": 1}, training={"loss": "cross-entropy", "steps": 0})
    assert outputs(model, "f") == ["f[0,0,0]", "f[0,0,1]"]
    assert model.description["data"]["outputs"] == 2


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ({"data": "mnist"}, "there is no data set called 'mnist'"),
        ({"inputs": [[1]], "targets": [1], "samples": 2}, "samples is 2; it must be at most 1"),
        ({"inputs": [[1], [1, 2]], "targets": [1, 2]}, "input row 1 has 2 numbers"),
        ({"inputs": [[1]], "targets": [1, 2]}, "1 inputs and 2 targets"),
        ({"loss": "logistic", "classes": [0, 1, 2]}, "the logistic loss takes one output"),
        ({"loss": "logistic", "inputs": [[1]], "targets": [0.5]}, "takes -1 and 1"),
    ],
)
def test_bad_data(part: dict[str, Any], message: str) -> None:
    with pytest.raises(StudyError, match=message):
        made(training=part)


def test_words_give_the_powers_of_the_program() -> None:
    model = made(model={"depth": 4, "param": "naive-ip", "bias": "all"}, training={"steps": 2})
    text = "\n".join(model.words)
    assert "h^l = n^(-1) (W^l x^(l-1) + b^l) for l = 2, ..., 4." in text
    assert "h^1 = W^1 ξ + b^1.\nx^l = relu(h^l) for l = 1, ..., 4." in text
    assert "f = n^(-1) W^5 x^4 + n^(-1) b^5." in text
    assert "Update, 2 times: w = w - lr g, for every entry w of a parameter of layer l" in text
    assert "lr = eta n^(-c_l) with eta = 1" in text


def test_words_list_hidden_layers_that_differ() -> None:
    param = "ac:0,1/2,1/3,1;-1,-1,-1,-1"
    text = "\n".join(made(model={"depth": 3, "param": param, "bias": "first"}).words)
    assert "h^2 = n^(-1/2) W^2 x^1." in text
    assert "h^3 = n^(-1/3) W^3 x^2." in text
    assert "W^1 ξ + b^1" in text


def test_words_at_initialization_have_no_update() -> None:
    model = made(model={"depth": 1}, training={"steps": 0})
    assert model.title == "relu network of 1 hidden layer, mup, at initialization"
    assert not any("Update" in line for line in model.words)


def test_facts_tell_when_learning_rates_change() -> None:
    model = made(model={"depth": 3, "param": "ip-llr"}, training={"steps": 2})
    assert model.facts["Powers of the learning rates"] == (
        "c = (-2, -5/2, -5/2, -2) at t = 0; c = (-1, -2, -2, -1) from t = 1"
    )
    assert model.facts["Powers of the weights"] == "a = (0, 1, 1, 1)"


def test_words_say_whose_gradients_are_meant() -> None:
    one = made(model={"depth": 1}, training={"steps": 1})
    three = made(model={"depth": 1}, training={"steps": 1, "classes": [0, 1, 2]})
    assert any("gradients of f by" in line for line in one.words)
    assert any("gradients of the loss by" in line for line in three.words)


def test_formulas_have_the_powers_of_the_program() -> None:
    model = made(model={"depth": 3, "act": "leaky_relu:0.2", "param": "ntk", "bias": "all"})
    formulas = dict(model.formulas)
    hidden = formulas["h^l, l = 2, ..., 3"]
    assert hidden.text == "h^l = n^(-1/2) W^l x^(l-1) + b^l"
    assert hidden.latex == r"h^{l} = n^{-1/2} \, W^{l} \, x^{l-1} + b^{l}"
    assert formulas["h^1"].text == "h^1 = W^1 ξ + b^1"
    assert formulas["f"].latex == r"f = n^{-1/2} \, W^{4} \, x^{3} + b^{4}"
    slope = formulas["x^l, l = 1, ..., 3"]
    assert slope.latex == r"x^{l} = \text{leaky\_relu[1/5]}\left(h^{l}\right)"
    assert "Update" in formulas


@pytest.mark.parametrize(
    ("part", "titles"),
    [
        ({"depth": 1}, ["h^1", "x^1", "f"]),
        ({"depth": 2}, ["h^1", "x^l, l = 1, ..., 2", "h^2", "f"]),
        (
            {"depth": 3, "param": "ac:0,1/2,1/3,1;-1,-1,-1,-1"},
            ["h^1", "x^l, l = 1, ..., 3", "h^2", "h^3", "f"],
        ),
    ],
)
def test_formulas_by_depth(part: dict[str, Any], titles: list[str]) -> None:
    model = made(model=part, training={"steps": 0})
    assert [title for title, _ in model.formulas] == titles


def test_formulas_are_well_formed_mathml() -> None:
    for _, formula in made(model={"depth": 3, "act": "relu^2", "bias": "all"}).formulas:
        ElementTree.fromstring(formula.mathml)


@pytest.mark.parametrize("part", [{"classes": [0, 1]}, {"seed": 2}])
def test_a_choice_of_digits_is_for_digits(part: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("x1,y\n1,1\n2,-1\n", encoding="utf-8")
    with pytest.raises(StudyError, match="chooses among the digits"):
        made(training={"data": str(file), **part})
    with pytest.raises(StudyError, match="chooses among the digits"):
        made(training={"inputs": [[1.0]], "targets": [1.0], **part})
    assert made(training={"data": "digits", "steps": 1, **part})


def test_schedules_and_groups_in_words() -> None:
    part = {"inputs": [[1, 2]], "targets": [1], "steps": 2, "groups": {"1": {"power": "-1/2"}}}
    for schedule, shown in (("warmup:1", "warmup:1"), ([1.0, 0.25], "(1, 0.25)")):
        model = made(model={"depth": 1}, training={**part, "schedule": schedule})
        assert model.facts["Optimizer"] == f"sgd, learning rate 1 times the schedule {shown}"
        assert model.facts["Groups"] == "1: power=-1/2"
        text = " ".join(model.words)
        assert f"with eta = 1 times the schedule {shown}." in text
        assert "Parameters with settings of their own: 1: power=-1/2." in text
        assert model.network is not None and model.network.training.program is model.program
