"""Losses by name: one complete file for each, found by its presence in this folder."""

from __future__ import annotations

from tpcalc.registry.registry import Registry, discover
from tpcalc.training.loss import Loss as Loss

REGISTRY: Registry[Loss] = discover(__name__, "loss", Loss)


def lookup(name: str | Loss) -> Loss:
    """The loss of a name.

    Example:
        >>> lookup("mse").text
        '1/2 sum over outputs of (f - y)^2'
    """
    return name if isinstance(name, Loss) else REGISTRY[name]
