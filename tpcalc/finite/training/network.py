"""A fully connected network of finite width: forward pass, gradients, one step of SGD.

Weights are kept as the effective matrices W^l = n^(-a_l) w^l, so that a step multiplies each
gradient by one number and adds it in place. Passes write into arrays made once for a batch: at
width 1024 a step is 3 matrix products per layer, and anything else that touches W^l would be
another pass over memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tpcalc.catalog.activations import lookup
from tpcalc.catalog.architectures.mlp import biased_layers
from tpcalc.finite.device import load_torch
from tpcalc.finite.torch_space import TorchSpace
from tpcalc.finite.training.scales import Start, Step
from tpcalc.functions import Fn, tape

__all__ = ["Network", "Shape", "draw"]

# Numbers beyond these are applied in two halves, so that float32 holds each of them.
_LARGE = 1e30


@dataclass(frozen=True, slots=True)
class Shape:
    """The sizes of a network.

    Args:
        inputs: Features d of an input.
        width: Neurons n of a hidden layer.
        depth: Number of hidden layers L.
        outputs: Number of outputs K.
        bias: Layers with biases: ``"none"``, ``"first"``, ``"hidden"`` or ``"all"``.

    Example:
        >>> Shape(784, 64, 2, 10).layers
        ((64, 784), (64, 64), (10, 64))
    """

    inputs: int
    width: int
    depth: int
    outputs: int
    bias: str = "none"

    @property
    def layers(self) -> tuple[tuple[int, int], ...]:
        """Rows and columns of the matrices of the layers 1..L+1."""
        between = ((self.width, self.width),) * (self.depth - 1)
        return ((self.width, self.inputs), *between, (self.outputs, self.width))

    @property
    def weights(self) -> int:
        """How many entries all matrices have."""
        return sum(rows * columns for rows, columns in self.layers)


class Network:
    """Weights of a network on a device, and the arrays that a batch of inputs needs.

    Args:
        shape: Its sizes.
        act: Activation, a catalogue name.
        weights: The matrices of the layers 1..L+1, of shape (rows, columns).
        biases: Their biases; None where there are none.
        batch: The most inputs of one pass.
    """

    def __init__(
        self,
        shape: Shape,
        act: str,
        weights: Sequence[Any],
        biases: Sequence[Any | None],
        batch: int,
    ) -> None:
        self.shape = shape
        self.act = act
        self.weights = list(weights)
        self.biases = list(biases)
        self.batch = batch
        self._torch = load_torch()
        self._value = lookup(act).fn
        self._slope = self._value.by(0)
        self._inputs: Any = None
        self._make_room()

    @property
    def dtype(self) -> Any:
        """The number format of the weights."""
        return self.weights[0].dtype

    @property
    def device(self) -> Any:
        """Where they are."""
        return self.weights[0].device

    def to(self, dtype: Any) -> None:
        """Round all weights to another number format.

        Args:
            dtype: A torch number format.
        """
        if dtype == self.dtype:
            return
        for layer, matrix in enumerate(self.weights):
            self.weights[layer] = matrix.to(dtype)
        self.biases = [None if bias is None else bias.to(dtype) for bias in self.biases]
        self._make_room()

    def forward(self, inputs: Any) -> Any:
        """The outputs on a batch; its preactivations and activations stay for ``gradients``.

        Args:
            inputs: A tensor of shape (samples, d), at most ``batch`` samples.

        Returns:
            A tensor of shape (samples, K), overwritten by the next pass.
        """
        self._inputs = below = inputs
        count = len(inputs)
        for layer, h in enumerate(self._h):
            z = self.linear(layer, below, out=h[:count])
            below = self._x[layer] = self.activation(z)
        return self.linear(self.shape.depth, below, out=self._outputs[:count])

    def linear(self, layer: int, below: Any, out: Any | None = None, kept: float = 1.0) -> Any:
        """W^l x + b^l of one layer.

        Args:
            layer: Its number from 0.
            below: The x, a row for each input.
            out: Where to write it.
            kept: What the matrix is multiplied by.
        """
        bias, matrix = self.biases[layer], self.weights[layer].t()
        if bias is None and kept == 1.0:
            return self._torch.mm(below, matrix, out=out)
        start = self._zero if bias is None else bias
        beta = 0.0 if bias is None else 1.0
        return self._torch.addmm(start, below, matrix, beta=beta, alpha=kept, out=out)

    def activation(self, z: Any) -> Any:
        """The activation of preactivations."""
        value = self._apply(self._value, z)
        return self._torch.full_like(z, value) if isinstance(value, float) else value

    def gradients(self, chi: Any) -> Iterator[tuple[int, Any, Any]]:
        """Backward from the last layer to the first, after ``forward``.

        The gradient of the layer below is ready when a layer is given, so its matrix and its
        gradient may be changed in place.

        Args:
            chi: The derivative of the loss by the outputs, of shape (samples, K).

        Returns:
            For each layer its number from 0, the derivative of the loss by its preactivations,
            and the x^{l-1} it acted on.
        """
        torch, count = self._torch, len(chi)
        here = chi
        for layer in range(self.shape.depth, 0, -1):
            below = self._back[layer % 2][:count]
            torch.mm(here, self.weights[layer], out=below)
            below *= self._apply(self._slope, self._h[layer - 1][:count])
            yield layer, here, self._x[layer - 1]
            here = below
        yield 0, here, self._inputs

    def update(self, chi: Any, step: Step, rates: Sequence[float]) -> None:
        """One step of SGD on the batch of the last ``forward``.

        Args:
            chi: The derivative of the loss by the outputs.
            step: The scales of the step.
            rates: Base learning rates of the layers 1..L+1.
        """
        for layer, gradient, below in self.gradients(chi):
            bias, rate = self.biases[layer], rates[layer]
            if bias is not None:
                bias -= times(gradient.sum(0), rate * step.biases[layer])
            times(gradient, rate * step.weights[layer])
            matrix = self.weights[layer]
            matrix.addmm_(gradient.t(), below, beta=step.kept[layer], alpha=-1.0)

    def _make_room(self) -> None:
        """Arrays for one batch."""
        torch, shape = self._torch, self.shape

        def room(columns: int) -> Any:
            return torch.empty((self.batch, columns), dtype=self.dtype, device=self.device)

        self._h = [room(shape.width) for _ in range(shape.depth)]
        self._x: list[Any] = [None] * shape.depth
        self._back = [room(shape.width) for _ in range(2)]
        self._outputs = room(shape.outputs)
        self._zero = torch.zeros((), dtype=self.dtype, device=self.device)
        self._space = TorchSpace(torch, self.dtype, self.device)

    def _apply(self, fn: Fn, z: Any) -> Any:
        return tape.run(tape.lower(fn), self._space, [z])


def times(values: Any, factor: float) -> Any:
    """Multiply a tensor in place by a number that its format may not hold.

    Args:
        values: The tensor.
        factor: The number.
    """
    if factor == 0 or 1 / _LARGE < abs(factor) < _LARGE:
        return values.mul_(factor)
    half = abs(factor) ** 0.5
    return values.mul_(half).mul_(half if factor > 0 else -half)


def draw(
    shape: Shape, act: str, start: Start, std: float, seed: int, trial: int, **place: Any
) -> Network:
    """A network at its start.

    The entries of w^l are N(mean_l, std^2) in the layers 1..L and N(mean_{L+1}, 1) in the last;
    those of the first layer, weights and biases, are divided by sqrt(d + 1), so that inputs with
    entries of order one give preactivations of order one. Every layer has a stream of its own,
    drawn on the host: a trial's network does not depend on device, precision or other trials.

    Args:
        shape: Its sizes.
        act: Activation, a catalogue name.
        start: Scales and means.
        std: Standard deviation of the entries of the layers 1..L.
        seed: The seed.
        trial: Number of the trial.
        place: ``dtype``, ``device`` and ``batch`` of the network.

    Source: Hajjar, Chizat, Giraud, section 6.1.
    """
    torch = load_torch()
    weights, biases = [], []
    for layer, (rows, columns) in enumerate(shape.layers):
        last = layer == shape.depth
        spread = 1.0 if last else std
        if layer == 0:
            spread /= (shape.inputs + 1) ** 0.5
        words = [seed, trial, shape.width, layer]
        generator = np.random.Generator(np.random.SFC64(np.random.SeedSequence(words)))
        matrix = generator.standard_normal((rows, columns))
        matrix *= spread
        matrix += start.means[layer]
        matrix *= start.weights[layer]
        weights.append(torch.from_numpy(matrix).to(place["device"], place["dtype"]))
        bias = None
        if layer + 1 in biased_layers(shape.bias, shape.depth):
            entries = generator.standard_normal(rows) * (spread * start.biases[layer])
            bias = torch.from_numpy(entries).to(place["device"], place["dtype"])
        biases.append(bias)
    return Network(shape, act, weights, biases, place["batch"])
