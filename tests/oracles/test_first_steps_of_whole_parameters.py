"""First steps that are functions of whole parameters: slopes of explicit networks, in numpy alone.

What a step adds to the output to first order, <gradient, step>, at four widths: gradients of a
perceptron by hand, steps by the formulas of the papers. No text of an optimizer is read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tpcalc as tp
from tpcalc.arrays import Array

WIDTHS, SEEDS = (32, 64, 128, 256), 8
INPUTS = np.array([[1.0, 0.4, -0.3], [-0.5, 1.1, 0.6], [0.8, -0.9, 0.2], [0.3, 1.0, -1.2]])
PROBE = np.array([1.0, 0.7, 1.3, -0.6])
NAMES = ("W1", "W2", "W3")
Weights = list[Array]
Step = Callable[[Array, Array], Array]


def start(width: int, seed: int) -> Weights:
    """The standard parameterization: entries n^0, n^(-1/2), n^(-1/2)."""
    rng = np.random.default_rng([width, seed])
    shapes = ((width, 3), (width, width), (1, width))
    return [
        rng.standard_normal(shape) * scale
        for shape, scale in zip(shapes, (1, width**-0.5, width**-0.5), strict=True)
    ]


def gradients(weights: Weights) -> Weights:
    """The gradients of a fixed combination of the outputs at all inputs."""
    first, second, last = weights
    x1 = np.tanh(first @ INPUTS.T)
    x2 = np.tanh(second @ x1)
    down2 = (last.T @ PROBE[None]) * (1 - x2**2)
    down1 = (second.T @ down2) * (1 - x1**2)
    return [down1 @ INPUTS, down2 @ x1.T, PROBE[None] @ x2.T]


def polar(gradient: Array) -> Array:
    """The directions of the singular values that are not rounding."""
    left, values, right = np.linalg.svd(gradient, full_matrices=False)
    rank = int(np.sum(values > 1e-10 * values[0]))
    return left[:, :rank] @ right[:rank]


def spectral(factor: Callable[[int, int], float]) -> Step:
    """Muon with a factor of the shape."""
    return lambda w, g: polar(g) * factor(*w.shape)


def factored(w: Array, g: Array) -> Array:
    """Adafactor, clipped at 1, with the scale of the weight."""
    square = g**2
    means = np.outer(square.mean(1), square.mean(0)) / square.mean()
    move = g / np.sqrt(means)
    scale = np.sqrt(np.mean(w**2))
    return scale * move / max(1.0, float(np.sqrt(np.mean(move**2))))


def norm(x: Array) -> float:
    """The Frobenius norm."""
    return float(np.linalg.norm(x))


STEPS: dict[str, Step] = {
    "muon": spectral(lambda rows, cols: max(1.0, rows / cols) ** 0.5),
    "muon-spectral": spectral(lambda rows, cols: (rows / cols) ** 0.5),
    "muon-rms": spectral(lambda rows, cols: 0.2 * max(rows, cols) ** 0.5),
    "lamb": lambda w, g: np.sign(g) * norm(w) / norm(np.sign(g)),
    "lars": lambda w, g: g * norm(w) / norm(g),
    "adafactor": factored,
}


def slopes(terms: Callable[[Weights, Weights], list[float]]) -> tuple[Array, Array]:
    """Slopes of three positive terms over the widths, with standard errors, by parameter."""
    logs = np.array(
        [
            [np.log(terms(w, gradients(w))) for w in (start(n, seed) for seed in range(SEEDS))]
            for n in WIDTHS
        ]
    )
    x = np.log(WIDTHS) - np.mean(np.log(WIDTHS))
    own = np.tensordot(x, logs, (0, 0)) / (x @ x)
    return own.mean(0), own.std(0, ddof=1) / SEEDS**0.5


def agree(found: tp.FirstOrder, terms: Callable[[Weights, Weights], list[float]]) -> None:
    """Powers against slopes: 5 standard errors, and 0.1 for what widths of 32 to 256 add."""
    slope, error = slopes(terms)
    for name, own, sigma in zip(NAMES, slope, error, strict=True):
        power = found[name].output.constant
        assert power is not None and abs(own - float(power)) < 0.1 + 5 * sigma, (name, own, sigma)


def judged(optimizer: str, **settings: Any) -> tp.FirstOrder:
    """The answer for the same network, with all samples in one gradient."""
    net = tp.MLP(2, "tanh")
    return tp.first_order(net, "standard", optimizer=optimizer, measure=None, **settings)


@pytest.mark.parametrize(
    "optimizer",
    [
        pytest.param(name, marks=pytest.mark.slow) if name.startswith("muon") else name
        for name in STEPS
    ],
)
def test_terms_of_the_catalogue(optimizer: str) -> None:
    """Muon for all matrices here; by default it is that of hidden ones."""
    groups = {role: {"optimizer": optimizer} for role in ("input", "readout")}
    step = STEPS[optimizer]
    found = judged(optimizer, groups=groups)
    agree(found, lambda w, g: [float(np.sum(b * step(a, b))) for a, b in zip(w, g, strict=True)])


def test_terms_of_clipped_gradients() -> None:
    """Of gradient descent they are smaller by the norm of all, of Adam they are as they were."""

    def norm_of(g: Weights) -> float:
        return max(1.0, sum(norm(own) ** 2 for own in g) ** 0.5 / 0.01)

    found = judged("sgd(clip=0.01)")
    agree(found, lambda w, g: [norm(own) ** 2 / norm_of(g) for own in g])
    assert [str(row.output) for row in found.rows] == ["-1/2", "1/2", "1/2"]
    adam = judged("adam(clip=0.01)")
    assert [row.output for row in adam.rows] == [row.output for row in judged("adam").rows]


def test_decay_inside_a_sign_is_bounded() -> None:
    """sign(g + w) adds no more than the bound, and less where the weight decides."""
    slope, error = slopes(
        lambda w, g: [abs(float(np.sum(b * np.sign(b + a)))) for a, b in zip(w, g, strict=True)]
    )
    found = judged("adam(decay=1)")
    for name, own, sigma in zip(NAMES, slope, error, strict=True):
        power = found[name].output.constant
        assert power is not None and own < float(power) + 0.1 + 5 * sigma
    assert [row.status for row in found.rows] == ["bound", "bound", "exact"]
