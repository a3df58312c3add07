"""A network of finite width as a function on batches, with all of its layers at hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tpcalc.errors import DimMismatch, UsageError
from tpcalc.finite.device import load_torch, resolve_device, resolve_dtype
from tpcalc.finite.draws import Network
from tpcalc.finite.layered.sizes import connected, rank_of, sizes_of
from tpcalc.finite.layered.steps import (
    Addition,
    BatchNorm,
    Bias,
    Dense,
    Elementwise,
    Input,
    LayerNorm,
    Step,
)
from tpcalc.finite.layered.weights import Weights, draw_bias, draw_weights
from tpcalc.finite.networks.coordinatewise import coordinatewise
from tpcalc.finite.networks.taps import Kind, Tap
from tpcalc.results import checks

__all__ = ["Layered"]

Tensor = Any


class Layered:
    """A network drawn from its layers.

    Every layer has a stream of its own, drawn on the host in float64: a seed's network does not
    depend on device or precision.

    Args:
        steps: The layers in order of computation, the input first. One without parents reads the
            layer before it.
        width: The width n.
        inputs: Features of an input.
        seed: The seed.
        device: ``"cpu"``, ``"cuda"``, ``"cuda:1"``, ``"auto"``.
        dtype: ``"float64"``, ``"float32"`` or ``"bfloat16"``.

    Raises:
        StudyError: Layers that do not fit each other, the width or their rank.
        MissingBackend: No torch, or no such device.

    Example:
        >>> from tpcalc.catalog.activations import lookup
        >>> from tpcalc.finite.layered.steps import Input
        >>> tanh = Elementwise(lookup("tanh").fn)
        >>> network = Layered([Input(), Dense(1.5), tanh, Dense(size=3)], 16, 4)
        >>> network(load_torch().ones(2, 4, dtype=network.dtype)).shape
        torch.Size([2, 3])
    """

    def __init__(
        self,
        steps: Sequence[Step],
        width: int,
        inputs: int,
        seed: int = 0,
        device: str = "cpu",
        dtype: str = "float64",
    ) -> None:
        self.steps = connected(steps)
        self.width = checks.whole(width, "width", least=1)
        self.seed = checks.whole(seed, "seed", least=0)
        self.device, self.dtype = resolve_device(device), resolve_dtype(dtype)
        self.sizes = sizes_of(self.steps, self.width, checks.whole(inputs, "inputs", least=1))
        self.weights: dict[int, Weights] = {}
        self.biases: dict[int, Tensor] = {}
        self.taps = tuple(map(_tap, range(len(self.steps)), self.steps))
        self._draw()

    @property
    def parameters(self) -> tuple[Tensor, ...]:
        """All factors of weights, and all biases, in the order of the layers."""
        found: list[Tensor] = []
        for index in range(len(self.steps)):
            if index in self.weights:
                found.extend(self.weights[index].factors)
            if index in self.biases:
                found.append(self.biases[index])
        return tuple(found)

    def layers(self, x: Tensor) -> list[Tensor]:
        """All layers on a batch, the batch itself first.

        Args:
            x: A tensor of shape (inputs, features).

        Raises:
            DimMismatch: Another shape.
            UsageError: Batch norm of a single input.
        """
        return self._run({0: self._taken(x, 0)}, len(self.steps) - 1)

    def __call__(self, x: Tensor) -> Tensor:
        """The last layer on a batch."""
        return self.layers(x)[-1]

    def between(self, start: int, end: int) -> Callable[[Tensor], Tensor]:
        """One layer as a function of another.

        Args:
            start: The layer that is the argument; every path to ``end`` leads through it.
            end: The layer that is the value.

        Raises:
            UsageError: No such layers, or a path leads around ``start``.
        """
        if not self.is_bottleneck(start, end):
            raise UsageError(
                f"layer {start} is no bottleneck for layer {end}: there is a path around it.",
                hint="Take a layer that every path leads through.",
            )
        return lambda x: self._run({start: self._taken(x, start)}, end)[end]

    def is_bottleneck(self, start: int, end: int) -> bool:
        """Whether every path from the input to ``end`` leads through ``start``.

        Args:
            start: Number of a layer.
            end: Number of a layer that does not come before it.

        Raises:
            UsageError: There are no such layers in this order.
        """
        if not 0 <= start <= end < len(self.steps):
            raise UsageError(
                f"there are no layers {start} and {end} in this order.",
                hint=f"They are numbered from 0 to {len(self.steps) - 1}.",
            )
        around = {0} - {start}
        for index in range(1, end + 1):
            if index != start and any(p in around for p in self.steps[index].parents):
                around.add(index)
        return end not in around

    def layer(self, index: int, reads: Sequence[Tensor]) -> Tensor:
        """One layer as a function of what it reads.

        Args:
            index: Its number, not 0.
            reads: The layers that it reads, in the order of its parents.

        Raises:
            UsageError: Batch norm of a single input.
        """
        step = self.steps[index]
        if isinstance(step, Dense):
            value = reads[0]
            for factor in self.weights[index].factors:
                value = value @ factor.T
            return value
        if isinstance(step, Bias):
            return reads[0] + self.biases[index]
        if isinstance(step, Elementwise):
            return coordinatewise(step.function, *reads)
        if isinstance(step, LayerNorm):
            return _normalized(reads[0], 1, step.eps, step.centred)
        if isinstance(step, BatchNorm):
            if len(reads[0]) < 2:
                raise UsageError(
                    "a batch of a single input has no spread.",
                    where=f"layer {index} (batch norm)",
                    hint="Take batches of two inputs or more.",
                )
            return _normalized(reads[0], 0, step.eps)
        assert isinstance(step, Addition)
        terms = [float(w) * read for w, read in zip(step.weights, reads, strict=True)]
        return sum(terms[1:], terms[0])

    def _draw(self) -> None:
        torch, network = load_torch(), Network(self.seed, self.width)

        def placed(array: Any) -> Tensor:
            return torch.from_numpy(array).to(self.device, self.dtype)

        drawn: dict[int, Weights] = {}
        for index, step in enumerate(self.steps):
            if isinstance(step, Dense):
                shape = (self.sizes[index], self.sizes[step.parents[0]])
                rank = rank_of(step, index, *shape)
                drawn[index] = own = draw_weights(step, network, index, shape, rank)
                factors = tuple(map(placed, own.factors))
                span = None if own.span is None else placed(own.span)
                self.weights[index] = Weights(factors, span)
            elif isinstance(step, Bias):
                below = drawn.get(step.parents[0])
                entries = draw_bias(step, network, index, self.sizes[index], below)
                self.biases[index] = placed(entries)

    def _taken(self, x: Tensor, index: int) -> Tensor:
        if x.ndim != 2 or x.shape[1] != self.sizes[index]:
            raise DimMismatch(
                f"a batch has shape {tuple(x.shape)}; layer {index} has {self.sizes[index]} "
                "neurons.",
                where="Layered",
                hint="A batch has a row for each input.",
            )
        return x

    def _run(self, known: Mapping[int, Tensor], end: int) -> list[Tensor]:
        first = min(known)
        found: list[Tensor] = [None] * first
        for index in range(first, end + 1):
            reads = [found[parent] for parent in self.steps[index].parents if parent < index]
            if index in known:
                found.append(known[index])
            else:
                # What does not come from the start has no value, and nothing asks for it.
                missing = any(read is None for read in reads)
                found.append(None if missing else self.layer(index, reads))
        return found


_KINDS: dict[type, Kind] = {
    Input: "input",
    Dense: "weights",
    Bias: "biases",
    Elementwise: "coordinates",
    LayerNorm: "norm",
    BatchNorm: "norm",
    Addition: "sum",
}


def _tap(index: int, step: Step) -> Tap:
    weights = tuple(map(float, step.weights)) if isinstance(step, Addition) else ()
    return Tap(index, parents=step.parents, kind=_KINDS[type(step)], weights=weights)


def _normalized(x: Tensor, dim: int, eps: float, centre: bool = True) -> Tensor:
    centred = x - x.mean(dim, keepdim=True) if centre else x
    spread = (centred * centred).mean(dim, keepdim=True)
    return centred * (spread + eps).rsqrt()
