"""Best learning rates: networks beside the limit, losses that are kept, refusals."""

from __future__ import annotations

import numpy as np
import pytest

import tpcalc as tp
from tpcalc.errors import UsageError

DATA = tp.Samples(((1.0, 0.5), (-0.5, 1.0)), ((1.0,), (-0.5,)))
NET = tp.ResNet("L", "tanh", nonlin="post")


def run(param="depth-mup", net=NET, **settings):
    return tp.Training(net, param, DATA, **{"steps": 2, "watch": (), **settings})


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
@pytest.mark.parametrize("param", ["depth-mup:2", "complete-p"])
def test_trained_networks_are_those_of_simulate(param, optimizer):
    pytest.importorskip("torch")
    from tpcalc.finite.training.curve import losses_of

    for net in (tp.ResNet(3, "tanh", nonlin="post"), None):
        own = run(param, optimizer=optimizer, lr=0.3)
        own = tp.at_depth(own, 3) if net is None else own.replace(network=net)
        table = tp.simulate(own, [32], 1, backend="dense", seed=5, outputs=["f*"])
        f = {row.name: row.values[0] for row in table.rows}
        losses = losses_of(own, 32, 5)
        for step, loss in enumerate(losses):
            target = DATA.targets[step % 2][0]
            assert loss == pytest.approx((f[f"f[{step},0]"] - target) ** 2 / 2, rel=1e-9)


def test_networks_find_the_rate_of_the_limit():
    pytest.importorskip("torch")
    still = {"input": {"lr": 0}, "readout": {"lr": 0}}
    linear = tp.ResNet("L", "identity", nonlin="post")
    one = tp.Samples(((1.0,),), ((1.0,),))
    own = tp.Training(linear, "depth-mup", one, groups=still)
    rates = (0.1, 0.2, 0.4, 0.8, 1.6)
    wide = tp.transfer(own, (4,), rates, widths=(512,), seeds=4)
    best = wide.best("depth-mup", 4, 512)
    assert best.how == "grid"
    assert best.low < tp.transfer(own, (4,), rates).best("depth-mup", 4).rate < best.high


def test_a_recipe_that_is_named_is_kept_apart_from_the_power_of_the_run(tmp_path):
    own = run("mup", tp.ResNet("L", "identity", nonlin="post"), lr_depth=1)
    told, named = (
        tp.transfer(own, (4,), (0.1,), recipes=recipes, work=tmp_path).rows[0]
        for recipes in ((), ("mup",))
    )
    assert told.recipe == named.recipe and told.loss.value != named.loss.value


def test_multipliers_and_progress():
    seen = []
    own = run(net=tp.ResNet("L", "identity", nonlin="post"), steps=1)
    found = tp.transfer(
        own, (2, 4), (0.1, 0.5), multipliers=(0.5, 1.0), progress=lambda x, text: seen.append(x)
    )
    assert len(found.rows) == 8
    assert seen == sorted(seen) and seen[-1] == 1.0
    best = found.best("depth-mup", 4)
    losses = [row.loss.value for row in found.rows if row.depth == "4"]
    assert best.loss.value == np.min(losses)


def test_a_rate_at_the_edge_has_no_bound():
    own = run(net=tp.ResNet("L", "identity", nonlin="post"), steps=1)
    best = tp.transfer(own, (4,), (1e-4, 2e-4)).best("depth-mup", 4)
    assert best.high is None and best.how == "grid"


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"rates": ()}, "learning rate"),
        ({"rates": (0.0,)}, "above 0"),
        ({"depths": ("oo",), "widths": (16,)}, "finite width"),
        ({"average": 9}, "average is 9; it must be at most 3"),
    ],
)
def test_refused(asked, words):
    with pytest.raises(UsageError, match=words):
        tp.transfer(run(), **asked)


def test_a_loss_without_a_number_says_why():
    """An update grows with the depth: there is no limit, and numbers of blocks have losses."""
    own = run("depth:1/2;1/4", net=tp.ResNet("L", "identity", nonlin="post"), steps=1)
    rows = tp.transfer(own, (4, "oo"), (0.25, 0.5)).rows
    for row in rows:
        assert (row.loss is None) == (row.depth == "oo")
        assert row.depth == "4" or "L^(1/4)" in row.note
