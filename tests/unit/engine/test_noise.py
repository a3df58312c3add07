"""Jointly Gaussian numbers: a linear map of fresh normals, with the covariance of vectors."""

from __future__ import annotations

import numpy as np

from tpcalc.engine.execute import NoiseFamily


def test_draws_have_the_covariance_of_their_vectors() -> None:
    """Five vectors in three dimensions: the last two have the values that linearity gives them."""
    size, weights = 64, [0.6, -1.2]
    rng = np.random.default_rng(0)
    x, y, z = rng.standard_normal((3, size)) + rng.standard_normal(size)
    vectors = np.array([x, y, z, x - 2 * y, z + y])
    columns = []
    for place in range(len(vectors)):
        family = NoiseFamily()
        rows = enumerate(vectors)
        columns.append([family.draw(weights, [(row, size)], float(k == place)) for k, row in rows])
    factor = np.array(columns).T
    wanted = np.dot(weights, weights) * (vectors @ vectors.T) / size
    np.testing.assert_allclose(factor @ factor.T, wanted, rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(factor[:, 3:], 0.0)  # no fresh normal is in the last two
