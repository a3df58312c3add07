"""Length and correlation maps, edge of chaos, depth scales: the cases of the low-rank paper."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, sqrt

import numpy as np
import pytest

from tpcalc.activations.entries import lookup
from tpcalc.errors import EvaluationError, StudyError, TpcalcError
from tpcalc.functions import Expr
from tpcalc.meanfield.maps.curves import correlations, edge_curve, lengths, scale_curve
from tpcalc.meanfield.maps.layer_map import LayerMap, edge_of_chaos, edges, low_rank_start
from tpcalc.meanfield.maps.sequence import LayerSequence
from tpcalc.meanfield.maps.shared_bias import shared_bias_length, shared_bias_lengths


def act(name: str) -> Expr:
    return lookup(name).fn.expr


def effective(name: str, weights: float, biases: float) -> LayerMap:
    return LayerMap(act(name), weights, biases)


def test_S3_7_A1_edge_of_erf() -> None:
    assert tuple(edge_of_chaos(act("erf"), 0.5)) == pytest.approx((1.3603495, 0.0465502), abs=1e-7)
    low_rank = tuple(edge_of_chaos(act("erf"), 0.5, rank=0.25))
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
def test_S3_7_A2_edge_of_tanh(q: float, weights: float, biases: float) -> None:
    assert tuple(edge_of_chaos(act("tanh"), q)) == pytest.approx((weights, biases), abs=1e-6)
    layer = effective("tanh", *edge_of_chaos(act("tanh"), q))
    assert layer.fixed_point.value == pytest.approx(q, rel=1e-9)
    assert layer.phase == "edge of chaos"
    assert layer.correlation_scale.layers == inf


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
def test_S3_6_A4_phases(weights: float, chi: float, q: float) -> None:
    layer = LayerMap(act("tanh"), weights, 0.2, rank=0.25)
    assert layer.chi.value == pytest.approx(chi, abs=1e-5)
    assert layer.fixed_point.value == pytest.approx(q, abs=1e-5)
    assert layer.phase == ("ordered" if chi < 1 else "chaotic")


def test_S3_3_7_A5_homogeneous() -> None:
    """Every length is a fixed point at the edge of relu; elsewhere lengths vanish or diverge."""
    assert edge_of_chaos(act("relu"), 1.0, rank=0.3).weights.value == pytest.approx(20 / 3)
    for weights, why in ((2.0, "every length"), (1.9, "tend to 0"), (2.1, "diverge")):
        with pytest.raises(EvaluationError, match=why):
            _ = effective("relu", weights, 0.0).fixed_point


def test_S3_8_9_A6_erf() -> None:
    layer = effective("erf", 1.5, 0.1)
    found = [layer.fixed_point.value, layer.chi.value, layer.length_scale.layers]
    assert found == pytest.approx([0.691100, 0.984359, 1.131491], abs=1e-5)
    assert layer.correlation_scale.layers == pytest.approx(63.43, abs=0.01)


@pytest.mark.parametrize(
    ("weights", "biases", "numbers"),
    [
        (2.5, 0.05, (1.063958, 1.133516, 0.446804, 11.7956)),
        (6.25, 0.09, (4.079124, 1.585227, 0.122104, 5.108921)),
        # Printed as 12.603360, 2.374917, .029718: a Gauss-Hermite rule of 201 points gives these.
        (16, 0.09, (12.6041495, 2.3672610, 0.0296959, 3.639351)),
    ],
)
def test_S3_8_9_A7_A9_chaotic(weights: float, biases: float, numbers: Sequence[float]) -> None:
    layer = effective("tanh", weights, biases)
    found = [layer.fixed_point.value, layer.chi.value, layer.stable_correlation.value]
    assert found == pytest.approx(numbers[:3], abs=1e-5)
    assert layer.correlation_scale.layers == pytest.approx(numbers[3], rel=1e-4)
    assert layer.stable_correlation.error < 1e-8


def test_S3_8_9_A8_scales_and_rank() -> None:
    layers = [LayerMap(act("tanh"), 4, 0.2, rank=g) for g in (0.1, 0.2, 0.25, 0.3, 0.4)]
    correlations = [layer.correlation_scale.layers for layer in layers]
    assert correlations == pytest.approx([1.0247, 2.4460, 3.6270, 5.3051, 13.1814], abs=6e-5)
    lengths = [layer.length_scale.layers for layer in layers]
    assert lengths == pytest.approx([0.9649, 1.6564, 1.7476, 1.6733, 1.4149], abs=6e-5)


@pytest.mark.parametrize(
    ("weights", "numbers"),
    [
        (1.69, (0.55951, 0.60970, 0.65237, 0.68892, 0.72045)),
        (6.25, (0.44424, 0.39450, 0.35099, 0.31350, 0.28155)),
    ],
)
def test_S3_4_A10_correlations(weights: float, numbers: Sequence[float]) -> None:
    layer, c, found = effective("tanh", weights, 0.09), 0.5, []
    for _ in numbers:
        c = layer.correlation(c).value
        found.append(c)
    assert found == pytest.approx(numbers, abs=1e-5)


def test_S3_3_A11_lengths() -> None:
    layer, q, found = LayerMap(act("tanh"), 8, 0.4, rank=0.25), 2.0, []
    for _ in range(5):
        q = layer.length(q).value
        found.append(q)
    assert found == pytest.approx([1.139951, 0.936355, 0.864729, 0.836021, 0.823907], abs=1e-6)


def test_S3_10_A21_gradients() -> None:
    """ln chi by layer, and the sign: gradients shrink towards the input in the ordered phase."""
    layer = effective("tanh", 1.0, 0.05)
    assert -1 / layer.gradient_scale.layers == pytest.approx(-0.275712, abs=1e-6)
    assert -1 / effective("tanh", 2.5, 0.05).gradient_scale.layers == pytest.approx(
        0.125324, abs=1e-6
    )


def test_S3_7_A23_only_the_products_with_the_rank_count() -> None:
    layers = [LayerMap(act("tanh"), 2.5 / g, 0.05 / g, rank=g) for g in (0.1, 0.25, 1.0)]
    for other in layers[1:]:
        for name in ("fixed_point", "chi", "stable_correlation"):
            first = getattr(layers[0], name).value
            assert getattr(other, name).value == pytest.approx(first, rel=1e-10)
        for name in ("length_scale", "correlation_scale", "gradient_scale"):
            first = getattr(layers[0], name).layers
            assert getattr(other, name).layers == pytest.approx(first, rel=1e-10)


@pytest.mark.parametrize(
    ("biases", "weights", "q"),
    [
        (0.01, 1.424205, 0.273301),
        (0.05, 1.760955, 0.570048),
        (0.1, 1.986073, 0.805799),
        (0.3, 2.505127, 1.461169),
    ],
)
def test_S3_7_A3_edge_for_given_biases(biases: float, weights: float, q: float) -> None:
    (point,) = edges(act("tanh"), biases)
    assert point.weights.value == pytest.approx(weights, abs=1e-6)
    assert point.square.value == pytest.approx(q, abs=1e-6)
    assert (point.kind, point.every) == ("stable", False)
    # At the point the layer is at the edge within its error, and off it a little further away.
    own, bias = point
    assert effective("tanh", own, bias).phase == "edge of chaos"
    assert effective("tanh", own * (1 + 1e-9), bias).phase == "chaotic"
    (low_rank,) = edges(act("tanh"), biases / 0.25, rank=0.25)
    assert low_rank.weights.value == pytest.approx(weights / 0.25, abs=4e-6)


def test_S3_7_A5_edges_of_homogeneous_activations() -> None:
    """Every length is on the edge; no biases are."""
    for name, weights in (("identity", 10 / 3), ("relu", 20 / 3)):
        (point,) = edges(act(name), 0.0, rank=0.3)
        assert point.every and point.weights.value == pytest.approx(weights, rel=1e-12)
        with pytest.raises(EvaluationError, match="biases of no variance"):
            edges(act(name), 0.1)
    layer = LayerMap(act("relu"), 20 / 3, 0.0, 0.3, square=2.0)
    assert layer.phase == "edge of chaos" and layer.every_length
    assert layer.fixed_point.value == 2.0


def test_S3_7_A5_the_edge_without_biases_is_a_limit() -> None:
    """Small lengths see a linear network: 1 / tau'(0)^2 for odd activations."""
    (point,) = edges(act("erf"))
    assert point.weights.value == pytest.approx(np.pi / 4, rel=1e-10)
    assert (point.square.value, point.kind) == (0.0, "marginal")


def test_S3_8_9_A9_ordered() -> None:
    layer = effective("tanh", 1.69, 0.09)
    assert layer.chi.value == pytest.approx(0.939807, abs=1e-6)
    assert layer.correlation_scale.layers == pytest.approx(16.108172, abs=1e-5)
    assert layer.stable_correlation.value == 1 and layer.stable_correlation.error == 0
    # Printed as .688355 and 1.585227: again the rule of 201 points.
    layer = effective("tanh", 6.25, 0.09)
    assert layer.length_scale.layers == pytest.approx(0.688341457, abs=1e-9)
    assert layer.chi.value == pytest.approx(1.585224765, abs=1e-9)


def test_S3_3_4_A10_A11_A12_from_several_starts() -> None:
    """The same sequences at once, each within the error it claims."""
    layer = effective("tanh", 6.25, 0.09)
    found = correlations(layer, [0.5, 0.2, -0.3], 5)
    assert 1 - found.value[1:, 0] == pytest.approx(
        [0.44424, 0.39450, 0.35099, 0.31350, 0.28155], abs=1e-5
    )
    c = -0.3
    for row in range(1, 6):
        c = layer.correlation(c).value
        assert 1 - found.value[row, 2] == pytest.approx(c, abs=found.error[row, 2] + 1e-12)
    relu = LayerMap(act("relu"), 2.0, square=1.0)
    steps = 1 - correlations(relu, [0.5], 5).value[1:, 0]
    assert steps == pytest.approx([0.608998, 0.683906, 0.738128, 0.778895, 0.810454], abs=1e-6)
    dynamics = lengths(LayerMap(act("tanh"), 8, 0.4, rank=0.25), [2.0], 5)
    assert dynamics.value[1:, 0] == pytest.approx(
        [1.139951, 0.936355, 0.864729, 0.836021, 0.823907], abs=1e-6
    )
    assert dynamics.error.max() < 1e-10


def test_S3_4_A12_relu_in_closed_form() -> None:
    """As a matrix of any number of inputs, with lengths of their own."""
    start = np.array([[0.5, 0.25, -0.1], [0.25, 0.5, 0.0], [-0.1, 0.0, 2.0]])
    relu = LayerMap(act("relu"), 2.0)
    found = LayerSequence([relu] * 3).gram(start)[-1]
    matrix = 2 * start
    for _ in range(2):
        size = np.sqrt(np.outer(np.diagonal(matrix), np.diagonal(matrix)))
        c = np.clip(matrix / size, -1, 1)
        matrix = size / np.pi * (np.sqrt(1 - c**2) + c * (np.pi - np.arccos(c)))
    assert (np.abs(found.value - matrix) <= found.error + 1e-14).all()
    assert found.error.max() < 1e-13


def test_S3_2_A19_a_shared_scalar_bias() -> None:
    """The mean is the same; the lengths stay random, and say so."""
    layer = LayerMap(act("tanh"), 6, 0.4, rank=0.25)
    found = shared_bias_length(layer, 0.6)
    assert found.value == pytest.approx(0.55594, abs=1e-5) == layer.length(0.6).value
    assert found.std == pytest.approx(0.141421, abs=1e-6) and found.random
    layer = LayerMap(act("erf"), 6, 0.4, rank=0.25)
    found = shared_bias_length(layer, 0.6)
    first, second = shared_bias_lengths(layer, 0.6, 2, samples=20_000, seed=1)
    assert first.std is not None and second.std is not None
    assert abs(first.value - found.value) < 5 * first.stderr
    # chi-squared with one degree: the variance of the sample variance is that of kurtosis 15
    assert first.std**2 == pytest.approx(found.std**2, rel=5 * sqrt(14 / 20_000))
    # the spread of the first layer goes on through the second
    slope = layer.length_slope(first.value).value
    linear = sqrt(found.std**2 + (slope * found.std) ** 2)
    assert second.std == pytest.approx(linear, rel=0.05)


def test_S3_10_A22_gradients_and_widths() -> None:
    """At chi = 1 they follow the widths alone; gradients of A have r N entries."""
    weights, biases = edge_of_chaos(act("erf"), 0.5, rank=0.5)
    layer = LayerMap(act("erf"), weights, biases, rank=0.5)
    net = LayerSequence([layer] * 4, [8, 8, 16, 32, 64])
    found = net.gradients(layer.start.value)
    assert [g.value for g in found.delta] == pytest.approx([8, 4, 2, 1], rel=1e-12)
    # r_l N_(l-1) E delta^2 E z^2, with |x|^2 / N for the first layer
    counts = [4 * 8, 8 * 8, 16 * 16, 32 * 32]
    expected = [c * d * layer.start.value for c, d in zip(counts, [8, 4, 2, 1], strict=True)]
    assert [g.value for g in found.weights] == pytest.approx(expected, rel=1e-12)


def test_S3_3_T9_the_input_that_starts_at_the_fixed_point() -> None:
    weights, biases = edge_of_chaos(act("erf"), 0.5)
    layer = effective("erf", weights, biases)
    assert layer.start.value == pytest.approx(1 / 3, abs=1e-12)
    found = LayerSequence([layer] * 3).lengths(layer.start.value)
    assert [q.value for q in found] == pytest.approx([0.5] * 3, abs=1e-12)


def test_S3_3_10_T11_the_rank_of_each_layer() -> None:
    """The length has the rank of its own layer, chi that of the layer above."""
    ranks = (0.2, 0.5, 0.9)
    layers = [LayerMap(act("erf"), 4.0, 0.3, rank=rank) for rank in ranks]
    net = LayerSequence(layers)
    q = [0.2 * (4.0 * 0.7 + 0.3)]
    for rank in ranks[1:]:
        q.append(rank * (4.0 * 2 / np.pi * np.arcsin(2 * q[-1] / (1 + 2 * q[-1])) + 0.3))
    assert [each.value for each in net.lengths(0.7)] == pytest.approx(q, rel=1e-12)
    chi = [
        rank * 4.0 * 4 / np.pi / np.sqrt(1 + 4 * p) for rank, p in zip(ranks[1:], q, strict=False)
    ]
    assert [each.value for each in net.growths(0.7)] == pytest.approx(chi, rel=1e-12)
    backward = net.gradients(0.7).delta
    assert [g.value for g in backward] == pytest.approx([chi[0] * chi[1], chi[1], 1], rel=1e-12)


def test_S3_4_T15_the_slow_edge() -> None:
    """c* is found where iteration would need millions of layers, and 1 is told from nearly 1."""
    weights, biases = edge_of_chaos(act("tanh"), 1.0)
    ratios = []
    for off in (1e-5, 1e-7, 1e-9):
        layer = effective("tanh", weights * (1 + off), biases)
        gap = 1.0 - layer.stable_correlation
        assert layer.phase == "chaotic" and gap.value > 10 * gap.error
        ratios.append(gap.value / (layer.chi.value - 1))
    # 1 - c* is 2 (chi - 1) / C''(1) to leading order
    assert ratios == pytest.approx([ratios[-1]] * 3, rel=1e-3)
    relu = LayerMap(act("relu"), 1.999999, 0.1)
    assert relu.fixed_point.value == pytest.approx(0.1 / (1 - 1.999999 / 2), rel=1e-8)
    assert abs(relu.fixed_point.value - 0.1 / 5e-7) < relu.fixed_point.error + 1e-4
    assert relu.stable_correlation.value == 1


def test_S3_7_effective_variances() -> None:
    """A low-rank network with the variances over gamma starts like the full-rank one."""
    full = effective("tanh", 2.5, 0.05)
    weights, biases = low_rank_start(2.5, 0.05, 0.1)
    low = LayerMap(act("tanh"), weights, biases, rank=0.1)
    assert (weights, biases) == (25.0, 0.5)
    assert low.correlation_scale.layers == pytest.approx(full.correlation_scale.layers, rel=1e-10)
    # Figures 1 and 10: the curves are the same after multiplication by gamma.
    one, quarter = edge_curve(act("tanh")), edge_curve(act("tanh"), rank=0.25)
    assert quarter.weights * 0.25 == pytest.approx(one.weights, rel=1e-14)
    assert quarter.biases * 0.25 == pytest.approx(one.biases, rel=1e-14)


def test_S3_9_figure_11() -> None:
    """Poles at the edge; the curve is that of layers on their own, within its error."""
    found = scale_curve(act("tanh"), 0.05, 1.0, 3.0, points=6)
    pole = found.weights[int(np.argmin(found.rates))]
    assert pole == pytest.approx(1.760955, abs=1e-4) and found.scales.max() > 1e4
    for k in (1, len(found.weights) - 2):
        layer = effective("tanh", float(found.weights[k]), 0.05)
        own = layer.correlation_scale.rate
        assert abs(found.rates[k] - own.value) <= found.error + own.stderr
        assert found.chi[k] == pytest.approx(layer.chi.value, rel=1e-10)


def test_S3_7_lengths_without_an_edge_are_left_out() -> None:
    found = edge_curve(act("sigmoid"), low=1.0, high=1e3, points=30)
    assert 0 < found.left_out == 30 - len(found.squares)
    assert "negative variances" in found.note and (found.biases >= 0).all()
    with pytest.raises(EvaluationError, match="no edge of chaos for q"):
        edge_curve(act("softplus"), low=0.01, high=0.1)


def test_S3_3_several_fixed_points() -> None:
    """All are named; the stable one to which lengths of 1 tend is chosen."""
    layer = effective("gelu", 2.0, 0.1)
    low, high = layer.fixed_points
    assert (low.kind, high.kind) == ("stable", "unstable")
    assert layer.fixed_point.value == low.square.value < 1 < high.square.value
    assert low.slope.value < 1 < high.slope.value
    for point in (low, high):
        q = point.square.value
        assert abs(layer.length(q).value - q) < 1e-11 * q


def test_S3_3_errors_hold() -> None:
    """Fixed points of erf, for which everything has a closed form, within their errors."""
    from mpmath import asin, findroot, mp, mpf, pi, sqrt

    layer = effective("erf", 1.5, 0.1)
    w, b = mpf(1.5), mpf(0.1)
    with mp.workdps(40):
        q = findroot(lambda x: w * 2 / pi * asin(2 * x / (1 + 2 * x)) + b - x, mpf("0.69"))
        chi = w * 4 / pi / sqrt(1 + 4 * q)
        assert abs(q - mpf(layer.fixed_point.value)) <= layer.fixed_point.error < 1e-13
        assert abs(chi - mpf(layer.chi.value)) <= layer.chi.error < 1e-13
        scale = layer.correlation_scale
        assert abs(-1 / mp.log(chi) - mpf(scale.layers)) <= scale.error < 1e-8


@pytest.mark.parametrize("off", [1.0, 1e-2, 1e-5, 1e-8])
def test_S3_4_errors_of_stable_correlations_hold(off: float) -> None:
    """1 - c* of erf above the edge of chaos, by forty digits."""
    from mpmath import asin, findroot, mp, mpf, pi

    weights, biases = edge_of_chaos(act("erf"), 0.5)
    layer = effective("erf", weights * (1 + off), biases)
    gap = 1.0 - layer.stable_correlation
    w, b = mpf(weights * (1 + off)), mpf(biases)
    with mp.workdps(40):
        q = findroot(lambda x: w * 2 / pi * asin(2 * x / (1 + 2 * x)) + b - x, mpf("0.5"))

        def change(x: object) -> object:
            return (w * 2 / pi * asin(2 * q * (1 - x) / (1 + 2 * q)) + b) / q - (1 - x)

        exact = findroot(lambda x: change(x) / x, mpf(gap.value))
        assert exact > 0 and abs(exact - mpf(gap.value)) <= gap.error
    assert gap.error < 1e-4 * gap.value


@pytest.mark.parametrize(
    ("name", "weights", "biases", "message"),
    [
        ("relu", 2.1, 0.1, "diverge.*q = 1 to 1.15"),
        ("tanh", 0.9, 0.0, "tend to 0.*q = 1 to 0.3548"),
        ("gelu", 2.5, 0.0, "slope is 1 or more"),
        ("sign", 1.0, 0.1, "jumps"),
        ("exp", 1.0, 0.1, "diverge"),
    ],
)
def test_layers_without_a_fixed_point_say_why(
    name: str, weights: float, biases: float, message: str
) -> None:
    with pytest.raises(TpcalcError, match=message):
        _ = effective(name, weights, biases).chi


def test_an_input_of_length_0_has_the_signal_of_biases() -> None:
    relu = LayerMap(act("relu"), 2.0, 0.1)
    found = LayerSequence([relu] * 3).gram(np.array([[0.0, 0.0], [0.0, 1.0]]))
    assert [one.value[0, 0] for one in found] == pytest.approx([0.1, 0.2, 0.3], rel=1e-14)


def test_bad_layers_are_refused() -> None:
    for weights, biases, rank in ((0.0, 0.0, 1.0), (1.0, -0.1, 1.0), (1.0, 0.0, 1.5)):
        with pytest.raises(StudyError, match="rank" if rank > 1 else "variance"):
            LayerMap(act("tanh"), weights, biases, rank)
    with pytest.raises(StudyError, match="no weights of rank 0"):
        low_rank_start(1.0, 0.0, 0.0)
    with pytest.raises(StudyError, match="no eigenvalue is negative"):
        LayerSequence([LayerMap(act("tanh"), 1.0)]).gram([[1.0, 2.0], [2.0, 1.0]])
    with pytest.raises(StudyError, match="3 widths are given for 1 layers"):
        LayerSequence([LayerMap(act("tanh"), 1.0)], (1, 1, 1))
    with pytest.raises(EvaluationError, match="no edge of chaos"):
        edge_of_chaos(act("softplus"), 0.01)
