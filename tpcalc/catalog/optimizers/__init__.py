"""Optimizers by name: one complete file for each, found by its presence in this folder."""

from __future__ import annotations

from tpcalc.catalog.optimizer import Optimizer
from tpcalc.catalog.registry import Registry, discover

__all__ = ["REGISTRY", "Optimizer", "lookup"]

REGISTRY: Registry[Optimizer] = discover(__name__, "optimizer", Optimizer)


def lookup(name: str | Optimizer) -> Optimizer:
    """The optimizer of a name.

    Args:
        name: Its name; an optimizer is returned as it is.

    Raises:
        UnknownName: There is no such optimizer.

    Example:
        >>> lookup("SGD").name
        'sgd'
    """
    return name if isinstance(name, Optimizer) else REGISTRY[name]
