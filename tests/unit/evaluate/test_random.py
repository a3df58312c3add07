"""Which scalars stay random: by the structure of the limit, not by how far samples scatter."""

from __future__ import annotations

import pytest

import tpcalc as tp

small = tp.n**-0.5


@pytest.mark.parametrize("method", ["auto", "particles"])
def test_what_is_normalised_is_not_random(method: str) -> None:
    """z = W(s x) with a random s: z over its own length holds nothing of s but its sign."""

    @tp.program
    def made(t: tp.Tracer) -> None:
        u, v, w = (t.gaussian(name) for name in "uvw")
        s = tp.n**0.5 * t.inner(u, v)
        z = small * (t.matrix("W") @ (s * tp.tanh(w)))
        x = z * t.inner(z, z) ** -0.5
        t.output("s", s)
        t.output("length", t.inner(z, z))
        t.output("one", t.inner(x, x))
        t.output("even", t.mean(tp.tanh(x) ** 2))
        t.output("gate", t.mean(tp.relu(tp.abs(s) * w) * (t.inner(z, z) ** -0.5)))
        t.output("sigmoid", t.mean(tp.sigmoid(tp.abs(s) + w)))
        t.output("x", x)

    found = tp.limit(made, samples=2**12, method=method)
    random = {name for name in found if name != "x" and found[name].random}
    assert random == {"s", "length", "sigmoid"}
    assert found["one"].z(1.0) < 5 and found["x"].second_moment.z(1.0) < 5
    assert found["even"].z(0.394294490397841) < 5  # E tanh(g)^2
    assert not found["x"].second_moment.random


def test_what_a_random_scalar_is_added_to_is_random() -> None:
    """Two scales in one sum: no power of them can be taken out."""

    @tp.program
    def made(t: tp.Tracer) -> None:
        u, v, w = (t.gaussian(name) for name in "uvw")
        s = tp.n**0.5 * t.inner(u, v)
        y = s * w + v
        t.output("q", t.inner(y, y))
        t.output("zero", s * t.mean(w * tp.tanh(v)) + t.inner(u, u))

    found = tp.limit(made, samples=2**8, method="particles")
    assert (found["q"].random, found["zero"].random) == (True, False)


def test_a_spread_that_falls_with_the_samples_is_an_error() -> None:
    """A rotation by a random angle turns a Gaussian into the same one."""

    @tp.program
    def made(t: tp.Tracer) -> None:
        u, v, w, x = (t.gaussian(name) for name in "uvwx")
        s = tp.n**0.5 * t.inner(u, v)
        t.output("turned", t.mean(tp.tanh(tp.sin(s) * w + tp.cos(s) * x) ** 2))
        t.output("angle", t.mean(tp.sin(s + w) ** 2))

    few, many = (tp.limit(made, samples=2**k, method="particles") for k in (9, 13))
    for found in (few, many):
        assert (found["turned"].random, found["angle"].random) == (False, True)
        assert found["turned"].z(0.394294490397841) < 5  # E tanh(g)^2
    assert many["turned"].stderr < 0.3 * few["turned"].stderr
    assert abs(many["angle"].std - few["angle"].std) < 0.1 * few["angle"].std
