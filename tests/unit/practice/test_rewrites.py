"""Networks with other layers: what stands where, and what that does to the coefficient."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tpcalc as tp
from tpcalc.errors import UnknownName, UsageError

s, p = tp.signal, tp.signal.practice
NETS = (
    s.mlp(3, s.Design("relu", 2)),
    s.mlp(2, s.Design("tanh", 1.5, 0.1, norm="layer")),
    s.resnet(2, s.Design("gelu", norm="batch", batch=8)),
    tp.MLP(2, "relu"),
    s.parse_graph(
        "x = input(1, 0.25)\na = dense(x, 3/2)\nb = tanh(a)\nc = dense(b, 1, rank=1/4)\n"
        "d = span_bias(c, 1, 1/4)\ne = relu(d)\nf = dense(e)\ng = dense(e)\nh = f*g"
    ),
)


def operations(network: object) -> list[str]:
    return [layer.operation.name for layer in s.layers(network).layers]


@pytest.mark.parametrize("net", NETS)
def test_swapping_back_gives_the_network_again(net: object) -> None:
    own = [k for k, name in enumerate(operations(net)) if name in ("relu", "tanh", "gelu")]
    there = p.rewritten(net, p.swap("sin"), only=own[:1])
    back = p.rewritten(there, p.swap(operations(net)[own[0]]), only=own[:1])
    assert operations(there) != operations(net) == operations(back)
    assert s.nlc(back).value == pytest.approx(s.nlc(net).value, rel=1e-12)


@pytest.mark.parametrize("net", NETS[:-1])
@given(size=st.fractions(min_value="1/4", max_value=4, max_denominator=4))
@settings(max_examples=5, deadline=None)
def test_weights_are_scaled_and_biases_stay(net: object, size: object) -> None:
    other = s.layers(p.rewritten(net, p.scale_weights(size))).layers
    for one, two in zip(s.layers(net).layers, other, strict=True):
        if one.operation.matrix:
            assert two.operation.variance == one.operation.variance * size
        else:
            assert two.operation == one.operation


@pytest.mark.parametrize("net", NETS)
def test_norms_stand_before_every_activation(net: object) -> None:
    from tpcalc.meanfield.operations import BatchNorm, LayerNorm

    for norm in (LayerNorm(), BatchNorm(8)):
        names = operations(p.rewritten(net, p.norm_first(norm)))
        assert names.count(norm.name) == sum(name in ("relu", "tanh", "gelu") for name in names)
        assert names.count("layer norm") + names.count("batch norm") == names.count(norm.name)
    assert "norm" not in " ".join(operations(p.rewritten(net, p.norm_first("none"))))


@pytest.mark.parametrize("net", NETS)
def test_retuned_activations_have_the_moments_asked_for(net: object) -> None:
    for change, moment in ((s.activations.debiased, "mean"), (s.activations.normalized, "square")):
        other = p.rewritten(net, p.retune(change))
        for layer, state in zip(s.layers(other).layers, s.propagate(other), strict=True):
            if layer.operation.bends and layer.operation.reads == 1:
                found = getattr(state, moment).value
                assert found == pytest.approx({"mean": 0, "square": 1}[moment], abs=1e-9)


def test_orthogonal_weights_have_the_same_states() -> None:
    for net in NETS:
        turned = p.rewritten(net, p.orthogonal)
        assert s.nlc(turned).value == pytest.approx(s.nlc(net).value, rel=1e-12)
        dense = [layer.operation for layer in s.layers(turned).layers if layer.operation.matrix]
        assert any(each.family == "orthogonal" for each in dense[1:])


def test_what_is_rewritten_is_drawn_at_a_width() -> None:
    found = s.nonlinearity(
        p.rewritten(tp.MLP(2, "relu"), p.retune(s.activations.debiased)),
        sampling=s.Sampling((300,), 2, 100),
    )
    value = dict(found.measured[-1].values)["NLC"]
    assert abs(value.relative) < 0.1


def test_a_mask_stays_a_layer() -> None:
    def masked(t, x):  # type: ignore[no-untyped-def]
        h = tp.relu(t.linear(t.n, "in")(x)) * t.vector("mask")
        return t.linear(t.outputs, t.n)(tp.relu(t.linear(t.n, t.n)(h)))

    found = p.rewritten(masked, p.swap("tanh"))
    assert s.nlc(found).value == pytest.approx(s.nlc(p.rewritten(found, p.orthogonal)).value)


@pytest.mark.parametrize("only", [[17], ["h[9]"]])
def test_layers_that_are_none(only: list[object]) -> None:
    with pytest.raises((UsageError, UnknownName)):
        p.rewritten(NETS[0], p.swap("tanh"), only=only)


def test_factors_that_are_none() -> None:
    with pytest.raises(UsageError, match="factor"):
        p.scale_weights(-1)
