"""Laws of entries that start a module: what counts as Gaussian, and what is refused."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

import tpcalc as tp
from tpcalc.errors import TraceError

pytestmark = pytest.mark.torch
X = torch.ones(2, 4)


def square(init_: Callable[[torch.Tensor], object]) -> Callable[[int], nn.Module]:
    def make(n: int) -> nn.Module:
        module = nn.Sequential(nn.Linear(4, n), nn.Linear(n, n, bias=False), nn.Linear(n, 1))
        with torch.no_grad():
            init_(module[1].weight)
        return module

    return make


def test_matrices_that_are_no_draws_are_refused_unless_they_are_declared() -> None:
    eye = square(nn.init.eye_)
    with pytest.raises(TraceError, match="identity: its entries are not independent"):
        _ = tp.torch.network(eye, X).smallest
    declared = tp.torch.network(eye, X, init={"1.weight": "n^(-1/2)"})
    assert "init n^(-1/2)" in str(declared)


def test_uniform_entries_count_as_gaussian_and_are_named() -> None:
    made = tp.torch.network(square(nn.init.orthogonal_), X)
    assert "orthogonal" in str(made)
    (note,) = (note for note in made.notes if "count as Gaussian" in note)
    assert note.startswith("entries that start uniform ")
