"""Whole trainings: curves, reproducibility, resuming, divergence, refusals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from trials import NOWHERE, Stop, silent, stopping, train_setting
from unit.finite.training_images import mixture

from tpcalc.errors import OutOfMemory, ScaleError, StudyError, TpcalcError, UnknownName, UsageError
from tpcalc.finite.training import loop
from tpcalc.finite.training.checkpoint import Checkpoint
from tpcalc.finite.training.loop import Common, train_trial
from tpcalc.results import Run, Setting
from tpcalc.results.images import class_shares

pytestmark = pytest.mark.torch

DATA = mixture(distance=3.0)
SETTING = Setting("tanh", "mup", 2, 16, lr=0.3, steps=12, batch=32)


def same(one: Run, other: Run) -> bool:
    """Bit by bit, but for the time it took."""
    return repr(replace(one, seconds=0.0)) == repr(replace(other, seconds=0.0))


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """Threads would wait for each other in networks as small as these."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def test_it_learns() -> None:
    run = train_setting(replace(SETTING, steps=80), DATA, trials=2)
    assert run.trials == 2 and len(run.losses[0]) == 80
    assert run.losses[0][0] == pytest.approx(np.log(3), abs=0.2)
    assert max(row[-1] for row in run.losses) < 0.2
    assert run.outputs[0][-1] > run.outputs[0][0]
    assert min(run.accuracies) > 0.9
    assert run.diverged == (None, None)
    assert run.rates == ((0.3,) * 3,) * 2
    assert run.ranks_h == run.ranks_x == ()
    assert run.losses[0] != run.losses[1]


def test_first_losses_by_hand() -> None:
    """An epoch shows every image once, three batches of 32; the next has another order."""
    setting = Setting("relu", "naive-ip", 1, 4, bias="none", lr=0.0, steps=9, batch=32)
    run = train_setting(setting, DATA, trials=1, dtype="float64")
    first, second, third = (np.array(run.losses[0][k : k + 3]) for k in (0, 3, 6))
    assert np.mean(first) == pytest.approx(np.mean(second), rel=1e-12)
    assert np.mean(first) == pytest.approx(np.mean(third), rel=1e-12)
    assert not np.allclose(first, second, rtol=1e-9)
    part = replace(setting, batch=40)  # two batches; 16 images are left out of each epoch
    cut = train_setting(part, DATA, trials=1, dtype="float64").losses[0]
    assert abs(np.mean(cut[:2]) - np.mean(cut[2:4])) > 1e-9


def test_a_trial_does_not_depend_on_others() -> None:
    three, one = train_setting(SETTING, DATA, trials=3), train_setting(SETTING, DATA, trials=1)
    assert three.losses[0] == one.losses[0]
    assert train_setting(SETTING, DATA, trials=1, seed=1).losses[0] != one.losses[0]
    assert same(train_setting(SETTING, DATA, trials=3, every=5), three)


def test_resuming_calculates_no_step_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Common(DATA, every=5), SETTING, 0, Checkpoint(tmp_path / "state.npz", "trial")
    with pytest.raises(Stop):
        train_trial(*asked, stopping(2))
    steps: list[int] = []
    original = loop._outputs

    def counted(network: Any, batches: Any, step: int) -> Any:
        steps.append(step)
        return original(network, batches, step)

    monkeypatch.setattr(loop, "_outputs", counted)
    train_trial(*asked, silent)
    assert steps == [10, 11]


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"seed": 1}, "seed"),
        ({"images": mixture(seed=6)}, "data"),
        ({"dtype": "float64"}, "precision"),
        ({"ranks": 3}, "ranks"),
        ({"device": "cuda:1"}, "device"),
    ],
)
def test_what_a_trial_depends_on(change: dict[str, Any], word: str) -> None:
    given: dict[str, Any] = {"images": DATA}
    one, other = Common(**given).facts(SETTING), Common(**(given | change)).facts(SETTING)
    assert {name for name in one if one[name] != other[name]} == {word}
    assert Common(**given).facts(replace(SETTING, lr=0.2)) != one
    assert Common(**given, every=3).facts(SETTING) == one


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    path, common = tmp_path / "state.npz", Common(DATA, every=5)
    with pytest.raises(Stop):
        train_trial(common, SETTING, 0, Checkpoint(path, "trial"), stopping(2))
    for setting, key in ((SETTING, "another"), (replace(SETTING, steps=30), "trial")):
        with pytest.raises(StudyError, match="of another trial") as caught:
            train_trial(common, setting, 0, Checkpoint(path, key), silent)
        assert str(path) in str(caught.value.where) and "\n" not in str(caught.value)
    for change in ({"width": 8}, {"depth": 3}, {"bias": "all"}, {"optimizer": "adam"}):
        with pytest.raises(StudyError, match="of another network"):
            other = replace(SETTING, **change)
            train_trial(common, other, 0, Checkpoint(path, "trial"), silent)


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    path, common = tmp_path / "state.npz", Common(DATA, every=5)
    asked = common, SETTING, 0, Checkpoint(path, "trial"), silent
    with pytest.raises(Stop):
        train_trial(*asked[:4], stopping(2))
    content = path.read_bytes()
    for broken in (b"", b"not a file", content[: len(content) // 2]):
        path.write_bytes(broken)
        with pytest.raises(StudyError, match="damaged") as caught:
            train_trial(*asked)
        assert str(path) in str(caught.value.where) and "\n" not in str(caught.value)
    path.write_bytes(content)
    with np.load(path) as found:
        entries = dict(found)
    for name, other in {"losses": np.nan, "at/W1": np.ones((1, 1)), "numbers": [3.0, 0.0]}.items():
        np.savez(path, **{**entries, name: other})
        with pytest.raises(StudyError, match="arrays were changed"):
            train_trial(*asked)
    np.savez(path, key=np.array(["{}"], dtype=object))  # would need a pickle
    with pytest.raises(StudyError, match="damaged"):
        train_trial(*asked)
    with path.open("wb") as file:
        np.save(file, np.zeros(3))
    with pytest.raises(StudyError, match="damaged"):
        train_trial(*asked)


def test_a_place_that_cannot_be_written_does_without(tmp_path: Path) -> None:
    common, place = Common(DATA, every=5), tmp_path / "none" / "state.npz"
    (whole,) = train_trial(common, SETTING, 0, NOWHERE, silent)
    (found,) = train_trial(common, SETTING, 0, Checkpoint(place, "trial"), silent)
    assert same(found, whole) and not place.parent.exists()


def test_a_trial_that_diverges_stops() -> None:
    setting = Setting("relu", "ntk", 3, 16, std=2.0, lr=1e30, steps=8, batch=32)
    run = train_setting(setting, DATA, trials=1, ranks=10)
    step = run.diverged[0]
    assert step is not None and 1 <= step <= 3
    assert np.all(np.isfinite(run.losses[0][:step])) and np.all(np.isfinite(run.outputs[0][:step]))
    assert np.all(np.isnan(run.losses[0][step:])) and np.all(np.isnan(run.outputs[0][step:]))
    assert len(run.losses[0]) == 8
    assert np.isnan(run.accuracies[0])


def test_outputs_that_explode_in_the_last_step_have_no_accuracy() -> None:
    setting = Setting("relu", "ntk", 3, 16, std=2.0, lr=1e200, steps=1, batch=32)
    run = train_setting(setting, DATA, trials=1, dtype="float64")
    assert run.diverged == (1,)
    assert np.isfinite(run.losses[0][0]) and np.isnan(run.accuracies[0])


def test_S0_case43_networks_that_learn_nothing_answer_class_0() -> None:
    """Naive-IP: a flat loss, and outputs that single precision cannot tell apart from 0."""
    setting = Setting("relu", "naive-ip", 6, 1024, std=2**0.5, steps=2, batch=32)
    run = train_setting(setting, DATA, trials=1)
    assert run.losses[0] == pytest.approx((np.log(3),) * 2, rel=1e-6)
    assert 0 < run.outputs[0][1] < 1e-7
    assert run.accuracies == (class_shares(DATA)[0],)


def test_float32_follows_float64() -> None:
    wide = train_setting(SETTING, DATA, trials=1, dtype="float64")
    narrow = train_setting(SETTING, DATA, trials=1)
    np.testing.assert_allclose(narrow.losses, wide.losses, rtol=1e-5)
    assert narrow.losses[0][0] == wide.losses[0][0]  # the first step is of float64 in both


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"parameterization": "mupp"}, UnknownName, "parameterization"),
        ({"parameterization": "ip-llr:p"}, ScaleError, "symbols"),
        ({"parameterization": "ac:0,1000,0;0"}, ScaleError, "outside the range"),
        ({"act": "tanhh"}, UnknownName, "activation"),
        ({"act": "step"}, TpcalcError, "derivative"),
        ({"bias": "some"}, UnknownName, "biases"),
        ({"depth": 0}, UsageError, "depth"),
        ({"width": 0}, UsageError, "width"),
        ({"steps": 0}, UsageError, "steps"),
        ({"batch": 97}, UsageError, "batch is 97; it must be at most 96"),
        ({"std": 0.0}, UsageError, "std is 0"),
        ({"lr": float("nan")}, UsageError, "lr"),
        ({"cap": -1.0}, UsageError, "cap is -1"),
        ({"width": 10**7}, OutOfMemory, "smaller width"),
    ],
)
def test_refusals(change: dict[str, Any], error: type[TpcalcError], words: str) -> None:
    with pytest.raises(error, match=words):
        train_setting(replace(SETTING, **change), DATA, trials=1)


@pytest.mark.parametrize(
    "argument",
    [
        {"every": 0},
        {"seed": -1},
        {"ranks": -1},
        {"dtype": "bfloat16"},
        {"first": "float16"},
        {"device": "tpu"},
    ],
)
def test_refusals_of_arguments(argument: dict[str, Any]) -> None:
    with pytest.raises(TpcalcError):
        Common(DATA, **argument)


def test_progress() -> None:
    said: list[tuple[float, str]] = []
    common = Common(DATA, every=5)
    train_trial(common, SETTING, 0, NOWHERE, lambda share, text: said.append((share, text)))
    assert said == [(5 / 12, "step 5 of 12"), (10 / 12, "step 10 of 12")]


@pytest.mark.gpu
@pytest.mark.parametrize("optimizer", ["sgd", "adamw(eps=1e-4, decay=0.1)"])
def test_cuda_trains_the_same_networks(optimizer: str) -> None:
    setting = replace(SETTING, optimizer=optimizer)
    here, there = (
        train_setting(setting, DATA, trials=2, dtype="float64", ranks=20, device=device)
        for device in ("cpu", "cuda")
    )
    np.testing.assert_allclose(there.losses, here.losses, rtol=1e-9)
    assert there.accuracies == here.accuracies
    assert there.ranks_h == here.ranks_h
