"""Architectures by name: one complete file for each, found by its presence in this folder."""

from __future__ import annotations

from tpcalc.networks.architecture import ArchitectureFamily as ArchitectureFamily
from tpcalc.networks.network import Architecture as Architecture
from tpcalc.registry.registry import Registry, discover

REGISTRY: Registry[ArchitectureFamily] = discover(__name__, "architecture", ArchitectureFamily)


def lookup(name: str) -> ArchitectureFamily:
    """The architectures of a name; calling ``make`` with parameters yields a network.

    Example:
        >>> lookup("mlp").make(2, "tanh").hidden
        2
    """
    return REGISTRY[name]
