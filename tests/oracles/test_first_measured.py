"""First steps of explicit networks: closed forms, agreement with powers, and what is asked wrongly.

Sizes over seeds are geometric means, with the standard errors that they have.
"""

from __future__ import annotations

import math
from typing import Any

import pytest

import tpcalc as tp
from tests.networks_in_use import GPT, MoE
from tpcalc.errors import UsageError
from tpcalc.results import FirstOrder, MeasuredSize

Z = 5
WIDTHS = (64, 128, 256)
DATA = tp.Samples(((3.0, 4.0),), ((1.0,),))
LENGTH = 5.0


@tp.network
def linear(t: Any, x: Any) -> Any:
    """A hidden layer of independent Gaussian coordinates, of the length of the input."""
    return t.linear(t.outputs, t.n, name="v")(t.linear(t.n, "in", name="u")(x))


def near(told: MeasuredSize | None, *sizes: float) -> None:
    """Sizes within their errors, and a bias of the logarithm of 1/n."""
    assert told is not None
    for n, found, error, size in zip(told.widths, told.sizes, told.errors, sizes, strict=True):
        assert abs(math.log(found / size)) < Z * error + 2 / n, (n, found, size)


def test_terms_of_sign_descent_are_absolute_values() -> None:
    """Of the readout sum |h| / n, of an input weight the same sum times the input."""
    found = tp.first_order(linear, "mup", DATA, optimizer="adam", measure=WIDTHS)
    mean = math.sqrt(2 / math.pi)
    near(found["v"].measured, *[LENGTH * mean] * 3)
    near(found["u"].measured, *[7.0 * mean] * 3)  # |3| + |4|
    (h,) = (point for point in found.points if point.name.startswith("x[v]"))
    near(h.start, *[LENGTH] * 3)
    near(h.moved, *[7.0] * 3)
    assert h.by == "u"
    assert [row.measured.word for row in found.rows if row.measured] == ["agrees", "agrees"]


def test_terms_of_gradient_descent_are_squares() -> None:
    """Under ntk sum h^2 / n, and at a rate of 1/10 a tenth of it."""
    found = tp.first_order(linear, "ntk", DATA, lr="1/10", measure=WIDTHS)
    near(found["v"].measured, *[LENGTH**2 / 10] * 3)
    near(found["u"].measured, *[LENGTH**2 / 10] * 3)
    (h,) = (point for point in found.points if point.name.startswith("x[v]"))
    near(h.moved, *[LENGTH**2 / 10 / math.sqrt(n) for n in WIDTHS])


def test_values_are_told_at_a_width() -> None:
    """Under the standard parameterization the readout adds lr |x|^2 n: 2.5 at n = 1, .4 at .16."""
    found = tp.first_order(linear, "standard", DATA, lr="1/1000", width=4096)
    told = found["v"].measured
    assert (found.width, found.word, told and told.word) == (4096, "output grows", "agrees")
    assert told is not None and told.value is not None and told.one is not None
    assert told.value == pytest.approx(0.025 * 4096, rel=0.1)
    assert told.one == pytest.approx(40, rel=0.1)
    assert tp.first_order(linear, "standard", DATA, measure=WIDTHS).width == 1024


def test_what_is_0_is_0_in_networks() -> None:
    found = tp.first_order(tp.network(MoE, head="0"), "mup", optimizer="adam", measure=(32, 64))
    told = found["up"].measured
    assert told is not None
    assert (told.sizes, told.slope, told.word, told.value) == ((0.0, 0.0), None, "agrees", None)


def test_steps_of_whole_parameters_and_of_none_are_not_measured() -> None:
    """Under Muon matrices have none, vectors those of Adam."""
    asked: dict[str, Any] = {"measure": (16, 32), "seeds": 3}
    found = tp.first_order(tp.MLP(2, "tanh"), "mup", optimizer="muon", **asked)
    assert [row.name for row in found.rows if row.measured is None] == ["W2"]
    assert all(own.start is not None for own in found.points)
    coupled = tp.first_order(tp.MLP(2, "tanh"), "mup", optimizer="adam(decay=0.1)", **asked)
    assert [row.measured for row in coupled.rows] == [None] * 3
    assert tp.first_order(tp.MLP(2, "tanh"), "mup", lr=0, **asked).rows == ()


def test_networks_of_a_seed_are_the_same() -> None:
    both = [
        tp.first_order(tp.MLP(1, "relu"), "mup", measure=(16, 32), seeds=3, seed=seed)
        for seed in (7, 7, 8)
    ]
    assert both[0].rows == both[1].rows != both[2].rows


def test_symbols_have_numbers() -> None:
    found = tp.first_order(tp.MLP(1, "tanh"), "ac:0,a;0", at={"a": 0.5}, measure=(64, 256))
    assert {row.measured.word for row in found.rows if row.measured} == {"agrees"}


def test_widths_are_those_that_sizes_allow() -> None:
    """Of a network with n/3 neurons beside n."""

    @tp.network
    def net(t: Any, x: Any) -> Any:
        t.dim("m", "1/3")
        h = tp.tanh(t.linear("m", t.n)(tp.tanh(t.linear(t.n, "in")(x))))
        return t.linear(t.outputs, "m")(h)

    found = tp.first_order(net, "mup", optimizer="adam", measure=(16, 32))
    assert {row.measured.widths for row in found.rows if row.measured} == {(18, 33)}


@pytest.mark.parametrize(
    ("settings", "what"),
    [
        ({"measure": (64,)}, "two widths or more"),
        ({"measure": (16, 32), "width": 0}, "at least 1"),
        ({"measure": (16, 32), "seeds": 1}, "seeds"),
        ({"measure": (16, 16)}, "given twice"),
    ],
)
def test_bad_input(settings: dict[str, Any], what: str) -> None:
    with pytest.raises(UsageError, match=what):
        tp.first_order(linear, "mup", **settings)


# ------------------------------------------------------------------------------ networks in use


def words(found: FirstOrder) -> list[str]:
    """Of all sizes that were measured."""
    rows = [row.measured.word for row in found.rows if row.measured]
    return rows + [one.word for own in found.points for one in (own.start, own.moved) if one]


CATALOGUE = {
    "mlp": tp.MLP(2, "tanh", bias="all"),
    "resnet": tp.ResNet(2, "relu"),
    "rnn": tp.RNN(2, "tanh"),
}


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
@pytest.mark.parametrize("rule", ["standard", "mup", "ntk"])
@pytest.mark.parametrize(
    "name", ["mlp", *(pytest.param(name, marks=pytest.mark.slow) for name in ("resnet", "rnn"))]
)
def test_powers_are_those_of_networks(name: str, rule: str, optimizer: str) -> None:
    found = tp.first_order(CATALOGUE[name], rule, optimizer=optimizer, measure=WIDTHS)
    said = words(found)
    assert "differs" not in said
    assert said.count("agrees") > 0.7 * len(said)


@pytest.mark.slow
@pytest.mark.parametrize("scale", ["1/d", "1/sqrt(d)"])
def test_powers_of_a_transformer_are_those_of_networks(scale: str) -> None:
    net = tp.network(GPT, scale=scale, heads=4)
    found = tp.first_order(net, "mup", optimizer="adamw", measure=(64, 128, 256, 512), seeds=32)
    said = words(found)
    assert "differs" not in said
    assert said.count("agrees") > 0.8 * len(said)
    (scores,) = (own for own in found.points if "softmax" in own.name)
    assert scores.moved is not None and scores.moved.word == "agrees"
    assert (scores.moved.one is None) == (scores.change.constant == 0)


def test_what_a_norm_bounds_is_not_measured_to_first_order() -> None:
    """A step that replaces what a norm reads grows to first order, and not behind the norm."""

    @tp.network
    def net(t: Any, x: Any) -> Any:
        h = t.linear(t.n, "in", name="u", init=1)(x)
        w = t.linear(t.n, t.n, name="w", init="n^(-1/2)", rates=("n^(-1/2)", 1))
        h = tp.gelu(tp.layers.LayerNorm(t, name="norm")(w(h)))
        return t.linear(t.outputs, t.n, name="v", init="n^(-1)", rates=("n^(-1)", 1))(h)

    found = tp.first_order(net, "own", optimizer="adam", measure=(32, 64, 128))
    assert found["w"].word == "replaced"
    assert "differs" not in words(found)
    (gelu,) = (own for own in found.points if own.name.startswith("h[gelu]"))
    assert gelu.by in ("norm.gain", "norm.bias", "u")
