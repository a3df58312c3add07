"""Standard errors that cover, functions that jump, and functions that are none."""

from __future__ import annotations

from collections.abc import Callable
from math import exp, inf, isfinite, sqrt
from typing import Any

import numpy as np
import pytest

from tpcalc.errors import EvaluationError, UsageError
from tpcalc.nonlinearity.tensors.coefficient import measured_nlc as nlc
from tpcalc.nonlinearity.tensors.coefficient import single_batch_nlc
from tpcalc.nonlinearity.tensors.functions import tapped
from tpcalc.nonlinearity.tensors.layers import layer_metrics

torch = pytest.importorskip("torch")
SINE = sqrt(25 * (1 + exp(-50)) / (1 - exp(-50)))


def inputs(count: int, features: int, seed: int = 0) -> Any:
    return torch.tensor(np.random.default_rng(1000 + seed).standard_normal((count, features)))


@pytest.mark.parametrize(
    ("function", "truth"),
    [(lambda x: torch.sin(5 * x), SINE), (lambda x: x**2, sqrt(2)), (lambda x: 3 * x, 1.0)],
)
@pytest.mark.parametrize("way", ["backward", "forward", "single"])
def test_standard_errors_are_those_of_the_scatter(
    function: Callable[[Any], Any], truth: float, way: Any
) -> None:
    z = []
    for seed in range(25):
        x = inputs(400, 3, seed)
        found = (
            single_batch_nlc(function, x, seed=seed)
            if way == "single"
            else nlc(function, x, seed=seed, estimator=way).nlc
        )
        z.append((found.value - truth) / found.stderr if found.stderr > 1e-12 else 0.0)
    if max(map(abs, z)) > 0:
        assert 0.6 < np.std(z) < 1.5
    assert abs(np.mean(z)) < 0.8
    assert max(map(abs, z)) < 5


@pytest.mark.parametrize(
    "function",
    [
        lambda x: torch.sign(x),
        lambda x: x + torch.sign(x),
        lambda x: torch.round(5 * x),
        lambda x: torch.tanh(1e6 * x),
    ],
)
def test_a_function_that_moves_farther_than_its_slopes_has_no_error(
    function: Callable[[Any], Any],
) -> None:
    found = nlc(function, inputs(500, 5))
    assert found.nlc.stderr == inf
    assert any("jumps" in note for note in found.notes)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: torch.relu(x),
        lambda x: torch.sin(1e4 * x),
        lambda x: torch.exp(x),
        lambda x: 1 + 1e-12 * x,
        lambda x: x.float() + 1e4,
    ],
)
def test_a_continuous_function_keeps_its_error(function: Callable[[Any], Any]) -> None:
    assert isfinite(nlc(function, inputs(500, 5)).nlc.stderr)


def test_dropout_in_training_mode_is_refused() -> None:
    module = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Dropout(0.5)).double()
    with pytest.raises(UsageError, match="training mode"):
        nlc(module, inputs(50, 3))
    with pytest.raises(UsageError, match="training mode"):
        layer_metrics(tapped(module), inputs(50, 3))
    assert nlc(module.eval(), inputs(50, 3)).nlc.value == pytest.approx(1, abs=0.2)


def test_a_random_function_is_refused() -> None:
    with pytest.raises(EvaluationError, match="from run to run"):
        nlc(lambda x: x + torch.randn_like(x), inputs(50, 3))


@pytest.mark.parametrize("way", ["backward", "forward"])
def test_operations_in_place_change_nothing(way: Any) -> None:
    x = inputs(300, 3)
    kept = x.clone()
    found = [
        nlc(torch.nn.ReLU(inplace=inplace), x, estimator=way).nlc.value for inplace in (False, True)
    ]
    assert found[0] == found[1]
    assert torch.equal(x, kept)


def test_layers_in_place_do_not_overwrite_the_layer_below() -> None:
    linear = torch.nn.Linear(3, 4).double()
    rows = [
        layer_metrics(tapped(torch.nn.Sequential(linear, torch.nn.ReLU(inplace=i))), inputs(300, 3))
        for i in (False, True)
    ]
    assert [row.nlc.value for row in rows[0]] == [row.nlc.value for row in rows[1]]


def test_failures_of_torch_are_told_in_words() -> None:
    with pytest.raises(EvaluationError, match="float64"):
        nlc(torch.nn.Linear(3, 2).float(), inputs(20, 3))
    norm = torch.nn.BatchNorm1d(3).double()
    with pytest.raises(EvaluationError, match="batch"):
        nlc(norm, inputs(20, 3), batch=1)
    with pytest.raises(EvaluationError, match="complex"):
        nlc(lambda x: x * 1j, inputs(20, 3))


def test_scales_at_the_ends_of_floats() -> None:
    x = inputs(300, 3)
    plain, small = nlc(lambda x: x, x).nlc, nlc(lambda x: x, x * 1e-100).nlc
    assert small.stderr == pytest.approx(plain.stderr, rel=1e-9)
    with pytest.raises(UsageError, match="leave the range"):
        nlc(lambda x: x, x * 1e-200)
    with pytest.raises(EvaluationError, match="below the range"):
        nlc(lambda x: 1e-200 * x, x)
