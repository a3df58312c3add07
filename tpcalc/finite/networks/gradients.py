"""Derivatives of a loss by parameters, and steps along them without a gradient being formed.

The gradient of a matrix is a product of what its uses wrote, differentiated, and what they read.
It is added in place, one product for each use: a step is another pass over the matrix, and no
second array of its size is held.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from tpcalc.engine.device.devices import load_torch
from tpcalc.finite.axes import contracted
from tpcalc.finite.networks.network import DrawnNetwork
from tpcalc.finite.networks.uses import Use, layout_of
from tpcalc.program.base import input_of
from tpcalc.program.types import Ref

Tensor = Any
# Numbers beyond these are applied in two halves, so that float32 holds each of them.
_LARGE = 1e30


class Forward:
    """A forward pass that can be differentiated by the parameters.

    Args:
        network: The network.
        x: The batch.
        noise: Seed of what every input draws for itself.

    Attributes:
        outputs: A row for each input.
    """

    def __init__(self, network: DrawnNetwork, x: Tensor, noise: int = 0) -> None:
        self.network = network
        self._values: dict[Ref, Tensor] = {}
        self._reads, self._writes, self._leaves = network.places
        wanted = {*network.outputs}
        with load_torch().enable_grad():
            walk = network.walk(network.known(x, noise), wanted, self._kept)
            self._joined = network.joined(dict(walk), len(x))
        self.outputs = self._joined.detach()

    def _kept(self, ref: Ref, value: Tensor) -> Tensor:
        if ref in self._leaves or (ref in self._writes and not value.requires_grad):
            value = value.detach().requires_grad_()
        if ref in self._leaves or ref in self._writes or ref in self._reads:
            self._values[ref] = value
        return value

    def gradients(self, chi: Tensor) -> Gradients:
        """The derivatives of a loss; a pass can be differentiated once."""
        torch, values = load_torch(), self._values
        asked = [ref for ref in values if ref in self._writes or ref in self._leaves]
        found = torch.autograd.grad(
            self._joined, [values[ref] for ref in asked], chi, materialize_grads=True
        )
        derivatives = dict(zip(asked, found, strict=True))
        products = {
            name: tuple(
                Product(use, derivatives[use.node], values[use.reads].detach())
                for use in uses
                if use.node in derivatives
            )
            for name, uses in self.network.uses.items()
        }
        leaves = {ref: derivatives[ref][0] for ref in self._leaves if ref in derivatives}
        return Gradients(self.network, products, leaves)


@dataclass(frozen=True)
class Product:
    """A use of a parameter in one pass.

    Args:
        use: The use.
        written: The derivative by what it writes.
        read: What it reads.
    """

    use: Use
    written: Tensor
    read: Tensor

    def formed(self) -> Tensor:
        """Its part of the gradient."""
        use = self.use
        factors = [(self.written, use.result), (self.read, use.value)]
        found = contracted(factors, use.parameter)
        return found if self.factor == 1 else found * self.factor

    @property
    def factor(self) -> float:
        """The number in front of the product."""
        return self.use.factor / (self.read.shape[-1] if self.use.mean else 1)

    def add_to(self, parameter: Tensor, rate: float, kept: float = 1.0) -> None:
        """Take a step in place: kept * parameter - rate * gradient.

        Args:
            parameter: The parameter.
            rate: The rate.
            kept: What is left of the parameter before.
        """
        layout = layout_of(self.use)
        shared, rows, columns, summed = layout.groups
        rate *= self.factor
        written, alpha = self.written, -rate
        if not 1 / _LARGE < abs(rate) <= 1:  # a large rate first: products may underflow
            written, alpha = times(written.clone(), rate), -1.0
        left = _joined(written, layout.away[0], layout.written, (shared, rows, summed))
        right = _joined(self.read, layout.away[1], layout.read, (shared, summed, columns))
        target = parameter.permute(layout.parameter)
        try:
            joined = target.view(_sizes(target, (shared, rows, columns)))
        except RuntimeError:  # axes that do not lie side by side: the gradient is formed
            target.mul_(kept).add_((left @ right).view(target.shape), alpha=alpha)
            return
        if shared:
            joined.baddbmm_(left, right, beta=kept, alpha=alpha)
        else:
            joined[0].addmm_(left[0], right[0], beta=kept, alpha=alpha)


def _joined(
    tensor: Tensor, away: Sequence[int], order: Sequence[int], groups: Sequence[int]
) -> Tensor:
    """A tensor with its axes in three groups, each as one axis; others are summed over."""
    tensor = tensor.sum(tuple(away)) if away else tensor
    return (ordered := tensor.permute(order)).reshape(_sizes(ordered, groups))


def _sizes(tensor: Tensor, groups: Sequence[int]) -> list[int]:
    """The numbers of cells of groups of axes."""
    shape, places = iter(tensor.shape), [range(count) for count in groups]
    return [prod(next(shape) for _ in group) for group in places]


@dataclass(frozen=True)
class Gradients:
    """The derivatives of a loss by all parameters."""

    network: DrawnNetwork  # the network
    # For parameters that are used in products these products
    products: Mapping[str, tuple[Product, ...]]
    leaves: Mapping[Ref, Tensor]  # for the nodes of the others their gradients

    def formed(self, name: str) -> Tensor:
        """The gradient of a parameter as an array of its own."""
        if name in self.products:
            parts = [product.formed() for product in self.products[name]]
            return sum(parts[1:], parts[0])
        total = load_torch().zeros_like(self.network.parameters[name])
        for ref, gradient in self.leaves.items():
            node = input_of(self.network.program.nodes[ref])
            if node is not None and node.family.name == name:
                cell = total if node.cell is None else total.flatten(0, -2)[node.cell]
                cell += gradient
        return total

    def step(self, rates: Mapping[str, float], kept: Mapping[str, float] | None = None) -> None:
        """One step of gradient descent, in place."""
        for name, rate in rates.items():
            left = (kept or {}).get(name, 1.0)
            parameter = self.network.parameters[name]
            if name not in self.products:
                parameter.mul_(left).sub_(times(self.formed(name), rate))
            for product in self.products.get(name, ()):
                product.add_to(parameter, rate, left)
                left = 1.0


def times(values: Tensor, factor: float) -> Tensor:
    """Multiply a tensor in place by a number that its format may not hold."""
    if factor == 0 or 1 / _LARGE < abs(factor) < _LARGE:
        return values.mul_(factor)
    half = abs(factor) ** 0.5
    return values.mul_(half).mul_(half if factor > 0 else -half)
