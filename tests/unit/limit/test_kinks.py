"""Functions with kinks where the leading term is 0 on a part of the coordinates."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from agree import agree
from one_output import made

import tpcalc as tp
from tpcalc.dsl import Scalar
from tpcalc.dsl.vectors import Vector
from tpcalc.errors import LimitError, ScaleError
from tpcalc.limit.derive import derive
from tpcalc.questions.orders import orders
from tpcalc.results import Estimate

HALF_NORMAL = 1 / math.sqrt(2 * math.pi)  # E relu(w), w ~ N(0, 1)
Build = Callable[[tp.Tracer, Vector, Vector, Vector], Scalar]
small = tp.n**-0.5
leaky = tp.leaky_relu(0.2)


def number(build: Build, samples: int = 2**12) -> Estimate:
    """The limit of a scalar made of three independent N(0, 1) vectors."""

    found: Estimate = tp.limit(made(build), samples=samples, seed=1)["q"]
    return found


def gap(act: Callable[..., Vector], x: Vector, by: Vector, power: object = small) -> Vector:
    """act(x + n^(-1/2) by) - act(x)."""
    return act(x + power * by) - act(x)


def moved(t: tp.Tracer, act: Callable[..., Vector], x: Vector, by: Vector) -> Scalar:
    """n^(1/2) times the mean of that."""
    return tp.n**0.5 * t.mean(gap(act, x, by))


@pytest.mark.parametrize(
    ("build", "value"),
    [
        # relu(v) >= 0, so that a positive term moves every coordinate by itself.
        (lambda t, v, w, u: moved(t, tp.relu, tp.relu(v), w * w), 1.0),
        # v - relu(v) is 0 for v > 0, negative elsewhere.
        (lambda t, v, w, u: moved(t, tp.relu, v - tp.relu(v), w * w), 0.5),
        # Where v < 0 the term decides, elsewhere it counts with the slope 1 and has mean 0.
        (lambda t, v, w, u: moved(t, tp.relu, tp.relu(v), w), HALF_NORMAL / 2),
        (lambda t, v, w, u: moved(t, tp.abs, tp.relu(v), w), HALF_NORMAL),
        (lambda t, v, w, u: moved(t, leaky, tp.relu(v), w), 0.4 * HALF_NORMAL),
        # relu(v) (relu(w) - 1) is 0 where v < 0, and only there.
        (lambda t, v, w, u: moved(t, tp.abs, tp.relu(v) * tp.relu(w) - tp.relu(v), u), HALF_NORMAL),
        # 0 on a quarter of the coordinates.
        (lambda t, v, w, u: moved(t, tp.relu, tp.relu(v) + tp.relu(w), u), HALF_NORMAL / 4),
        # No coordinate is 0: the first order is linear.
        (lambda t, v, w, u: moved(t, tp.relu, v, w * w), 0.5),
        (lambda t, v, w, u: moved(t, tp.relu, v + tp.relu(w), u * u), 0.625),
        # relu(relu(z)) is relu(z).
        (lambda t, v, w, u: moved(t, lambda z: tp.relu(tp.relu(z)), v, w * w), 0.5),
    ],
)
def test_the_next_term_decides_where_the_leading_one_is_zero(build: Build, value: float) -> None:
    agree(number(build), value)


def test_a_gate_at_zero_is_decided_by_the_next_term() -> None:
    """1/2 of the gates are open, and half of the others, where relu(v) = 0 and w > 0."""
    agree(number(lambda t, v, w, u: t.mean(tp.step(tp.relu(v) + small * w))), 0.75)
    agree(number(lambda t, v, w, u: t.mean(tp.sign(tp.relu(v) + small * w))), 0.5)


def test_terms_decide_one_after_the_other() -> None:
    """relu(v) + n^(-1/2) relu(w) + n^(-3/4) u: u decides where v < 0 and w < 0, a quarter."""

    def build(t: tp.Tracer, v: Vector, w: Vector, u: Vector) -> Scalar:
        first = tp.relu(v) + small * tp.relu(w)
        return tp.n**0.75 * t.mean(tp.relu(first + tp.n**-0.75 * u) - tp.relu(first))

    with pytest.raises(LimitError, match="depends on terms"):  # two orders beyond a gate at 0
        number(build)


def test_a_number_that_tends_to_a_jump_is_drawn() -> None:
    """u.tanh(v) is symmetric about 0: its step is a fair coin, and not the value at 0."""

    @tp.program
    def vote(t: tp.Tracer) -> None:
        mean = t.inner(t.gaussian("u"), tp.tanh(t.gaussian("v")))
        t.output("step", tp.step(mean))
        t.output("sign", tp.sign(mean))

    found = tp.limit(vote, samples=2**6, replicates=256, method="particles")
    step, sign = found["step"], found["sign"]
    assert step.random and set(step.draws) == {0.0, 1.0} and set(sign.draws) == {-1.0, 1.0}
    assert [2 * draw - 1 for draw in step.draws] == list(sign.draws)
    assert abs(step.value - 0.5) < 5 * 0.5 / math.sqrt(256)
    drawn = tp.limit(vote)  # the Gaussian alone is drawn, more often
    assert drawn["step"].z(0.5) < 5 and drawn["sign"].z(0.0) < 5
    assert drawn.cov("step", "sign").z(0.5) < 5


def test_a_kink_of_a_number_that_vanishes_is_drawn() -> None:
    """n^(1/2) mean(x) relu(mean(a)) with E x = 2 and n^(1/2) mean(a) = g ~ N(0, 1): 2 relu(g)."""

    @tp.program
    def kink(t: tp.Tracer) -> None:
        a, x = t.gaussian("a"), t.gaussian("x", mean=2)
        mean = t.mean(a)
        t.output("k", tp.n**0.5 * t.moment(lambda z, p: z * tp.relu(p), x, scalars=[mean]))
        t.output("g", tp.n**0.5 * mean)

    found = tp.limit(kink, samples=2**8, replicates=64, method="particles")
    assert found["k"].random
    for drawn, g in zip(found["k"].draws, found["g"].draws, strict=True):
        # E x is one number; its estimate has an error of its own.
        assert drawn == pytest.approx(2 * max(g, 0.0), rel=0.05)


def test_a_moved_jump_is_large_in_mean_square() -> None:
    """Gates differ on a part n^(-1/2) of the coordinates, and so does their squared difference."""
    change = made(lambda t, v, w, u: tp.n**0.5 * t.moment(lambda z: z**2, gap(tp.step, v, u)) + 1)
    with pytest.raises(LimitError, match="depends on terms"):  # and not 1
        derive(change)


@pytest.mark.parametrize(
    ("at", "power", "order"),
    [
        (lambda t, v, u: v, Fraction(-1, 2), "-1/4"),
        (lambda t, v, u: v, Fraction(-1), "-1/2"),
        (lambda t, v, u: t.inner(u, u) * v, Fraction(-1), "-1/2"),
    ],
    ids=["half", "whole", "computed"],
)
def test_gates_flip_by_the_root_of_what_moves_them(
    at: Callable[..., Vector], power: Fraction, order: str
) -> None:
    """Where the argument has a bounded density, a part n^power of the coordinates flips."""
    found = orders(made(lambda t, v, w, u: gap(tp.step, at(t, v, u), w, tp.n**power)))["q"]
    assert (found.text, found.status) == (order, "upper")


def test_a_bound_on_flips_holds_where_the_density_has_none() -> None:
    """u + s (u^3 - u) tends to u^3, which is in [-n^(-1/2), n^(-1/2)] on a part n^(-1/6)."""
    changed = made(lambda t, u, w, s: gap(tp.step, u + t.inner(s, s) * (u**3 - u), w))
    order = orders(changed)["q"].n
    assert order is None or order.constant >= Fraction(-1, 12)


@pytest.mark.parametrize("gate", [lambda v: v, tp.relu])
def test_the_density_of_a_product_of_gaussians_is_not_bounded(gate: Callable[..., Vector]) -> None:
    """v (w + 1) is in [-e, e] on a part e log(1/e), so the bound of a density is none here."""
    order = orders(made(lambda t, v, w, u: gap(tp.step, gate(v) * w + v, u)))["q"].n
    assert order is not None and order.constant > Fraction(-1, 4)


def test_a_gate_at_zero_of_a_power_with_a_symbol_is_bounded() -> None:
    """Where v > 0 a power of relu(v) + n^(-1/2) w moves by n^(-1/2), elsewhere by n^(-p/2)."""
    act = tp.relu_pow(tp.symbol("p"))
    found = orders(made(lambda t, v, w, u: gap(act, tp.relu(v), w)), at={"p": 2})["q"]
    assert found.status == "upper" and found.n is not None and found.n.constant >= Fraction(-1, 2)


def test_a_gate_behind_a_gate_that_flips_is_decided() -> None:
    """E v 1{v + 1{u > 0} > 0}, the density of a Gaussian at 0 and at 1; few gates flip."""
    found = number(lambda t, v, w, u: t.inner(v, tp.step(v + tp.step(u + small * w))))
    agree(found, HALF_NORMAL * (1 + math.exp(-1 / 2)) / 2)


def test_what_moves_few_gates_vanishes() -> None:
    """Gates that differ on a part n^(-1/4) of the coordinates."""

    def build(t: tp.Tracer, v: Vector, w: Vector, u: Vector) -> Scalar:
        return t.moment(lambda z: z**2, gap(tp.step, v, w, tp.n**-0.25))

    assert str(number(build)) == "0 (exact)"


def test_what_samples_find_of_one_vector_says_nothing_of_another() -> None:
    """v w is 0 nowhere, relu(v) on half of the coordinates: there the next term decides."""

    @tp.program
    def both(t: tp.Tracer) -> None:
        v, w, u = (t.gaussian(name) for name in "vwu")
        t.output("nowhere", t.inner(u, tp.step(v * w + small * u)))
        t.output("half", t.inner(u, tp.step(tp.relu(v) + small * u)))

    found = tp.limit(both, samples=2**12)
    agree(found["nowhere"], 0.0)
    agree(found["half"], HALF_NORMAL / 2)


@pytest.mark.parametrize(
    ("build", "value"),
    [
        # v - relu(v) written otherwise: 0 where v > 0. The first order there is relu(w).
        (lambda t, v, w, u: moved(t, tp.relu, v - v * tp.step(v), u), HALF_NORMAL / 2),
        (lambda t, v, w, u: moved(t, tp.relu, 2 * v - tp.relu(2 * v), u), HALF_NORMAL / 2),
        (lambda t, v, w, u: moved(t, tp.relu, v - tp.relu(tp.relu(v)), u), HALF_NORMAL / 2),
        (lambda t, v, w, u: moved(t, tp.relu, tp.relu(v + w) - (v + w), u), HALF_NORMAL / 2),
        (lambda t, v, w, u: moved(t, tp.relu, leaky(v + w) - (v + w), u), HALF_NORMAL / 2),
        # 0 where v > 0 and w > 0.
        (lambda t, v, w, u: moved(t, tp.relu, v - tp.relu(v) * tp.step(w), u), HALF_NORMAL / 4),
        # Equal members of a group.
        (lambda t, v, w, u: moved(t, tp.relu, equal(t), u), HALF_NORMAL),
        # v + (-v), the second one a step of its own.
        (lambda t, v, w, u: moved(t, tp.relu, v + tp.n**0 * (-v), u), HALF_NORMAL),
        # The mean square of what is left after the first order is n^(-3/2) (2 pi)^(-1/2) E |u|^3/3.
        (
            lambda t, v, w, u: tp.n**1.5 * t.moment(lambda z: z**2, left(t, v, u)),
            2 * math.sqrt(2 / math.pi) / 3 * HALF_NORMAL,
        ),
        # Gates that flip, n^(-1/2) E |w| (2 pi)^(-1/2) of them, beside smaller terms.
        (
            lambda t, v, w, u: (
                tp.n**0.5
                * t.inner(gap(tp.step, v, w) + gap(tp.tanh, u, w) + small * w, gap(tp.step, v, w))
            ),
            math.sqrt(2 / math.pi) * HALF_NORMAL,
        ),
        (
            lambda t, v, w, u: tp.n**0.5 * t.moment(lambda z: z**4, gap(tp.step, v, w)),
            math.sqrt(2 / math.pi) * HALF_NORMAL,
        ),
        # The square root is n^(-1/4) |w| where v < 0.
        (lambda t, v, w, u: tp.n**0.25 * t.mean(root(v, w)), HALF_NORMAL),
        # A gate moves with w where one behind it flips, at x near 0 and -1/2 < u < 0.
        (
            lambda t, v, w, u: (
                tp.n**0.125 * t.inner(w, tp.step(twice(t, u) + tp.step(v + tp.n**-0.125 * w)))
            ),
            HALF_NORMAL * math.erf(0.5 / math.sqrt(2)) / 2,
        ),
        # tanh of what explodes is a sign; beside it few gates flip.
        (lambda t, v, w, u: t.moment(lambda z: z**2, exploded(t, v, w, u)), 1.0),
        # Few coordinates of a change are not 0, but all of a product with it.
        (
            lambda t, v, w, u: t.mean(
                tp.step(t.matrix("W") @ (tp.step(v + tp.n**-0.25 * w) - tp.step(v)))
            ),
            0.5,
        ),
        # elu has the slope 1 on both sides of 0, and e^z - 1 - z = z^2/2 + ... where z < 0.
        (lambda t, v, w, u: tp.n * t.mean(tp.elu(small * w) - small * w), 0.25),
    ],
)
def test_no_number_is_wrong(build: Build, value: float) -> None:
    """One is added, so that a bound on the rest is not an answer of its own."""
    try:
        found = number(lambda t, v, w, u: 1 + build(t, v, w, u))
    except (LimitError, ScaleError):
        return  # refusing is right as well
    agree(found, 1 + value)


def equal(t: tp.Tracer) -> Vector:
    """The difference of two equal members of a group, which is 0."""
    a, b = t.gaussians(["a", "b"], cov=[[1, 1], [1, 1]])
    return a - b


def twice(t: tp.Tracer, u: Vector) -> Vector:
    """u + s u with a computed number s that tends to 1."""
    s = t.gaussian("s")
    return u + t.inner(s, s) * u


def exploded(t: tp.Tracer, v: Vector, w: Vector, u: Vector) -> Vector:
    s = t.gaussian("s")
    return tp.tanh(tp.n**0.5 * u) + gap(tp.step, v + t.inner(s, s) * tp.tanh(v), w)


def left(t: tp.Tracer, v: Vector, u: Vector) -> Vector:
    """relu(v + n^(-1/2) u) - relu(v) - n^(-1/2) step(v) u, written so that the terms meet."""
    both = t.nonlin(lambda x, y: tp.relu(x) - tp.relu(y), v + small * u, v)
    return both - small * t.nonlin(lambda x, y: tp.step(x) * y, v, u)


def root(v: Vector, w: Vector) -> Vector:
    return tp.sqrt(tp.relu(v) + small * (w * w)) - tp.sqrt(tp.relu(v))


def test_what_a_kink_leaves_of_taylors_formula_is_larger_in_mean_square() -> None:
    """E left^2 = n^(-3/2) (2 pi)^(-1/2) E |u|^3/3, so that its order is n^(-3/4) at least."""
    found = orders(made(lambda t, v, w, u: left(t, v, u)))["q"]
    assert Fraction(found.text) >= Fraction(-3, 4)


def test_the_inverse_of_what_may_vanish_has_no_known_order() -> None:
    """Of the divisor only a bound is known."""
    inverse = made(lambda t, v, w, u: 1 / t.mean(gap(tp.step, v, w)))
    with pytest.raises(LimitError):
        derive(inverse)
    found = orders(inverse)["q"]
    assert (found.n, found.status) == (None, "upper")


def test_a_kink_where_the_argument_tends_leaves_the_value() -> None:
    """exp(-|z|) has two slopes at 0, where its value is 1."""
    peak = tp.function(
        "peak",
        lambda z: np.exp(-np.abs(z)),
        lambda z: -np.sign(z) * np.exp(-np.abs(z)),
        kinks=(0,),
        growth=0,
    )
    agree(number(lambda t, v, w, u: t.mean(peak(small * v))), 1.0)
