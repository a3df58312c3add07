"""NNGP and NTK of published networks (peers 5.1, 5.4; spec 0, case 34; spec 1, case A19)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from oracles.seed0_data import XI0, XI1

import tpcalc as tp
from tpcalc.errors import NotDifferentiable
from tpcalc.functions import Expr
from tpcalc.results import Kernel, Method

# Two inputs with x . x' / d = 1 on the diagonal and 1/2 beside it.
X = math.sqrt(2) * np.array([[1.0, 0.0], [0.5, math.sqrt(3) / 2]])


def hermite3(z: Expr) -> Expr:
    return (z**3 - 3 * z) / 6**0.5


def bump(z: Expr) -> Expr:
    return tp.exp(-(z**2))


def grown(z: Expr) -> Expr:
    return tp.exp(z - 1)


def biased(depth: int, act: str | Callable[[Expr], Expr], weights: str = "1") -> tp.MLP:
    return tp.MLP(depth, act, weight_variance=weights, bias_variance="1/100")


def residual(depth: int, alpha: str) -> tp.ResNet:
    return tp.ResNet(depth, "relu", alpha=alpha, weight_variance=2)


@dataclass(frozen=True)
class Row:
    """A row of the tables: K11, K12, T11, T12.

    ``fused``: the chain has a loop of its own, so that planes of layers are a second way to it.
    """

    net: tp.MLP | tp.ResNet
    entries: tuple[float, float, float, float]
    fused: bool = False


ROWS = {
    "relu-1": Row(
        tp.MLP(1, "relu", weight_variance=2), (1, 0.608997781044, 2, 0.942331114378), True
    ),
    "relu-3": Row(
        tp.MLP(3, "relu", weight_variance=2), (1, 0.738128192301, 4, 1.73784467922), True
    ),
    "relu-10": Row(
        tp.MLP(10, "relu", weight_variance=2), (1, 0.897646729807, 11, 4.10835152642), True
    ),
    "relu-30": Row(
        tp.MLP(30, "relu", weight_variance=2), (1, 0.974778670142, 31, 9.83540782676), True
    ),
    "erf-1": Row(
        biased(1, "erf", "9/4"),
        (0.610765546545, 0.269802703909, 1.51890323866, 0.557010067783),
        True,
    ),
    "erf-3": Row(
        biased(3, "erf", "9/4"),
        (0.497636964459, 0.18622974749, 3.16564568892, 0.777367377701),
        True,
    ),
    "erf-10": Row(
        biased(10, "erf", "9/4"),
        (0.481431998871, 0.111300561363, 20.6831169151, 1.17779335689),
        True,
    ),
    "erf-30": Row(
        biased(30, "erf", "9/4"),
        (0.481411182766, 0.0490451822172, 1571.32431391, 0.737849078581),
        True,
    ),
    "gelu-1": Row(
        biased(1, "gelu", "9/4"),
        (1.05278514853, 0.588054799511, 2.16825021127, 0.984384499072),
        True,
    ),
    "gelu-10": Row(
        biased(10, "gelu", "9/4"),
        (1.99012298718, 1.56281704217, 28.2773131972, 7.61157861613),
        True,
    ),
    "sin-3": Row(
        biased(3, "sin"), (0.227849347531, 0.104930872654, 1.01625863404, 0.412825632804), True
    ),
    "leaky-relu-10": Row(
        tp.MLP(10, "leaky_relu:0.2", weight_variance="200/104"),
        (1, 0.830909887786, 11, 4.39453656754),
        True,
    ),
    "abs-30": Row(biased(30, "abs"), (1.3, 1.29141521181, 35.95, 12.0284202364), True),
    "exp-normalized-3": Row(tp.MLP(3, grown), (1, 0.722319298425, 4, 1.65307269966), True),
    "hermite-3-1": Row(tp.MLP(1, hermite3), (1, 0.125, 4, 0.5), True),
    "exp-minus-square-10": Row(
        biased(10, bump), (0.554148116482, 0.554135234697, 0.905778267772, 0.905223561847), True
    ),
    "gaussian-10": Row(
        biased(10, "gaussian"),
        (0.554148116482, 0.554135234697, 0.905778267772, 0.905223561847),
        True,
    ),
    "ln-relu-2": Row(
        tp.MLP(2, "relu", weight_variance=2, norm="layer"),
        (0.5, 0.341952825449, 1.5, 0.675739780561),
    ),
    "residual-1/2-4": Row(
        residual(4, "1/2"), (2.44140625, 1.4137600224, 6.8359375, 3.47061027295), True
    ),
    "residual-1/2-16": Row(
        residual(16, "1/2"), (2.63792849737, 1.55433349686, 7.75861322755, 3.92011230511), True
    ),
    "residual-1/2-64": Row(
        residual(64, "1/2"), (2.69734495257, 1.59735224911, 8.05053724304, 4.06062793154), True
    ),
    "residual-1-4": Row(
        residual(4, "1"), (1.27442932129, 0.668958200868, 2.84872436523, 1.43742460355), True
    ),
    "residual-1-64": Row(
        residual(64, "1"), (1.01574577152, 0.509597948094, 2.0473586969, 1.02448270895), True
    ),
}
CLOSURE = [name for name, row in ROWS.items() if row.fused and not name.endswith("64")]
QUADRATURE = [name for name in ROWS if name.split("-")[-1] in ("1", "2", "3", "4")]
PARTICLES = ["relu-3", "erf-3", "gelu-1", "sin-3", "ln-relu-2", "residual-1/2-4"]


def entries(found: Kernel) -> list[float]:
    assert found.nngp is not None
    assert found.ntk is not None
    return [*found.nngp[0].tolist(), *found.ntk[0].tolist()]


def scales(row: Row) -> list[float]:
    """What errors of a kernel are in units of: the two inputs have the same diagonal."""
    return [row.entries[0]] * 2 + [row.entries[2]] * 2


def every_layer(net: tp.MLP | tp.ResNet) -> Kernel:
    """The kernel by planes of layers, not from a compiled chain."""
    return tp.kernel(net, X, layers=range(1, net.hidden + 2))


@pytest.mark.parametrize("name", list(ROWS))
def test_peers_5_1(name: str) -> None:
    """Each entry to 1e-11 by closed forms, and its own bound says so."""
    row = ROWS[name]
    found = tp.kernel(row.net, X)
    assert entries(found) == pytest.approx(row.entries, rel=1e-11)
    assert found.method is Method.EXACT
    assert 0 < found.error < 1e-10
    assert found.independent is True
    route = dict(found.provenance.settings)["route"]
    assert (route == "planes of layers") != row.fused


@pytest.mark.slow
@pytest.mark.parametrize("name", CLOSURE)
def test_peers_5_1_by_planes_of_layers(name: str) -> None:
    """What has a compiled chain has planes as well, within both bounds."""
    row = ROWS[name]
    found, chain = every_layer(row.net), tp.kernel(row.net, X)
    assert entries(found) == pytest.approx(row.entries, rel=1e-11)
    assert found.method is Method.EXACT
    assert found.error < (1e-9 if name == "erf-10" else 1e-10)
    for own, other, scale in zip(entries(found), entries(chain), scales(row), strict=True):
        assert abs(own - other) <= (found.error + chain.error) * scale


@pytest.mark.parametrize("name", QUADRATURE)
def test_peers_5_1_by_quadrature(name: str) -> None:
    """The same integrals without a closed form, within both bounds."""
    row = ROWS[name]
    found, exact = tp.kernel(row.net, X, method="quadrature"), tp.kernel(row.net, X)
    assert entries(found) == pytest.approx(row.entries, rel=1e-11)
    assert found.method is Method.QUADRATURE
    assert found.error < 1e-10
    for own, other, scale in zip(entries(found), entries(exact), scales(row), strict=True):
        assert abs(own - other) <= (found.error + exact.error) * scale


@pytest.mark.parametrize("name", PARTICLES)
def test_peers_5_1_by_particles(name: str) -> None:
    """Within five standard errors, which are small."""
    row = ROWS[name]
    found = tp.kernel(row.net, X, method="particles", seed=3)
    assert found.method is Method.PARTICLES
    assert 0 < found.error < 3e-3
    for own, value, scale in zip(entries(found), row.entries, scales(row), strict=True):
        assert abs(own - value) < 5 * found.error * scale


def test_peers_5_1_tanh() -> None:
    """The printed row is a quadrature of degree 100: its T11 is off by 2.7e-6.

    So the entries are compared with integrals of another rule as well (trapezia, 1e-13 here).
    """
    printed = (0.541419740813, 0.244885896206, 1.29029967517, 0.503124548988)
    found = tp.kernel(biased(1, "tanh", "9/4"), X)
    assert entries(found) == pytest.approx(printed, rel=3e-6)
    assert found.method is Method.QUADRATURE
    assert found.error < 1e-12
    grid = np.linspace(-10, 10, 1601)
    weight = np.exp(-(grid**2) / 2)
    weight /= weight.sum()
    own, cross = 9 / 4 + 0.01, 9 / 8 + 0.01  # after the first layer
    left = math.sqrt(own) * grid[:, None]
    right = cross / math.sqrt(own) * grid[:, None] + math.sqrt(own - cross**2 / own) * grid
    pair = weight[:, None] * weight

    def mean(values: np.ndarray) -> float:
        return float(np.sum(pair * values))

    def slope(z: np.ndarray) -> np.ndarray:
        return 1 - np.tanh(z) ** 2

    diagonal = mean(np.tanh(left) ** 2), mean(slope(left) ** 2)
    beside = mean(np.tanh(left) * np.tanh(right)), mean(slope(left) * slope(right))
    expected = (
        *(diagonal[0], beside[0]),
        *(diagonal[0] + own * diagonal[1], beside[0] + cross * beside[1]),
    )
    assert entries(found) == pytest.approx(expected, rel=1e-11)


def test_peers_5_1_sign() -> None:
    """A jump has no tangent kernel; the row's T = K is what the readout alone gives."""
    net = biased(3, "sign")
    found = tp.kernel(net, X, kinds="nngp")
    assert found.ntk is None
    assert found.nngp is not None
    assert found.nngp[0] == pytest.approx([1, 0.148363382909], rel=1e-11)
    with pytest.raises(NotDifferentiable, match="sign"):
        tp.kernel(net, X)
    readout = tp.kernel(net, X, layers=[net.depth + 1])
    assert entries(readout) == pytest.approx([1, 0.148363382909] * 2, rel=1e-11)


@pytest.mark.parametrize("power", [1, 2])
def test_residual_relu_grows_as_printed(power: int) -> None:
    """K11 = (1 + L^(-2 alpha))^L."""
    for depth in (1, 3, 64):
        found = tp.kernel(residual(depth, f"{power}/2"), X[:1], kinds="nngp")
        assert found.nngp == pytest.approx((1 + depth**-power) ** depth, rel=1e-12)


def rnn(gram: list[list[float]], **variances: Any) -> Kernel:
    """Two sequences of two tokens each, with this Gram matrix of the four tokens."""
    root = np.linalg.cholesky(np.array(gram) + 1e-30 * np.eye(4))
    net = tp.RNN(2, "erf", outputs="all", **variances)
    return tp.kernel(net, root.reshape(2, 8), scale=1)


def test_peers_5_4_orthonormal_tokens() -> None:
    found = rnn(np.eye(4).tolist())
    assert found.nngp is not None
    assert found.nngp.shape == (2, 2, 2, 2)
    expected = np.diag([0.4645590544, 0.5355688912, 0.4645590544, 0.5355688912])
    np.testing.assert_allclose(found.nngp.reshape(4, 4), expected, rtol=0, atol=6e-11)
    assert found.method is Method.EXACT


def test_peers_5_4_correlated_tokens() -> None:
    """The same sequence twice. The printed numbers hold the factor 2, the variance of W."""
    tokens = np.linalg.cholesky(np.array([[1, 0.5], [0.5, 1]])).reshape(1, 4)
    net = tp.RNN(2, "erf", weight_variance=2, bias_variance="1/10", outputs="all")
    found = tp.kernel(net, np.repeat(tokens, 2, axis=0), scale=1)
    assert found.nngp is not None
    block = np.array([[0.9651674791, 0.3828310051], [0.3828310051, 1.1915127585]]) / 2
    np.testing.assert_allclose(found.nngp.reshape(4, 4), np.tile(block, (2, 2)), atol=6e-11)


def test_S0_29_case34() -> None:
    """NTK, ReLU, L = 3, a bias in the first layer; at finite width it is .4181, .4165, .4324."""
    found = tp.kernel(tp.MLP(3, "relu", bias="first"), [XI0, XI1], kinds="ntk", scale=1)
    assert found.ntk is not None
    assert found.ntk[0, 1] == pytest.approx(0.420084, abs=5e-7)
    assert found.error < 1e-12
    assert found.independent is True


@pytest.mark.parametrize(("bias", "last"), [("all", 0.0025), ("hidden", 0.0)])
def test_all_biases_have_the_variance(bias: str, last: float) -> None:
    """The readout's too, as of stax.Dense(..., b_std=0.05) in every layer; a recursion by hand."""
    draws = np.random.default_rng(0).standard_normal((4, 5))
    nngp = draws @ draws.T / 5 * 2 + 0.0025
    ntk = nngp.copy()
    for weights, shift in ((2.0, 0.0025), (2.0, 0.0025), (1.0, last)):
        sizes = np.sqrt(np.diag(nngp))
        cosine = np.clip(nngp / np.outer(sizes, sizes), -1, 1)
        angle = np.arccos(cosine)
        below = (np.sqrt(1 - cosine**2) + (np.pi - angle) * cosine) * np.outer(sizes, sizes)
        nngp = weights * below / (2 * np.pi) + shift
        ntk = nngp + ntk * weights * (np.pi - angle) / (2 * np.pi)
    found = tp.kernel(tp.MLP(3, "relu", bias=bias, weight_variance=2, bias_variance=0.0025), draws)
    assert found.nngp is not None and found.ntk is not None
    np.testing.assert_allclose(found.nngp, nngp, rtol=1e-12)
    np.testing.assert_allclose(found.ntk, ntk, rtol=1e-7)  # angles near 0 are roots of rounding


def centred(depth: int, act: Callable[[Expr], Expr]) -> tp.Program:
    """x^l = x^(l-1) + L^(-1/2) MS(act(W x^(l-1))), MS(y) = y - its mean over coordinates."""

    @tp.program
    def residual(t: tp.Tracer) -> None:
        x = t.gaussian("U")
        for layer in range(depth):
            y = act(tp.n**-0.5 * (t.matrix(f"W{layer}") @ x))
            x = x + depth**-0.5 * (y - tp.mean(y))
        t.output("f", tp.n**0.5 * t.inner(t.gaussian("V"), x))

    return residual.build()


@pytest.mark.slow
@pytest.mark.parametrize("depth", [1, 2, 16, 64])
@pytest.mark.parametrize(
    ("act", "k", "v"),
    [(tp.relu, 1 / 2 - 1 / (2 * math.pi), 1 / 2), (tp.abs, 1 - 2 / math.pi, 1)],
    ids=["relu", "abs"],
)
def test_S1_7_A19(act: Callable[[Expr], Expr], k: float, v: float, depth: int) -> None:
    """Forward (1 + k/L)^L; Theta_L = v/L sum_l (1 + k/L)^(l-1) (1 + v/L)^(L-l), W trained."""
    names = [f"W{layer}" for layer in range(depth)]
    found = tp.kernel(centred(depth, act), trained=names)
    assert found.nngp == pytest.approx((1 + k / depth) ** depth, rel=1e-12)
    forward, back = 1 + k / depth, 1 + v / depth
    theta = v / depth * sum(forward**i * back ** (depth - 1 - i) for i in range(depth))
    assert found.ntk == pytest.approx(theta, rel=1e-12)
    printed = {16: 1.893721, 64: 1.980208}.get(depth)
    if act is tp.abs and printed is not None:
        assert found.ntk == pytest.approx(printed, abs=5e-7)
    assert found.method is Method.EXACT
    assert found.independent is True
