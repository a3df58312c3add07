"""Bad input of residual networks along the depth and of their theorems; their smallest cases."""

from __future__ import annotations

from fractions import Fraction
from math import inf

import numpy as np
import pytest
from scipy import stats
from scipy.linalg import toeplitz

import tpcalc as tp
from tpcalc import resnets
from tpcalc.errors import (
    EvaluationError,
    OutOfMemory,
    ScaleError,
    StudyError,
    UnknownName,
    UsageError,
)
from tpcalc.finite.paths import draw_paths


def res1(alpha: object = "1/2", act: str = "relu", **more: object) -> tp.ResNet:
    return tp.ResNet("L", act, alpha=alpha, **more)


def res3(alpha: object = "1/2", act: str = "relu", **more: object) -> tp.ResNet:
    return tp.ResNet("L", act, alpha=alpha, nonlin="between", layers=2, **more)


@pytest.mark.parametrize("hurst", [0, -1, 1.5, "3/2"])
def test_hurst_exponents_outside_of_their_interval(hurst: object) -> None:
    with pytest.raises(StudyError, match=r"the Hurst exponent H is .*0 < H < 1"):
        res3(hurst=hurst)


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), "nan", "inf", "b!", "1/0", [1], True]
)
def test_powers_that_are_no_numbers(value: object) -> None:
    with pytest.raises(StudyError, match="alpha must be a number"):
        res3(value)
    with pytest.raises(StudyError, match="hurst must be a number"):
        res3(hurst=value)


def test_symbols_where_numbers_are_needed() -> None:
    for ask in (
        lambda: tp.limit(res3("b"), depths=[4]),
        lambda: tp.simulate(res3("b"), 4, depth=4),
        lambda: resnets.hidden_states(res3("b"), 40),
    ):
        with pytest.raises(UsageError, match="in front of a block is b, which is no number"):
            ask()
    with pytest.raises(ScaleError, match="'H' has no value here"):
        tp.check(res3(hurst="H"), "mup")
    assert tp.check(res3(hurst="H"), "mup", at={"H": 0.3}).outputs == "stationary"


def test_S2_3_laws_without_the_moments() -> None:
    with pytest.raises(UsageError, match="cauchy entries have no variance"):
        resnets.entries_of(stats.cauchy())
    found = resnets.entries_of(stats.t(2.5))
    assert found.third == found.fourth == inf
    with pytest.raises(UsageError, match="no third moment"):
        resnets.cross_moment([1, 1], found)
    with pytest.raises(UnknownName, match="no law of entries"):
        resnets.entries_of("cauchy")
    with pytest.raises(UsageError, match="no law of entries"):
        resnets.entries_of(3)
    exponential = resnets.entries_of(stats.expon(loc=-1))
    assert (exponential.third, exponential.fourth) == pytest.approx((2, 9))


@pytest.mark.parametrize(
    ("bound", "words"),
    [
        (lambda: resnets.corollary_4(res3(law="laplace"), 10**7, 1000, 0.5), "not sub-Gaussian"),
        (lambda: resnets.lemma_14(res3(hurst="4/5"), 10), "fgn(4/5) along the depth"),
        (lambda: resnets.proposition_2(res3("1/4"), 10, 40, 0.5), "L alpha_L^2 <= 1"),
        (lambda: resnets.proposition_7(res1(act="tanh"), 10), "not linear on both sides of 0"),
        (lambda: resnets.proposition_3(res3(), 1, 1, 0.5)[0], "d >= 64: d = 1"),
        (lambda: resnets.lemma_15(0.1, 9, 1.0, resnets.entries_of("laplace"))[5], "sub-Gaussian"),
    ],
)
def test_S2_6_conditions_stand_beside_the_value(bound: object, words: str) -> None:
    found = bound()
    text = " ".join(str(found).split())
    assert not found.admissible and not found.exact
    assert "- Not met: " in text and words in text
    assert any(f"{value:.6g}" in text for value in (found.lower, found.upper) if value is not None)


def test_theorems_outside_of_their_hypotheses_state_nothing() -> None:
    found = resnets.about_the_start(res3(hurst="4/5"))
    assert [(one.answer, one.differs) for one in found] == [("outside", False)] * 3
    assert "- Not met: independent centred entries" in str(found[0])
    assert resnets.about_the_start(tp.ResNet("L", nonlin="post")) == ()


def test_networks_of_one_coordinate() -> None:
    law = resnets.norm_ratio(res3(), 1)
    assert law.mean < 0 < law.second_moment - 1 and "does not grow" in law.notes[-1]
    assert not resnets.hidden_states(res3("1/4"), 1).hypotheses[-1].met
    found = tp.simulate(res1(act="identity"), 1, 200, depth=50, seed=1)
    own = resnets.norm_ratio(res1(act="identity"), 1)
    mean = np.mean(found.values("R", "1/2"))
    # Third cumulants of a layer are of size L^(-3/2): 50 blocks are near the limit.
    assert abs(mean - own.mean) < 5 * (own.variance / 200) ** 0.5 + 0.1
    with pytest.raises(UsageError, match="one coordinate"):
        tp.simulate(res1(nonlin="post", center=True), 1, depth=4)
    assert resnets.run_path(lambda t: 1, [2.0], 1).displacement == 1


def test_networks_of_one_block() -> None:
    for net, moved in ((res3(hurst="4/5"), 0.5), (res1(act="identity", along="rbf(1/9)"), 1)):
        found = tp.limit(net, depths=[1], places=(0, 1))
        assert found.at("D^2", 1).value == pytest.approx(moved)
        assert found.at("Dp^2", 1).value == pytest.approx(moved)
        assert found.along("D^2", 1).values == pytest.approx([0, moved])
        assert found.along("Dp^2", 1).values == pytest.approx([moved, 0])
    assert resnets.lemma_14(res3(), 1).upper == 0.5
    assert len(tp.simulate(res3(hurst="4/5"), 3, 2, depth=1).values("D", "1/2")) == 2
    assert resnets.sample_ratios(res3(), 1, 4, 3).shape == (3,)


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda: resnets.sample_ratios(res3(), 0, 4, 3), "depth is 0"),
        (lambda: resnets.norm_ratio(res3(), 0), "width is 0"),
        (lambda: resnets.norm_ratio(res3(hurst="4/5"), 9), "independent matrices"),
        (lambda: resnets.corollary_4(res3(), 10, 64, 1.5), "delta is 1.5"),
        (lambda: resnets.lemma_20(9, -1, resnets.entries_of("uniform")), "t is -1"),
        (lambda: resnets.cross_moment([0, 0], resnets.entries_of("uniform")), "not all 0"),
        (lambda: resnets.run_path(lambda t: 1, [0.0], 2), "not all 0"),
        (lambda: resnets.run_path(lambda t: np.eye(3), [1, 1], 2), r"shape \(3, 3\)"),
        (lambda: resnets.proposition_10("relu", 1, (4,), fine=8), "two depths or more"),
        (lambda: resnets.proposition_10("relu", 1, (4, 8), fine=8), "do not divide"),
        (lambda: resnets.isometry(res1(act="tanh")), "linear on both sides"),
        (lambda: resnets.assumptions(tp.ResNet("L", nonlin="post"), 4), "its block has no V"),
    ],
)
def test_refused(ask: object, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        ask()


def test_networks_that_do_not_fit() -> None:
    with pytest.raises(OutOfMemory, match="blocks of width 1000000 needs"):
        tp.simulate(res3(hurst="4/5"), 10**6, depth=1000)


def test_paths_that_leave_the_range() -> None:
    with pytest.raises(EvaluationError, match="range of floating point"):
        resnets.run_path(lambda t: float("nan"), [1.0], 2)
    found = tp.limit(res3(0, hurst="9/10"), depths=[4, 2000])
    assert found.depths == ("4",) and "range of floating point" in found.lacking[0].reason


IMPOSSIBLE = ("given(1, 2)", "given(1, -2, 9)", "given(1, 9/10, 81/100)", "given(1, 3/5)")


@pytest.mark.parametrize("law", IMPOSSIBLE)
def test_an_autocovariance_of_nothing_is_refused_by_all_verbs(law: str) -> None:
    row = np.array([float(Fraction(one)) for one in law[6:-1].split(",")] + [0.0] * 7)
    lowest = {
        depth: np.linalg.eigvalsh(toeplitz(np.resize(row, 10)[:depth]))[0] for depth in (1, 2, 10)
    }
    net = res3(1, along=law)
    gaps = tp.limit(net, depths=[1, 2, 10, "oo"]).lacking
    lacking = {gap.depth: gap.reason for gap in gaps}
    for depth, least in lowest.items():
        assert (str(depth) in lacking) == (least < 0)
        if least < 0:
            assert f"no Gaussian sequence of {depth} numbers" in lacking[str(depth)]
            with pytest.raises(EvaluationError, match=f"no Gaussian sequence of {depth} numbers"):
                tp.simulate(net, 4, 2, depth=depth)
        else:
            assert tp.simulate(net, 4, 2, depth=depth).square("D", "1").value > 0
    assert "no endless Gaussian sequence" in lacking["oo"]
    with pytest.raises(EvaluationError, match="no endless Gaussian sequence"):
        tp.check(net, "mup", steps=0)
    data = tp.Samples(((1.3,),), ((0.9,),))
    run = tp.Training(res1("3/4", "identity", along=law), "mup", data, lr_depth="1/4")
    with pytest.raises(EvaluationError, match="no Gaussian sequence of 8 numbers"):
        tp.at_depth(run, 8)


def test_a_law_of_two_blocks_alone_is_drawn_with_its_correlation() -> None:
    drawn = draw_paths("given(1, 9/10)", 2, 40_000, np.random.default_rng(0))
    assert drawn.T @ drawn / 40_000 == pytest.approx(np.array([[1, 0.9], [0.9, 1]]), abs=0.03)


@pytest.mark.parametrize("law", ["given(1, -1/2)", "given(1, -2/3, 1/6)"])
def test_sums_of_differences_are_not_those_of_independent_blocks(law: str) -> None:
    found = tp.check(res1("1/4", "identity", along=law), "mup", steps=0)
    assert {(str(one.alpha), one.status) for one in found.critical} == {("1/4", "derived")}
    table = tp.limit(res1("1/4", "identity", along=law), depths=[100, 400, 1600])
    sizes = [table.at("D^2", depth).value for depth in (100, 400, 1600)]
    assert 0.8 < sizes[2] / sizes[1] < 1  # at alpha = 1/2 it falls by 4


@pytest.mark.parametrize("law", ["rbf(1e-300)", "rbf_increments(1e-300)", "rbf(1e-320)"])
@pytest.mark.filterwarnings("error")
def test_lengths_below_a_block_are_independent_blocks(law: str) -> None:
    fresh = tp.limit(res1(act="tanh"), depths=[10]).at("D^2", 10)
    found = tp.limit(res1(act="tanh", along=law), depths=[10]).at("D^2", 10)
    assert found.value == pytest.approx(fresh.value, abs=5 * (found.stderr + fresh.stderr))


def test_a_seed_below_0_is_none() -> None:
    with pytest.raises(UsageError, match="seed is -1"):
        tp.limit(res3(), depths=[4], seed=-1)
