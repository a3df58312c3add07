"""First steps of a network of finite width: by autograd, and along the steps themselves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tpcalc.engine.device.devices import load_torch
from tpcalc.finite.networks.network import DrawnNetwork
from tpcalc.program.types import Ref

Tensor = Any
Size = tuple[Ref | None, str]  # of a node; of the probe without one; by a parameter or at the start


def first_step(
    network: DrawnNetwork,
    numbers: Sequence[float],
    probe: Sequence[float],
    rules: Mapping[str, Callable[[Tensor], Tensor]],
    read: Sequence[Ref],
) -> dict[Size, float]:
    """Let each parameter step alone: how much <gradient, step> is, and how large changes of nodes.

    Sizes of nodes are root mean squares, changes their derivatives along the step.
    """
    torch = load_torch()
    start = {name: network.parameters[name] for name in rules}
    leaves = {name: own.clone().requires_grad_() for name, own in start.items()}
    known = network.known(torch.tensor([numbers], dtype=network.dtype))
    forward = torch.autograd.forward_ad
    try:
        network.parameters.update(leaves)
        outputs = network.joined(dict(network.walk(known, network.outputs)), 1)[0]
        probed, own = outputs @ torch.tensor(probe, dtype=network.dtype), list(leaves.values())
        some = {"allow_unused": True, "materialize_grads": True}
        gradients = torch.autograd.grad(probed, own, **some) if own else ()
        network.parameters.update(start)
        found: dict[Size, float] = {(ref, ""): _rms(own) for ref, own in network.walk(known, read)}
        for (name, rule), gradient in zip(rules.items(), gradients, strict=True):
            step = rule(gradient)
            found[None, name] = abs(float((gradient * step).sum()))
            with forward.dual_level():
                network.parameters[name] = forward.make_dual(start[name], step)
                for ref, value in network.walk(known, read):
                    moved = forward.unpack_dual(value).tangent
                    found[ref, name] = 0.0 if moved is None else _rms(moved)
            network.parameters[name] = start[name]
        return found
    finally:
        network.parameters.update(start)


def _rms(values: Tensor) -> float:
    return float((values**2).mean() ** 0.5)
