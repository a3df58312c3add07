"""Acceptance cases of spec 0 (Hajjar, Chizat, Giraud) by the closed forms; no program is run."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from agree import agree
from oracles.seed0_data import K00, K01, XI0, XI1

from tpcalc.results import Method
from tpcalc.theorems.closed import ClosedForm
from tpcalc.theorems.integrable.forms.bias import bias_start, bias_step
from tpcalc.theorems.integrable.forms.exponents import (
    first_pass,
    first_rates,
    first_updates,
    growth,
    later_rates,
    naive_rates,
    relative_displacements,
)
from tpcalc.theorems.integrable.forms.known import lazy_step, mup_step, tangent_kernel
from tpcalc.theorems.integrable.forms.llr import LLRStep, llr_step
from tpcalc.theorems.integrable.forms.moments import stable_std, tilde_variances
from tpcalc.theorems.integrable.forms.naive import naive_degenerate
from tpcalc.theorems.integrable.forms.non_centered import non_centered_start, non_centered_step

SMALL0, SMALL1 = (0.3, 0.1, 0.0, 0.0), (0.2, -0.1, 0.0, 0.0)


def same(forms: Sequence[ClosedForm], printed: Sequence[float], rounding: float) -> None:
    """Numbers as printed, known to more digits than that, and not by sampling."""
    for form, value in zip(forms, printed, strict=True):
        agree(form.value, value, rounding=rounding)
        assert form.value.method is not Method.PARTICLES
        assert form.value.stderr <= 1e-12 * abs(value)


def texts(exponents: Sequence[object]) -> list[str]:
    return [str(exponent) for exponent in exponents]


def test_S0_15_case1_2_formula() -> None:
    """gamma(p) is what makes the first update of IP of order one."""
    assert texts(first_rates((0, 1, 1, 1), 1)) == ["-2", "-5/2", "-5/2", "-2"]
    assert texts(first_rates((0, 1, 1, 1), 2)) == ["-4", "-9/2", "-9/2", "-4"]


@pytest.mark.parametrize(
    ("a", "p", "h", "f", "dh"),
    [
        ((0, 1, 1, 1, 1), 1, "0 -1/2 -1 -3/2", "-2", "-5/2 -2 -3/2 -1"),
        ((0, 1, 1, 1), 2, "0 -1/2 -3/2", "-7/2", "-4 -7/2 -5/2"),
    ],
)
def test_S0_13_14_case3_4_formula(a: Sequence[int], p: int, h: str, f: str, dh: str) -> None:
    found = first_pass(a, p)
    assert (texts(found.h), str(found.f), texts(found.dh)) == (h.split(), f, dh.split())


@pytest.mark.parametrize(
    ("a", "p", "rates"),
    [
        ((0, 0.75, 0.6, 0.9), 1, "-5/4 -3/2 -27/20 -23/20"),
        ((0, 0.75, 0.6, 0.9), 2, "-21/10 -47/20 -11/5 -2"),
        ((0, 1, 0.5, 0.75, 1), 1, "-7/4 -9/4 -7/4 -2 -7/4"),  # case 6
        ((0, 0.5, 0.5, 1), 1, "-1 -1 -1 -1"),  # case 7: muP
        ((0, 0.5, 0.5, 0.5), 1, "-1/2 -1/2 -1/2 0"),  # case 7: NTK
    ],
)
def test_S0_15_case5_6_7_formula(a: Sequence[float], p: int, rates: str) -> None:
    needed = first_rates(a, p)
    assert texts(needed) == rates.split()
    assert texts(first_updates(a, needed, p)) == ["0"] * len(a)


def test_S0_16_case8_9_formula() -> None:
    assert texts(later_rates((0, 1, 1, 1))) == ["-1", "-2", "-2", "-1"]
    assert texts(growth(3)) == ["1", "1/2", "1/2", "1"]


def test_S0_17_case10_11_formula() -> None:
    three, four = naive_rates(3), naive_rates(4)
    assert (texts(three.updates), str(three.output)) == (["-1", "-1/2", "-1"], "-2")
    assert (str(three.f), str(four.f)) == ("-1", "-2")
    assert texts(four.updates) == ["-3/2", "-1", "-3/2", "-2"]


def test_S0_27_case12_formula() -> None:
    """The hidden weights move by n^(-1/2) of their size in muP, and by all of it in IP-LLR."""
    mup = relative_displacements((0, 0.5, 0.5, 1), (-1, -1, -1, -1))
    llr = relative_displacements((0, 1, 1, 1), (-2, -2.5, -2.5, -2))
    assert (texts(mup)[1:3], texts(llr)[1:3]) == (["-1/2", "-1/2"], ["0", "0"])


def test_S0_33_case20_formula() -> None:
    """Linear: f_1 = -eta chi_0 k for L = 2 and exactly 0 for L = 3."""
    agree(llr_step("linear", 2, XI0, XI1, eta=1).f.value, K01)
    assert str(llr_step("linear", 3, XI0, XI1, eta=1).f.value) == "0 (exact)"


@pytest.mark.parametrize(
    ("depth", "lambdas", "output"),
    [
        (2, (1.65783, 2.46105), 28.7551),
        (3, (1.27108, 1.33425, 1.40056), 17.3412),
        (4, (1.00856, 0.74860, 0.55565, 0.41243), 5.51342),
    ],
)
def test_S0_22_case26_formula(depth: int, lambdas: Sequence[float], output: float) -> None:
    found = llr_step("relu", depth, XI0, XI1, eta=10)
    same(found.lambdas, lambdas, 5e-6)
    same([found.f], [output], 5e-5)


def test_S0_22_case27_formula() -> None:
    found = llr_step("relu", 4, XI0, XI1, eta=10)
    same(found.rms, (2.7849, 3.5658, 3.7430, 3.9290), 5e-5)


@pytest.mark.parametrize(("depth", "eta", "output"), [(2, 2.0, 0.74677), (3, 4.0, 0.87351)])
def test_S0_22_case28_29_formula(depth: int, eta: float, output: float) -> None:
    """f_1 of the runs on three inputs; their later steps have no closed form for ReLU."""
    found = llr_step("relu", depth, XI0, (-0.2, 0.4, 0.3, 0.5), eta=eta)
    same([found.f], [output], 5e-6)


def squares(depth: int, eta: float) -> LLRStep:
    return llr_step("relu^2", depth, SMALL0, SMALL1, eta=eta)


def test_S0_22_case30_formula() -> None:
    found = squares(2, 0.1)
    same(found.lambdas[:1], [1.96971], 5e-6)
    same([found.lambdas[1], found.f], [0.383425, 0.150713], 5e-7)
    same(found.rms[1:], [0.37528], 5e-6)


def test_S0_22_case31_formula() -> None:
    found = squares(3, 0.01)
    same(found.lambdas[:1], [1.70869], 5e-6)
    same(found.lambdas[1:2], [0.0285151], 5e-8)
    same(found.lambdas[2:], [5.956e-6], 5e-10)
    same([found.f], [7.007e-7], 5e-11)


def test_S0_26_case32_formula() -> None:
    found = mup_step("relu", 2, XI0, XI1, eta=1.5)
    same([found.f, found.f_without_dot], [1.12019, 0.93499], 5e-6)
    same(found.second_moments[1:], [2.46993], 5e-6)


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
def test_S0_26_case21_33_formula(depth: int) -> None:
    """muP linear: f_1 = -(L + 1) eta chi_0 k."""
    agree(mup_step("linear", depth, XI0, XI1, eta=1).f.value, (depth + 1) * K01)


def test_S0_29_case34_formula() -> None:
    found = tangent_kernel("relu", 3, XI0, XI1)
    same([found.kernel], [0.420084], 5e-7)
    assert float(found.last_layer) < 0.5 * 0.420084
    agree(lazy_step("relu", 3, XI0, XI1, eta=1).change.value, found.kernel.value)


@pytest.mark.parametrize("depth", [3, 4])
def test_S0_18_case35_formula(depth: int) -> None:
    found = naive_degenerate("sigmoid", depth, eta=2)
    same([found.coefficient], [0.125], 0.0)
    same([found.f], [0.5311], 5e-5)


def test_S0_30_case36_formula() -> None:
    start = non_centered_start("relu", 5, XI0)
    same((*start.constants, start.f), [0.52624] * 5, 5e-6)
    chi = float(start.f) - 2
    found = non_centered_step("relu", 5, XI0, XI1, eta=0.5, chi=chi)
    same(found.means, (1.51007, 2.09564, 2.90828, 4.03604), 5e-6)
    same([found.spread, found.f], (1.12776, 6.72876), 5e-6)
    same(found.entries, (0.38778, 0.38778), 5e-6)


def test_S0_31_case37_formula() -> None:
    found = bias_step("relu", 3, XI0, XI1, eta=1.5, chi=0.37 - 1, output_bias=0.37)
    same(found.kappas, (0.600579, 0.539876, 0.577424), 5e-7)
    same([found.f], [2.36390], 5e-6)
    same(bias_start("relu", 3).dx, (0.25, 0.5, 1.0), 0.0)


def test_S0_12_32_case39_formula() -> None:
    sizes = tilde_variances("relu", 3, K00)
    same(sizes.h, (1.74, 0.87, 0.435), 0.0)
    same(sizes.dh[:1], [1 / 8], 0.0)


@pytest.mark.parametrize(("act", "p", "depth"), [("relu", 1, 4), ("relu^2", 2, 3)])
def test_S0_22_case40_formula(act: str, p: int, depth: int) -> None:
    """f_1 is lambda_1^(p^(L-1)) up to a factor that does not depend on the input."""
    one, two = (llr_step(act, depth, SMALL0, xi, eta=0.3) for xi in (SMALL1, (0.1, 0.2, -0.1, 0.0)))
    ratio = (float(one.lambdas[0]) / float(two.lambdas[0])) ** p ** (depth - 1)
    assert float(one.f) / float(two.f) == pytest.approx(ratio, rel=1e-11)


@pytest.mark.parametrize("act", ["relu", "relu^2"])
def test_S0_22_case41_formula(act: str) -> None:
    """The sign of chi_0 is that of -f_1; neither the lambda nor the nu feel it."""
    one, two = (llr_step(act, 3, SMALL0, SMALL1, eta=0.3, chi=chi) for chi in (-1, 1))
    assert float(one.f) == -float(two.f) > 0
    assert [float(x) for x in (*one.lambdas, *one.nus)] == [
        float(x) for x in (*two.lambdas, *two.nus)
    ]


@pytest.mark.parametrize(
    ("depth", "eta", "values"),
    [(3, 10.0, (1.36429, 1.29970)), (4, 4.0, (0.0482089, 0.162374, 0.546900))],
)
def test_S0_22_case44_formula(depth: int, eta: float, values: Sequence[float]) -> None:
    same(llr_step("relu", depth, XI0, XI1, eta=eta).nus, values, 5e-6)


def test_S0_22_case44_squares_formula() -> None:
    same(squares(2, 0.1).nus, [1.53030], 5e-6)


def test_S0_32_table_1_formula() -> None:
    """Standard deviations that keep the first pass at one size."""
    same([stable_std(act) for act in ("gelu", "elu", "tanh")], (2.0, 1.0, 1.0), 0.0)
    same([stable_std("relu")], [2**0.5], 0.0)
