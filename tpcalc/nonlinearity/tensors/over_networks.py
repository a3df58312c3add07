"""What is measured over networks that were drawn anew: gradients by parameters, singular values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tpcalc import checks
from tpcalc.arrays import Array
from tpcalc.engine.device.devices import load_torch
from tpcalc.errors import UsageError
from tpcalc.nonlinearity.estimators import estimate, mean_of
from tpcalc.nonlinearity.tensors.functions import numbers
from tpcalc.nonlinearity.tensors.gradients import Loss, differentiable
from tpcalc.nonlinearity.tensors.jacobians import jacobian_values
from tpcalc.results import Estimate
from tpcalc.shown import Rows, Shown

ROUNDING = 1e-10  # of the largest singular value


@dataclass(frozen=True)
class ParameterGradient(Shown):
    """The gradient of the loss of an input by one parameter, squared."""

    name: str  # of the parameter
    square: Estimate  # E |dE/dP|^2, the mean over networks
    share: Estimate  # the same over the mean of (dE/dy)^2 over the outputs y of the same network
    theory: float | None = None  # what share is expected to be, where that was given


@dataclass(frozen=True)
class JacobianSpread(Shown):
    """Singular values of input-output Jacobians of networks of one kind."""

    setting: Any  # what the networks have in common
    relative_variance: Estimate  # of squared singular values, the mean over networks
    deviation: float  # its standard deviation from network to network
    nonzero: Estimate  # the share of singular values that are not 0
    values: tuple[float, ...]  # the singular values of all networks, from the largest on
    theory: float | None = None  # the relative variance that is expected, where that was given


def parameter_gradients(
    networks: Iterable[Any],
    x: Any,
    targets: Any,
    loss: Loss,
    theory: Mapping[str, Any] | None = None,
    *,
    seed: int | None = None,
) -> tuple[ParameterGradient, ...]:
    """Squared gradients of a loss by each parameter of drawn networks, beside what is expected.

    Args:
        networks: Networks of ``tp.signal.network_of`` that differ in their seeds; two or more.
        x: Inputs, a row for each.
        targets: Labels, or whatever the loss takes, one for each input.
        loss: Takes outputs and targets of a batch and gives a loss for each input.
        theory: By the name of a parameter its expected squared gradient, as a share of the mean
            squared gradient by one output: ``tp.signal.LayerSequence(...).gradients(q).weights``
            of the factors A of layers with these widths, times their variance: networks hold the
            entries over the number that stands in front of them.
        seed: What the networks were drawn with.

    Returns:
        A row for each parameter (for each in ``theory``, where that is given), in their order.

    Raises:
        UsageError: Fewer than two networks, names that no parameter has, a loss that gives no
            number for each input.

    Source: On the initialisation of wide low-rank feedforward neural networks, section 2.2,
        appendix A.8 and Figure 12.

    Example:
        >>> from types import SimpleNamespace
        >>> torch = load_torch()
        >>> class Net(SimpleNamespace):
        ...     def __call__(self, x): return x @ self.parameters["W"]
        >>> nets = [Net(parameters={"W": torch.eye(2)}) for _ in range(2)]
        >>> half = lambda y, t: ((y - t) ** 2).sum(1) / 2
        >>> (row,) = parameter_gradients(nets, torch.ones(1, 2), torch.zeros(1, 2), half)
        >>> row.name, row.square.value, row.share.value  # |x|^2 |y|^2, over |y|^2 / 2
        ('W', 4.0, 4.0)
    """
    found, names = [], tuple(theory or ())
    for network in networks:
        names = names or tuple(network.parameters)
        found.append(_squares(network, names, x, targets, loss))
    rows = _several(found)
    told = [None] * len(names) if theory is None else [_plain(theory[name]) for name in names]
    return Rows(
        ParameterGradient(name, _over(own, seed), _over(own / rows[:, 0], seed), expected)
        for name, own, expected in zip(names, rows[:, 1:].T, told, strict=True)
    )


def _squares(network: Any, names: Sequence[str], x: Any, targets: Any, loss: Loss) -> Array:
    """The mean over inputs of (dE/dy)^2 by an output, and of |dE/dP|^2 by each parameter."""
    torch, squares = load_torch(), list[list[float]]()
    for name in names:
        checks.one_of("parameter", name, tuple(network.parameters))
    own = [network.parameters[name] for name in names]
    with differentiable(own):
        for row, target in zip(x.split(1), numbers(targets, "targets").split(1), strict=True):
            y = network(row)
            value = loss(y, target)
            if tuple(value.shape) != (1,):
                raise UsageError("the loss gives no number for each input.")
            slopes = torch.autograd.grad(value.sum(), [y, *own])
            sizes = [float((slope.double() ** 2).sum()) for slope in slopes]
            squares.append([sizes[0] / y.shape[1], *sizes[1:]])
    return np.asarray(np.mean(squares, axis=0))


def jacobian_sweep(
    draw: Callable[[Any, int], Callable[[Any], Any]],
    settings: Sequence[Any],
    x: Any,
    *,
    seeds: int = 4,
    theory: Callable[[Any], Any] | None = None,
) -> tuple[JacobianSpread, ...]:
    """Singular values of Jacobians over ranks, depths or any other setting of networks.

    Args:
        draw: Gives a function of a batch for a setting and a seed: ``lambda rank, seed:
            tp.signal.network_of(graph(rank), 1000, 1000, seed)``.
        settings: The settings.
        x: The input, one row of features.
        seeds: Networks for each setting, two or more.
        theory: Gives the relative variance that is expected of a setting.

    Returns:
        For each setting the relative variance of squared singular values with its error and its
        standard deviation over networks, the share that is not 0, and the values themselves.

    Raises:
        UsageError: Fewer than two networks, or several inputs.

    Source: On the initialisation of wide low-rank feedforward neural networks, section 3, Figures
        2 to 5.

    Example:
        >>> torch = load_torch()
        >>> lines = lambda k, seed: (lambda x: x * torch.tensor([1.0, float(k > 1)]))
        >>> found = jacobian_sweep(lines, (1, 2), torch.ones(2), seeds=2)
        >>> [(row.setting, row.nonzero.value, row.relative_variance.value) for row in found]
        [(1, 0.5, 1.0), (2, 1.0, 0.0)]
    """
    found = []
    for setting in settings:
        drawn = (jacobian_values(draw(setting, seed), x) for seed in range(seeds))
        values = _several(list(drawn))
        squares = values**2
        spread = (squares**2).mean(axis=1) / squares.mean(axis=1) ** 2 - 1
        share = (values > ROUNDING * values.max(axis=1, keepdims=True)).mean(axis=1)
        found.append(
            JacobianSpread(
                setting,
                _over(spread, 0),
                float(spread.std(ddof=1)),
                _over(share, 0),
                tuple(np.sort(values, axis=None)[::-1].tolist()),
                None if theory is None else _plain(theory(setting)),
            )
        )
    return Rows(found)


def _several(rows: Sequence[Array]) -> Array:
    """A row for each network."""
    if len(rows) < 2:
        raise UsageError(f"{len(rows)} networks cannot show an error.", hint="Draw two or more.")
    return np.array(rows)


def _over(values: Array, seed: int | None) -> Estimate:
    own = mean_of(values)
    return estimate(own.value, own.stderr, own.samples, seed)


def _plain(value: Any) -> float:
    return float(getattr(value, "value", value))
