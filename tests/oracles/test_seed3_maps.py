"""Length and correlation maps, edge of chaos, depth scales: the cases of the low-rank paper."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

import pytest

from tpcalc.catalog.activations import lookup
from tpcalc.errors import EvaluationError, StudyError
from tpcalc.functions import Expr
from tpcalc.signal.maps import LayerMap, edge_of_chaos


def act(name: str) -> Expr:
    return lookup(name).fn.expr


def effective(name: str, weights: float, biases: float) -> LayerMap:
    return LayerMap(act(name), weights, biases)


def test_S3_A1_edge_of_erf() -> None:
    assert edge_of_chaos(act("erf"), 0.5) == pytest.approx((1.3603495, 0.0465502), abs=1e-7)
    low_rank = edge_of_chaos(act("erf"), 0.5, rank=0.25)
    assert low_rank == pytest.approx((5.441398, 0.186201), abs=1e-6)


@pytest.mark.parametrize(
    ("q", "weights", "biases"),
    [
        (0.1, 1.177569, 0.000832),
        (0.5, 1.687975, 0.038041),
        (1.0, 2.153303, 0.150965),
        (2.0, 2.861162, 0.512265),
    ],
)
def test_S3_A2_edge_of_tanh(q: float, weights: float, biases: float) -> None:
    assert edge_of_chaos(act("tanh"), q) == pytest.approx((weights, biases), abs=1e-6)
    layer = effective("tanh", *edge_of_chaos(act("tanh"), q))
    assert layer.fixed_point.value == pytest.approx(q, rel=1e-9)
    assert layer.phase == "edge of chaos"
    assert layer.correlation_scale == inf


@pytest.mark.parametrize(
    ("weights", "chi", "q"),
    [
        (4, 0.759032, 0.193593),
        (6, 0.938636, 0.418037),
        (7, 0.997656, 0.563346),
        (8, 1.047666, 0.721762),
        (12, 1.208934, 1.428008),
    ],
)
def test_S3_A4_phases(weights: float, chi: float, q: float) -> None:
    layer = LayerMap(act("tanh"), weights, 0.2, rank=0.25)
    assert layer.chi.value == pytest.approx(chi, abs=1e-5)
    assert layer.fixed_point.value == pytest.approx(q, abs=1e-5)
    assert layer.phase == ("ordered" if chi < 1 else "chaotic")


def test_S3_A5_homogeneous() -> None:
    """Every length is a fixed point at the edge of relu; elsewhere lengths vanish or diverge."""
    assert edge_of_chaos(act("relu"), 1.0, rank=0.3)[0] == pytest.approx(20 / 3)
    for weights, why in ((2.0, "every length"), (1.9, "tend to 0"), (2.1, "diverge")):
        with pytest.raises(EvaluationError, match=why):
            _ = effective("relu", weights, 0.0).fixed_point


def test_S3_A6_erf() -> None:
    layer = effective("erf", 1.5, 0.1)
    found = [layer.fixed_point.value, layer.chi.value, layer.length_scale]
    assert found == pytest.approx([0.691100, 0.984359, 1.131491], abs=1e-5)
    assert layer.correlation_scale == pytest.approx(63.43, abs=0.01)


@pytest.mark.parametrize(
    ("weights", "biases", "numbers"),
    [
        (2.5, 0.05, (1.063958, 1.133516, 0.446804, 11.7956)),
        (6.25, 0.09, (4.079124, 1.585227, 0.122104, 5.108921)),
        # Printed as 12.603360, 2.374917, .029718: a Gauss-Hermite rule of 201 points gives these.
        (16, 0.09, (12.6041495, 2.3672610, 0.0296959, 3.639351)),
    ],
)
def test_S3_A7_A9_chaotic(weights: float, biases: float, numbers: Sequence[float]) -> None:
    layer = effective("tanh", weights, biases)
    found = [layer.fixed_point.value, layer.chi.value, layer.stable_correlation.value]
    assert found == pytest.approx(numbers[:3], abs=1e-5)
    assert layer.correlation_scale == pytest.approx(numbers[3], rel=1e-4)
    assert layer.stable_correlation.stderr < 1e-8


def test_S3_A8_scales_and_rank() -> None:
    layers = [LayerMap(act("tanh"), 4, 0.2, rank=g) for g in (0.1, 0.2, 0.25, 0.3, 0.4)]
    correlations = [layer.correlation_scale for layer in layers]
    assert correlations == pytest.approx([1.0247, 2.4460, 3.6270, 5.3051, 13.1814], abs=1e-3)
    lengths = [layer.length_scale for layer in layers]
    assert lengths == pytest.approx([0.9649, 1.6564, 1.7476, 1.6733, 1.4149], abs=1e-3)


@pytest.mark.parametrize(
    ("weights", "numbers"),
    [
        (1.69, (0.55951, 0.60970, 0.65237, 0.68892, 0.72045)),
        (6.25, (0.44424, 0.39450, 0.35099, 0.31350, 0.28155)),
    ],
)
def test_S3_A10_correlations(weights: float, numbers: Sequence[float]) -> None:
    layer, c, found = effective("tanh", weights, 0.09), 0.5, []
    for _ in numbers:
        c = layer.correlation(c).value
        found.append(c)
    assert found == pytest.approx(numbers, abs=1e-5)


def test_S3_A11_lengths() -> None:
    layer, q, found = LayerMap(act("tanh"), 8, 0.4, rank=0.25), 2.0, []
    for _ in range(5):
        q = layer.length(q).value
        found.append(q)
    assert found == pytest.approx([1.139951, 0.936355, 0.864729, 0.836021, 0.823907], abs=1e-6)


def test_S3_A21_gradients() -> None:
    """ln chi by layer, and the sign: gradients shrink towards the input in the ordered phase."""
    layer = effective("tanh", 1.0, 0.05)
    assert -1 / layer.gradient_scale == pytest.approx(-0.275712, abs=1e-6)
    assert -1 / effective("tanh", 2.5, 0.05).gradient_scale == pytest.approx(0.125324, abs=1e-6)


def test_S3_A23_only_the_products_with_the_rank_count() -> None:
    layers = [LayerMap(act("tanh"), 2.5 / g, 0.05 / g, rank=g) for g in (0.1, 0.25, 1.0)]
    for other in layers[1:]:
        for name in ("fixed_point", "chi", "stable_correlation"):
            first = getattr(layers[0], name).value
            assert getattr(other, name).value == pytest.approx(first, rel=1e-10)


def test_bad_layers_are_refused() -> None:
    for weights, biases, rank in ((0.0, 0.0, 1.0), (1.0, -0.1, 1.0), (1.0, 0.0, 1.5)):
        with pytest.raises(StudyError, match="variance"):
            LayerMap(act("tanh"), weights, biases, rank)
    with pytest.raises(EvaluationError, match="no edge of chaos"):
        edge_of_chaos(act("softplus"), 0.01)
