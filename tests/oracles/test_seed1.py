"""Acceptance cases of spec 1 (Tensor Programs VI) that the core holds."""

from __future__ import annotations

import math

from agree import agree

import tpcalc as tp


def test_S1_1_4_A17() -> None:
    """g = W phi(W^T v): <v|g> = E phi'(z), <g|g> = E phi^2 + (E phi')^2."""

    @tp.program
    def dot_ket(t: tp.Tracer) -> None:
        v = t.gaussian("v")
        w = t.matrix("W")
        z = tp.n**-0.5 * (w.T @ v)
        for name, act in (("relu", tp.relu), ("tanh2", lambda z: tp.tanh(2 * z))):
            g = tp.n**-0.5 * (w @ act(z))
            t.output(f"{name} vg", t.inner(v, g))
            t.output(f"{name} gg", t.inner(g, g))

    found = tp.limit(dot_ket, samples=2**14, replicates=32, seed=5)
    for name, value in (("relu vg", 0.5), ("relu gg", 0.75), ("tanh2 vg", 0.729478)):
        assert found[name].stderr < 2e-3
        agree(found[name], value, rounding=5e-7)


def test_S1_4_A18() -> None:
    """<y|W q> = <q|W^T y> = e^(-1/2) for y = sin(W q), <q|q> = 1."""

    @tp.program
    def adjoint(t: tp.Tracer) -> None:
        q = t.gaussian("q")
        w = t.matrix("W")
        h = tp.n**-0.5 * (w @ q)
        y = tp.sin(h)
        back = tp.n**-0.5 * (w.T @ y)
        t.output("forward", t.inner(y, h))
        t.output("backward", t.inner(q, back))

    found = tp.limit(adjoint, samples=2**14, replicates=32, seed=6)
    for name in ("forward", "backward"):
        assert found[name].stderr < 2e-3
        agree(found[name], math.exp(-0.5))
    agree(found["forward"], found["backward"])


def test_S1_3_A16() -> None:
    """Functions of an outer product, entry by entry, in closed form, and at finite width."""

    @tp.program
    def entries(t: tp.Tracer) -> None:
        x, y = ([t.gaussian(f"{name}{k}") for k in (1, 2)] for name in "xy")
        sign = t.outer(lambda a, b, c, d: tp.sign(a * c + b * d), x, y, y[0])
        cube = t.outer(lambda a, b, c, d: (a * c + b * d) ** 3, x, y, y[0])
        square = t.outer(lambda a, c: (a * c) ** 2, x[0], y[0], y[0] ** 2)
        for name, z in (("sign", sign), ("cube", cube)):
            t.output(name, t.inner(x[0], z))
            t.output(f"{name} size", t.inner(z, z))
        t.output("square", t.inner(x[0] ** 2, square))
        t.output("square size", t.inner(square, square))

    # sqrt(2 / pi) x_1 / |x|, 3 x_1 |x|^2 and 3 x^2, against x_1 or x^2 and against themselves
    want = {"sign": 0.5, "cube": 12.0, "square": 9.0}
    want |= {"sign size": 1 / math.pi, "cube size": 216.0, "square size": 27.0}
    found = tp.limit(entries, samples=2**11, replicates=32, seed=4)
    for name, value in want.items():
        assert found[name].stderr < 0.02 * value
        agree(found[name], value)
    networks = tp.simulate(entries, [256], 64, seed=5, outputs=["sign", "cube", "square"])
    for row in networks.rows:
        # Averages of products with x are unbiased at every width.
        error = (sum((v - want[row.name]) ** 2 for v in row.values) / 63) ** 0.5 / 8
        mean = sum(row.values) / 64
        assert abs(mean - want[row.name]) < 5 * error < 0.5 * want[row.name]
