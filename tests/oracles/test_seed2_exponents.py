"""Exponents in the number of blocks of matrices that are correlated along the depth."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import tpcalc as tp
from tpcalc.program.along import along_of

RES1 = {"nonlin": "pre"}
RES3 = {"nonlin": "between", "layers": 2}


def check(alpha: object, hurst: object = None, act: str = "relu", **shape: object) -> object:
    return tp.check(tp.ResNet("L", act, alpha=alpha, hurst=hurst, **shape), "mup")


@pytest.mark.parametrize(
    ("alpha", "expected"), [("1/4", "unstable"), ("1/2", "stationary"), ("1", "identity")]
)
@pytest.mark.parametrize("hurst", [None, "1/2"])
def test_S2_7_9_A8_independent_matrices(alpha: str, expected: str, hurst: str | None) -> None:
    found = check(alpha, hurst, **RES3)
    assert (found.outputs, found.gradients) == (expected, expected)


@pytest.mark.parametrize(
    ("hurst", "alpha", "expected"),
    [
        ("0.2", "0.5", "stationary"),
        ("0.2", "0.4", "unstable"),
        ("0.8", "0.8", "stationary"),
        ("0.8", "0.6", "unstable"),
        ("0.8", "1", "identity"),
        ("0.5", "0.5", "stationary"),
    ],
)
def test_S2_18_A15_outputs_of_res_3(hurst: str, alpha: str, expected: str) -> None:
    assert check(alpha, hurst, **RES3).outputs == expected


@pytest.mark.parametrize(
    ("hurst", "critical"), [("0.6", "0.5"), ("0.8", "0.6"), ("0.9", "0.8"), ("0.95", "0.9")]
)
def test_S2_19_A16_gradients_of_res_3(hurst: str, critical: str) -> None:
    at, step = Fraction(critical), Fraction(1, 100)
    classes = [check(at + k * step, hurst, **RES3).gradients for k in (-1, 0, 1)]
    assert classes == ["unstable", "stationary", "identity"]


@pytest.mark.parametrize(
    ("alpha", "expected"), [("0.2", "unstable"), ("0.25", "stationary"), ("0.3", "identity")]
)
def test_S2_19_A24_res_1_below_a_quarter(alpha: str, expected: str) -> None:
    found = check(alpha, "0.1", **RES1)
    assert (found.outputs, found.status) == (expected, "derived")
    assert any("derived, not proved" in note for note in found.notes)


@pytest.mark.parametrize("hurst", ["0.1", "0.3", "0.5", "0.6", "0.9", "1"])
def test_S2_19_critical_exponents_of_res_1_and_res_3(hurst: str) -> None:
    h, half = Fraction(hurst), Fraction(1, 2)
    for shape, critical in ((RES1, max(h, half / 2)), (RES3, max(h, half))):
        assert check(critical, hurst, **shape).outputs == "stationary"
        assert check(critical - Fraction(1, 50), hurst, **shape).outputs == "unstable"
        assert check(critical + Fraction(1, 50), hurst, **shape).outputs == "identity"


@pytest.mark.parametrize("along", ["rbf(1/10)", "rbf_increments(1/10)"])
def test_S2_15_smooth_matrices_have_the_critical_exponent_1(along: str) -> None:
    for alpha, expected in (("1/2", "unstable"), ("1", "stationary"), ("2", "identity")):
        found = check(alpha, along=along, **RES3)
        assert (found.outputs, found.gradients, found.status) == (expected, expected, "proved")


def test_S2_19_side_terms_of_gradients_do_not_commute_with_the_width() -> None:
    found = check("0.8", "0.8", **RES3)
    rows = {(row.name, row.part): str(row.L) for row in found.rows}
    assert rows["dx[0]", "noise"] == "-1/5"  # max(1/2, 2 H - 1) - beta
    assert rows["dx[0]", "noise of size n^(-1/2)"] == "0"  # H - beta
    assert any("do not commute" in note for note in found.notes)
    assert not any("n^(-1/2)" in row.part for row in check("0.6", "0.4", **RES3).rows)
    linear = check("0.8", "0.8", "identity", **RES3)  # no pairing of a matrix and its transpose
    assert not any("n^(-1/2)" in row.part for row in linear.rows)


def test_S2_18_phase_diagram_of_hurst_and_alpha() -> None:
    net = tp.ResNet("L", "relu", alpha="alpha", hurst="hurst", **RES3)
    box = {
        "hurst": (Fraction(1, 20), Fraction(97, 100)),
        "alpha": (Fraction(1, 5), Fraction(13, 10)),
    }
    diagram = tp.phases(net, "mup", box)
    assert diagram.complete
    for cell in diagram.cells:
        at = {name: Fraction(value) for name, value in cell.sample}
        gap = at["alpha"] - max(at["hurst"], Fraction(1, 2))
        expected = "unstable" if gap < 0 else "stationary" if gap == 0 else "identity"
        assert (cell.verdict, f"outputs {expected}" in cell.fact) == (expected, True)
        slow = at["alpha"] - max(2 * at["hurst"] - 1, Fraction(1, 2))
        expected = "unstable" if slow < 0 else "stationary" if slow == 0 else "identity"
        assert f"gradients {expected}" in cell.fact


def powers(net: tp.ResNet) -> dict[tuple[str, str], tuple[str, str]]:
    found = tp.check(net, "mup").critical
    return {(one.of, one.width): (str(one.alpha), one.status) for one in found}


@pytest.mark.parametrize("alpha", ["1/10", "4/5", "3"])
def test_S2_19_critical_powers_are_told_at_any_power(alpha: str) -> None:
    found = powers(tp.ResNet("L", "relu", alpha=alpha, hurst="4/5", **RES3))
    assert found == {
        ("outputs", "oo"): ("4/5", "proved"),
        ("gradients", "oo"): ("3/5", "proved"),
        ("gradients", "n"): ("4/5", "derived"),
    }
    rough = powers(tp.ResNet("L", "relu", alpha=alpha, hurst="1/5", **RES3))
    assert set(rough.values()) == {("1/2", "derived")}
    smooth = powers(tp.ResNet("L", "relu", alpha=alpha, along="rbf(1/10)", **RES3))
    assert set(smooth.values()) == {("1", "proved")}


@pytest.mark.parametrize(
    ("act", "hurst", "outputs", "gradients"),
    [
        ("relu", "1/10", "1/4", "1/3"),
        ("relu", "3/10", "3/10", "1/3"),
        ("relu", "2/5", "2/5", "2/5"),
        ("tanh", "1/10", "1/4", "1/4"),
        ("identity", "3/10", "3/10", "3/10"),
    ],
)
def test_S2_19_slopes_that_jump_have_a_power_of_their_own(
    act: str, hurst: str, outputs: str, gradients: str
) -> None:
    found = powers(tp.ResNet("L", act, alpha="1/2", hurst=hurst, **RES1))
    assert found == {
        ("outputs", "oo"): (outputs, "derived"),
        ("gradients", "oo"): (gradients, "derived"),
    }


def test_S2_19_what_slopes_that_jump_add() -> None:
    """Beside L^(2H - 2a) / 2 gradients of relu move by -L^(1 - 3a) sum rho(k) k^H / (pi sqrt 2)."""
    depth, hurst, alpha = 2000, 0.1, 0.7
    net = tp.ResNet("L", "relu", alpha="7/10", hurst="1/10", **RES1)
    lags = np.arange(1, 10**6)
    law = along_of("fgn(1/10)").autocovariance(10**6)[1:]
    extra = -(law * lags**hurst).sum() / (np.pi * 2**0.5) * depth ** (1 - 3 * alpha)
    found = tp.limit(net, depths=[depth]).at("Dp^2", depth).value
    assert found - depth ** (2 * hurst - 2 * alpha) / 2 == pytest.approx(extra, rel=0.005)


def test_S2_1_symbols_stay_in_the_answer() -> None:
    net = tp.ResNet("L", "relu", alpha="alpha", hurst="H", **RES3)
    found = tp.check(net, "mup", at={"alpha": 0.7, "H": 0.8})
    assert str(found.rows[0].L) == "H - alpha" and str(found.rows[1].L) == "-1 + 2*H - alpha"
