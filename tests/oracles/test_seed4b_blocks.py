"""Building blocks: order, edge and chaos, types, depth, residual units, biases, norms."""

from __future__ import annotations

from fractions import Fraction
from math import exp, inf, lgamma, log, pi, sqrt
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tpcalc as tp
from tpcalc.errors import EvaluationError, StudyError, UnknownName, UsageError

s, p = tp.signal, tp.signal.practice
HE = s.Design("relu", 2)
HALF = s.Input(Fraction(1, 2))  # a dense layer of variance 2 makes q of it 1
NAMES = {"gaussian": "gaussian:1/2"}


def tau(name: str, debias: bool = False) -> Any:
    return s.activations.calibrated(NAMES.get(name, name), debias=debias)


# Of k = 1, 5, 19, 49 activations: coefficient and LBIAS, as they are printed.
DEPTHS: dict[tuple[str, bool], tuple[int, str]] = {
    ("relu", False): (2, "1.2112/1.2112 1.946/1.946 4.244/4.244 8.923/8.923"),
    ("relu", True): (3, "1.2112/1 2.606/1 38.10/1 1.194e4/1"),
    ("abs", False): (2, "1.659/1.659 3.212/3.212 7.845/7.845 17.21/17.21"),
    ("abs", True): (3, "1.659/1 12.56/1 1.502e4/1 5.904e10/1"),
    ("even_tanh", False): (3, "2.335/2.151 6.70/4.45 35.71/7.544 472.2/8.566"),
    ("softplus", False): (1, "1.039/1.842 1.057/18.46 1.057/5.558e4 1.057/1.582e12"),
    ("softplus", True): (3, "1.039/1 1.214/1 2.087/1 6.669/1"),
    ("sigmoid", False): (1, "1.017/2.601 1.021/111.8 1.021/5.743e7 1.021/9.912e19"),
    ("sigmoid", True): (3, "1.017/1 1.086/1 1.369/1 2.247/1"),
    ("gaussian", False): (1, "1.577/2.732 1.730/26.97 1.732/5.905e4 1.732/8.473e11"),
    ("gaussian", True): (3, "1.577/1 9.764/1 5763/1 4.994e9/1"),
    ("selu", False): (3, "1.035/1 1.189/1 1.928/1 5.439/1"),
    ("tanh", False): (3, "1.085/1 1.506/1 4.734/1 55.12/1"),
    ("swish", False): (3, "1.101/1.066 1.476/1.256 2.865/1.552 8.214/1.691"),
    ("swish", True): (3, "1.101/1 1.617/1 6.217/1 111.3/1"),
}


def digits(text: str) -> tuple[float, float]:
    """A printed number, and half a unit of its last digit."""
    mantissa, _, power = text.partition("e")
    places = len(mantissa.partition(".")[2])
    return float(text), 0.51 * 10.0 ** (int(power or 0) - places)


@pytest.mark.parametrize(("name", "debias"), DEPTHS)
def test_S4b_26_28_depth_table(name: str, debias: bool) -> None:
    case, printed = DEPTHS[name, debias]
    found = p.trichotomy(tau(name, debias) if debias else NAMES.get(name, name))
    assert found.case == case
    for row, pair in zip(found.depths, printed.split(), strict=True):
        for value, text in zip((row.nlc.value, row.bias.value), pair.split("/"), strict=True):
            wanted, half = digits(text)
            assert abs(value - wanted) <= max(half, 1e-9), (row.activations, text)


def test_S4b_26_case10_softplus_is_ordered() -> None:
    found = p.trichotomy("softplus", depths=[19, 49])
    assert (found.case, found.word, found.limit.value) == (1, "order", 1)
    assert found.chi.value == pytest.approx(0.31846, abs=5e-6)
    assert found.nlc_limit.value == pytest.approx(1.057, abs=5e-4)
    assert found.nlc_limit.stderr < 1e-9 and found.bias_limit.value == inf
    assert [row.bias.value for row in found.depths] == pytest.approx([5.558e4, 1.582e12], rel=2e-4)
    assert found.bias_growth == pytest.approx(found.chi.value**-0.5)
    one, two = p.trichotomy("softplus", depths=[30, 31]).depths
    assert two.bias.value / one.bias.value == pytest.approx(found.bias_growth, rel=1e-9)


def test_S4b_26_case11_relu_is_at_the_edge() -> None:
    found = p.trichotomy("relu", depths=[2, 3, 4, 6, 10, 20, 50, 100])
    assert found.case == 2 and found.edge_power == 1
    assert found.edge_factor.value == pytest.approx(sqrt(2) / (3 * pi), rel=1e-6)
    wanted = [1.40543, 1.59076, 1.77041, 2.11870, 2.79003, 4.40347, 9.07665, 16.72051]
    for row, value in zip(found.depths, wanted, strict=True):
        assert row.nlc.value == pytest.approx(value, abs=6e-6)
        assert row.bias.value == pytest.approx(value, abs=6e-6)
    debiased = p.trichotomy(tau("relu", True), depths=[19])
    assert debiased.case == 3 and debiased.limit.value == 0
    assert debiased.depths[0].nlc.value == pytest.approx(38.10, abs=5e-3)


def test_S4b_26_case11_the_closed_map() -> None:
    """NLC = LBIAS = 1 / sqrt(1 - c_M) with the map of the arc cosine."""
    c, wanted = 0.0, []
    for _ in range(12):
        c = (sqrt(1 - c * c) + c * (pi - np.arccos(c))) / pi
        wanted.append(1 / sqrt(1 - c))
    found = p.trichotomy("relu", depths=range(1, 13)).depths
    assert [row.nlc.value for row in found] == pytest.approx(wanted, rel=1e-9)


def test_S4b_26_43_case12_swish() -> None:
    found = p.trichotomy("swish")
    assert found.case == 3 and found.word == "chaos"
    assert found.limit.value == pytest.approx(0.658667, abs=5e-7)
    assert found.bias_limit.value == pytest.approx(1.71160, rel=1e-4)
    assert found.nlc_growth == pytest.approx(1.032780, abs=5e-7)
    assert found.nlc_growth == pytest.approx(sqrt(1.06663), abs=5e-6)
    assert found.depth_scale == pytest.approx(14.971, abs=5e-4)
    at = s.activations.CovarianceKernel("swish").nlc([found.limit.value])
    assert at.value[0] == pytest.approx(found.nlc_growth, rel=1e-9)  # n(c_lim) = sqrt(chi)


def test_S4b_26_case13_selu() -> None:
    (row,) = p.trichotomy("selu", depths=[50]).depths
    assert row.nlc.value == pytest.approx(5.6307, abs=5e-5)
    assert (row.activations, row.macro_layers) == (50, 51)


SCALES = {
    ("selu", False): (33.604, 0), ("tanh", False): (13.876, 0),
    ("swish", False): (14.971, 0.658667), ("relu", False): (inf, 1), ("abs", False): (inf, 1),
    ("softplus", False): (0.8739, 1),
    ("sigmoid", False): (0.5324, 1), ("gaussian", False): (0.9102, 1), ("relu", True): (3.2261, 0),
    ("softplus", True): (12.113, 0), ("swish", True): (4.4443, 0), ("sigmoid", True): (62.66, 0),
    ("abs", True): (0, 0), ("gaussian", True): (0, 0), ("even_tanh", True): (0, 0),
}  # fmt: skip


@pytest.mark.parametrize(("name", "debias"), SCALES)
def test_S4b_43_depth_scales(name: str, debias: bool) -> None:
    scale, limit = SCALES[name, debias]
    found = p.trichotomy(tau(name, debias), depths=[])
    assert found.depth_scale == pytest.approx(scale, rel=1e-4, abs=1e-9)
    assert found.limit.value == pytest.approx(limit, abs=5e-7)


@pytest.mark.parametrize(
    ("weights", "square", "chi"),
    [
        (1.1, 0.051908, 1.002749),
        (1.5, 0.286894, 1.040568),
        (2, 0.617965, 1.105529),
        (2.5362, 1.0000, 1.177810),
        (4, 2.121474, 1.362673),
    ],
)
def test_S4b_26_weights_of_tanh(weights: float, square: float, chi: float) -> None:
    found = p.trichotomy("tanh", weights, depths=[])
    assert found.square.value == pytest.approx(square, rel=2e-5)
    assert found.gradient.value == pytest.approx(chi, abs=2e-6)
    assert found.chi.value == pytest.approx(chi, abs=2e-6)


def test_S4b_26_lengths_that_vanish() -> None:
    found = p.trichotomy("tanh", 0.7, depths=[])
    assert found.square.value == 0 and found.gradient.value == pytest.approx(0.7)
    assert p.trichotomy("relu", 0.7, depths=[]).gradient.value == pytest.approx(0.35)
    assert p.trichotomy("relu", 2, depths=[]).case == 2


def test_S4b_26_43_a_smooth_edge_grows_like_a_root() -> None:
    """4 % at 50 layers, 1 % at 400."""
    edge = s.edge_of_chaos("tanh", 1.0)
    found = p.trichotomy("tanh", edge.weights.value, edge.biases.value, depths=[50, 400])
    assert found.case == 2 and found.edge_power == 0.5
    for row, off in zip(found.depths, (0.08, 0.02), strict=True):
        law = found.edge_factor.value * row.activations**found.edge_power
        assert row.bias.value == pytest.approx(law, rel=off)


def test_S4b_43_networks_say_their_variances() -> None:
    network = s.mlp(5, s.Design("tanh", 4))
    assert p.trichotomy(network).chi.value == p.trichotomy("tanh", 4).chi.value
    biased = p.trichotomy(s.mlp(5, s.Design("tanh", 1.5, 0.3)))
    assert biased.word == s.survey("tanh", 1.5, 0.3).phase.replace("ordered", "order")


@pytest.mark.parametrize(
    "network",
    [
        s.mlp(3, s.Design("relu", 2, norm="batch")),
        s.resnet(3, HE),
        s.parse_graph(
            "x=input()\na=dense(x)\nb=tanh(a)\nc=dense(b)\nd=tanh(c)\ne=dense(d)\nf=relu(e)"
        ),
    ],
)
def test_S4b_43_no_case_where_layers_differ(network: Any) -> None:
    with pytest.raises(StudyError):
        p.trichotomy(network)


def test_wrong_usage_is_told() -> None:
    with pytest.raises(UsageError, match="variances itself"):
        p.trichotomy(s.mlp(2, HE), 2.0)
    with pytest.raises(UsageError, match="no variance"):
        p.trichotomy("relu", biases=0.1)
    with pytest.raises(UsageError):
        p.trichotomy("relu", depths=[0])
    with pytest.raises(UsageError):
        p.least_depth(HE, 1.0)
    with pytest.raises(EvaluationError, match="does not come"):
        p.least_depth(s.Design(tau("softplus")), 2)
    with pytest.raises(StudyError, match="activations"):
        p.architecture_type(s.parse_graph("x = input()\na = dense(x)"))
    with pytest.raises(UnknownName):
        s.resnet(2, HE, place="nowhere")


def test_S4b_28_case14_depth_for_a_target() -> None:
    for design in (s.Design("relu", 2, norm="batch"), s.Design(tau("relu", True))):
        found = p.least_depth(design, 2)
        assert (found.activations, found.macro_layers) == (4, 5)
        assert found.nlc.value == pytest.approx(2.1518, rel=1e-4)
    found = p.least_depth(HE, 2)
    assert found.activations == 6 and found.nlc.value == pytest.approx(2.1187, abs=5e-5)
    assert s.nlc(s.mlp(5, HE)).value == pytest.approx(1.946, abs=5e-4)
    assert (
        p.least_depth(lambda k: s.resnet(k, s.Design("relu", 2, norm="batch")), 1.3).activations > 4
    )


@settings(max_examples=8, deadline=None)
@given(st.floats(1.05, 8.0))
def test_S4b_28_the_depth_is_the_least(target: float) -> None:
    found = p.least_depth(HE, target)
    assert found.nlc.value >= target
    if found.activations > 1:
        assert s.nlc(s.mlp(found.activations - 1, HE)).value < target


TYPES = [
    ("softplus", "none", False, 1),
    ("gaussian", "none", False, 1),
    ("sigmoid", "none", False, 1),
    ("relu", "layer", False, 2),
    ("abs", "none", False, 2),
    ("even_tanh", "layer", False, 2),
    ("relu", "batch", False, 3),
    ("sigmoid", "none", True, 3),
    ("tanh", "none", False, 3),
    ("selu", "none", False, 3),
    ("swish", "none", False, 3),
    ("square", "layer", False, 3),
    ("odd_square", "layer", False, 3),
]


@pytest.mark.parametrize(("name", "norm", "debias", "wanted"), TYPES)
def test_S4b_27_case38_types(name: str, norm: Any, debias: bool, wanted: int) -> None:
    found = p.architecture_type(s.mlp(4, s.Design(tau(name, debias), norm=norm)))
    assert found.type == wanted


def test_S4b_27_even_tanh_is_chaotic_and_close_to_the_edge() -> None:
    network = s.mlp(4, s.Design(tau("even_tanh")))
    found = p.architecture_type(network)
    assert (found.type, found.case) == (2, 3)
    assert found.chi == pytest.approx(1.178, abs=5e-4)
    assert found.limit.value == pytest.approx(0.98658, abs=5e-6)
    assert p.architecture_type(network, close=1e-3).type == 3


def product(square: float, units: int, start: float) -> float:
    """The coefficient of units whose branch has n^2, at v = start, start + 1, ..."""
    total = lgamma(start + units + square) + lgamma(start + 1)
    return exp((total - lgamma(start + square) - lgamma(start + units + 1)) / 2)


def test_S4b_30_case15_residual_networks() -> None:
    batch = s.Design("relu", 2, norm="batch")
    found = p.residual_units(s.resnet(10, batch, HALF))
    square, share = pi / (pi - 1), 1 / (1 - 1 / pi)
    assert found[-1].total.value == pytest.approx(1.48947, abs=5e-6)
    assert [row.total.value for row in found] == pytest.approx(
        [product(square, m, share) for m in range(1, 11)], rel=1e-9
    )
    assert found[0].power == pytest.approx(0.23347, abs=5e-6)
    between = p.residual_units(s.resnet(10, batch, HALF, place="unit"))
    assert between[-1].total.value == pytest.approx(2.37914, abs=5e-6)
    assert between[4].total.value == pytest.approx(1.54245, abs=5e-6)
    assert [row.nlc.value for row in between] == pytest.approx([between[0].nlc.value] * 10)
    assert s.nlc(s.mlp(10, batch)).value == pytest.approx(6.79305, abs=5e-6)


def test_S4b_30_case16_linear_units() -> None:
    for place in ("block", "unit"):
        for norm in ("none", "layer", "batch"):
            network = s.resnet(4, s.Design(lambda x: x, 2, norm=norm), HALF, place=place)
            rows = p.residual_units(network)
            assert [row.total.value for row in rows] == pytest.approx([1.0] * 4, abs=1e-12)


def test_S4b_30_case17_weights_of_branches() -> None:
    for weight, wanted in ((0.25, 1.00950), (0.5, 1.03344), (2, 1.15830)):
        design = s.Design("relu", 2, norm="batch")
        (row,) = p.residual_units(s.resnet(1, design, HALF, branch=weight))
        assert row.nlc.value == pytest.approx(wanted, abs=6e-6)
        skip, branch = row.shares
        n = row.branches[1].value ** 2
        assert row.nlc.value**2 == pytest.approx(1 + branch.value * (n - 1), rel=1e-10)
        assert skip.value + branch.value == pytest.approx(1)


def test_S4b_30_case18_no_norm() -> None:
    rows = p.residual_units(s.resnet(10, HE, HALF))
    assert [row.square.value for row in rows] == pytest.approx([2.0**m for m in range(1, 11)])
    # Units of tanh that are not normalised grow, and so do their coefficients.
    tanh = p.residual_units(s.resnet(10, s.Design("tanh")))
    assert tanh[-1].branches[1].value > tanh[0].branches[1].value


def test_S4b_30_bias_of_residual_networks() -> None:
    rows = p.residual_units(s.resnet(50, s.Design("relu", 2, norm="batch"), HALF))
    found = [rows[k - 1].bias.value for k in (1, 10, 50)]
    assert found == pytest.approx([1.09054, 1.18626, 1.20567], abs=6e-6)
    layer = p.residual_units(s.resnet(50, s.Design("relu", 2, norm="layer"), HALF))
    for k, wanted in ((10, 1.33807), (50, 1.57055)):
        row = layer[k - 1]
        assert (row.total.value, row.bias.value) == pytest.approx((wanted, wanted), abs=6e-6)


def test_S4b_30_growth_is_a_power() -> None:
    rows = p.residual_units(s.resnet(80, s.Design("relu", 2, norm="batch"), HALF))
    found = log(rows[79].total.value / rows[39].total.value) / log(2)
    assert found == pytest.approx(rows[0].power, rel=0.05)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("units", "place", "measured"),
    [(1, "block", 1.0913), (5, "block", 1.3212), (10, "block", 1.4973), (5, "unit", 1.5503)],
)
def test_S4b_30_case15_networks_of_finite_width(units: int, place: Any, measured: float) -> None:
    network = s.resnet(units, s.Design("relu", 2, norm="batch", batch=250), HALF, place=place)
    limit = s.nlc(s.resnet(units, s.Design("relu", 2, norm="batch"), HALF, place=place)).value
    sampling = s.Sampling((400,), seeds=4, inputs=250)
    found = s.nonlinearity(network, sampling=sampling).measured[-1].value("NLC")
    assert found.mean.value == pytest.approx(limit, rel=0.03)
    assert found.mean.value == pytest.approx(measured, rel=0.03)


LINEAR = "x = input(1/2)\na = dense(x, 2)\n"


def test_S4b_31_a_skip_around_an_activation_is_an_interpolation() -> None:
    skip = s.parse_graph(LINEAR + "b = relu(a)\nc = 1*b + 0.7*a\nd = dense(c)")
    mixed = s.mlp(1, s.Design(lambda z: tp.relu(z) + 0.7 * z, 2), HALF)
    assert s.nlc(skip).value == pytest.approx(s.nlc(mixed).value, rel=1e-12)
    assert s.propagate(skip)[-1].square.value == pytest.approx(
        s.propagate(mixed)[-1].square.value / 2, rel=1e-12
    )


@pytest.mark.parametrize(
    ("name", "biases", "wanted"),
    [
        ("relu", 0, 1.21117), ("relu", 0.05, 1.20351), ("relu", 0.5, 1.15798),
        ("tanh", 0, 1.08527), ("tanh", 0.05, 1.08748), ("tanh", 0.5, 1.10112),
    ],
)  # fmt: skip
def test_S4b_32_case39_bias_vectors(name: str, biases: float, wanted: float) -> None:
    assert s.nlc(s.mlp(1, s.Design(name, 1, biases))).value == pytest.approx(wanted, abs=6e-6)


def test_S4b_32_scaling_vectors() -> None:
    """Start vectors that multiply layers have a coefficient of 1, and stretch lengths."""

    def scaled(t: Any, x: Any) -> Any:
        h = t.linear(t.n, "in", name="a")(x)
        return t.linear(1, t.n, name="c")(tp.tanh(h) * t.vector("g"))

    def plain(t: Any, x: Any) -> Any:
        h = t.linear(t.n, "in", name="a")(x)
        return t.linear(1, t.n, name="c")(tp.tanh(h))

    assert s.nlc(scaled).value == pytest.approx(s.nlc(plain).value, rel=1e-12)


def test_S4b_33_orthogonal_weights() -> None:
    """The same coefficient; of the Jacobian J J^T m_2 / m_1^2 is smaller by 1 for each layer."""
    for name, spread in (("selu", 2.753), ("relu", 3.317)):
        design = s.Design(tau(name))
        network = s.mlp(5, design)
        other = p.rewritten(network, p.orthogonal)
        assert s.nlc(other).value == s.nlc(network).value
        layer = s.LayerMap(tau(name), 1.0, square=1.0)
        gauss, haar = (
            s.spectra.singular_values(layer, family, 5).relative_variance.value
            for family in ("gaussian", "orthogonal")
        )
        assert sqrt(1 + gauss) == pytest.approx(spread, abs=1e-3)
        assert gauss - haar == pytest.approx(5)
        assert sqrt(1 + haar) == pytest.approx({"selu": 1.607, "relu": 2.449}[name], abs=1e-3)


def test_S4b_29_case19_norms_of_a_state() -> None:
    head = "x = input(1, 1/3)\na = dense(x, 3)\n"
    batch, layer = (
        s.propagate(s.parse_graph(head + f"b = {norm}(a)")) for norm in ("batch_norm", "layer_norm")
    )
    before = batch[-2]
    assert (before.square.value, before.comean.value) == pytest.approx((3, 1))
    for states, comean, factor in ((batch, 0, 1 / 2), (layer, 1 / 3, 1 / 3)):
        end = states[-1]
        assert (end.square.value, end.comean.value) == pytest.approx((1, comean))
        assert end.gradient / before.gradient == pytest.approx(factor)
    for norm in ("batch_norm", "layer_norm"):
        assert s.nlc(s.parse_graph(head + f"b = {norm}(a)"), 1, 2).value == pytest.approx(1)


def test_S4b_29_case20_special_pairs_through_batch_norm() -> None:
    text = "x = input(1, 0.2)\n"
    for k, read in ((1, "x"), (2, "c1")):
        text += f"a{k} = dense({read}, 1.3)\nb{k} = batch_norm(a{k})\nc{k} = tanh(b{k})\n"
    network = s.parse_graph(text)
    assert s.kernel_slope(network).value == pytest.approx(0.683721, abs=5e-7)
    kernel = s.activations.CovarianceKernel("tanh")

    def special(r: float) -> float:
        """The co-mean of the special pair after both blocks, by hand."""
        states, pair = s.propagate(network), r
        for at in (1, 4):
            q, c = 1.3 * states[at - 1].square.value, 1.3 * states[at - 1].comean.value
            pair = (1.3 * pair - c) / (q - c)
            one = states[at + 1].square
            pair = float(kernel.kernels.product(one, one, one * pair).value)
        return pair

    assert (special(1.0) - special(1 - 1e-5)) / 1e-5 == pytest.approx(0.683715, abs=5e-6)
    n = s.activations.LengthKernel("tanh").nlc([1.0]).value[0]
    assert s.nlc(network).value == pytest.approx(1.177807, abs=5e-7)
    assert s.nlc(network).value == pytest.approx(n**2, rel=1e-9)


def test_answers_show_themselves() -> None:
    network = s.resnet(2, s.Design("relu", 2, norm="batch"))
    for answer in (
        p.trichotomy("relu"), p.architecture_type(network), p.residual_units(network),
        p.layer_limits(network), p.least_depth(HE, 2),
    ):  # fmt: skip
        assert str(answer) and answer._repr_html_() and answer.to_dict()
