"""Torch's batch norm on the moments of the batch at hand, whatever mode a module is in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tpcalc.finite.device import load_torch

__all__ = ["batch_moments"]


@contextmanager
def batch_moments(function: Any) -> Iterator[None]:
    """Let all batch norms of a module use the moments of their batch, and leave their averages.

    Args:
        function: A torch module, or anything else, which is left alone.

    Example:
        >>> torch = load_torch()
        >>> norm = torch.nn.BatchNorm1d(1).eval()
        >>> with batch_moments(norm):
        ...     [round(n, 3) for (n,) in norm(torch.tensor([[1.0], [3.0]])).tolist()]
        [-1.0, 1.0]
        >>> float(norm.running_mean)
        0.0
    """
    torch = load_torch()
    base = torch.nn.modules.batchnorm._BatchNorm
    found = getattr(function, "modules", None)
    norms = [part for part in found() if isinstance(part, base)] if callable(found) else []
    kept = [(part.running_mean, part.running_var, part.track_running_stats) for part in norms]
    for part in norms:
        part.running_mean, part.running_var, part.track_running_stats = None, None, False
    try:
        yield
    finally:
        for part, (mean, variance, tracked) in zip(norms, kept, strict=True):
            part.running_mean, part.running_var, part.track_running_stats = mean, variance, tracked
