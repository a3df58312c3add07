"""Losses: the derivative belongs to the value, large outputs do not overflow, targets must fit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tpcalc.errors import StudyError, UnknownName
from tpcalc.functions import Fn, Par, derivative
from tpcalc.functions.tape import evaluate
from tpcalc.results import Samples
from tpcalc.training.losses import REGISTRY, lookup

COUNTS = {"mse": (1, 3), "linear": (1, 3), "logistic": (1,), "xent": (2, 3, 10)}
CASES = [(name, count) for name, counts in COUNTS.items() for count in counts]
PAIRS = st.tuples(st.floats(-30, 30), st.floats(-30, 30), st.floats(-30, 30))


def arguments(count: int) -> tuple[list[Par], list[Par]]:
    return [Par(k) for k in range(count)], [Par(count + k) for k in range(count)]


def value(name: str, outputs: list[float], targets: list[float]) -> float:
    expr = lookup(name).value(*arguments(len(outputs)))
    return float(evaluate(Fn(expr, 0, 2 * len(outputs)), [], [*outputs, *targets]))


def chi(name: str, outputs: list[float], targets: list[float]) -> list[float]:
    parts = lookup(name).chi(*arguments(len(outputs)))
    assert len(parts) == len(outputs)
    size = 2 * len(outputs)
    return [float(evaluate(Fn(part, 0, size), [], [*outputs, *targets])) for part in parts]


def targets_for(name: str, count: int, rng: np.random.Generator) -> list[float]:
    if name == "logistic":
        return [float(rng.choice([-1.0, 1.0]))]
    if name == "xent":
        return [float(entry) for entry in rng.dirichlet(np.ones(count))]
    return [float(entry) for entry in rng.normal(size=count)]


def test_every_loss_is_covered() -> None:
    assert set(COUNTS) == set(REGISTRY)


@pytest.mark.parametrize(("name", "count"), CASES)
def test_chi_is_the_derivative_of_the_value(name: str, count: int) -> None:
    rng = np.random.default_rng(5)
    for _ in range(5):
        outputs = [float(entry) for entry in rng.normal(scale=2, size=count)]
        targets = targets_for(name, count, rng)
        found = chi(name, outputs, targets)
        h = 1e-5
        for k in range(count):
            up = [f + h * (j == k) for j, f in enumerate(outputs)]
            down = [f - h * (j == k) for j, f in enumerate(outputs)]
            slope = (value(name, up, targets) - value(name, down, targets)) / (2 * h)
            assert found[k] == pytest.approx(slope, abs=1e-8)
            exact = derivative(lookup(name).value(*arguments(count)), Par(k))
            rule = evaluate(Fn(exact, 0, 2 * count), [], [*outputs, *targets])
            assert found[k] == pytest.approx(float(rule), rel=1e-12, abs=1e-13)


@pytest.mark.parametrize("big", [40.0, 750.0, 1e4])
def test_large_outputs_do_not_overflow(big: float) -> None:
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        assert value("logistic", [-big], [1.0]) == pytest.approx(big)
        assert value("logistic", [big], [1.0]) == pytest.approx(np.exp(-big), rel=1e-9)
        assert chi("logistic", [-big], [1.0]) == [pytest.approx(-1.0)]
        assert chi("logistic", [big], [1.0]) == [pytest.approx(0.0, abs=1e-15)]
        outputs = [big, 0.0, -big]
        assert value("xent", outputs, [0.0, 0.0, 1.0]) == pytest.approx(2 * big)
        assert value("xent", outputs, [1.0, 0.0, 0.0]) == pytest.approx(0.0, abs=1e-15)
        assert chi("xent", outputs, [0.0, 0.0, 1.0]) == pytest.approx([1, 0, -1], abs=1e-12)


@given(PAIRS)
def test_xent_is_minus_the_log_of_the_softmax(outputs: tuple[float, ...]) -> None:
    f = np.array(outputs)
    log_softmax = f - (f.max() + np.log(np.exp(f - f.max()).sum()))
    for k in range(3):
        target = [float(j == k) for j in range(3)]
        assert value("xent", list(outputs), target) == pytest.approx(-log_softmax[k], abs=1e-12)
        wanted = np.exp(log_softmax) - np.array(target)
        assert chi("xent", list(outputs), target) == pytest.approx(wanted, abs=1e-12)


@given(st.floats(-30, 30), st.sampled_from([-1.0, 1.0]))
def test_logistic_is_xent_of_two_classes(f: float, y: float) -> None:
    target = [float(y == 1), float(y == -1)]
    assert value("logistic", [f], [y]) == pytest.approx(value("xent", [f, 0.0], target), abs=1e-12)
    assert chi("logistic", [f], [y])[0] == pytest.approx(
        chi("xent", [f, 0.0], target)[0], abs=1e-12
    )


def test_values_by_hand() -> None:
    assert value("mse", [1.0, 2.0], [0.0, 4.0]) == 2.5
    assert chi("mse", [1.0, 2.0], [0.0, 4.0]) == [1.0, -2.0]
    assert value("linear", [1.0, 2.0], [5.0, 5.0]) == -3.0
    assert chi("linear", [7.0, 8.0], [5.0, 5.0]) == [-1.0, -1.0]
    assert value("logistic", [0.0], [1.0]) == pytest.approx(np.log(2))
    assert value("xent", [0.0] * 4, [1.0, 0, 0, 0]) == pytest.approx(np.log(4))


def test_many_classes_stay_small() -> None:
    parts = lookup("xent").chi(*arguments(100))
    assert max(len(part.text) for part in parts) < 40_000


def rows(*targets: tuple[float, ...]) -> Samples:
    return Samples(tuple((0.0,) for _ in targets), targets, "data.csv")


@pytest.mark.parametrize(
    ("name", "samples", "message"),
    [
        ("logistic", rows((1.0,), (0.0,)), r"target row 1 is 0.*2 \* class - 1"),
        ("logistic", rows((1.0, -1.0)), "takes one output; the data have 2"),
        ("xent", rows((1.0,)), "two or more; the data have one"),
        ("xent", rows((1.0, 0.0), (1.0, 1.0)), r"target row 1 is \(1, 1\)"),
        ("xent", rows((1.5, -0.5)), r"target row 0 is \(1.5, -0.5\)"),
    ],
)
def test_targets_that_do_not_fit(name: str, samples: Samples, message: str) -> None:
    with pytest.raises(StudyError, match=message) as caught:
        lookup(name).check(samples)
    assert caught.value.where == "data.csv" and caught.value.hint


@pytest.mark.parametrize(
    ("name", "samples"),
    [
        ("logistic", rows((1.0,), (-1.0,))),
        ("xent", rows((0.0, 1.0), (0.333, 0.667))),
        ("mse", rows((3.0, -2.0))),
        ("linear", rows((3.0,))),
    ],
)
def test_targets_that_fit(name: str, samples: Samples) -> None:
    lookup(name).check(samples)


def test_names() -> None:
    assert lookup("cross_entropy") is lookup("xent")
    assert lookup(lookup("mse")) is lookup("mse")
    with pytest.raises(UnknownName, match="'mse'"):
        lookup("msee")
