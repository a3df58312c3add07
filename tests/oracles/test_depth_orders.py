"""Exponents in the depth against Tensor Programs VI: points, diagrams, blocks of several layers."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import pytest

import tpcalc as tp
from tpcalc.errors import ScaleError, UnknownName
from tpcalc.results import PhaseCell, Verdict

HALF = Fraction(1, 2)
ACTS = ("identity", "sin", "gelu", "relu")


def checked(act: str, alpha: object, gamma: object, steps: int = 2, **kwargs: object) -> Verdict:
    settings = {key: kwargs.pop(key) for key in ("optimizer",) if key in kwargs}
    shape = {"nonlin": "post", "center": True, **kwargs}
    net = tp.ResNet("L", act, alpha=alpha, **shape)
    found = tp.check(net, "mup", steps=steps, lr_depth=gamma, **settings)
    assert isinstance(found, Verdict)
    return found


# (alpha, gamma): verdict, stable at the start, faithful, kappa, linearized
POINTS = {
    ("1/2", "1/2"): ("feature-learning", True, True, "1/2", True),
    ("3/4", "1/4"): ("feature-learning", True, True, "0", True),
    ("1", "0"): ("feature-learning", True, True, "0", False),
    ("1/2", "7/10"): ("trivial", True, True, "1/2", None),
    ("3/4", "3/4"): ("trivial", True, True, "0", None),
    ("1/2", "3/10"): ("unstable", True, None, "", None),
    ("1/2", "0"): ("unstable", True, None, "", None),
    ("2/5", "3/5"): ("unstable", False, None, "", None),
    ("0", "0"): ("unstable", False, None, "", None),
    ("0", "1"): ("unstable", False, None, "", None),
}


@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("point", POINTS)
def test_S1_17_18_20_21_22_A11_points(act: str, point: tuple[str, str]) -> None:
    found = checked(act, *point)
    flags = (
        found.verdict,
        found.stable_start,
        found.faithful,
        found.diversity,
        found.linearized,
    )
    *stated, linear = POINTS[point]
    linear = True if act == "identity" and linear is False else linear  # it has no second slope
    assert flags == (*stated, linear)


@pytest.mark.parametrize("act", ["identity", "relu", "gelu"])
def test_S1_19_A11_unfaithful_beyond_one(act: str) -> None:
    found = checked(act, "5/4", "-1/4")
    assert (found.verdict, found.faithful, found.diversity) == ("feature-learning", False, "0")
    assert any("h[{l},1]" in fact and "L^(1/4)" in fact for fact in found.facts)


@pytest.mark.parametrize("act", ["identity", "gelu"])
def test_S1_17_A11_growth(act: str) -> None:
    assert any("L^(1/5)" in fact for fact in checked(act, "1/2", "3/10").facts)
    assert any("L^(1/2)" in fact for fact in checked(act, "1/2", "0").facts)


def test_S1_17_A11_growth_at_the_start_is_exponential() -> None:
    facts = checked("relu", "2/5", "3/5").facts
    assert any("log of its mean square is like L^(1/5)" in fact for fact in facts)


@pytest.mark.parametrize("act", ["identity", "gelu"])
@pytest.mark.parametrize("optimizer", ["sgd", "momentum", "adam", "adamw", "signsgd"])
def test_S1_5_A13_raw_rates(act: str, optimizer: str) -> None:
    linear = optimizer in ("sgd", "momentum")
    for alpha, gamma in (
        (HALF, HALF),
        (Fraction(3, 4), Fraction(1, 4)),
        (Fraction(1), Fraction(0)),
    ):
        (rate,) = checked(act, alpha, gamma, optimizer=optimizer).rates
        assert str(rate.gradient) == str(alpha)  # delta = alpha, derived
        assert str(rate.raw) == str(alpha - gamma if linear else -gamma)


def test_S1_5_A13_rates_without_a_power_of_the_depth() -> None:
    sgd = checked("gelu", HALF, None)
    assert (str(sgd.rates[0].update), sgd.verdict) == ("1/2", "feature-learning")
    adam = checked("gelu", HALF, None, optimizer="adam")
    assert (str(adam.rates[0].update), adam.verdict) == ("0", "unstable")


@pytest.mark.parametrize("optimizer", ["adam", "signsgd", "momentum"])
def test_depth_mup_holds_for_every_optimizer(optimizer: str) -> None:
    found = checked("gelu", HALF, HALF, optimizer=optimizer)
    assert (found.verdict, found.diversity, found.linearized) == ("feature-learning", "1/2", True)


def test_S1_29_A27_means_that_are_not_subtracted() -> None:
    for alpha, stable in ((HALF, False), (Fraction(3, 4), False), (Fraction(1), True)):
        found = checked("relu", alpha, 1 - alpha, center=False)
        assert found.stable_start is stable
    found = checked("relu", HALF, HALF, center=False)
    assert any("log of its mean square is like L^(1/2)" in fact for fact in found.facts)


def test_odd_activations_need_no_mean_subtraction() -> None:
    found = checked("sin", HALF, HALF, center=False)
    assert (found.verdict, found.diversity) == ("feature-learning", "1/2")


def test_S1_34_blocks_with_the_same_matrices() -> None:
    for alpha, stable in ((HALF, False), (Fraction(3, 4), False), (Fraction(1), True)):
        assert checked("gelu", alpha, 1 - alpha, shared=True).stable_start is stable


def test_S1_28_activations_before_the_weights() -> None:
    for alpha, kappa in ((HALF, "1/2"), (Fraction(3, 4), "0")):
        found = checked("relu", alpha, 1 - alpha, nonlin="pre", center=False)
        assert (found.verdict, found.diversity) == ("feature-learning", kappa)


GAMMAS = tuple(Fraction(k, 4) for k in range(5))


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [HALF, Fraction(3, 4), Fraction(1)])
def test_S1_30_A29_blocks_of_two_layers(alpha: Fraction) -> None:
    survivors = 0
    for first, second in product(GAMMAS, GAMMAS):
        gammas = {"{l+1}.1": first, "{l+1}.2": second}
        found = checked("gelu", alpha, gammas, layers=2)
        alive = found.verdict == "feature-learning" and found.faithful
        assert alive == (min(first, second) == 1 - alpha), (first, second)
        survivors += bool(alive)
        if alive and found.diversity == "1/2":
            assert found.linearized  # no point is diverse and multiplicative in its blocks
    assert survivors == {HALF: 5, Fraction(3, 4): 7, Fraction(1): 9}[alpha]


def test_S1_30_A29_sets_of_updates() -> None:
    found = checked("gelu", HALF, HALF, layers=2)
    rows = {row.labels: (str(row.L), row.status) for row in found.sets}
    assert rows == {
        ("{l+1}.1",): ("0", "exact"),
        ("{l+1}.2",): ("0", "exact"),
        ("{l+1}.1", "{l+1}.2"): ("-1/2", "bound"),
    }
    many = checked("relu", HALF, HALF, steps=1, nonlin="between", center=False, layers=11)
    assert [len(row.labels) for row in many.sets] == [1] * 11 + [11]  # not 2^11


def test_complete_p_in_blocks_of_two_layers() -> None:
    found = checked("gelu", Fraction(1), Fraction(0), layers=2)
    flags = (found.verdict, found.faithful, found.diversity, found.linearized)
    assert flags == ("feature-learning", True, "0", False)


# At complete-p updates are as large as what they move: a block is linear in them where it is
# without L, a function of one map with no second slope behind it, and no product of two maps.
LINEARIZED = {
    ("identity", "post", 1): True,  # x + W x
    ("tanh", "post", 1): False,
    ("relu", "post", 1): False,  # its slope jumps
    ("tanh", "pre", 1): True,  # x + V tanh(x)
    ("identity", "between", 2): False,  # x + V W x: V and W move both
}


@pytest.mark.slow
@pytest.mark.parametrize("case", LINEARIZED)
def test_S1_22_blocks_that_are_linear_in_their_updates(case: tuple[str, str, int]) -> None:
    act, nonlin, layers = case
    net = tp.ResNet("L", act, nonlin=nonlin, layers=layers, center=nonlin == "post")
    assert tp.check(net, "complete-p").linearized is LINEARIZED[case]
    opened = tp.ResNet("L", act, alpha="alpha", nonlin=nonlin, layers=layers, center=True)
    box = {"alpha": (Fraction(7, 8), Fraction(9, 8)), "gamma": (Fraction(-1, 8), Fraction(1, 8))}
    cells = tp.phases(opened, "mup", box, lr_depth="gamma", steps=1).cells
    (here,) = (cell for cell in cells if dict(cell.sample) == {"alpha": "1", "gamma": "0"})
    words = "blocks linear in their updates" if LINEARIZED[case] else "blocks not linear"
    assert words in here.fact


def test_a_verdict_is_printed_in_words() -> None:
    net = tp.ResNet("L", "identity", nonlin="post")
    text = str(tp.check(net, "depth-mup", steps=1))
    lines = [line.split() for line in text.splitlines()]
    assert text.startswith(
        "Feature learning at any depth: the stream moves, for t<=1\nIn the width: Feature learning"
    )
    assert "\n- the updates" in text
    assert ["Verdict", "feature-learning", "(proved)"] in lines
    assert ["x[0]", "noise", "1", "proved"] in lines
    assert ["outputs", "infinite,", "then", "L", "L^(-1/2)", "critical", "proved"] in lines
    with pytest.raises(UnknownName, match=r"called .2.\. Known: \{l\+1\}"):
        tp.check(net, "mup", lr_depth={"2": 1})


def figure_one(alpha: Fraction, gamma: Fraction) -> tuple[str, str]:
    """The verdict and what is said beside it, by section 7 of the paper."""
    if alpha < HALF:
        return "unstable", "at the start"
    if alpha + gamma < 1:
        return "unstable", "in training"
    kappa = "diverse" if alpha == HALF else "redundant"
    return ("trivial" if alpha + gamma > 1 else "feature-learning"), kappa


# Points of the figure with relu and gelu are in the cases of A11.
@pytest.mark.slow
@pytest.mark.parametrize("act", ["identity", "sin", "relu"])
def test_S1_23_figure_1(act: str) -> None:
    net = tp.ResNet("L", act, alpha=tp.symbol("alpha"), nonlin="post", center=True)
    box = {"alpha": (Fraction(1, 4), Fraction(3, 2)), "gamma": (-HALF, Fraction(1))}
    diagram = tp.phases(net, "mup", box, steps=2, lr_depth=tp.symbol("gamma"))
    assert diagram.complete
    seen = set()
    for cell in diagram.cells:
        sample = {name: Fraction(value) for name, value in cell.sample}
        verdict, beside = figure_one(sample["alpha"], sample["gamma"])
        if _has_bounds_only(act, sample):
            continue
        assert cell.verdict == verdict, cell
        assert beside in cell.fact, cell
        if verdict == "feature-learning":
            assert ("unfaithful" in cell.fact) == (sample["alpha"] > 1)
            linear = sample["gamma"] > 0 or act == "identity"
            assert ("blocks linear" in cell.fact) == linear
        seen.add((cell.dimension, verdict, beside, sample["alpha"] == 1))
    assert (0, "feature-learning", "diverse", False) in seen  # Depth-muP is a point
    assert (0, "feature-learning", "redundant", True) in seen  # and so is alpha = 1
    assert (1, "feature-learning", "redundant", False) in seen


def _has_bounds_only(act: str, sample: dict[str, Fraction]) -> bool:
    """A bounded function of preactivations that grow."""
    return act == "sin" and sample["gamma"] < 0 and sample["alpha"] >= HALF


def test_cells_of_a_diagram_are_records() -> None:
    net = tp.ResNet("L", "identity", alpha=tp.symbol("alpha"), nonlin="post")
    found = tp.phases(
        net, "mup", {"alpha": (Fraction(2, 5), Fraction(3, 5))}, steps=1, lr_depth=HALF
    )
    assert all(isinstance(cell, PhaseCell) for cell in found.cells)
    assert [cell.verdict for cell in found.cells if cell.dimension == 0].count(
        "feature-learning"
    ) == 1


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
@pytest.mark.parametrize("alpha", [HALF, Fraction(3, 4), Fraction(1)])
def test_solved_gammas_are_those_of_claim_7_2(alpha: Fraction, optimizer: str) -> None:
    net = tp.ResNet("L", "gelu", alpha=alpha, nonlin="post", center=True)
    found = tp.solve(net, "mup", steps=2, optimizer=optimizer)
    assert isinstance(found, Verdict)
    assert str(found.rates[0].update) == str(1 - alpha) and found.verdict == "feature-learning"
    with pytest.raises(ScaleError, match="grows"):
        tp.solve(tp.ResNet("L", "gelu", alpha=Fraction(1, 4), nonlin="post", center=True), "mup")


def test_orders_in_the_depth() -> None:
    net = tp.ResNet("L", "gelu", alpha=1, nonlin="post", center=True)
    found = tp.orders(tp.Training(net, "mup", steps=1, lr_depth=0))
    sizes = {row.name: str(row.L) for row in found.rows if not row.part}
    assert sizes == {"h[{l},0]": "0", "h[{l},1]": "0", "dW_x[{l+1},1]": "0"}
    assert str(found["x[0]"].L) == "-1/2" and found["x[0]"].status == "proved"
    assert ["dW_x[{l+1},1]", "1", "heuristic"] in [line.split() for line in str(found).splitlines()]
