"""Losses against learning rates over widths and at infinite width: agreement, optima, tasks."""

from __future__ import annotations

import math
import sys

import numpy as np
import pytest

import tpcalc as tp
from tpcalc.errors import MissingBackend, UsageError
from tpcalc.views.view import view

pytestmark = pytest.mark.torch
DATA = tp.digits((0, 1), 4)
TWICE = tp.Samples(DATA.inputs, tuple(row * 2 for row in DATA.targets))
CLASSES = tp.Samples(DATA.inputs, ((1, 0, 0, 1), (0, 1, 0, 1)) * 2)
RATES = tuple(np.geomspace(0.01, 10, 13))


@tp.network
def own(t, x):
    h = tp.relu(t.linear(t.n, "in", init=2, rates=("n", 1), name="u", bias="0.5")(x))
    h = tp.relu(t.linear(t.n, t.n, init="0.7 n^(-1/2)", name="w")(h))
    return t.linear(t.outputs, t.n, init="n^(-1)", rates=("n^(-1)", 1), name="v")(h)


def run(network=None, param="mup", data=DATA, **settings):
    network = tp.MLP(1, "tanh") if network is None else network
    return tp.Training(network, param, data, **{"steps": 2, "batch": 2, **settings})


def agree(training, width=256, seeds=16, rates=(0.1, 0.5)):
    """The losses of networks are those of infinite width, up to noise and O(1/width)."""
    found = tp.transfer(training, rates=rates, widths=(width, "oo"), seeds=seeds)
    wide = {row.rate: row.loss for row in found.rows if row.width == "oo"}
    for row in found.rows:
        limit = wide[row.rate]
        room = 5 * math.hypot(row.loss.stderr, limit.stderr) + 5 * limit.value / width
        assert abs(row.loss.value - limit.value) < room, row
    return wide


@pytest.mark.parametrize("param", ["mup", "ntk", "standard:1"])
def test_losses_of_linear_networks_are_exact_at_infinite_width(param):
    """Where outputs are random in the limit, it is the mean over networks."""
    wide = agree(run(tp.MLP(1, "identity"), param), seeds=32)
    assert all(loss.method.value == "exact" for loss in wide.values())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("network", "settings"),
    [
        (tp.MLP(2, "relu"), {}),
        (tp.MLP(2, "relu"), {"param": "ntk"}),
        (tp.MLP(2, "relu"), {"param": "ip-non-centered"}),
        (tp.RNN(2, outputs="all"), {"data": TWICE}),
        (tp.RNN(2, outputs="all"), {"data": CLASSES, "loss": "xent"}),
        (own, {"param": "own"}),
        (tp.ResNet(2, "tanh"), {"optimizer": "momentum", "schedule": "linear"}),
    ],
)
def test_losses_agree_with_infinite_width(network, settings):
    agree(run(network, **settings), width=512)


@pytest.mark.slow
def test_mup_keeps_its_best_rate_and_standard_does_not():
    """Tensor Programs V, Figure 1: at one rate for all layers the best one falls with the width."""
    asked = {"recipes": ("mup", "standard"), "widths": (32, 128, 512, "oo"), "seeds": 8}
    found = tp.transfer(run(), rates=np.geomspace(1e-3, 10, 13), **asked)
    stays = [found.best("mup", width=width) for width in asked["widths"]]
    limit = stays[-1]
    assert all(best.low < limit.high and limit.low < best.high for best in stays)
    moves = [found.best("standard", width=width) for width in asked["widths"][:3]]
    assert moves[0].low > moves[2].high
    assert moves[1].width_slope < -0.4 and moves[2].width_slope < -0.4
    lost = [row for row in found.rows if (row.recipe, row.width) == ("standard", "oo")]
    assert all(row.loss is None and "n^(" in row.note for row in lost)
    text = " ".join(str(found).split())
    assert "a rate in" in text and "the intervals of some widths are apart" in text


def test_losses_of_classes_that_stay_random_say_why():
    rows = tp.transfer(run(param="ntk", data=tp.digits((0, 1, 2), 3), loss="xent"), rates=(1,)).rows
    assert rows[0].loss is None and "xent over networks" in rows[0].note


def test_one_network_has_no_error():
    found = tp.transfer(run(), rates=(0.1, 1), widths=(16,), seeds=1)
    (best,) = found.optima
    assert best.loss.stderr == math.inf
    assert (best.low, best.high) == (None, None)


def test_losses_beyond_floats_are_no_best_ones():
    """Squares of losses overflow, and the warnings of tests are errors."""
    asked = {"rates": (1.0, 30.0, 1e4), "widths": (16,)}
    found = tp.transfer(run(tp.MLP(2, "relu"), steps=4), **asked)
    (best,) = found.optima
    assert best.rate == 1.0 and found.rows[1].loss.value > 1e100
    assert "no longer finite" in found.rows[2].note


def test_pictures_have_a_line_and_a_band_for_each_width():
    found = tp.transfer(run(), rates=RATES[6:9], widths=(16, "oo"))
    (panel,) = view(found).figures["transfer"].panels
    assert [one.label for one in panel.legend] == ["n = 16", "n = oo"]
    line = panel.series[0]
    losses = [row.loss for row in found.rows if row.width == "16"]
    assert line.error == tuple(2 * loss.stderr for loss in losses)
    mark = next(one for one in panel.series if one.shape == "dots")
    assert mark.x == (found.best("mup", width=16).rate,)
    assert "grid, edge" in str(tp.transfer(run(), rates=(0.01, 0.1)))
    assert "<img" in found._repr_html_()


def test_a_run_that_was_stopped_goes_on_with_the_same_bits(tmp_path, monkeypatch):
    asked = {"rates": (0.1, 0.4, 1.6), "widths": (16, "oo"), "recipes": ("mup", "ntk")}
    first = tp.transfer(run(), **asked, work=tmp_path)
    (file,) = tmp_path.glob("transfer-*.jsonl")
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2])
    assert tp.transfer(run(), **asked, work=tmp_path).rows == first.rows
    assert file.read_bytes() == whole
    monkeypatch.setattr("tpcalc.experiments.transfer.Asked.row", None)  # nothing is computed again
    again = tp.transfer(run(), **asked, work=tmp_path)
    assert (again.rows, again.optima) == (first.rows, first.optima)


@pytest.mark.slow
def test_processes_give_the_same_bits():
    asked = {"rates": RATES[4:9], "widths": (16, 300, "oo"), "recipes": ("mup", "ntk")}
    here = tp.transfer(run(own), **{**asked, "recipes": ("own",)})
    one = tp.transfer(run(), **asked)
    with tp.use(jobs=2):
        assert tp.transfer(run(own), **{**asked, "recipes": ("own",)}).rows == here.rows
        two = tp.transfer(run(), **asked)
    assert (two.rows, two.optima) == (one.rows, one.optima)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"widths": ("oo", "oo")}, "widths are oo, oo; each is given once"),
        ({"widths": (8, 8)}, "widths are 8, 8"),
        ({"widths": (0,)}, "a width is 0"),
        ({"widths": (8.5,)}, "a width is 8.5"),
        ({"depths": (4,)}, "depths are compared of L blocks"),
        ({"multipliers": (2,)}, "no number in front of its blocks"),
        ({"rates": (math.inf,)}, "must be finite"),
    ],
)
def test_refused(asked, words):
    with pytest.raises(UsageError, match=words):
        tp.transfer(run(), **asked)


def test_refused_without_data_or_torch(monkeypatch):
    with pytest.raises(UsageError, match="not Samples"):
        tp.transfer(tp.Training(tp.MLP(1), "mup"), rates=(1,))
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingBackend, match="torch"):
        tp.transfer(run(), rates=(1,), widths=(8,))
