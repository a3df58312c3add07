"""Sets of inputs with given second moments, as the theory of wide networks assumes them."""

from __future__ import annotations

from typing import Any

from tpcalc.arrays import Array
from tpcalc.engine.device.devices import load_torch, resolve_device, resolve_dtype
from tpcalc.nonlinearity.meta import elem_like, meta_gaussian

Tensor = Any


def elementlike_inputs(
    count: int,
    features: int,
    square: float = 1.0,
    comean: float = 0.0,
    seed: int = 0,
    device: str = "cpu",
    dtype: str = "float64",
) -> Tensor:
    """Inputs of second moment q exactly, any two with second moment c exactly.

    Args:
        count: How many, at most ``features``.
        features: Features of an input.
        square, comean: q, and c, at least 0 and below q.
        seed, device, dtype: The seed, where they are, and their number format.

    Returns:
        A tensor of shape (count, features).

    Raises:
        UsageError: More than fit, or moments that no inputs have.

    Source: Schoenherr, The nonlinearity coefficient, section 5.2.

    Example:
        >>> x = elementlike_inputs(3, 8, 2.0, 0.5)
        >>> [[round(number, 9) for number in row] for row in (x @ x.T / 8).tolist()]
        [[2.0, 0.5, 0.5], [0.5, 2.0, 0.5], [0.5, 0.5, 2.0]]
    """
    found = elem_like(square, comean, count=count, dimension=features, seed=seed)
    return _placed(found, device, dtype)


def gaussian_inputs(
    count: int,
    features: int,
    square: float = 1.0,
    comean: float = 0.0,
    seed: int = 0,
    device: str = "cpu",
    dtype: str = "float64",
) -> Tensor:
    """Inputs around one centre: entries N(0, c) of the centre plus N(0, q - c) of each input.

    Args:
        count: How many.
        features: Features of an input.
        square, comean: q, and c, at least 0 and below q.
        seed, device, dtype: The seed, where they are, and their number format.

    Returns:
        A tensor of shape (count, features).

    Raises:
        UsageError: Moments that no inputs have.

    Source: Schoenherr, The nonlinearity coefficient, section 5.2.

    Example:
        >>> gaussian_inputs(5, 3).shape
        torch.Size([5, 3])
    """
    found = meta_gaussian(square, comean, samples=count, neurons=features, seed=seed)
    return _placed(found, device, dtype)


def _placed(array: Array, device: str, dtype: str) -> Tensor:
    return load_torch().from_numpy(array).to(resolve_device(device), resolve_dtype(dtype))
