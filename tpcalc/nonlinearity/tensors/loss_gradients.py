"""Lengths of the gradients of a loss, and the nonlinearity that they show."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from tpcalc.engine.device.devices import load_torch
from tpcalc.errors import UsageError
from tpcalc.networks.order import not_made_from
from tpcalc.nonlinearity.tensors.batch_moments import batch_moments
from tpcalc.nonlinearity.tensors.shard import Shard, shard_of
from tpcalc.nonlinearity.tensors.spread import spread_of
from tpcalc.nonlinearity.tensors.taps import HasLayers, Tapped, measuring
from tpcalc.nonlinearity.tensors.uncertainty import Measured, mean_of, root_of_ratio
from tpcalc.results import Estimate
from tpcalc.shown import Rows, Shown

Tensor = Any
Loss = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class GradientLengths(Shown):
    """The gradient of the loss of an input by one layer; d_L is the size of the output.

    Attributes:
        layer: Number of the layer.
        length: GLEN: root of E |g|^2 / d_L. With Gaussian g of variance 1 at the output, at the
            input it tends to sqrt(g_L) in wide networks.
        component: GVCS: root mean square of the entries of g.
    """

    layer: int
    length: Estimate
    component: Estimate


def gradient_lengths(
    network: HasLayers,
    x: Any,
    targets: Any = None,
    loss: Loss | None = None,
    *,
    batch: int | None = None,
    seed: int = 0,
) -> tuple[GradientLengths, ...]:
    """Measure the gradients by all layers.

    Args:
        network: A drawn network, or ``tapped(module)``.
        x: The inputs, on the network's device.
        targets: A tensor with a target for each input.
        loss: Takes outputs and targets of a batch and gives a loss for each input. None: gradients
            by the outputs are N(0, 1).
        batch: Inputs of a batch; None: 250, or all if there are fewer.
        seed: The seed.

    Returns:
        A row for each layer, the input first.

    Raises:
        UsageError: A loss that gives no number for each input, or targets without a loss.
        EvaluationError: A gradient is not finite.

    Source: Schoenherr, The nonlinearity coefficient, chapter 6.

    Example:
        >>> from tpcalc.nonlinearity.tensors.surrogates import gaussian_inputs
        >>> rows = gradient_lengths(Tapped(lambda x: [3 * x]), gaussian_inputs(500, 20))
        >>> abs(rows[0].length.value - 3) < 5 * rows[0].length.stderr
        True
    """
    shard, sought = _with_targets(x, targets, loss, batch, seed)
    with measuring(network):
        squares, sizes = _squares(network, shard, sought, loss)
    found = []
    for index, (terms, size) in enumerate(zip(squares, sizes, strict=True)):
        total, one = mean_of(terms), Measured(1.0, 0.0)
        found.append(
            GradientLengths(
                index,
                root_of_ratio(total.times(1 / sizes[-1]), one, seed),
                root_of_ratio(total.times(1 / size), one, seed),
            )
        )
    return Rows(found)


def gradient_nlc(
    f: Callable[[Any], Any],
    x: Any,
    targets: Any = None,
    loss: Loss | None = None,
    *,
    batch: int | None = None,
    seed: int = 0,
) -> Estimate:
    """NLCGRAD: the coefficient from the gradients of a loss by inputs and outputs.

    Args:
        f: A module or another function from a batch of inputs to one of outputs.
        x: The inputs.
        targets: A tensor with a target for each input.
        loss: As of ``gradient_lengths``.
        batch: Inputs of a batch; None: 250, or all if there are fewer.
        seed: The seed.

    Returns:
        The coefficient, with its standard error.

    Raises:
        UsageError: A loss that gives no number for each input, or targets without a loss.
        EvaluationError: The outputs have collapsed, or a gradient is not finite.

    Source: Schoenherr, The nonlinearity coefficient, section 4.4.5.

    Example:
        >>> from tpcalc.nonlinearity.tensors.surrogates import gaussian_inputs
        >>> x = gaussian_inputs(1000, 20)
        >>> found = gradient_nlc(lambda x: 3 * x, x, x, lambda y, t: ((y - t) ** 2).sum(1))
        >>> abs(found.value - 1) < 5 * found.stderr
        True
    """
    shard, sought = _with_targets(x, targets, loss, batch, seed)
    with batch_moments(f):
        (below, above), (features, size) = _squares(
            Tapped(lambda part: [f(part).reshape(len(part), -1)]), shard, sought, loss
        )
        spread = spread_of(f, shard)
    over = mean_of(below).times(size * shard.spread / features)
    under = mean_of(above)
    # The error of the product of two means that are in the denominator.
    relative = np.hypot(under.stderr / under.value, spread.total.stderr / spread.total.value)
    product = under.value * spread.total.value
    return root_of_ratio(over, Measured(product, product * float(relative)), seed)


def _with_targets(
    x: Any, targets: Any, loss: Loss | None, batch: int | None, seed: int
) -> tuple[Shard, Tensor | None]:
    """Inputs and targets in one order."""
    torch, shard = load_torch(), shard_of(x, batch, seed)
    if loss is None:
        if targets is not None:
            raise UsageError("targets are given, and no loss.", hint="Give the loss as well.")
        return shard, None
    if targets is None or len(targets) != len(shard) + shard.left_out:
        raise UsageError(
            f"there are {0 if targets is None else len(targets)} targets for "
            f"{len(shard) + shard.left_out} inputs.",
            hint="A loss needs one for each input.",
        )
    return shard, torch.as_tensor(targets, device=shard.rows.device)[shard.order]


def _squares(
    network: HasLayers, shard: Shard, targets: Tensor | None, loss: Loss | None
) -> tuple[list[Any], list[int]]:
    """For each layer the squared lengths of gradients for each input, and its size."""
    parts: list[list[Any]] = []
    sizes: list[int] = []
    for number, batch in enumerate(shard.batches()):
        layers, found = _gradients(network, shard, number, batch, targets, loss)
        sizes = [layer[0].numel() for layer in layers]
        parts = parts or [[] for _ in layers]
        for part, g in zip(parts, found, strict=True):
            squares = (g.detach().reshape(len(g), -1).double() ** 2).sum(1)
            part.append(squares.cpu().numpy())
    return [np.concatenate(part) for part in parts], sizes


def _gradients(
    network: HasLayers,
    shard: Shard,
    number: int,
    batch: Tensor,
    targets: Tensor | None,
    loss: Loss | None,
) -> tuple[list[Tensor], Iterator[Tensor]]:
    torch = load_torch()
    layers = list(network.layers(batch.detach().requires_grad_()))
    if loss is None or targets is None:
        sources, above = layers[-1], shard.noise(layers[-1], "outputs", number)
    else:
        start = number * shard.batch
        sources, above = loss(layers[-1], targets[start : start + shard.batch]), None
        if tuple(sources.shape) != (len(batch),):
            raise UsageError(
                f"the loss of {len(batch)} inputs has shape {tuple(sources.shape)}.",
                hint="It gives one number for each input (reduction='none' in torch).",
            )
        above = torch.ones_like(sources)
    found = torch.autograd.grad(sources, layers, above, allow_unused=True)
    for index, g in enumerate(found):
        if g is None:
            raise not_made_from("the output", index)
    return layers, found
