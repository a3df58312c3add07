"""The random matrices and biases of a network's layers."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tpcalc.finite.draws import Network, fill_entries, orthogonal
from tpcalc.finite.layered.steps import Bias, Dense
from tpcalc.program.nodes import Family

__all__ = ["Weights", "draw_bias", "draw_weights"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Weights:
    """A matrix as a product of factors.

    Args:
        factors: Arrays or tensors, the one that acts first at the front.
        span: C, the columns in whose span all outputs are; None if that is everything.

    Example:
        >>> found = draw_weights(Dense(4.0, rank=0.5), Network(0, 6), 1, (6, 6), 3)
        >>> [factor.shape for factor in found.factors], found.product.shape
        ([(3, 6), (6, 3)], (6, 6))
    """

    factors: tuple[Any, ...]
    span: Any = None

    @property
    def product(self) -> Any:
        """The matrix itself."""
        found = self.factors[0]
        for factor in self.factors[1:]:
            found = factor @ found
        return found


def draw_weights(
    step: Dense, network: Network, index: int, shape: tuple[int, int], rank: int
) -> Weights:
    """The weights of a dense layer.

    Args:
        step: The layer.
        network: Seed and width.
        index: Its number.
        shape: Its neurons and its fan-in.
        rank: Its rank.

    Source:
        On the initialisation of wide low-rank feedforward neural networks, equation 2; both factors
        of orthogonal weights are Haar distributed, so that W^T W is free from the layers before.
    """
    rows, columns = shape
    sigma, name = sqrt(step.variance), f"layer {index}"
    if step.family == "gaussian" and rank == rows:
        return Weights((_gaussian(f"{name}: W", network, rows, columns, sigma / sqrt(columns)),))
    if step.family in ("gaussian", "gaussian-gaussian"):
        first = _gaussian(f"{name}: A", network, rank, columns, sigma / sqrt(columns))
        if step.family == "gaussian":
            second = _columns(f"{name}: C", network, rows, rank)
        else:
            second = _gaussian(f"{name}: C", network, rows, rank, 1 / sqrt(rows))
        return Weights((first, second), second)
    if step.family == "padded":
        span = _columns(f"{name}: C", network, rows, rank)
        padded = np.zeros(shape)
        padded[:, :rank] = sigma * span
        return Weights((padded,), span)
    # Full rank keeps E W_ij^2 = variance / fan-in where there are more neurons than inputs to them.
    if step.rank == 1:
        sigma *= sqrt(rows / rank)
    if rank == min(shape):  # one Haar factor: the other would not change the law
        single = _columns(f"{name}: U", network, rows, columns)
        return Weights((sigma * single,), single if rank < rows else None)
    below = _columns(f"{name}: V", network, columns, rank)
    above = _columns(f"{name}: U", network, rows, rank)
    return Weights((sigma * below.T, above), above)


def draw_bias(step: Bias, network: Network, index: int, size: int, weights: Any) -> Array:
    """The biases of a layer.

    Args:
        step: The layer.
        network: Seed and width.
        index: Its number.
        size: Its neurons.
        weights: The ``Weights`` of the dense layer that it reads, as arrays; None if it reads none.

    Source: On the initialisation of wide low-rank feedforward neural networks, section 1.
    """
    generator = network.stream("bias", f"layer {index}")
    sigma = sqrt(step.variance)
    span = None if weights is None else weights.span
    if step.span == "scalar":
        scalar = sigma * float(generator.standard_normal())
        # The sum of all columns of a Haar matrix: a vector of length sqrt(n) in any direction.
        total = span.sum(axis=1) if span is not None else _sphere(generator, size)
        found: Array = scalar * total
        return found
    if step.span == "directions" and span is not None:
        along: Array = span @ (sigma * generator.standard_normal(span.shape[1]))
        return along
    return sigma * generator.standard_normal(size)


def _sphere(generator: np.random.Generator, size: int) -> Array:
    direction = generator.standard_normal(size)
    found: Array = direction * (sqrt(size) / np.linalg.norm(direction))
    return found


def _gaussian(name: str, network: Network, rows: int, columns: int, scale: float) -> Array:
    target = np.empty((rows, columns))
    fill_entries(Family(name, ("n", "m")), [network], [target])
    target *= scale
    return target


def _columns(name: str, network: Network, rows: int, columns: int) -> Array:
    """Orthonormal columns (rows, if there are fewer), Haar distributed."""
    family = Family(name, ("n", "m"), law="orthogonal")
    return orthogonal(family, network, rows, columns) / sqrt(max(rows, columns))
