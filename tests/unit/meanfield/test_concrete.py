"""Metrics with a hat: the recursion at the norms that concrete parameters have."""

from __future__ import annotations

import pytest
from layered import Input

from tpcalc.errors import UsageError
from tpcalc.meanfield.concrete import concrete
from tpcalc.meanfield.network import network_of
from tpcalc.meanfield.notation.architectures import Design, mlp, resnet
from tpcalc.meanfield.reading import propagate


def test_S4_26_a_trained_network_has_other_variances() -> None:
    graph = resnet(2, Design("tanh", 1.5, 0.1, "layer"), Input(1, 0.2))
    network = network_of(graph, 300, 300)
    before = propagate(graph)[-1].square.value
    assert propagate(concrete(graph, network))[-1].square.value == pytest.approx(before, rel=0.05)
    network.parameters["h1"].mul_(3.0)
    network.parameters["h5"].zero_()
    after = concrete(graph, network)
    assert after.last == graph.last - 1
    assert propagate(after)[1].square.value == pytest.approx(9 * 1.5, rel=0.05)


def test_S4_26_low_rank_counts_by_its_norm() -> None:
    graph = mlp(1, Design("relu", 4, rank=0.25))
    found = concrete(graph, network_of(graph, 400, 400))
    assert propagate(found)[2].square.value == pytest.approx(1.0, rel=0.1)  # C (A x)


def test_S4_26_torch_modules_in_order() -> None:
    from torch import nn

    module = nn.Sequential(nn.Linear(20, 20), nn.Tanh(), nn.Linear(20, 20, bias=False))
    graph = mlp(1, Design("tanh", 1, 0.5))
    assert concrete(graph, module).last == graph.last
    with pytest.raises(UsageError, match="weights for fewer layers"):
        concrete(mlp(2, Design("tanh")), module)
    with pytest.raises(UsageError, match="more linear layers or biases"):
        concrete(mlp(1, Design("tanh")), module)
