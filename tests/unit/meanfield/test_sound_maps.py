"""Laws of singular values and length maps at their edges."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from tests.second_ways import density_moments
from tpcalc.activations.entries import lookup
from tpcalc.errors import EvaluationError
from tpcalc.meanfield.maps.layer_map import LayerMap
from tpcalc.meanfield.spectra.laws import WeightLaw
from tpcalc.meanfield.spectra.singular_values import singular_values
from tpcalc.meanfield.spectra.spectrum import weight_spectrum


@pytest.mark.parametrize(
    ("family", "rank", "depth"),
    [("gaussian", 0.5, 12), ("gaussian-gaussian", 0.9, 5), ("orthogonal", 0.05, 12)],
)
def test_deep_laws_have_the_mass_1(family: str, rank: float, depth: int) -> None:
    """Near 0, where many roots meet, rounding of roots was a density of its own."""
    law = WeightLaw(family, rank, 1 / rank, depth)
    logs = np.linspace(1e-4, 400.0, 800)
    assert law.support is not None
    places = law.support[1] * np.exp(-logs)
    mass = sum(part for _, part in law.atoms) + np.trapezoid(law.density(places) * places, logs)
    assert mass == pytest.approx(1.0, abs=0.02)


@pytest.mark.parametrize(("rank", "depth"), [(0.9, 5)])
def test_laws_whose_upper_edge_lies_below_a_point_of_mass(rank: float, depth: int) -> None:
    law = WeightLaw("orthogonal", rank, 1 / rank, depth)
    exact = weight_spectrum("orthogonal", Fraction(rank).limit_denominator(100), 3)
    wanted = [float(m) / rank ** (depth * k) for k, m in enumerate(exact.power(depth).moments, 1)]
    assert density_moments(law, 2) == pytest.approx(wanted[:2], rel=1e-8)


def test_padded_columns_meet_slopes_of_0_by_chance() -> None:
    layer = LayerMap(lookup("relu").fn.expr, 4.0, rank=0.5, square=1.0)
    shares = [singular_values(layer, "padded orthogonal", depth).nonzero for depth in (1, 2, 5)]
    assert shares == pytest.approx([0.5, 0.25, 0.25])
    rng = np.random.default_rng(0)
    size, jacobian = 200, np.eye(200)
    for _ in range(2):
        columns = np.linalg.qr(rng.normal(size=(size, size)))[0]
        columns[:, size // 2 :] = 0
        slopes = np.zeros(size)
        slopes[rng.permutation(size)[: size // 2]] = 1
        jacobian = slopes[:, None] * (columns @ jacobian)
    assert np.linalg.matrix_rank(jacobian) == pytest.approx(50, abs=5 * 3.6)


def test_lengths_beyond_the_grid_are_not_said_to_vanish() -> None:
    tanh = lookup("tanh").fn.expr
    with pytest.raises(EvaluationError, match="they fall below 1e-12"):
        LayerMap(tanh, 2.0, 0.1, rank=1e-12).fixed_point  # noqa: B018
    with pytest.raises(EvaluationError, match=r"diverge, or grow past 1e\+12"):
        LayerMap(tanh, 1e12, 1e12).fixed_point  # noqa: B018
