"""Training as blocks, and of the network cell by cell: two ways to the same numbers."""

from __future__ import annotations

from fractions import Fraction
from itertools import cycle
from typing import Any

import numpy as np
import pytest
from agreements.optimizer_networks import heads
from agreements.own_networks import NETWORKS

import tpcalc as tp
from tpcalc.networks.network import slots
from tpcalc.networks.own import as_network
from tpcalc.passes.split import split
from tpcalc.passes.template import Template
from tpcalc.training import training
from tpcalc.training.parameterizations import lookup


@tp.network(axes={"p": 3})
def shared_bias(t: Any, x: Any) -> Any:
    """The gradient of the bias is a sum over tokens, in which a part is the same for all."""
    h = t.linear(t.n, "in", name="u")(x) + t.vector("b")
    y = h + t.linear(t.n, t.n, name="w")(tp.tanh(h))
    return t.linear(t.outputs, t.n, name="r")(t.sum(y, "p"))


@tp.network(axes={"p": 3})
def gained(t: Any, x: Any) -> Any:
    h = t.linear(t.n, "in", name="u", bias=True)(x)
    y = t.gain("g") * h + tp.tanh(h) + h
    return t.linear(t.outputs, t.n, name="r", bias=True)(t.sum(y, "p"))


@tp.network(axes={"p": 3})
def at_tokens_and_sums(t: Any, x: Any) -> Any:
    """One matrix at every token, at their sum, and transposed at one of them."""
    w = t.linear(t.n, t.n, name="w")
    h = w(tp.tanh(t.linear(t.n, "in", name="u")(x)))
    y = w(tp.tanh(t.sum(h, "p"))) + w.T(h.at(p=1))
    return t.linear(t.outputs, t.n, name="r")(tp.tanh(y))


@tp.network(axes={"p": 2})
def attending(t: Any, x: Any) -> Any:
    """Rows of scores for each of two heads of one query for all."""
    h = t.linear(t.n, "in", name="u")(x)
    h = h + tp.layers.Attention(t, 2, dim=t.n, causal=True, name="mix")(h)
    return t.linear(t.outputs, t.n, name="r")(t.sum(tp.tanh(h), "p"))


@tp.network(axes={"p": 3})
def shared_rows(t: Any, x: Any) -> Any:
    """Rows of vectors, coordinate by coordinate, and rows that one sum of scores shares."""
    h = t.linear(t.n, "in", name="u")(x)
    gates = tp.softmax(t.linear(t.n, t.n, name="g")(h), along="p")
    shares = tp.softmax(t.linear(1, t.n, name="s")(gates * h), along="p")
    return t.linear(t.outputs, t.n, name="r")(tp.tanh(t.sum(shares * h, "p")))


OWN = {
    net.name: net
    for net in (shared_bias, gained, at_tokens_and_sums, heads, attending, shared_rows)
}
OWN |= {name: as_network(net) for name, (net, _) in NETWORKS.items()}


# A loss enters through its slopes at the outputs alone, of which each network is given one.
@pytest.mark.parametrize(("name", "loss"), [*zip(OWN, cycle(("mse", "linear")))])
def test_blocks_are_trained_as_their_cells(
    name: str, loss: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    net = OWN[name]
    rng = np.random.default_rng(7)
    data = tp.Samples(rng.standard_normal((3, 2 * net.tokens)), rng.standard_normal((3, 1)))
    settings: dict[str, Any] = {
        "steps": 2,
        "batch": 2,
        "lr": Fraction(1, 4),
        "loss": loss,
        "queries": data.inputs[2:],
        "watch": ("dW_x", "dB"),
    }
    program = tp.train(net, "ntk", data, **settings)
    whole = training.network_program(net, lookup("ntk"), data.dimension, 1)
    cells = Template(split(whole), slots(net, data.dimension))
    monkeypatch.setattr(training, "Template", lambda *given: cells)
    other = tp.train(net, "ntk", data, **settings)
    assert len(program.nodes) <= len(other.nodes), "adjoints that are 0 are not written"
    found, wanted = (
        {(row.name, row.statistic): row.values for row in finite.rows}
        for finite in (
            tp.simulate(one, widths=[9], seeds=2, backend="dense") for one in (program, other)
        )
    )
    assert found.keys() == wanted.keys()
    for key, values in wanted.items():
        np.testing.assert_allclose(found[key], values, rtol=1e-9, atol=1e-12, err_msg=str(key))
