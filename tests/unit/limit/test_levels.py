"""Vectors that are one number on all coordinates, and jumps beside a direction of their own."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import pytest
from agree import agree
from one_output import made

import tpcalc as tp
from tpcalc.dsl.vectors import Vector
from tpcalc.errors import LimitError
from tpcalc.questions.orders import orders

HALF_NORMAL = 1 / math.sqrt(2 * math.pi)  # E relu(v), v ~ N(0, 1)
small = tp.n**-0.5


def about(t: tp.Tracer, shift: float) -> Vector:
    """n^(-1/2) w around the number E relu(v) + shift."""
    return (t.mean(tp.relu(t.gaussian("v"))) + shift) + small * t.gaussian("w")


def limit(build: Callable[[tp.Tracer], object]) -> tp.Limit:
    return tp.limit(made(build, ""), samples=2**12, seed=1)


@pytest.mark.parametrize("power", [0.25, 1.0, 3.0])
def test_a_gate_far_from_its_kink_does_not_flip(power: float) -> None:
    """Not one coordinate is moved across it, so that no power of n makes its change count."""

    def build(t: tp.Tracer) -> object:
        u = t.gaussian("u")
        return tp.n**power * t.inner(u, u * tp.step(about(t, -1.0))) + t.inner(u, u)

    agree(limit(build)["q"], 1.0)


@pytest.mark.parametrize("power", [0.0, 1.0, 3.0])
def test_what_is_shut_on_all_coordinates_is_0(power: float) -> None:
    """relu of -0.6 + n^(-1/2) w is 0, with all that is made of it."""

    def build(t: tp.Tracer) -> object:
        return tp.n**power * t.mean(tp.relu(t.matrix("W") @ tp.relu(about(t, -1.0))))

    assert str(limit(build)["q"]) == "0 (exact)"
    run = tp.simulate(made(build, ""), widths=[4096], seeds=3)
    assert all(value == 0 for row in run.rows for value in row.values)


@pytest.mark.parametrize(("first", "second", "level"), [(1, -2, 0.6), (1, -2, 0.4), (-1, 3, 0.5)])
def test_a_sum_of_vectors_that_are_numbers_is_a_number(
    first: int, second: int, level: float
) -> None:
    """relu of a s + b s level, s = E relu(v), is shut or open on all coordinates."""

    def build(t: tp.Tracer) -> object:
        v, w = t.gaussian("v"), t.gaussian("w")
        s = t.mean(tp.relu(v))
        one, two = s + 0 * v, level * t.mean(v * v) + 0 * w
        return t.mean(tp.relu(first * one + second * s * two + small * t.gaussian("z")))

    found = limit(build)["q"]
    assert found.method.value == "exact"
    wanted = max(0.0, HALF_NORMAL * (first + second * level))
    assert found.value == pytest.approx(wanted, abs=1e-9)


def test_leaky_functions_are_not_shut() -> None:
    slope = tp.leaky_relu(0.2)
    agree(limit(lambda t: t.mean(slope(about(t, -1.0))))["q"], 0.2 * (HALF_NORMAL - 1))


@pytest.mark.parametrize("act", [tp.relu, tp.gelu, tp.elu(), tp.tanh])
def test_orders_below_the_leading_one(act: Callable[..., Vector]) -> None:
    """n^(1/2) (act(s + n^(-1/2) w^2) - act(s)) is act'(s) w^2, with act' by differences."""
    s, h = HALF_NORMAL + 0.5, 1e-5

    def build(t: tp.Tracer) -> object:
        v, w = t.gaussian("v"), t.gaussian("w")
        level = t.mean(tp.relu(v)) + 0.5
        number = 0 * v + level
        return tp.n**0.5 * t.mean(act(number + small * w * w) - act(number))

    ends = [limit(lambda t, x=x: t.mean(act(0 * t.gaussian("v") + x)))["q"] for x in (s - h, s + h)]
    slope = (ends[1].value - ends[0].value) / (2 * h)
    assert limit(build)["q"].value == pytest.approx(slope, abs=1e-8)


def test_a_number_that_may_be_0_is_not_told() -> None:
    """Two averages are equal, which no form shows: the gate of their difference is refused."""

    def build(t: tp.Tracer) -> object:
        v, u = t.gaussian("v"), t.gaussian("u")
        first, second = (t.mean(tp.relu(z) ** 2 * tp.tanh(z) ** 2) for z in (v, -v))
        return t.inner(u, u * tp.step(0 * u + first - second + small * t.gaussian("w")))

    with pytest.raises(LimitError, match="may be 0"):
        limit(build)["q"]


def test_a_jump_beside_a_direction_keeps_the_density_bounded() -> None:
    """v + step(v) is as near 0 as v is: n^(-1/2) w flips a share n^(-1/2) of the gates."""

    @tp.program
    def beside(t: tp.Tracer) -> None:
        v, w, u = (t.gaussian(name) for name in "vwu")
        s = t.mean(tp.relu(u))
        h = v - s * tp.step(v) * tp.step(u)
        change = tp.step(h + small * w) - tp.step(h)
        t.output("q", change)
        t.output("few", tp.n**0.125 * t.inner(u, change * u))

    assert orders(beside)["q"].n.constant == Fraction(-1, 4)
    assert str(tp.limit(beside, samples=2**12)["few"]) == "0 (exact)"


def test_what_is_left_of_an_average_that_is_taken_off() -> None:
    """sigmoid(n^(-1/2) z) less an average of 1/2: what that drifts by bounds what is left."""

    @tp.program
    def drifting(t: tp.Tracer) -> None:
        x, m = tp.sigmoid(small * t.gaussian("z")), t.mean(tp.sigmoid(small * t.gaussian("w")))
        least = tp.sigmoid(small * small * t.gaussian("v"))
        t.output("first", t.mean(x - m))
        t.output("variance", t.mean((x - t.mean(x)) ** 2))
        t.output("least", t.mean((least - m) ** 2))

    found = orders(drifting)
    said = {name: (found[name].status, found[name].text) for name in ("first", "variance", "least")}
    assert said == {"first": ("upper", "-1"), "variance": ("exact", "-1"), "least": ("upper", "-2")}
    table = tp.simulate(drifting, widths=[1024], seeds=32, seed=1)
    wanted = {"first": 2**0.5 / 4, "variance": 1 / 16}
    for row in table.rows:
        if row.name in wanted:
            power = 1 if row.name == "variance" else 2
            size = 1024 * (sum(abs(v) ** power for v in row.values) / 32) ** (1 / power)
            assert size == pytest.approx(wanted[row.name], rel=0.4 if power == 2 else 0.02)
