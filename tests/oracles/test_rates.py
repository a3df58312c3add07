"""Learning-rate exponents against the formulas of Hajjar, Chizat, Giraud (spec 0, section 3)."""

from __future__ import annotations

from fractions import Fraction

import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st

from tpcalc.errors import ScaleError
from tpcalc.exponents import Ex, as_ex, parse_ex
from tpcalc.networks.architectures.mlp import MLP
from tpcalc.questions.check import check
from tpcalc.questions.solve import solve
from tpcalc.results import Solution
from tpcalc.training.parameterization import with_rates
from tpcalc.training.parameterizations import lookup

HALF = Fraction(1, 2)
P = Ex.symbol("p")


def powers(texts: tuple[str, ...]) -> list[Ex]:
    return [parse_ex(text) for text in texts]


def gamma(depth: int, p: Ex) -> list[Ex]:
    """Definition 3.2."""
    total = sum((p**k for k in range(depth)), as_ex(0))
    ends, between = -HALF * (1 + total), -1 - HALF * total
    return [ends, *[between] * (depth - 1), ends]


def required(a: list[Ex], p: Ex) -> list[Ex]:
    """The c_l with e_l = 0 in Lemma F.4, for a_1, ..., a_{L+1}."""
    depth, last = len(a) - 1, a[-1]
    w = [-a[0], *(HALF - power for power in a[1:-1])]
    total = sum((p ** (depth - k) * w[k] for k in range(depth)), as_ex(0))
    first = -(last + 2 * a[0]) + total - w[0]
    inner = [-(last + 2 * a[k] - 1) + total - w[k] for k in range(1, depth)]
    return [first, *inner, -(2 * last - 1) + total]


def later(a: list[Ex]) -> list[Ex]:
    """The powers of the steps after, inside the integrable range with a_{L+1} >= 1."""
    return [-2 * a[0] - 1, *(-2 * power for power in a[1:-1]), 1 - 2 * a[-1]]


def positive_from_one(line: str) -> bool:
    """Whether a condition g > 0 on p holds for all p >= 1: g(1) > 0 and no root beyond."""
    text, sign, zero = line.rpartition(" > ")
    assert (sign, zero) == (" > ", "0")
    g = sympy.Poly(sympy.sympify(text), sympy.Symbol("p"))
    return g.eval(1) > 0 and g.count_roots(1, sympy.oo) == 0


@pytest.mark.parametrize("depth", [3, 4, 5])
def test_S0_15_definition_3_2(depth: int) -> None:
    found = solve(MLP(depth, "relu^2"), "naive-ip", symbolic=("p",), verify=False)
    assert powers(found.steps[0].c) == gamma(depth, P)
    for step in (1, 2):
        assert found.steps[step].c == ("-1", *["-2"] * (depth - 1), "-1")
    assert not any(" = " in line for line in found.region)
    assert all(positive_from_one(line) for line in found.region)
    # The leading-order derivation decides one thing: the output vanishes at the start.
    assert found.region == (f"{sum((P**k for k in range(depth)), as_ex(0))} > 0",)


def test_a_condition_that_fails_beyond_one_is_seen() -> None:
    assert not positive_from_one("3 - p > 0")
    assert not positive_from_one("-2 + p > 0")
    assert positive_from_one("-1/2 + p > 0")


@pytest.mark.parametrize("power", ["1", "3/2", "2", "3"])
def test_S0_15_case1_2_gamma_in_numbers(power: str) -> None:
    """S0 cases 1 and 2, and powers between."""
    found = solve(MLP(3, f"relu^{power}"), "naive-ip", verify=False)
    assert powers(found.steps[0].c) == gamma(3, as_ex(Fraction(power)))
    assert found.region == ()


@pytest.mark.parametrize("depth", [2, 3, 4])
def test_S0_15_16_lemma_f_4_for_all_powers(depth: int) -> None:
    names = [f"a{layer}" for layer in range(1, depth + 2)]
    a = [Ex.symbol(name) for name in names]
    table = f"ac:{','.join(names)};0"
    found = solve(MLP(depth, "relu"), table, symbolic=("p",), steps=2, verify=False)
    assert powers(found.steps[0].c) == required(a, P)
    assert powers(found.steps[1].c) == later(a)
    assert not any(" = " in line for line in found.region)
    assert sorted(dict(found.point)) == [*names, "p"]


@pytest.fixture(scope="module")
def general() -> Solution:
    return solve(MLP(3, "relu"), "ac:a1,a2,a3,a4;0", symbolic=("p",), steps=2, verify=False)


small = st.fractions(Fraction(1, 20), 3, max_denominator=20)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(small, small, small, small, small)
def test_the_region_holds_the_integrable_range(
    general: Solution, a1: Fraction, a2: Fraction, a3: Fraction, a4: Fraction, p: Fraction
) -> None:
    point = {"a1": a1, "a2": HALF + a2, "a3": HALF + a3, "a4": 1 + a4, "p": 1 + p}
    for line in general.region:
        assert parse_ex(line.removesuffix(" > 0")).at(point) > 0


@pytest.mark.parametrize(
    ("a", "act", "expected"),
    [
        ("0,.75,.6,.9", "relu", "-1.25,-1.5,-1.35,-1.15"),
        ("0,.75,.6,.9", "relu^2", "-2.1,-2.35,-2.2,-2"),
        ("0,1,.5,.75,1", "relu", "-1.75,-2.25,-1.75,-2,-1.75"),
    ],
)
def test_S0_15_case5_6_required_rates(a: str, act: str, expected: str) -> None:
    """S0 cases 5 and 6: from symbols, as outputs would grow at some of these rates."""
    values = {f"a{layer}": Fraction(power) for layer, power in enumerate(a.split(","))}
    table = f"ac:{','.join(values)};0"
    found = solve(MLP(a.count(","), act), table, steps=1, verify=False, at=values)
    required = [Fraction(c) for c in expected.split(",")]
    assert [power.at(values) for power in powers(found.steps[0].c)] == required
    bounded = solve(MLP(a.count(","), act), f"ac:{a};0", steps=1, verify=False)
    lower = [power.at({}) for power in powers(bounded.steps[0].c)]
    # Below a_(L+1) = 1 the last hidden layer makes the output grow like n^(1 - a_(L+1)).
    last = values[f"a{len(values) - 1}"]
    binds = [note for note in bounded.notes if "the output would grow like" in note]
    assert bool(binds) is (last < 1)
    assert (lower == required) is (last >= 1)
    assert all(f"would grow like n^({1 - last})" in note for note in binds)


@pytest.mark.parametrize("act", ["relu", "relu^2", "tanh", "gelu"])
def test_S0_15_case7_mup_and_ntk(act: str) -> None:
    """S0 case 7."""
    found = solve(MLP(3, act), "mup", verify=False)
    assert {step.c for step in found.steps} == {("-1", "-1", "-1", "-1")}
    free = solve(MLP(3, act), "ac:0,1/2,1/2,b;0", at={"b": HALF}, steps=1, verify=False)
    assert [c.at({"b": HALF}) for c in powers(free.steps[0].c)] == [-HALF, -HALF, -HALF, 0]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "act"), [("ntk", "tanh"), ("standard", "relu")])
def test_bounded_outputs_give_the_rates_of_the_ntk(name: str, act: str) -> None:
    """With a readout of size n^(-1/2), rates of order one are the largest: Yang and Hu, Figure 2.

    Hidden layers then contribute n^(-1/2); what binds is the output.
    """
    found = solve(MLP(3, act), name, steps=2, verify=False)
    assert {step.c for step in found.steps} == {("0", "0", "0", "0")}
    binds = [note for note in found.notes if "its update contributes n^(-1/2)" in note]
    assert [note[:7] for note in binds] == ["layer 1", "layer 2", "layer 3"]
    assert all("-1/2, where it would contribute order one, the output would" in n for n in binds)


@pytest.mark.parametrize("act", ["relu", "tanh"])
@pytest.mark.parametrize("name", ["standard", "ntk", "naive-ip"])
def test_multipliers_and_rates_of_any_table_are_those_of_mup(name: str, act: str) -> None:
    """Whatever powers are put in: outputs bounded, features moving at most is muP."""
    found = solve(MLP(3, act), name, multipliers=True, steps=2, verify=False)
    assert dict(found.closed) == {"a_1": "0", "a_2": "1/2", "a_3": "1/2", "a_4": "1"}
    assert {step.c for step in found.steps} == {("-1", "-1", "-1", "-1")}


TABLES = ("standard", "ntk", "mup", "ip", "naive-ip", "ac:0,3/5,3/4;0", "ac:0,1,7/10;0")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "act", "depth"),
    [
        (name, act, 1 + (i + k) % 3)
        for i, name in enumerate(TABLES)
        for k, act in enumerate(("relu", "tanh", "gelu", "relu^2"))
    ],
)
def test_what_is_solved_for_is_stable(name: str, act: str, depth: int) -> None:
    if name == "ip":
        name = "ip:" + ",".join(["-1", "-2", "-1"])
    net = MLP(depth, act)
    try:
        found = solve(net, name, steps=2, verify=False)
    except ScaleError as error:  # no update is known that contributes at order one
        assert "is known to make the contribution of its update" in str(error)
        return
    rates = [powers(step.c) for step in found.steps]
    chosen = with_rates(lookup(name), lambda layer, step: rates[min(step, 1)][layer - 1])
    verdict = check(net, chosen, steps=2, verify=False)
    assert verdict.verdict in ("kernel", "feature-learning"), verdict.facts


@pytest.mark.parametrize("depth", [3, 4, 5])
def test_S0_31_case25_biases_of_order_one(depth: int) -> None:
    """S0 case 25, equations (5.4) and (5.5), whatever the power of the activation."""
    found = solve(MLP(depth, "relu", "all"), "ip-bias", symbolic=("p",), verify=False)
    assert found.region == ()
    half = [Fraction(depth - layer + 4, -2) for layer in range(2, depth + 1)]
    assert powers(found.steps[0].c) == [as_ex(c) for c in (Fraction(depth + 1, -2), *half, -1)]
    own = [Fraction(depth - layer + 2, -2) for layer in range(1, depth + 1)]
    assert powers(found.steps[0].bias_c) == [as_ex(c) for c in (*own, 0)]
    for step in (1, 2):
        assert found.steps[step].c == ("-1", *["-2"] * (depth - 1), "-1")
        assert found.steps[step].bias_c == (*["-1"] * depth, "0")


def formulas(found: Solution) -> dict[str, sympy.Expr]:
    symbols = {"L": sympy.Symbol("L", integer=True, positive=True)}
    return {name: sympy.sympify(text, locals=symbols) for name, text in found.closed}


def as_sympy(power: Ex) -> sympy.Expr:
    return sympy.sympify(str(power))


def test_depth_and_power_as_symbols() -> None:
    found = solve(MLP(3, "relu"), "naive-ip", symbolic=("p", "L"))
    depth, p = sympy.Symbol("L", integer=True, positive=True), sympy.Symbol("p")
    closed = formulas(found)
    first = -(p**depth + p - 2) / (2 * (p - 1))
    assert sympy.simplify(closed["c_1(0)"] - first) == 0
    assert sympy.simplify(closed["c_{L+1}(0)"] - first) == 0
    assert sympy.simplify(closed["c_l(0)"] - (first - sympy.Rational(1, 2))) == 0
    assert closed["c_1(0), p -> 1"] == -(depth + 1) / 2
    assert closed["c_l(0), p -> 1"] == -(depth + 2) / 2
    assert dict(found.closed)["c_l(2)"] == "-2"
    assert found.steps == ()
    assert found.region == ("p > 0",)


def test_depth_as_a_symbol_at_a_depth_that_is_not_derived() -> None:
    closed = formulas(solve(MLP(1, "relu^2"), "naive-ip", symbolic=("L",), steps=1))
    symbol = sympy.Symbol("L", integer=True, positive=True)
    for depth in (6, 7, 9):
        first, between, *_, last = gamma(depth, as_ex(2))
        expected = {"c_1(0)": first, "c_l(0)": between, "c_{L+1}(0)": last}
        for name, power in expected.items():
            assert closed[name].subs(symbol, depth) == as_sympy(power)


@pytest.mark.parametrize("act", ["relu", "relu^2", "relu^3"])
def test_depth_as_a_symbol_for_all_powers(act: str) -> None:
    found = solve(MLP(3, act), "ac:a1,a,b;0", symbolic=("L",))
    closed = formulas(found)
    symbol = sympy.Symbol("L", integer=True, positive=True)
    p = as_ex({"relu": 1, "relu^2": 2, "relu^3": 3}[act])
    a1, a, b = (Ex.symbol(name) for name in ("a1", "a", "b"))
    for depth in (2, 5, 6):
        first, inner, *_, last = required([a1, *[a] * (depth - 1), b], p)
        expected = {"c_1(0)": first, "c_l(0)": inner, "c_{L+1}(0)": last}
        for name, power in expected.items():
            assert sympy.expand(closed[name].subs(symbol, depth) - as_sympy(power)) == 0
    assert closed["c_1(1)"] == as_sympy(-2 * a1 - 1)
    # b > 1/2 for the formulas of step 0; b > 1 for those of step 1.
    assert {"a1 > 0", "-1/2 + a > 0", "-1/2 + b > 0", "-1 + b > 0"} == set(found.region)
