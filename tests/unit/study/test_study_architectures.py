"""Studies of every architecture: their keys, their programs, their words and formulas."""

from __future__ import annotations

import inspect
from typing import Any
from xml.etree import ElementTree

import pytest

import tpcalc as tp
from tpcalc.data import inline
from tpcalc.errors import StudyError, UsageError
from tpcalc.networks.architectures import REGISTRY
from tpcalc.networks.network import Architecture
from tpcalc.study import Flag, build, network_of, open_model, study_of
from tpcalc.study.schema import ModelPart

DATA = {"inputs": [[1, 2, 0, 1]], "targets": [1], "steps": 1, "watch": ["h"]}

CASES: list[tuple[dict[str, Any], Architecture]] = [
    (
        {"architecture": "mlp", "depth": 2, "weight_variance": "9/4", "bias_variance": 0.01},
        tp.MLP(2, "relu", weight_variance=2.25, bias_variance=0.01),
    ),
    ({"depth": 4, "norm": "layer", "act": "tanh"}, tp.MLP(4, "tanh", norm="layer")),
    ({"depth": 3, "bias": "hidden"}, tp.MLP(3, bias="hidden")),
    ({"architecture": "resnet"}, tp.ResNet(3)),
    (
        {"depth": 2, "weight_variance": "2,0", "variances": "initial", "weight_rate": "2,512,256"},
        tp.MLP(2, weight_variance=(2, 0), variances="initial", weight_rate=(2, 512, 256)),
    ),
    (
        {"architecture": "resnet", "depth": 4, "alpha": 1, "bias_variance": 2, "norm": "layer"},
        tp.ResNet(4, alpha=1, bias_variance=2, norm="layer"),
    ),
    ({"architecture": "rnn", "length": 2}, tp.RNN(2, "erf")),
    (
        {"architecture": "rnn", "length": 4, "act": "tanh", "input_variance": 2},
        tp.RNN(4, "tanh", input_variance=2),
    ),
    (
        {"architecture": "rnn", "length": 1, "bias_variance": 3, "outputs": "all"},
        tp.RNN(1, bias_variance=3, outputs="all"),
    ),
]
IDS = [net.words for _, net in CASES]


@pytest.mark.parametrize(("part", "net"), CASES, ids=IDS)
def test_the_program_is_that_of_train(part: dict[str, Any], net: Architecture) -> None:
    study = study_of({"model": {**part, "param": "ntk"}, "training": DATA})
    model = build(study)
    data = inline([[1, 2, 0, 1]], [1])
    assert model.program == tp.train(net, "ntk", data, steps=1, watch=("h",))
    found = network_of(study)
    assert found.architecture == net
    assert model.title == f"{found.title}, 1 step of training"
    assert model.description["architecture"] == part.get("architecture", "mlp")
    assert {name: model.description[name] for name in part} == part
    strange = set(ModelPart.model_fields) - {"architecture", "param", "p"}
    strange -= set(inspect.signature(type(net)).parameters)
    assert not strange & set(model.description)


@pytest.mark.parametrize(("part", "net"), CASES, ids=IDS)
@pytest.mark.parametrize("param", ["mup", "naive-ip"])
def test_words_and_formulas_of_every_architecture(
    part: dict[str, Any], net: Architecture, param: str
) -> None:
    model = build(study_of({"model": {**part, "param": param}, "training": DATA}))
    text = " ".join(model.words)
    assert "start as independent N(0, 1) draws" in text and " f" in text
    formulas = dict(model.formulas)
    assert "Update" in formulas and any(title[0] == "f" for title in formulas)
    for formula in formulas.values():
        ElementTree.fromstring(formula.mathml)
        assert formula.latex.count("{") == formula.latex.count("}")
    assert model.facts["Network"][1:] == net.words[1:]
    assert len(model.facts["Powers of the weights"].split(",")) == net.hidden + 1


def test_factors_stand_in_words_and_formulas() -> None:
    part = {"depth": 2, "weight_variance": 2, "bias_variance": "1/4", "norm": "layer"}
    model = build(study_of({"model": {**part, "param": "ntk"}, "training": DATA}))
    text = "\n".join(model.words)
    assert "h^1 = sqrt(2) W^1 ξ + 1/2 b^1.\n" in text
    assert "z^l = h^l - mean(h^l) for l = 1, ..., 2." in text
    assert "hhat^l = mean((z^l)^2)^(-1/2) z^l for l = 1, ..., 2." in text
    assert "h^2 = n^(-1/2) sqrt(2) W^2 x^1 + 1/2 b^2." in text
    assert "f = n^(-1/2) W^3 x^2." in text
    formulas = dict(model.formulas)
    assert formulas["h^1"].latex == r"h^{1} = \sqrt{2} \, W^{1} \, \xi + \frac{1}{2} \, b^{1}"
    assert formulas["x^l, l = 1, ..., 2"].text == "x^l = relu(hhat^l)"


def test_blocks_and_tokens_stand_in_words_and_formulas() -> None:
    part = {"architecture": "resnet", "depth": 4, "alpha": "1/2", "weight_variance": 2}
    model = build(study_of({"model": part, "training": DATA}))
    wanted = "h^l = h^(l-1) + n^(-1/2) sqrt(1/2) W^l x^(l-1)"
    assert f"{wanted} for l = 2, ..., 5." in model.words
    assert dict(model.formulas)["h^l, l = 2, ..., 5"].text == wanted
    uneven = {**part, "depth": 2, "param": "ac:0,1/2,1/3,1;-1,-1,-1,-1"}
    model = build(study_of({"model": uneven, "training": DATA}))
    assert "h^3 = h^2 + n^(-1/3) W^3 x^2." in model.words
    assert "h^3" in dict(model.formulas)
    part = {"architecture": "rnn", "length": 2, "weight_variance": 4, "bias_variance": 9}
    model = build(study_of({"model": part, "training": DATA}))
    assert "h^2 = n^(-1/2) 2 W x^1 + U ξ_(p=1) + 3 b1." in model.words
    assert model.title == "erf recurrent network over 2 tokens, mup, 1 step of training"


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ({"alpha": 1}, "model.alpha: mlp has no alpha; it takes depth, act, bias, weight_variance"),
        ({"architecture": "rnn", "depth": 2}, "model.depth: rnn has no depth; it takes length"),
        ({"architecture": "rnn", "alpha": 1}, "model.alpha: rnn has no alpha"),
        ({"architecture": "resnet", "bias": "all"}, "model.bias: resnet has no bias"),
        ({"architecture": "resnet", "length": 2}, "model.length: resnet has no length"),
        ({"outputs": "all"}, "model.outputs: mlp has no outputs"),
        (
            {"weight_variance": -1},
            "model.weight_variance: the variance is -1; it must be at least 0",
        ),
        (
            {"weight_variance": [2, {}]},
            r"model.weight_variance: the variance must be a number, not {}",
        ),
        ({"bias_variance": True}, "model.bias_variance: bias_variance must be a number, not True"),
        ({"bias_variance": -0.5}, "model.bias_variance: bias_variance is -0.5"),
        ({"bias": "all", "bias_variance": 0}, "model: bias_variance is 0, and bias is 'all'"),
        ({"architecture": "rnn", "input_variance": 0}, "model.input_variance: the variance is 0"),
        (
            {"architecture": "resnet", "alpha": "x"},
            "model: alpha is x, and the number of blocks is 3",
        ),
        ({"architecture": "resnet", "alpha": 1e5}, "model: 3^(-100000), the factor of a block,"),
        ({"architecture": "rnn", "length": 0}, "model.length: it should be greater than or equal"),
        ({"norm": "batch"}, "model.norm: it should be 'none', 'layer' or 'rms'; it is 'batch'."),
    ],
)
def test_bad_networks(part: dict[str, Any], message: str) -> None:
    with pytest.raises(StudyError) as caught:
        study_of({"model": part})
    assert message in str(caught.value)
    assert "more: " not in str(caught.value)


def test_flags_that_do_not_apply_are_named_as_typed() -> None:
    flags = [Flag("--depth", "model.depth", 3), Flag("--alpha", "model.alpha", "1")]
    with pytest.raises(UsageError) as caught:
        open_model("rnn", flags)
    assert "1 more: " in str(caught.value)
    assert "--depth: rnn has no depth" in str(caught.value)
    assert "--alpha: rnn has no alpha" in str(caught.value)


def test_data_that_do_not_fit_the_tokens() -> None:
    study = {"model": {"architecture": "rnn", "length": 3}}
    with pytest.raises(StudyError, match="64 numbers, which 3 tokens cannot share"):
        build(study_of({**study, "training": {"data": "digits"}}))


def test_a_network_that_digits_do_not_fit_has_numbers_of_its_own_shape() -> None:
    study = {"model": {"architecture": "rnn", "length": 3}, "training": {"samples": 7, "steps": 1}}
    model = build(study_of(study))
    assert "random numbers for 3 tokens" in model.facts["Data"]
    assert "--data FILE.csv with 3 times d columns" in model.facts["Data"]
    assert model.network is not None and model.network.training.data is not None
    assert len({*model.network.training.data.inputs}) == 7
    fits = build(study_of({"model": {"architecture": "rnn", "length": 4}}))
    assert "digits" in fits.facts["Data"]


def test_watching_normalised_preactivations() -> None:
    part = {**DATA, "watch": ["hhat", "dhhat"]}
    model = build(study_of({"model": {"depth": 2, "norm": "layer"}, "training": part}))
    assert "dhhat[2,0,0]" in [name for name, _ in model.program.outputs]
    with pytest.raises(StudyError, match="the network has no such vectors"):
        build(study_of({"model": {"depth": 2}, "training": part}))


def test_every_parameter_of_an_architecture_is_a_key_of_a_study() -> None:
    for family in REGISTRY.values():
        assert set(family.parameters) <= set(ModelPart.model_fields)
