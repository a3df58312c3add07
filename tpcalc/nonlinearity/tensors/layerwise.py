"""The nonlinearity of a network as a product over its layers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import hypot
from typing import Any

import numpy as np

from tpcalc import checks
from tpcalc.engine.device.devices import load_torch
from tpcalc.errors import UsageError
from tpcalc.finite.networks.taps import HasTaps
from tpcalc.nonlinearity.tensors.between import between
from tpcalc.nonlinearity.tensors.layer_moments import LayerMoments, layer_moments
from tpcalc.nonlinearity.tensors.noise import pulled
from tpcalc.nonlinearity.tensors.shard import Shard, shard_of
from tpcalc.nonlinearity.tensors.taps import HasLayers, measuring
from tpcalc.nonlinearity.tensors.uncertainty import Measured, estimate, mean_of, root_of_ratio
from tpcalc.results import Estimate

_CURVED = ("coordinates", "product", "norm")


def layerwise_nlc(network: HasTaps, x: Any, *, batch: int | None = None, seed: int = 0) -> Estimate:
    """LNLC: each nonlinear layer's own coefficient, combined along the network.

    Along a chain coefficients multiply. At a sum of branches their squares average with the weights
    w^2 Tr Cov of the branches. Dense layers and biases have 1; activations of one layer and
    normalizations are measured.

    Args:
        network: The network; its activations read one layer each.
        x: The inputs, on its device.
        batch: Inputs of a batch; None: 250, or all if there are fewer.
        seed: The seed.

    Returns:
        The coefficient, with its standard error.

    Raises:
        UsageError: Inputs that are too few or all equal.
        EvaluationError: A layer is not finite, or is the same for all inputs.

    Source: Schoenherr, The nonlinearity coefficient, section 4.4.11.

    Example:
        >>> import tpcalc as tp
        >>> from tpcalc.nonlinearity.tensors.surrogates import gaussian_inputs
        >>> network = tp.signal.network_of(tp.MLP(1, "relu"), 200, 100)
        >>> abs(layerwise_nlc(network, gaussian_inputs(500, 100)).value - 1.211) < 0.02
        True
    """
    shard = shard_of(x, batch, seed)
    moments = layer_moments(network, shard)
    spreads = [mean_of(own.deviations).times(shard.correction * own.size) for own in moments]
    own = _local(network, shard, moments)
    # For each layer the squared coefficient from the input on, and its error.
    found = [Measured(1.0, 0.0)]
    for index, step in enumerate(network.taps[1:], start=1):
        below = [found[parent] for parent in step.parents]
        if not below:
            raise UsageError(
                f"layer {index} does not say what it is computed from.",
                hint="The layers of a network are those that the recursion follows, if it does.",
            )
        if step.kind == "sum":
            shares = [
                weight**2 * spreads[parent].value
                for weight, parent in zip(step.weights, step.parents, strict=True)
            ]
            found.append(_average(shares, below))
        elif index in own:
            factor = root_of_ratio(own[index], spreads[index], seed)
            error = hypot(2 * factor.stderr / factor.value, below[0].stderr / below[0].value)
            value = below[0].value * factor.value**2
            found.append(Measured(value, value * error))
        else:
            found.append(below[0])
    last = found[-1]
    value = last.value**0.5
    return estimate(value, last.stderr / (2 * value), len(shard), seed)


def chain_nlc(
    network: HasLayers,
    x: Any,
    linear: Sequence[int] = (),
    *,
    batch: int | None = None,
    draws: int = 4,
    seed: int = 0,
) -> Estimate:
    """LNLC of a chain of layers: the product of the coefficients of each as a function of the last.

    Args:
        network: ``tapped(module)``, or another network without branches.
        x: The inputs, on the network's device.
        linear: Numbers of the layers that are linear in the one before; their coefficient is 1.
        batch: Inputs of a batch; None: 250, or all if there are fewer.
        draws: Pairs of batches.
        seed: The seed.

    Returns:
        The product, with its standard error.

    Raises:
        UsageError: Inputs that are too few or all equal, or a network with branches.
        EvaluationError: A layer is not finite.

    Source: Schoenherr, The nonlinearity coefficient, section 4.4.11.

    Example:
        >>> from tpcalc.nonlinearity.tensors.surrogates import gaussian_inputs
        >>> from tpcalc.nonlinearity.tensors.taps import Tapped
        >>> cubes = Tapped(lambda x: [h := 2 * x, h**3])
        >>> abs(chain_nlc(cubes, gaussian_inputs(1000, 20), linear=[1]).value - 1.34) < 0.1
        True
    """
    shard = shard_of(x, batch, seed)
    checks.called(getattr(network, "layers", None), "network.layers", x)
    with measuring(network):
        count = len(network.layers(next(shard.batches())))
    pairs = [(index - 1, index) for index in range(1, count) if index not in set(linear)]
    rows = between(network, x, pairs, batch=batch, draws=draws, seed=seed)
    value = float(np.prod([row.nlc.value for row in rows]))
    relative = hypot(*(row.nlc.stderr / row.nlc.value for row in rows)) if rows else 0.0
    return estimate(value, value * relative, len(shard), seed)


def _average(shares: Sequence[float], parts: Sequence[Measured]) -> Measured:
    total = sum(shares)
    value = sum(share * part.value for share, part in zip(shares, parts, strict=True)) / total
    errors = [share * part.stderr for share, part in zip(shares, parts, strict=True)]
    return Measured(value, hypot(*errors) / total)


def _local(network: HasTaps, shard: Shard, moments: Sequence[LayerMoments]) -> dict[int, Measured]:
    """For each nonlinear layer E Tr J Cov J^T of it as a function of the layer that it reads."""
    torch, device = load_torch(), shard.rows.device
    curved = {k: step for k, step in enumerate(network.taps) if step.kind in _CURVED}
    terms: dict[int, list[Any]] = {index: [] for index in curved}
    for number, batch in enumerate(shard.batches()):
        with torch.no_grad():
            layers = network.layers(batch)
            others = network.layers(shard.drawn("others", number))
        for index, step in curved.items():
            if len(step.parents) != 1:
                raise UsageError(
                    f"layer {index} is a function of {len(step.parents)} layers.",
                    hint="A layerwise coefficient takes activations of one layer.",
                )
            (parent,) = step.parents
            below, known = layers[parent], moments[parent]
            if step.kind == "coordinates":  # J is diagonal: no noise is needed
                own = partial(_one, network, index)
                _, slope = torch.func.jvp(own, (below,), (torch.ones_like(below),))
                part = slope**2 @ torch.from_numpy(known.variance).to(device, slope.dtype)
            else:
                noise = partial(shard.noise, what=f"layer {index}", draw=number)
                g = pulled(partial(_one, network, index), below, noise)
                mean = torch.from_numpy(known.mean).to(device, g.dtype)
                part = ((g @ (others[parent] - mean).T) ** 2).mean(1) * shard.correction
            terms[index].append(part.double().cpu().numpy())
    return {index: mean_of(np.concatenate(parts)) for index, parts in terms.items()}


def _one(network: HasTaps, index: int, below: Any) -> Any:
    return network.layer(index, [below])
