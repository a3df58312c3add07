"""Activations made for a nonlinearity coefficient: one below 0.3 s, of 20 layers below 2 s."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.benchmarks.figures import figure
from tpcalc.meanfield.notation.architectures import Design, mlp
from tpcalc.practice.nlnorm import nlnorm
from tpcalc.practice.study_b import study_b

NAMES = ("relu", "tanh", "swish", "softplus")


@pytest.mark.parametrize("name", NAMES)
def test_one_activation(benchmark: Any, name: str) -> None:
    nlnorm(name, 1.06)
    start = time.perf_counter()
    benchmark.pedantic(lambda: nlnorm(name, 1.05), rounds=1)
    taken = time.perf_counter() - start
    figure("signal", f"nlnorm of {name}", taken)
    assert taken < 0.3


@pytest.mark.parametrize("name", NAMES)
def test_a_network(benchmark: Any, name: str) -> None:
    nlnorm(name, 3.1, network=mlp(20, Design(name)))
    start = time.perf_counter()
    benchmark.pedantic(lambda: nlnorm(name, 3, network=mlp(20, Design(name))), rounds=1)
    taken = time.perf_counter() - start
    figure("signal", f"nlnorm of {name} in 20 layers", taken)
    assert taken < 2


def test_study_b(benchmark: Any) -> None:
    assert len(benchmark.pedantic(study_b, rounds=1)) == 144
