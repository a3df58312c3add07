"""Questions about training runs of networks that are no plain perceptron."""

from __future__ import annotations

import pytest

import tpcalc as tp


@pytest.mark.parametrize(("param", "verdict"), [("mup", "feature-learning"), ("ntk", "kernel")])
def test_residual_networks_are_judged_layer_by_layer(param: str, verdict: str) -> None:
    net = tp.ResNet(2, "relu", bias_variance=1)
    found = tp.check(net, param, steps=2)
    assert (found.verdict, found.valid_for) == (verdict, "all t")
    assert [layer.layer for layer in found.layers] == [1, 2, 3, 4]
    assert all(layer.moves is (param == "mup") for layer in found.layers[:-1])
    assert found.facts[0].startswith("layer 3: its features")


@pytest.mark.parametrize("bias", ["none", "hidden"])
def test_variances_change_no_exponent(bias: str) -> None:
    plain, told = tp.MLP(2, "relu", bias), tp.MLP(2, "relu", bias, 3, None if bias == "none" else 2)
    for param in ("mup", "naive-ip"):
        first, second = (tp.check(net, param, steps=1) for net in (plain, told))
        assert first.verdict == second.verdict
        rows = [[(row.name, str(row.n)) for row in found.updates] for found in (first, second)]
        assert rows[0] == rows[1]
        solved = [tp.solve(net, param, steps=2, verify=False).steps for net in (plain, told)]
        assert solved[0] == solved[1]
        assert len(solved[0][0].bias_c) == (2 if bias == "hidden" else 0)


def test_normalised_layers_learn_features() -> None:
    found = tp.check(tp.MLP(2, "tanh", norm="layer"), "mup", steps=1)
    assert found.verdict == "feature-learning"
    # Where layers vanish at the start, normalisation brings their features back to order one.
    orders = tp.orders(
        tp.train(
            tp.MLP(2, "tanh", norm="layer"),
            "naive-ip",
            tp.Samples(((1.0, 0.5),), ((1.0,),)),
            steps=0,
        )
    )
    rows = {row.name: str(row.n) for row in orders.table.rows}
    assert (rows["h[2,0,0]"], rows["x[2,0,0]"]) == ("-1/2", "0")


def test_normalised_layers_are_judged_by_what_is_read() -> None:
    """Preactivations that grow like n^(1/2) before the normalisation do no harm."""
    wide = "ac:0,0,1;-1,0,-1"
    assert tp.check(tp.MLP(2, "tanh"), wide, steps=1).verdict == "unstable"
    found = tp.check(tp.MLP(2, "tanh", norm="layer"), wide, steps=1)
    assert (found.verdict, found.initial) == ("feature-learning", "ok")
    readout = tp.check(tp.MLP(2, "tanh", norm="layer"), "ac:0,0,1/4;0", steps=1)
    assert readout.facts[0] == "the output grows like n^(1/4) at the start"


@pytest.mark.parametrize(
    ("param", "verdict", "moved"), [("mup", "feature-learning", (True, True, True)),
                                    ("ntk", "kernel", (False, False, True))]
)  # fmt: skip
def test_weights_that_all_tokens_share(param: str, verdict: str, moved: tuple[bool, ...]) -> None:
    data = tp.Samples(((1.0, 0.5, 0.2, -0.3),), ((1.0,),))
    found = tp.check(tp.RNN(2, "tanh"), param, data, steps=1)
    assert found.verdict == verdict
    assert tuple((layer.name, layer.moves) for layer in found.layers) == tuple(
        zip("UWv", moved, strict=True)
    )
    assert "token 2: its features" in found.facts[0]
    assert {name for name, *_ in ((row.name,) for row in found.updates)} >= {"dW_x[U@1,1,1]"}


def test_rates_are_solved_for_parameter_by_parameter() -> None:
    tokens = tp.solve(tp.RNN(2, "tanh"), "mup", steps=1, verify=False)
    assert (tokens.names, tokens.steps[0].c) == (("U", "W", "v"), ("-1", "-1", "-1"))
    blocks = tp.solve(tp.ResNet(2), "mup", steps=1, verify=False)
    assert (blocks.names, blocks.steps[0].c) == ((), ("-1", "-1", "-1", "-1"))
