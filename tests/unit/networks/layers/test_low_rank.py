"""Maps of low rank: what they are at the start, in every question."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import tpcalc as tp
from tpcalc.errors import TraceError
from tpcalc.signal import Input, layers, nlc, propagate

FAMILIES = ("gaussian", "orthogonal", "gaussian-gaussian", "padded")
QUARTER = Fraction(1, 4)


class Net(tp.Network):
    """A wide map of low rank between an input map and an activation."""

    def __init__(self, t: Any, family: str = "gaussian", bias: str = "", wide: int = 1) -> None:
        dim = t.n if wide == 1 else t.dim("m", wide)
        self.u, self.v = t.linear(t.n, "in"), t.linear(t.outputs, dim)
        factors = (2, Fraction(1, 2))
        self.w = tp.layers.LowRank(t, dim, t.n, QUARTER, family, bias, factors)

    def forward(self, x: Any) -> Any:
        return self.v(tp.tanh(self.w(self.u(x))))


@pytest.mark.parametrize("wide", [1, 2])
@pytest.mark.parametrize("bias", ["", "span"])
@pytest.mark.parametrize("family", FAMILIES)
def test_the_state_is_that_of_full_rank_with_smaller_variances(
    family: str, bias: str, wide: int
) -> None:
    """Both variances times the rank: 4 / 4 of the weights, 1 / 4 / 4 of the biases."""

    def full(t: Any, x: Any) -> Any:
        h = t.linear(t.n, t.n)(t.linear(t.n, "in")(x))
        h = h + QUARTER * t.vector("b") if bias else h
        return t.linear(t.outputs, t.n)(tp.tanh(h))

    start = Input(Fraction(3, 2), Fraction(1, 3))
    net = tp.network(Net, family=family, bias=bias, wide=wide)
    # What the readout reads: it divides by n, however wide that is.
    found, wanted = propagate(net, inputs=start)[-2], propagate(full, inputs=start)[-2]
    assert found.square.value == pytest.approx(wanted.square.value, rel=1e-12)
    assert found.gap.value == pytest.approx(wanted.gap.value, rel=1e-12)
    assert found.log_gradient.value == pytest.approx(wanted.log_gradient.value, abs=1e-12)
    assert nlc(net, inputs=start).value == pytest.approx(nlc(full, inputs=start).value, rel=1e-12)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_state_is_the_limit_of_the_network(family: str) -> None:
    """The kernel of the network, whose program holds Haar matrices and masks."""
    net = tp.network(Net, family=family, bias="span")
    rows = np.array([[1.0, 0.5, -0.3], [0.2, -1.1, 0.9]])
    kernel = tp.kernel(net, rows, kinds="nngp")
    found = tp.signal.covariance(net, rows @ rows.T / 3)
    assert np.abs(found.values - kernel.nngp).max() < 5 * np.max(kernel.error) + 1e-11


def test_one_bias_for_all_directions_does_not_self_average() -> None:
    found = tp.signal.spread(tp.network(Net, bias="shared"), draws=400, seed=2)
    own = found[4]  # C (A x + b): 1 + b^2 / 4, where b^2 has the mean 1 / 4
    assert abs(own.mean.value - (1 + 1 / 16)) < 5 * own.mean.stderr
    assert abs(own.deviation.value - 2**0.5 / 16) < 5 * own.deviation.stderr


def test_masks_keep_some_coordinates() -> None:
    layer = layers(tp.network(Net, family="padded")).layers[2]
    assert layer.operation.name == "gain"
    own = propagate(tp.network(Net, family="padded"))
    assert own[2].square.value == pytest.approx(own[1].square.value / 4, rel=1e-12)


@pytest.mark.parametrize("family", FAMILIES)
def test_it_is_trained_as_any_map(family: str) -> None:
    net = tp.network(Net, family=family, bias="span")
    assert {mark.label for mark in net.marks} >= {"w.left", "u", "v"}
    assert tp.check(net, "mup", steps=1).verdict in ("feature-learning", "undecided")


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda t: tp.layers.LowRank(t, t.n, t.n, 0), "the rank of a map to 'n' is 0"),
        (lambda t: tp.layers.LowRank(t, t.n, t.n, "3/2"), "the rank of a map to 'n' is 3/2"),
        (lambda t: tp.layers.LowRank(t, "m", t.n, 0.5), "the rank of a map to 'm' is 0.5"),
        (lambda t: tp.layers.LowRank(t, t.n, t.n, 0.5, "haar"), "the family of LowRank is 'haar'"),
        (lambda t: tp.layers.LowRank(t, t.n, t.n, 0.5, bias="all"), "the bias of LowRank is 'all'"),
        (
            lambda t: tp.layers.LowRank(t, t.dim("w", 4), t.n, 0.5, "orthogonal"),
            "the rank is 2 n, more than the 1 n coordinates that orthogonal weights read",
        ),
    ],
)
def test_what_is_no_map_of_low_rank(made: Any, said: str) -> None:
    def net(t: Any, x: Any) -> Any:
        return t.linear(t.outputs, t.n)(made(t)(t.linear(t.n, "in")(x)))

    with pytest.raises(TraceError, match=said):
        nlc(net)
