"""Iterated W W^T, and trajectories published by peers (peers 5.3, 5.4)."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from agree import agree

import tpcalc as tp


def catalan(count: int) -> list[int]:
    """C_0, ..., C_count by their recurrence, not from a table."""
    out = [1]
    for _ in range(count):
        out.append(sum(a * b for a, b in zip(out, reversed(out), strict=True)))
    return out


def test_catalan_numbers_of_iterated_products() -> None:
    """g_k = (What What^T)^k v: <v, g_k> = C_k, <g_k, g_k> = C_2k (Marchenko-Pastur moments)."""
    depth = 5

    @tp.program
    def iterated(t: tp.Tracer) -> None:
        v = g = t.gaussian("v")
        w = t.matrix("W")
        for k in range(1, depth + 1):
            g = tp.n**-1 * (w @ (w.T @ g))
            t.output(f"v g{k}", t.inner(v, g))
            t.output(f"g{k} g{k}", t.inner(g, g))

    numbers = catalan(2 * depth)
    found = tp.limit(iterated, samples=2**14, replicates=32, seed=1)
    for k in range(1, depth + 1):
        agree(found[f"v g{k}"], numbers[k])
        agree(found[f"g{k} g{k}"], numbers[2 * k])
        assert found[f"g{k} g{k}"].stderr < 0.02 * numbers[2 * k]


def test_peers_5_3() -> None:
    """The exact rational muP trajectory of a linear network: 1/4, 1141/2560, ..."""
    data = tp.Samples(((1.0, 0.5), (-0.5, 1.0)), ((1.0,), (-1.0,)))
    # half the sum of squares over two samples is twice the mean loss: the rate doubles
    program = tp.train(
        tp.MLP(1, "linear"), "mup", data, steps=3, lr=Fraction(1, 5), loss="mse", batch=2, watch=()
    )
    found = tp.limit(program, samples=2**14, replicates=32, seed=2)
    exact = (
        Fraction(0),
        Fraction(1, 4),
        Fraction(1141, 2560),
        Fraction(405039363661, 671088640000),
    )
    for step, value in enumerate(exact):
        first, second = found[f"f[{step},0]"], found[f"f[{step},1]"]
        assert first.stderr < 2e-3
        agree(first, float(value))
        agree(second, -float(value))


def _erf_rnn(gram: list[list[float]], varw: float, varb: float) -> tp.Limit:
    """h_t = sqrt(varw) What s_(t-1) + u_t + b, s = erf(h); returns E s_t s_t'."""

    @tp.program
    def rnn(t: tp.Tracer) -> None:
        tokens = t.gaussians([f"u{i}" for i in range(len(gram))], cov=gram)
        w = t.matrix("W")
        bias = math.sqrt(varb) * t.gaussian("b")
        state = tp.erf(tokens[0] + bias)
        states = [state]
        for token in tokens[1:]:
            state = tp.erf(math.sqrt(varw) * (tp.n**-0.5 * (w @ state)) + token + bias)
            states.append(state)
        for i, left in enumerate(states):
            for j, right in enumerate(states[: i + 1]):
                t.output(f"K[{i},{j}]", t.inner(left, right))

    return tp.limit(rnn, samples=2**14, replicates=32, seed=4)


@pytest.mark.parametrize("case", ["orthonormal", "correlated"])
def test_peers_5_4(case: str) -> None:
    """RNN with shared weights: two hand-size cases."""
    if case == "orthonormal":
        found = _erf_rnn([[1.0, 0.0], [0.0, 1.0]], 1.0, 0.0)
        expected = {"K[0,0]": 0.4645590544, "K[1,1]": 0.5355688912, "K[1,0]": 0.0}
    else:
        # the peer's kernel carries the factor varw = 2
        found = _erf_rnn([[1.0, 0.5], [0.5, 1.0]], 2.0, 0.1)
        expected = {
            "K[0,0]": 0.9651674791 / 2,
            "K[1,0]": 0.3828310051 / 2,
            "K[1,1]": 1.1915127585 / 2,
        }
    for name, value in expected.items():
        assert found[name].stderr < 1e-3
        agree(found[name], value, rounding=5e-11)
