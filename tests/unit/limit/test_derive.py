"""Limit rules: what is derived, and what is refused with a reason."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from agree import agree
from one_output import made

import tpcalc as tp
from tpcalc.errors import LimitError, ScaleError, UnknownName
from tpcalc.exponents.chamber import Chamber
from tpcalc.limit.context import Context
from tpcalc.limit.derive import derive
from tpcalc.limit.graph import Product
from tpcalc.limit.rules import LIMIT_RULES
from tpcalc.limit.series import Ranking
from tpcalc.program.rules import interpret
from tpcalc.results import Estimate, Method

DATA = tp.Samples(((0.6, -0.3), (0.1, 0.7)), ((1.0,), (-1.0,)))


def train(param: str, act: str = "tanh", depth: int = 3, **options: object) -> tp.Program:
    settings: dict[str, object] = {"steps": 2, "lr": 1, "watch": ()}
    settings.update(options)
    return tp.train(tp.MLP(depth, act), param, DATA, **settings)  # type: ignore[arg-type]


def test_powers_of_mup() -> None:
    graph = derive(train("mup", watch=("h", "dh")))
    powers = {name: target.power for name, target in graph.targets}
    assert powers["f[0,0]"] == Fraction(-1, 2)  # u independent of x: a fluctuation
    assert powers["f[1,0]"] == powers["h[3,1,0]"] == 0
    assert powers["dh[1,0,0]"] == powers["dh[3,2,0]"] == -1


def test_a_vanishing_scalar_is_exactly_zero_and_says_why() -> None:
    found = tp.limit(train("mup"), samples=2**8, replicates=2)
    first = found["f[0,0]"]
    assert (first.value, first.stderr, first.method.value) == (0.0, 0.0, "exact")
    assert any("exactly 0" in note for note in found.table.notes)


def test_what_fluctuates_below_a_bound_makes_no_nodes() -> None:
    """Each average of two layers has terms for all steps before, and these are 0 by symmetry."""
    counts = []
    for steps in (4, 8):
        program = train("ntk", steps=steps)
        context = Context(program, ranking=Ranking(Chamber(), Fraction(1, 2)), values={})
        interpret(program, LIMIT_RULES, context)
        counts.append(len(context.nodes))
    assert counts[1] < 4 * counts[0]


def test_layers_vanish_by_their_powers() -> None:
    """Naive-IP, tanh: h^l ~ n^(-(l-1)/2), f_0 ~ n^(-3/2); every f_t tends to 0."""
    graph = derive(train("naive-ip", watch=("h",)))
    powers = {name: target.power for name, target in graph.targets}
    half = Fraction(1, 2)
    assert [powers[f"h[{layer},0,0]"] for layer in (1, 2, 3)] == [0, -half, -1]
    assert powers["f[0,0]"] == -3 * half
    found = tp.limit(train("naive-ip"), samples=2**8)
    for step in range(3):
        assert (found[f"f[{step},0]"].value, found[f"f[{step},0]"].method.value) == (0.0, "exact")


def test_symbolic_exponents_need_values() -> None:
    @tp.program
    def symbolic(t: tp.Tracer) -> None:
        w = t.matrix("W")
        t.output("h", tp.n ** -tp.symbol("a") * (w @ t.gaussian("v")))

    with pytest.raises(ScaleError, match="'a'"):
        tp.limit(symbolic)
    found = tp.limit(symbolic, values={"a": Fraction(1, 2)}, samples=2**8)
    assert found["h"].second_moment.z(1.0) < 5


def test_unknown_output_names_the_nearest() -> None:
    with pytest.raises(UnknownName, match=r"f\[1,0\]"):
        tp.limit(train("mup"), outputs=["f[1,00]"])
    with pytest.raises(UnknownName):
        tp.limit(train("mup", steps=0), samples=2**6, replicates=2)["g"]


def test_shared_structure_is_one_node() -> None:
    """A repeated input costs nothing twice."""

    @tp.program
    def twice(t: tp.Tracer) -> None:
        w, v = t.matrix("W"), t.gaussian("v")
        t.output("a", tp.n**-0.5 * (w @ v))
        t.output("b", tp.n**-0.5 * (w @ v))

    graph = derive(twice.build())
    assert sum(isinstance(node, Product) for node in graph.nodes) == 1


def test_zero_inputs_work() -> None:
    data = tp.Samples(((0.0, 0.0),), ((1.0,),))
    for act in ("tanh", "relu"):
        program = tp.train(tp.MLP(2, act), "mup", data, steps=2, watch=("h",))
        found = tp.limit(program, samples=2**8, replicates=4)
        assert found["f[2,0]"].value == 0.0
        assert found["h[2,2,0]"].second_moment.value == 0.0


def test_zero_inputs_with_a_bias_are_like_any_other() -> None:
    data = tp.Samples(((0.0, 0.0),), ((1.0,),))
    program = tp.train(tp.MLP(2, "tanh", bias="first"), "mup", data, steps=1, watch=())
    assert tp.limit(program, samples=2**8, replicates=4)["f[1,0]"].value > 0.1


@pytest.mark.slow
def test_deep_programs_do_not_recurse() -> None:
    @tp.program
    def deep(t: tp.Tracer) -> None:
        h = t.gaussian("v")
        for _ in range(20_000):
            h = tp.tanh(h)
        t.output("h", h)

    program = deep.build()
    assert len(derive(program).nodes) == 20_002  # with E Z^2 of the output
    tp.limit(program, samples=4, replicates=2)


def test_averages_that_are_one_number_are_not_drawn_twice() -> None:
    """u.(W v) and v.(W^T u) are equal, and written with one root; q.phi(k) and k.phi(q) are not.

    Independent draws would say E ab = 0.
    """

    @tp.program
    def both_ways(t: tp.Tracer) -> None:
        u, v, w = t.gaussian("u"), t.gaussian("v"), t.matrix("W")
        f = tp.n**0.5 * t.inner(u, tp.n**-0.5 * (w @ v))
        g = tp.n**0.5 * t.inner(v, tp.n**-0.5 * (w.T @ u))
        q, k = (tp.n**-0.5 * (m @ tp.relu(u)) for m in (w, t.matrix("V")))
        a, b = tp.n**0.5 * t.inner(q, tp.tanh(k)), tp.n**0.5 * t.inner(k, tp.tanh(q))
        t.output("f", f)
        t.output("g", g)
        t.output("aa", a * a)
        t.output("ab", a * b)

    found = tp.limit(both_ways, outputs=["f", "g"])
    assert found.cov("f", "g").value == found.cov("f", "f").value == 1
    with pytest.raises(LimitError, match="may be correlated"):
        derive(both_ways.build())
    # One of them alone is fine: E q^2 tanh(k)^2.
    one = tp.limit(both_ways, outputs=["aa"])["aa"]
    q, k = np.sqrt(0.5) * np.random.default_rng(0).standard_normal((2, 10**6))
    drawn = q**2 * np.tanh(k) ** 2
    agree(one, Estimate(float(drawn.mean()), float(drawn.std() / 1e3), Method.FINITE))


def test_a_draw_and_its_multiple_are_drawn_once() -> None:
    """mean(u) and mean(2 u); those that are drawn apart are told, as their law says elsewhere."""

    @tp.program
    def two(t: tp.Tracer) -> None:
        u = t.gaussian("u")
        t.output("f", tp.n**0.5 * t.mean(u))
        t.output("g", tp.n**0.5 * t.moment(lambda z: 2 * z, u))

    found = tp.limit(two, samples=2**6)
    assert not any("may be correlated" in note for note in found.table.notes)
    assert (found["f"].std, found["g"].std) == pytest.approx((1.0, 2.0))


@pytest.mark.parametrize(
    ("gate", "words"),
    [
        (False, ("assumed", "s0 is not 0")),
        (True, ("taken from the form", "is at 0 on no part of the coordinates")),
    ],
    ids=["number", "vector"],
)
def test_what_samples_cannot_tell_is_noted(gate: bool, words: tuple[str, str]) -> None:
    """Of relu^p there are no samples; E relu(v)^(2p) is 1 for one p, where v/(s - 1) is not."""
    act = tp.relu_pow(tp.symbol("p"))

    def divided(t: tp.Tracer, v: tp.Vector, w: tp.Vector) -> tp.Vector:
        s = t.inner(act(v), act(v))
        return tp.step((s - 1) * v + tp.n**-1 * w) if gate else v / (s - 1)

    (note,) = tp.orders(made(divided, "vw"), at={"p": 2}).table.notes
    assert note.startswith(words[0]) and note.endswith(words[1])


def test_a_product_that_is_zero_on_a_dimension_of_its_own() -> None:
    @tp.program
    def empty(t: tp.Tracer) -> None:
        t.dim("m", 2)
        y = t.matrix("A", "m", "n") @ (0 * t.gaussian("v"))
        t.output("one", t.mean(tp.exp(y)))

    assert tp.limit(empty, samples=2**4, replicates=2)["one"].value == 1.0


@pytest.mark.parametrize("loss", ["logistic", "xent"])
def test_ntk_with_a_loss_that_is_not_a_polynomial(loss: str) -> None:
    targets = ((1.0, 0.0), (0.0, 1.0)) if loss == "xent" else ((1.0,), (-1.0,))
    data = tp.Samples(((1.0, 0.5), (-0.5, 1.2)), targets)
    made = tp.train(tp.MLP(2, "tanh"), "ntk", data, steps=3, loss=loss, watch=())
    found = tp.limit(made, samples=2**8, replicates=8)
    assert all(row.estimate.random for row in found.table.scalars)


def test_a_vector_that_grows_is_noted() -> None:
    """v + n^(1/2) E tanh(v)^2 w: its size is a bound where a moment may vanish."""

    growing = made(lambda t, v, w: v + tp.n**0.5 * t.inner(tp.tanh(v), tp.tanh(v)) * w, "vw")
    found = tp.limit(growing, samples=2**10)
    assert str(found["q"].n_power) == "1/2"
    square = 0.394294  # E tanh(v)^2 by quadrature
    agree(found["q"].second_moment, square**2, rounding=1e-6)
    assert any("less if a moment vanishes: q" in note for note in found.table.notes)


def test_the_mean_of_a_product_with_a_start_vector_fluctuates() -> None:
    @tp.program
    def two_ways(t: tp.Tracer) -> None:
        u, x = t.gaussian("u"), t.gaussian("x")
        t.output("a", tp.n**0.5 * t.mean(u * tp.tanh(x)))
        t.output("b", tp.n**0.5 * t.inner(u, tp.tanh(x)))

    found = tp.limit(two_ways, samples=2**8, replicates=8)
    assert found["a"].draws == pytest.approx(found["b"].draws, rel=1e-9)


def test_growth_beyond_polynomials_is_said() -> None:
    fast = made(lambda t, v: t.mean(tp.exp(v)), "v")
    notes = tp.limit(fast, samples=2**8, replicates=2).table.notes
    assert any("exp grows faster" in note for note in notes)


@pytest.mark.parametrize(("order", "value"), [(1, 1), (2, 3), (3, -15)])
def test_taylors_formula_has_one_over_factorial(order: int, value: int) -> None:
    """sin(v + e w) less the terms below an order, on the function of v and w that comes next.

    The mean squares of cos v and sin v are (1 +- e^-2)/2, and E w^2, w^4, w^6 = 1, 3, 15.
    """
    terms = [
        lambda v, w: tp.sin(v),
        lambda v, w: w * tp.cos(v),
        lambda v, w: -(w**2) * tp.sin(v) / 2,
        lambda v, w: w**3 * tp.cos(v),
    ]

    def rest(t: tp.Tracer, v: tp.Vector, w: tp.Vector) -> tp.Scalar:
        left = tp.sin(v + tp.n**-0.5 * w)
        for k in range(order):
            left = left - tp.n ** Fraction(-k, 2) * t.nonlin(terms[k], v, w)
        return tp.n ** Fraction(order, 2) * t.inner(left, t.nonlin(terms[order], v, w))

    square = (1 - math.exp(-2)) / 4 if order == 2 else (1 + math.exp(-2)) / 2
    agree(tp.limit(made(rest, "vw"))["q"], value * square / math.factorial(order))


@pytest.mark.parametrize("own", [0, 1])
def test_scalars_with_the_same_limit_do_not_cancel(own: int) -> None:
    """s - s' is n^(-1/2) E cos(v) w^2, as large as the term that comes after."""

    @tp.program
    def made(t: tp.Tracer) -> None:
        v, w, u = t.gaussian("v", mean=1), t.gaussian("w"), t.gaussian("u")
        moved, still = t.mean(tp.sin(v + tp.n**-0.5 * (w * w))), t.mean(tp.sin(v))
        gap = moved * u - still * u + own * (tp.n**-0.5 * u)
        t.output("q", 1 + tp.n**0.5 * t.inner(gap, u))

    try:
        found = tp.limit(made)["q"]
    except LimitError:
        return  # refusing is right as well
    agree(found, 1 + own + math.cos(1) * math.exp(-0.5))


@pytest.mark.parametrize("size", [1.0, 1e-9, 1e9])
def test_only_what_rounding_leaves_of_floats_is_zero(size: float) -> None:
    @tp.program
    def made(t: tp.Tracer) -> None:
        v = t.gaussian("v")
        t.output("gap", 0.1 * size * v - tp.n**0 * (0.100000001 * size * v))
        t.output("zero", 0.1 * size * v + tp.n**0 * (0.2 * size * v) - tp.n**0 * (0.3 * size * v))

    found = tp.limit(made)
    wanted = pytest.approx(((0.1 - 0.100000001) * size) ** 2, rel=1e-6, abs=0)
    assert found["gap"].second_moment.value == wanted
    assert found["zero"].second_moment.value == 0


def test_fluctuations_are_linear_in_their_vectors() -> None:
    """|v| is 2 relu(v) - v, and so are the averages with u, draw by draw."""

    @tp.program
    def three(t: tp.Tracer) -> None:
        u, v = t.gaussian("u"), t.gaussian("v")
        for name, vector in (("relu", tp.relu(v)), ("v", v), ("abs", tp.abs(v))):
            t.output(name, tp.n**0.5 * t.inner(u, vector))

    found = tp.limit(three, samples=2**8, replicates=8, method="particles")
    draws = [found[name].draws for name in ("relu", "v", "abs")]
    assert len(draws[0]) == 8
    for relu, v, size in zip(*draws, strict=True):
        assert size == pytest.approx(2 * relu - v, rel=1e-9)
