"""Advice on 50 layers: below 3 s in the limit, below 30 s with networks of width 500."""

from __future__ import annotations

import time

import pytest

import tpcalc as tp
from tests.benchmarks.figures import figure

s = tp.signal


@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_advice(activation: str) -> None:
    s.advise(s.mlp(3, s.Design(activation)))
    start = time.perf_counter()
    found = s.advise(s.mlp(50, s.Design(activation, 2)))
    figure("signal", f"advice on 50 layers with {activation}", time.perf_counter() - start)
    assert found.changes


@pytest.mark.torch
def test_advice_with_networks() -> None:
    start = time.perf_counter()
    found = s.advise(s.mlp(50, s.Design("relu", 2)), widths=[500], seeds=2)
    name = "advice on 50 layers with two networks of width 500"
    figure("signal", name, time.perf_counter() - start)
    assert found.widths == (500,)
