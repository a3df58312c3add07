"""Networks with kinks that see an input again, normalised networks, classes without samples.

Where a ReLU network of an integrable parameterization sees an input again, sums of gated terms
meet the gate that made them. Truths: a derivation by hand for two layers, networks of finite width
and the product with smoothed gates elsewhere (their standard errors stand beside each number).
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from agree import agree
from oracles.seed0_data import XI0, XI1, XI2

import tpcalc as tp
from tpcalc.results import Estimate, Method

PHI = 1 / math.sqrt(2 * math.pi)  # E v 1_{v > 0} of a standard Gaussian
LATER = 0.5  # the rate after the first step


def known(value: float, error: float) -> Estimate:
    return Estimate(value, error, Method.PARTICLES)


def repeated(depth: int, first: float, data: tp.Samples, bias: str = "none") -> tp.Limit:
    """Two steps of IP-LLR with ReLU and linear loss; the rates are ``first``, then 1/2."""
    program = tp.train(
        tp.MLP(depth, "relu", bias=bias),
        "ip-llr",
        data,
        steps=2,
        loss="linear",
        lr=lambda layer, step: Fraction(first if step == 0 else LATER),
    )
    return tp.limit(program, outputs=["f*", "dh[1,2,0]"])


def by_hand(square: float, a: float, b: float) -> tuple[float, float, float]:
    """f_1, f_2 and E (n dh^1_2)^2 of two layers on one sample with |x|^2 = square, rates a and b.

    With h^1_0 = g, z and z' the products of W^2 with x^1_0 and x^1_1, v the readout: the gate of
    layer 2 at step 1 is 1_{v > 0} where z > 0, where v moved it, and 1_{z' > 0} elsewhere.
    """
    nodes, weights = np.polynomial.legendre.leggauss(300)
    far = 9 * math.sqrt(square)
    g = (nodes + 1) / 2 * far
    low = np.maximum(-g / (a * square), -9.0)[:, None]  # below it h^1_1 = g + a |x|^2 y < 0
    y = low + (nodes + 1) / 2 * (9.0 - low)
    mass = (weights * far / 2 * np.exp(-(g**2) / (2 * square)))[:, None] * PHI / math.sqrt(square)
    mass = mass * weights * (9.0 - low) / 2 * np.exp(-(y**2)) / math.sqrt(math.pi)
    g, h = np.broadcast_to(g[:, None], y.shape), g[:, None] + a * square * y

    def mean(values: np.ndarray) -> float:
        return float((mass * values).sum())

    spread = math.sqrt(square / 2)  # of z
    vv, vz, zz = 1 / 4, PHI**2 * spread, square / 8  # E v^2, v z, z^2 where v > 0 and z > 0

    def product(p: float, q: float, r: float, s: float) -> float:
        """E (p v + q z)(r v + s z) where v > 0 and z > 0."""
        return p * r * vv + (p * s + q * r) * vz + q * s * zz

    once = product(1, 0, 1, a)
    again = h + b * square * a * once * g
    x01, x02, x12 = mean(g * h), mean(g * again), mean(h * again)
    opened = 1 / 4 - math.asin(x01 / spread / math.sqrt(mean(h * h))) / (2 * math.pi)
    readout = (1 + a * b * x01, a)
    second = product(*readout, a * x02 + b * x12, a * b * x12) + opened * b * x12 / 2
    first, other = product(1, 0, *readout), product(1, a, *readout) + opened / 2
    gradient = mean((a * g * first + b * h * other) ** 2)
    return a * x01 * once, second, gradient


@pytest.mark.parametrize(("square", "first"), [(1.25, 2.0), (1.0, 4.0), (2.0, 0.5)])
def test_two_layers_on_one_sample_by_hand(square: float, first: float) -> None:
    data = tp.Samples(((math.sqrt(square),),), ((1.0,),))
    found = repeated(2, first, data)
    values = found["f[1,0]"], found["f[2,0]"], found["dh[1,2,0]"].second_moment
    assert str(found["dh[1,2,0]"].n_power) == "-1"
    for value, truth in zip(values, by_hand(square, first, LATER), strict=True):
        agree(value, truth)


@pytest.mark.parametrize(
    ("depth", "first", "output", "gradient"),
    [
        (2, 2.0, known(4.2062, 0.0019), known(5.2024, 0.0030)),
        (3, 4.0, known(11.353, 0.010), known(25.559, 0.037)),
    ],
)
def test_two_samples_in_turn(
    depth: int, first: float, output: Estimate, gradient: Estimate
) -> None:
    """Networks of width 65536: 4.193 +- 0.017 and 5.179 +- 0.029, 11.46 +- 0.10, 25.94 +- 0.36."""
    found = repeated(depth, first, tp.Samples((XI0, XI1), ((1.0,), (-1.0,))), "first")
    agree(found["f[2,0]"], output)
    agree(found["dh[1,2,0]"].second_moment, gradient)


def test_layer_norm_with_relu() -> None:
    """Networks of width 65536: 0.3106 +- 0.0006 and 0.4000 +- 0.0005."""
    data = tp.Samples((XI0, XI1, XI2), ((1.0,), (0.5,), (-0.5,)))
    program = tp.train(tp.MLP(2, "relu", norm="layer"), "mup", data, steps=2)
    found = tp.limit(program, outputs=["f*"])
    agree(found["f[1,0]"], known(0.310665, 0.00014))
    agree(found["f[2,0]"], known(0.399586, 0.0002))


def test_one_step_of_a_normalised_network_is_its_kernel() -> None:
    """With linear loss and the rate 1, f_1 - f_0 is the NTK of both inputs, and f_0 has mean 0."""
    net = tp.MLP(2, "gelu", norm="layer")
    data = tp.Samples((XI0,), ((1.0,),))
    program = tp.train(net, "ntk", data, loss="linear", queries=(XI1,))
    found = tp.limit(program, outputs=["f*"])
    kernel = tp.kernel(net, [XI0, XI1])
    assert kernel.independent
    for place, output in enumerate(("f[1,0]", "f[1,1]")):
        entry = kernel.ntk[0, place]
        assert found[output].value == pytest.approx(entry, abs=1e-9)
    assert kernel.ntk[0, 1] == pytest.approx(0.14808454, abs=5e-9)


def test_a_class_without_samples_stays_exactly_0() -> None:
    """Two samples of two of three classes: the gradient of the third output is 0 in the limit."""
    data = tp.digits((0, 1, 2), 2, encoding="onehot")
    (absent,) = (k for k in range(3) if not any(row[k] for row in data.targets))
    found = tp.limit(tp.train(tp.MLP(2, "relu"), "mup", data, steps=4), outputs=["f*"])
    for step in range(5):
        assert str(found[f"f[{step},0,{absent}]"]) == "0 (exact)"
    assert found[f"f[4,0,{(absent + 1) % 3}]"].value != 0


# -- layers that are one number on all coordinates: 24 networks of width 65536 -------------------

ROW0, ROW1 = (1.0, 0.5, -0.5, 0.25, 0.0, 1.0), (-0.5, 1.0, 0.75, 0.0, 0.5, -0.25)


def test_a_layer_that_is_one_number_keeps_its_gates() -> None:
    """Preactivations of IP-non-centered are numbers in layer 2; the weights of all layers move."""
    data = tp.Samples((ROW0, ROW1), ((1.0, 0.0), (0.0, 1.0)))
    found = tp.limit(tp.train(tp.MLP(3, "relu"), "ip-non-centered", data, steps=2, batch=2))
    agree(found["f[1,0,0]"], known(0.247813, 0.0014))
    agree(found["f[2,0,0]"], known(0.709670, 0.0014))
    agree(found["f[2,1,1]"], known(0.696749, 0.00061))
    for name, square in (
        ("dh[1,1,0]", known(0.0428857, 0.00019)),
        ("dh[1,2,1]", known(0.0715402, 0.00054)),
    ):
        assert str(found[name].n_power) == "-1"
        agree(found[name].second_moment, square)


def test_a_layer_that_is_one_negative_number_is_shut() -> None:
    """All gates of layer 2 are shut at step 2: outputs and gradients are 0 in every network."""
    data = tp.Samples((ROW0, ROW1), ((1.0,), (-1.0,)))
    program = tp.train(tp.MLP(3, "relu"), "ip-non-centered", data, steps=2)
    found = tp.limit(program)
    agree(found["f[1,0]"], known(1.05342, 0.0014))
    agree(found["h[2,2,0]"].second_moment, known(2.10896, 0.036))
    assert str(found["f[2,0]"]) == "0 (exact)"
    for name in ("x[2,2,0]", "h[3,2,0]", "dh[3,2,0]", "dx[1,2,0]"):
        assert found[name].second_moment.value == 0
    networks = tp.simulate(program, widths=[4096], seeds=3)
    assert all(v == 0 for row in networks.rows if row.name == "f[2,0]" for v in row.values)
