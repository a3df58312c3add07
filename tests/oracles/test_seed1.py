"""Acceptance cases of spec 1 (Tensor Programs VI) that the core holds."""

from __future__ import annotations

import math

from agree import agree

import tpcalc as tp


def test_S1_A17() -> None:
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


def test_S1_A18() -> None:
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
