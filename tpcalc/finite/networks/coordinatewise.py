"""Functions of coordinates in torch, with the derivatives that their expressions have.

At a kink torch would choose a derivative of its own, from the operations an activation is written
with; here it is the value of the derivative's expression, the one that every limit uses.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from tpcalc.engine.device.devices import load_torch
from tpcalc.engine.device.space import TorchSpace
from tpcalc.functions import Fn, Par, Var, tape
from tpcalc.functions.expr import substitute

Tensor = Any


def coordinatewise(fn: Fn, *arguments: Tensor) -> Tensor:
    """A function of tensors, coordinate by coordinate, in both modes of differentiation.

    Example:
        >>> from tpcalc.activations.entries import lookup
        >>> torch = load_torch()
        >>> x = torch.tensor([-1.0, 0.0, 2.0], requires_grad=True)
        >>> coordinatewise(lookup("abs").fn, x).sum().backward()
        >>> x.grad.tolist()
        [-1.0, 0.0, 1.0]
    """
    torch = load_torch()
    if len(arguments) > 1:
        arguments = torch.broadcast_tensors(*arguments)
    fn = _of_vectors(fn)
    if torch._C._are_functorch_transforms_active():
        return _operation(True).apply(fn, *arguments)
    if torch.is_grad_enabled() and any(own.requires_grad for own in arguments):
        return _operation(False).apply(fn, *arguments)
    return evaluated(fn, *arguments)


@lru_cache(maxsize=1024)
def _of_vectors(fn: Fn) -> Fn:
    """The function with its scalars as further vectors."""
    if not fn.scalars:
        return fn
    given = {Par(index): Var(fn.vectors + index) for index in range(fn.scalars)}
    return Fn(substitute(fn.expr, given), fn.vectors + fn.scalars)  # type: ignore[arg-type]


_slope = lru_cache(maxsize=1024)(Fn.by)


@lru_cache(maxsize=2)
def _operation(transformed: bool) -> Any:
    """The function for torch: under ``torch.func``, or, several times as quick, without it."""
    torch = load_torch()

    def setup(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.fn = inputs[0]
        ctx.save_for_backward(*inputs[1:])
        ctx.save_for_forward(*inputs[1:])

    def forward(ctx: Any, fn: Fn, *vectors: Tensor) -> Tensor:
        setup(ctx, (fn, *vectors), None)
        return evaluated(fn, *vectors)

    def backward(ctx: Any, above: Tensor) -> Any:
        vectors = ctx.saved_tensors
        wanted = ctx.needs_input_grad[1:]
        found = [
            above * coordinatewise(_slope(ctx.fn, index), *vectors) if needed else None
            for index, needed in enumerate(wanted)
        ]
        return (None, *found)

    def jvp(ctx: Any, _: None, *tangents: Any) -> Tensor:
        vectors = ctx.saved_tensors
        parts = [
            tangent * coordinatewise(_slope(ctx.fn, index), *vectors)
            for index, tangent in enumerate(tangents)
            if tangent is not None
        ]
        return sum(parts[1:], parts[0])

    members: dict[str, Any] = {"backward": staticmethod(backward), "jvp": staticmethod(jvp)}
    if transformed:
        members |= {"forward": staticmethod(evaluated), "setup_context": staticmethod(setup)}
        members["generate_vmap_rule"] = True
    else:
        members["forward"] = staticmethod(forward)
    return type("Coordinatewise", (torch.autograd.Function,), members)


space_of = lru_cache(maxsize=16)(TorchSpace)


def evaluated(fn: Fn, *vectors: Tensor) -> Tensor:
    """A function of tensors that is not differentiated."""
    torch, first = load_torch(), vectors[0]
    space = space_of(torch, first.dtype, first.device)
    found = tape.run(tape.lower(fn), space, list(vectors))
    if isinstance(found, float | int):
        return torch.full_like(first, found)
    # A projection gives an argument itself, which autograd would take for a view.
    return found.clone() if any(found is vector for vector in vectors) else found
