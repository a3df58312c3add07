"""Gradients of losses: their lengths by layer, the nonlinearity they show, what a step does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import hypot, inf
from typing import Any

import numpy as np

from tpcalc import checks
from tpcalc.arrays import Array, Index
from tpcalc.engine.device.devices import load_torch
from tpcalc.errors import EvaluationError, UsageError
from tpcalc.nonlinearity.estimators import ONE, estimate, mean_of, root_of_ratio
from tpcalc.nonlinearity.measured import spread_of
from tpcalc.nonlinearity.sample import Sample
from tpcalc.nonlinearity.tensors.functions import (
    HasLayers,
    Torch,
    batch_moments,
    function_on,
    network_on,
    numbers,
    outputs,
)
from tpcalc.results import Estimate
from tpcalc.shown import Rows, Shown

Tensor = Any
Loss = Callable[[Tensor, Tensor], Tensor]
_BATCH = 250


@dataclass(frozen=True)
class GradientLengths(Shown):
    """The gradient of the loss of an input by one layer; d_L is the size of the output."""

    layer: int  # number of the layer
    # GLEN: root of E |g|^2 / d_L. With Gaussian g of variance 1 at the output, at the input
    # it tends to sqrt(g_L) in wide networks
    length: Estimate
    component: Estimate  # GVCS: root mean square of the entries of g


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
        network, x, batch, seed: As of ``layer_metrics``.
        targets: A tensor with a target for each input.
        loss: Takes outputs and targets of a batch and gives a loss for each input. None: gradients
            by the outputs are N(0, 1).

    Returns:
        A row for each layer, the input first.

    Raises:
        UsageError: A loss that gives no number for each input, or targets without a loss.
        EvaluationError: A gradient is not finite.

    Source: Schoenherr, The nonlinearity coefficient, chapter 6.

    Example:
        >>> from tpcalc.nonlinearity.tensors.functions import Tapped, gaussian_inputs
        >>> rows = gradient_lengths(Tapped(lambda x: [3 * x]), gaussian_inputs(500, 20))
        >>> abs(rows[0].length.value - 3) < 5 * rows[0].length.stderr
        True
    """
    squares, sizes = _squares(*network_on(network, x, batch, seed), targets, loss)
    found = []
    for index, (terms, size) in enumerate(zip(squares, sizes, strict=True)):
        total = mean_of(terms)
        both = (root_of_ratio(total.times(1 / part), ONE, seed) for part in (sizes[-1], size))
        found.append(GradientLengths(index, *both))
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
        f, x, batch, seed: As of ``measured_nlc``.
        targets, loss: As of ``gradient_lengths``.

    Returns:
        The coefficient, with its standard error.

    Raises:
        UsageError, EvaluationError: As of ``gradient_lengths``, or the outputs have collapsed.

    Source: Schoenherr, The nonlinearity coefficient, section 4.4.5.

    Example:
        >>> from tpcalc.nonlinearity.tensors.functions import gaussian_inputs
        >>> x = gaussian_inputs(1000, 20)
        >>> found = gradient_nlc(lambda x: 3 * x, x, x, lambda y, t: ((y - t) ** 2).sum(1))
        >>> abs(found.value - 1) < 5 * found.stderr
        True
    """
    function, sample = function_on(f, x, batch, seed)
    (below, above), (features, size) = _squares(function, sample, targets, loss)
    spread = spread_of(function, sample)
    over = mean_of(below / spread.unit**2).times(size * sample.spread / features)
    under = mean_of(above)
    # The error of the product of two means that are in the denominator.
    relative = hypot(under.stderr / under.value, spread.total.stderr / spread.total.value)
    product = under.value * spread.total.value
    whole = replace(ONE, value=product, stderr=product * relative)
    return root_of_ratio(over, whole, seed)


def _squares(
    function: Torch, sample: Sample, targets: Any, loss: Loss | None
) -> tuple[list[Array], list[int]]:
    """For each layer the squared lengths of gradients for each input, and its size."""
    known = _targets(sample, targets, loss)
    parts: list[list[Array]] = []
    sizes: list[int] = []
    for number, (places, x) in enumerate(zip(sample.parts(), sample.batches(), strict=True)):

        def above(_: int, value: Tensor, number: int = number, places: Index = places) -> Any:
            if loss is None or known is None:
                return sample.noise(tuple(value.shape), "outputs", number)
            return _slope(loss, value, known[places].to(value.device))

        found = list(function.vjp(x, {-1: None}, above).values())
        sizes = [g.shape[1] for g in found]
        parts = parts or [[] for _ in found]
        for own, g in zip(parts, found, strict=True):
            own.append((g**2).sum(axis=1))
    return [np.concatenate(part) for part in parts], sizes


def _slope(loss: Loss, value: Tensor, targets: Tensor) -> Tensor:
    """The gradient of the losses of a batch by its outputs."""
    torch, start = load_torch(), value.requires_grad_()
    found = loss(start, targets)
    if tuple(found.shape) != (len(value),):
        raise UsageError(
            f"the loss of {len(value)} inputs has shape {tuple(found.shape)}.",
            hint="It gives one number for each input (reduction='none' in torch).",
        )
    return torch.autograd.grad(found.sum(), start)[0]


def _targets(sample: Sample, targets: Any, loss: Loss | None) -> Tensor | None:
    """Targets in the order of the inputs."""
    if loss is None:
        if targets is not None:
            raise UsageError("targets are given, and no loss.", hint="Give the loss as well.")
        return None
    count = len(sample) + sample.left_out
    found = len(targets) if hasattr(targets, "__len__") else 0
    if found != count:
        raise UsageError(
            f"there are {found} targets for {count} inputs.",
            hint="A loss needs one for each input.",
        )
    return numbers(targets, "targets")[sample.order]


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
    shards, batch = (train, test), checks.whole(batch, "batch", least=1)
    _flat(parameters)  # which are tensors
    torch = load_torch()
    for shard in shards:
        if [isinstance(part, torch.Tensor) for part in shard] != [True, True]:
            raise UsageError("a shard is no pair of tensors.", hint="Give (inputs, targets).")
        if not len(shard[0]) or len(shard[0]) != len(shard[1]):
            raise UsageError(f"a shard has {len(shard[0])} inputs and {len(shard[1])} targets.")

    def gradients(shard: tuple[Tensor, Tensor]) -> Iterator[tuple[Array, float]]:
        for x, y in zip(shard[0].split(batch), shard[1].split(batch), strict=True):
            own = checks.answer(loss, checks.answer(f, x, name="f"), y, name="loss")
            if not isinstance(own, torch.Tensor) or own.numel() != 1 or not own.requires_grad:
                raise UsageError("the loss is no number of torch that depends on the parameters.")
            found = torch.autograd.grad(own, parameters, materialize_grads=True)
            yield _flat(found), len(x) / len(shard[0])

    with batch_moments(f), differentiable(parameters):
        here, there = (
            sum((share * g for g, share in gradients(shard)), start=np.zeros(1)) for shard in shards
        )
        square, product = float(here @ here), float(here @ there)
        if not 0 < square < inf:
            raise EvaluationError(
                f"the squared length of the gradient of the training loss is {square:.3g}.",
                hint="The loss does not depend on the parameters, or leaves its number format.",
            )
        # Each batch's share of the first-order change of the ratio.
        value = product / square
        own = [g @ (there - 2 * value * here) / square for g, _ in gradients(train)]
        other = [here @ g / square for g, _ in gradients(test)]
    stderr = hypot(*(mean_of(np.array(terms)).stderr for terms in (own, other)))
    return estimate(value, stderr, len(train[0]) + len(test[0]), None)


def tangent_kernel(f: Callable[[Any], Any], parameters: Sequence[Tensor], x: Tensor) -> Array:
    """The neural tangent kernel of a function at inputs: df(x)/dtheta (df(x')/dtheta)^T.

    Every parameter has the learning rate 1. Of weights of the variance 1 / fan-in the kernel of a
    layer over its fan-in has a limit in wide networks, as with ``tp.kernel``.

    Args:
        f: A function from a batch of inputs to one of outputs.
        parameters: The tensors it depends on.
        x: The inputs, as one batch.

    Returns:
        For each pair of inputs a block of outputs by outputs, shape (N, N, d, d).

    Raises:
        UsageError: Parameters or inputs that are no tensors.
        EvaluationError: The outputs do not depend on the parameters.

    Source: Schoenherr, The nonlinearity coefficient, sections 4.4.9 and 5.1.6.

    Example:
        >>> torch = load_torch()
        >>> w = torch.tensor([[1.0, 0.0], [2.0, 1.0]])
        >>> tangent_kernel(lambda x: x @ w, [w], torch.eye(2) + 1)[0, 1].tolist()
        [[4.0, 0.0], [0.0, 4.0]]
    """
    _flat(parameters)  # which are tensors
    torch = load_torch()
    checks.of_type(x, torch.Tensor, "x")
    with batch_moments(f), torch.enable_grad(), differentiable(parameters):
        found = outputs(f, x)
        if not found.requires_grad:
            raise EvaluationError("the outputs do not depend on the parameters through torch.")
        kept = {"retain_graph": True, "materialize_grads": True}
        rows = [_flat(torch.autograd.grad(y, parameters, **kept)) for y in found.flatten()]
    jacobian, (count, size) = np.stack(rows), found.shape
    return (jacobian @ jacobian.T).reshape(count, size, count, size).swapaxes(1, 2)


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
    return _relative(_flat(now), before)


def parameter_shift(now: Sequence[Tensor], before: Sequence[Tensor]) -> float:
    """PARMSHIFT: the length of the change of all parameters over what they were.

    Args:
        now: The parameters.
        before: The parameters at the start.

    Returns:
        The quotient of the two lengths.

    Raises:
        UsageError: They were all 0, or there were others.

    Source: Schoenherr, The nonlinearity coefficient, section 6.6.

    Example:
        >>> torch = load_torch()
        >>> parameter_shift([torch.tensor([4.0, 4.0])], [torch.tensor([1.0, 0.0])])
        5.0
    """
    after, start = _flat(now), _flat(before)
    if len(after) != len(start):
        raise UsageError(f"there were {len(start)} parameters, and now {len(after)}.")
    return _relative(after - start, before)


def _relative(change: Array, before: Sequence[Tensor]) -> float:
    start = float(np.linalg.norm(_flat(before)))
    if not start:
        raise UsageError("all parameters were 0 at the start.", hint="There is no growth then.")
    return float(np.linalg.norm(change)) / start


@contextmanager
def differentiable(parameters: Sequence[Tensor]) -> Iterator[None]:
    """Parameters by which gradients are taken, for a while."""
    kept = [parameter.requires_grad for parameter in parameters]
    for parameter in parameters:
        parameter.requires_grad_(True)
    try:
        yield
    finally:
        for parameter, was in zip(parameters, kept, strict=True):
            parameter.requires_grad_(was)


def _flat(parameters: Sequence[Tensor]) -> Array:
    """All entries in one row."""
    for entry in parameters:
        checks.of_type(entry, load_torch().Tensor, "a parameter")
    rows = (entry.detach().cpu().double().numpy().ravel() for entry in parameters)
    return np.concatenate([np.zeros(0), *rows])
