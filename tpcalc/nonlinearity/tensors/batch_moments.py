"""Torch's batch norm on the moments of the batch at hand, whatever mode a module is in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tpcalc.engine.device.devices import load_torch
from tpcalc.errors import UsageError


@contextmanager
def batch_moments(function: Any) -> Iterator[None]:
    """Let all batch norms of a module use the moments of their batch, and leave their averages.

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
    parts = list(found()) if callable(found) else []
    _check_dropout(parts)
    norms = [part for part in parts if isinstance(part, base)]
    kept = [(part.running_mean, part.running_var, part.track_running_stats) for part in norms]
    for part in norms:
        part.running_mean, part.running_var, part.track_running_stats = None, None, False
    try:
        yield
    finally:
        for part, (mean, variance, tracked) in zip(norms, kept, strict=True):
            part.running_mean, part.running_var, part.track_running_stats = mean, variance, tracked


def _check_dropout(parts: list[Any]) -> None:
    dropout = load_torch().nn.modules.dropout._DropoutNd
    for part in parts:
        share = part.p if isinstance(part, dropout) else getattr(part, "dropout", 0.0)
        if part.training and isinstance(share, float) and share > 0:
            raise UsageError(
                f"the module drops units at random ({type(part).__name__}, {share:g}) in training "
                "mode: it is another function in each run.",
                hint="Call .eval() first; batch norms use the moments of the batch all the same.",
            )
