"""Spreads over draws of shared biases, and growth of lengths where the activation jumps."""

from __future__ import annotations

import math

import numpy as np
import pytest
from layered import Dense, Input, SharedBias, chain

from tpcalc.activations.entries import atom
from tpcalc.functions import Var
from tpcalc.integrals.activation_moments import square_growth
from tpcalc.integrals.bounded import Bounded
from tpcalc.signal import spread


def test_the_standard_error_of_a_deviation_is_that_of_many_runs() -> None:
    graph = chain(Input(1, 0), [Dense(1, rank=0.25), SharedBias(0.4, 0.25)])
    found = [spread(graph, draws=100, seed=seed)[-1].deviation for seed in range(40)]
    scatter = np.std([one.value for one in found], ddof=1)
    assert np.mean([one.stderr for one in found]) == pytest.approx(scatter, rel=0.4)


@pytest.mark.parametrize("edge", [0.5, 1.0, -0.7])
def test_growth_of_a_length_behind_a_jump(edge: float) -> None:
    """E step(s - a)^2 is the chance that s > a: its derivative by the variance is a phi / 2q."""
    q = 2.0
    tau = atom("step")(Var(0) - edge)
    z = edge / math.sqrt(q)
    wanted = z * math.exp(-(z**2) / 2) / math.sqrt(2 * math.pi) / (2 * q)
    found = square_growth(tau, Bounded(q))
    assert found.value == pytest.approx(wanted, rel=1e-9)
