"""``tp.orders``: statuses that hold, where a careless test or bound would say too much."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import pytest

import tpcalc as tp
from tpcalc.errors import LimitError, ScaleError, UnknownName, UsageError

small = tp.n**-0.5
Build = Callable[[tp.Tracer], None]


def zero_coefficients(t: tp.Tracer) -> None:
    """Six coefficients E relu(a) E relu(-a) - (E relu(a))^2, all 0, before independent vectors."""
    total = None
    for k in range(6):
        a, w = t.gaussian(f"a{k}"), t.gaussian(f"w{k}")
        up, down = tp.mean(tp.relu(a)), tp.mean(tp.relu(-a))
        term = (up * down - up**2) * w
        total = term if total is None else total + term
    assert total is not None
    t.output("y", total)


def size_of_a_zero(t: tp.Tracer) -> None:
    v, w = t.gaussian("v"), t.gaussian("w")
    t.output("y", tp.abs(t.inner(v, v) - t.inner(w, w)))


@pytest.mark.parametrize("build", [zero_coefficients, size_of_a_zero])
@pytest.mark.parametrize("seed", range(5))
def test_what_rests_on_a_sampled_zero_is_not_exact(build: Build, seed: int) -> None:
    """Its estimate cannot be negative, so it is many standard errors from 0 at any sample size."""
    assert tp.orders(tp.program(build), seed=seed)["y"].status == "upper"


def test_a_correction_can_cancel_what_it_is_made_of() -> None:
    """W is orthogonal and relu(h) - relu(-h) = h, so that W^T of it is x again."""

    @tp.program
    def made(t: tp.Tracer) -> None:
        x, w = t.gaussian("x"), t.matrix("W", law="orthogonal")
        h = small * (w @ x)
        t.output("gap", x - small * (w.T @ (tp.relu(h) - tp.relu(-h))))

    assert tp.orders(made)["gap"].status == "upper"


def test_a_bound_on_a_divisor_is_none_on_the_quotient() -> None:
    """E v^2 - 1 is 0, and its inverse grows."""

    @tp.program
    def made(t: tp.Tracer) -> None:
        v = t.gaussian("v")
        t.output("inverse", 1 / (t.inner(v, v) - 1))
        t.output("plain", tp.mean(tp.relu(v)))
        t.output("norm", v / t.inner(v, v))

    found = tp.orders(made)
    assert (found["inverse"].n, found["inverse"].status) == (None, "upper")
    assert "division" in found["inverse"].reason
    assert [found[name].status for name in ("plain", "norm")] == ["exact", "exact"]


def test_negative_powers_of_vectors_near_0_are_refused() -> None:
    """E 1/v does not exist."""

    @tp.program
    def cauchy(t: tp.Tracer) -> None:
        v = t.gaussian("v")
        t.output("m", tp.mean(1 / (v + small * t.gaussian("w"))))

    with pytest.raises(ScaleError, match="near 0"):
        tp.orders(cauchy)


def test_gates_that_flip_move_a_product_everywhere() -> None:
    """W step(z + e y) - W step(z) is small on every coordinate, and decides step(relu(v) + it)."""

    @tp.program
    def made(t: tp.Tracer) -> None:
        v, w, y, z = (t.gaussian(name) for name in "vwyz")
        matrix = t.matrix("W")
        gap = small * (matrix @ tp.step(z + small * y)) - small * (matrix @ tp.step(z))
        t.output("m", t.mean(tp.step(tp.relu(v) + tp.n**-1 * w + gap) * w))

    assert tp.orders(made)["m"].status == "upper"  # networks tend to 0, not to the 0.199 of w alone
    with pytest.raises(LimitError):
        tp.limit(made, samples=2**8)


def test_equal_leading_terms_cancel_inside_one_function() -> None:
    """step(x - y) with x and y equal to leading order is a fair coin, not step(0)."""

    @tp.program
    def made(t: tp.Tracer) -> None:
        v, w, z = (t.gaussian(name) for name in "vwz")
        x, y = v + small * w, v + small * z
        t.output("m", t.moment(lambda p, q: tp.step(p - q), x, y))

    assert tp.limit(made, samples=2**10)["m"].z(0.5) < 5


def test_equal_leading_terms_that_do_not_cancel_stay() -> None:
    """E v sin(v) = e^(-1/2), of vectors whose leading terms are v; two sums share E relu(v)."""

    @tp.program
    def made(t: tp.Tracer) -> None:
        v, w, z = (t.gaussian(name) for name in "vwz")
        t.output("m", t.moment(lambda p, q: p * tp.sin(q), v + small * w, v + small * z))
        half, one = t.mean(tp.relu(v)), t.inner(w, w)
        t.output("sum", tp.n**0 * (half + one) + tp.n**0 * (half - 3 * one))

    found = tp.limit(made)
    assert found["m"].value == pytest.approx(math.exp(-0.5), rel=1e-12)
    assert found["sum"].value == pytest.approx(math.sqrt(2 / math.pi) - 2, rel=1e-12)


def test_a_fluctuation_of_a_constant_is_0() -> None:
    @tp.program
    def made(t: tp.Tracer) -> None:
        t.output("q", t.inner(t.gaussian("c", var=0), t.gaussian("v")))

    found = tp.orders(made)["q"]
    assert (found.status, found.text) == ("exact", "-oo")


def test_symbols_give_formulas_with_their_region() -> None:
    @tp.program
    def made(t: tp.Tracer) -> None:
        a = tp.symbol("a")
        h = tp.n**-a * (t.matrix("W") @ tp.relu(t.gaussian("g")))
        t.output("h", h)
        t.output("sum", h + t.gaussian("b"))

    found = tp.orders(made, at={"a": 1})
    assert (found["h"].text, found["sum"].text) == ("1/2 - a", "0")
    assert found.region.lines == ("-1/2 + a > 0",)
    assert tp.orders(made, values={"a": Fraction(1, 4)})["sum"].text == "1/4"
    with pytest.raises(ScaleError, match="'a'"):
        tp.orders(made)


def test_arguments_are_checked() -> None:
    @tp.program
    def made(t: tp.Tracer) -> None:
        t.output("v", t.gaussian("v"))

    with pytest.raises(UsageError, match="verify"):
        tp.orders(made, verify=1)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="budget"):
        tp.orders(made, budget=-1)
    with pytest.raises(UnknownName, match="v"):
        tp.orders(made)["w"]
