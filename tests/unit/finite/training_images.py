"""Small data for tests of training, and networks to train on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tpcalc.finite.networks.gradients import Forward
from tpcalc.finite.networks.network import DrawnNetwork
from tpcalc.finite.training.loop import cross_entropy
from tpcalc.finite.training.scales import Scales
from tpcalc.finite.training.steps import Updates, begun
from tpcalc.networks.architectures.mlp import MLP
from tpcalc.networks.network import written
from tpcalc.results import Setting
from tpcalc.results.images import Images
from tpcalc.training.setting import run_of
from tpcalc.training.training import Training


def mixture(
    images: int = 96, features: int = 6, classes: int = 3, distance: float = 1.0, seed: int = 5
) -> Images:
    """A mixture of Gaussians, one for each class; as many training as test images."""
    rng = np.random.default_rng(seed)
    centers = distance * rng.standard_normal((classes, features))
    labels = rng.integers(0, classes, 2 * images)
    pixels = centers[labels] + rng.standard_normal((2 * images, features))
    return Images(
        pixels[:images], labels[:images], pixels[images:], labels[images:], classes, "a mixture"
    )


SEED = 7


def begin(setting: Setting, data: Images) -> Updates:
    """The network of trial 0 at its start, and its steps."""
    run = run_of(setting)
    scales = Scales(run, setting.width)
    program = written(run.network, data.dimension, data.classes)
    return Updates(begun(program, scales, setting.std, SEED), scales)


@dataclass(frozen=True)
class Shape:
    """The sizes of a fully connected network."""

    inputs: int
    width: int
    depth: int
    outputs: int
    bias: str = "none"


def start(
    parameterization: str, shape: Shape, act: str = "tanh", std: float = 1.0, trial: int = 0
) -> DrawnNetwork:
    """A network at its start, in float64 on the CPU."""
    network = MLP(shape.depth, act, shape.bias)
    program = written(network, shape.inputs, shape.outputs)
    scales = Scales(Training(network, parameterization, steps=1), shape.width)
    return begun(program, scales, std, SEED, trial)


def weights(network: DrawnNetwork) -> list[Any]:
    """The matrices of the layers in order, a row for each neuron."""
    found = [network.parameters[name] for name in sorted(network.parameters) if name[0] == "W"]
    return [found[0].t(), *found[1:]]


def biases(network: DrawnNetwork) -> list[Any]:
    """The biases of the layers in order, None where there are none."""
    count = len(weights(network))
    return [network.parameters.get(f"b{layer}") for layer in range(1, count + 1)]


def step(
    network: DrawnNetwork, word: str, inputs: Any, labels: Any, rates: Sequence[float], t: int = 0
) -> Any:
    """One step of SGD; the derivative of the loss by the outputs comes back."""
    forward = Forward(network, inputs)
    chi = cross_entropy(forward.outputs, labels)[2]
    updates(network, word, t + 1).take(forward.gradients(chi), t, rates)
    return chi


def updates(network: DrawnNetwork, word: str, steps: int = 1) -> Updates:
    """The steps of a network under SGD."""
    depth = len(weights(network)) - 1
    run = Training(MLP(depth, bias="all"), word, steps=steps)
    return Updates(network, Scales(run, network.width))
