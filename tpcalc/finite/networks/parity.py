"""A module of torch and its network on the same numbers: outputs and gradients."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import numpy as np

from tpcalc.engine.device.devices import load_torch
from tpcalc.finite.networks.network import DrawnNetwork
from tpcalc.torch.exported import arguments, doubled
from tpcalc.torch.network import Module
from tpcalc.torch.numbers import entries, rows
from tpcalc.training.parameterizations import lookup
from tpcalc.training.written import network_program

SMALL = 1e-6  # of the largest gradient: what a gradient is measured against at least

Tensor = Any


def differences(module: Module, inputs: Any, at: int = 0) -> dict[str, float]:
    """How far a module and its network are apart in double precision, relative to each quantity."""
    torch, width = load_torch(), module.graph.widths[at]
    own = copy.deepcopy(module.family.modules[width]).double()
    args, named = doubled(arguments(inputs, width))
    found = own(*args, **named)
    flat, _ = torch.utils._pytree.tree_flatten(found)
    floats = [one for one in flat if isinstance(one, torch.Tensor) and one.is_floating_point()]
    wanted = floats[module.graph.chosen]
    x = rows(module, inputs, width)
    cells = wanted.shape[-1] if wanted.ndim else 1
    program = network_program(module, lookup("own").under(1), x.shape[1], cells)
    drawn = DrawnNetwork(program, width, 0)
    units = _put(module, own, drawn, at)
    made = drawn(torch.tensor(x))
    wanted = wanted.reshape(made.shape)
    probe = torch.cos(torch.arange(made.shape[1], dtype=torch.float64))
    (made @ probe).sum().backward()
    (wanted @ probe).sum().backward()
    apart = float((made - wanted).detach().abs().max())
    result = {"output": apart / float(wanted.detach().abs().max())}
    return result | _gradients(module, own, drawn, units, at)


def _put(module: Module, own: Any, drawn: DrawnNetwork, at: int) -> dict[str, float]:
    """Put the parameters of a network to those of a module; what a unit of their entries is."""
    torch, width, units = load_torch(), module.graph.widths[at], {}
    for family, (op, _, _, init) in module.stored.items():
        if family not in drawn.parameters:
            continue
        mean = init.mean.at(width) if init.mean.number else 0.0
        units[family] = init.std.at(width) if init.std.number else 1.0
        values = entries(module, family, own.get_parameter(op.label).detach().numpy(), at)
        tensor = torch.tensor((np.ascontiguousarray(values) - mean) / units[family])
        shape = drawn.parameters[family].shape
        drawn.parameters[family] = tensor.reshape(shape).requires_grad_()
    for family, held in module.space.held.items():
        drawn.parameters[family] = torch.tensor(held[at]).reshape(drawn.parameters[family].shape)
    return units


def _gradients(
    module: Module, own: Any, drawn: DrawnNetwork, units: Mapping[str, float], at: int
) -> dict[str, float]:
    grads = {name: one.grad for name, one in own.named_parameters() if one.grad is not None}
    top, found = max(float(one.abs().max()) for one in grads.values()), {}
    for family, unit in units.items():
        name = module.stored[family][0].label
        parameter = own.get_parameter(name)
        if not parameter.requires_grad:
            continue
        whole = grads.get(name, load_torch().zeros_like(parameter))
        wanted = entries(module, family, whole.numpy(), at) * unit
        made = drawn.parameters[family].grad
        values = np.zeros_like(wanted) if made is None else made.numpy().reshape(wanted.shape)
        scale = max(float(np.abs(wanted).max()), SMALL * top * unit)
        found[family] = float(np.abs(values - wanted).max()) / scale
    return found
