"""Spectra of Jacobians by S-transforms: the cases of the low-rank paper."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.special import erf

from tests.second_ways import density_moments
from tpcalc.activations.entries import lookup
from tpcalc.errors import EvaluationError, StudyError, UsageError
from tpcalc.functions import Expr
from tpcalc.meanfield.maps.layer_map import LayerMap, edge_of_chaos
from tpcalc.meanfield.spectra.finite import finite_moments
from tpcalc.meanfield.spectra.laws import WeightLaw
from tpcalc.meanfield.spectra.singular_values import (
    PADDED,
    active_share,
    singular_values,
    slope_variance,
)
from tpcalc.meanfield.spectra.spectrum import (
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


def test_S3_11_12_A13_series_of_the_families() -> None:
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


def test_S3_11_12_A13_third_order() -> None:
    """The coefficients of the closed forms, to third order in z, by long division."""
    g = Fraction(2, 5)
    forms = {
        "gaussian": ((1,), (1, 1 / g)),
        "orthogonal": ((1, 1), (1, 1 / g)),
        "gaussian-gaussian": ((1,), (1, 1 + 1 / g, 1 / g)),
    }
    for family, (over, under) in forms.items():
        found: list[Fraction] = []
        for k in range(4):
            known = sum(under[i] * found[k - i] for i in range(1, min(k + 1, len(under))))
            found.append(Fraction(over[k] if k < len(over) else 0) - known)
        assert list(weight_spectrum(family, g, 3).s) == found[1:]


def test_moments_and_series_are_inverse() -> None:
    catalan = tuple(map(Fraction, (1, 2, 5, 14, 42)))
    found = of_moments(catalan)
    assert found.moments == catalan
    assert found.s == weight_spectrum("gaussian", Fraction(1), 4).s


@pytest.mark.parametrize(
    ("family", "values"),
    [("gaussian", (20, 10, 5)), ("orthogonal", (15, 5, 0)), ("gaussian-gaussian", (25, 15, 10))],
)
def test_S3_13_A14_linear_networks(family: str, values: tuple[int, ...]) -> None:
    for rank, value in zip((QUARTER, 2 * QUARTER, 4 * QUARTER), values, strict=True):
        assert weight_spectrum(family, rank, 1).power(5).relative_variance == value


def test_S3_17_A15_A16_finite_width() -> None:
    assert finite_variance("gaussian", 1000, 250, 10) == pytest.approx(40.783973, abs=1e-6)
    assert finite_variance("gaussian", 1000, 250, 50) == pytest.approx(223.906526, abs=1e-5)
    assert finite_variance("orthogonal", 1000, 250, 10) == pytest.approx(30.412744, abs=1e-6)
    assert finite_variance("orthogonal", 500, 125, 5) == pytest.approx(15.181435, abs=1e-6)
    assert finite_variance("orthogonal", 500, 125, 1) == pytest.approx(3, abs=1e-9)


@pytest.mark.parametrize(
    ("rank", "gaussian", "orthogonal", "padded"),
    [(0.25, 17.3666, 13.3666, 16.4413), (0.5, 9.3666, 5.3666, 6.3915)],
)
def test_S3_13_A17_erf(rank: float, gaussian: float, orthogonal: float, padded: float) -> None:
    for family, value in (("gaussian", gaussian), ("orthogonal", orthogonal)):
        found = jacobian(act("erf"), 0.5, weight_spectrum(family, rank, 1), 4)
        assert found.relative_variance == pytest.approx(value, abs=5e-5)
    assert padded_variance(act("erf"), 0.5, rank, 4) == pytest.approx(padded, abs=5e-5)


def test_S3_13_A18_tanh() -> None:
    assert slope_spectrum(act("tanh"), 0.5).relative_variance == pytest.approx(0.299244, abs=1e-6)
    weights, biases = edge_of_chaos(act("tanh"), 0.5, rank=0.25)
    assert (weights, biases) == pytest.approx((6.751900, 0.152165), abs=2e-6)
    whole = jacobian(act("tanh"), 0.5, weight_spectrum("gaussian", 0.25, 1, weights), 3)
    assert whole.mean == pytest.approx(1, abs=1e-9)
    assert whole.relative_variance == pytest.approx(3 * 4.299244, abs=1e-5)


def test_S3_13_A20_third_moments() -> None:
    """1 + 1/gamma, and 29 and 45 for the third moments at a quarter of the rank, mean 1."""
    gaussian = weight_spectrum("gaussian", QUARTER, 2, variance=4)
    both = weight_spectrum("gaussian-gaussian", QUARTER, 2, variance=4)
    assert gaussian.moments == (1, 5, 29)
    assert both.moments[2] == 45


def test_S3_17_A14_A16_products_of_gaussian_factors() -> None:
    """The recursion for C A with Gaussian C and A: its limit, and small matrices by sampling."""
    for family in ("gaussian", "orthogonal", "gaussian-gaussian"):
        limit = weight_spectrum(family, QUARTER, 1).power(5).relative_variance
        assert finite_variance(family, 10**7, 25 * 10**5, 5) == pytest.approx(limit, rel=1e-5)
    rng = np.random.default_rng(0)
    n, r, depth, draws = 6, 3, 2, 4000
    whole = np.broadcast_to(np.eye(n), (draws, n, n))
    for _ in range(depth):
        c = rng.normal(size=(draws, n, r)) / n**0.5
        a = rng.normal(size=(draws, r, n)) / r**0.5
        whole = c @ (a @ whole)
    squares = whole @ whole.transpose(0, 2, 1)
    first = np.trace(squares, axis1=1, axis2=2) / n
    second = np.trace(squares @ squares, axis1=1, axis2=2) / n
    found = finite_moments("gaussian-gaussian", n, r, depth)
    for sample, value in ((first, 1.0), (first**2, found.first_squared), (second, found.second)):
        assert abs(sample.mean() - value) < 5 * sample.std() / draws**0.5
    assert found.variance == pytest.approx(found.second - found.first_squared)


def test_S3_13_T13_relative_variance_off_the_edge() -> None:
    """It does not depend on the variance of the weights; the variance itself does."""
    one, two = (finite_moments("gaussian", 100, 25, 4, variance) for variance in (4.0, 5.0))
    assert one.relative_variance == pytest.approx(two.relative_variance, rel=1e-12)
    assert two.first == pytest.approx((5 / 4) ** 4) and one.first == pytest.approx(1)
    layer = LayerMap(act("erf"), 8.0, 0.4, rank=0.25)
    found = singular_values(layer, "gaussian", 6)
    chi, relative = layer.chi.value, found.relative_variance.value
    assert found.mean.value == pytest.approx(chi**6, rel=1e-12)
    assert found.variance.value == pytest.approx(chi**12 * relative, rel=1e-12)


@pytest.mark.parametrize(
    ("family", "expected"),
    [
        ("gaussian", 17.3666),
        ("orthogonal", 13.3666),
        (PADDED, 16.4413),
        ("gaussian-gaussian", 21.3666),
    ],
)
def test_S3_13_A17_with_errors(family: str, expected: float) -> None:
    weights, biases = edge_of_chaos(act("erf"), 0.5, rank=0.25)
    layer = LayerMap(act("erf"), weights, biases, rank=0.25)
    found = singular_values(layer, family, 4)
    assert found.relative_variance.value == pytest.approx(expected, abs=5e-5)
    exact = 4 * (3 / 5**0.5 - 1)  # mu_2 / mu_1^2 = 3 / sqrt 5
    plain = {"gaussian": 16, "orthogonal": 12, "gaussian-gaussian": 20}
    if family in plain:
        off = abs(found.relative_variance.value - exact - plain[family])
        assert off <= found.relative_variance.error < 1e-11
    assert found.mean.value == pytest.approx(1, abs=found.mean.error + 1e-15)


def test_S3_13_A18_start() -> None:
    weights, biases = edge_of_chaos(act("tanh"), 0.5, rank=0.25)
    layer = LayerMap(act("tanh"), weights, biases, rank=0.25)
    assert layer.start.value == pytest.approx(0.273676, abs=1e-6)
    assert slope_variance(act("tanh"), 0.5).value == pytest.approx(0.299244, abs=1e-6)
    per_layer = [
        singular_values(layer, f, 1).relative_variance.value for f in ("gaussian", "orthogonal")
    ]
    assert per_layer == pytest.approx([4.299244, 3.299244], abs=1e-6)


def test_S3_12_A24_marchenko_pastur() -> None:
    """Mass 1 - gamma at 0, and the density between (1 +- sqrt gamma)^2."""
    law = WeightLaw("gaussian", 0.25)
    assert law.atoms == ((0.0, 0.75),) and law.support == (0.25, 2.25)
    at = np.linspace(0.2, 2.3, 12)
    inside = np.clip((2.25 - at) * (at - 0.25), 0, None)
    assert law.density(at) == pytest.approx(np.sqrt(inside) / (2 * np.pi * at), abs=1e-12)
    scaled = WeightLaw("gaussian", 0.25, 4.0)
    assert scaled.support == (1.0, 9.0)
    assert scaled.moments(3) == pytest.approx((1, 5, 29), rel=1e-9)


@pytest.mark.parametrize("family", ["gaussian", "orthogonal", "gaussian-gaussian"])
@pytest.mark.parametrize(("rank", "depth"), [(0.25, 1), (0.8, 3)])
def test_S3_11_density_moments_and_stieltjes(family: str, rank: float, depth: int) -> None:
    """Moments of the density are those of the series; G has them far away, the density near."""
    law = WeightLaw(family, rank, 1 / rank, depth)
    moments = weight_spectrum(family, rank, 3, 1 / rank).power(depth).moments
    assert law.moments(3) == pytest.approx([float(m) for m in moments[:3]], rel=1e-6)
    assert density_moments(law, 3) == pytest.approx(law.moments(3), rel=1e-6)
    far = 400.0j
    tail = sum(complex(m) / far ** (k + 1) for k, m in enumerate((1.0, *map(float, moments))))
    assert law.stieltjes(far) == pytest.approx(tail, rel=1e-7)
    support = law.support
    if support is not None:
        at = 0.3 * support[0] + 0.7 * support[1]
        near = law.stieltjes(complex(at, 1e-7))
        assert -near.imag / np.pi == pytest.approx(float(law.density(at)), abs=1e-5)


def test_S3_14_A25_share_of_singular_values() -> None:
    """gamma of them are not 0; where slopes vanish, fewer may be left."""
    assert singular_values(LayerMap(act("erf"), 6, 0.4, 0.25), "orthogonal", 9).nonzero == 0.25
    relu = LayerMap(act("relu"), 2.0 / 0.8, 0.0, 0.8, square=1.0)
    assert singular_values(relu, "gaussian", 2).nonzero == 0.5
    assert active_share(act("leaky_relu:0.2"), 1.0) == 1.0


def test_the_mean_of_deep_networks_stays_a_logarithm() -> None:
    found = singular_values(LayerMap(act("erf"), 20.0, 0.1), "gaussian", 3000)
    assert found.log_mean.value > 709
    with pytest.raises(EvaluationError, match=r"e\^\d+.*log_mean"):
        _ = found.mean


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
    for rank, why in ((11, "ranks end at the width"), (0, "no weights of rank 0")):
        with pytest.raises(StudyError, match=why):
            finite_variance("gaussian", 10, rank, 2)
    with pytest.raises(StudyError, match=r"depth is .*; it must be at most"):
        WeightLaw("gaussian", 0.5, 1.0, 40)
    with pytest.raises(UsageError, match="above the real axis"):
        WeightLaw("gaussian", 0.5).stieltjes(1.0)
    with pytest.raises(StudyError, match="weights are 'haar'"):
        singular_values(LayerMap(act("erf"), 2.0, 0.1), "haar", 2)
