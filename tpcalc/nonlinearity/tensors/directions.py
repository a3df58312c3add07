"""Random directions in the space of inputs, with the covariance that the inputs have."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np

from tpcalc.engine.device.devices import load_torch
from tpcalc.nonlinearity.tensors.shard import Shard

Tensor = Any


class Directions:
    """Directions u Cov_x^(1/2) with u Gaussian or uniform on a sphere.

    Args:
        shard: The inputs.

    Example:
        >>> from tpcalc.nonlinearity.tensors.shard import shard_of
        >>> directions = Directions(shard_of([[1.0], [3.0]]))
        >>> directions.sphere(np.random.default_rng(0), 3).abs().round(decimals=6).min().item()
        1.414214
    """

    def __init__(self, shard: Shard) -> None:
        torch = load_torch()
        self._shape = tuple(shard.rows.shape[1:])
        self._features = shard.features
        away = (shard.rows - shard.mean).flatten(1) / sqrt(len(shard) - 1)
        if len(shard) > self._features:
            values, vectors = torch.linalg.eigh(away.T @ away)
            self._root = values.clamp_min(0).sqrt()[:, None] * vectors.T
        else:
            _, values, vectors = torch.linalg.svd(away, full_matrices=False)
            self._root = values[:, None] * vectors

    def gaussian(self, generator: np.random.Generator, count: int) -> Tensor:
        """Directions N(0, Cov_x)."""
        return self._turned(generator.standard_normal((count, self._features)))

    def sphere(self, generator: np.random.Generator, count: int) -> Tensor:
        """Directions u Cov_x^(1/2), u uniform on the sphere whose radius is the root of d_in."""
        u = generator.standard_normal((count, self._features))
        u *= sqrt(self._features) / np.linalg.norm(u, axis=1, keepdims=True)
        return self._turned(u)

    def _turned(self, u: Any) -> Tensor:
        # The law of u is the same in every basis: its first entries belong to the directions in
        # which inputs differ.
        part = load_torch().from_numpy(u[:, : len(self._root)].copy())
        found = part.to(self._root.device, self._root.dtype) @ self._root
        return found.reshape(-1, *self._shape)
