"""A module and its network on the same numbers: outputs, gradients."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import torch
from modules.rows import Row

from tpcalc.finite.networks.network import DrawnNetwork
from tpcalc.torch.export import arguments
from tpcalc.torch.network import Module
from tpcalc.torch.numbers import entries, rows
from tpcalc.torch.training import network
from tpcalc.training.parameterizations import lookup
from tpcalc.training.written import network_program


def doubled(value: Any) -> Any:
    """A tensor of floats in double precision."""
    floating = isinstance(value, torch.Tensor) and value.is_floating_point()
    return value.double() if floating else value


def differences(row: Row, width: int = 0, **given: Any) -> dict[str, float]:
    """How far outputs and gradients of a module and its network are apart, relative to them.

    The network is drawn at the width of the module, and its parameters are put to those of it.
    """
    made = network(row.make, row.inputs, eps=True, **given)
    at = made.graph.widths.index(width) if width else 0
    width = made.graph.widths[at]
    module = copy.deepcopy(made.family.modules[width]).double()
    args, named = arguments(row.inputs, width)
    found = module(*map(doubled, args), **{key: doubled(one) for key, one in named.items()})
    flat, _ = torch.utils._pytree.tree_flatten(found)
    output = next(one for one in flat if isinstance(one, torch.Tensor) and one.is_floating_point())
    x = rows(made, row.inputs, width)
    cells = output.shape[-1] if output.ndim else 1
    program = network_program(made, lookup("own").under(1), x.shape[1], cells)
    drawn = DrawnNetwork(program, width, 0)
    units = _put(made, module, drawn, width, at)
    own = drawn(torch.tensor(x))
    wanted = output.reshape(own.shape)
    probe = torch.cos(torch.arange(own.shape[1], dtype=torch.float64))
    (own @ probe).sum().backward()
    (wanted @ probe).sum().backward()
    top = float(wanted.detach().abs().max())
    found = {"output": float((own - wanted).detach().abs().max()) / top}
    return found | _gradients(made, module, drawn, units, at)


def _put(made: Module, module: Any, drawn: DrawnNetwork, width: int, at: int) -> dict[str, float]:
    """Put the parameters of a network to those of a module; what an entry of theirs is."""
    units = {}
    for family, (op, _, _, init) in made.stored.items():
        if family not in drawn.parameters:
            continue
        mean = init.mean.at(width) if init.mean.number else 0.0
        units[family] = init.std.at(width) if init.std.number else 1.0
        values = entries(made, family, module.get_parameter(op.label).detach().numpy(), at)
        shape = drawn.parameters[family].shape
        tensor = torch.tensor((np.ascontiguousarray(values) - mean) / units[family])
        drawn.parameters[family] = tensor.reshape(shape).requires_grad_()
    drawn._read()
    return units


def _gradients(
    made: Module, module: Any, drawn: DrawnNetwork, units: dict[str, float], at: int
) -> dict[str, float]:
    found = {}
    grads = {name: one.grad for name, one in module.named_parameters() if one.grad is not None}
    top = max(float(one.abs().max()) for one in grads.values())
    for family, unit in units.items():
        name = made.stored[family][0].label
        if not module.get_parameter(name).requires_grad:
            continue
        whole = grads.get(name, torch.zeros_like(module.get_parameter(name)))
        wanted = entries(made, family, whole.numpy(), at) * unit
        own = drawn.parameters[family].grad
        values = np.zeros_like(wanted) if own is None else own.numpy().reshape(wanted.shape)
        scale = max(float(np.abs(wanted).max()), 1e-6 * top * unit)
        found[family] = float(np.abs(values - wanted).max()) / scale
    return found
