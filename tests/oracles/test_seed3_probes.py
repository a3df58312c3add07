"""Moments of Jacobians by probe vectors, against S-transforms: the cases of the low-rank paper."""

from __future__ import annotations

from fractions import Fraction

import pytest

import tpcalc as tp
from tpcalc.activations.entries import lookup
from tpcalc.errors import StudyError
from tpcalc.functions import Var
from tpcalc.meanfield.spectra.probes import probe_moments, probe_program
from tpcalc.meanfield.spectra.spectrum import (
    jacobian,
    padded_variance,
    slope_spectrum,
    weight_spectrum,
)
from tpcalc.results import Estimate

QUARTER, HALF = Fraction(1, 4), Fraction(1, 2)
LINEAR, ERF = Var(0), lookup("erf").fn.expr


def near(found: Estimate, value: float, largest: float) -> None:
    """Within 5 standard errors, which are no larger than a part of the value."""
    assert abs(found.value - value) <= 5 * found.stderr + 1e-12
    assert found.stderr <= largest * value


@pytest.mark.parametrize(
    ("family", "values"),
    [
        ("gaussian", (20, 10, 5)),
        ("orthogonal", (15, 5, 0)),
        ("padded", (15, 5, 0)),
        ("gaussian-gaussian", (25, 15, 10)),
    ],
)
def test_S3_13_A14_linear_networks(family: str, values: tuple[int, ...]) -> None:
    for rank, value in zip((QUARTER, HALF, Fraction(1)), values, strict=True):
        first, second = probe_moments(LINEAR, family, rank, 5, samples=2**11)
        near(first, 1.0, 1e-12)
        near(second, 1.0 + value, 0.02 if family == "padded" else 0.005)


@pytest.mark.parametrize(
    ("rank", "gaussian", "orthogonal", "padded"),
    [(QUARTER, 17.3666, 13.3666, 16.4413), (HALF, 9.3666, 5.3666, 6.3915)],
)
def test_S3_13_A17_erf(rank: Fraction, gaussian: float, orthogonal: float, padded: float) -> None:
    rows = {"gaussian": gaussian, "orthogonal": orthogonal, "padded": padded}
    for family, value in rows.items():
        first, second = probe_moments(ERF, family, rank, 4, q=0.5, samples=2**12, seed=1)
        near(first, 1.0, 1e-9)
        near(second, 1.0 + value, 0.02 if family == "padded" else 0.005)
        if family == "padded":
            theory = padded_variance(ERF, 0.5, float(rank), 4)
        else:
            weights = weight_spectrum(family, float(rank), 1)
            theory = jacobian(ERF, 0.5, weights, 4).relative_variance
        assert theory == pytest.approx(value, abs=1e-4)


def test_S3_13_A20_transposes_on_dependent_vectors() -> None:
    """|W W^T v|^2 / N is 2 for a Gaussian matrix, 1 + 1 / gamma for one of low rank."""
    full = probe_moments(LINEAR, "gaussian", 1, 1, moments=3)
    assert [moment.value for moment in full] == pytest.approx([1, 2, 5], abs=1e-12)
    low = probe_moments(LINEAR, "gaussian", QUARTER, 1, moments=3)
    for found, value in zip(low[1:], (5.0, 29.0), strict=True):
        near(found, value, 0.002)
    twice = probe_moments(LINEAR, "gaussian-gaussian", QUARTER, 1, moments=3)
    assert [moment.value for moment in twice] == pytest.approx([1, 6, 45], abs=1e-9)
    haar = probe_moments(LINEAR, "orthogonal", QUARTER, 1, moments=3)
    for found, value in zip(haar[1:], (4.0, 16.0), strict=True):
        near(found, value, 0.002)


def test_third_moments_of_two_layers() -> None:
    """Beyond the paper: m_3 of two tanh layers, where slopes and weights mix at second order."""
    tanh = lookup("tanh").fn.expr
    for family in ("gaussian", "orthogonal"):
        variance = 4 / slope_spectrum(tanh, 0.5).mean  # the edge of chaos at gamma = 1/4
        weights = weight_spectrum(family, 0.25, 2, variance)
        layer = slope_spectrum(tanh, 0.5, 2) * weights
        found = probe_moments(tanh, family, QUARTER, 2, q=0.5, moments=3, samples=2**12, seed=2)
        for own, value in zip(found, layer.power(2).moments, strict=True):
            near(own, value, 0.02)


def test_the_program_runs_at_finite_width() -> None:
    """A15's recursion is for one law of the probe as well: m_2 of one linear layer is exact."""
    program = probe_program(LINEAR, "orthogonal", QUARTER, 1)
    rows = tp.simulate(program, widths=[400], seeds=40, seed=1).rows
    (values,) = [row.values for row in rows if row.name == "m[2]"]
    mean = sum(values) / len(values)
    spread = (sum((v - mean) ** 2 for v in values) / (len(values) - 1) / len(values)) ** 0.5
    assert abs(mean - 4.0) <= 5 * spread < 0.5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("gaussian", 0, 1, 1.0), "rank is 0"),
        (("gaussian", 1.5, 1, 1.0), "rank is 1.5"),
        (("cauchy", 1, 1, 1.0), "weights are 'cauchy'"),
        (("gaussian", 1, 1, -1.0), "q is -1.0"),
    ],
)
def test_bad_layers_are_refused(arguments: tuple[str, float, int, float], message: str) -> None:
    family, rank, depth, q = arguments
    with pytest.raises(StudyError, match=message):
        probe_program(ERF, family, rank, depth, q=q)
    with pytest.raises(StudyError, match="no bias keeps it"):
        probe_program(ERF, "gaussian", 1, 1, q=0.5, variance=100.0)
