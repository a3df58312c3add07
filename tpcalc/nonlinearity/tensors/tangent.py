"""What a step on the training loss does to the test loss, and how parameters grow."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import hypot, inf, sqrt
from typing import Any

import numpy as np

from tpcalc import checks
from tpcalc.engine.device.devices import load_torch
from tpcalc.errors import EvaluationError, UsageError
from tpcalc.nonlinearity.tensors.batch_moments import batch_moments
from tpcalc.nonlinearity.tensors.uncertainty import estimate
from tpcalc.results import Estimate

Tensor = Any
Loss = Callable[[Tensor, Tensor], Tensor]
_BATCH = 250


def tangent_transfer(
    f: Callable[[Any], Any],
    parameters: Sequence[Tensor],
    loss: Loss,
    train: tuple[Tensor, Tensor],
    test: tuple[Tensor, Tensor],
    *,
    batch: int = _BATCH,
) -> Estimate:
    """TTNTK: <grad L_train, grad L_test> / |grad L_train|^2 of mean losses over whole shards.

    Args:
        f: A function from a batch of inputs to one of outputs.
        parameters: The tensors it depends on.
        loss: Takes outputs and targets of a batch and gives their mean loss.
        train: Inputs and targets of the training shard.
        test: Those of the test shard.
        batch: Inputs of a batch.

    Returns:
        The ratio; its error comes from the scatter over batches.

    Raises:
        UsageError: A shard without inputs, or with another number of targets.
        EvaluationError: The gradient of the training loss is 0 or not finite.

    Source: Schoenherr, The nonlinearity coefficient, section 4.4.9, with the gradient of the
        training loss twice in the denominator.

    Example:
        >>> torch = load_torch()
        >>> w = torch.tensor([[1.0], [2.0]])
        >>> x, y = torch.eye(2), torch.zeros(2, 1)
        >>> loss = torch.nn.functional.mse_loss
        >>> tangent_transfer(lambda x: x @ w, [w], loss, (x, y), (2 * x, y)).value
        4.0
    """
    for inputs, targets in (train, test):
        if not len(inputs) or len(inputs) != len(targets):
            raise UsageError(f"a shard has {len(inputs)} inputs and {len(targets)} targets.")
    with batch_moments(f), _differentiable(parameters):
        here = _total(f, parameters, loss, train, batch)
        there = _total(f, parameters, loss, test, batch)
        square, product = _dot(here, here), _dot(here, there)
        if not 0 < square < inf:
            raise EvaluationError(
                f"the squared length of the gradient of the training loss is {square:.3g}.",
                hint="The loss does not depend on the parameters, or leaves its number format.",
            )
        value = product / square
        # Each batch's share of the first-order change of the ratio.
        own = [
            _dot(g, there) / square - 2 * value * _dot(g, here) / square
            for g, _ in _gradients(f, parameters, loss, train, batch)
        ]
        other = [_dot(here, g) / square for g, _ in _gradients(f, parameters, loss, test, batch)]
    stderr = hypot(_scatter(own), _scatter(other))
    return estimate(value, stderr, len(train[0]) + len(test[0]), None)


def parameter_growth(now: Sequence[Tensor], before: Sequence[Tensor]) -> float:
    """PARMGROWTH: the length of all parameters over what it was.

    Args:
        now: The parameters.
        before: The parameters at the start.

    Returns:
        The quotient of the two lengths.

    Raises:
        UsageError: They were all 0.

    Source: Schoenherr, The nonlinearity coefficient, section 5.3.3.

    Example:
        >>> torch = load_torch()
        >>> parameter_growth([torch.tensor([3.0, 4.0])], [torch.tensor([1.0, 0.0])])
        5.0
    """
    start = sqrt(_dot(before, before))
    if not start:
        raise UsageError("all parameters were 0 at the start.", hint="There is no growth then.")
    return sqrt(_dot(now, now)) / start


@contextmanager
def _differentiable(parameters: Sequence[Tensor]) -> Iterator[None]:
    kept = [parameter.requires_grad for parameter in parameters]
    for parameter in parameters:
        parameter.requires_grad_(True)
    try:
        yield
    finally:
        for parameter, was in zip(parameters, kept, strict=True):
            parameter.requires_grad_(was)


def _gradients(
    f: Callable[[Any], Any],
    parameters: Sequence[Tensor],
    loss: Loss,
    shard: tuple[Tensor, Tensor],
    batch: int,
) -> Iterator[tuple[tuple[Tensor, ...], int]]:
    torch = load_torch()
    for inputs, targets in zip(shard[0].split(batch), shard[1].split(batch), strict=True):
        value = loss(f(inputs), targets)
        yield torch.autograd.grad(value, parameters, materialize_grads=True), len(inputs)


def _total(
    f: Callable[[Any], Any],
    parameters: Sequence[Tensor],
    loss: Loss,
    shard: tuple[Tensor, Tensor],
    batch: int,
) -> tuple[Tensor, ...]:
    torch = load_torch()
    found = tuple(torch.zeros_like(parameter) for parameter in parameters)
    for gradients, count in _gradients(f, parameters, loss, shard, batch):
        for total, g in zip(found, gradients, strict=True):
            total.add_(g, alpha=count / len(shard[0]))
    return found


def _dot(left: Sequence[Tensor], right: Sequence[Tensor]) -> float:
    for entry in (*left, *right):
        checks.of_type(entry, load_torch().Tensor, "a parameter")
    pairs = zip(left, right, strict=True)
    return float(sum(float((a.detach().double() * b.detach().double()).sum()) for a, b in pairs))


def _scatter(terms: Sequence[float]) -> float:
    return float(np.std(terms, ddof=1)) / sqrt(len(terms)) if len(terms) > 1 else inf
