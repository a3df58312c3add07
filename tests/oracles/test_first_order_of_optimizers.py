"""First steps of optimizers that are no functions of entries alone, cases F5 and F28."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

import tpcalc as tp
from tests.first_steps import INTO, LATER, NOTHING, expect, first_order, terms, words
from tests.networks_in_use import GPT

HIDDEN = ("query", "key", "value", "output", "up", "down")


def test_F5_gpt_under_muon() -> None:
    """Hidden matrices have rates n^0 under muP, and what else there is has those of Adam."""
    found = first_order(tp.network(GPT), optimizer="muon")
    expect(found, {"*.query": LATER, "*.key": LATER})
    rates = {str(row.rate) for row in found.rows if row.role == "hidden"}
    assert (rates, found.word) == ({"0"}, "feature learning")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("optimizer", "rate"), [("muon", "0"), ("muon-spectral", "0"), ("muon-rms", "-1/2")]
)
def test_F5_largest_rates_under_muon(optimizer: str, rate: str) -> None:
    """With the root of the larger side as a factor a step of an n x n matrix is n^(1/2) larger."""
    found = tp.solve(tp.network(GPT), "mup", optimizer=optimizer, steps=1)
    rates = {row.name: str(row.rate) for row in found.largest}
    hidden = {name: own for name, own in rates.items() if name.endswith(HIDDEN)}
    assert len(hidden) == 6 and set(hidden.values()) == {rate}
    assert {own for name, own in rates.items() if name not in hidden} == {"0", "-1"}
    assert rates["head"] == "-1"


def gauge(shift: str) -> tp.Architecture:
    """One network in many gauges: starts n^shift larger, multipliers smaller."""

    @tp.network
    def net(t: Any, x: Any) -> Any:
        scale = tp.n ** -Fraction(shift)
        u, w, v = (
            t.linear(out, into, name=name, init=f"n^({Fraction(shift) + Fraction(power)})")
            for name, out, into, power in (
                ("u", t.n, "in", "0"),
                ("w", t.n, t.n, "-1/2"),
                ("v", t.outputs, t.n, "-1"),
            )
        )
        return scale * v(tp.tanh(scale * w(tp.tanh(scale * u(x)))))

    return net


SHARES = {"u": "0", "w": "-1/2", "v": "0"}  # of the norm of a weight, at which all is learned


@pytest.mark.parametrize("optimizer", ["lamb", "lars", "adafactor"])
@pytest.mark.parametrize("shift", ["0", "1/2", "-1"])
def test_F28_steps_in_units_of_the_weights(optimizer: str, shift: str) -> None:
    """A step that is a share of the weight is one in all gauges, with one learning rate."""
    groups = {name: {"power": power} for name, power in SHARES.items()}
    found = first_order(gauge(shift), "own", optimizer, groups=groups)
    expect(found, {})
    assert {row.name: str(row.rate) for row in found.rows} == SHARES
    assert (found.word, found.status) == ("feature learning", "exact")
    largest = tp.solve(gauge(shift), "own", optimizer=optimizer, steps=1).largest
    assert {row.name: str(row.rate) for row in largest} == SHARES


@pytest.mark.parametrize("optimizer", ["lamb", "lars", "adafactor"])
def test_F28_steps_of_weights_that_start_at_zero(optimizer: str) -> None:
    """The ratio of norms is 1 at a weight 0; Adafactor's scale is its eps there."""

    @tp.network
    def net(t: Any, x: Any) -> Any:
        h = tp.tanh(t.linear(t.n, "in", name="u", **INTO)(x))
        return t.linear(t.outputs, t.n, name="v", init=0, rates=("n^(-1)", 1))(h)

    found = first_order(net, "own", optimizer)
    # From the second step on it is n^(-1) of a weight of size n^(-1).
    expect(found, {"u": (NOTHING, "0"), "v": ("0", "-1")})
    assert words(found) == {"u": "output later", "v": "learns"}


def test_F28_decay_has_a_line_of_its_own() -> None:
    """What gradients add is as without it; what decay takes is a share of the weight."""
    plain, decayed = (
        first_order(tp.MLP(2, "tanh"), optimizer=o) for o in ("adamw", "adamw(decay=0.1)")
    )
    assert terms(decayed) == terms(plain)
    shares = [note for note in decayed.notes if note.startswith("decay takes a share")]
    assert [note.split(" in a step")[0] for note in shares] == [
        "decay takes a share of order n^(-1/2) of W2",
        "decay takes a share of order 1 of W1, W3",
    ]
    assert not any(note.startswith("decay") for note in plain.notes)


def test_F28_decay_beside_the_gradient_inside_a_sign() -> None:
    """sign(g + decay w) is that of the weight where g vanishes: what is left is a bound."""
    found = first_order(tp.MLP(2, "tanh"), optimizer="adam(decay=0.1)")
    assert {row.status for row in found.rows} == {"bound"}
    assert all(row.why.startswith("the decay decides") for row in found.rows)
    assert found.status == "bound" and {p.status for p in found.points if p.who} == {"bound"}
    small = first_order(tp.MLP(2, "tanh"), optimizer="adam(decay=0.1 n^(-2))")
    assert (small.word, small.status) == ("feature learning", "exact")


def test_F28_clipping_by_the_norm_of_all_gradients() -> None:
    """With a readout that starts at n^(-1) the norm is n^(1/2), by the readout alone."""

    @tp.network
    def net(t: Any, x: Any) -> Any:
        h = tp.tanh(t.linear(t.n, "in", name="u", init=1, rates=("n^0", 1))(x))
        h = tp.tanh(t.linear(t.n, t.n, name="w", init="n^(-1/2)")(h))
        return t.linear(t.outputs, t.n, name="v", init="n^(-1)")(h)

    powers: Any = {"groups": {"u": {"power": 1}, "v": {"power": -1}}}
    plain = first_order(net, "own", "sgd", **powers)
    clipped = first_order(net, "own", "sgd(clip=1)", **powers)
    expect(plain, {})
    expect(clipped, {}, rest=("-1/2", "-1/2"))
    (note,) = (note for note in clipped.notes if note.startswith("the norm of all gradients"))
    assert "has size n^(1/2), by v, and" in note
    assert clipped.word == "trivial" and clipped.status == "bound"
    assert {row.status for row in clipped.rows} == {"exact"}
    untested = tp.check(net, "own", optimizer="sgd(clip=1)", verify=False, **powers).first_order
    assert untested is not None
    assert {(row.status, row.why.split(" by ")[0]) for row in untested.rows} == {
        ("bound", "clipping divides")
    }
    adam = {"groups": {"w": {"power": -1}, "v": {"power": -1}}}
    expect(first_order(net, "own", "adam(clip=1)", **adam), {})
