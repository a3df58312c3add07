"""Verdicts on training against published classes: Hajjar et al., Yang and Hu, and their traps."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from oracles.yang_hu import drawn

import tpcalc as tp
from tests.gauges import equivalent_gauge
from tpcalc.networks.architectures.mlp import MLP
from tpcalc.networks.architectures.resnet import ResNet
from tpcalc.questions.check import check
from tpcalc.questions.verdict.judge import decide
from tpcalc.questions.verdict.probe import probe
from tpcalc.results import Verdict
from tpcalc.training.generic import far_query, generic
from tpcalc.training.parameterizations import lookup
from tpcalc.training.training import Training


def row(found: Verdict, name: str) -> tuple[str, str]:
    """The exponent of an output and its status."""
    (entry,) = (r for r in (*found.updates, *found.outputs) if r.name == name)
    return str(entry.n), entry.status


def changes(found: Verdict) -> list[str]:
    return [
        str(entry.n) for entry in found.outputs if entry.name.startswith("f") and "-" in entry.name
    ]


@pytest.mark.parametrize(
    ("parameterization", "verdict", "initial"),
    [
        ("mup", "feature-learning", "ok"),
        ("ntk", "kernel", "ok"),
        ("ac:0,1/2,1/2;-1,-1,-1", "unstable", "ok"),
        ("naive-ip", "trivial", "vanishes"),
    ],
)
def test_orders_case7(parameterization: str, verdict: str, initial: str) -> None:
    """tanh, L = 3; standard scales with a learning rate of order one explode."""
    found = check(MLP(3, "tanh"), parameterization)
    assert (found.verdict, found.initial, found.valid_for) == (verdict, initial, "all t")


def test_orders_case8() -> None:
    """The first rates of IP-LLR kept for all steps, relu^2, L = 3: f_2 grows like n^42."""
    found = check(MLP(3, "relu^2"), "ip:-4,-9/2,-4", steps=2)
    assert found.verdict == "unstable"
    assert row(found, "f[2,1]")[0] == "42"


@pytest.mark.parametrize(
    ("depth", "act", "verdict"),
    [
        (2, "tanh", "feature-learning"),
        (3, "tanh", "trivial"),
        (2, "relu", "feature-learning"),
        (3, "relu", "trivial"),
        (4, "relu", "trivial"),
        (2, "relu^2", "trivial"),
        (3, "relu^2", "trivial"),
        (5, "gelu", "trivial"),
    ],
)
def test_S0_17_case14_15_16(depth: int, act: str, verdict: str) -> None:
    """Naive-IP: not trivial at L = 2 with tanh and relu; trivial for all t from L = 3 on."""
    found = check(MLP(depth, act), "naive-ip")
    assert (found.verdict, found.initial, found.valid_for) == (verdict, "vanishes", "all t")
    assert found.stationary_start is (verdict == "trivial")


@pytest.mark.parametrize(
    ("depth", "updates", "outputs"),
    [
        (3, ["-1", "-1/2", "-1", "-2"], ["-3/2", "-1"]),
        (4, ["-3/2", "-1", "-3/2", "-2", "-3"], ["-2", "-2"]),
    ],
)
def test_S0_17_case10_11(depth: int, updates: list[str], outputs: list[str]) -> None:
    """Naive-IP with relu: contributions of the first updates, f_0 and f_1."""
    found = check(MLP(depth, "relu"), "naive-ip", steps=1)
    for layer, power in enumerate(updates, start=1):
        assert row(found, f"dW_x[{layer},1,1]") == (power, "exact")
    assert [row(found, f"f[{t},1]")[0] for t in (0, 1)] == outputs


@pytest.mark.parametrize(
    ("p", "act"), [pytest.param(2, "relu^2", marks=pytest.mark.slow), (1, "relu")]
)
def test_S0_21_case17(p: int, act: str) -> None:
    """IP-LLR at the degree of its activation learns, and stays stable, for all t."""
    found = check(MLP(3, act, bias="first"), lookup("ip-llr", p=p))
    assert (found.verdict, found.valid_for) == ("feature-learning", "all t")
    assert all(layer.moves for layer in found.layers)


@pytest.mark.parametrize(
    ("depth", "act", "verdict", "moved"),
    [
        (2, "tanh", "feature-learning", ["0", "0", "0"]),
        (3, "tanh", "feature-learning", ["-1/2", "0", "0"]),
        (4, "tanh", "feature-learning", ["-1", "0", "0"]),
        (5, "tanh", "trivial", ["-3/2", "-1", "-1"]),
        pytest.param(5, "gelu", "trivial", ["-3/2", "-1", "-1"], marks=pytest.mark.slow),
        (2, "identity", "feature-learning", ["0", "0", "0"]),
        (3, "identity", "feature-learning", ["-1/2", "0", "0"]),
        (5, "identity", "trivial", ["-3/2", "-1", "-1"]),
        (2, "relu", "feature-learning", ["0", "0", "0"]),
        (5, "relu", "feature-learning", ["0", "0", "0"]),
    ],
)
def test_S0_33_trap_T1(depth: int, act: str, verdict: str, moved: list[str]) -> None:
    """Linearizable activations in IP-LLR: L = 3, 4 learn from t = 2 on, L = 5 never does."""
    found = check(MLP(depth, act), "ip-llr")
    assert (found.verdict, found.valid_for) == (verdict, "all t")
    assert changes(found) == moved
    if verdict == "trivial":
        assert [layer.features for layer in found.layers[:3]] == [True, True, False]
        assert not found.stationary_start
        assert found.facts[0].startswith("layer 3: its updates contribute n^(-1/2)")


@pytest.mark.parametrize(
    "network",
    [*(MLP(depth, "tanh", "all") for depth in (1, 2, 3)), ResNet(2, "tanh", bias_variance=1)],
    ids=["mlp-1", "mlp-2", "mlp-3", "resnet"],
)
def test_all_parameters_of_mup_move_by_order_one(network: MLP | ResNet) -> None:
    """Tensor Programs V, Table 3: hidden biases are scaled as input weights, all of them move."""
    found = check(network, "mup", steps=1)
    assert found.verdict == "feature-learning"
    biased = [entry.name for entry in found.updates if entry.name.startswith("dB")]
    assert len(biased) == (network.depth if isinstance(network, ResNet) else network.depth + 1)
    assert {(str(entry.n), entry.status) for entry in found.updates} == {("0", "exact")}


def test_S0_2_case42() -> None:
    """Yang-Hu muP in its own words is muP; with b = 1 between it is Naive-IP."""
    first = "abc:-1/2,0,1/2;1/2,1/2,1/2;0,0,0"
    assert equivalent_gauge(first, "mup", 3)
    second = "abc:-1/2,0,1/2;1/2,1,1/2;0,0,0"
    assert not equivalent_gauge(first, "mup", 3, biases=True)
    assert equivalent_gauge(second, "naive-ip", 3, biases=True)
    assert not equivalent_gauge(second, "mup", 3)
    note = "at this depth it is the parameterization naive-ip, in another gauge"
    assert note in check(MLP(3, "relu"), second, steps=1).notes


def test_peers_adam_rows() -> None:
    """The hidden layers of MuAdam and of unit scaling: one network in two gauges, for Adam only."""
    muadam = "abc:0,0,0;0,1/2,1;0,1,1"
    unit = "abc:0,1/2,1;0,0,0;0,1/2,0"
    assert equivalent_gauge(muadam, unit, 4, optimizer="adam")
    assert not equivalent_gauge(muadam, unit, 4)


POINTS = [
    (Fraction(a, 4), Fraction(c, 4)) for a in (1, 2, 3, 4) for c in (-10, -8, -6, -5, -4, -3, -1, 0)
]


@pytest.mark.parametrize(("a", "c"), POINTS)
def test_orders_case10(a: Fraction, c: Fraction) -> None:
    """The slice (a_hidden, c): one point learns, and the answer holds on a region around it."""
    found = decide(
        probe(
            Training(MLP(3, "tanh"), "ac:0,a,1;c,c,c", DATA, steps=2), query=QUERY, watch=("h", "x")
        ),
        at={"a": a, "c": c},
    )
    expected = "trivial"
    if a < Fraction(1, 2) or 2 * a + c < 0:
        expected = "unstable"
    elif (a, c) == (Fraction(1, 2), Fraction(-1)):
        expected = "feature-learning"
    assert found.verdict == expected
    assert found.region.contains({"a": a, "c": c})


DATA = generic("mse", 3)
QUERY = far_query(DATA)


@pytest.mark.slow
def test_orders_case11() -> None:
    """200 abc-parametrizations of depth 2 to 5, most of them on walls, against the closed rule."""
    rng = np.random.default_rng(20)
    classes: Counter[str] = Counter()
    for number in range(200):
        depth, act = 2 + number % 4, ("tanh", "relu")[number // 4 % 2]
        abc = drawn(rng, depth)
        run = probe(
            Training(MLP(depth, act), abc.word, DATA, steps=2), query=QUERY, watch=("h", "x")
        )
        assert decide(run).verdict == abc.verdict, (act, abc.word)
        classes[abc.verdict] += 1
    assert min(classes.values()) >= 25 and len(classes) == 4


@pytest.mark.slow
def test_whole_answers_follow_the_closed_rule() -> None:
    """The same through ``check``, which follows all outputs."""
    rng = np.random.default_rng(21)
    for number in range(8):
        abc = drawn(rng, 2 + number % 2)
        found = check(MLP(abc.depth, ("tanh", "relu")[number % 2]), abc.word, steps=2)
        assert (found.verdict, found.valid_for) == (abc.verdict, "all t"), abc.word


# --------------------------------------------------------- questions that practitioners have asked


@tp.network
def _norm_before_head(t: Any, x: Any) -> Any:
    h = t.linear(t.n, "in", init=1, name="emb")(x)
    h = tp.layers.layer_norm(t.linear(t.n, t.n, init="n^(-1/2)", name="w")(tp.tanh(h)))
    return t.linear(t.outputs, t.n, init="n^(-1/2)", name="head")(h)


@tp.network
def _bottleneck(t: Any, x: Any) -> Any:
    h = tp.tanh(t.linear(t.n, "in", init=1, name="emb")(x))
    inner = t.linear(1, t.n, axes={"k": 4}, init="n^(-1/2)", name="A")(h)
    base = t.linear(t.n, t.n, init="n^(-1/2)", name="base")(h)
    h = tp.tanh(base + t.linear(t.n, "k", init=1, name="B")(inner))
    return t.linear(t.outputs, t.n, init="n^(-1)", name="read")(h)


@tp.network
def _experts(t: Any, x: Any) -> Any:
    h = tp.tanh(t.linear(t.n, "in", name="emb")(x))
    g = tp.softmax(t.linear(1, t.n, axes={"e": 2}, name="router")(h), along="e")
    y = t.linear(t.n, t.n, axes={"e": 2}, name="experts")(h)
    return t.linear(t.outputs, t.n, name="read")(t.sum(g * tp.relu(y), "e"))


_FROZEN: dict[str, Any] = {name: {"lr": 0} for name in ("emb", "base", "read")}
_ASKED = [
    pytest.param(_norm_before_head, "own", "unstable", {"steps": 1}, id="one rate"),
    pytest.param(
        _bottleneck,
        "own",
        "feature-learning",
        {"steps": 2, "groups": {**_FROZEN, "A": {"power": "-1"}}},
        id="bottleneck",
    ),
    pytest.param(
        _experts, "mup", "feature-learning", {"steps": 2}, marks=pytest.mark.slow, id="experts"
    ),
]


@pytest.mark.parametrize(("net", "rule", "verdict", "settings"), _ASKED)
def test_first_steps_decide_where_coefficients_are_out_of_reach(
    net: Any, rule: str, verdict: str, settings: Any
) -> None:
    """Slopes of torch networks between widths 128 and 4096: n^(1/2), and twice 0."""
    assert tp.check(net, rule, optimizer="adam", **settings).verdict == verdict


def test_logits_that_grow_under_cross_entropy_are_followed() -> None:
    """Three steps between widths 128 and 2048: logits .53, .49, .45, hidden changes .03 to -.04."""
    found = tp.check(tp.MLP(2, "tanh"), "standard:1/2", loss="xent", steps=3)
    assert found.verdict == "unstable" and found.first_order is not None
    moved = {point.name.split()[0]: str(point.later) for point in found.first_order.points}
    assert moved == {"h[1]": "-1", "h[2]": "0", "f": "1/2", "x[1]": "-1", "x[2]": "0"}
