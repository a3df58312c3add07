"""Arrays of numbers beside the dimensions of a tensor: its parts, and its order in a program."""

from __future__ import annotations

from typing import Any

import numpy as np

from tpcalc.torch.dims import Dim, Leaf, leaves


def part(values: Any, dims: tuple[Dim, ...], leaf: Leaf, index: int, at: int) -> Any:
    """One of the cells of a leaf that are told apart, or one of its pieces.

    Args:
        values: The array, its dimensions of one cell where it is constant along them.
        dims: The dimensions of the tensor.
        leaf: The leaf.
        index: The cell or the piece.
        at: The number of the width among those that were looked at.
    """
    for k, dim in enumerate(dims):
        own = leaves(dim)
        if leaf.root not in own or values.shape[k] == 1:
            continue
        place = own.index(leaf.root)
        sizes = [one.sizes[at] for one in own]
        shape = values.shape
        split = values.reshape(*shape[:k], *sizes, *shape[k + 1 :])
        if leaf.root.pieces:
            before = sum(one.sizes[at] for one in leaf.root.pieces[:index])
            cells = range(before, before + leaf.root.pieces[index].sizes[at])
            taken = np.take(split, cells, axis=k + place)
        else:
            taken = np.take(split, index, axis=k + place)
        values = taken.reshape(*shape[:k], -1, *shape[k + 1 :])
    return values


def ordered(values: Any, dims: tuple[Dim, ...], at: int) -> Any:
    """Finite axes first, then those that grow, as the families of a program have them."""
    every = [leaf for dim in dims for leaf in leaves(dim)]
    split = values.reshape([leaf.sizes[at] for leaf in every] or (1,))
    for k, leaf in enumerate(every):
        split = np.take(split, leaf.kept, axis=k) if leaf.kept else split
    first = [k for k, leaf in enumerate(every) if leaf.is_finite]
    later = [k for k, leaf in enumerate(every) if not leaf.is_finite]
    return np.transpose(split, [*first, *later]) if every else split.reshape(())


def varied(dims: tuple[Dim, ...], values: Any) -> tuple[Dim, ...]:
    """Dimensions without those along which numbers are equal."""
    sizes = zip(dims, values.shape, strict=True)
    return tuple(dim if size > 1 else () for dim, size in sizes)


def is_level(values: Any, axis: int) -> bool:
    """Whether numbers are equal along an axis."""
    return bool((values == np.take(values, [0], axis=axis)).all())
