"""Random inputs of one length."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["sphere_inputs"]


def sphere_inputs(count: int, features: int, square: float = 1.0, seed: int = 0) -> Any:
    """Independent inputs, uniform on the sphere of radius sqrt(features q)."""
    import torch

    words = np.random.SeedSequence([seed, 0x1A7E5, features])
    found = np.random.Generator(np.random.SFC64(words)).standard_normal((count, features))
    found *= (square * features) ** 0.5 / np.linalg.norm(found, axis=1, keepdims=True)
    return torch.from_numpy(found)
