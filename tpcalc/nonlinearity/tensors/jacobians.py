"""Singular values of the Jacobians of networks of finite width, and variances of their weights."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from tpcalc import checks
from tpcalc.arrays import Array
from tpcalc.engine.device.devices import load_torch
from tpcalc.errors import UsageError
from tpcalc.finite.networks.uses import HasTaps
from tpcalc.nonlinearity.estimators import estimate, mean_of
from tpcalc.results import Estimate
from tpcalc.shown import Rows, Shown

Tensor = Any


@dataclass(frozen=True)
class JacobianMoments(Shown):
    """Moments of the squared singular values of J, which has N rows, over networks."""

    first: Estimate  # m_1 = Tr J J^T / N
    second: Estimate  # m_2 = Tr (J J^T)^2 / N
    variance: Estimate  # m_2 - m_1^2 of each network, the mean over them
    relative_variance: Estimate  # the same over m_1^2 of the same network


def jacobian(f: Callable[[Any], Any], x: Tensor) -> Tensor:
    """The derivative of the outputs by one input, a row for each output."""
    if not isinstance(x, load_torch().Tensor) or x.ndim != 1:
        raise UsageError(
            f"an input is {checks.shown(x)}.", hint="Give one input, a row of features."
        )
    found = load_torch().func.jacrev(lambda row: f(row[None]).flatten())(x.detach())
    return found.detach()


def jacobian_values(f: Callable[[Any], Any], x: Tensor) -> Array:
    """The singular values of the Jacobian of a function at one input, from the largest on.

    Args:
        f: A function of a batch: of ``tp.signal.network_of``, a module, any code of torch.
        x: The input, one row of features.

    Returns:
        As many as there are inputs or outputs, whichever are fewer; their distribution is that of
        Figures 4 and 5.

    Raises:
        UsageError: Several inputs.

    Source: On the initialisation of wide low-rank feedforward neural networks, section 3.

    Example:
        >>> jacobian_values(lambda x: 2 * x, load_torch().ones(2)).tolist()
        [2.0, 2.0]
    """
    found = load_torch().linalg.svdvals(jacobian(f, x).double())
    values: Array = found.cpu().numpy()
    return values


def jacobian_moments(
    networks: Iterable[Callable[[Any], Any]], x: Tensor, *, seed: int | None = None
) -> JacobianMoments:
    """Moments of squared singular values, with their scatter over networks.

    They come from traces of J J^T and need no singular values. At finite width they are larger than
    in the limit by a part of order depth over rank.

    Args:
        networks: Functions as of ``jacobian``; two or more.
        x: The input, one row of features.
        seed: What the networks were drawn with.

    Returns:
        The moments, with standard errors over networks.

    Raises:
        UsageError: Fewer than two networks, or several inputs.
        EvaluationError: A Jacobian is not finite.

    Source: On the initialisation of wide low-rank feedforward neural networks, section 3.

    Example:
        >>> torch = load_torch()
        >>> found = jacobian_moments([lambda x: 2 * x, lambda x: 2 * x], torch.ones(3))
        >>> found.first.value, found.second.value
        (4.0, 16.0)
    """
    rows = []
    for f in networks:
        j = jacobian(f, x).double()
        gram = j @ j.T
        first, second = float(gram.trace()) / len(j), float((gram * gram).sum()) / len(j)
        rows.append((first, second, second - first**2, second / first**2 - 1 if first else 0.0))
    if len(rows) < 2:
        raise UsageError(f"{len(rows)} networks cannot show an error.", hint="Draw two or more.")
    columns = (mean_of(np.array(column)) for column in zip(*rows, strict=True))
    found = [estimate(own.value, own.stderr, own.samples, seed) for own in columns]
    return JacobianMoments(*found)


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
        x = torch.eye(network.sizes[tap.parents[0]], dtype=network.dtype, device=network.device)
        if tap.kind == "weights":
            yield LayerVariance(index, "weights", _square(network.layer(index, [x]).T))
        else:
            yield LayerVariance(index, "biases", _square(network.layer(index, [0 * x[:1]])[0]))


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
