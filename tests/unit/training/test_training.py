"""``Training``: one record of a run, its schedules and groups, and the questions that take it."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, dataclass, replace
from fractions import Fraction
from math import cos, pi
from typing import Any

import pytest

import tpcalc as tp
from tpcalc.errors import TpcalcError, UnknownName, UsageError
from tpcalc.exponents import Ex, as_ex
from tpcalc.questions.check import check
from tpcalc.theorems.integrable.predicates.registry import applicable
from tpcalc.training.optimizer import Optimizer
from tpcalc.training.optimizers import lookup as find_optimizer
from tpcalc.training.schedules import factors

DATA = tp.Samples(((1.0, 0.2), (0.3, -0.7)), ((1.0,), (-1.0,)))
NET = tp.MLP(2, "relu", bias="first")
HALF = Fraction(1, 2)


def run(**settings: Any) -> tp.Training:
    return tp.Training(NET, "mup", DATA, **{"steps": 2, **settings})


# ------------------------------------------------------------------------------------- the record


def test_a_run_is_frozen_written_once_and_what_train_returns() -> None:
    one = run(batch=2, lr=0.5, loss="linear", queries=[(0.0, 1.0)], watch="h")
    assert one.program is one.program
    settings: dict[str, Any] = {"steps": 2, "batch": 2, "lr": 0.5, "loss": "linear"}
    assert one.program == tp.train(NET, "mup", DATA, **settings, queries=[(0, 1)], watch=["h"])
    with pytest.raises(FrozenInstanceError):
        one.steps = 3  # type: ignore[misc]
    other = one.replace(steps=1, parameterization="ntk")
    assert (other.steps, other.batch, other.lr) == (1, 2, 0.5)
    assert other.parameterization.name == "ntk" and one.parameterization.name == "mup"
    assert run() == run() and run() != run(steps=3)


def test_a_run_without_data_has_no_program_and_has_exponents() -> None:
    one = tp.Training(NET, "mup")
    with pytest.raises(UsageError, match="not Samples"):
        _ = one.program
    assert check(one, verify=False).verdict == "feature-learning"


@pytest.mark.parametrize(
    "question", [tp.orders, tp.limit, lambda one: tp.simulate(one, (8,), 1).rows]
)
def test_questions_about_programs_take_a_run(question: Any) -> None:
    one = run(steps=1, watch=())
    found = question(one)
    assert "f[1,0]" in str(found) and str(found) == str(question(one.program))


def plain(answer: Any) -> Any:
    """An answer without the time that it took."""
    return replace(answer, provenance=replace(answer.provenance, seconds=0.0))


def test_questions_about_training_take_a_run_or_its_arguments() -> None:
    one = run(loss="linear")
    arguments = (NET, "mup", DATA)
    asked: dict[str, Any] = {"steps": 2, "loss": "linear"}
    assert plain(tp.check(one)) == plain(tp.check(*arguments, **asked))
    assert plain(tp.solve(one)) == plain(tp.solve(*arguments, **asked))
    assert applicable(one, derive=False) == applicable(*arguments, **asked, derive=False)
    assert tp.integrable.stable_init(one).answer == "holds"
    assert tp.card(one).exponents == tp.card(*arguments, **asked).exponents
    box = {"a": (HALF, 1)}
    table = "ac:0,1/2,a;-1"
    found = tp.phases(one.replace(parameterization=table), box=box, verify=False)
    assert found.cells == tp.phases(NET, table, box, DATA, **asked, verify=False).cells


def test_arguments_beside_a_run() -> None:
    with pytest.raises(UsageError, match=r"steps, data given beside.*run\.replace\(steps="):
        tp.check(run(), data=DATA, steps=3)
    with pytest.raises(UsageError, match="no parameterization is given"):
        tp.solve(NET)
    with pytest.raises(UnknownName, match="no argument of this question called 'stepz'"):
        tp.check(NET, "mup", stepz=3)  # type: ignore[call-arg]
    with pytest.raises(UnknownName, match="called 'watch'"):
        tp.phases(NET, "mup", {}, watch=())  # type: ignore[call-arg]


# -------------------------------------------------------------------------------------- schedules


@pytest.mark.parametrize(
    ("schedule", "steps", "found"),
    [
        (None, 2, (1, 1)),
        ("constant", 2, (1, 1)),
        ("warmup:3", 5, (0, Fraction(1, 3), Fraction(2, 3), 1, 1)),
        ("warmup:4", 2, (0, Fraction(1, 4))),
        ("linear", 4, (1, Fraction(3, 4), HALF, Fraction(1, 4))),
        ("Linear: 2", 3, (1, HALF, 0)),
        ("warm-up:1, constant:2, linear", 5, (0, 1, 1, 1, HALF)),
        ("cosine", 3, (1, Fraction(3, 4), Fraction(1, 4))),
        ("cosine", 4, (1, (1 + cos(pi / 4)) / 2, HALF, (1 + cos(3 * pi / 4)) / 2)),
        ([0, "1/3", 0.5, 7], 3, (0, Fraction(1, 3), 0.5)),
        (lambda step: 2**step, 3, (1, 2, 4)),
        ("warmup:2", 0, ()),
    ],
)
def test_factors_of_schedules(schedule: Any, steps: int, found: tuple[Any, ...]) -> None:
    assert factors(schedule, steps) == pytest.approx(found, abs=1e-15)


@pytest.mark.parametrize(
    ("schedule", "words"),
    [
        ([1, 1], "a schedule shorter than the run: it has 2 factors, and the run has 3 steps"),
        ([1, 1, float("nan")], "schedule at step 2"),
        (lambda step: "a", "schedule at step 0"),
        ([1, "-1/2", 1], "the schedule at step 1 is -1/2; it must be at least 0"),
        ("warmup,cosine", "does not say how long warmup lasts"),
        ("warmup:0", "last 0 steps"),
        ("warmup:x", "the steps of warmup must be a number"),
        ("cosin", "Did you mean 'cosine'"),
        (3, "schedule is 3"),
    ],
)
def test_schedules_that_are_none(schedule: Any, words: str) -> None:
    with pytest.raises(TpcalcError, match=words):
        run(steps=3, schedule=schedule)


def test_a_schedule_is_a_rate_by_step() -> None:
    rates = (Fraction(0), Fraction(1, 3))
    by_step = run(lr=lambda layer, step: 6 * rates[step])
    assert run(lr=6, schedule=rates).program == by_step.program


def test_a_step_at_rate_0_changes_nothing() -> None:
    one = run(steps=2, schedule="warmup:1", queries=[(0.5, 0.5)], watch=())
    rows = tp.simulate(one, (16,), 2).rows
    value = {row.name: row.values for row in rows}
    assert value["f[0,1]"] == value["f[1,1]"] != value["f[2,1]"]


def test_what_a_verdict_says_of_a_schedule_that_starts_at_0() -> None:
    found = tp.check(NET, "mup", steps=2, schedule="warmup:1")
    assert (found.verdict, found.stationary_start) == ("feature-learning", False)
    assert "the schedule is 0 at step 0: nothing is updated there" in found.notes
    with pytest.raises(UsageError, match="the schedule is 0 in all of the run, 1 step:"):
        tp.check(NET, "mup", steps=1, schedule="warmup:1")
    with pytest.raises(UsageError, match="the schedule is 0 at step 0, where no power"):
        tp.solve(NET, "mup", steps=2, schedule="warmup:1")


# ----------------------------------------------------------------------------------------- groups


@tp.network
def own(t: Any, x: Any) -> Any:
    """Labels with dots, and groups."""
    h = t.linear(t.n, "in", name="embed", group="ends")(x)
    for block in range(2):
        h = h + t.linear(t.n, t.n, name=f"blocks.{block}.up", bias=True)(tp.tanh(h))
    h = h * t.gain("gain", group="norm") + t.vector("shift", group="norm")
    return t.linear(t.outputs, t.n, name="read", group="ends")(h)


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("hidden", ["blocks.0.up hidden", "blocks.1.up hidden"]),
        ("readout", ["read readout"]),
        ("ends", ["embed input", "read readout"]),
        ("norm", ["gain bias", "shift bias"]),
        ("blocks.1.up", ["blocks.1.up hidden", "blocks.1.up bias"]),
        ("blocks.0*", ["blocks.0.up hidden", "blocks.0.up bias"]),
        ("bias", ["blocks.0.up bias", "blocks.1.up bias", "gain bias", "shift bias"]),
    ],
)
def test_what_a_pattern_fits(pattern: str, found: list[str]) -> None:
    one = tp.Training(own, "mup", DATA, groups={pattern: {"lr": 2}})
    changed = [m for m in one.network.marks if one.own(m).lr == 2]
    assert [f"{mark.label} {mark.role}" for mark in changed] == found


def test_settings_of_several_groups_are_joined() -> None:
    groups = {"hidden": {"lr": 0.1, "power": "a - 1/2"}, "2": {"lr": "1/10", "optimizer": "SGD"}}
    one = run(groups=groups, lr=3)
    second = one.network.marks[2]
    assert (second.label, second.role) == ("2", "hidden")
    assert one.own(second).lr == Fraction(1, 10)
    assert one.optimizer_of(second) is find_optimizer("sgd")
    number, power = one.rate(second, 0)
    assert number == Fraction(3, 10)
    assert power == as_ex(-1) - (Ex.symbol("a") - HALF)
    assert str(one.groups[1]) == "2: lr=1/10 optimizer=sgd"
    assert one.replace(steps=1).groups == one.groups


@dataclass(frozen=True)
class Decayed(Optimizer):
    """An optimizer with numbers."""

    decay: Any = 1
    nesterov: Any = False

    def with_settings(self, **changes: Any) -> Decayed:
        return replace(self, **changes)


def test_other_settings_are_numbers_of_the_optimizer() -> None:
    sgd = find_optimizer("sgd")
    mine = Decayed("mine", sgd.rule, sgd.text, sgd.source)
    groups = {"hidden": {"decay": 0.1, "nesterov": True}, "2": {"decay": "1/10", "lr": 2}}
    one = run(optimizer=mine, groups=groups)
    found = [one.optimizer_of(mark) for mark in one.network.marks]
    assert found[2] == replace(mine, decay=Fraction(1, 10), nesterov=True)
    assert found[0] == found[1] == found[3] == mine
    by_group = run(groups={"bias": {"optimizer": mine, "decay": 0}})
    assert by_group.optimizer_of(by_group.network.marks[1]) == replace(mine, decay=0)
    assert by_group.optimizer_of(by_group.network.marks[0]) == sgd
    assert not one.plain and not run(optimizer=mine).plain and run().plain


def test_a_factor_is_that_of_the_network() -> None:
    """The rates of an MLP's layers, and groups that say the same."""
    rated = tp.MLP(2, "relu", bias="first", weight_rate=(2, "1/3", 0), bias_rate=5)
    groups = {"input": {"lr": 2}, "2": {"lr": "1/3"}, "readout": {"lr": 0}, "bias": {"lr": 5}}
    trained = tp.Training(rated, "mup", DATA, steps=2).program
    grouped = run(groups=groups).program
    assert [str(node) for node in grouped.nodes if "Input" not in str(node)] == [
        str(node) for node in trained.nodes if "Input" not in str(node)
    ]


def test_a_power_is_that_of_the_parameterization() -> None:
    net = tp.MLP(2, "tanh")
    groups = {"1": {"power": 1}, "readout": {"power": "1/2"}}
    lowered = tp.Training(net, "ac:0,1/2,1;-1,-1,-1", DATA, steps=2, groups=groups)
    table = tp.Training(net, "ac:0,1/2,1;-2,-1,-3/2", DATA, steps=2)
    assert lowered.program == table.program
    asked = tp.check(lowered), tp.check(table)
    assert asked[0].verdict == asked[1].verdict == "unstable"


def test_a_power_may_be_a_symbol_of_a_diagram() -> None:
    box, net = {"p": (-1, 0)}, tp.MLP(2, "tanh")
    grouped = {"groups": {"*": {"power": "p"}}, "steps": 1, "verify": False}
    found = tp.phases(net, "ac:0,1/2,1;-1", box, **grouped)  # type: ignore[arg-type]
    table = tp.phases(net, "ac:0,1/2,1;-1 - p", box, steps=1, verify=False)
    assert [(c.verdict, c.conditions) for c in found.cells] == [
        (c.verdict, c.conditions) for c in table.cells
    ]
    assert {cell.verdict for cell in found.cells} == {"trivial", "feature-learning"}


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        ({"blocks.*": {"lr": 1}}, r"'blocks\.\*' fits no parameter.*Labels: 1, 2, 3; roles: input"),
        ({"hidden": {"lr": 1}, "2": {"lr": 0}}, r"'hidden' and '2' both .* 2 \(hidden\), with lr"),
        ({"1": {"power": 1}, "bias": {"power": "a"}}, r"1 \(bias\), with power = 1 and a"),
        ({"hidden": {"decay": 0.1}}, "no hyperparameter of sgd called 'decay'"),
        ({"hidden": {"optimizer": "adamm"}}, "no optimizer called 'adamm'"),
        ({"hidden": {"lr": "fast"}}, "lr of the group 'hidden' must be a number"),
        ({"hidden": {"lr": -1}}, "lr of the group 'hidden' is -1; it must be at least 0"),
        ({"": {"lr": 1}}, "the pattern of a group is empty"),
        ({"hidden": 0.1}, "the group 'hidden' is 0.1"),
        ({3: {"lr": 1}}, "the group 3 is"),
        ([("hidden", {})], "the group"),
        ("hidden", "groups is 'hidden'"),
    ],
)
def test_groups_that_are_none(groups: Any, words: str) -> None:
    with pytest.raises(TpcalcError, match=words):
        run(groups=groups)


@pytest.mark.parametrize(
    "lr", [-1, "-0.1", "fast", lambda layer, step: -1.0, lambda layer, step: "fast"]
)
def test_rates_below_0_are_none(lr: Any) -> None:
    with pytest.raises(TpcalcError, match=r"(lr|learning rate of layer 1 at step 0) (is -|must)"):
        run(lr=lr).factor(1, 0)


def test_a_rate_may_be_a_text() -> None:
    assert run(lr="0.1").lr == Fraction(1, 10) == run(lr="1/10").lr


def test_a_solved_power_has_none_beside_it() -> None:
    with pytest.raises(UsageError, match="the group 'hidden' has one"):
        tp.solve(NET, "mup", groups={"hidden": {"power": 1}})
    with pytest.raises(UsageError, match="drawn and trained"):
        tp.solve(NET, "mup", groups={"hidden": {"lr": 0}}, symbolic="L")
    halved = tp.solve(NET, "mup", groups={"hidden": {"lr": "1/2"}}, steps=1)
    assert halved.steps == tp.solve(NET, "mup", steps=1).steps


def test_theorems_are_about_one_rate_for_all() -> None:
    assert applicable(NET, "naive-ip", derive=False)
    for settings in ({"groups": {"bias": {"lr": 0}}}, {"schedule": "linear"}):
        assert applicable(NET, "naive-ip", derive=False, **settings) == ()  # type: ignore[arg-type]
        found = tp.integrable.trivial_naive_ip(NET, "naive-ip", derive=False, **settings)
        assert found.answer == "outside"
        assert "not trained by SGD with one rate" in found.missing[0].found


def test_a_verdict_with_groups_names_no_parameterization() -> None:
    net, table = tp.MLP(2, "relu"), "abc:-1/2,0,1/2;1/2,1/2,1/2;0,0,0"
    known = "it is the parameterization mup"
    assert any(known in note for note in tp.check(net, table, steps=1).notes)
    changed = tp.check(net, table, steps=1, groups={"1": {"power": "-1"}})
    assert not any(known in note for note in changed.notes)


def test_hyperparameters_stand_in_brackets_behind_the_name_of_an_optimizer() -> None:
    groups = {"bias": {"optimizer": "adam(b1=1/2)"}}
    run = tp.Training(tp.MLP(2, bias="all"), "mup", optimizer="adam", groups=groups)
    found = {run.optimizer_of(mark).values["b1"] for mark in run.network.marks}
    assert found == {"9/10", "1/2"}
