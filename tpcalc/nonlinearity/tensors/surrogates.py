"""Sets of inputs with given second moments, as the theory of wide networks assumes them."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np

from tpcalc import checks
from tpcalc.arrays import Array
from tpcalc.engine.device.devices import load_torch, resolve_device, resolve_dtype
from tpcalc.errors import UsageError
from tpcalc.nonlinearity.meta import moments_of

Tensor = Any
# Tells these streams from those of weights.
_INPUTS = 0x1A7E5


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

    They are sqrt(c) v_0 + sqrt(q - c) v_i with orthogonal v_i of length sqrt(features).

    Args:
        count: How many, below ``features``.
        features: Features of an input.
        square: q.
        comean: c, at least 0 and below q.
        seed: The seed.
        device: Where they are.
        dtype: Their number format.

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
    count, features = _shape(count, features, square, comean)
    if count >= features:
        raise UsageError(
            f"{count} inputs of {features} features cannot have one second moment in every pair.",
            hint=f"At most {features - 1} can.",
        )
    q, r = np.linalg.qr(_stream(seed, features).standard_normal((features, count + 1)))
    vectors = (q * np.where(np.diag(r) < 0, -1.0, 1.0)).T * sqrt(features)
    return _placed(sqrt(comean) * vectors[0] + sqrt(square - comean) * vectors[1:], device, dtype)


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
        square: q.
        comean: c, at least 0 and below q.
        seed: The seed.
        device: Where they are.
        dtype: Their number format.

    Returns:
        A tensor of shape (count, features).

    Raises:
        UsageError: Moments that no inputs have.

    Source: Schoenherr, The nonlinearity coefficient, section 5.2.

    Example:
        >>> gaussian_inputs(5, 3).shape
        torch.Size([5, 3])
    """
    count, features = _shape(count, features, square, comean)
    generator = _stream(seed, features)
    centre = sqrt(comean) * generator.standard_normal(features)
    around = sqrt(square - comean) * generator.standard_normal((count, features))
    return _placed(centre + around, device, dtype)


def _shape(count: int, features: int, square: float, comean: float) -> tuple[int, int]:
    moments_of(square, comean)
    count = checks.whole(count, "count", least=1)
    return count, checks.whole(features, "features", least=1)


def _stream(seed: int, features: int) -> np.random.Generator:
    words = [checks.seed(seed), _INPUTS, features]
    return np.random.Generator(np.random.SFC64(np.random.SeedSequence(words)))


def _placed(array: Array, device: str, dtype: str) -> Tensor:
    return load_torch().from_numpy(array).to(resolve_device(device), resolve_dtype(dtype))
