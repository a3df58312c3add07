"""Variances of weights by layer, in front of trained weights or of their start alone."""

from __future__ import annotations

import numpy as np
import pytest

import tpcalc as tp
from tpcalc.errors import StudyError

XI = ((0.6, -0.3, 0.5, 0.2), (0.1, 0.7, -0.2, 0.9))
DATA = tp.Samples(XI, ((1.0,), (-1.0,)))
WEIGHTS = {1: 2.0, 2: 0.5, 3: 1.0}


def values(program: tp.Program) -> list[np.ndarray]:
    table = tp.simulate(program, widths=(32,), seeds=2, seed=1)
    return [np.array(row.values) for row in table.rows]


def test_initial_variances_are_factors_with_slower_rates() -> None:
    """W = s w with w of rate eta / s^2 is w of variance s^2 with rate eta."""
    net = {"weight_variance": (2, "1/2"), "bias_variance": 2}
    start = tp.MLP(2, "tanh", "first", variances="initial", **net)
    front = tp.MLP(2, "tanh", "first", **net)
    same = tp.train(front, "mup", DATA, steps=2, lr=lambda layer, step: 0.5 / WEIGHTS[layer])
    other = tp.train(front, "mup", DATA, steps=2, lr=0.5)
    mine = values(tp.train(start, "mup", DATA, steps=2, lr=0.5))
    for found, expected in zip(mine, values(same), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)
    assert max(np.abs(a - b).max() for a, b in zip(mine, values(other), strict=True)) > 1e-2


def test_initial_means_are_those_of_the_weights() -> None:
    """W = s (w + u / s) has the mean u: the variance does not multiply it."""
    net = tp.MLP(2, "relu", weight_variance=(1, 4), variances="initial")
    found = tp.limit(tp.train(net, "ip-non-centered:1", DATA, steps=0, watch=("h",)))
    plain = tp.limit(tp.train(tp.MLP(2), "ip-non-centered:1", DATA, steps=0, watch=("h",)))
    assert found["h[2,0,0]"].mean.value == pytest.approx(plain["h[2,0,0]"].mean.value, rel=1e-12)


def test_kernels_know_them() -> None:
    """Of relu every layer adds the same to the tangent kernel, before its rate."""
    kernels = [
        tp.kernel(tp.MLP(2, "relu", weight_variance=2, variances=word), XI)
        for word in ("factors", "initial")
    ]
    diagonal = [np.diag(kernel.ntk) for kernel in kernels]
    np.testing.assert_allclose(diagonal[1], diagonal[0] * (1 + 1 / 2 + 1 / 2) / 3, rtol=1e-12)
    np.testing.assert_allclose(kernels[0].nngp, kernels[1].nngp, rtol=1e-14)


def test_one_variance_for_each_layer_is_followed() -> None:
    """The kernel of unequal layers is the product of their variances, for the identity."""
    kernel = tp.kernel(tp.MLP(3, "identity", weight_variance=(2, 3, "1/2")), XI, kinds=("nngp",))
    gram = np.array(XI) @ np.array(XI).T / 4
    np.testing.assert_allclose(kernel.nngp, 3 * gram, rtol=1e-12)


@pytest.mark.parametrize(
    ("given", "said"),
    [((2, 3, 4), "3 numbers"), ("2,-1", "-1"), ((2, "a"), "a")],
)
def test_rows_that_do_not_fit_are_refused(given: object, said: str) -> None:
    with pytest.raises(StudyError, match=said):
        tp.MLP(2, "relu", weight_variance=given)
