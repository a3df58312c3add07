"""Terms of series: which are kept, which cancel, and what only a bound is known of."""

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
from tpcalc.results import Estimate

H = Fraction(1, 2)
small = tp.n**-H
_GRID = np.linspace(-9, 9, 20001)
_MASS = np.exp(-(_GRID**2) / 2) / np.exp(-(_GRID**2) / 2).sum()
TANH = float(_MASS @ np.tanh(_GRID) ** 2)
Build = Callable[..., Scalar | Vector]


def number(build: Build) -> Estimate:
    found: Estimate = tp.limit(made(build), samples=2**9)["q"]
    return found


def near_one(t: tp.Tracer, v: Vector, w: Vector, u: Vector) -> Scalar:
    """1/(s - 1) = -1 - s - ... where s is about 1/n."""
    s = tp.n**-1 * t.inner(v, v)
    return tp.n * t.moment(lambda x, s: x * x * (1 + 1 / (s - 1)), v, scalars=[s])


def smaller(t: tp.Tracer, v: Vector, w: Vector, u: Vector) -> Scalar:
    """n (a + b/n - a)."""
    a = t.inner(v, v)
    total = a + tp.n**-1 * t.inner(w, w)
    return tp.n * (total - a)


@pytest.mark.parametrize(
    ("build", "value"),
    [
        # tanh(z) - z = -z^3/3 + ...
        (
            lambda t, v, w, u: tp.n ** (3 * H) * t.inner(v, tp.tanh(small * v) - small * v),
            -1.0,
        ),
        (near_one, -1.0),
        (smaller, 1.0),
        # A value at 0 is small, and not 0.
        (lambda t, v, w, u: 1e9 * t.mean(shifted()(small * v)), 0.1),
    ],
    ids=["cubic", "inverse", "scalars", "value"],
)
def test_the_first_terms_that_do_not_cancel_are_the_answer(build: Build, value: float) -> None:
    agree(number(build), value)


def shifted() -> Callable[[Vector], Vector]:
    """sin(z) + 1e-10."""
    return tp.function("shifted", lambda z: np.sin(z) + 1e-10, np.cos, growth=0)


def test_terms_are_followed_down_to_the_square_of_the_width() -> None:
    """tanh(a + n^(-k) b) - tanh(a) = n^(-k) tanh'(a) b with a = b = 1; below that is a refusal."""

    def change(t: tp.Tracer, v: Vector, w: Vector, u: Vector, k: Fraction) -> Scalar:
        a = t.inner(v, v)
        return tp.n**k * (tp.tanh(a + tp.n**-k * t.inner(w, w)) - tp.tanh(a))

    agree(number(lambda *given: change(*given, Fraction(2))), 1 - math.tanh(1) ** 2)
    with pytest.raises(LimitError, match=r"smaller by more than n\^\(-2\)"):
        number(lambda *given: change(*given, 5 * H))


@pytest.mark.parametrize("side", ["rows", "cols"])
def test_an_outer_function_is_that_of_its_leading_arguments(side: str) -> None:
    """E tanh(v)^2 beside a difference that takes terms of order 1/n."""

    def build(t: tp.Tracer, v: Vector, w: Vector, u: Vector) -> Scalar:
        moved, one = v + tp.n**-1 * w * w, u * u
        if side == "rows":
            y = t.outer(lambda r, c: tp.tanh(r) ** 2 * c * c, [moved], [u], one)
            return smaller(t, v, w, u) * t.mean(y) / 3
        y = t.outer(lambda r, c: r * r * tp.tanh(c) ** 2, [u], [moved], one)
        return smaller(t, v, w, u) * t.mean(y)

    agree(number(build), TANH)


def test_an_outer_function_of_what_vanishes_is_refused() -> None:
    with pytest.raises(ScaleError, match="not of order one"):
        number(lambda t, v, w, u: t.mean(t.outer(lambda r, c: tp.tanh(r * c), [small * v], [w], u)))


def test_an_average_with_a_start_vector_fluctuates_wherever_that_is_written() -> None:
    """n^(1/2) mean(2 v tanh(w)) is Gaussian with the variance 4 E tanh(w)^2."""
    found = number(lambda t, v, w, u: tp.n**H * t.moment(lambda x, y: 2 * x * tp.tanh(y), v, w))
    assert found.std == pytest.approx(2 * math.sqrt(TANH), rel=1e-3)


@pytest.mark.parametrize(
    ("factor", "text"), [(-H, "0"), (Fraction(2), None)], ids=["decays", "grows"]
)
def test_only_the_exponential_of_minus_a_square_is_bounded(
    factor: Fraction, text: str | None
) -> None:
    """exp(c z^2) where z grows like n^(1/2)."""
    build = made(lambda t, v, w, u: t.nonlin(lambda z: tp.exp(factor * z**2), tp.n**H * v))
    if text is None:
        with pytest.raises(ScaleError, match="faster than any power"):
            tp.orders(build)["q"]
    else:
        assert tp.orders(build)["q"].text == text


@pytest.mark.parametrize(
    ("build", "text"),
    [
        (lambda x, y, w: x - y, "-oo"),
        (lambda x, y, w: (x - y) * w, "-oo"),
        (lambda x, y, w: x - y + tp.n**-2 * w, "-2"),
        (lambda x, y, w: x + y, "-a"),
    ],
    ids=["difference", "product", "beside", "sum"],
)
@pytest.mark.parametrize("function", [False, True], ids=["steps", "function"])
def test_what_is_equal_on_a_wall_cancels_there(build: Build, text: str, function: bool) -> None:
    """n^(-a) v and n^(-b) v, where a = b."""

    def written(t: tp.Tracer, v: Vector, w: Vector, u: Vector) -> Vector:
        x, y = tp.n ** -tp.symbol("a") * v, tp.n ** -tp.symbol("b") * v
        if not function:
            return build(x, y, w)
        z = tp.n**-2 * w  # a power is not written inside of a function
        return t.nonlin(lambda x, y, z: build(x, y, z) if text != "-2" else x - y + z, x, y, z)

    found = tp.orders(made(written), at={"a": 1, "b": 1})
    assert found["q"].text == text


def test_what_is_not_covered_names_the_function_that_loses_terms() -> None:
    """tanh(v + n^(-1/2) w) is followed as far as anything; the step only to its gates that flip."""

    def change(t: tp.Tracer, v: Vector, w: Vector, u: Vector) -> Vector:
        smooth, jump = tp.tanh(v + small * w), tp.step(u + small * w)
        return (smooth + jump) - tp.tanh(v) - tp.step(u)

    with pytest.raises(LimitError, match=r"q is not covered: .* may sit on a kink"):
        number(change)


def test_a_density_that_its_form_proves_needs_no_samples() -> None:
    """Of relu^p there are none; v + relu^p(w) has the density of v."""

    def gate(t: tp.Tracer, v: Vector, w: Vector, u: Vector) -> Vector:
        return tp.step(v + tp.relu_pow(tp.symbol("p"))(w) + small * u)

    assert tp.orders(made(gate), at={"p": 2}).table.notes == ()


def moved(t: tp.Tracer, v: Vector) -> tuple[Scalar, Scalar]:
    """Two averages with the same limit 1; the second is larger by 2 n^(-1/2)."""
    y = v + small * v
    return t.inner(v, v), t.inner(y, y)


@pytest.mark.parametrize("function", [False, True], ids=["steps", "function"])
def test_what_cancels_in_a_part_of_a_sum_is_left_over_at_finite_n(function: bool) -> None:
    """n^(1/2) times the average of u + (s - r) relu(v), where s and r tend to 1."""

    def written(t: tp.Tracer, v: Vector, w: Vector, u: Vector) -> Scalar:
        s, r = moved(t, v)
        z = tp.relu(v)
        if not function:
            return tp.n**H * t.mean(u + s * z - r * z)
        gap = t.nonlin(lambda u, z, s, r: u + s * z - r * z, u, z, scalars=[s, r])
        return tp.n**H * t.mean(gap)

    found = number(written)
    agree(found, -2 / math.sqrt(2 * math.pi))
    assert found.std == pytest.approx(1)


def test_what_cancels_in_a_part_of_a_product_is_left_over_at_finite_n() -> None:
    """n^(1/2) times the average of (1 + w) (u + (s - r) relu(v))."""

    def written(t: tp.Tracer, v: Vector, w: Vector, u: Vector) -> Scalar:
        s, r = moved(t, v)
        z = tp.relu(v)
        gap = t.nonlin(lambda u, w, z, s, r: w * (s * z - r * z + u), u, 1 + w, z, scalars=[s, r])
        return tp.n**H * t.mean(gap)

    agree(number(written), -2 / math.sqrt(2 * math.pi))


def test_a_quotient_of_numbers_with_the_same_limit_is_no_number() -> None:
    """n^(1/2) times the average of u + s / r - 1, where r = s + 2 n^(-1/2)."""

    def written(t: tp.Tracer, v: Vector, w: Vector, u: Vector) -> Scalar:
        s, r = moved(t, v)
        return tp.n**H * t.mean(t.nonlin(lambda u, s, r: u + s / r - 1, u, scalars=[s, r]))

    agree(number(written), -2)


def test_numbers_that_cancel_leave_nothing_over() -> None:
    """ELU about 0 is exp(z) - 1 - relu(z)^2/2 - ...; of the number in z only the limit is known."""

    def written(t: tp.Tracer, v: Vector, w: Vector, u: Vector) -> Scalar:
        _, r = moved(t, w)
        f = tp.n**H * t.inner(u, (1 / r) * w)
        return tp.n**H * t.inner(v, tp.elu(small * (f * v)))

    found = number(written)
    agree(found, 0)
    assert found.std == pytest.approx(1, rel=1e-6)


@pytest.mark.parametrize("function", [False, True], ids=["steps", "function"])
def test_what_cancels_in_a_part_of_a_sum_on_a_wall_is_left_over(function: bool) -> None:
    """n^(-a) s z + n^(-1/2) (u - r z), where a = 1/2 and r = s + n^(-1/4)."""

    def written(t: tp.Tracer, v: Vector, w: Vector, u: Vector) -> Scalar:
        z = tp.relu(v)
        s = t.inner(v, v)
        r = s + tp.n ** -Fraction(1, 4) * t.inner(w, w)
        x, y = tp.n ** -tp.symbol("a") * (s * z), small * (u - r * z)
        return t.mean(t.nonlin(lambda x, y: x + y, x, y) if function else x + y)

    found = tp.orders(made(written), at={"a": H})["q"]
    assert found.text == ("-a" if function else "-3/4")


def test_a_sum_that_is_opened_loses_nothing() -> None:
    """(u + f v) + g v holds v twice: f and g stand for themselves, and nothing is left over."""

    def written(t: tp.Tracer, v: Vector, w: Vector, u: Vector) -> Scalar:
        _, r = moved(t, w)
        f, g = (tp.n**H * t.inner(u, (1 / r) * z) for z in (v, tp.tanh(w)))
        first = u + small * (f * v)
        return tp.n**H * t.inner(first + small * (g * v), v)

    found = number(written)  # f + f + g, where r tends to 1
    assert found.std == pytest.approx(math.sqrt(4 + TANH), rel=1e-6)
