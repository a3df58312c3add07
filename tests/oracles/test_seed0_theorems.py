"""Theorems of Hajjar, Chizat, Giraud as predicates: hypotheses, answers, claims, what is derived.

Rows S0.17 to S0.19, S0.21, S0.24, S0.25, S0.28, S0.30, S0.31, S0.33 and their acceptance cases.
"""

from __future__ import annotations

import pytest
from oracles.seed0_data import XI0, XI1, XI2

import tpcalc as tp
from tpcalc.results import Provenance, Theorem, Theorems
from tpcalc.results.codec import from_json, to_json
from tpcalc.theorems.integrable.predicates.alternatives import collapse, weak_data_dependence
from tpcalc.theorems.integrable.predicates.features import feature_learning, kernel_evolution
from tpcalc.theorems.integrable.predicates.hybrid import equiv_hp, equiv_hpz
from tpcalc.theorems.integrable.predicates.llr import linearizable, llr_necessary, nontrivial_stable
from tpcalc.theorems.integrable.predicates.naive import degenerate, trivial_naive_ip
from tpcalc.views.answers.theorems import answer_table

DATA = tp.Samples((XI0, XI1, XI2), ((0.0,), (0.0,), (0.0,)))
DATA_MSE = tp.Samples(DATA.inputs, ((1.0,), (0.7,), (0.3,)))


def derived(found: Theorem) -> dict[str, str]:
    return {claim.text: claim.derived for claim in found.claims}


def agreed(found: Theorem) -> bool:
    """Whether all that is stated is derived too."""
    return bool(found.claims) and all(claim.agrees for claim in found.claims if claim.stated)


@pytest.mark.parametrize(
    ("depth", "act", "bias"),
    [
        (3, "tanh", "all"),
        pytest.param(4, "gelu", "none", marks=pytest.mark.slow),
        (3, "relu^2", "first"),
    ],
)
def test_S0_17_case14_16_naive_ip_is_trivial(depth: int, act: str, bias: str) -> None:
    """Cases 14 and 16: both meanings of trivial, and for all t."""
    found = trivial_naive_ip(tp.MLP(depth, act, bias=bias), "naive-ip")
    assert found.answer == "holds" and agreed(found)
    assert derived(found)["learning at all t"] == "trivial, all t"
    assert derived(found)["h_0 above the first layer (the start)"] == "it vanishes"


@pytest.mark.parametrize(
    ("act", "moved", "note"),
    [
        ("tanh", "order one", "sigma'(0) != 0 is not trivial"),
        ("relu", "order one", "a rectifier is not trivial"),
        ("relu^2", "n^(-1)", "sigma'(0) = 0 is trivial"),
    ],
)
def test_S0_17_case15_16_two_layers_are_outside(act: str, moved: str, note: str) -> None:
    """Cases 15 and 16: the proposition is silent; the three bullets of L = 2 are derived."""
    found = trivial_naive_ip(tp.MLP(2, act), "naive-ip")
    assert found.answer == "outside" and found.missing[0].found == "L = 2"
    assert derived(found)["f_1 - f_0"] == moved
    assert derived(found)["what the first update adds to layer 2"] == (
        "n^(-1/2)" if act == "relu^2" else "order one"
    )
    assert any(note in line for line in found.notes)
    assert all(claim.agrees is None for claim in found.claims)


@pytest.mark.parametrize(
    ("depth", "act"), [(3, "sigmoid"), pytest.param(4, "softplus", marks=pytest.mark.slow)]
)
def test_S0_18_learning_is_degenerate(depth: int, act: str) -> None:
    found = degenerate(tp.MLP(depth, act, bias="all"), "naive-ip", loss="linear", data=DATA)
    assert found.answer == "holds" and agreed(found)
    assert derived(found)["the difference of f_1 at two inputs"].startswith("at most n^(-")


def steps(found: Theorem, step: int) -> list[str]:
    return [claim.stated for claim in found.claims if f"update {step} " in claim.text]


@pytest.mark.parametrize(
    ("depth", "bias", "first"),
    [
        (3, "none", ["n^(-1)", "n^(-1/2)", "n^(-1)", "n^(-2)"]),
        (4, "first", ["n^(-3/2)", "n^(-1)", "n^(-3/2)", "n^(-2)", "n^(-3)"]),
    ],
)
def test_S0_19_case10_11_sizes_at_naive_rates(depth: int, bias: str, first: list[str]) -> None:
    """Cases 10 and 11, from the formulas of the theorem and from the program."""
    found = llr_necessary(tp.MLP(depth, "relu", bias=bias), "naive-ip", loss="linear")
    assert steps(found, 1) == [f"{power}: vanishing" for power in first]
    assert agreed(found)
    assert steps(found, 2) == [""] * (depth + 1)


@pytest.mark.slow
def test_S0_19_case8_the_rates_of_ip_llr() -> None:
    """Case 8: every update of order one, at p = 2 within the hypotheses, at p = 1 beside them.

    At step 2 the program of relu^2 has bounds alone.
    """
    for act, p, answer in (("relu^2", 2, "not confirmed"), ("relu", 1, "outside")):
        found = llr_necessary(
            tp.MLP(3, act, bias="first"), f"ip-llr:{p}", DATA, lr=0.1, loss="linear"
        )
        assert found.answer == answer and not found.differs
        assert steps(found, 1) + steps(found, 2) == ["order one"] * 8
        assert all(claim.agrees for claim in found.claims[:4])
    assert agreed(found)


@pytest.mark.parametrize(
    ("act", "rates", "gains"),
    [("relu", "-2,-5/2,-2", "(1, 1/2, 1/2, 1)"), ("relu^2", "-4,-9/2,-4", "(3, 5/2, 5/2, 3)")],
)
def test_S0_19_case9_constant_rates_explode(act: str, rates: str, gains: str) -> None:
    """Case 9: gamma(p) kept at step 1."""
    found = llr_necessary(tp.MLP(3, act, bias="first"), f"ip:{rates}", DATA, lr=0.1, loss="linear")
    assert found.answer == ("does not hold" if act == "relu^2" else "outside")
    assert steps(found, 1) == ["order one"] * 4
    assert steps(found, 2)[0].endswith(": exploding") and not found.differs
    assert found.notes[-1] == f"the second updates themselves carry the powers {gains} of n"


def test_S0_19_data_that_are_outside() -> None:
    network = tp.MLP(3, "relu^2", bias="first")
    again = tp.Samples((XI0, XI1), ((0.0,), (0.0,)))
    found = llr_necessary(network, "ip-llr:2", again, loss="linear", derive=False)
    assert [hypothesis.found for hypothesis in found.missing] == ["some are the same"]
    fitted = tp.Samples(DATA.inputs, ((0.0,), (1.0,), (1.0,)))
    found = llr_necessary(network, "ip-llr:2", fitted, derive=False)
    assert [hypothesis.found for hypothesis in found.missing] == ["chi_0 = 0"]


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(("depth", "act", "p"), [(2, "relu^2", 2), (3, "relu", 1)])
def test_S0_21_case17_ip_llr_learns_and_is_stable(depth: int, act: str, p: int, sign: int) -> None:
    """Case 17, with the sign of f_1: that of -chi_0."""
    data = tp.Samples(DATA.inputs, ((float(sign),), (0.5,), (0.5,)))
    network = tp.MLP(depth, act, bias="first")
    found = nontrivial_stable(network, f"ip-llr:{p}", data, lr=0.1)
    assert found.answer == ("holds" if p == 2 else "outside")
    if p == 1:
        assert found.notes[0].startswith("supported, but outside the smoothness assumption")
    assert agreed(found)
    (claim,) = (claim for claim in found.claims if claim.text == "the sign of f_1")
    assert claim.stated.startswith("positive" if sign > 0 else "negative")
    assert claim.derived.startswith("positive, " if sign > 0 else "negative, ")
    assert "standard errors from 0 (particles)" in claim.derived


@pytest.mark.parametrize(
    ("depth", "act", "answer", "first", "moved"),
    [
        (2, "tanh", "holds", "step 1", "order one"),
        (2, "identity", "holds", "step 1", "order one"),
        (3, "tanh", "does not hold", "step 2", "n^(-1/2)"),
        (3, "elu", "does not hold", "step 2", "n^(-1/2)"),
        (4, "swish", "does not hold", "step 2", "at most n^(-1)"),
        pytest.param(
            *(5, "gelu", "does not hold", "never", "at most n^(-3/2)"), marks=pytest.mark.slow
        ),
    ],
)
def test_S0_33_case18_19_20_linearizable_activations(
    depth: int, act: str, answer: str, first: str, moved: str
) -> None:
    """Cases 18 to 20: the remark is refuted from three layers on."""
    found = linearizable(tp.MLP(depth, act, bias="first"), "ip-llr")
    assert found.answer == answer and found.missing == ()
    assert found.differs is (answer != "holds")
    assert derived(found)["the step at which f first moves"] == first
    assert derived(found)["f_1 - f_0"] == moved
    if depth > 2:
        agrees = {claim.text: claim.agrees for claim in found.claims}
        layers = range(1, depth + 1)
        updated = [agrees[f"what the first update adds to layer {layer}"] for layer in layers]
        assert updated == [True, True, *[False] * (depth - 2)]
        assert found.notes[0].startswith("lambda_2 = 0")


def test_S0_33_lambda_is_exactly_0() -> None:
    """The correlation that the remark needs: E x_0^2 x_1^2, without its power of n."""
    program = tp.train(
        tp.MLP(3, "gelu", bias="first"), "ip-llr", DATA, loss="linear", queries=(XI1,), watch="x"
    )

    def more(t: tp.Tracer) -> None:
        t.output("lambda", tp.n**0.5 * t.inner(t["x[2,0,0]"], t["x[2,1,1]"]))

    assert str(tp.limit(tp.extend(program, more), outputs=["lambda"])["lambda"]) == "0 (exact)"


@pytest.mark.parametrize(
    ("depth", "constant", "collapsed"), [(3, [2], []), (4, [2, 3], [3]), (5, [2, 3, 4], [3, 4])]
)
def test_S0_30_case24_collapse(depth: int, constant: list[int], collapsed: list[int]) -> None:
    """Case 24, with means of one's own."""
    means = ",".join(str(layer) for layer in range(1, depth + 1))
    found = collapse(tp.MLP(depth, "gelu", bias="all"), f"ip-non-centered:{means}", lr=0.1)
    assert found.answer == "holds" and agreed(found)
    texts = [claim.text for claim in found.claims]
    layers = [int(text[6]) for text in texts if "h_t" in text and "dh" not in text]
    assert layers == constant
    assert [int(text[6]) for text in texts if "w^l" in text] == collapsed
    assert set(derived(found).values()) == {"a constant, by the form of the limit"}


def test_S0_30_centred_or_outside() -> None:
    found = collapse(tp.MLP(3, "relu", bias="all"), "ip-non-centered", steps=1)
    assert found.answer == "outside" and agreed(found)
    assert "particles" in derived(found)["layer 2: n dh_t and n dx_t, t <= 1"]
    assert collapse(tp.MLP(3, "gelu"), "naive-ip", derive=False).answer == "outside"


@pytest.mark.parametrize(("depth", "act"), [(4, "tanh"), (3, "gelu"), (4, "relu")])
def test_S0_31_ip_bias_hardly_feels_the_data(depth: int, act: str) -> None:
    found = weak_data_dependence(tp.MLP(depth, act, bias="all"), "ip-bias", DATA)
    assert found.answer == ("holds" if act != "relu" else "outside") and agreed(found)
    second = derived(found)["layer 2: first update by one training input less that by another"]
    assert second.endswith("order one")
    (silent,) = (claim for claim in found.claims if not claim.stated)
    assert silent.text.startswith("layer 2: first update")


def test_S0_31_case25_exponents() -> None:
    """Case 25: the tables that the predicate asks for."""
    found = weak_data_dependence(
        tp.MLP(4, "tanh", bias="all"),
        "ip:-5/2,-3,-5/2,-2,-1",  # the rates of IP-bias, but biases that are scaled down
        derive=False,
    )
    assert found.missing[0].found.endswith("the exponent of bias 2 is 1 at step 0, not 0")


def test_S0_28_features_and_kernels() -> None:
    """Features and kernels move in all layers of muP and IP-LLR, in none of NTK and Naive-IP."""
    network = tp.MLP(2, "relu", bias="first")
    for name, answer in (("mup", "holds"), ("ip-llr", "holds"), ("ntk", "does not hold")):
        assert feature_learning(network, name, steps=1).answer == answer
        assert kernel_evolution(network, name, steps=1).answer == answer
    assert feature_learning(tp.MLP(3, "relu"), "naive-ip", steps=1).answer == "does not hold"


@pytest.mark.parametrize(("act", "rate"), [("relu", 1.0), ("leaky_relu:-1/2", 1.0)])
def test_S0_24_case22_hp_is_ip_llr_at_every_width(act: str, rate: float) -> None:
    """Case 22, with the learning rate corrected network by network (squared loss)."""
    found = equiv_hp(tp.MLP(3, act, bias="first"), "ip-llr", DATA_MSE, lr=rate)
    assert found.answer == "holds" and agreed(found)
    assert len(found.claims) == 2


def test_S0_25_hpz_has_the_limit_of_ip_llr() -> None:
    """Case 23 for a smooth activation: the graphs are the same."""
    found = equiv_hpz(tp.MLP(3, "relu^2", bias="first"), "ip-llr:2", DATA_MSE, lr=0.1)
    assert found.answer == "holds" and agreed(found)
    assert derived(found) == {
        "the limit of f_0": "both 0",
        "the limit of f_1": "same graph",
        "the limit of f_2": "same graph",
    }


def test_S0_25_smoothness_is_needed() -> None:
    """ReLU: gates that are shut at t = 1 are decided by the initial weights, which HPZ has not."""
    found = equiv_hpz(tp.MLP(2, "relu", bias="first"), "ip-llr", DATA, lr=2.0, loss="linear")
    assert found.answer == "outside"
    assert [hypothesis.found for hypothesis in found.missing] == ["p = 1"]
    assert derived(found)["the limit of f_1"] == "same graph"
    assert derived(found)["the limit of f_2"] == "different"
    assert not found.differs and "gate is shut" in found.notes[0]


@pytest.mark.slow
def test_hypotheses_that_are_met_are_no_confirmation() -> None:
    """relu^3 within ip-llr:3: what is derived of step 2 is a bound, and the answer says so."""
    found = llr_necessary(tp.MLP(3, "relu^3"), "ip-llr:3", DATA, lr=0.1, loss="linear")
    assert not found.missing and not found.differs
    assert found.answer == "not confirmed" and not found
    assert found.open and all(claim.agrees is None for claim in found.open)
    assert "hypotheses met, not confirmed by the program" in str(found)
    table = answer_table(Theorems((found,), Provenance("0", "ab")))
    assert found.open[0].derived in table.rows[0][3].text
    assert from_json(to_json(found)) == found
