"""Numbers of a module as its network takes them: rows of data, and entries of parameters."""

from __future__ import annotations

from typing import Any

import numpy as np

from tpcalc.engine.device.devices import load_torch
from tpcalc.results import Samples
from tpcalc.torch.arrays import Array
from tpcalc.torch.dims import leaves, ordered, part
from tpcalc.torch.exported import arguments
from tpcalc.torch.network import Module

Tensor = Any


def rows(module: Module, inputs: Any, width: int) -> Any:
    """Tensors as rows of data, one for each input that the network is a function of.

    Args:
        module: The network.
        inputs: As ``tp.torch.network`` takes them; any number of samples.
        width: The width of the module that reads them.

    Returns:
        An array with a row for each sample; one row where samples are not read one by one.
    """
    torch = load_torch()
    args, named = arguments(inputs, width)
    flat, _ = torch.utils._pytree.tree_flatten((args, dict(named)))
    held = [one for one in flat if isinstance(one, torch.Tensor)]
    found = []
    for index in module.inputs:
        op = module.graph.ops[index]
        values = held.pop(next(k for k, one in enumerate(held) if one.ndim == len(op.shape)))
        if op.name == "tokens":
            (table,) = module.table(index)
            values = torch.nn.functional.one_hot(values, table.sizes[0])
        own = module.leaves(index)
        values = values.double().numpy()
        if not module.one_by_one:
            values = values[None]
        else:
            own = own[1:]
        values = values.reshape(len(values), *(leaf.sizes[0] for leaf in own))
        if module.features in own:
            values = np.moveaxis(values, 1 + own.index(module.features), -1)
        found.append(values.reshape(len(values), -1))
    return np.concatenate(found, axis=1)


def samples(module: Module, inputs: Any, targets: Any) -> Samples:
    """Tensors and what they are to become, as data of a training run.

    Args:
        module: The network.
        inputs: As for ``rows``.
        targets: A row for each sample, with a number for each output.
    """
    made = rows(module, inputs, module.graph.widths[0])
    aims = np.asarray(targets, dtype=float).reshape(len(made), -1)
    return Samples(tuple(map(tuple, made.tolist())), tuple(map(tuple, aims.tolist())))


def entries(module: Module, family: str, values: Tensor, at: int) -> Any:
    """The entries of a parameter of a module as a family of its program has them.

    Args:
        module: The network, whose program was written.
        family: The name of the family: that of the parameter, with the number of a part.
        values: The array of the whole parameter.
        at: The number of its width among those that the network was read at.
    """
    op, named, *_ = module.stored[family]
    index = module.graph.ops.index(op)
    dims = tuple(map(leaves, module.dims(index)))
    for k in (int(one) - 1 for one in named.split(":")[1:]):
        leaf = next(leaf for dim in dims for leaf in dim if leaf.apart or leaf.pieces)
        values = part(values, dims, leaf, k, at)
        dims = module.space.part_of(Array(dims), leaf, k).expanded()
    return ordered(values, dims, at)
