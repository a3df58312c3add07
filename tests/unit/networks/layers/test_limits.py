"""Layers in the limit: beside networks of finite width, and kernels beside explicit programs."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pytest
from twins import Twins

import tpcalc as tp
from tpcalc.errors import TpcalcError
from tpcalc.training.parameterizations import lookup
from tpcalc.training.written import template_of

L = tp.layers


class Attention(tp.Network):
    axes: ClassVar[dict[str, int]] = {"p": 3}

    def __init__(self, t: Any, **given: Any) -> None:
        self.u, self.mix = t.linear(t.n, "in"), L.Attention(t, **given)
        self.v = t.linear(t.outputs, t.n)

    def forward(self, x: Any) -> Any:
        x = tp.tanh(self.u(x))
        return self.v(L.average_pool(tp.tanh(x + self.mix(x))))


class Gated(tp.Network):
    axes: ClassVar[dict[str, int]] = {"p": 4}

    def __init__(self, t: Any) -> None:
        self.cell, self.v = L.GRU(t, "in"), t.linear(t.outputs, t.n)

    def forward(self, x: Any) -> Any:
        return self.v(L.recur(self.cell, x))


class Convolution(tp.Network):
    axes: ClassVar[dict[str, int]] = {"p": 5}

    def __init__(self, t: Any) -> None:
        self.first = L.Conv(t, t.n, "in", variance="1/3")
        self.second = L.Conv(t, t.n, t.n, size=2, stride=2, padding="none")
        self.v = t.linear(t.outputs, t.n)

    def forward(self, x: Any) -> Any:
        return self.v(L.average_pool(tp.tanh(self.second(tp.relu(self.first(x))))))


class Maxima(Convolution):
    def forward(self, x: Any) -> Any:
        return self.v(L.max_pool(self.second(tp.relu(self.first(x)))))


class Dropped(tp.Network):
    def __init__(self, t: Any, law: str = "bernoulli", rate: float = 0.25) -> None:
        self.u, self.w = t.linear(t.n, "in"), t.linear(t.n, t.n)
        self.drop, self.v = L.Dropout(t, rate, law), t.linear(t.outputs, t.n)

    def forward(self, x: Any) -> Any:
        h = self.drop(tp.tanh(self.u(x)))
        return self.v(self.drop(tp.tanh(self.w(h))))


class Batch(tp.Network):
    axes: ClassVar[dict[str, int]] = {"b": 3}

    def __init__(self, t: Any) -> None:
        self.u, self.w, self.v = t.linear(t.n, "in"), t.linear(t.n, t.n), t.linear(t.outputs, t.n)
        self.norm = L.BatchNorm(t, eps=0.1)

    def forward(self, x: Any) -> Any:
        return self.v(tp.tanh(self.norm(self.w(tp.tanh(self.u(x))))))


NETWORKS = {
    "attention": tp.network(Attention),
    "causal heads": tp.network(Attention, heads=2, causal=True),
    "gru": tp.network(Gated),
    "convolution": tp.network(Convolution),
    "max pooling": tp.network(Maxima),
    "dropout": tp.network(Dropped),
    "gaussian dropout": tp.network(Dropped, law="gaussian"),
    "batch norm": tp.network(Batch),
}


def data_for(network: Any, rows: int = 2) -> tp.Samples:
    rng = np.random.default_rng(3)
    inputs = rng.standard_normal((rows, 2 * network.tokens)).tolist()
    targets = [(1.0,) * network.targets(), (-0.5,) * network.targets()] * rows
    return tp.Samples(tuple(map(tuple, inputs)), tuple(targets[:rows]))


@pytest.mark.parametrize("name", NETWORKS)
def test_the_limit_of_a_step_is_that_of_wide_networks(name: str) -> None:
    network = NETWORKS[name]
    program = tp.train(network, "mup", data_for(network), watch=())
    found = tp.limit(program, seed=0)
    compared = tp.compare(found, tp.simulate(program, [1024], seeds=16))
    rows = [row for row in compared.rows if row.statistic == "value"]
    assert len(rows) == 2 * network.targets()
    for row in rows:
        assert row.z is not None
        assert row.z <= 5, row
    assert all(abs(row.limit) > 1e-3 for row in rows if row.name.startswith("f[1"))


GRU = pytest.param("gru", marks=pytest.mark.slow)  # test_own_networks asks the same of a GRU


@pytest.mark.parametrize("name", ["attention", "convolution", GRU])
def test_the_kernel_of_inputs_is_that_of_the_program_with_them_written_out(name: str) -> None:
    network = NETWORKS[name]
    samples = data_for(network)
    program = tp.train(network, "ntk", samples, steps=0, batch=2, watch=())
    written = tp.kernel(program)
    found = tp.kernel(network, samples.inputs, scale=1)
    # Of particles the error is relative to the largest entry.
    bound = 5 * (found.error + written.error) + 1e-12
    for ours, theirs in ((found.nngp, written.nngp), (found.ntk, written.ntk)):
        assert ours is not None
        assert theirs is not None
        assert np.abs(ours - theirs).max() <= bound * np.abs(theirs).max()


@pytest.mark.torch
def test_the_tangent_kernel_of_a_convolution_is_that_of_a_wide_network() -> None:
    torch = pytest.importorskip("torch")
    conv = torch.nn.functional.conv1d

    def twin(p: Any, x: Any) -> Any:
        first = torch.relu(conv(x.T[None], p["first.map"].permute(2, 1, 0) / 3**0.5, padding=1))
        second = torch.tanh(conv(first, p["second.map"].permute(1, 2, 0), stride=2))
        return p["v"] @ second[0].mean(-1)

    samples = data_for(NETWORKS["convolution"])
    wanted = tp.kernel(Convolution, samples.inputs, scale=1).ntk
    assert wanted is not None
    Twins(Convolution, twin, 10).check_gradients()
    twins = Twins(Convolution, twin, 10, width=256)
    kernels = [tangent(twins, samples.inputs, seed) for seed in range(12)]
    error = np.std(kernels, axis=0) / len(kernels) ** 0.5
    assert (np.abs(np.mean(kernels, axis=0) - wanted) <= 5 * error + 0.01 * wanted.max()).all()


def tangent(twins: Twins, rows: Any, seed: int) -> Any:
    """The tangent kernel of one network of finite width, by autograd."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    leaves = {}
    for family, _ in twins.families:
        sizes = [size for _, size in family.axes]
        shape = (*sizes, *(twins.width for _ in family.width))
        draws = torch.randn(shape, generator=generator, dtype=torch.float64)
        leaves[family.name] = draws.requires_grad_()
    gradients = []
    for row in rows:
        f = twins.outputs_of(leaves, row).sum()
        parts = torch.autograd.grad(f, list(leaves.values()))
        gradients.append(torch.cat([part.reshape(-1) for part in parts]).numpy())
    return np.array(gradients) @ np.array(gradients).T


def test_scores_over_the_root_of_the_width_explode_after_a_step_in_mup() -> None:
    network = tp.network(Attention, scale="1/sqrt(d)")
    found = tp.limit(tp.train(network, "mup", data_for(network), watch=()), seed=0)
    assert found["f[0,0]"].value == 0
    with pytest.raises(TpcalcError, match="explodes"):
        print(found["f[1,0]"])


def test_masks_are_drawn_anew_for_every_input_and_step() -> None:
    network = tp.network(Dropped)
    program = tp.train(network, "mup", data_for(network), steps=2, batch=2, watch=())
    noises = {name for name in program.families if name.startswith("noise")}
    times = [(step, index) for step in range(3) for index in range(2)]
    assert noises == {f"noise{k}@{step},{i}" for k in (1, 2) for step, i in times}


def test_the_kernel_with_dropout_has_independent_masks_for_two_inputs() -> None:
    """E m = 1 for two inputs, E m^2 = 1 / (1 - p) for an input with itself."""
    inputs = [[1.0, 0.5], [-0.5, 1.0]]

    def net(t: Any, x: Any, rate: float) -> Any:
        return t.linear(t.outputs, t.n)(L.Dropout(t, rate)(tp.relu(t.linear(t.n, "in")(x))))

    bare, dropped = (tp.kernel(tp.network(net, rate=rate), inputs).nngp for rate in (0, 0.5))
    assert bare is not None
    assert dropped is not None
    np.testing.assert_allclose(dropped, bare * np.array([[2, 1], [1, 2]]), rtol=1e-10)


def test_weights_of_an_input_that_are_used_besides_have_no_kernel_by_inner_products() -> None:
    with pytest.raises(TpcalcError, match="also used without one"):
        tp.kernel(Tied, [[1.0, 0.0], [0.0, 1.0]])


def test_a_network_without_a_readout_has_all_its_layers_hidden() -> None:
    def net(t: Any, x: Any) -> Any:
        embed, w = L.Embedding(t), t.linear(t.n, t.n)
        return embed.readout(w(tp.tanh(embed(x))))

    network = tp.network(net)
    assert network.hidden == 2
    found = lookup("mup")
    text = str(template_of(network, found, 2, 1).program)
    assert "n^(-1/2)" in text  # that of a hidden layer, not the readout's 1/n


class Tied(tp.Network):
    axes: ClassVar[dict[str, int]] = {"p": 2}

    def __init__(self, t: Any) -> None:
        self.embed, self.w, self.mix = L.Embedding(t), t.linear(t.n, t.n), L.Attention(t, 2)

    def forward(self, x: Any) -> Any:
        h = self.embed(x)
        return self.embed.readout(h + self.w(tp.tanh(h + self.mix(h))))


def test_tied_weights_have_a_limit_and_are_checked() -> None:
    inputs = np.eye(3)[[[0, 1], [2, 0]]].reshape(2, -1).tolist()
    samples = tp.Samples(tuple(map(tuple, inputs)), ((1.0, 0.0, 0.0, 0.0, 0.5, 0.0),) * 2)
    program = tp.train(Tied, "mup", samples, watch=())
    wide = tp.simulate(program, [1024], seeds=16)
    compared = tp.compare(tp.limit(program, seed=0), wide)
    assert max(row.z for row in compared.rows if row.statistic == "value") <= 5
    assert tp.network(Tied).targets(3) == 6
    assert tp.check(Tied, "mup", steps=1).verdict == "feature-learning"


@pytest.mark.parametrize("name", ["attention", "gru"])
def test_networks_with_layers_learn_features_in_mup(name: str) -> None:
    assert tp.check(NETWORKS[name], "mup").verdict == "feature-learning"
