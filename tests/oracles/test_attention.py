"""Attention at the start: three tokens, head dimension n, each weight N(0, 1/n).

The logits q.k / sqrt(d) stay random; with 1/d they vanish and every weight is 1/3.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache

import pytest
from agree import agree

import tpcalc as tp
from tpcalc.results import Estimate, Method

H = Fraction(1, 2)
COV = [[1, H, Fraction(3, 10)], [H, 1, Fraction(1, 5)], [Fraction(3, 10), Fraction(1, 5), 1]]


@cache
def limit(power: Fraction) -> tp.Limit:
    """The limit of the output of the second token, whose logits are n^power times an average."""

    def head(t: tp.Tracer) -> None:
        tokens = t.gaussians(["x0", "x1", "x2"], cov=COV)
        query, key, value = (t.matrix(name) for name in ("Q", "K", "V"))
        q = tp.n**-H * (query @ tokens[1])
        logits = [tp.n**power * t.inner(q, tp.n**-H * (key @ x)) for x in tokens]
        weights = [tp.exp(logit) for logit in logits]
        total = weights[0] + weights[1] + weights[2]
        y = tokens[1]
        for weight, x in zip(weights, tokens, strict=True):
            y = y + weight / total * (tp.n**-H * (value @ x))
        for i in range(3):
            t.output(f"s{i}", logits[i])
            t.output(f"a{i}", weights[i] / total)
        t.output("yy", t.inner(y, y))

    return tp.limit(tp.program(head))


def test_logits_over_d_vanish() -> None:
    found = limit(Fraction(0))
    assert found["a1"].value == pytest.approx(1 / 3, abs=1e-12)
    assert found["yy"].value == pytest.approx(1 + 5 / 9, abs=1e-12)


def test_logits_over_the_root_of_d_are_gaussian() -> None:
    """Cov(s_i, s_j) = E (x_1)^2 E x_i x_j, exactly."""
    found = limit(H)
    for i in range(3):
        for j in range(3):
            own = found.cov(f"s{i}", f"s{j}")
            assert own.method is Method.EXACT
            assert own.value == pytest.approx(float(COV[i][j]), abs=1e-12)


def test_softmax_of_random_logits() -> None:
    """Reference: 1.63093 +- 4e-5 for E y^2; a_1 has the mean .33147 and the deviation .1874."""
    found = limit(H)
    agree(found["yy"], Estimate(1.63093, 4e-5, Method.FINITE))
    a = found["a1"]
    assert a.std is not None
    assert a.std_error is not None
    agree(Estimate(a.value, a.stderr, a.method), Estimate(0.33147, 1e-4, Method.FINITE))
    agree(Estimate(a.std, a.std_error, a.method), Estimate(0.1874, 1e-4, Method.FINITE))
    assert a.stderr < 1e-4


def test_weights_sum_to_one() -> None:
    found = limit(H)
    assert sum(found[f"a{i}"].value for i in range(3)) == pytest.approx(1.0, abs=1e-12)
    row = [found.cov("a0", f"a{i}").value for i in range(3)]
    assert sum(row) == pytest.approx(0.0, abs=1e-4)


def test_given_logits_are_numbers() -> None:
    """With all three logits given nothing stays random: softmax is a number."""

    found = tp.limit(limit(H).program, given={"s0": 1.0, "s1": 0.0, "s2": -1.0})
    weights = [2.718281828459045, 1.0, 1 / 2.718281828459045]
    for i, weight in enumerate(weights):
        assert found[f"a{i}"].value == pytest.approx(weight / sum(weights), abs=1e-6)
