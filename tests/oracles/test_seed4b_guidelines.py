"""Guidelines for designs, on numbers that were printed or computed otherwise."""

from __future__ import annotations

from fractions import Fraction
from math import exp, log, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tpcalc as tp
from tpcalc.errors import EvaluationError, StudyError, TpcalcError, UsageError
from tpcalc.results import Guideline

s, p = tp.signal, tp.signal.practice
Design = s.Design
calibrated = s.activations.calibrated
GRADES = ["pass", "warn", "fail"]


def chain(depth: int, *block: str) -> object:
    """A plain network without a last matrix; blocks read the line before."""
    lines = ["h0 = input(1, 0)"]
    for _ in range(depth):
        for word in block:
            lines.append(f"h{len(lines)} = {word.replace('@', f'h{len(lines) - 1}')}")
    return s.parse_graph("\n".join(lines))


def deep(activation: object, depth: int, **design: object) -> object:
    return s.mlp(depth, Design(activation, **design))


def judged(network: object, **options: object) -> dict[str, Guideline]:
    return {each.key: each for each in p.guidelines(network, **options)}


EVEN = calibrated("even_tanh", debias=True)
SQUARE = s.activations.normalized("square")


def test_S4b_1_the_coefficient_passes_from_1_to_5() -> None:
    grades = {}
    for depth in (1, 10, 30, 50):
        found = judged(deep("relu", depth, weights=2))["G1"]
        assert found.value.value == pytest.approx(s.nlc(deep("relu", depth, weights=2)).value)
        assert found.limits == (5, 100) and found.layer == 2 * depth + 1
        grades[depth] = found.grade
    assert grades == {1: "pass", 10: "pass", 30: "warn", 50: "warn"}
    assert judged(deep(EVEN, 8))["G1"].grade == "fail"  # 2.33494^8 = 883
    assert judged(deep("sigmoid", 1))["G1"].grade == "warn"  # 1.01666: all but linear


def test_S4b_2_case29_verdicts_of_stability() -> None:
    for name, number, label in (
        ("tanh", 0.46107, "stable"),
        ("relu", 1, "edge"),
        ("square", 2, "unstable"),
        (s.activations.debiased("swish"), 1.10095, "unstable"),
    ):
        assert s.stability_number(name, 1).value == pytest.approx(number, rel=1e-5)
        net = deep(calibrated(name), 3)
        assert s.stability(net).label == label
        found = judged(net)["G2"]
        assert found.grade == {"stable": "pass"}.get(label, "warn")
        assert found.layers[0].value.value == pytest.approx(number, rel=1e-5)
    assert judged(deep(SQUARE, 3))["G2"].value.value == pytest.approx(8, rel=1e-9)
    assert judged(deep(SQUARE, 4))["G2"].grade == "fail"  # 2^4 >= 10
    assert judged(deep("square", 8, norm="layer"))["G2"].grade == "pass"
    assert judged(deep("square", 8, norm="batch"))["G2"].grade == "fail"


@pytest.mark.slow
def test_S4b_2_case29_lengths_of_squares_spread_twice_as_far_in_every_layer() -> None:
    """W = 400: .0507 in what the first square reads, then .1183, .2496, .532 behind squares."""
    sampling = s.Sampling((400,), 6, 400)
    found = s.nonlinearity(deep(SQUARE, 3), sampling=sampling)
    spread = [found.at(400, layer).value("LCV").mean for layer in (1, 3, 5, 7)]
    for mean, printed in zip(spread, (0.0507, 0.1183, 0.2496, 0.532), strict=True):
        assert abs(mean.value - printed) < 5 * mean.stderr + 0.1 * printed
    tanh = s.nonlinearity(deep(calibrated("tanh"), 4), sampling=sampling)
    assert tanh.at(400, 8).value("LCV").mean.value < 0.07
    normed = s.nonlinearity(deep("square", 3, norm="layer"), sampling=sampling)
    assert normed.at(400, 2).value("LCV").mean.value < 1e-9  # behind the norm


def test_S4b_3_case18_residual_lengths_without_norm() -> None:
    lines = ["x = input(1, 0)", "h0 = dense(x)"]
    for k in range(10):
        lines += [f"a{k} = relu(h{k})", f"b{k} = dense(a{k}, 2)", f"h{k + 1} = h{k} + b{k}"]
    net = s.parse_graph("\n".join(lines))
    assert s.propagate(net)[-1].square.value == pytest.approx(1024, rel=1e-12)
    found = judged(net)["G3"]
    assert found.grade == "fail" and found.value.value == pytest.approx(32, rel=1e-12)
    assert found.layer == len(lines) - 1
    assert judged(deep("relu", 10, weights=2))["G3"].grade == "pass"


def test_S4b_4_growth_of_the_coefficient_with_weights() -> None:
    """The elasticity against the curve n(lambda^2, 0); the ratio against networks of their own."""
    step = 1e-4
    for name in ("tanh", "swish", "gaussian", "softplus", "selu"):
        kernel = s.activations.LengthKernel(name)
        for length in (0.5, 1.0, 2.0):
            low, high = kernel.nlc([length * exp(-step), length * exp(step)]).value
            slope = log(high / low) / (2 * step)
            assert p.elasticity(name, length**2).value == pytest.approx(slope, abs=1e-7)
    assert abs(p.elasticity("relu", 3).value) < 1e-12
    found = judged(deep("tanh", 10, weights=1.5))["G4"]
    nlc = [s.nlc(deep("tanh", 10, weights=w)).value for w in (1.5, 3)]
    assert found.value.value == pytest.approx(nlc[1] / nlc[0], rel=1e-9)
    assert len([note for note in found.notes if "times the variance" in note]) == 3
    assert judged(deep("tanh", 40, weights=1.5))["G4"].grade == "fail"
    for norm in ("layer", "batch"):
        assert judged(deep("tanh", 10, norm=norm))["G4"].value.value == pytest.approx(1, abs=1e-9)


def test_S4b_5_bias_is_judged_where_it_is_largest() -> None:
    found = judged(deep(calibrated("softplus"), 19))["G5"]
    assert found.grade == "fail" and found.value.value == pytest.approx(5.558e4, rel=1e-3)
    assert judged(deep(calibrated("relu", debias=True), 19))["G5"].grade == "pass"
    inner = judged(chain(1, "dense(@)", "sigmoid(@)", "dense(@)", "batch_norm(@)"))["G5"]
    assert inner.value.value == max(each.value.value for each in inner.layers) > 1
    assert inner.layers[-1].value.value < inner.value.value


@pytest.mark.slow
def test_S4b_6_case31_noise_of_formats() -> None:
    """It fails where the coefficient is 1 / u: 8.4e6 with 32 bits, 130 with bfloat16."""
    net = deep(EVEN, 19)
    assert s.nlc(net).value == pytest.approx(9.94e6, rel=1e-2)
    assert judged(net)["G6"].grade == "fail"
    assert judged(net, dtype="float64")["G6"].grade == "pass"
    assert judged(deep(EVEN, 8), dtype="bfloat16")["G6"].grade == "fail"
    assert judged(deep(EVEN, 8))["G6"].grade == "pass"
    for name, bound in (("float16", 1.0e3), ("bfloat16", 1.3e2), ("float32", 8.4e6)):
        found = judged(deep("tanh", 1), dtype=name)["G6"]
        assert s.nlc(deep("tanh", 1)).value / found.value.value == pytest.approx(bound, rel=0.03)
    noisy = judged(deep("tanh", 2), noise=[0.3])["G6"]
    assert noisy.value.value == pytest.approx(0.3 * s.nlc(deep("tanh", 2)).value)
    batch = judged(deep("tanh", 2, norm="batch", batch=250))["G6"]
    assert any("batches of 250, by 1/sqrt(B)" in note for note in batch.notes)
    assert batch.value.value == pytest.approx(
        s.nlc(deep("tanh", 2, norm="batch", batch=250)).value / 5000
    )
    biased = judged(deep(calibrated("softplus"), 29))["G6"]  # u NLC LBIAS is above 1
    assert biased.grade == "warn" and any("largest LBIAS" in note for note in biased.notes)


@pytest.mark.slow
def test_S4b_6_case31_rounding_is_off_by_twice_u_times_the_coefficient() -> None:
    """W = 300: 2.2e-4 with 32 bits at the coefficient 883."""
    import torch

    net = deep(EVEN, 8)
    errors = []
    for seed in range(3):
        exact, rounded = (
            s.network_of(net, 300, 300, seed, dtype=name) for name in ("float64", "float32")
        )
        for name, weights in rounded.parameters.items():
            exact.parameters[name].copy_(weights.double())
        x = torch.randn(100, 300, generator=torch.Generator().manual_seed(seed))
        with torch.no_grad():
            one, other = exact(x.double()), rounded(x).double()
        errors.append(float((other - one).norm() / (one - one.mean(0)).norm()))
    assert 1.1e-4 < float(np.mean(errors)) < 4.4e-4


def test_S4b_7_case32_singular_values_of_chains() -> None:
    for net, value in (
        (chain(10, "dense(@)"), 3.3166),
        (chain(5, "dense(@)", "selu(@)"), 2.753),
        (chain(5, "dense(@, 2)", "relu(@)"), 3.3166),
    ):
        found = judged(net)["G7"].value.value
        assert found == pytest.approx(value, rel=2e-4)
    # The map of the inputs is Gaussian in these networks: it adds 1.
    turned = chain(5, "dense(@, 1, orthogonal)", "selu(@)")
    assert judged(turned)["G7"].value.value == pytest.approx(sqrt(1.607**2 + 1), rel=3e-4)
    assert judged(chain(6, "dense(@, 1, orthogonal)"))["G7"].value.value == pytest.approx(sqrt(2))
    layer = s.LayerMap("selu", 1)
    orthogonal = s.spectra.singular_values(layer, "orthogonal", 5).relative_variance.value
    assert sqrt(1 + orthogonal) == pytest.approx(1.607, rel=4e-4)


@pytest.mark.slow
def test_S4b_7_case32_singular_values_of_drawn_networks() -> None:
    """W = 800: 2.462 and 3.328 of 5 and 10 matrices, 2.761 with SELU, 3.355 with ReLU."""
    for net in (
        chain(5, "dense(@)"),
        chain(5, "dense(@)", "selu(@)"),
        chain(4, "dense(@, 2, orthogonal)", "relu(@)"),
        s.parse_graph(
            "x = input(1, 0)\na = dense(x, width=2)\nb = tanh(a)\nc = dense(b, width=1/2)\n"
            "d = relu(c)\ne = dense(d)"
        ),
    ):
        found = s.advise(net, widths=[800], seeds=4)["G7"]
        gap = abs(found.measured.mean.value - found.value.value)
        assert gap < 5 * found.measured.mean.stderr + 0.015 * found.value.value


def test_S4b_8_activations_that_do_not_bend() -> None:
    found = judged(deep("sigmoid", 12))["G8"]
    rows = [row.own.value - 1 for row in s.nonlinearity(deep("sigmoid", 12)).layers if row.own]
    assert [each.value.value for each in found.layers] == pytest.approx(rows, abs=1e-12)
    assert found.value.value == min(each.value.value for each in found.layers)
    assert found.grade == "fail"
    assert judged(deep("relu", 10, weights=2))["G8"].grade == "pass"
    line = judged(chain(3, "dense(@)"))["G8"]
    assert line.grade == "fail" and "linear" in line.notes[0]


def test_S4b_9_width_is_a_report() -> None:
    found = judged(s.mlp(2, Design("tanh", 1, 0.1)))["G9"]
    assert found.grade == "report"
    assert "width 1000: 3,002,000 parameters" in found.notes
    narrow = judged(s.parse_graph("x = input(1, 0)\na = dense(x, 1, width=1/8)\nb = dense(a)"))
    assert narrow["G9"].notes[0] == "narrowest layer or rank: 0.125 n"


def test_S4b_10_case40_all_or_nothing() -> None:
    net = deep("square", 3, norm="batch")
    assert p.FAILURES[s.advise(net).failure] == "green"
    for numbers, colour in (
        ({"nlc": 2, "bias": 17}, "red"),
        ({"nlc": 2000, "bias": 1, "noisy": True}, "blue"),
        ({"nlc": 2000, "bias": 1}, "grey"),
        ({"nlc": 2000, "bias": 17, "unstable": True, "noisy": True}, "green"),
    ):
        assert p.FAILURES[p.all_or_nothing(**numbers)] == colour
    assert s.advise(deep(calibrated("softplus"), 19)).failure == "biased"
    assert s.advise(deep(EVEN, 9), noise=[0.01]).failure == "noise"


def test_S4b_11_the_bias_of_deep_networks() -> None:
    assert p.trichotomy("swish").bias_limit.value == pytest.approx(1.71160, rel=1e-4)
    assert (
        p.trichotomy("relu").bias_limit.value == p.trichotomy("softplus").bias_limit.value == np.inf
    )
    assert p.trichotomy("tanh").bias_limit.value == 1
    deepest = s.propagate(deep(calibrated("swish"), 100))[-1].bias
    assert deepest == pytest.approx(p.trichotomy("swish").bias_limit.value, rel=2e-3)


def test_S4b_2_case30_the_thirtieth_square_leaves_the_range_of_32_bits() -> None:
    smallest, largest = 1.1754944e-38, 3.4028235e38
    assert s.nonlinearity(deep(SQUARE, 40)).reaches[1].overflow == 2 * 30
    for sign in (1, -1):
        start = s.Input((1 + sign * 1e-7) ** 2, 0)
        states = s.propagate(s.mlp(31, Design(SQUARE), start))
        lengths = [sqrt(state.square.value) for state in states[2::2]]
        inside = [smallest <= length <= largest for length in lengths]
        assert inside.index(False) + 1 == 30
    noted = judged(deep(SQUARE, 40))["G2"].notes
    assert any("range of float32 at layer 60" in note for note in noted)


# ------------------------------------------------------------------------------------- the advice


@pytest.mark.slow
def test_S4b_1_changes_are_computed_and_help() -> None:
    found = s.advise(deep("relu", 50, weights=2))
    assert found.grade == "fail" and found.guidelines[0].key == "G7"
    changes = {each.what: each for each in found.changes}
    assert all(each.helps for each in found.changes)
    turned = {each.key: each for each in changes["orthogonal weights"].helps}
    other = p.rewritten(deep("relu", 50, weights=2), p.orthogonal)
    assert turned["G7"].after.value == judged(other)["G7"].value.value
    batch = changes["batch norm before every activation"]
    harm = next(each for each in batch.harms if each.key == "G1")
    assert harm.after.value == pytest.approx(s.nlc(deep("relu", 50, norm="batch")).value)
    assert (harm.grade_before, harm.grade_after) == ("warn", "fail")
    skips = p.skipping(deep("relu", 50, weights=2), 0.989949, 0.141421)
    best = {each.key: each.after.value for each in found.changes[0].helps}
    assert best["G1"] == pytest.approx(s.nlc(skips).value, rel=1e-12)


def test_S4b_1_lines_of_changes_make_the_networks_that_are_told() -> None:
    net, lines = deep("relu", 12, weights=2), set[str]()
    bar = p.Thresholds(nlc=(2, 5), bias=(1.1, 5), inequality=(1.5, 3))
    for network in (net, deep("tanh", 30, weights=2), deep(lambda z: tp.tanh(z) + z / 9, 9)):
        for change in s.advise(network, bar).changes:
            names = {"net": network, "act": lambda z: tp.tanh(z) + z / 9, "s": s, "p": p}
            found = judged(eval(change.code, names))
            for effect in (*change.helps, *change.harms):
                now = found[effect.key].value.value
                assert now == pytest.approx(effect.after.value, rel=1e-9), change.what
            lines.add(change.code.split("(")[0])
    assert lines == {"p.rewritten", "s.nlnorm", "p.skipping", "s.layers"}


def test_S4b_4_weights_that_explode_are_answered_in_seconds() -> None:
    """Ten times the variance of 19 softplus layers: q comes to 1e32; to the limit of ReLU."""
    found = judged(deep("softplus", 19, weights=10))["G4"]
    (told,) = (note for note in found.notes if note.startswith("weights of 10 times"))
    wide = s.nlc(deep("softplus", 19, weights=100)).value
    assert told.split(",")[0].endswith(f"NLC {wide:.4g}")


def test_S4b_2_short_waves_have_no_stability_number() -> None:
    """Lengths of what reads every phase alike do not depend on those of the input."""
    for c in (0.1, 0.01):
        number = s.stability_number(lambda z, c=c: 1 + c * tp.sawtooth(z / c), 1)
        assert number.value == 0 <= number.error < 1e-13


@given(passes=st.floats(1.5, 50), share=st.floats(1.01, 20))
@settings(max_examples=25, deadline=None)
def test_S4b_1_grades_are_monotone_in_thresholds(passes: float, share: float) -> None:
    bar = p.Thresholds(bias=(passes, share * passes))
    numbers = np.geomspace(1, 2000, 40)
    grades = [GRADES.index(bar.grade("bias", x)) for x in numbers]
    assert grades == sorted(grades)
    looser = p.Thresholds(bias=(2 * passes, 2 * share * passes))
    assert all(GRADES.index(looser.grade("bias", x)) <= g for x, g in zip(numbers, grades))  # noqa: B905


@pytest.mark.parametrize(
    "given_", [{"bias": (3, 2)}, {"bend": (1e-4, 1e-2)}, {"nlc": (1.01, 5)}, {"scale": (1, 2, 3)}]
)
def test_S4b_1_thresholds_out_of_order(given_: dict[str, object]) -> None:
    with pytest.raises(UsageError, match=r"threshold|passes"):
        p.Thresholds(**given_)


def test_S4b_1_what_is_refused() -> None:
    net = deep("tanh", 2)
    for wrong in ({"dtype": "float8"}, {"noise": [0]}, {"thresholds": (1, 2)}, {"widths": [1]}):
        with pytest.raises(TpcalcError):
            s.advise(net, **wrong)
    shared = s.parse_graph(
        "x = input(1, 0)\na = dense(x, 1, rank=1/2)\nb = shared_bias(a, 1, 1/2)\nc = tanh(b)"
    )
    with pytest.raises((EvaluationError, StudyError)):
        s.advise(shared)


def test_S4b_1_where_the_recursion_does_not_hold_some_guidelines_stay_open() -> None:
    net = s.parse_graph(
        "x = input(1, 0)\na = dense(x, 2)\nb = relu(a)\nc = dense(b)\nd = b + c\ne = tanh(d)\n"
        "f = dense(e)"
    )
    found = s.advise(net)
    assert found.route == "program" and found.changes == ()
    grades = {each.key: each.grade for each in found.guidelines}
    assert grades["G1"] == grades["G3"] == grades["G5"] == grades["G6"] == "pass"
    assert {key for key, grade in grades.items() if grade == "open"} >= {"G2", "G4", "G7", "G8"}


@pytest.mark.slow
def test_S4b_1_measured_beside_theory() -> None:
    found = s.advise(deep("relu", 3, weights=2), widths=[100], seeds=3)
    for key in ("G1", "G3", "G5", "G6", "G7"):
        own = found[key]
        assert own.measured_grade in GRADES
        assert abs(own.measured.mean.value / own.value.value - 1) < 0.25
    assert found.widths == (100,) and found["G1"].layers[0].measured is not None
    skips = s.resnet(3, Design("tanh", 1), skip=Fraction(4, 5), branch=Fraction(3, 5))
    open_ = judged(skips)["G7"]
    assert open_.grade == "open" and "correlated" in open_.notes[0]
    assert s.advise(skips, widths=[60], seeds=2)["G7"].measured_grade in GRADES
