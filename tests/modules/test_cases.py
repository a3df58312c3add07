"""Exponents of the cases beside networks: what each parameter does to the output."""

from __future__ import annotations

import pytest
import torch

from modules.case import Case
from modules.cases import CASES
from modules.slopes import slopes, terms

pytestmark = pytest.mark.torch
TOLERANCE = 0.1


def test_every_case_takes_its_step() -> None:
    for case in CASES.values():
        found = terms(case, 64, seed=0)
        assert {*case.output, *case.update} <= {*found}, case.name
        assert torch.tensor([*found.values()]).isfinite().all(), case.name
        zero = {name for name, power in case.output.items() if power == -torch.inf}
        assert all((value == 0) is (name in zero) for name, value in found.items()), case.name


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_slopes(case: Case) -> None:
    found = slopes(case)
    for name, power in case.output.items():
        low, high = power if isinstance(power, tuple) else (power, power)
        slope, last = found[name]
        said = f"{name}: {slope:.3f}, last octave {last:.3f}, expected {power}"
        assert slope == power or low - TOLERANCE <= slope <= high + TOLERANCE, said
