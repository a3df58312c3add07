"""Tables of exponents against those of the papers."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tpcalc.errors import ScaleError, StudyError, TpcalcError, UnknownName
from tpcalc.exponents import Ex, as_ex
from tpcalc.training.parameterization import with_rates
from tpcalc.training.parameterizations import REGISTRY, Exponents, lookup

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
def test_S0_3_constant_tables(
    name: str, a: tuple[Any], c: tuple[Any], depth: int, step: int
) -> None:
    found = lookup(name).exponents(depth, step)
    assert numbers(found.a) == spread(depth, *a)
    assert numbers(found.c) == spread(depth, *c)
    flat = [Fraction(0)] * (depth + 1)  # biases of NTK and muP are of order one in all layers
    biases = {"ntk": (flat, flat), "mup": (flat, spread(depth, -1, -1, 0))}
    expected = biases.get(name, (numbers(found.a), numbers(found.c)))
    assert (numbers(found.bias_a), numbers(found.bias_c)) == expected


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("p", [1, 2, 3, HALF * 3])
def test_S0_3_ip_llr_starts_with_gamma_and_goes_on_as_naive_ip(depth: int, p: Any) -> None:
    found = lookup("ip-llr", p=p)
    powers = sum(Fraction(p) ** k for k in range(depth))
    outer, inner = -HALF * (1 + powers), -1 - HALF * powers
    assert numbers(found.exponents(depth, 0).c) == spread(depth, outer, inner, outer)
    naive = lookup("naive-ip")
    assert found.exponents(depth, 0).a == naive.exponents(depth, 0).a
    for step in (1, 2, 9):
        assert found.exponents(depth, step) == naive.exponents(depth, step)


def test_with_one_hidden_layer_three_names_are_one() -> None:
    """But for the bias of the output, which muP leaves at order one."""
    for step in (0, 1):
        mup = lookup("mup").exponents(1, step)
        integrable = lookup("naive-ip").exponents(1, step)
        assert (mup.a, mup.c) == (integrable.a, integrable.c)
        assert (mup.bias_a[0], mup.bias_c[0]) == (integrable.bias_a[0], integrable.bias_c[0])
        for p in (1, 2, 5):
            assert integrable == lookup("ip-llr", p=p).exponents(1, step)


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
def test_S0_2_case42_abc_rows_become_ac_rows(name: str, table: dict[str, Any], depth: int) -> None:
    rows, found = lookup("abc", **table).exponents(depth), lookup(name).exponents(depth)
    assert (rows.a, rows.c) == (found.a, found.c)


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
    one, other = lookup("abc", a=a, b=b, c=c).exponents(depth), lookup("abc", **moved)
    # But for the units of decay and eps, which are those of what is trained.
    assert replace(one, stored=()) == replace(other.exponents(depth), stored=())


@pytest.mark.parametrize("depth", DEPTHS)
def test_S0_3_ip_has_the_scales_of_naive_ip_and_rates_of_its_own(depth: int) -> None:
    naive = lookup("naive-ip").exponents(depth)
    assert lookup("ip:-1,-2,-1").exponents(depth) == naive
    free = lookup("ip", c="c_1, c_h, c_out").exponents(depth, 4)
    assert free.a == naive.a and free.bias_a == naive.a
    assert [str(entry) for entry in free.c] == ["c_1", *["c_h"] * (depth - 1), "c_out"]
    llr = lookup("ip", c=[("-2", "-5/2", "-2"), (-1, -2, -1)])
    assert all(llr.exponents(3, t) == lookup("ip-llr").exponents(3, t) for t in range(3))


@pytest.mark.parametrize(
    ("depth", "c", "bias_c"),
    [
        (1, (-1, -1), (-1, 0)),
        (2, ("-3/2", -2, -1), ("-3/2", -1, 0)),
        (3, (-2, "-5/2", -2, -1), (-2, "-3/2", -1, 0)),
        (4, ("-5/2", -3, "-5/2", -2, -1), ("-5/2", -2, "-3/2", -1, 0)),
    ],
)
def test_S0_3_case25_ip_bias(depth: int, c: tuple[Any], bias_c: tuple[Any]) -> None:
    found, naive = lookup("ip-bias"), lookup("naive-ip").exponents(depth)
    first = found.exponents(depth, 0)
    assert first.a == naive.a and numbers(first.bias_a) == [0] * (depth + 1)
    assert numbers(first.c) == [Fraction(entry) for entry in c]
    assert numbers(first.bias_c) == [Fraction(entry) for entry in bias_c]
    for step in (1, 7):
        later = found.exponents(depth, step)
        assert (later.a, later.bias_a, later.c) == (first.a, first.bias_a, naive.c)
        assert numbers(later.bias_c) == [*[-1] * depth, 0]


@pytest.mark.parametrize(
    ("u", "depth", "mean"),
    [
        (1, 1, (0, 1)),
        (2, 3, (0, 2, 2, 2)),
        ("1/2, -1", 3, (0, HALF, HALF, -1)),
        ((1, -1), 1, (0, -1)),
        ((1, 2, 0.5), 3, (0, 1, 2, HALF)),
    ],
)
def test_S0_3_ip_non_centered_is_naive_ip_with_means(u: Any, depth: int, mean: tuple[Any]) -> None:
    for step in (0, 3):
        found = lookup("ip-non-centered", u=u).exponents(depth, step)
        naive = lookup("naive-ip").exponents(depth, step)
        assert found.mean == mean and naive.mean == ()
        assert (found.a, found.c) == (naive.a, naive.c)
        assert (found.bias_a, found.bias_c) == (naive.a, naive.c)
    assert lookup("ip-non-centered").exponents(2).mean == (0, 1, 1)


def test_rates_of_ones_own() -> None:
    base = lookup("ip-non-centered", u=3)
    free = with_rates(base, lambda layer, step: Ex.symbol(f"c_{layer}_{step}"))
    found = free.exponents(2, 4)
    assert [str(entry) for entry in found.c] == ["c_1_4", "c_2_4", "c_3_4"]
    plain = base.exponents(2, 4)
    assert (found.a, found.bias_a, found.bias_c) == (plain.a, plain.bias_a, plain.bias_c)
    assert found.mean == (0, 3, 3)
    both = with_rates(base, lambda layer, step: as_ex(layer), lambda layer, step: as_ex(-step))
    assert numbers(both.exponents(2, 5).c) == [1, 2, 3]
    assert numbers(both.exponents(2, 5).bias_c) == [-5, -5, -5]
    assert free != base and free != both and free == lookup(free)
    assert free.text == "ip-non-centered(u=3) with other learning rates"
    with pytest.raises(StudyError, match="depth is 0"):
        free.exponents(0)


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
        (lambda: lookup("ip-llr", p=0), StudyError, "p of ip-llr is 0"),
        (lambda: lookup("ip-llr", p=None), StudyError, "p of ip-llr must be a number"),
        (lambda: lookup("ip-llr", p="2 +"), ScaleError, "not an exponent"),
        (lambda: lookup("ac"), StudyError, "needs its parameter 'a'"),
        (lambda: lookup("ac", a=(0, 1, 1), c=()), StudyError, "the table c is empty"),
        (lambda: lookup("ac", a=(0, 1, None), c=0), StudyError, "an entry of a must be a number"),
        (lambda: lookup("ac", a=(0, 1, 1), c=float("nan")), StudyError, "must be a number"),
        (lambda: lookup("ac", a=(0, 1), c=0).exponents(3), StudyError, "has 4 layers"),
        (lambda: lookup("ac", a=0, c=[(0, 0)]).exponents(2), StudyError, "the table c has 2"),
        (lambda: lookup("mup").exponents(0), StudyError, "depth is 0; it must be at least 1"),
        (lambda: lookup("mup").exponents(2, -1), StudyError, "step is -1; it must be at least 0"),
        (lambda: lookup(3), StudyError, "named by a text"),
        (lambda: lookup("ip"), StudyError, "needs its parameter 'c'"),
        (lambda: lookup("ip:-1,-2").exponents(3), StudyError, "the table c has 2"),
        (lambda: lookup("ip-bias:1"), StudyError, "it takes none"),
        (lambda: lookup("ip-non-centered:0"), StudyError, "a mean of the initial weights is 0"),
        (lambda: lookup("ip-non-centered", u=()), StudyError, "the table u is empty"),
        (lambda: lookup("ip-non-centered:u"), StudyError, "an entry of u must be a number"),
        (lambda: lookup("ip-non-centered:1,2,3").exponents(2), StudyError, "the table u has 3"),
        (lambda: with_rates(lookup("mup"), "-1"), StudyError, "rate is '-1', not a function"),
        (lambda: with_rates(lookup("mup"), None), StudyError, "rate is None, not a function"),
        (
            lambda: with_rates(lookup("mup"), lambda layer, t: as_ex(0), 3),
            StudyError,
            "bias_rate is 3, not a function",
        ),
        (
            lambda: with_rates(lookup("mup"), lambda layer, t: None).exponents(1),
            StudyError,
            "rate of layer 1 at step 0 must be a number",
        ),
        (lambda: lookup(lookup("ip-llr"), p=2), StudyError, "has its parameters already"),
    ],
)
def test_bad_input(call: Any, error: type[TpcalcError], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_exponents_are_exact() -> None:
    assert lookup("ac", a=0.1, c=0).exponents(1).a[0] == as_ex(Fraction(1, 10))
