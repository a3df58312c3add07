"""What is suggested, applied: the same modules learn in all parameters, by their first steps."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch
from modules.cases import CASES
from torch import nn

import tpcalc as tp
from tpcalc.errors import UsageError
from tpcalc.results import Suggestion
from tpcalc.testing import assert_learns

pytestmark = pytest.mark.torch
LR = 1e-3


def suggested(case: str, **settings: Any) -> Suggestion:
    own = CASES[case]
    return tp.suggest(own.make, own.inputs, optimizer=own.optimizer, **settings)


def check_learns(case: str, found: Suggestion, **written: Any) -> None:
    """Apply rates and inits, and what is written by hand."""
    own = CASES[case]
    kind: Any = type(own.optimizer(own.make(64), 64))

    def make(n: int) -> nn.Module:
        model: nn.Module = partial(own.make, **written)(n)
        tp.torch.init_(model, found)
        return model

    def optimizer(model: nn.Module, n: int) -> torch.optim.Optimizer:
        return kind(tp.torch.param_groups(model, found, LR))

    assert_learns(make, own.inputs, optimizer=optimizer)


def changes(found: Suggestion) -> dict[str, tuple[str, str]]:
    """The powers of rates and before starts, of parameters that are not right."""
    return {row.name: (str(row.rate), str(row.start)) for row in found.rows if not row.is_right}


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        ("13", {"h1.weight": ("-1", "0"), "h2.weight": ("-1", "0")}),
        ("17", {"inp.weight": ("0", "0")}),
        ("14", {"out.weight": ("-1", "-1/2")}),
    ],
)
def test_rates_and_inits_that_are_suggested_make_all_learn(
    case: str, expected: dict[str, tuple[str, str]]
) -> None:
    found = suggested(case)
    assert changes(found) == expected
    assert not found.factors
    check_learns(case, found)


@pytest.mark.slow
@pytest.mark.parametrize("case", ["1", "5", "8", "43"])
def test_inits_and_rates_change_together(case: str) -> None:
    found = suggested(case)
    assert changes(found)["out.weight"][1] == "-1/2"
    check_learns(case, found)


def test_what_is_right_is_left_alone() -> None:
    found = suggested("10")
    assert found.is_right
    assert "Nothing to change" in str(found)
    assert found.rates(1024)["h1.weight"] == 0.25  # as it is


def test_recipes_in_other_gauges_are_right() -> None:
    assert all(suggested(case).is_right for case in ("4", "12"))


@pytest.mark.slow
def test_scores_that_explode_are_scaled_where_they_are_read() -> None:
    found = suggested("25")
    assert changes(found) == {}
    assert [(own.what, own.line, str(own.power)) for own in found.factors] == [
        ("argument of softmax", "parametrized.py:113", "-1/2")
    ]
    check_learns("25", found, score=1.0)


@pytest.mark.slow
def test_a_transformer_with_rates_over_n_is_set_right() -> None:
    found = suggested("28")
    assert changes(found)["head.weight"] == ("-1", "-1/2")
    assert {str(row.rate) for row in found.rows if "emb" in row.name or "ln" in row.name} == {"0"}
    check_learns("28", found, score=1.0)


@pytest.mark.slow
def test_rates_alone_leave_inits_and_code_as_they_are() -> None:
    found = suggested("28", rates_only=True)
    assert not found.factors
    assert all(str(row.start) == "0" for row in found.rows)
    check_learns("28", found)


class Fused(nn.Module):
    """Attention from one matrix for queries, keys and values."""

    def __init__(self, n: int) -> None:
        super().__init__()
        self.inp, self.qkv = nn.Linear(3, n, bias=False), nn.Linear(n, 3 * n, bias=False)
        self.out = nn.Linear(n, 2, bias=False)
        nn.init.zeros_(self.out.weight)

    def forward(self, x: torch.Tensor) -> Any:
        q, k, v = self.qkv(self.inp(x)).chunk(3, -1)
        return self.out((q @ k.mT / q.shape[-1]).softmax(-1) @ v)


def test_parts_of_a_parameter_share_a_rate_and_lines_are_told() -> None:
    def optimizer(model: nn.Module, n: int) -> torch.optim.Optimizer:
        return torch.optim.AdamW(model.parameters(), lr=LR)

    found = tp.suggest(Fused, torch.ones(2, 4, 3), optimizer=optimizer, base=64, width=1024)
    row = found["qkv.weight"]
    assert (str(row.rate), row.per) == ("-1", 3.0)
    assert row.script.startswith("test_suggest.py:")
    assert row.group == "AdamW group 0"
    shown = str(found)
    assert "x 1/16" in shown
    assert row.script in shown
    groups = tp.torch.param_groups(Fused(128), found, LR, weight_decay=0.1)
    rates = {len(own["params"]): own["lr"] for own in groups}
    assert rates == {1: LR, 2: LR / 2}


def test_a_model_whose_width_is_not_known_is_refused() -> None:
    found = suggested("13")
    model = nn.ModuleDict({"inp": nn.Linear(16, 64), "h1": nn.Linear(128, 128)})
    with pytest.raises(UsageError, match=r"64 by inp\.weight, 128 by h1\.weight"):
        tp.torch.init_(model, found)
