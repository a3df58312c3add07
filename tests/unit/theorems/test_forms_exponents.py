"""Exponents in closed form: as the formulas of the paper are printed, for symbols and numbers."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tpcalc.errors import ScaleError, UsageError
from tpcalc.exponents import Ex, as_ex
from tpcalc.theorems.integrable.forms.exponents import (
    first_pass,
    first_rates,
    first_updates,
    growth,
    later_rates,
    later_updates,
    naive_rates,
    relative_displacements,
)
from tpcalc.training.parameterizations.integrable import gamma

P = Ex.symbol("p")
NUMBERS = st.fractions(-3, 3, max_denominator=12)
ROWS = st.lists(NUMBERS, min_size=2, max_size=6)
DEGREES = st.integers(1, 4)


def sums(a: Sequence[Fraction]) -> list[Fraction]:
    return [-a[0], *(Fraction(1, 2) - own for own in a[1:])]


@given(ROWS, DEGREES)
def test_first_pass_is_the_sum_of_the_lemmas(a: list[Fraction], p: int) -> None:
    """e_f(l) = sum_k p^(l-k) w_k; -a_{L+1} + e_b(l) + (p-1) sum_{k >= l} e_f(k) for dh."""
    w, depth = sums(a), len(a) - 1
    forward = [
        sum(p ** (layer - k) * w[k - 1] for k in range(1, layer + 1))
        for layer in range(1, depth + 2)
    ]
    found = first_pass(a, p)
    assert [e.constant for e in (*found.h, found.f)] == forward
    assert [e.constant for e in found.x] == [p * e for e in forward[:-1]]
    for layer in range(1, depth + 1):
        backward = -a[-1] + sum(w[layer:depth], Fraction(0))
        later = sum(forward[layer:depth], Fraction(0))
        assert found.dx[layer - 1].constant == backward + (p - 1) * later
        own = later + forward[layer - 1]
        assert found.dh[layer - 1].constant == backward + (p - 1) * own


@given(ROWS, DEGREES)
def test_updates_follow_from_the_first_pass(a: list[Fraction], p: int) -> None:
    """e_l is 1/2 - ... of the sizes: n^-(2a+c) dh x^T, with x^T x of n times a square."""
    c = [Fraction(k, 3) for k in range(len(a))]
    passed, updates = first_pass(a, p), first_updates(a, c, p)
    for layer, found in enumerate(updates, 1):
        own = -(2 * a[layer - 1] + c[layer - 1]) + (1 if layer > 1 else 0)
        size = as_ex(own)
        if layer < len(a):
            size = size + passed.dh[layer - 1]
        if layer > 1:
            size = size + passed.x[layer - 2]
        assert found == size


@pytest.mark.parametrize("depth", [1, 2, 3, 5])
def test_required_rates_of_ip_are_gamma(depth: int) -> None:
    a = (0, *(1,) * depth)
    assert first_rates(a, P) == gamma(depth, P)
    assert first_updates(a, gamma(depth, P), P) == (as_ex(0),) * (depth + 1)


@given(st.integers(1, 5), DEGREES)
def test_growth_is_what_constant_rates_give(depth: int, p: int) -> None:
    total = sum(p**k for k in range(depth))
    found = [e.constant for e in growth(depth, p)]
    half = Fraction(1, 2)
    assert found[0] == found[-1] == half * (total - 1)
    assert all(e == half * (total - 2) for e in found[1:-1])


def test_symbols_in_the_exponents() -> None:
    found = first_rates(("a1", "a2", "a3"), "p")
    at = {"a1": Fraction(0), "a2": Fraction(1), "a3": Fraction(1), "p": Fraction(2)}
    assert [e.at(at) for e in found] == [e.constant for e in gamma(2, as_ex(2))]
    assert [str(e) for e in later_updates((0, "a", 1), (0, "c", 0))] == ["-1", "-2*a - c", "-1"]


def test_displacements() -> None:
    ntk = relative_displacements((0, 0.5, 0.5, 0.5), (0, 0, 0, 0))
    assert [str(e) for e in ntk] == ["-1/2", "-1", "-1", "-1/2"]


def test_naive_rates_vanish_from_three_layers_on() -> None:
    assert str(naive_rates(2).f) == "0"
    for depth in (3, 4, 7):
        found = naive_rates(depth)
        for rate in (*found.updates, found.output, found.f):
            assert rate.constant is not None
            assert rate.constant < 0


def test_refusals() -> None:
    with pytest.raises(UsageError, match="at least 2 layers"):
        first_pass((0,))
    with pytest.raises(UsageError, match="a has 3 exponents, c has 2"):
        first_updates((0, 1, 1), (0, 0))
    with pytest.raises(UsageError, match="a has 3 exponents, c has 2"):
        later_updates((0, 1, 1), (0, 0))
    with pytest.raises(UsageError, match="of order 1/m"):
        later_rates((0, 1, Fraction(1, 2)))
    with pytest.raises(UsageError, match=r"p is .*; it must be above 0"):
        first_rates((0, 1, 1), 0)
    with pytest.raises(UsageError, match="at least 2"):
        naive_rates(1)
    with pytest.raises(ScaleError):
        first_pass((0, "1 +", 1))
