"""Haar matrices: the limit rules, lazy finite width and dense matrices say the same."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

import tpcalc as tp
from tpcalc.engine.directions import SampleSpace, materialise
from tpcalc.engine.directions_haar import HaarMatrix
from tpcalc.engine.draws import PlainDraws, SobolDraws
from tpcalc.errors import EvaluationError, LimitError
from tpcalc.limit.scales import scales
from tpcalc.results import Estimate, Method

Array = np.ndarray
ROOT = tp.n**-0.5
ACTS = (tp.tanh, tp.relu, tp.erf, tp.abs)


def mixed(seed: int) -> tp.Program:
    """Gaussian and Haar matrices of all shapes, both ways on vectors that depend on them."""
    choose = np.random.default_rng(seed)

    @tp.program
    def made(t: tp.Tracer) -> None:
        dims = {"n": Fraction(1), "m": Fraction(1, 2), "k": Fraction(3, 4)}
        for name in ("m", "k"):
            t.dim(name, dims[name])
        shapes = [("n", "m", "orthogonal"), ("k", "n", "orthogonal"), ("n", "n", "orthogonal")]
        shapes += [("m", "k", "gaussian"), ("k", "m", "orthogonal")]
        matrices = [
            (t.matrix(f"W{i}", rows=r, cols=c, law=law), r, c)
            for i, (r, c, law) in enumerate(shapes[: 1 + seed % 5])
        ]
        vectors = {name: [t.gaussian(f"v{name}", dim=name)] for name in dims}
        for step in range(9):
            matrix, rows, cols = matrices[choose.integers(len(matrices))]  # few: used both ways
            if choose.random() < 0.5:
                matrix, rows, cols = matrix.T, cols, rows
            last, other = vectors[cols][-1], vectors[cols][choose.integers(len(vectors[cols]))]
            act = ACTS[choose.integers(len(ACTS))]
            argument = act(last) + 0.5 * other if choose.random() < 0.6 else act(last) * other
            vectors[rows].append(ROOT * (matrix @ argument))
            made_here = vectors[rows]
            t.output(f"square{step}", t.inner(made_here[-1], made_here[-1]))
            t.output(f"first{step}", t.inner(made_here[-1], made_here[0]))
            t.output(f"before{step}", t.inner(made_here[-1], tp.tanh(made_here[-2])))

    return made.build()


def finite(program: tp.Program, width: int, seeds: int, backend: str) -> dict[str, Estimate]:
    found = tp.simulate(program, widths=[width], seeds=seeds, seed=5, backend=backend)
    return {row.name: estimate(row.values) for row in found.rows}


def estimate(values: object) -> Estimate:
    numbers = np.array(values, dtype=float)
    stderr = float(numbers.std(ddof=1) / math.sqrt(len(numbers)))
    return Estimate(float(numbers.mean()), stderr, Method.FINITE)


def close(left: Estimate, right: Estimate, slack: float = 0.0) -> None:
    spread = math.hypot(left.stderr, right.stderr)
    gap = max(abs(left.value - right.value) - slack * max(1.0, abs(left.value)), 0.0)
    assert gap <= 5 * spread + 1e-12, (left, right)


@pytest.mark.parametrize("seed", range(6))
def test_limit_is_that_of_wide_networks(seed: int) -> None:
    """Width 2^13; corrections of order 1 / samples have a slack, as have those of order 1/n."""
    program = mixed(seed)
    found = tp.limit(program, samples=2**11, replicates=16, seed=seed)
    wide = finite(program, 2**13, 16, "lazy")
    for name, value in wide.items():
        close(found[name], value, 4 / 2**11)


@pytest.mark.torch
@pytest.mark.parametrize("seed", range(3))
def test_lazy_has_the_law_of_dense(seed: int) -> None:
    """At one width, and one so small that directions run out, there is no slack."""
    pytest.importorskip("torch")
    program = mixed(seed)
    for width, seeds in ((8, 200), (64, 30)):
        lazy, dense = (finite(program, width, seeds, backend) for backend in ("lazy", "dense"))
        for name, value in lazy.items():
            close(value, dense[name])


def test_limit_of_dense_matrices() -> None:
    program = mixed(11)
    found = tp.limit(program, samples=2**11, replicates=16)
    for name, value in finite(program, 256, 12, "dense").items():
        close(found[name], value, 4 / 256)


# -- identities ------------------------------------------------------------------------------


def applied(matrix: HaarMatrix, vector: Array, transpose: bool) -> Array:
    source, target = matrix.side(transpose), matrix.side(not transpose)
    padded, out = source.space.zeros(), target.space.zeros()
    padded[: source.space.size] = vector
    materialise(out, [(target.q, matrix.multiply([padded], transpose).echo[:, 0])])
    return out[: target.space.size].copy()


def haar(law: str, rows: float, cols: float, width: int, **options: object) -> HaarMatrix:
    sizes = [width if law == "limit" else round(width * ratio) for ratio in (rows, cols)]
    spaces = [SampleSpace(s, ratio) for s, ratio in zip(sizes, (rows, cols), strict=True)]
    make: Callable[..., object] = PlainDraws
    if law == "limit":

        def make(size: int, seed: int) -> SobolDraws:
            return SobolDraws(20, size.bit_length() - 1, seed)

    draws = [make(size, seed) for seed, size in enumerate(sizes)]
    return HaarMatrix(law, spaces, 40, draws, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("law", ["limit", "finite"])
@pytest.mark.parametrize(("rows", "cols"), [(1.0, 0.25), (0.5, 1.0), (1.0, 1.0)])
@pytest.mark.parametrize(("storage", "off"), [("float64", 1e-12), ("float32", 1e-4)])
def test_what_lies_in_the_span_has_no_noise(
    law: str, rows: float, cols: float, storage: str, off: float
) -> None:
    """W^T W z = z (W^T W is max(rows, cols) / n times the identity) also after nonlinear steps."""
    matrix, rng = haar(law, rows, cols, 512, storage=storage), np.random.default_rng(0)
    into = rows < cols  # the transpose of the product that keeps angles
    small, large = (matrix.side(side).space.size for side in (into, not into))
    y = applied(matrix, np.tanh(applied(matrix, rng.standard_normal(small), into)), not into)
    z = np.abs(y) + rng.standard_normal(small)
    x = applied(matrix, z, into)
    scale = max(rows, cols)
    assert applied(matrix, x, not into) == pytest.approx(scale * z, abs=20 * off)
    v = rng.standard_normal(large)
    there = applied(matrix, v, not into)
    again = applied(matrix, applied(matrix, there, into), not into)
    assert again == pytest.approx(scale * there, abs=20 * off)
    back = applied(matrix, there, into)
    if rows == cols:
        assert back == pytest.approx(v, abs=20 * off)
    else:
        assert np.std(back - v) > 0.1
    ends = np.mean(x * v) * max(rows, cols), np.mean(z * there) * min(rows, cols)
    assert ends[0] == pytest.approx(ends[1], abs=off)  # (W z).v = z.(W^T v)


def test_projection_of_an_independent_vector() -> None:
    """C C^T v = gamma v + noise of variance gamma (1 - gamma), which is Gaussian."""

    @tp.program
    def projection(t: tp.Tracer) -> None:
        c, v = t.matrix("C", cols=t.dim("r", Fraction(1, 4)), law="orthogonal"), t.gaussian("v")
        p = tp.n**-1 * (c @ (c.T @ v))
        noise = p - 0.25 * v
        t.output("along", t.inner(p, v))
        t.output("noise", t.inner(noise, noise))
        t.output("dependent", t.mean(noise**2 * v**2))
        t.output("fourth", t.mean(noise**4))

    found = tp.limit(projection)
    expected = {"along": 1 / 4, "noise": 3 / 16, "dependent": 3 / 16, "fourth": 3 * (3 / 16) ** 2}
    for name, value in expected.items():
        assert abs(found[name].value - value) <= 5 * found[name].stderr < 0.01


def test_transposed_product_of_a_dependent_vector() -> None:
    """C^T y has the variance of what y has beside C z; an iid factor has that of all of y."""
    second = {}
    for law in ("orthogonal", "gaussian"):

        @tp.program
        def layer(t: tp.Tracer, law: str = law) -> None:
            r = t.dim("r", Fraction(1, 4))
            c, z, v = t.matrix("C", cols=r, law=law), t.gaussian("z", dim=r), t.gaussian("v")
            x = ROOT * (c @ z)
            y = ROOT * (c.T @ (tp.relu(x) + v))
            t.output("slope", t.inner(y, z))
            t.output("square", t.inner(y, y))

        found = tp.limit(layer)
        assert found["slope"].value == pytest.approx(0.5, abs=5 * found["slope"].stderr + 1e-12)
        second[law] = found["square"]
    beside = 0.125 - 0.0625  # E relu(x)^2 less its part along x, of E x^2 = 1/4
    assert second["orthogonal"].value == pytest.approx(1.25 + beside, abs=0.01)
    assert second["gaussian"].value == pytest.approx(1.25 + 0.125, abs=0.01)


# -- symbolic answers ------------------------------------------------------------------------


def both_ways(act: Callable[[object], object]) -> tp.Program:
    @tp.program
    def made(t: tp.Tracer) -> None:
        c = t.matrix("C", cols=t.dim("r", Fraction(1, 2)), law="orthogonal")
        z, v = t.gaussian("z", dim="r"), t.gaussian("v")
        x = ROOT * (c @ z)
        t.output("x", x)
        t.output("undone", ROOT * (c.T @ x) - z)
        t.output("split", ROOT * (c.T @ (x + v)) - ROOT * (c.T @ v) - z)
        projected = tp.n**-1 * (c @ (c.T @ v))
        t.output("rest", ROOT * (c.T @ (v - projected)))
        t.output("y", ROOT * (c.T @ act(x)))
        t.output("size", t.inner(x, x))

    return made.build()


def test_cancellation_is_exact() -> None:
    program = both_ways(tp.tanh)
    orders, limit = tp.orders(program), tp.limit(program)
    for name in ("undone", "split", "rest"):
        assert orders[name].zero
        assert limit[name].second_moment.value == limit[name].second_moment.stderr == 0
    assert [str(orders[name].n) for name in ("x", "y", "size")] == ["0", "0", "0"]


def test_the_larger_side_is_a_factor_inside_a_sum() -> None:
    """C has n rows and 2 n columns: C C^T = 2 n, and E (C z)^2 / n = 2."""

    @tp.program
    def made(t: tp.Tracer) -> None:
        c = t.matrix("C", cols=t.dim("m", 2), law="orthogonal")
        z, v = t.gaussian("z", dim="m"), t.gaussian("v")
        back = ROOT * (c @ (ROOT * (c.T @ v) + z))
        t.output("overlap", t.inner(back, v))
        t.output("square", t.inner(back, back))

    found = tp.limit(made)
    assert (found["overlap"].value, found["square"].value) == (2.0, 6.0)


def test_orders_without_numbers_are_bounds_where_transposes_may_vanish() -> None:
    plain = tp.orders(both_ways(tp.tanh), verify=False)
    assert (plain["x"].status, plain["y"].status) == ("exact", "upper")
    assert tp.orders(both_ways(tp.tanh))["y"].status == "exact"


def test_parity_of_haar_directions() -> None:
    """An even function of C z holds no z: the inner product with z fluctuates."""
    program = both_ways(tp.abs)
    size = scales(program).scale("y")
    assert size.power == 0
    found = tp.limit(program)["y"]
    assert found.mean.value == pytest.approx(0, abs=5 * found.mean.stderr + 1e-12)


def test_evaluators_on_haar_matrices() -> None:
    """Closed forms where products are independent; else particles, and no formula."""
    program = both_ways(tp.relu)
    found = tp.limit(program)
    assert found["size"].method is Method.EXACT
    assert found["size"].value == 0.5
    assert found["x"].formula is not None
    assert found["y"].formula is None
    assert found["y"].second_moment.method is Method.PARTICLES
    with pytest.raises(EvaluationError, match="orthogonal matrix of what depends on"):
        tp.limit(program, outputs=["y"], method="quadrature")


def test_what_does_not_know_haar_matrices_says_so() -> None:
    program = both_ways(tp.tanh)
    for asked in (tp.dependencies, tp.corrections):
        with pytest.raises(LimitError, match=r"'C' is orthogonal.*Gaussian") as error:
            asked(program)
        assert "tp.limit" in str(error.value)

    @tp.program
    def fluctuating(t: tp.Tracer) -> None:
        x = ROOT * (t.matrix("O", law="orthogonal") @ t.gaussian("v"))
        t.output("noise", tp.n**0.5 * t.mean(x**3))

    with pytest.raises(LimitError, match="the law of such a fluctuation"):
        tp.limit(fluctuating)


def test_answers_do_not_depend_on_threads() -> None:
    program = mixed(3)
    one, two = (tp.limit(program, samples=2**9, threads=count) for count in (1, 2))
    assert [one[name].value for name in one] == [two[name].value for name in two]
