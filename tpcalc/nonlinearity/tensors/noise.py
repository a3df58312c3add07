"""Mean squares of Jacobians along random directions: backward from noise, forward along inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from tpcalc.engine.device.devices import load_torch
from tpcalc.errors import EvaluationError
from tpcalc.nonlinearity.tensors.shard import Shard, numbers
from tpcalc.nonlinearity.tensors.spread import outputs
from tpcalc.nonlinearity.tensors.uncertainty import Measured, mean_of_draws

Tensor = Any
Function = Callable[[Any], Any]


@dataclass(frozen=True)
class Jacobians:
    """Mean squares of a Jacobian J.

    Args:
        numerator: E Tr J Cov_x J^T, for an input of a batch.
        frobenius: E |J|_F^2; None where it was not measured.
    """

    numerator: Measured
    frobenius: Measured | None = None


def backward(f: Function, shard: Shard, draws: int) -> Jacobians:
    """Send Gaussian noise u back from the outputs: E (u J (x' - mean)^T)^2.

    Every x of a batch meets every x' of another one; noise serves both means.

    Source: Schoenherr, The nonlinearity coefficient, section 4.4.4; for a function with batch norm
        4.4.4.1, whose factors are these for a batch of any size.

    Example:
        >>> from tpcalc.nonlinearity.tensors.shard import shard_of
        >>> found = backward(lambda x: 2 * x, shard_of([[0.0], [1.0], [2.0]]), 400)
        >>> abs(found.frobenius.value - 4) < 5 * found.frobenius.stderr
        True
    """
    mean = shard.mean
    numerators, columns, frobenius = [], [], []
    places = np.array([shard.places("inputs", draw) for draw in range(draws)])
    opposite = np.array([shard.places("others", draw) for draw in range(draws)])
    for draw in range(draws):
        x = shard.at(places[draw])
        g = pulled(f, x, partial(shard.noise, what="outputs", draw=draw)).flatten(1)
        others = (shard.at(opposite[draw]) - mean).flatten(1)
        squares = (g @ others.T) ** 2
        numerators.append(numbers(squares.mean(1)))
        columns.append(numbers(squares.mean(0)))
        frobenius.append(numbers((g * g).sum(1)))
    size = len(shard)
    numerator = mean_of_draws(np.array(numerators), size, places, opposite, np.array(columns))
    return Jacobians(
        numerator.times(shard.correction), mean_of_draws(np.array(frobenius), size, places)
    )


def pulled(f: Function, x: Tensor, above: Callable[[Tensor], Tensor]) -> Tensor:
    """The derivative u J of a batch."""
    torch = load_torch()
    with torch.enable_grad():
        start = x.detach().requires_grad_()
        value = outputs(f, start)
        if not value.requires_grad:
            raise EvaluationError(
                "the outputs do not depend on the inputs through torch.",
                hint="The function must not detach them or compute with another library.",
            )
        (found,) = torch.autograd.grad(value, start, above(value.detach()), allow_unused=True)
    return torch.zeros_like(x) if found is None else found


def forward(
    layers: Callable[[Tensor], Sequence[Tensor]], shard: Shard, draws: int
) -> list[Jacobians]:
    """Push deviations x' - mean of inputs, and Gaussian noise, forward to every layer.

    The x' are drawn one by one: then directions of different positions of a batch are independent,
    and the means are right for functions with batch norm as well.

    Source: Schoenherr, The nonlinearity coefficient, section 4.4.4.

    Example:
        >>> from tpcalc.nonlinearity.tensors.shard import shard_of
        >>> found = forward(lambda x: [x, 2 * x], shard_of([[0.0], [1.0], [2.0]]), 400)
        >>> abs(found[1].numerator.value - 4) < 5 * found[1].numerator.stderr
        True
    """
    mean = shard.mean
    along: list[list[Any]] = []
    around: list[list[Any]] = []
    places = np.array([shard.places("inputs", draw) for draw in range(draws)])
    opposite = np.array([shard.repeatable_places("directions", draw) for draw in range(draws)])
    for draw in range(draws):
        x = shard.at(places[draw])
        along.append(_pushed(layers, x, shard.at(opposite[draw]) - mean))
        around.append(_pushed(layers, x, shard.noise(x, "tangents", draw)))
    found = []
    for index in range(len(along[0])):
        terms = np.array([draw[index] for draw in along])
        numerator = mean_of_draws(terms, len(shard), places, opposite)
        terms = np.array([draw[index] for draw in around])
        frobenius = mean_of_draws(terms, len(shard), places)
        found.append(Jacobians(numerator.times(shard.correction), frobenius))
    return found


def _pushed(layers: Callable[[Tensor], Sequence[Tensor]], x: Tensor, v: Tensor) -> list[Any]:
    """For each layer the squared lengths of its derivatives along v."""
    torch = load_torch()
    _, tangents = torch.func.jvp(lambda batch: tuple(layers(batch)), (x,), (v,))
    return [numbers((tangent.reshape(len(x), -1) ** 2).sum(1)) for tangent in tangents]
