"""A module of torch and the network that is read of it are one function, gradients included."""

from __future__ import annotations

import functools

import pytest
import torch
from modules import EXPORTS, ROWS, Row, row
from torch import nn

from tpcalc.testing import assert_same_numbers

pytestmark = pytest.mark.torch
# Dropout draws, and a top-k chooses by data: neither is the function that is read.
DIFFERENT = ("GPT by hand, dropout", "experts, two by scatter")
SOME = (
    "GPT, cut by view and index", "ResNet with BatchNorm, stride and 1x1", "two inputs",
    "selective scan in a loop", "Llama block, two key heads, expand",
)  # fmt: skip
REFUSED = ("weight norm",)


class Between(nn.Module):
    """A layer between widths, with a map before it and one after it."""

    def __init__(self, make: object, n: int) -> None:
        super().__init__()
        self.enter, self.layer, self.leave = nn.Linear(6, n), make(n), nn.Linear(n, 3)

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        return self.leave(self.layer(*map(self.enter, inputs)))


def check(one: Row) -> None:
    make, inputs = one.make, one.inputs
    read = one.inputs(48)
    if isinstance(read, tuple) and any(48 in value.shape for value in read):
        make = functools.partial(Between, one.make)
        torch.manual_seed(0)
        inputs = tuple(torch.randn(*value.shape[:-1], 6) for value in read)
    widths = (48, 96, 144) if "Llama" in one.name else (64, 128, 192)
    # Angles that a module rounds to single precision are rounded once when they are given.
    tolerance = 1e-6 if one.name == "Llama block, head size growing" else 1e-10
    assert_same_numbers(make, inputs, tolerance, widths=widths)


@pytest.mark.parametrize("name", SOME)
def test_a_module_and_its_network_agree(name: str) -> None:
    check(row(name))


@pytest.mark.slow
@pytest.mark.parametrize(
    "one", [one for one in ROWS if one.kind == EXPORTS
            and one.name not in (*DIFFERENT, *REFUSED, *SOME)], ids=lambda one: one.name
)  # fmt: skip
def test_every_module_and_its_network_agree(one: Row) -> None:
    check(one)
