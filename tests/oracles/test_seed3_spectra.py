"""Spectra of Jacobians by S-transforms: the cases of the low-rank paper."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.special import erf

from tpcalc.catalog.activations import lookup
from tpcalc.errors import StudyError, UsageError
from tpcalc.functions import Expr
from tpcalc.signal.maps import edge_of_chaos
from tpcalc.signal.spectra import (
    finite_variance,
    jacobian,
    of_moments,
    padded_variance,
    slope_spectrum,
    weight_spectrum,
)

QUARTER = Fraction(1, 4)


def act(name: str) -> Expr:
    return lookup(name).fn.expr


def test_S3_A13_series_of_the_families() -> None:
    """s_1 and s_2 of the table, for a rank of which all is rational."""
    g = Fraction(2, 5)
    rows = {
        "gaussian": (-1 / g, 1 / g**2),
        "orthogonal": (1 - 1 / g, 1 / g**2 - 1 / g),
        "gaussian-gaussian": (-1 - 1 / g, 1 + 1 / g + 1 / g**2),
    }
    for family, expected in rows.items():
        assert weight_spectrum(family, g, 2).s == expected
    assert weight_spectrum("gaussian", Fraction(1), 1).s == (-1,)
    assert weight_spectrum("orthogonal", Fraction(1), 1).s == (0,)


def test_moments_and_series_are_inverse() -> None:
    catalan = tuple(map(Fraction, (1, 2, 5, 14, 42)))
    found = of_moments(catalan)
    assert found.moments == catalan
    assert found.s == weight_spectrum("gaussian", Fraction(1), 4).s


@pytest.mark.parametrize(
    ("family", "values"),
    [("gaussian", (20, 10, 5)), ("orthogonal", (15, 5, 0)), ("gaussian-gaussian", (25, 15, 10))],
)
def test_S3_A14_linear_networks(family: str, values: tuple[int, ...]) -> None:
    for rank, value in zip((QUARTER, 2 * QUARTER, 4 * QUARTER), values, strict=True):
        assert weight_spectrum(family, rank, 1).power(5).relative_variance == value


def test_S3_A15_A16_finite_width() -> None:
    assert finite_variance("gaussian", 1000, 250, 10) == pytest.approx(40.783973, abs=1e-6)
    assert finite_variance("gaussian", 1000, 250, 50) == pytest.approx(223.906526, abs=1e-5)
    assert finite_variance("orthogonal", 1000, 250, 10) == pytest.approx(30.412744, abs=1e-6)
    assert finite_variance("orthogonal", 500, 125, 5) == pytest.approx(15.181435, abs=1e-6)
    assert finite_variance("orthogonal", 500, 125, 1) == pytest.approx(3, abs=1e-9)


@pytest.mark.parametrize(
    ("rank", "gaussian", "orthogonal", "padded"),
    [(0.25, 17.3666, 13.3666, 16.4413), (0.5, 9.3666, 5.3666, 6.3915)],
)
def test_S3_A17_erf(rank: float, gaussian: float, orthogonal: float, padded: float) -> None:
    for family, value in (("gaussian", gaussian), ("orthogonal", orthogonal)):
        found = jacobian(act("erf"), 0.5, weight_spectrum(family, rank, 1), 4)
        assert found.relative_variance == pytest.approx(value, abs=5e-5)
    assert padded_variance(act("erf"), 0.5, rank, 4) == pytest.approx(padded, abs=5e-5)


def test_S3_A18_tanh() -> None:
    assert slope_spectrum(act("tanh"), 0.5).relative_variance == pytest.approx(0.299244, abs=1e-6)
    weights, biases = edge_of_chaos(act("tanh"), 0.5, rank=0.25)
    assert (weights, biases) == pytest.approx((6.751900, 0.152165), abs=2e-6)
    whole = jacobian(act("tanh"), 0.5, weight_spectrum("gaussian", 0.25, 1, weights), 3)
    assert whole.mean == pytest.approx(1, abs=1e-9)
    assert whole.relative_variance == pytest.approx(3 * 4.299244, abs=1e-5)


def test_S3_A20_third_moments() -> None:
    """1 + 1/gamma, and 29 and 45 for the third moments at a quarter of the rank, mean 1."""
    gaussian = weight_spectrum("gaussian", QUARTER, 2, variance=4)
    both = weight_spectrum("gaussian-gaussian", QUARTER, 2, variance=4)
    assert gaussian.moments == (1, 5, 29)
    assert both.moments[2] == 45


def test_networks_of_finite_width() -> None:
    """The relative variance of erf networks of width 400, with its bias of 1 / (gamma n)."""
    rng = np.random.default_rng(0)
    n, r, depth = 400, 200, 2
    weights, biases = edge_of_chaos(act("erf"), 0.5, rank=0.5)
    found = []
    for _ in range(6):
        x = rng.normal(size=n) * ((0.5 - 0.5 * biases) / (0.5 * weights)) ** 0.5
        whole = np.eye(n)
        for _ in range(depth):
            c = np.linalg.qr(rng.normal(size=(n, r)))[0]
            a = rng.normal(size=(r, n)) * (weights / n) ** 0.5
            h = c @ (a @ x + biases**0.5 * rng.normal(size=r))
            whole = (2 / np.pi**0.5 * np.exp(-(h**2)))[:, None] * (c @ (a @ whole))
            x = erf(h)
        values = np.linalg.svd(whole, compute_uv=False) ** 2
        found.append(float((values**2).mean() / values.mean() ** 2 - 1))
    theory = jacobian(act("erf"), 0.5, weight_spectrum("gaussian", 0.5, 1), depth)
    spread = float(np.std(found, ddof=1) / 6**0.5)
    assert abs(np.mean(found) - theory.relative_variance) < 5 * spread + 4 * depth / (0.5 * n)


def test_bad_spectra_are_refused() -> None:
    for family, rank in (("haar", 0.5), ("gaussian", 0.0), ("gaussian", 1.5)):
        with pytest.raises(StudyError):
            weight_spectrum(family, rank)
    with pytest.raises(UsageError, match="two or more"):
        of_moments([1.0])
    with pytest.raises(StudyError, match="rank"):
        finite_variance("gaussian", 10, 11, 2)
