"""The entries of what is drawn: one array for each family, from streams of its own."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tpcalc.arrays import Array
from tpcalc.finite.draws import Network, draw_group, draw_scalar, fill_entries, orthogonal
from tpcalc.program.family import Family


def drawn(family: Family, network: Network, sizes: Mapping[str, int]) -> Array:
    """All cells of a family; ``finite.dense`` draws the same after ``split``."""
    shape = _shape(family, sizes)
    if len(family.width) == 1:
        cells = range(family.size)
        return draw_group(family, cells, network, shape[-1]).reshape(shape)
    parts = [family.part(index) for index in range(family.size)]
    if not family.width:
        return np.array([draw_scalar(part, network) for part in parts]).reshape(shape)
    found = np.empty((family.size, *shape[-2:]))
    for part, target in zip(parts, found, strict=True):
        if family.law == "orthogonal":
            target[...] = orthogonal(part, network, *shape[-2:])
        else:
            fill_entries(part, [network], [target])
    return found.reshape(shape)


def noise(family: Family, network: Network, sizes: Mapping[str, int], inputs: int) -> Array:
    """What every input of a batch draws for itself; an input's noise is that of its place."""
    stream = network.stream("noise", family.name)
    return stream.standard_normal((inputs, *_shape(family, sizes)))


def _shape(family: Family, sizes: Mapping[str, int]) -> tuple[int, ...]:
    return (*(size for _, size in family.axes), *(sizes[name] for name in family.width))
