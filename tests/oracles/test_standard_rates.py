"""Tangent kernels with a rate and a variance for each weight, by a recursion of their own.

Standard parameterization at finite widths: W ~ N(0, s_W^2 / n_in) and b ~ N(0, s_b^2), all of one
learning rate. A weight of n_in inputs then adds n_in times the second moment of these inputs to the
kernel of its layer, a bias adds 1 (Sohl-Dickstein and others, 2001.07301, equation 15).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import tpcalc as tp
from tpcalc.errors import ScaleError, StudyError

Array = NDArray[np.float64]
X = np.random.default_rng(0).normal(size=(4, 3))
X[3] = -0.5 * X[2]


def arc(gram: Array) -> tuple[Array, Array]:
    """E relu(u) relu(v) and E relu'(u) relu'(v), by Cho and Saul; relu'(0) = 0."""
    sizes = np.sqrt(np.diag(gram))
    scale = np.outer(sizes, sizes)
    cosine = np.clip(np.divide(gram, scale, out=np.ones_like(gram), where=scale > 0), -1, 1)
    angle = np.arccos(cosine)
    value = scale * (np.sin(angle) + (math.pi - angle) * cosine) / (2 * math.pi)
    return value, np.where(scale > 0, (math.pi - angle) / (2 * math.pi), 0.0)


def recursion(
    inputs: Array,
    weights: list[float],
    biases: list[float] | None,
    weight_rates: list[float],
    bias_rates: list[float],
) -> tuple[Array, Array]:
    """NNGP and NTK of a relu network; the readout has variance 1.

    Args:
        inputs: Of shape (N, d); inner products are divided by d.
        weights: The variance of the weights of each hidden layer.
        biases: That of their biases; None: there are none. The readout has no bias.
        weight_rates: What the gradient of each layer's weights w, of variance s_W^2, counts.
        bias_rates: What that of its biases does.
    """
    below = inputs @ inputs.T / inputs.shape[1]
    tangent = np.zeros_like(below)
    for layer, variance in enumerate(weights):
        shift = 0.0 if biases is None else biases[layer]
        gram = variance * below + shift
        here = weight_rates[layer] * below + (0.0 if biases is None else bias_rates[layer])
        tangent = here + variance * tangent
        below, slopes = arc(gram)
        tangent = tangent * slopes
    return below, weight_rates[-1] * below + tangent


@pytest.mark.parametrize(
    "widths",
    [
        (3, 64, 128, 32),
        pytest.param((3, 1, 1, 1), marks=pytest.mark.slow),
        pytest.param((1, 0, 5, "1/2"), marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("weights", [(2, 2, 2), (1.5, "1/3", 2), (2, 0, 1), (0, 1, 2), (1, 2, 0)])
@pytest.mark.parametrize("biases", [None, 0, "1/10"])
def test_standard_parameterization_at_finite_widths(
    widths: tuple[Any, ...], weights: tuple[Any, ...], biases: Any
) -> None:
    net = tp.MLP(
        3,
        "relu",
        bias="none" if biases is None else "hidden",
        weight_variance=weights,
        bias_variance=biases,
        variances="initial",
        weight_rate=widths,
    )
    found = tp.kernel(net, X)

    def number(value: Any) -> float:
        return 0.5 if value == "1/2" else 1 / 3 if value == "1/3" else float(value)

    shift = None if biases is None else [0.1 if biases else 0.0] * 3
    nngp, ntk = recursion(
        X, [number(v) for v in weights], shift, [number(w) for w in widths], [1.0] * 4
    )
    assert found.nngp is not None and found.ntk is not None
    # Angles near 0 and pi are roots of rounding errors of cosines.
    atol = 2e-7 * max(np.abs(ntk).max(), 1)
    np.testing.assert_allclose(found.nngp, nngp, rtol=1e-9, atol=atol)
    np.testing.assert_allclose(found.ntk, ntk, rtol=1e-9, atol=atol)


def empirical(width: int, seed: int) -> Array:
    """The tangent kernel of one tanh network in standard parameterization, by hand."""
    rng = np.random.default_rng(seed)
    first = rng.normal(size=(width, 3)) * (1.5 / 3) ** 0.5
    second = rng.normal(size=(width, width)) * (2.0 / width) ** 0.5
    readout = rng.normal(size=width) / width**0.5
    shifts = rng.normal(size=(2, width)) * 0.3
    x1 = np.tanh(X @ first.T + shifts[0])
    x2 = np.tanh(x1 @ second.T + shifts[1])
    back2 = readout * (1 - x2**2)
    back1 = (back2 @ second) * (1 - x1**2)
    kernel: Array = x2 @ x2.T
    kernel += (back2 @ back2.T) * (x1 @ x1.T + 1) + (back1 @ back1.T) * (X @ X.T + 1)
    return kernel


def test_networks_of_finite_width_in_standard_parameterization() -> None:
    width, seeds = 400, 40
    net = tp.MLP(
        2,
        "tanh",
        "hidden",
        weight_variance=(1.5, 2),
        bias_variance=0.09,
        variances="initial",
        weight_rate=(3, width, width),
    )
    found = tp.kernel(net, X).ntk
    assert found is not None
    kernels = np.array([empirical(width, seed) for seed in range(seeds)])
    error = kernels.std(axis=0, ddof=1) / seeds**0.5
    # Beside the scatter a bias of 1/n of the kernel's size, times a few.
    allowed = 5 * error + 10 * np.abs(found).max() / width
    assert (np.abs(kernels.mean(axis=0) - found) < allowed).all()
    assert (error < 0.02 * np.abs(found).max()).all()


def trained_by_hand(width: int, seed: int, steps: int) -> float:
    """f after some steps of a muP network whose second layer and biases start at 0."""
    rng = np.random.default_rng(seed)
    x, y, lr = np.array([1.0, 0.5]), 1.0, 0.3
    first, second = rng.normal(size=(width, 2)), np.zeros((width, width))
    readout, shift = rng.normal(size=width), np.zeros((2, width))
    for step in range(steps + 1):
        h1 = first @ x + shift[0]
        x1 = np.tanh(h1)
        h2 = width**-0.5 * second @ x1 + shift[1]
        x2 = np.tanh(h2)
        f = readout @ x2 / width
        if step == steps:
            break
        chi = f - y
        back2 = readout / width * (1 - x2**2)
        back1 = width**-0.5 * (second.T @ back2) * (1 - x1**2)
        rate = lr * width * chi
        readout = readout - rate * 0.5 * x2 / width
        second = second - rate * 3 * width**-0.5 * np.outer(back2, x1)
        first = first - rate * np.outer(back1, x)
        shift = shift - rate * 2 * np.array([back1, back2])
    return float(f)


def test_layers_that_start_at_0_are_trained() -> None:
    net = tp.MLP(
        2,
        "tanh",
        "hidden",
        weight_variance=(1, 0),
        bias_variance=0,
        variances="initial",
        weight_rate=(1, 3, "1/2"),
        bias_rate=2,
    )
    data = tp.Samples(((1.0, 0.5),), ((1.0,),))
    program = tp.train(net, "mup", data, steps=3, lr=0.3, watch=("h",))
    seeds, width = 200, 128
    table = tp.simulate(program, widths=(width,), seeds=seeds, seed=1000)
    for step in range(4):
        (row,) = (row for row in table.rows if row.name == f"f[{step},0]")
        mine = np.array([trained_by_hand(width, seed, step) for seed in range(seeds)])
        error = math.hypot(mine.std(ddof=1), np.std(row.values, ddof=1)) / seeds**0.5
        assert abs(mine.mean() - np.mean(row.values)) <= 5 * error
    # The outputs that move: 0 at the start, where nothing reaches the readout, and then not.
    found = tp.limit(program, outputs=["f*"])
    assert found["f[0,0]"].value == 0 and found["f[3,0]"].value > 0.1
    assert abs(mine.mean() - found["f[3,0]"].value) < 5 * mine.std() / seeds**0.5 + 10 / width
    assert tp.check(net, "mup", data, steps=1).verdict == "feature-learning"


def test_kernels_of_programs_take_a_rate_for_each_weight() -> None:
    @tp.program
    def two(t: tp.Tracer) -> None:
        z, v = t.gaussian("z"), t.gaussian("v")
        x = tp.tanh(tp.n**-0.5 * (t.matrix("W") @ tp.tanh(z)))
        shift = t.random_scalar("b", std=0) + 0 * t.random_scalar("c")
        t.gaussian("unused")
        t.output("f", tp.n**0.5 * t.inner(v, x) + shift)

    def ntk(trained: Any) -> float:
        found = tp.kernel(two, kinds=["ntk"], trained=trained).ntk
        assert found is not None
        return float(found[0, 0])

    parts = {name: ntk([name]) for name in ("W", "v", "b")}
    assert parts["b"] == 1 and ntk(["c"]) == ntk(["unused"]) == 0
    assert ntk({"W": 64, "v": 0.5, "b": 3, "unused": 7}) == pytest.approx(
        64 * parts["W"] + 0.5 * parts["v"] + 3
    )
    assert ntk(None) == pytest.approx(parts["W"] + parts["v"] + ntk(["z"]))


def test_what_the_standard_parameterization_asks_for() -> None:
    with pytest.raises(ScaleError, match=r"weight_rate=\(d, n_1, ..., n_L\)"):
        tp.kernel(tp.MLP(2, "relu"), X, parameterization="standard")
    with pytest.raises(StudyError, match="variances='initial'"):
        tp.MLP(2, weight_variance=(0, 1))
