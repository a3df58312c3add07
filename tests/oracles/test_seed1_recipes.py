"""Tensor Programs VI: conversions, the table of multipliers and rates, best learning rates."""

from __future__ import annotations

import math

import pytest

import tpcalc as tp
from tpcalc.errors import StudyError, TpcalcError
from tpcalc.training.recipe import FRONT, RATE

STILL = {"input": {"lr": 0}, "readout": {"lr": 0}}
CONVERSIONS = [
    ("sgd", "1/2", 0, "1/2", "feature-learning"),
    ("adam", "1/2", 0, "0", "unstable"),
    ("sgd", 1, 1, "0", "feature-learning"),
]


@pytest.mark.parametrize(("optimizer", "alpha", "raw", "gamma", "verdict"), CONVERSIONS)
def test_S1_5_24_A13_raw_rates_tell_gamma(optimizer, alpha, raw, gamma, verdict):
    found = tp.recipe(alpha=alpha, raw=raw, optimizer=optimizer)
    assert found.gamma == gamma
    net = tp.ResNet("L", "relu", nonlin="post", center=True)
    said = tp.check(net, f"depth:{alpha};{gamma}", optimizer=optimizer, steps=2)
    assert said.verdict == verdict
    assert {str(rate.raw) for rate in said.rates} == {str(raw)}


@pytest.mark.parametrize("param", ["depth-mup", "complete-p", "depth:3/4;1/4"])
@pytest.mark.parametrize("optimizer", ["sgd", "momentum", "adam", "signsgd"])
@pytest.mark.parametrize("layers", [1, 2])
def test_S1_5_24_A13_rates_of_the_table_are_those_of_the_calculus(param, optimizer, layers):
    net = tp.ResNet("L", "relu", nonlin="post", center=True, layers=layers)
    said = tp.check(net, param, optimizer=optimizer, steps=1)
    wanted = tp.recipe(param, optimizer=optimizer)
    assert {str(rate.raw) for rate in said.rates} == {wanted[RATE].power}
    assert {str(rate.update) for rate in said.rates} == {wanted.gamma}
    if optimizer in ("sgd", "momentum"):  # delta = alpha
        assert {str(rate.gradient) for rate in said.rates} == {wanted.alpha}


def test_S1_24_A14_base_depth():
    adam = tp.recipe("depth-mup:8", 512, optimizer="adam", lr=1e-3, multiplier=2)
    assert adam[FRONT].value == 0.25
    assert adam[RATE].value == 1.25e-4
    sgd = tp.recipe("depth-mup:8", 512, optimizer="sgd", lr=1e-3, multiplier=2)
    assert sgd[FRONT].value == 0.25
    assert sgd[RATE].value == 1e-3


@pytest.mark.parametrize("param", ["depth-mup:8", "depth:3/4;1/4;8"])
@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_S1_24_A14_runs_have_the_rates_of_the_table(param, optimizer):
    data = tp.Samples(((1.0,),), ((1.0,),))
    wanted = tp.recipe(param, 16, optimizer=optimizer)[RATE].value
    net = tp.ResNet("L", "relu", nonlin="post")
    written = tp.at_depth(tp.Training(net, param, data, optimizer=optimizer), 16)
    number = tp.Training(tp.ResNet(16, "relu", nonlin="post"), param, data, optimizer=optimizer)
    for run in (written, number):
        block = run.network.marks[3]
        assert float(run.rate(block, 0)[0] * block.rate) == pytest.approx(wanted, rel=1e-15)


@pytest.mark.parametrize(
    "call",
    [
        lambda base: tp.recipe("depth-mup:8", base=base),
        lambda base: tp.at_depth(tp.Training(tp.ResNet("L"), "depth-mup:8"), 16, base),
        lambda base: tp.Training(tp.ResNet(16, base=base or 1), "depth-mup:8"),
    ],
)
def test_two_bases_are_one_or_an_error(call):
    assert call(None) is not None and call(8) is not None
    with pytest.raises(StudyError, match=r"the base is 4, and that of depth-mup.* is 8"):
        call(4)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"lr": -1}, "lr is -1; it must be above 0"),
        ({"lr": "0"}, "lr is 0; it must be above 0"),
        ({"multiplier": 0}, "multiplier is 0"),
        ({"optimizer": "adam(b1=2)"}, "b1 of adam is 2"),
        ({"base": 0}, "base is 0"),
        ({"depth": 0}, "depth is 0"),
    ],
)
def test_recipes_of_impossible_numbers(given, words):
    with pytest.raises(TpcalcError, match=words):
        tp.recipe("depth-mup", **given)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"device": "nosuch"}, "there is no device called 'nosuch'"),
        ({"depths": ("0", 8)}, "a depth is 0"),
        ({"rates": (-1,)}, "a learning rate is -1; it must be above 0"),
        ({"rates": ()}, "no learning rate is given"),
        ({"multipliers": (0,)}, "a multiplier is 0"),
        ({"seeds": 0}, "seeds is 0"),
        ({"average": 0}, "average is 0"),
        ({"widths": (0,)}, "a width is 0"),
    ],
)
def test_transfers_of_impossible_numbers(given, words):
    data = tp.Samples(((1.3,), (0.7,)), ((0.9,), (0.0,)))
    run = tp.Training(tp.ResNet("L", "identity", nonlin="post"), "depth-mup", data)
    with pytest.raises(TpcalcError, match=words):
        tp.transfer(run, **given)


@pytest.mark.parametrize("param", ["depth-mup:8", "complete-p:4", "depth:3/4;1/4;8"])
def test_S1_24_A14_base_depth_in_recursion_and_program(param):
    data = tp.Samples(((1.3,), (0.7,)), ((0.9,), (0.0,)))
    net = tp.ResNet("L", "identity", nonlin="post")
    run = tp.Training(net, param, data, groups=STILL, lr=0.3, watch=())
    closed = tp.limit(run, depths=(6,)).at("f[1,0]", 6).value
    number = run.replace(network=tp.ResNet(6, "identity", nonlin="post"))
    for one in (tp.at_depth(run, 6), number):
        found = tp.limit(one, outputs=["f*"], seed=0)["f[1,0]"].value
        assert found == pytest.approx(closed, rel=1e-12)


@pytest.mark.slow
def test_S1_32_A30_best_rates_after_one_step():
    data = tp.Samples(((1.0,),), ((1.0,),))
    net = tp.ResNet("L", "identity", nonlin="post")
    run = tp.Training(net, "depth-mup", data, groups=STILL)
    recipes = ("depth-mup", "depth-only-multiplier")
    found = tp.transfer(run, (8, 64, 512, "oo"), recipes=recipes[:1])
    for depth, rate in ((8, 0.438462), (64, 0.376528), (512, 0.368958)):
        assert found.best("depth-mup", depth).rate == pytest.approx(rate, abs=5e-7)
        exact = (1 + 1 / depth) ** -(depth - 1)
        assert found.best("depth-mup", depth).rate == pytest.approx(exact, rel=1e-8)
    assert found.best("depth-mup", "oo").rate == pytest.approx(math.exp(-1), rel=1e-7)
    shifted = tp.transfer(run, (8, 64, 512), recipes=recipes[1:])
    for depth, rate in ((8, 0.155020), (64, 0.047066), (512, 0.016306)):
        assert shifted.best(recipes[1], depth).rate == pytest.approx(rate, abs=5e-7)
    assert shifted.best(recipes[1], 512).slope == pytest.approx(-0.5, abs=0.02)
    assert "does not imply" in found.notes[0]
