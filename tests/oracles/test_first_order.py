"""First steps of networks in use: exponents of outputs, read points and words, case by case.

Sizes are powers of the width n, in units of the weights as they stand in a network. ``output`` is
what the first step of a parameter adds to the output, ``later`` the same at later steps; "-oo" is
0. All comparisons are exact. Networks of finite width (``measure``) are run where a case says so.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

import tpcalc as tp
from tests.first_steps import (
    FROM_ZERO,
    INTO,
    LATER,
    LEARNS,
    NEVER,
    NOTHING,
    READ,
    SUM,
    expect,
    first_order,
    read,
    terms,
    words,
)
from tests.networks_in_use import (
    GPT,
    ConvNeXt,
    Llama,
    LoRA,
    Lstm,
    Mamba,
    Mixer,
    MoE,
    ViT,
    with_tokens,
)

# ------------------------------------------------------------------------------ attention, F1 to F4


def test_F1_gpt_under_mup() -> None:
    """Queries and keys start slowly; a key's bias shifts all scores of a row, which is nothing."""
    found = first_order(tp.network(GPT, bias=True), measured=True)
    expect(found, {"*.query*": LATER, "*.key": LATER, "*.key.bias": NEVER})
    assert found.word == "feature learning"
    assert found["attention.0.key.bias"].word == "exactly 0"
    assert found["attention.0.query"].word == found["attention.0.key"].word == "output later"
    assert read(found, "argument of softmax") == ("-1/2", "0", "0")
    assert read(found, "h[mlp.0.up]") == ("0", "0", "0")
    assert str(found["attention.0.query"].gradient) == "-3/2"


@pytest.mark.parametrize("measured", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_F2_scores_over_the_root_of_d(measured: bool) -> None:
    """The output does not show at the first step that scores change by n^(1/2)."""
    found = first_order(tp.network(GPT, scale="1/sqrt(d)"), measured=measured)
    assert {row.name: str(row.output) for row in found.rows} == dict.fromkeys(terms(found), "0")
    assert read(found, "argument of softmax")[:2] == ("0", "1/2")
    for name in ("query", "key"):
        row = found[f"attention.0.{name}"]
        assert (str(row.inside), row.where) == ("1/2", "argument of softmax")
        assert row.word == ("explodes" if measured else "may explode")
    assert found.word == ("unstable" if measured else "may be unstable")
    assert found.status == ("measured" if measured else "bound")


@pytest.mark.slow
def test_F3_gpt_with_one_table() -> None:
    """With a tied head the first step of queries and keys adds order one, by a small number.

    The readout of the token at hand is its own embedding, so the adjoint of attention has a part
    along what attention gives out. The coefficient is small (below 1e-3 of the others in networks
    whose inputs have equal norms), and slopes up to width 512 look like -1/2.
    """
    found = first_order(tp.network(GPT, tied=True))
    expect(found, {})
    assert read(found, "f")[0] == "0"
    assert read(found, "argument of softmax") == ("-1/2", "0", "0")


def test_F4_gpt_under_gradient_descent() -> None:
    found = first_order(tp.network(GPT), optimizer="sgd")
    expect(found, {"*.query": ("-1", "0"), "*.key": ("-1", "0")})
    assert str(found["attention.0.query"].inside) == "-1/2"
    rates = {row.role: str(row.rate) for row in found.rows}
    assert rates == {"input": "1", "bias": "1", "hidden": "0", "readout": "-1"}


# ------------------------------------------------------------------- plain networks, F6 to F8, F25


def test_F6_standard_under_gradient_descent() -> None:
    found = first_order(tp.MLP(3, "tanh", bias="all"), "standard", "sgd")
    outputs = {row.name: str(row.output) for row in found.rows}
    assert outputs == {
        "W1": "0", "b1": "0", "W2": "1", "b2": "0", "W3": "1", "b3": "0", "W4": "1", "b4": "0"
    }  # fmt: skip
    assert (found.word, found.status) == ("unstable", "exact")
    assert {name for name, word in words(found).items() if word == "explodes"} == {"W2", "W3", "W4"}


def test_F7_standard_under_adam() -> None:
    found = first_order(tp.MLP(3, "tanh", bias="all"), "standard")
    outputs = {row.name: str(row.output) for row in found.rows}
    assert outputs == {
        "W1": "1/2", "b1": "1/2", "W2": "3/2", "b2": "1/2", "W3": "3/2", "b3": "1/2", "W4": "1",
        "b4": "0",
    }  # fmt: skip
    assert (found.word, found.status) == ("unstable", "exact")


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_F8_kernel_regime(optimizer: str) -> None:
    found = first_order(tp.MLP(3, "tanh"), "ntk", optimizer)
    expect(found, {})
    assert {str(row.inside) for row in found.rows if row.role != "readout"} == {"-1/2"}
    assert (found.word, found.status) == ("kernel", "exact")


def test_F25_fan_in_and_adam_at_one_over_n() -> None:
    """Torch's own start: the output grows, the inside does not."""
    groups = {"hidden": {"power": -1}, "readout": {"power": -1}}
    found = first_order(tp.MLP(3, "tanh"), "standard", groups=groups)
    outputs = {row.name: str(row.output) for row in found.rows}
    assert outputs == {"W1": "1/2", "W2": "1/2", "W3": "1/2", "W4": "0"}
    assert {str(row.inside) for row in found.rows if row.role != "readout"} == {"0"}
    assert (found.word, found.status) == ("output grows", "exact")


def test_F17_start_that_is_nearly_stationary() -> None:
    """First steps alone are trivial; at moved parameters gradients are larger, and all is learned.

    To first order in the rate no step adds order one. The later steps here are those of the exact
    gradient at the parameters that the first step has left, as the derivation of all steps has it.
    """
    found = first_order(tp.MLP(3, "relu"), "ip-llr", "sgd")
    assert all(row.output.constant < 0 for row in found.rows if row.output.constant is not None)
    assert {str(row.later) for row in found.rows} == {"0"}
    assert found.word == "feature learning"
    assert tp.check(tp.MLP(3, "relu"), "ip-llr", steps=2).verdict == "feature-learning"


# --------------------------------------------------------------- other networks in use, F9 to F13


def test_F9_router() -> None:
    found = first_order(MoE)
    expect(found, {"router": LATER})
    assert read(found, "argument of softmax") == ("-1/2", "0", "0")
    assert words(found)["router"] == "output later"


@pytest.mark.slow
def test_F10_mixer() -> None:
    """A bias that is the same in all channels is nothing behind a norm."""
    found = first_order(Mixer, measured=True)
    expect(found, {"mix*": LATER, "unmix": LATER, "unmix.bias": NEVER})
    assert words(found)["unmix.bias"] == "exactly 0"
    assert found.word == "feature learning"


@pytest.mark.slow
def test_F11_llama() -> None:
    found = first_order(Llama)
    expect(found, {"query": LATER, "key": LATER})
    assert read(found, "argument of softmax") == ("-1/2", "0", "0")
    assert found.word == "feature learning"


@pytest.mark.parametrize(
    ("net", "late"),
    [
        pytest.param(ViT, ("*.query", "*.key"), marks=pytest.mark.slow),
        (ConvNeXt, ()),
        pytest.param(Lstm, (), marks=pytest.mark.slow),
    ],
)
def test_F12_vision_and_recurrence(net: type, late: tuple[str, ...]) -> None:
    found = first_order(net)
    expect(found, dict.fromkeys(late, LATER))
    assert found.word == "feature learning"


@pytest.mark.slow
def test_F13_selective_scan() -> None:
    """What is written and read by maps to finite sides vanishes at the start, factor by factor.

    ``later`` is that of all orders in the rate along the first step, which is 0 for all. Of one
    order alone it would be decay -1/2, write and read -1/2, narrow -1, rate -1, its bias -1/2.
    """
    found = first_order(Mamba)
    firsts = {
        "decay": "-1", "write": "-1", "read": "-1", "narrow": "-3/2", "rate": "-3/2",
        "rate.bias": "-1",
    }  # fmt: skip
    expect(found, {name: (power, "0") for name, power in firsts.items()})
    assert found.word == "feature learning"


# ------------------------------------------------------------------ starts at 0, F14 to F16, F27


@pytest.mark.parametrize(
    ("net", "zero"), [(GPT, {"zero": ("head",)}), (MoE, {"head": "0"}), (Lstm, {"head": "0"})]
)
def test_F14_zero_head(net: type, zero: dict[str, Any]) -> None:
    """All but the head wait for its step; then their sizes are those with a head."""
    found, wanted = first_order(tp.network(net, **zero)), terms(first_order(net))
    body = [name for name in wanted if not name.startswith("head")]
    expect(found, {name: (NOTHING, wanted[name][1]) for name in body})
    assert {found[name].starts for name in body} == {2}
    assert {found[name].word for name in body} == {"output later"}
    assert found.word == "feature learning"


def test_F15_zero_last_map_of_a_branch() -> None:
    found = first_order(tp.network(GPT, zero=("head", "branch")))
    starts = {row.name: row.starts for row in found.rows}
    third = {"mlp.0.up", "norms.0.1.gain", "norms.0.1.bias"}
    assert starts == {name: 1 if name == "head" else 3 if name in third else 2 for name in starts}
    assert {str(row.later) for row in found.rows} == {"0"}


def nested(depth: int, skip: bool) -> tp.Architecture:
    """Branches in branches whose last maps start at 0, and a head that does."""

    @tp.network
    def net(t: Any, x: Any) -> Any:
        h = t.linear(t.n, "in", name="u")(x)
        for k in range(depth):
            inner = tp.tanh(t.linear(t.n, t.n, name=f"w{k}")(h))
            moved = t.linear(t.n, t.n, name=f"z{k}", **FROM_ZERO)(inner)
            h = tp.tanh(h + moved) if skip else tp.tanh(moved)
        return t.linear(t.outputs, t.n, name="v", **FROM_ZERO)(h)

    return net


def test_F15_zero_maps_with_a_way_round_them() -> None:
    found = first_order(nested(2, skip=True))
    assert {row.name: row.starts for row in found.rows} == {
        "u": 2, "w0": 3, "z0": 2, "w1": 3, "z1": 2, "v": 1
    }  # fmt: skip
    assert {str(row.later) for row in found.rows} == {"0"}


def test_F15_zero_maps_in_a_row_are_a_saddle() -> None:
    found = first_order(nested(1, skip=False))
    expect(found, {}, rest=NEVER)
    assert set(words(found).values()) == {"exactly 0"} and found.word == "trivial"


ADAPTERS = {"groups": {name: {"lr": 0} for name in ("base*", "embed", "head")}}


def test_F16_one_adapter() -> None:
    found = first_order(LoRA, "own", **ADAPTERS)
    expect(found, {"into.0": (NOTHING, "0"), "out.0": LEARNS})
    assert words(found) == {"into.0": "output later", "out.0": "learns"}
    assert (found.word, found.status) == ("feature learning", "exact")


def test_F16_adapters_in_a_row() -> None:
    """The maps out of earlier adapters grow at later steps; less of a start helps."""
    found = first_order(tp.network(LoRA, adapted=3), "own", **ADAPTERS)
    later = {row.name: row.later.constant for row in found.rows}
    assert {str(found[f"out.{k}"].output) for k in range(3)} == {"0"}
    assert all(later[f"out.{k}"] >= Fraction(1, 2) for k in (0, 1))
    assert found.word == "may be unstable"
    small = first_order(tp.network(LoRA, adapted=3, into="n^(-1)"), "own", **ADAPTERS)
    assert {str(row.later) for row in small.rows} == {"0"}
    assert small.word == "feature learning"


def test_F27_zero_query_and_zero_head() -> None:
    found = first_order(tp.network(GPT, size=8, zero=("head", "query")))
    starts = {row.name: row.starts for row in found.rows}
    own = {"head": 1, "attention.0.key": 3}
    assert starts == {name: own.get(name, 2) for name in starts}
    assert {str(row.later) for row in found.rows} == {"0"}


# ----------------------------------------------------------------- explosions, norms, F18 to F24


def test_F18_start_that_explodes_inside() -> None:
    """Where arguments grow there are still sizes: of the branch and behind the norm."""

    @tp.network
    def net(t: Any, x: Any) -> Any:
        h = t.linear(t.n, "in", name="u", **INTO)(x)
        a = t.linear(t.n, t.n, name="a", init=1, rates=("n^(-1)", 1))(h)
        b = t.linear(t.n, t.n, name="b", init=1, rates=("n^(-1)", 1))(tp.gelu(a))
        t.watch("x", "b", b)
        h = tp.layers.LayerNorm(t, name="norm")(h + b)
        return t.linear(t.outputs, t.n, name="v", **READ)(h)

    found = first_order(net, "own")
    assert read(found, "h[a]")[0] == "1/2" and read(found, "x[b]")[0] == "1"
    assert str(found["v"].gradient) == "0" and found.word == "unstable at the start"
    assert all(row.output.constant is not None for row in found.rows)


@pytest.mark.slow
def test_F19_norms_at_small_rates() -> None:
    found = first_order(tp.network(GPT), groups={"norm*": {"power": -1}})
    expect(found, {"norm*": ("-1", "-1"), "*.query": LATER, "*.key": LATER})
    frozen = {name for name, word in words(found).items() if word == "frozen"}
    assert frozen == {name for name in words(found) if name.startswith("norm")}


class FewFeatures(tp.Network):
    """One head of a few coordinates, at fan-in starts."""

    axes = {"p": 3}  # noqa: RUF012

    def __init__(self, t: Any, init: str = "n^(-1/2)") -> None:
        narrow = {"init": init, "rates": ("n^(-1)", 1)}
        self.t, self.tokens = t, t.linear(t.n, "in", **INTO)
        self.query, self.key, self.value = (t.linear(2, t.n, **narrow) for _ in range(3))
        self.output, self.head = t.linear(t.n, "d", **INTO), t.linear(t.outputs, t.n, **READ)
        self.first, self.norm = tp.layers.LayerNorm(t), tp.layers.LayerNorm(t)

    def forward(self, x: Any) -> Any:
        t, h = self.t, self.tokens(x)
        z = self.first(h)
        q, k, v = (own(z).renamed(out="d") for own in (self.query, self.key, self.value))
        scores = t.sum(q * k.renamed(p="p'"), "d")
        shares = tp.layers.causal_softmax(scores, "p", "p'")
        h = h + self.output(t.sum(shares * v.renamed(p="p'"), "p'"))
        return self.head(self.norm(h).at(p=2))


@pytest.mark.slow
def test_F20_few_features_at_fan_in() -> None:
    """What moves along the rows of a map to few features is summed up; a start of 1/n is not."""
    found = first_order(FewFeatures, "own")
    assert read(found, "argument of softmax")[:2] == ("0", "1/2")
    assert found.word == "may be unstable"
    small = first_order(tp.network(FewFeatures, init="n^(-1)"), "own")
    assert small.word == "feature learning"
    assert max(row.inside.constant or 0 for row in small.rows) == 0


@pytest.mark.slow
def test_F20_is_attained() -> None:
    assert first_order(FewFeatures, "own", measured=True).word == "unstable"


@pytest.mark.slow
@pytest.mark.parametrize(("blocks", "tokens"), [(12, 4), (3, 8)])
def test_F21_many_blocks_and_tokens(blocks: int, tokens: int) -> None:
    found = first_order(tp.network(with_tokens(GPT, tokens), blocks=blocks))
    expect(found, {"*.query": LATER, "*.key": LATER})


@pytest.mark.slow
def test_F21_two_blocks() -> None:
    found = first_order(tp.network(with_tokens(GPT, 2), blocks=2))
    expect(found, {"*.query": LATER, "*.key": LATER})


@pytest.mark.slow
def test_F22_heads_that_become_more() -> None:
    """Queries and keys move at the first step, with rates as other maps have them."""
    found = first_order(tp.network(with_tokens(GPT, 2), size=4))
    expect(found, {})
    assert read(found, "argument of softmax")[:2] == ("0", "0")
    assert found.word == "feature learning"


def constants(what: str) -> tp.Architecture:
    """A norm of what is nearly one number in all coordinates."""
    act = {"sigmoid": tp.sigmoid, "softplus": tp.softplus, "1 + x": lambda x: 1 + x}[what]

    @tp.network
    def net(t: Any, x: Any) -> Any:
        h = act(t.linear(t.n, "in", init="n^(-1/2)", rates=("n^0", 1), name="u")(x))
        h = tp.tanh(tp.layers.LayerNorm(t, name="norm")(h))
        return t.linear(t.outputs, t.n, name="v", **READ)(h)

    return net


@pytest.mark.parametrize("measured", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("what", ["sigmoid", "softplus", "1 + x"])
def test_F23_constants_apart_from_what_varies(what: str, measured: bool) -> None:
    """A norm takes off what is the same in all coordinates: what varies is smaller by n^(-1/2).

    A step of order one replaces it, and what the norm gives out is bounded, as in F26.
    """
    found = first_order(constants(what), "own", measured=measured)
    assert (str(found["u"].gradient), str(found["u"].output)) == ("-1/2", "1/2")
    assert read(found, "h[tanh]")[:2] == ("0", "0")
    assert (found["u"].word, found.word) == ("replaced", "feature learning")


def test_F24_branch_that_vanishes() -> None:
    @tp.network
    def net(t: Any, x: Any) -> Any:
        h = t.linear(t.n, "in", name="u")(x)
        inner = tp.tanh(t.linear(t.n, t.n, name="a")(h))
        h = h + tp.n ** "-1/2" * t.linear(t.n, t.n, name="b")(inner)
        return t.linear(t.outputs, t.n, name="v")(h)

    found = first_order(net)
    expect(found, {"a": ("-1/2", "-1/2"), "b": ("-1/2", "-1/2")})
    assert words(found) == {"u": "learns", "a": "inside only", "b": "slow", "v": "learns"}
    assert (found["a"].where, found.word) == ("h[a]", "feature learning")


def test_F24_heads_of_two_sizes() -> None:
    """What one step changes of the smaller output is said at the read points."""

    @tp.network
    def net(t: Any, x: Any) -> Any:
        h = tp.tanh(t.linear(t.n, "in", name="u", **INTO)(x))
        h = tp.tanh(t.linear(t.n, t.n, name="w", **SUM)(h))
        large = {"init": "n^(-1/2)", "rates": ("n^(-1)", 1)}
        return [
            t.linear(t.outputs, t.n, name="small", **READ)(h),
            t.linear(t.outputs, t.n, name="large", **large)(h),
        ]

    found = first_order(net, "own")
    outputs = {row.name: str(row.output) for row in found.rows}
    assert outputs == {"u": "1/2", "w": "1/2", "small": "0", "large": "0"}
    assert read(found, "f[0]") == ("-1/2", "0", "0")
    assert read(found, "f[1]")[:2] == ("0", "1/2")
    assert found.word == "output grows"


def test_F26_norm_behind_a_map_that_is_replaced() -> None:
    @tp.network
    def net(t: Any, x: Any) -> Any:
        h = t.linear(t.n, "in", name="u", **INTO)(x)
        for k in (1, 2):
            w = t.linear(t.n, t.n, name=f"w{k}", init="n^(-1/2)", rates=("n^(-1/2)", 1))
            h = tp.gelu(tp.layers.LayerNorm(t, name=f"norm{k}")(w(h)))
        return t.linear(t.outputs, t.n, name="v", **READ)(h)

    found = first_order(net, "own")
    assert found.word == "feature learning"
    assert (terms(found)["w1"][0], words(found)["w1"]) == ("1/2", "replaced")
    assert read(found, "h[gelu#2]") == ("0", "0", "0")


def test_what_is_not_trained_has_no_row() -> None:
    @tp.network
    def net(t: Any, x: Any) -> Any:
        h = tp.relu(t.linear(t.n, "in", name="u", init=1, rates=(0, 1))(x))
        h = tp.relu(t.linear(t.n, t.n, name="w", init="n^(-1/2)", rates=(0, 1))(h))
        return t.linear(t.outputs, t.n, name="v", **READ)(h)

    found = first_order(net, "own")
    assert [row.name for row in found.rows] == ["v"]
    assert [str(point.change) for point in found.points[:2]] == ["-oo", "-oo"]
