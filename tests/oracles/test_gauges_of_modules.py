"""Recipes of modules in other gauges are one program of training."""

from __future__ import annotations

import pytest
from modules.case import Case
from modules.cases import CASES

import tpcalc as tp

pytestmark = pytest.mark.torch


def run_of(case: str) -> tp.Training:
    own: Case = CASES[case]
    return tp.torch.training(own.make, own.inputs, optimizer=own.optimizer, steps=2)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [("3", "4", True), ("10", "11", True), ("10", "12", True), ("10", "13", False)],
)
def test_gauges_are_one_program(one: str, other: str, same: bool) -> None:
    found = tp.equivalent(run_of(one), run_of(other), outputs=["f[2,0]"], widths=())
    assert (found.in_the_limit == "same graph") == same
