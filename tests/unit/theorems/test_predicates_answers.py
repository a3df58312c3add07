"""Answers of the predicates: which hypothesis is missing, what is claimed, what is derived."""

from __future__ import annotations

import random
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

import tpcalc as tp
from tpcalc.errors import UsageError
from tpcalc.exponents import as_ex
from tpcalc.results import Theorem, Verdict
from tpcalc.theorems.integrable.predicates import case
from tpcalc.theorems.integrable.predicates.alternatives import collapse, weak_data_dependence
from tpcalc.theorems.integrable.predicates.features import feature_learning, kernel_evolution
from tpcalc.theorems.integrable.predicates.hybrid import (
    equiv_hp,
    equiv_hpz,
    learning_rate_correction,
)
from tpcalc.theorems.integrable.predicates.llr import linearizable, llr_necessary, nontrivial_stable
from tpcalc.theorems.integrable.predicates.naive import degenerate, trivial_naive_ip
from tpcalc.theorems.integrable.predicates.registry import applicable
from tpcalc.theorems.integrable.predicates.start import stable_init
from tpcalc.training.parameterization import with_rates
from tpcalc.training.parameterizations import lookup
from tpcalc.training.parameterizations.integrable import gamma

Predicate = Callable[..., Theorem]


def missing(found: Theorem) -> list[str]:
    return [hypothesis.text for hypothesis in found.missing]


@pytest.mark.parametrize(
    ("predicate", "network", "parameterization", "lacking"),
    [
        (trivial_naive_ip, tp.MLP(2, "tanh"), "naive-ip", ["at least 3 hidden layers"]),
        (trivial_naive_ip, tp.MLP(3, "sigmoid"), "naive-ip", ["sigma(0) = 0"]),
        (trivial_naive_ip, tp.MLP(3, "tanh"), "mup", ["the parameterization is naive-ip"]),
        (degenerate, tp.MLP(3, "tanh"), "naive-ip", ["sigma(0) != 0"]),
        (degenerate, tp.MLP(3, "cos"), "naive-ip", ["sigma'(0) is there and not 0"]),
        (
            llr_necessary,
            tp.MLP(3, "relu^2", bias="all"),
            "ip-llr:2",
            ["no biases above the first layer"],
        ),
        (llr_necessary, tp.MLP(2, "relu^2"), "ip-llr:2", ["at least 3 hidden layers"]),
        (nontrivial_stable, tp.MLP(3, "relu^2"), "ip-llr", ["the parameterization is ip-llr(p=2)"]),
        (linearizable, tp.MLP(3, "tanh"), "ip-llr:2", ["the parameterization is ip-llr(p=1)"]),
        (linearizable, tp.MLP(3, "square"), "ip-llr", ["sigma'(0) is there and not 0"]),
        (
            equiv_hp,
            tp.MLP(3, "tanh"),
            "ip-llr",
            ["sigma is positively homogeneous of a degree p >= 1"],
        ),
        (
            equiv_hpz,
            tp.MLP(3, "leaky_relu"),
            "ip-llr",
            ["sigma is positively homogeneous of a degree p >= 2"],
        ),
        (collapse, tp.MLP(2, "tanh"), "ip-non-centered", ["at least 3 hidden layers"]),
        (
            collapse,
            tp.MLP(3, "tanh"),
            "naive-ip",
            ["the parameterization is ip-non-centered, all means above layer 1 other than 0"],
        ),
        (weak_data_dependence, tp.MLP(3, "tanh"), "ip-bias", ["biases in all layers"]),
        (weak_data_dependence, tp.MLP(3, "tanh", bias="all"), "naive-ip", None),
    ],
)
def test_outside_says_which_hypothesis(
    predicate: Predicate, network: tp.MLP, parameterization: str, lacking: list[str] | None
) -> None:
    found = predicate(network, parameterization, derive=False)
    assert found.answer == "outside" and not found
    assert missing(found) == (lacking or ["the parameterization is ip-bias"])
    assert found.missing[0].found in " ".join(str(found).split())


@pytest.mark.parametrize(
    ("predicate", "parameterization"),
    [
        (trivial_naive_ip, "naive-ip"),
        (llr_necessary, "ip-llr"),
        (collapse, "ip-non-centered"),
        (weak_data_dependence, "ip-bias"),
        (equiv_hp, "hp"),
        (stable_init, "mup"),
    ],
)
def test_other_networks_are_outside(predicate: Predicate, parameterization: str) -> None:
    for network in (tp.ResNet(3, "relu"), tp.MLP(3, "relu", norm="layer")):
        found = predicate(network, parameterization)
        assert found.answer == "outside" and len(found.hypotheses) == 1 and not found.claims
        assert applicable(network, parameterization) == ()


@pytest.mark.parametrize(
    ("network", "parameterization", "predicate"),
    [
        (tp.MLP(3, "relu"), "naive-ip", trivial_naive_ip),
        (tp.MLP(3, "relu"), "ip-llr", llr_necessary),
        (tp.MLP(3, "relu"), "ip-llr", nontrivial_stable),
        (tp.MLP(3, "leaky_relu:-1/2"), "ip-llr", nontrivial_stable),
        (tp.MLP(3, "relu", bias="all"), "ip-bias", weak_data_dependence),
    ],
)
def test_rectifiers_are_supported_outside_the_smoothness_assumption(
    network: tp.MLP, parameterization: str, predicate: Predicate
) -> None:
    found = predicate(network, parameterization)
    assert found.answer == "outside" and len(found.missing) == 1
    assert "Assumption" in found.missing[0].text
    assert found.notes[0].startswith("supported, but outside the smoothness assumption")
    assert found.claims and not found.differs
    assert any(claim.agrees for claim in found.claims)


def test_activations_of_other_degrees_are_not_supported() -> None:
    for act in ("leaky_relu:1/2", "abs", "selu"):
        found = nontrivial_stable(tp.MLP(3, act), "ip-llr")
        assert found.answer == "outside" and not found.claims and not found.notes


def test_without_deriving_nothing_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*args: Any, **options: Any) -> Verdict:
        raise AssertionError

    monkeypatch.setattr(case, "width_check", never)
    found = trivial_naive_ip(tp.MLP(3, "tanh"), "naive-ip", derive=False)
    assert found.answer == "holds" and found.claims
    assert {claim.derived for claim in found.claims} == {""}
    assert {claim.agrees for claim in found.claims} == {None}


PLACES = [
    (tp.MLP(3, "tanh", bias="all"), "naive-ip"),
    (tp.MLP(3, "relu", bias="first"), "ip-llr"),
    (tp.MLP(3, "tanh"), "ip-llr"),
    (tp.MLP(2, "relu^2"), "ip-llr:2"),
    (tp.MLP(2, "relu"), "mup"),
    (tp.MLP(3, "relu", bias="first"), "ip:-2,-5/2,-2"),
]


@pytest.mark.parametrize(("network", "parameterization"), PLACES)
def test_a_verdict_that_is_known_is_not_derived_again(
    network: tp.MLP, parameterization: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    verdict = tp.check(network, parameterization, steps=2)

    def never(*args: Any, **options: Any) -> Verdict:
        raise AssertionError

    monkeypatch.setattr(case, "width_check", never)
    found = applicable(network, parameterization, verdict=verdict)
    plain = applicable(network, parameterization, derive=False)
    assert [theorem.answer for theorem in found] == [theorem.answer for theorem in plain]
    for theorem in found:
        assert theorem.differs is (theorem.name == "linearizable")
        stated = {claim.text: claim.stated for claim in theorem.claims}
        (other,) = (one for one in plain if one.name == theorem.name)
        assert all(stated[claim.text] == claim.stated for claim in other.claims)


@pytest.mark.parametrize(
    ("network", "parameterization", "names"),
    [
        (tp.MLP(3, "tanh"), "naive-ip", ["trivial_naive_ip", "llr_necessary"]),
        (tp.MLP(3, "sigmoid"), "naive-ip", ["degenerate", "trivial_naive_ip", "llr_necessary"]),
        (
            tp.MLP(3, "relu^2"),
            "ip-llr:2",
            *[["llr_necessary", "nontrivial_stable", "equiv_hp", "equiv_hpz", "trivial_naive_ip"]],
        ),
        (tp.MLP(3, "relu^2"), "ip-llr", ["llr_necessary", "trivial_naive_ip", "nontrivial_stable"]),
        (tp.MLP(3, "relu"), "mup", []),
        (tp.MLP(3, "tanh", bias="all"), "ip-bias", ["weak_data_dependence"]),
        (tp.MLP(3, "tanh", bias="all"), "ip-non-centered", ["collapse"]),
        (tp.MLP(3, "relu^2"), "hp", ["equiv_hp"]),
        (tp.MLP(3, "relu^2"), "hpz", ["equiv_hpz"]),
    ],
)
def test_which_theorems_are_told(network: tp.MLP, parameterization: str, names: list[str]) -> None:
    found = applicable(network, parameterization, derive=False)
    told = [theorem.name for theorem in found if not theorem.name.endswith("_init")]
    assert told == names
    answers = [theorem.answer for theorem in found]
    order = ["holds", "does not hold", "outside"]
    assert answers == sorted(answers, key=order.index)


def drawn(rng: random.Random) -> tuple[tp.MLP, object]:
    """A network, and learning rates around those of a theorem that is about it."""
    act, p = rng.choice([("relu", 1), ("relu^2", 2), ("leaky_relu:-1/2", 1), ("relu^3/2", 1.5)])
    depth = rng.choice([3, 4]) if p == 1 else 3
    first = gamma(depth, as_ex(Fraction(p)))
    later = lookup("naive-ip").exponents(depth, 1).c
    steps = [Fraction(k, 2) for k in (-2, -1, 0, 0, 0, 1, 2)]
    moved = [[rng.choice(steps) for _ in first] for _ in (0, 1)]
    if rng.random() < 0.4:
        moved[0] = [Fraction(0)] * len(first)

    def rate(layer: int, step: int) -> Any:
        return (later if step else first)[layer - 1] + moved[min(step, 1)][layer - 1]

    network = tp.MLP(depth, act, bias=rng.choice(["none", "first"]))
    return network, with_rates(lookup("naive-ip"), rate)


@pytest.mark.parametrize("seed", range(3))
def test_sizes_at_drawn_learning_rates_are_those_derived(seed: int) -> None:
    """The exponents of Theorem 3.2 and Lemma F.4 against the calculus, at any rates."""
    rng = random.Random(seed)
    network, parameterization = drawn(rng)
    loss = rng.choice(["mse", "linear", "logistic"])
    found = llr_necessary(network, parameterization, loss=loss)  # type: ignore[arg-type]
    assert not found.differs, found.claims
    first = found.claims[: network.depth + 1]
    assert all(claim.stated and claim.agrees for claim in first)


@pytest.mark.parametrize("seed", range(6))
def test_nothing_that_is_drawn_contradicts_a_theorem(seed: int) -> None:
    """But the remark on linearizable activations, which is wrong from three layers on."""
    rng = random.Random(seed)
    acts = ["tanh", "gelu", "sigmoid", "softplus", "identity", "relu", "relu^2", "elu", "swish"]
    act = rng.choice(acts)
    name = rng.choice(["naive-ip", "ip-llr", "mup", "ntk", "ip-non-centered", "ip-bias"])
    bias = "all" if name in ("ip-non-centered", "ip-bias") else rng.choice(["none", "first", "all"])
    network = tp.MLP(rng.choice([2, 3, 4]), act, bias=bias)
    verdict = tp.check(network, name, steps=2, loss=rng.choice(["mse", "linear"]))
    for theorem in applicable(network, name, verdict=verdict):
        wrong = theorem.name == "linearizable" and theorem.answer == "does not hold"
        assert theorem.differs is wrong, (network, name, theorem)


@pytest.mark.parametrize(
    ("scales", "stable", "nontrivial"),
    [
        ("0,1/2,1", True, True),
        ("0,1/2,1/2", True, True),
        ("0,1,1", True, False),
        ("1/2,1/2,1", False, False),
        ("0,1/4,1", False, True),
        ("0,1/2,1/4", False, True),
        ("-1/2,1/2,1", False, True),
    ],
)
def test_S0_28_conditions_on_the_start(scales: str, stable: bool, nontrivial: bool) -> None:
    network, written = tp.MLP(2, "tanh"), f"ac:{scales};0,0,0"
    told = applicable(network, written, verdict=tp.check(network, written, steps=1))
    found = {theorem.name: theorem for theorem in told}
    # What the verdict says of a start that explodes leaves open whether it vanishes elsewhere.
    held = "holds" if stable else "not confirmed"
    for name, wanted in (("stable_init", stable), ("nontrivial_init", nontrivial)):
        theorem = found[name]
        (claim,) = theorem.claims
        assert theorem.answer == (held if wanted else "does not hold")
        assert bool(theorem) is (theorem.answer == "holds") and not theorem.differs
        assert claim.agrees or not (stable and nontrivial)


def test_the_conditions_on_the_start_are_not_necessary_alone() -> None:
    found = stable_init(tp.MLP(3, "relu"), "ac:0,1,1/4,1;0,0,0,0", steps=1)
    assert found.answer == "does not hold"
    assert (found.claims[0].stated, found.claims[0].derived) == ("", "none explodes")
    assert "sufficient" in found.notes[0]


@pytest.mark.slow
def test_S0_28_definitions_by_layer() -> None:
    network = tp.MLP(3, "tanh", bias="first")
    assert feature_learning(network, "ip-llr", layer=3).answer == "holds"
    assert feature_learning(tp.MLP(5, "tanh"), "ip-llr", layer=2, steps=1)
    found = feature_learning(tp.MLP(5, "tanh"), "ip-llr", layer=3)
    assert found.answer == "does not hold" and "training routine" in found.notes[0]
    assert [len(f(network, "mup").claims) for f in (feature_learning, kernel_evolution)] == [3, 3]
    with pytest.raises(UsageError, match="layer is 4"):
        kernel_evolution(network, "mup", layer=4)
    assert feature_learning(tp.ResNet(2, "relu"), "mup", batch=2).answer in ("holds", "outside")


def test_the_corrected_rate_is_that_of_the_network() -> None:
    data = tp.Samples(((1.0, 0.5),), ((1.0,),))
    net = tp.MLP(2, "relu")
    ratios = [learning_rate_correction(net, data, width=64, seed=seed) for seed in (0, 1)]
    assert ratios[0] != ratios[1] and all(0.1 < abs(ratio) < 10 for ratio in ratios)
    wide = learning_rate_correction(net, data, width=1024)
    assert abs(wide - 1) < 0.1
    both = tp.Samples(((1.0,),), ((1.0, 0.0),))
    with pytest.raises(UsageError, match="2 outputs"):
        learning_rate_correction(net, both, width=8, loss="xent")


def test_an_input_of_zeros() -> None:
    """Without a bias nothing is learnt from it; with one, through the bias of the first layer."""
    zeros = tp.Samples(((0.0, 0.0), (0.0, 1.0)), ((1.0,), (1.0,)))
    for ask, act, name in (
        (nontrivial_stable, "relu^2", "ip-llr:2"),
        (linearizable, "tanh", "ip-llr"),
    ):
        outside = ask(tp.MLP(2, act), name, zeros, steps=1)
        assert outside.answer == "outside" and outside.missing[0].found == "xi_0 = 0, no bias"
        found = ask(tp.MLP(2, act, bias="first"), name, zeros, steps=1)
        assert (found.answer, found.differs) == ("holds", False)


def test_what_has_no_limit_is_told_in_the_claims() -> None:
    """A layer on the kink of abs, as particles tell, and an activation without a gradient."""
    data = tp.Samples(((0.6, -0.3),) * 3, ((1.0,),) * 3)
    net = tp.MLP(4, "abs", bias="hidden")
    found = collapse(net, "ip-non-centered:-1", data, loss="linear")
    assert found.answer == "outside"
    told = "a constant, by the form of the limit, as far as particles tell what it rests on"
    assert {claim.derived.split(":")[0] for claim in found.claims} == {told}
    assert llr_necessary(tp.MLP(1, "step"), "ip-llr").answer == "outside"


def test_networks_that_leave_the_range_of_floats_are_no_answer() -> None:
    found = equiv_hp(tp.MLP(3, "relu^2", bias="first"), "ip-llr:2")
    assert any("leaves the floating-point range" in claim.derived for claim in found.claims)
