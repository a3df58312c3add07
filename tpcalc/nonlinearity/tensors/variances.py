"""Variances that the weights and biases of a network have now, trained or not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from tpcalc.engine.device.devices import load_torch
from tpcalc.errors import UsageError
from tpcalc.finite.networks.taps import HasTaps
from tpcalc.shown import Rows, Shown


@dataclass(frozen=True, slots=True)
class LayerVariance(Shown):
    """The variance of a layer, as the recursion of wide networks takes it."""

    layer: int | str  # number of the step, or name of the module
    kind: Literal["weights", "biases"]  # whether of weights or of biases
    value: float  # |W|_F^2 / d_l, or |b|^2 / d_l, for d_l neurons


def layer_variances(network: Any) -> tuple[LayerVariance, ...]:
    """The squared norms of weights and biases for each neuron, in order of the layers.

    Args:
        network: A drawn network, or a torch module whose parameters are all in linear layers.

    Returns:
        A row for each weight and bias.

    Raises:
        UsageError: Something else, or a module with other parameters.

    Source: Schoenherr, The nonlinearity coefficient, section 5.3.3.

    Example:
        >>> linear = load_torch().nn.Linear(2, 2)
        >>> _ = linear.weight.data.copy_(load_torch().eye(2)), linear.bias.data.fill_(3.0)
        >>> [(row.kind, row.value) for row in layer_variances(linear)]
        [('weights', 1.0), ('biases', 9.0)]
    """
    if isinstance(network, HasTaps):
        return Rows(_of_layers(network))
    if isinstance(network, load_torch().nn.Module):
        return Rows(_of_module(network))
    raise UsageError(
        f"a {type(network).__name__} is no network with weights.",
        hint="Give a network that tp.signal.network_of drew, or a torch module.",
    )


def _of_layers(network: HasTaps) -> Iterator[LayerVariance]:
    """What maps do to unit vectors are their columns; what layers of biases do to 0 is the bias."""
    torch = load_torch()
    for index, tap in enumerate(network.taps):
        if tap.kind not in ("weights", "biases"):
            continue
        below = network.sizes[tap.parents[0]]
        if tap.kind == "weights":
            x = torch.eye(below, dtype=network.dtype, device=network.device)
            yield LayerVariance(index, "weights", _square(network.layer(index, [x]).T))
        else:
            x = torch.zeros(1, below, dtype=network.dtype, device=network.device)
            yield LayerVariance(index, "biases", _square(network.layer(index, [x])[0]))


def _of_module(module: Any) -> Iterator[LayerVariance]:
    linear = load_torch().nn.Linear
    for name, part in module.named_modules():
        if isinstance(part, linear):
            yield LayerVariance(name, "weights", _square(part.weight))
            if part.bias is not None:
                yield LayerVariance(name, "biases", _square(part.bias))
        elif next(part.parameters(recurse=False), None) is not None:
            raise UsageError(
                f"the module {name or type(part).__name__!r} has parameters and is not linear.",
                hint="The variances are those of torch.nn.Linear.",
            )


def _square(tensor: Any) -> float:
    return float((tensor.detach().double() ** 2).sum()) / len(tensor)
