"""Read points of modules name the lines of the modules."""

from __future__ import annotations

import re
from inspect import getsourcelines

import pytest

import tpcalc as tp

torch = pytest.importorskip("torch")
from torch import Tensor, nn  # noqa: E402

pytestmark = pytest.mark.torch


class Skipping(nn.Module):
    def __init__(self, n: int) -> None:
        super().__init__()
        self.enter, self.inner, self.read = nn.Linear(3, n), nn.Linear(n, n), nn.Linear(n, 2)

    def forward(self, x: Tensor) -> Tensor:
        h = self.enter(x)
        h = h + self.inner(torch.tanh(h))
        return self.read(torch.relu(h))


def test_points_name_lines_of_the_module() -> None:
    found = tp.first_order(Skipping, inputs=torch.ones(2, 3), optimizer="sgd(lr=0.1)", verify=False)
    first = getsourcelines(Skipping.forward)[1]
    lines = [int(line) for point in found.points for line in re.findall(r"\.py:(\d+)", point.name)]
    assert len(lines) == len(found.points)
    # What a function reads is named where it is written: by its map, or as the sum with the skip.
    assert lines == [first + 1, first + 2, first + 3, first + 3]
