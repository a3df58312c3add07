"""Parity: what is claimed to have mean 0 has, when the signs of all directions are flipped."""

from __future__ import annotations

import sys
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from agree import agree
from hypothesis import given
from hypothesis import strategies as st
from properties.programs import grown

import tpcalc as tp
from tpcalc.activations.entries import atom
from tpcalc.functions import Expr, Fn, Var
from tpcalc.functions.expr import const, mul
from tpcalc.functions.tape import evaluate
from tpcalc.limit.graph import LNode, Product, Start
from tpcalc.limit.parity import Parity
from tpcalc.limit.scales import scales
from tpcalc.program.nodes import Family, Input, LinComb, Moment, Nonlin, OuterNonlin
from tpcalc.program.program import Builder

ATOMS = [atom(name) for name in ("tanh", "sin", "abs", "relu", "sign", "step", "gelu")]
COUNT = 4
NUMBERS = st.sampled_from([Fraction(2), Fraction(-1)]).map(const)
EXPRESSIONS = grown(
    st.one_of(st.integers(0, COUNT - 1).map(Var), NUMBERS), st.sampled_from(ATOMS), 7
)


ROWS = st.lists(
    st.lists(st.integers(-1, 2), min_size=COUNT, max_size=COUNT), min_size=COUNT, max_size=COUNT
)


@given(EXPRESSIONS, ROWS, st.lists(st.booleans(), min_size=COUNT, max_size=COUNT))
def test_claimed_zeros_are_zeros(expr: Expr, rows: list[list[int]], shifted: list[bool]) -> None:
    """Members of a group are sums of independent Gaussians; flip the sign of each of those."""
    cov = tuple(
        tuple(Fraction(sum(a * b for a, b in zip(x, y, strict=True))) for y in rows) for x in rows
    )
    mean = tuple(Fraction(int(up)) for up in shifted)
    parity = Parity({"g": Family.group("g", "n", mean, cov)})
    for index in range(COUNT):
        parity.add(index, Start("g", index))
    if not parity.zero_mean(Fn(expr, COUNT), range(COUNT)):
        return
    # The law of the group is that of L z for any L with L L^T = cov: the exact triangular one.
    factor = _triangular(cov)
    directions = np.random.default_rng(0).standard_normal((COUNT, 32))
    total, size = np.zeros(32), np.zeros(32)
    for signs in product((1.0, -1.0), repeat=COUNT):
        flipped = factor @ (np.array(signs)[:, None] * directions)
        arguments = [row + float(up) for row, up in zip(flipped, mean, strict=True)]
        value = np.broadcast_to(evaluate(Fn(expr, COUNT), arguments), 32)
        total, size = total + value, size + abs(value)
    np.testing.assert_array_less(abs(total), 1e-9 * (1 + size))


def _triangular(cov: tuple[tuple[Fraction, ...], ...]) -> np.ndarray:
    """The lower triangular root of a covariance, computed with exact pivots."""
    left = [list(row) for row in cov]
    out = np.zeros((COUNT, COUNT))
    for j in range(COUNT):
        pivot = left[j][j]
        if pivot == 0:
            continue
        column = [left[i][j] / pivot for i in range(COUNT)]
        for i in range(j, COUNT):
            out[i, j] = float(column[i]) * float(pivot) ** 0.5
            for k in range(j, COUNT):
                left[i][k] -= column[i] * column[k] * pivot
    return out


@pytest.mark.parametrize("name", ["tanh", "sin", "sign", "abs", "step"])
def test_independent_functions_have_no_zero_but_those_of_parity(name: str) -> None:
    """E f(x) f(y) of independent x, y is (E f)^2: 0 exactly for the odd ones."""
    parity = Parity({"g": Family.group("g", "n", (Fraction(0), Fraction(0)))})
    for index in (0, 1):
        parity.add(index, Start("g", index))
    f = atom(name)
    claimed = parity.zero_mean(Fn(f(Var(0)) * f(Var(1)), 2), (0, 1))
    assert claimed == (name in ("tanh", "sin", "sign"))
    assert not parity.zero_mean(Fn(f(Var(0)) ** 2, 1), (0,))


def powers(build: object) -> dict[str, tuple[Fraction, bool]]:
    """For each output the power of its leading term, and whether it is a fluctuation."""
    program = tp.program(build).build()  # type: ignore[call-overload]
    run = scales(program, depth=Fraction(1))
    found = {name: run.scale(name) for name, _ in program.outputs}
    return {name: (scale.power, scale.noise) for name, scale in found.items()}


def test_both_sides_of_a_matrix() -> None:
    """W^T tanh(W v) holds v as a correction: it is not orthogonal to v, but to an even function."""

    def chain(t: tp.Tracer) -> None:
        v, w = t.gaussian("v"), t.matrix("W")
        h = tp.n**-0.5 * (w @ v)
        back = tp.n**-0.5 * (w.T @ tp.tanh(h))
        even = tp.n**-0.5 * (w.T @ tp.abs(h))
        t.output("correction", t.inner(back, v))  # E tanh'(h) E v^2
        t.output("odd", t.inner(back, tp.abs(v)))
        t.output("none", t.inner(even, v))  # E sign(h) = 0
        t.output("cube", t.inner(back, v * v * v))
        t.output("forward", t.inner(h, v))

    half = Fraction(-1, 2)
    assert powers(chain) == {
        "correction": (0, False),
        "odd": (half, True),
        "none": (half, True),
        "cube": (0, False),
        "forward": (half, False),  # a sum over the entries of W: Gaussian
    }


def test_claims_about_matrices_hold_in_networks() -> None:
    """What fluctuates is of the size n^(-1/2): mean squares at two widths, 64 networks."""

    @tp.program
    def chain(t: tp.Tracer) -> None:
        v, w = t.gaussian("v"), t.matrix("W")
        h = tp.n**-0.5 * (w @ v)
        back = tp.n**-0.5 * (w.T @ tp.tanh(h))
        again = tp.n**-0.5 * (w @ tp.tanh(back))
        t.output("a", t.inner(tp.n**-0.5 * (w.T @ tp.abs(h)), v))
        t.output("b", t.mean(again * h * tp.tanh(again)))
        t.output("c", t.inner(again, tp.abs(h)))

    program = chain.build()
    run = scales(program, depth=Fraction(0))
    assert [run.scale(name).noise for name in "abc"] == [True, True, True]
    table = tp.simulate(program, widths=[2**9, 2**15], seeds=64, seed=5)
    for name in "abc":
        small, large = (np.mean(np.square(row.values)) for row in table.rows if row.name == name)
        assert 64 / 4 < small / large < 64 * 4  # the ratio of two chi squares of 64 degrees


def test_members_of_a_group_that_are_not_correlated_are_independent() -> None:
    """The covariance is given as numbers: of b and c 1/2, of a with them 0."""

    def group(t: tp.Tracer) -> None:
        cov = [[2, 0, 0], [0, 1, Fraction(1, 2)], [0, Fraction(1, 2), 1]]
        a, b, c = t.gaussians(["a", "b", "c"], cov=cov)
        t.output("apart", t.inner(tp.tanh(a), tp.tanh(b)))
        t.output("also", t.inner(tp.tanh(a), tp.tanh(c)))
        t.output("near", t.inner(b, c))
        t.output("odd", t.mean(tp.tanh(a) * b * c))

    vanishing = (Fraction(-1, 2), False)
    zeros = dict.fromkeys(("apart", "also", "odd"), vanishing)
    assert powers(group) == {**zeros, "near": (0, False)}


def test_an_outer_function_has_the_signs_of_its_rows() -> None:
    """Of psi = r c the row r = v is left: its average with v is 1, with u it is 0."""

    def outer(t: tp.Tracer) -> None:
        v, u = t.gaussian("v"), t.gaussian("u")
        z = t.outer(lambda row, col: row * col, [v], [u], u)
        t.output("own", t.inner(z, v))
        t.output("other", t.inner(z, u))

    found = powers(outer)
    assert found["own"] == (0, False) and found["other"][0] == Fraction(-1, 2)


def test_a_second_product_shares_the_directions_of_the_first() -> None:
    """W(x) and W(y) with E x y != 0 are correlated; with E x y = 0 they are not."""

    def shared(t: tp.Tracer) -> None:
        v, u, w = t.gaussian("v"), t.gaussian("u"), t.matrix("W")
        first = tp.n**-0.5 * (w @ v)
        second = tp.n**-0.5 * (w @ (v + u))
        third = tp.n**-0.5 * (w @ (u * v))
        t.output("same", t.inner(first, second))
        t.output("other", t.inner(first, third))
        t.output("square", t.inner(first * first, third * third))

    assert powers(shared) == {
        "same": (0, False),
        "other": (Fraction(-1, 2), True),
        "square": (0, False),
    }


def test_products_are_vectors_of_the_graph() -> None:
    """A product whose vector is 0 by parity with an earlier one gets a direction of its own."""

    @tp.program
    def made(t: tp.Tracer) -> None:
        v, u, w = t.gaussian("v"), t.gaussian("u"), t.matrix("W")
        t.output("x", w @ v)
        t.output("y", w @ u)

    run = scales(made.build()).reach(["x", "y"])
    context = run.context
    products = [ref for ref, node in enumerate(context.nodes) if isinstance(node, Product)]
    first, second = (context.parity.coset(ref) for ref in products)
    assert not context.parity.lattice.has_zero(context.parity.lattice.product(first, second))


def test_zero_means_of_the_graph_agree_with_particles() -> None:
    """The engine that draws coordinates finds 0 where parity does."""

    @tp.program
    def made(t: tp.Tracer) -> None:
        v, w = t.gaussian("v"), t.matrix("W")
        h = tp.n**-0.5 * (w @ v)
        t.output("odd", 1 + t.mean(tp.tanh(h) * tp.abs(h)))
        t.output("even", t.mean(tp.tanh(h) * h) - t.mean(tp.abs(tp.tanh(h) * h)))

    found = tp.limit(made, samples=2**10)
    agree(found["odd"], 1.0)
    agree(found["even"], 0.0)


def nodes() -> st.SearchStrategy[list[tuple[int, bool, int, int]]]:
    """Kinds of nodes, transposes, and how far back their arguments are."""
    back = st.integers(0, 5)
    return st.lists(st.tuples(st.integers(0, 6), st.booleans(), back, back), max_size=9)


@given(nodes(), st.booleans())
def test_shared_signs_show_no_zero_that_own_signs_do_not(
    made: list[tuple[int, bool, int, int]], haar: bool
) -> None:
    """Vectors of one matrix and its transpose: what flips together flips alone, too."""
    graph: list[LNode] = [Start("g", 0), Start("g", 1)]
    half = Fraction(1, 2)
    for kind, transpose, *back in made:
        x, y = (max(0, len(graph) - 1 - place) for place in back)
        if kind < 3:
            node: LNode = Product("W", transpose, x)
        elif kind == 3:
            node = LinComb((half, half), (None, None), (x, y))
        else:
            functions = (ATOMS[0](Var(0)), ATOMS[2](Var(0)), Var(0) * Var(1))
            fn = Fn(functions[kind - 4], 2 if kind == 6 else 1)
            node = Nonlin(fn, (x, y)[: fn.vectors])
        if node not in graph:
            graph.append(node)
    own, shared = (zeros(graph, haar, limit) for limit in (len(graph), 0))
    assert shared <= own


def zeros(graph: list[LNode], haar: bool, limit: int) -> set[tuple[int, ...]]:
    """Which averages of up to three vectors are said to be 0."""
    group = Family.group("g", "n", (Fraction(0), Fraction(0)))
    parity = Parity({"g": group}, frozenset({"W"} if haar else ()))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys.modules[Parity.__module__], "OWN", limit)
        for ref, node in enumerate(graph):
            parity.add(ref, node)
    fns = {k: Fn(mul([Var(i) for i in range(k)]), k) for k in (1, 2, 3)}
    return {
        refs
        for k in fns
        for refs in product(range(len(graph)), repeat=k)
        if parity.zero_mean(fns[k], refs)
    }


def test_a_side_has_a_bounded_number_of_signs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each step of training multiplies by each side once more."""
    monkeypatch.setattr(sys.modules[Parity.__module__], "OWN", 4)
    data = tp.Samples(((1.0, 0.5),), ((1.0,),))
    run = tp.train(tp.MLP(2, "tanh"), "mup", data, steps=20, watch=())
    parity = scales(run).reach(["f[20,0]"]).context.parity
    assert len(parity.draws) > 2 * 4 * 4
    assert len(set(parity.draws.values())) == 2 * 4  # of W_2 and its transpose


@pytest.mark.parametrize("limit", [None, 0, 1, 2])
def test_what_shares_a_sign_is_kept_with_it(
    limit: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """E (W x)(W y) is E x y: 0 for v with u alone, and for u with v^3.

    The first product shares with the second, the second with the third, the fourth with the first.
    """
    if limit is not None:
        monkeypatch.setattr(sys.modules[Parity.__module__], "OWN", limit)
    one = Fraction(1)
    graph: list[LNode] = [
        Start("g", 0),
        Start("g", 1),
        LinComb((one, one), (None, None), (0, 1)),
        Nonlin(Fn(ATOMS[0](Var(0)), 1), (2,)),
        Nonlin(Fn(Var(0) ** 3, 1), (0,)),
    ]
    graph += [Product("W", False, vector) for vector in (0, 3, 1, 4)]
    parity = Parity({"g": Family.group("g", "n", (Fraction(0), Fraction(0)))})
    for ref, node in enumerate(graph):
        parity.add(ref, node)
    both = Fn(Var(0) * Var(1), 2)
    found = {pair for pair in combinations(range(5, 9), 2) if parity.zero_mean(both, pair)}
    assert found <= {(5, 7), (7, 8)}
    assert limit is not None or (5, 7) in found


def test_even_powers_of_sums_feel_products_of_signs() -> None:
    """E tanh(r (a + b))^2 a b is not 0, though a b has the sign of no square of one of them."""
    builder = Builder()
    r, a, b = (builder.add(Input(Family.group(name, "n", (0,)))) for name in "rab")
    total = builder.add(LinComb((1, 1), (None, None), (a, b)))
    both = builder.add(Nonlin(Fn(Var(0) * Var(1), 2), (a, b)))
    psi = Fn(atom("tanh")(Var(0)) ** 2, 1)
    z = builder.add(OuterNonlin(psi, (r,), (total,), (), both, (0,)))
    builder.output("f", builder.add(Moment(Fn(Var(0), 1), (z,))))
    found = tp.limit(builder.finish(), samples=2**10, replicates=4)["f"]
    assert found.value > 0.05
