"""Tables of exponents against those of the papers."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tpcalc.catalog.parameterizations import REGISTRY, Exponents, lookup
from tpcalc.errors import ScaleError, StudyError, TpcalcError, UnknownName
from tpcalc.orders import Ex, as_ex

HALF = Fraction(1, 2)
DEPTHS = [1, 2, 3, 6]


def spread(depth: int, first: Any, hidden: Any, last: Any) -> list[Fraction]:
    return [Fraction(first), *[Fraction(hidden)] * (depth - 1), Fraction(last)]


def numbers(row: tuple[Ex, ...]) -> list[Fraction | None]:
    return [entry.constant for entry in row]


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("step", [0, 1, 5])
@pytest.mark.parametrize(
    ("name", "a", "c"),
    [
        ("ntk", (0, HALF, HALF), (0, 0, 0)),
        ("mup", (0, HALF, 1), (-1, -1, -1)),
        ("naive-ip", (0, 1, 1), (-1, -2, -1)),
        ("standard", (0, HALF, HALF), (0, -1, -1)),
    ],
)
def test_constant_tables(name: str, a: tuple[Any], c: tuple[Any], depth: int, step: int) -> None:
    found = lookup(name).exponents(depth, step)
    assert numbers(found.a) == spread(depth, *a)
    assert numbers(found.c) == spread(depth, *c)
    assert (found.bias_a, found.bias_c) == (found.a, found.c)


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("p", [1, 2, 3, HALF * 3])
def test_ip_llr_starts_with_gamma_and_goes_on_as_naive_ip(depth: int, p: Any) -> None:
    found = lookup("ip-llr", p=p)
    powers = sum(Fraction(p) ** k for k in range(depth))
    outer, inner = -HALF * (1 + powers), -1 - HALF * powers
    assert numbers(found.exponents(depth, 0).c) == spread(depth, outer, inner, outer)
    naive = lookup("naive-ip")
    assert found.exponents(depth, 0).a == naive.exponents(depth, 0).a
    for step in (1, 2, 9):
        assert found.exponents(depth, step) == naive.exponents(depth, step)


@pytest.mark.parametrize("depth", [2, 3, 4])
def test_gamma_at_degree_one(depth: int) -> None:
    wanted = spread(depth, -HALF * (depth + 1), -HALF * (depth + 2), -HALF * (depth + 1))
    assert numbers(lookup("ip-llr").exponents(depth, 0).c) == wanted


def test_with_one_hidden_layer_three_names_are_one() -> None:
    for step in (0, 1):
        mup = lookup("mup").exponents(1, step)
        assert mup == lookup("naive-ip").exponents(1, step)
        for p in (1, 2, 5):
            assert mup == lookup("ip-llr", p=p).exponents(1, step)


def test_a_symbolic_degree_gives_polynomials() -> None:
    found = lookup("ip-llr", p=Ex.symbol("p")).exponents(3, 0)
    assert str(found.c[0]) == "-1 - 1/2*p - 1/2*p**2"
    for p in (1, 2, 3):
        at = [entry.at({"p": Fraction(p)}) for entry in found.c]
        assert at == numbers(lookup("ip-llr", p=p).exponents(3, 0).c)


@pytest.mark.parametrize(
    ("name", "table"),
    [
        # Yang and Hu write muP as a = (-1/2, 0, ..., 0, 1/2), b = 1/2, c = 0.
        ("mup", {"a": (-HALF, 0, HALF), "b": HALF, "c": 0}),
        # With b = 1 in the layers between, the same table is Naive-IP.
        ("naive-ip", {"a": (-HALF, 0, HALF), "b": (HALF, 1, HALF), "c": 0}),
        ("standard", {"a": 0, "b": (0, HALF, HALF), "c": 0}),
        ("ntk", {"a": (0, HALF, HALF), "b": 0, "c": 0}),
    ],
)
@pytest.mark.parametrize("depth", DEPTHS)
def test_abc_rows_become_ac_rows(name: str, table: dict[str, Any], depth: int) -> None:
    assert lookup("abc", **table).exponents(depth) == lookup(name).exponents(depth)


def test_standard_with_a_smaller_rate() -> None:
    found = lookup("standard", c=1).exponents(3)
    assert numbers(found.c) == spread(3, 1, 0, 0)
    table = lookup("abc", a=0, b="0,1/2,1/2", c=1)
    assert table.exponents(3) == found


POWER = st.fractions(-3, 3, max_denominator=4)
ROW = st.tuples(POWER, POWER, POWER)


@given(ROW, ROW, ROW, POWER, st.integers(1, 5))
def test_the_symmetry_of_abc_is_no_change(
    a: tuple[Any], b: tuple[Any], c: tuple[Any], shift: Fraction, depth: int
) -> None:
    moved = {
        "a": tuple(x + shift for x in a),
        "b": tuple(x - shift for x in b),
        "c": tuple(x - 2 * shift for x in c),
    }
    assert lookup("abc", a=a, b=b, c=c).exponents(depth) == lookup("abc", **moved).exponents(depth)


def test_free_tables() -> None:
    full = lookup("ac", a=(0, 1, 1, 2), c=(-1, -2, -3, -4)).exponents(3)
    assert numbers(full.a) == [0, 1, 1, 2] and numbers(full.c) == [-1, -2, -3, -4]
    assert full == Exponents(full.a, full.c, full.a, full.c)
    text = lookup("ac:0,1/2,1;-1").exponents(4)
    assert numbers(text.a) == spread(4, 0, HALF, 1) and numbers(text.c) == [-1] * 5
    symbols = lookup("ac", a="0, a, a + 1/2", c=[0.5]).exponents(2)
    assert [str(entry) for entry in symbols.a] == ["0", "a", "1/2 + a"]
    assert numbers(symbols.c) == [HALF] * 3


def test_learning_rates_by_step() -> None:
    found = lookup("ac", a=(0, 1, 1), c=[(-2, Fraction(-5, 2), -2), (-1, -2, -1)])
    llr = lookup("ip-llr")
    assert all(found.exponents(3, t) == llr.exponents(3, t) for t in range(4))


def test_biases_may_differ_from_weights() -> None:
    found = lookup("ac", a=(0, 1, 1), c=-1, bias_a=0, bias_c=[(-2, -2, 0), (-1, -1, 0)])
    first, later = found.exponents(2, 0), found.exponents(2, 1)
    assert numbers(first.bias_a) == [0, 0, 0] and numbers(first.a) == [0, 1, 1]
    assert numbers(first.bias_c) == [-2, -2, 0] and numbers(later.bias_c) == [-1, -1, 0]
    assert numbers(later.c) == [-1, -1, -1]


def test_names_and_texts() -> None:
    assert lookup("IP_LLR", p=2) == lookup("ip-llr:2")
    assert lookup("ip-llr", p=2).text == "ip-llr(p=2)"
    assert lookup("sp").name == "standard"
    assert lookup("mup") == lookup("mup") != lookup("ntk")
    found = lookup("mup")
    assert lookup(found) is found
    assert lookup("ac", a=(0, 1, 1), c=-1).text == "ac(a=(0, 1, 1), c=-1)"


def test_where_biases_are_by_default() -> None:
    words = {name: family.biases for name, family in REGISTRY.items()}
    assert words["ip-llr"] == "first" and words["naive-ip"] == "all"
    assert set(words.values()) <= {"none", "first", "all"}


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: lookup("mupp"), UnknownName, "'mup'"),
        (lambda: lookup("mup", p=2), UnknownName, "no parameter of mup called 'p'"),
        (lambda: lookup("mup:2"), StudyError, "it takes none"),
        (lambda: lookup("ip-llr", q=2), UnknownName, "Known: p"),
        (lambda: lookup("ip-llr:2", p=2), StudyError, "given twice"),
        (lambda: lookup("ip-llr:"), StudyError, "leaves a parameter out"),
        (lambda: lookup("ip-llr", p=0), StudyError, "p is 0"),
        (lambda: lookup("ip-llr", p=None), StudyError, "p of ip-llr must be a number"),
        (lambda: lookup("ip-llr", p="2 +"), ScaleError, "not an exponent"),
        (lambda: lookup("ac"), StudyError, "needs its parameter 'a'"),
        (lambda: lookup("ac", a=(0, 1, 1), c=()), StudyError, "the table c is empty"),
        (lambda: lookup("ac", a=(0, 1, None), c=0), StudyError, "an entry of a must be a number"),
        (lambda: lookup("ac", a=(0, 1, 1), c=float("nan")), StudyError, "must be a number"),
        (lambda: lookup("ac", a=(0, 1), c=0).exponents(3), StudyError, "has 4 layers"),
        (lambda: lookup("ac", a=0, c=[(0, 0)]).exponents(2), StudyError, "the table c has 2"),
        (lambda: lookup("mup").exponents(0), StudyError, "depth must be a whole number from 1"),
        (lambda: lookup("mup").exponents(2, -1), StudyError, "step must be a whole number"),
        (lambda: lookup(3), StudyError, "named by a text"),
        (lambda: lookup(lookup("ip-llr"), p=2), StudyError, "has its parameters already"),
    ],
)
def test_bad_input(call: Any, error: type[TpcalcError], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_exponents_are_exact() -> None:
    assert lookup("ac", a=0.1, c=0).exponents(1).a[0] == as_ex(Fraction(1, 10))
