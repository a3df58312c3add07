"""Singular values of the Jacobians of networks of finite width, and their moments."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tpcalc import checks
from tpcalc.arrays import Array
from tpcalc.engine.device.devices import load_torch
from tpcalc.errors import UsageError
from tpcalc.nonlinearity.estimators import estimate, mean_of
from tpcalc.results import Estimate
from tpcalc.shown import Shown

Tensor = Any


@dataclass(frozen=True)
class JacobianMoments(Shown):
    """Moments of the squared singular values of J, which has N rows, over networks."""

    first: Estimate  # m_1 = Tr J J^T / N
    second: Estimate  # m_2 = Tr (J J^T)^2 / N
    variance: Estimate  # m_2 - m_1^2 of each network, the mean over them
    relative_variance: Estimate  # the same over m_1^2 of the same network


def jacobian(f: Callable[[Any], Any], x: Tensor) -> Tensor:
    """The derivative of the outputs by one input, a row for each output.

    Args:
        f: A function from a batch of inputs to one of outputs, which treats inputs one by one.
        x: The input, one row of features.

    Raises:
        UsageError: Several inputs.

    Example:
        >>> torch = load_torch()
        >>> jacobian(lambda x: x @ torch.diag(torch.tensor([2.0, 3.0])), torch.ones(2)).tolist()
        [[2.0, 0.0], [0.0, 3.0]]
    """
    if getattr(x, "ndim", 0) != 1:
        raise UsageError(
            f"an input is {checks.shown(x)}.", hint="Give one input, a row of features."
        )
    found = load_torch().func.jacrev(lambda row: f(row[None]).flatten())(x.detach())
    return found.detach()


def singular_values(f: Callable[[Any], Any], x: Tensor) -> Array:
    """The singular values of the Jacobian at one input, from the largest on.

    Args:
        f: As of ``jacobian``.
        x: The input, one row of features.

    Raises:
        UsageError: Several inputs.

    Source: On the initialisation of wide low-rank feedforward neural networks, equation 10.

    Example:
        >>> torch = load_torch()
        >>> double = lambda x: x @ torch.diag(torch.tensor([2.0, 3.0]))
        >>> singular_values(double, torch.ones(2)).round(6).tolist()
        [3.0, 2.0]
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
