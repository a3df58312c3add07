"""The joint law of averages that are 0 by symmetry, against networks of finite width."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from numpy_run import draw, run

import tpcalc as tp
from tpcalc.errors import LimitError, UsageError

H = Fraction(1, 2)
COV = [[1, H, Fraction(1, 5)], [H, 1, Fraction(3, 10)], [Fraction(1, 5), Fraction(3, 10), 1]]


def raised(t: tp.Tracer, x: object, y: object) -> object:
    return tp.n**H * t.inner(x, y)


def hat(matrix: object, x: object) -> object:
    return tp.n**-H * (matrix @ x)


def biased(t: tp.Tracer) -> None:
    """Sums of hats and start vectors are multiplied out."""
    x, y, b, c = (t.gaussian(name) for name in "xybc")
    query, key = t.matrix("Q"), t.matrix("K")
    k = [hat(key, z) + c for z in (x, y)]
    q = 2 * hat(query, tp.tanh(x)) + b
    t.output("first", raised(t, q, k[0]))
    t.output("second", raised(t, q, k[1]))


def both_ends(t: tp.Tracer) -> None:
    """g may hold products with W^T and x products with W."""
    y, z = t.gaussian("y"), t.gaussian("z", mean=1)
    w, u, v = (t.matrix(name) for name in "WUV")
    g = tp.relu(hat(v, tp.relu(hat(w.T, z))))
    x = tp.tanh(hat(u, tp.relu(hat(w, y))))
    t.output("ends", raised(t, g, hat(w, x)))
    t.output("left", raised(t, z, hat(w, x)))
    t.output("right", raised(t, g, hat(w, y)))
    t.output("scaled", raised(t, g * tp.tanh(z), hat(w, tp.tanh(y))))


def rectangular(t: tp.Tracer) -> None:
    t.dim("m", 2)
    a, b = t.matrix("A", "m", "n"), t.matrix("B", "m", "n")
    v, w, z = t.gaussian("v"), t.gaussian("w", mean=H), t.gaussian("z", dim="m")
    t.output("hats", raised(t, hat(a, tp.relu(v)), hat(b, tp.tanh(w))))
    t.output("start", raised(t, hat(a, tp.relu(v)), tp.relu(z)))
    t.output("back", raised(t, hat(a.T, tp.relu(z)), tp.relu(v) * w))


def correlated(t: tp.Tracer) -> None:
    """Members of a group with a covariance."""
    xs = t.gaussians(["x0", "x1", "x2"], cov=COV)
    v = t.gaussian("v")
    y = hat(t.matrix("W"), tp.relu(v))
    for i, x in enumerate(xs):
        t.output(f"s{i}", raised(t, x, y))
    t.output("other", raised(t, xs[0], tp.tanh(v)))


def curved(t: tp.Tracer) -> None:
    """Functions of start vectors, of several at once, with the coordinates of another class."""
    t.dim("m", 2)
    u, v, w = (t.gaussian(name) for name in "uvw")
    a, b = t.gaussian("a", dim="m"), t.gaussian("b", dim="m")
    t.output("one", tp.n**H * t.mean(tp.tanh(u + v)))
    t.output("two", raised(t, tp.tanh(u), tp.relu(v)))
    t.output("three", raised(t, tp.tanh(v), tp.tanh(w)))
    t.output("other", raised(t, tp.tanh(a), tp.tanh(b)))


def twice(t: tp.Tracer) -> None:
    """Two products with one matrix, of which one may hold what its transpose made."""
    t.dim("m", 2)
    w, u = t.matrix("W", "m", "n"), t.matrix("U")
    a, b = t.gaussian("a"), t.gaussian("b")
    y, z = t.gaussian("y", dim="m"), t.gaussian("z", dim="m", mean=1)
    q = hat(w.T, tp.tanh(z))
    left = hat(w, a)
    t.output("plain", raised(t, left, hat(w, tp.relu(b))))
    t.output("inner", raised(t, a, tp.relu(b)))
    t.output("dot", raised(t, left, hat(w, tp.relu(q + b))))
    t.output("more", raised(t, left, hat(w, q * tp.tanh(b) + tp.tanh(q))))
    t.output("linear", raised(t, left, tp.tanh(z)))
    t.output("back", raised(t, hat(w.T, y), hat(w.T, tp.relu(z))))
    t.output("hat", raised(t, hat(w, hat(u, b)), hat(w, tp.relu(b))))
    t.output("curved", raised(t, left, tp.relu(hat(w, b))))


def chained(t: tp.Tracer) -> None:
    """Averages that have a root in common only where the last one is not taken first."""
    x, y, w = (t.gaussian(name) for name in "xyw")
    low, high = t.matrix("A"), t.matrix("B")
    p, q = hat(low, tp.tanh(x)), hat(high.T, w)
    curved = raised(t, p, tp.tanh(2 * q))
    t.output("low", curved + raised(t, w, hat(high, p)) - raised(t, p / 2, q))
    told = raised(t, hat(high, p), hat(high, tp.tanh(q)))
    t.output("told", told + raised(t, q * q, hat(high.T, hat(high, p))))
    t.output("other", raised(t, hat(high.T, y), tp.tanh(q)) + raised(t, w, y))


BUILDS = [curved, biased, both_ends, rectangular, correlated, chained]


@pytest.mark.parametrize("build", [*BUILDS, pytest.param(twice, marks=pytest.mark.slow)])
def test_joint_covariances(build: Callable[[tp.Tracer], None]) -> None:
    """At a width of 128, with a slack of 4/n for corrections of order 1/n."""
    program = tp.program(build).build()
    width, seeds = 128, 80
    found, drawn = tp.limit(program), tp.limit(program, method="particles")
    names = [name for name, _ in program.outputs]
    assert not found.table.uncovered
    values = np.array(
        [
            [run(program, width, draw(program, width, np.random.default_rng(s)))[n] for n in names]
            for s in range(seeds)
        ]
    )
    values -= values.mean(axis=0)
    for i, left in enumerate(names):
        for j, right in enumerate(names[: i + 1]):
            products = values[:, i] * values[:, j]
            own = found.cov(left, right)
            scale = found[left].std * found[right].std
            error = float(products.std()) / seeds**0.5
            assert abs(float(products.mean()) - own.value) < 5 * error + 4 * scale / width
            sampled = drawn.cov(left, right)
            assert abs(sampled.value - own.value) < 5 * sampled.stderr + own.stderr


def test_averages_that_may_be_correlated_say_so() -> None:
    """q . phi(k) and k . phi(q) are correlated, and are drawn from two matrices."""

    def build(t: tp.Tracer) -> None:
        x = t.gaussian("x")
        q, k = hat(t.matrix("Q"), x), hat(t.matrix("K"), x)
        t.output("one", raised(t, q, tp.tanh(k)))
        t.output("two", raised(t, k, tp.tanh(q)))

    found = tp.limit(tp.program(build))
    assert found["one"].std == pytest.approx(found["two"].std, abs=1e-9)
    assert any("may be correlated" in note for note in found.table.notes)
    assert found.cov("one", "one").value == pytest.approx(found["one"].std ** 2)
    with pytest.raises(LimitError, match="no joint law"):
        found.cov("one", "two")
    with pytest.raises(UsageError, match="may be correlated"):
        tp.limit(tp.program(build), given={"one": 1.0})
