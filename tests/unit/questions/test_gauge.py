"""Changes of gauge."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from tests.gauges import equivalent_gauge
from tpcalc.questions.check import known_as
from tpcalc.training.parameterizations import lookup

ROW = st.lists(st.fractions(-2, 2, max_denominator=4), min_size=4, max_size=4)


def word(*rows: list[Fraction]) -> str:
    return "abc:" + ";".join(",".join(str(entry) for entry in row) for row in rows)


@given(ROW, ROW, ROW, ROW, st.sampled_from(["sgd", "adam"]))
def test_a_change_of_gauge_is_found(
    a: list[Fraction], b: list[Fraction], c: list[Fraction], theta: list[Fraction], optimizer: str
) -> None:
    twice = 2 if optimizer == "sgd" else 1
    moved = word(
        [x + t for x, t in zip(a, theta, strict=True)],
        [x - t for x, t in zip(b, theta, strict=True)],
        [x - twice * t for x, t in zip(c, theta, strict=True)],
    )
    assert equivalent_gauge(word(a, b, c), moved, 3, optimizer=optimizer)
    other = "adam" if optimizer == "sgd" else "sgd"
    assert equivalent_gauge(word(a, b, c), moved, 3, optimizer=other) is not any(theta)


@given(ROW, ROW, ROW, st.integers(0, 3))
def test_another_rate_is_another_network(
    a: list[Fraction], b: list[Fraction], c: list[Fraction], layer: int
) -> None:
    changed = [x + (k == layer) for k, x in enumerate(c)]
    assert not equivalent_gauge(word(a, b, c), word(a, b, changed), 3)


def test_steps_are_compared() -> None:
    assert not equivalent_gauge("ip-llr", "naive-ip", 3)
    assert equivalent_gauge("ip-llr", "naive-ip", 1)


def test_symbols_are_compared() -> None:
    assert equivalent_gauge("ac:0,a,1;c,c,c", "abc:0,a-1/2,1;0,1/2,0;c,c+1,c", 3)
    assert not equivalent_gauge("ac:0,a,1;c,c,c", "ac:0,b,1;c,c,c", 3)


def test_weights_that_are_not_centred_are_another_network() -> None:
    assert not equivalent_gauge("ip-non-centered", "naive-ip", 3)


def test_names_that_coincide_at_depth_one() -> None:
    assert {"naive-ip", "ip-llr"} <= set(known_as(lookup("mup"), 1))
    assert known_as(lookup("mup"), 2) == []


def test_the_degree_of_an_optimizer_decides() -> None:
    """muP of Adam, as of RMSprop, has steps of its own; by SGD's rates it would be another."""
    for optimizer in ("adam", "rmsprop", "signsgd"):
        assert equivalent_gauge("mup", "ac:0,1/2,1;0,1/2,0;0,0,0;0,0,0", 3, optimizer=optimizer)
    for optimizer in ("sgd", "momentum"):
        assert not equivalent_gauge("mup", "ac:0,1/2,1;0,1/2,0", 3, optimizer=optimizer)
    assert known_as(lookup("ac:0,1/2,1;0,1/2,0").under(0), 3) == ["mup"]
    assert known_as(lookup("ac:0,1/2,1/2;0,0,0").under(0), 3) == []  # NTK of gradient descent
