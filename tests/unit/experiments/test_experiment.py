"""Experiment files: what is read, what the data decide, and that every problem is told."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from tpcalc.errors import StudyError, UsageError
from tpcalc.experiments.settings import Plan, experiment_of, load_experiment
from tpcalc.results import Setting
from tpcalc.study import Flag

FILES = sorted((Path(__file__).parents[3] / "examples" / "integrable").glob("*.toml"))
WRITTEN: dict[str, Any] = {
    "name": "mine",
    "title": "two parameterizations",
    "shows": ["rates", "losses"],
    "training": {"depth": 3, "width": 512, "steps": {"mnist": 60}, "widths": [16, 32]},
    "stand-in": {"width": 16, "steps": 4, "trials": 2},
    "std": {"relu": 1.5},
    "networks": [
        {"param": "ip-llr", "calibrated": True, "act": ["relu", "tanh"]},
        {"param": "naive-ip", "bias": "all", "act": ["relu"]},
    ],
    "reported": [
        {"table": "T", "data": "mnist", "param": "ip-llr", "accuracy": {"relu": 0.1, "tanh": 0.9}}
    ],
    "classes": {"mnist": [1, 3]},
}


def read(data: str = "digits", *flags: Flag, **changes: Any) -> Plan:
    return experiment_of({**deepcopy(WRITTEN), **changes}, data, flags)


def refused(*flags: Flag, data: str = "digits", **changes: Any) -> str:
    with pytest.raises(StudyError) as caught:
        read(data, *flags, **changes)
    return str(caught.value)


def test_every_network_is_one_setting() -> None:
    plan = read("mnist")
    assert [setting.text for setting in plan.settings] == [
        "ip-llr, relu",
        "ip-llr, tanh",
        "naive-ip, relu",
    ]
    assert plan.settings[0] == Setting(
        "relu", "ip-llr", 3, 512, "first", 1.5, 0.01, True, 500.0, 60, 512
    )
    assert plan.settings[1].std == 1.0
    assert (plan.settings[2].bias, plan.settings[2].calibrated) == ("all", False)
    assert plan.trials == 5
    assert plan.shows == ("losses", "rates")
    assert plan.rank_samples == 0


def test_data_that_stand_in_have_smaller_numbers() -> None:
    plan = read("digits")
    assert {(each.width, each.steps, each.batch) for each in plan.settings} == {(16, 4, 512)}
    assert plan.trials == 2
    assert read("mnist").settings[0].width == 512
    other = {**WRITTEN["stand-in"], "data": ["mnist"]}
    assert read("mnist", **{"stand-in": other}).settings[0].width == 16


def test_flags_replace_both() -> None:
    flags = [Flag(f"--{name}", f"training.{name}", 8) for name in ("width", "steps", "trials")]
    for data in ("digits", "mnist"):
        plan = read(data, *flags)
        assert (plan.settings[0].width, plan.settings[0].steps, plan.trials) == (8, 8, 8)


def test_rates_are_compared_over_the_widths_of_calibrated_networks() -> None:
    assert [(each.text, each.width) for each in read().by_width] == [
        ("ip-llr, relu", 16),
        ("ip-llr, relu", 32),
        ("ip-llr, tanh", 16),
        ("ip-llr, tanh", 32),
    ]


def test_what_was_reported() -> None:
    plan = read()
    assert plan.reported == (
        ("T", "ip-llr, relu", "mnist", 0.1),
        ("T", "ip-llr, tanh", "mnist", 0.9),
    )
    assert plan.shares == (("mnist", (0.25, 0.75)),)


MUP = [{"param": "mup", "act": ["relu"]}]
PLAIN: dict[str, Any] = {"stand-in": {}, "networks": MUP}


def test_how_networks_are_trained() -> None:
    part = {
        "steps": 4,
        "optimizer": "adamw(decay=0.1)",
        "schedule": "warmup:2,cosine",
        "groups": {"hidden": {"lr": 0.5, "power": "-1/2"}, "bias": {"lr": 0}},
    }
    (setting,) = read(training=part, **PLAIN).settings
    assert (setting.optimizer, setting.schedule) == (part["optimizer"], part["schedule"])
    assert setting.groups == (
        ("hidden", (("lr", "0.5"), ("power", "-1/2"))),
        ("bias", (("lr", "0"),)),
    )
    assert setting.rule == (
        "adamw(decay=0.1); schedule warmup:2,cosine; hidden: lr=0.5 power=-1/2; bias: lr=0"
    )
    (setting,) = read(training={"steps": 2, "schedule": [0, 1.5, 1]}, **PLAIN).settings
    assert (setting.schedule, setting.rule) == ("", "schedule 0, 1.5, 1")
    assert setting.factors == (0.0, 1.5, 1.0)
    assert read(training={"steps": 2}, **PLAIN).settings[0].rule == ""


@pytest.mark.parametrize(
    ("part", "words"),
    [
        ({"optimizer": "adamm"}, "training.optimizer: there is no optimizer called 'adamm'"),
        (
            {"optimizer": "adam(decay=0.1)"},
            "training.optimizer: an entrywise function of the initial weights, a random matrix",
        ),
        ({"optimizer": "nowhere.opt"}, "training.optimizer: there is no such file"),
        ({"schedule": "wramup:2"}, "training.schedule: there is no schedule called 'wramup'"),
        ({"schedule": [1, 0.5]}, "training: a schedule shorter than the run: it has 2 factors"),
        ({"groups": {"hiden": {"lr": 0}}}, "training: the group 'hiden' fits no parameter. Labels"),
        ({"groups": {"bias": {"eps": 0}}}, "training: there is no hyperparameter of sgd called"),
        ({"groups": {"bias": {"lr": "x"}}}, "training: lr of the group 'bias' must be a number"),
        ({"groups": 3}, "training.groups: "),
    ],
)
def test_rules_that_do_not_fit(part: dict[str, Any], words: str) -> None:
    assert words in refused(training={"steps": 3, **part}, **PLAIN)


def test_parameterizations_of_gradient_descent_alone() -> None:
    networks = [{"param": "ip-llr", "act": ["relu", "tanh"]}, *MUP]
    text = refused(training={"optimizer": "adam"}, **{"stand-in": {}, "networks": networks})
    assert "training: ip-llr has learning rates for gradient descent alone" in text
    assert "more: " not in text
    networks = [{"param": "mup", "calibrated": True, "act": ["relu"]}]
    text = refused(training={"schedule": "warmup:2"}, **{"stand-in": {}, "networks": networks})
    assert "training: the rates of step 0 are calibrated, and the schedule has the factor 0" in text


def test_ranks_are_taken_where_they_are_shown() -> None:
    part = {"steps": 1, "rank_samples": 7}
    assert read(shows=["ranks"], training=part, networks=WRITTEN["networks"]).rank_samples == 7


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"trainings": {}}, "trainings: there is no such section. Did you mean training?"),
        ({"training": {"witdh": 3}}, "training.witdh: there is no such key. Did you mean width"),
        ({"stand-in": {"widt": 3}}, "there is no such key. Did you mean width"),
        ({"stand-in": {"data": 5}}, "stand-in.data: it should be a valid tuple; it is 5"),
        ({"stand-in": 3}, "stand-in: a section with keys is needed, not 3"),
        ({"training": 3}, "training: a section with keys is needed, not 3"),
        (
            {"networks": [{"param": "mup", "act": ["relu"], "biases": "all"}]},
            "networks.0.biases: there is no such key. Did you mean bias?",
        ),
        ({"networks": [{"param": "mupp", "act": ["relu"]}]}, "networks.0.param: "),
        ({"networks": [{"param": "mup", "act": ["rleu"]}]}, "networks.0.act.0: "),
        ({"networks": [{"param": "mup", "act": []}]}, "networks.0.act: it should have 1 or more"),
        ({"networks": [{"param": "mup", "act": ["relu", "relu"]}]}, "mup, relu is there twice"),
        ({"shows": ["colours"]}, "shows.0: it should be 'losses', 'outputs'"),
        ({"std": {"relu": 0.0}}, "std.relu: it should be greater than 0"),
        (
            {"networks": WRITTEN["networks"][1:]},
            "training.widths: rates by width need a calibrated network",
        ),
        ({"name": ""}, "name: "),
        (
            {"training": {"steps": "x"}, "stand-in": {}},
            "training.steps: it should be a valid integer",
        ),
        (
            {"training": {"steps": {"digits": 0}}, "stand-in": {}},
            "training.steps.digits: it should be greater than or equal to 1",
        ),
    ],
)
def test_problems_have_their_keys(changes: dict[str, Any], words: str) -> None:
    assert words in refused(**changes)


def test_all_problems_are_told_at_once() -> None:
    text = refused(data="mnist", training={"depth": 0, "width": "wide"})
    assert "1 more: " in text
    assert "training.depth: " in text and "training.width: " in text


def test_data_without_a_number_of_steps() -> None:
    text = refused(data="cifar10")
    assert "training.steps: there is no number for cifar10, only for mnist" in text


def test_numbers_that_stand_in_are_blamed_where_they_stand() -> None:
    expected = "TPC100 stand-in.width: it should be greater than or equal to 1; it is 0."
    assert refused(**{"stand-in": {"width": 0}}) == expected


def test_a_number_or_a_table_is_refused_once() -> None:
    with pytest.raises(UsageError) as caught:
        read("digits", Flag("--steps", "training.steps", 0))
    expected = "TPC101 --steps: it should be greater than or equal to 1; it is 0."
    assert str(caught.value) == expected


def test_files_are_read(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('name = "x"\ntitle = ""\n[[networks]]\nparam = "mup"\nact = ["relu"]\n')
    assert load_experiment(path, "digits").name == "x"
    path.write_text("name = \n")
    with pytest.raises(StudyError, match="at line 1"):
        load_experiment(path, "digits")


def test_there_are_four_experiments() -> None:
    assert [path.stem for path in FILES] == ["E1", "E2", "E3", "E4"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_S0_34_35_36_37_published_settings(path: Path) -> None:
    plan = load_experiment(path, "mnist")
    found = {
        (each.depth, each.width, each.lr, each.batch, each.cap, each.std)
        for each in plan.settings
        if each.act == "gelu"
    }
    assert found == {(6, 1024, 0.01, 512, 500.0, 2.0)}
    assert plan.trials == 5
    assert {each.calibrated for each in plan.settings if each.parameterization == "ip-llr"} <= {
        True
    }
    assert {each.steps for each in plan.settings} == {1 if path.stem == "E3" else 600}
    assert plan.rank_samples == (5000 if path.stem == "E3" else 0)
    for _, shares in plan.shares:
        assert sum(shares) == pytest.approx(1)
    texts = {each.text for each in plan.settings}
    assert {text for _, text, _, _ in plan.reported} <= texts
    small = load_experiment(path, "digits")
    assert small.settings[0].width < 1024


def test_longer_training_on_the_harder_images() -> None:
    second = next(path for path in FILES if path.stem == "E2")
    assert {each.steps for each in load_experiment(second, "cifar10").settings} == {1200}
