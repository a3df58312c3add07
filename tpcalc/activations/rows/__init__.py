"""Functions of rows by name: one complete file for each, found by its presence in this folder."""

from __future__ import annotations

from tpcalc.functions.rows import RowFn
from tpcalc.registry.registry import Registry, discover

REGISTRY: Registry[RowFn] = discover(__name__, "row function", RowFn)


def row(name: str) -> RowFn:
    """The row function of a name.

    Example:
        >>> row("softmax").name
        'softmax'
    """
    return REGISTRY[name]
