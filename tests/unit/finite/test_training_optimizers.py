"""Trained networks under every optimizer, with schedules and groups, beside their programs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from torch_optimizers import GROUPS, SETTINGS
from trials import NOWHERE, Stop, initial_rates, silent, stopping, train_setting
from unit.finite.training_images import SEED, mixture

import tpcalc as tp
from tpcalc.errors import ScaleError, StudyError, TpcalcError, UnknownName, UsageError
from tpcalc.finite.training.checkpoint import Checkpoint
from tpcalc.finite.training.loop import Common, train_trial
from tpcalc.results import Setting
from tpcalc.results.images import Images
from tpcalc.training.optimizers import lookup

pytestmark = pytest.mark.torch

DATA = mixture(64)
STEPS, LR = 5, 0.125


def pairs(groups: Mapping[str, Mapping[str, Any]]) -> Any:
    """Groups as a setting has them."""
    return tuple(
        (pattern, tuple((name, str(value)) for name, value in own.items()))
        for pattern, own in groups.items()
    )


def trained(setting: Setting, data: Images = DATA) -> list[float]:
    return list(train_setting(setting, data, trials=1, seed=SEED, dtype="float64").losses[0])


def close(found: list[float], expected: list[float]) -> None:
    assert len(found) == len(expected)
    assert abs(found[-1] - found[0]) > 1e-3  # it moved
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=0)


def test_powers_of_the_width_in_numbers() -> None:
    """eps = n^-1 / 2 and decay = n^(1/2) / 8 of hidden weights at n = 16 are 1/32 and 1/2."""
    groups = {"hidden": {"eps": "0.5 n^-1", "decay": "0.125 n^(1/2)"}, "readout": {"lr": 0}}
    numbers = {"hidden": {"eps": 1 / 32, "decay": 0.5}, "readout": {"lr": 0}}
    setting = Setting("tanh", "mup", 2, 16, "all", lr=LR, steps=STEPS, batch=16, optimizer="adamw")
    found, expected = (trained(replace(setting, groups=pairs(own))) for own in (groups, numbers))
    close(found, expected)
    assert abs(found[-1] - trained(setting)[-1]) > 1e-6


OWN = """optimizer mine(b1=4/5, decay=1/8, eps=1/4 n^-1)
m = b1 m + (1 - b1) g
v = b1 v + (1 - b1) g^2
w = (1 - lr decay) w - lr (m / (1 - b1^t)) / (sqrt(v / (1 - b1^t)) + eps)"""


RATES = {"hidden": {"lr": 2, "power": "1/4"}, "bias": {"lr": "1/2"}}
CASES: list[tuple[str, str, dict[str, Any]]] = [
    *(
        (text, rule, RATES)
        for text, _, _ in SETTINGS.values()
        for rule in ("mup", "standard", "ntk")
    ),
    *((text, "mup", {**RATES, "bias": {"decay": "1/2"}}) for text in ("adamw(decay=0.25)", OWN)),
    *((name, "mup", GROUPS) for name in ("sgd", "adam", "adagrad")),
    # Initial weights that are replaced: the state of momentum with decay holds a part of them.
    *(("momentum(decay=0.25)", rule, {}) for rule in ("hp", "hpz")),
]


@pytest.mark.parametrize(
    ("optimizer", "rule", "groups", "act"),
    [(*case, act) for case, act in zip(CASES, cycle(("tanh", "relu")))],
)
def test_steps_are_those_of_the_program(
    optimizer: str, rule: str, groups: dict[str, Any], act: str
) -> None:
    """The same draws: dense weights of tp.simulate, which are those of torch in other tests."""
    inputs = np.array([[0.5, -0.75, 1.25], [1.0, 0.25, -0.5], [-0.25, 1.5, 0.75]])
    labels, std, width, steps, depth = np.array([0, 1, 1]), 1.5, 16, 3, 2 if groups else 3
    bias, lr = "first" if groups else "none", 0.25 if rule == "mup" or not groups else 1 / 16
    schedule = [0.5, 1, 0.25, 1]
    spread = std**2 / (inputs.shape[1] + 1)
    network = tp.MLP(
        depth,
        act,
        bias=bias,
        weight_variance=(spread, *(std**2,) * (depth - 1)),
        bias_variance=spread if groups else None,
        variances="initial",
    )
    program = tp.train(
        network,
        rule,
        tp.Samples(inputs.tolist(), np.eye(2)[labels].tolist()),
        steps=steps,
        lr=lr,
        loss="xent",
        batch=len(labels),
        watch=(),
        optimizer=optimizer,
        schedule=schedule,
        groups=groups,
    )
    found = tp.simulate(program, [width], 1, seed=SEED, backend="dense")
    rows = {row.name: row.values[0] for row in found.rows}
    outputs = np.array(
        [[[rows[f"f[{t},{i},{k}]"] for k in range(2)] for i in range(3)] for t in range(steps + 1)]
    )
    logs = outputs - np.log(np.exp(outputs).sum(-1, keepdims=True))
    setting = Setting(act, rule, depth, width, bias, std=std, lr=lr, steps=steps + 1, batch=3)
    own = {"optimizer": optimizer, "factors": tuple(schedule), "groups": pairs(groups)}
    images = Images(inputs, labels, inputs, labels, 2, "by hand")
    run = train_setting(replace(setting, **own), images, trials=1, seed=SEED, dtype="float64")
    close(list(run.losses[0]), list(-logs[:, np.arange(3), labels].mean(-1)))
    np.testing.assert_allclose(run.outputs[0], np.abs(outputs).mean((1, 2)), rtol=1e-10, atol=0)


@pytest.mark.parametrize("name", ["momentum", "adam", "adamw", "lion"])
def test_states_follow_the_number_format(name: str) -> None:
    setting = Setting("tanh", "mup", 2, 16, lr=LR, steps=8, batch=16, optimizer=SETTINGS[name][0])
    wide = train_setting(setting, DATA, trials=1, dtype="float64").losses[0]
    narrow = train_setting(setting, DATA, trials=1).losses[0]
    np.testing.assert_allclose(narrow, wide, rtol=1e-3 if name in ("adam", "lion") else 1e-4)
    assert narrow[0] == wide[0] and narrow != wide


@pytest.mark.parametrize("after", [1, 2])
@pytest.mark.parametrize(
    ("optimizer", "rule"),
    [*((own, "mup") for own in ("adam(eps=1e-3)", "nesterov", OWN, "sgd")), ("sgd", "hp")],
)
def test_resuming_changes_no_bit(optimizer: str, rule: str, after: int, tmp_path: Path) -> None:
    setting = Setting("tanh", rule, 2, 16, lr=LR, steps=12, batch=16, optimizer=optimizer)
    setting = replace(setting, schedule="warmup:3,cosine", groups=pairs({"hidden": {"lr": 2}}))
    common, path = Common(DATA, ranks=20, every=5), tmp_path / "state.npz"
    asked = common, setting, 1, Checkpoint(path, "trial")
    (whole,) = train_trial(common, setting, 1, NOWHERE, silent)
    with pytest.raises(Stop):
        train_trial(*asked, stopping(after))
    with np.load(path) as kept:
        states = [name for name in kept.files if name.startswith("at/W1/")]
    assert len(states) == len(lookup(optimizer).parts) - 2
    (again,) = train_trial(*asked, silent)
    assert repr(replace(again, seconds=0.0)) == repr(replace(whole, seconds=0.0))
    assert [entry.name for entry in tmp_path.iterdir()] == ["state.npz"]


def test_sgd_keeps_no_states(tmp_path: Path) -> None:
    path, setting = tmp_path / "state.npz", Setting("tanh", "mup", 2, 16, steps=9, batch=16)
    with pytest.raises(Stop):
        train_trial(Common(DATA, every=5), setting, 0, Checkpoint(path, "trial"), stopping(1))
    with np.load(path) as kept:
        arrays = {name for name in kept.files if name.startswith("at/")}
    assert arrays == {"at/W1", "at/W2", "at/W3", "at/b1"}


@pytest.mark.parametrize(
    "change",
    [
        {"optimizer": "adam"},
        {"schedule": "linear"},
        {"factors": (1.0, 0.5, 1.0)},
        {"groups": (("bias", (("lr", "0"),)),)},
    ],
)
def test_another_rule_is_another_trial(change: dict[str, Any]) -> None:
    setting = Setting("tanh", "mup", 2, 16, steps=3, batch=16)
    assert Common(DATA).facts(replace(setting, **change)) != Common(DATA).facts(setting)


def test_a_file_that_changed_is_another_optimizer(tmp_path: Path) -> None:
    file = tmp_path / "mine.opt"
    file.write_text(OWN, encoding="utf-8")
    setting = Setting("tanh", "mup", 2, 16, steps=3, batch=16, optimizer=str(file))
    facts = Common(DATA).facts(setting)
    assert Common(DATA).facts(setting) == facts
    file.write_text(OWN.replace("4/5", "1/5"), encoding="utf-8")
    assert Common(DATA).facts(setting) != facts


def test_calibrated_rates_under_adam_are_used() -> None:
    setting = Setting("tanh", "mup", 2, 32, calibrated=True, steps=3, batch=16, optimizer="adam")
    run = train_setting(setting, DATA, trials=2)
    assert run.rates == initial_rates(setting, DATA, trials=2)
    assert run.losses != train_setting(replace(setting, calibrated=False), DATA, trials=2).losses


SQUARED = "optimizer odd\nm = lr^2 g\nw = w - m"


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"optimizer": "adamm"}, UnknownName, "optimizer"),
        ({"optimizer": "adam(decay=0.1)"}, StudyError, "entrywise function of the initial weights"),
        ({"optimizer": "adam(b3=1)"}, UnknownName, "hyperparameter"),
        ({"optimizer": "adam(eps=n^(-a))"}, ScaleError, "symbols"),
        ({"optimizer": "adam", "parameterization": "ip-llr"}, StudyError, "gradient descent alone"),
        ({"factors": (1, 1)}, UsageError, "a schedule shorter than the run"),
        ({"schedule": "wramup:2"}, UnknownName, "schedule"),
        ({"groups": pairs({"hiden": {"lr": 0}})}, UsageError, "fits no parameter"),
        ({"groups": pairs({"hidden": {"eps": 0}})}, UnknownName, "hyperparameter of sgd"),
        ({"groups": pairs({"hidden": {"power": "q"}})}, ScaleError, "symbols"),
        ({"calibrated": True, "schedule": "warmup:2"}, UsageError, "step 0 are calibrated"),
        ({"calibrated": True, "optimizer": SQUARED}, StudyError, "cannot be calibrated"),
    ],
)
def test_refusals(change: dict[str, Any], error: type[TpcalcError], words: str) -> None:
    setting = Setting("tanh", "mup", 2, 16, steps=3, batch=16)
    with pytest.raises(error, match=words):
        train_setting(replace(setting, **change), DATA, trials=1)


def test_steps_late_in_a_run_are_read_as_quickly() -> None:
    """A power of a number is one number, however large t is."""
    adam = lookup("adam")
    numbers = {name: float(number) for name, (number, _) in adam.settings.items()}
    late = dict(adam.lines(10**6, numbers))
    assert late["w"].expr == dict(adam.lines(10**6 + 1, numbers))["w"].expr  # no bias is left
    lion = lookup("lion")
    numbers = {name: float(number) for name, (number, _) in lion.settings.items()}
    assert lion.lines(7, numbers) is lion.lines(8, numbers)  # its text has no t


def test_all_of_the_catalogue_can_be_calibrated() -> None:
    from tpcalc.training.optimizers import REGISTRY

    followed = [lookup(name) for name in REGISTRY if not lookup(name).whole]
    assert len(followed) == 15 and all(own.is_linear_in_rate for own in followed)
    assert all(lookup(text).is_linear_in_rate for text, _, _ in SETTINGS.values())
    assert not lookup(SQUARED).is_linear_in_rate
