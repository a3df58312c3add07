"""Dependency sets, corrections and initial weights: what is listed, left out and marked."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from agree import agree
from hypothesis import given, settings
from hypothesis import strategies as st

import tpcalc as tp
from tpcalc.errors import ScaleError, UnknownName
from tpcalc.questions.dependencies import Dependencies, corrections, dependencies
from tpcalc.questions.initial_weights import initial_weights

small = tp.n**-0.5
Build = Callable[[tp.Tracer], None]


def read(build: Build, **settings: object) -> Dependencies:
    return dependencies(tp.program(build), **settings)  # type: ignore[arg-type]


def on(found: Dependencies, name: str) -> set[str]:
    return set(found[name].on)


def test_functions_and_sums_of_start_vectors() -> None:
    def build(t: tp.Tracer) -> None:
        a, b, c = (t.gaussian(name) for name in "abc")
        t.output("one", tp.relu(a))
        t.output("two", tp.tanh(a) * b)
        t.output("sum", a + 2 * b)
        t.output("of_sum", tp.relu(a + 2 * b) + c)
        t.output("number", t.inner(a, a))
        t.output("nothing", a - a)

    found = read(build)
    assert on(found, "one") == {"a"}
    assert on(found, "two") == {"a", "b"}
    assert on(found, "sum") == {"sum"}  # one Gaussian: what depends on it knows no more of a and b
    assert on(found, "of_sum") == {"sum", "c"}
    assert [row.law for row in found.table.gaussians if row.name == "sum"] == ["a + 2*b"]
    for name in ("number", "nothing"):
        assert found[name].known and not found[name].on
    assert (str(found["nothing"].n), found["nothing"].positive) == ("-oo", False)


def test_what_cancels_or_is_no_part_of_the_leading_term_is_not_listed() -> None:
    def build(t: tp.Tracer) -> None:
        a, b = t.gaussian("a"), t.gaussian("b")
        t.output("cancelled", (tp.relu(a) + b) - tp.relu(a))
        t.output("leading", tp.relu(a) + small * b)
        t.output("odd", tp.mean(tp.tanh(a) * tp.relu(b)) * b + tp.relu(a))

    found = read(build)
    assert on(found, "cancelled") == {"b"}
    assert on(found, "leading") == {"a"}
    assert on(found, "odd") == {"a"}  # E tanh(a) relu(b) = 0 by symmetry
    assert not any(found[name].doubtful for name in found)


def zero_by_numbers(t: tp.Tracer) -> None:
    a, b, c = (t.gaussian(name) for name in "abc")
    up, down = tp.mean(tp.relu(a)), tp.mean(tp.relu(-a))
    t.output("y", (up - down) * tp.relu(b) + up * tp.relu(c))


def test_a_coefficient_that_numbers_do_not_tell_from_0_is_marked() -> None:
    found = read(zero_by_numbers)
    assert on(found, "y") == {"b", "c"}
    assert found["y"].doubtful == ("b",)
    assert "b (?)" in str(found) and "c (?)" not in str(found)
    assert any("(?)" in note for note in found.table.notes)


def test_without_estimates_more_is_doubtful_and_the_sets_are_the_same() -> None:
    found = read(zero_by_numbers, verify=False)
    assert on(found, "y") == {"b", "c"}
    assert set(found["y"].doubtful) == {"b", "c"}
    assert not found["y"].positive


def test_a_constant_start_vector_is_no_gaussian() -> None:
    def build(t: tp.Tracer) -> None:
        t.output("y", tp.relu(t.gaussian("one", mean=1, var=0)) + t.gaussian("b"))

    assert on(read(build), "y") == {"b"}


def layers(t: tp.Tracer) -> None:
    """Forward and back through one matrix, with and without a correction."""
    W, v, u = t.matrix("W"), t.gaussian("v"), t.gaussian("u")
    x = tp.relu(v)
    h = small * (W @ x)
    t.output("x", x)
    t.output("h", h)
    even = tp.tanh(h) ** 2
    t.output("even", even)
    t.output("other", small * (W @ tp.relu(u)))
    t.output("back", small * (W.T @ tp.relu(h)))
    t.output("clean", small * (W.T @ even))


def test_a_correction_adds_what_its_vector_depends_on() -> None:
    found = read(layers)
    assert on(found, "h") == {"hat W x"}
    assert on(found, "back") == {"hat W^T relu(h)", "v"}
    assert on(found, "clean") == {"hat W^T even"}  # its coefficient is 0 by symmetry
    rows = {row.name: row for row in corrections(tp.program(layers)).rows}
    (term,) = rows["W^T relu(h)"].terms
    assert term.coefficient is not None and not term.doubtful
    agree(term.coefficient, 0.5)
    assert [str(term) for term in rows["W^T even"].terms] == ["0 * x"]
    assert rows["W^T even"].vanishes and rows["W x"].vanishes
    assert rows["W x"].terms == ()
    assert not rows["W^T relu(h)"].vanishes


def test_independence_takes_correlations_into_account() -> None:
    found = read(layers)
    assert found.independent("x", "h") and found.independent("h", "clean")
    assert found.independent("x", "clean")
    shared = found.independent("x", "back")
    assert not shared and shared.shared == (("v", "v"),)
    # Hats of one side of one matrix: E relu(u) relu(v) is not 0.
    hats = found.independent("h", "other")
    assert not hats and hats.shared == (("hat W x", "hat W relu(u)"),)
    assert "may be correlated" in str(hats)


def test_hats_of_uncorrelated_vectors_are_independent() -> None:
    def build(t: tp.Tracer) -> None:
        W, u, v = t.matrix("W"), t.gaussian("u"), t.gaussian("v")
        t.output("a", small * (W @ tp.tanh(u)))
        t.output("b", small * (W @ tp.tanh(v)))
        t.output("c", small * (W @ tp.sigmoid(v)))
        t.output("d", small * (W @ tp.sigmoid(u)))

    found = read(build)
    assert found.independent("a", "b") and found.independent("a", "c")
    assert not found.independent("c", "d")


def test_start_vectors_of_one_group_may_be_correlated() -> None:
    def build(t: tp.Tracer) -> None:
        a, b, c = t.gaussians(["a", "b", "c"], cov=[[2, 1, 0], [1, 2, 0], [0, 0, 1]])
        t.output("a", tp.relu(a))
        t.output("b", tp.relu(b))
        t.output("c", tp.relu(c))
        t.output("difference", tp.relu(a - b))
        t.output("sum", tp.relu(a + b))

    found = read(build)
    assert not found.independent("a", "b")
    assert found.independent("a", "c")
    assert found.independent("difference", "sum")  # Cov(a - b, a + b) = 2 - 2
    assert not found.independent("a", "difference")


def test_random_scalars_are_listed() -> None:
    def build(t: tp.Tracer) -> None:
        u, v, w = (t.gaussian(name) for name in "uvw")
        root = tp.n**0.5
        t.output("s", root * t.inner(u, tp.relu(v)))
        t.output("r", root * t.inner(u, tp.tanh(v)))
        t.output("e", root * t.inner(u, tp.abs(v)))
        t.output("q", root * t.inner(w, tp.relu(v)))
        t.output("y", root * t.inner(u, tp.relu(v)) * tp.relu(w))

    found = read(build)
    assert on(found, "s") == {"G(u, relu(v))"}
    assert on(found, "y") == {"G(u, relu(v))", "w"}
    assert found.independent("s", "q")
    assert found.independent("r", "e")  # E tanh(v) |v| = 0
    assert not found.independent("s", "r")
    assert not found.independent("s", "y")


def test_an_average_around_0_is_listed_without_a_law() -> None:
    def build(t: tp.Tracer) -> None:
        u, v = t.gaussian("u"), t.gaussian("v")
        h = tp.n**-0.5 * (t.matrix("W") @ u)
        t.output("y", tp.n**0.5 * tp.mean(tp.tanh(h)) * tp.relu(v))

    found = read(build)
    v, average = found["y"].on
    assert v == "v" and average.startswith("average")
    assert not found["y"].finite and not found["y"].doubtful
    assert not found.independent("y", "y")


def gates(t: tp.Tracer) -> None:
    """Signs of what is 0 where g <= 0 are decided by r; factors that are 0 there hide it."""
    g, d, r = t.gaussian("g"), t.gaussian("d"), t.gaussian("r")
    h = d * tp.step(g) + small * r
    t.output("open", tp.relu(h) * 0 + d * tp.step(h))
    t.output("shut", tp.relu(g) * tp.step(h))
    t.output("shut_twice", tp.relu(tp.relu(g) + 0 * d) * tp.tanh(d) * tp.step(h))
    t.output("half", (tp.relu(g) + tp.relu(d)) * tp.step(h))
    t.output("wrong_side", tp.relu(-g) * tp.step(h))


def test_gates_that_a_factor_shuts_are_not_listed() -> None:
    found = read(gates)
    assert on(found, "open") == {"g", "d", "r"}
    assert on(found, "shut") == on(found, "shut_twice") == {"g", "d"}
    assert on(found, "half") == on(found, "wrong_side") == {"g", "d", "r"}


@settings(max_examples=15, deadline=None)
@given(rows=st.integers(1, 4), cols=st.integers(1, 4), slope=st.sampled_from([0.0, 0.2, 0.5]))
def test_the_coefficient_of_a_rectangular_product(rows: int, cols: int, slope: float) -> None:
    """c = r E phi'(h): the dimension that the product sums over, times the mean slope."""

    @tp.program
    def made(t: tp.Tracer) -> None:
        t.dim("out", rows)
        t.dim("in", cols)
        W, v = t.matrix("W", rows="out", cols="in"), t.gaussian("v", dim="in")
        h = small * (W @ tp.relu(v))
        t.output("back", small * (W.T @ tp.leaky_relu(slope)(h)))

    row = corrections(made).rows[-1]
    (term,) = row.terms
    assert term.coefficient is not None
    agree(term.coefficient, rows * (1 + slope) / 2)


def test_coefficients_of_several_earlier_products() -> None:
    """x = tanh(h1) + h2^2 relu(h1): slopes by h1 and by h2, which are correlated."""

    @tp.program
    def made(t: tp.Tracer) -> None:
        W, v = t.matrix("W"), t.gaussian("v")
        h1, h2 = small * (W @ tp.relu(v)), small * (W @ v)
        t.output("a", tp.relu(v))
        t.output("v", v)
        t.output("back", small * (W.T @ (tp.relu(h1) * h2)))

    row = corrections(made).rows[-1]
    found = {term.vector: term.coefficient for term in row.terms}
    # Cov(h1, h2) = 1/2, Var h1 = 1/2: E h2 step(h1) = sqrt(1/2) E|g| / 2, and E relu(h1).
    half = math.sqrt(0.5) / math.sqrt(2 * math.pi)
    assert found["a"] is not None and found["v"] is not None
    agree(found["a"], half)
    agree(found["v"], half)


def test_moments_are_certified_by_growth() -> None:
    def build(t: tp.Tracer) -> None:
        W, v, s = t.matrix("W"), t.gaussian("v"), t.random_scalar("s", std=1)
        t.output("cube", v**3)
        t.output("bounded", tp.tanh(v**3))
        t.output("product", tp.relu(v) ** 2 * small * (W @ v))
        t.output("random", s * v)
        t.output("fast", tp.exp(v))
        t.output("after", small * (W @ tp.exp(v)))

    found = read(build)
    degrees = {name: found[name].degree for name in found}
    assert degrees == {
        "cube": "3",
        "bounded": "0",
        "product": "3",
        "random": "2",
        "fast": None,
        "after": "1",
    }
    assert found["cube"].positive and not found["fast"].finite


def test_symbols_in_exponents() -> None:
    def build(t: tp.Tracer) -> None:
        a, b = t.gaussian("a"), t.gaussian("b")
        t.output("y", tp.relu(a) + tp.n ** -tp.symbol("c") * b)

    assert on(read(build, at={"c": 1}), "y") == {"a"}
    assert on(read(build, at={"c": -1}), "y") == {"b"}
    assert on(read(build, values={"c": 0}), "y") == {"a", "b"}
    with pytest.raises(ScaleError, match="c"):
        read(build)


def test_names_that_are_not_there() -> None:
    found = read(layers)
    assert list(found) == [name for name, _ in found.program.outputs] and len(found) == 6
    for ask in (lambda: found["hh"], lambda: found.independent("x", "hh")):
        with pytest.raises(UnknownName):
            ask()


def test_what_no_leading_term_is_known_of() -> None:
    def build(t: tp.Tracer) -> None:
        v = t.gaussian("v")
        t.output("large", tp.tanh(tp.n * v))
        t.output("v", v)

    found = read(build)
    large = found["large"]
    assert not (large.known or large.positive or large.finite) and "not decided" in str(found)
    answer = found.independent("large", "v")
    assert not answer and "not known" in answer.note


def terms(t: tp.Tracer) -> None:
    W, v = t.matrix("W"), t.gaussian("v")
    first = small * (W @ tp.relu(v))
    t.output("first", first)
    second = tp.relu(first) + 3 * tp.n**-1 * (W @ tp.abs(v)) + small * t.inner(v, v) * first
    t.output("second", second)
    t.output("third", tp.exp(second))


def test_initial_terms_of_any_program() -> None:
    table = initial_weights(tp.program(terms))
    rows = {(row.name, row.part_of): row for row in table.rows}
    assert set(rows) == {("W relu(v)", "first"), ("W abs(v)", "second")}
    whole, part = rows["W relu(v)", "first"], rows["W abs(v)", "second"]
    assert (str(whole.n), whole.status, whole.vanishes, whole.certified) == (
        "0",
        "exact",
        False,
        False,
    )
    assert (str(part.n), part.status, part.vanishes, part.certified) == (
        "-1/2",
        "exact",
        True,
        True,
    )
    assert "stays" in str(table) and "vanishes" in str(table)


def test_initial_terms_beside_what_is_not_known() -> None:
    def build(t: tp.Tracer) -> None:
        W, v, a = t.matrix("W"), t.gaussian("v"), t.gaussian("a")
        zero = tp.mean(tp.relu(a)) - tp.mean(tp.relu(-a))
        t.output("y", zero * v + tp.n**-1 * (W @ v))

    (row,) = initial_weights(tp.program(build)).rows
    assert row.n is None and row.vanishes is None and not row.certified
    assert "not known" in row.reason


def test_initial_terms_with_symbols() -> None:
    data, net = tp.Samples(((1.0, 0.5),), ((1.0,),)), tp.MLP(2, "relu", bias="first")

    def build(t: tp.Tracer) -> None:
        W, v = t.matrix("W"), t.gaussian("v")
        t.output("h", tp.relu(v) + tp.n ** -tp.symbol("a") * (W @ v))

    (row,) = initial_weights(tp.program(build), at={"a": 1}).rows
    assert (str(row.n), row.vanishes) == ("1/2 - a", True)
    assert initial_weights(tp.program(build), at={"a": 1}).notes == ("-1/2 + a > 0",)
    assert initial_weights(tp.train(net, "ip-llr", data, watch=())).rows == ()
