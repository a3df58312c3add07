"""Expansions against numbers: what is left after the terms is as small as the bound says."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import count

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from properties.programs import grown

import tpcalc as tp
from tpcalc.activations.entries import atom
from tpcalc.errors import LimitError, ScaleError
from tpcalc.exponents import as_ex
from tpcalc.exponents.chamber import Chamber
from tpcalc.functions import Atom, Expr, Facts, Fn, Var
from tpcalc.functions.expr import const
from tpcalc.functions.tape import evaluate
from tpcalc.limit.expand import expand
from tpcalc.limit.series import Asked, Explosion, NeedsMore, Ranking, Rest, Series, Setting
from tpcalc.program.nodes import Dim, Family, Input, Moment, Scale
from tpcalc.program.program import Builder

HALF = Fraction(1, 2)
NAMES = ("tanh", "sin", "gelu", "relu", "abs", "leaky_relu", "relu_pow", "elu", "sigmoid", "step")
ATOMS = [atom("relu_pow", (Fraction(2),)) if n == "relu_pow" else atom(n) for n in NAMES[:-1]]
POWERS = ((Fraction(0), -HALF), (-HALF, Fraction(-1)), (Fraction(0), Fraction(-1)))
SERIES = {
    Var(i): Series(tuple((power, Var(2 * i + k)) for k, power in enumerate(powers)))
    for i, powers in enumerate(POWERS)
}


def setting(depth: Fraction, smooth: bool) -> Setting:
    def ask(asked: Asked) -> int:
        return 2 if smooth or asked.kind != "clear" else 0

    exploded: list[Explosion] = []
    return Setting(Ranking(Chamber(), depth), ask, frozenset(), "here", exploded, count())


NUMBERS = st.sampled_from([2, -1, HALF]).map(const)
EXPRESSIONS = grown(st.one_of(st.integers(0, 2).map(Var), NUMBERS), st.sampled_from(ATOMS), 6)
COEFFICIENTS = st.lists(
    st.floats(0.25, 1.5).flatmap(lambda size: st.sampled_from([size, -size])),
    min_size=6,
    max_size=6,
)


def value(expr: Expr, numbers: list[float]) -> float:
    return float(np.squeeze(evaluate(Fn(expr, len(numbers)), [np.array([x]) for x in numbers])))


def gap(expr: Expr, found: Series[Expr], numbers: list[float], n: float) -> float:
    """The distance at one n between a function and the terms of its expansion."""
    arguments = [
        sum(n ** float(power) * numbers[2 * i + k] for k, power in enumerate(powers))
        for i, powers in enumerate(POWERS)
    ]
    terms = sum(n ** float(power) * value(part, numbers) for power, part in found.terms)
    return abs(value(expr, arguments) - terms)


@pytest.mark.parametrize("smooth", [True, False], ids=["dense", "atoms"])
@given(expr=EXPRESSIONS, numbers=COEFFICIENTS, depth=st.sampled_from([HALF, 1, 2]))
def test_the_rest_is_as_small_as_its_bound(
    smooth: bool, expr: Expr, numbers: list[float], depth: Fraction
) -> None:
    """Of two values of n, the larger one has the smaller gap, by the power of the bound."""
    try:
        found = expand(expr, SERIES, setting(Fraction(depth), smooth))
    except (ScaleError, NeedsMore):
        assume(False)
    bounds = [rest.power for rest in (found.rest, found.soft) if rest is not None]
    small, large = 2.0**18, 2.0**24
    rounding = 1e-13 * (1 + abs(value(expr, [0.5, 0.5, 0.5])))
    before, after = (gap(expr, found, numbers, n) for n in (small, large))
    if not bounds:
        assert after < rounding
        return
    assert all(isinstance(power, Fraction) for power in bounds)
    power = float(max(power for power in bounds if isinstance(power, Fraction)))
    scaled = max(before / small**power, 1e-3)
    assert after < 4 * scaled * large**power + rounding


@given(expr=EXPRESSIONS, numbers=COEFFICIENTS)
def test_more_depth_leaves_less(expr: Expr, numbers: list[float]) -> None:
    """The terms that are kept at a small depth are the first ones at a larger depth."""
    runs = []
    for depth in (HALF, Fraction(2)):
        try:
            runs.append(expand(expr, SERIES, setting(depth, True)))
        except (ScaleError, NeedsMore):
            assume(False)
    shallow, deep = runs
    kept = dict(deep.terms)
    for power, part in shallow.terms:
        if power in kept:
            mine, theirs = value(part, numbers), value(kept[power], numbers)
            assert math.isclose(mine, theirs, rel_tol=1e-9, abs_tol=1e-12)


X, Y = Var(0), Var(1)


@pytest.mark.parametrize(
    ("expr", "power", "size", "number"),
    [
        (atom("relu")(X), -HALF, -HALF, 0.7),
        (atom("relu")(X), HALF, HALF, 0.7),
        (atom("relu_pow", (Fraction(2),))(X), -HALF, -1, 0.49),
        (atom("step")(X), -3, 0, 1.0),
        (atom("tanh")(X), -HALF, -HALF, 0.7),
        (atom("tanh")(X) - X, -HALF, Fraction(-3, 2), -(0.7**3) / 3),
        (atom("gelu")(X), -HALF, -HALF, 0.35),
        (atom("sigmoid")(X), -HALF, 0, 0.5),
        (atom("cos")(X) - 1, -HALF, -1, -0.245),
        (X**HALF, -1, -HALF, 0.7**0.5),
    ],
)
def test_leading_terms(expr: Expr, power: Fraction, size: Fraction, number: float) -> None:
    """Of a function of n^power x, at x = 0.7."""
    arguments = {X: Series(((Fraction(power), X),))}
    found = expand(expr, arguments, setting(Fraction(2), True)).terms[0]
    assert found[0] == size
    assert value(found[1], [0.7]) == pytest.approx(number, rel=1e-9)


def test_an_argument_that_explodes_leaves_the_growth_as_a_bound() -> None:
    arguments = {X: Series(((HALF, X),))}
    for name, power in (("tanh", Fraction(0)), ("gelu", HALF)):
        here = setting(Fraction(1), True)
        found = expand(atom(name)(X), arguments, here)
        assert (found.terms, found.rest) == ((), Rest(power))
        assert [explosion.power for explosion in here.exploded] == [HALF]
    with pytest.raises(ScaleError, match="faster than any power"):
        expand(atom("exp")(X), arguments, setting(Fraction(1), True))


def test_a_jump_at_an_unknown_argument_is_only_bounded() -> None:
    found = expand(atom("step")(X), {X: Series((), Rest(-HALF))}, setting(Fraction(1), True))
    assert (found.terms, found.rest) == ((), Rest(Fraction(0)))


def test_the_inverse_of_a_bound_has_no_bound() -> None:
    found = expand(X**-1, {X: Series((), Rest(-HALF))}, setting(Fraction(1), True))
    assert (found.terms, found.rest) == ((), Rest(None))
    with pytest.raises(ScaleError, match="identically 0"):
        expand(X**-1, {X: Series(())}, setting(Fraction(1), True))


@pytest.mark.parametrize(("name", "rest"), [("tanh", Rest(Fraction(0))), ("gelu", Rest(None))])
def test_only_a_bounded_function_bounds_what_has_no_bound(name: str, rest: Rest) -> None:
    found = expand(atom(name)(X), {X: Series((), Rest(None))}, setting(Fraction(1), True))
    assert (found.terms, found.rest) == ((), rest)


def test_a_function_of_what_vanishes_tends_to_its_value_at_zero() -> None:
    found = expand(atom("sigmoid")(X), {X: Series((), Rest(-HALF))}, setting(Fraction(1), True))
    assert [(power, value(part, [])) for power, part in found.terms] == [(0, 0.5)]
    assert found.rest == Rest(-HALF)


# What is left of the slope of 1 for z < 0, and the factor in front.
SELU = (1.6732632423543772, 1.0507009873554805)
SHAPES = {"elu": (1.0, 1.0), "elu:1/2": (0.5, 1.0), "selu": SELU}


@pytest.mark.parametrize("act", list(SHAPES))
def test_a_kink_at_0_of_what_vanishes(act: str) -> None:
    """elu(z) near 0: alpha (e^z - 1), and for z > 0 what makes it z, by powers of relu."""
    alpha, scale = SHAPES[act]
    function = {"elu": tp.elu, "elu:1/2": tp.elu(Fraction(1, 2)), "selu": tp.selu}[act]

    @tp.program
    def kink(t: tp.Tracer) -> None:
        v = t.gaussian("v")
        small = tp.n**-0.5 * v
        t.output("mean", tp.n * t.mean(function(small) + function(-small)))
        t.output("odd", tp.n**0.5 * t.inner(function(small), v))
        t.output("y", function(small))

    found = tp.limit(kink)
    if alpha == 1:  # f(z) + f(-z) = alpha z^2 / 2 + ...
        assert found["mean"].value == pytest.approx(0.5, abs=1e-9)
    else:  # the slopes differ: it is of size n^(-1/2), and the limit grows
        assert [row.name for row in found.table.uncovered] == ["mean"]
    slopes = scale * (1 + alpha) / 2  # E v^2 1_{v > 0} = 1/2
    assert found["odd"].value == pytest.approx(slopes, rel=1e-4)
    assert str(found["y"].n_power) == "-1/2"


def test_a_slope_with_a_kink_ends_the_expansion() -> None:
    """n E v^2 f(n^(-1/2) v) is 3/2 for f(z) = z + relu(z)^2, whose second derivative jumps at 0."""
    relu = atom("relu")
    bent = Atom(
        "bent",
        lambda xp, z: z + xp.maximum(z, 0.0) ** 2,
        lambda z: 1 + 2 * relu(z),
        Facts(kinks=(0.0,), slope_at_zero=1.0, growth=Fraction(2)),
    )
    builder = Builder((Dim("n"),))
    v = builder.add(Input(Family("v", ("n",))))
    small = builder.add(Scale(v, as_ex("-1/2")))
    mean = builder.add(Moment(Fn(bent(Var(0)) * Var(1) ** 2, 2), (small, v)))
    builder.output("q", builder.add(Scale(mean, as_ex(1))))
    program = builder.finish()
    found = tp.orders(program)["q"]
    assert (found.text, found.status) == ("0", "upper")
    with pytest.raises(LimitError, match="may sit on a kink"):
        tp.limit(program)
