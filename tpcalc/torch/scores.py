"""What softmaxes read in a forward pass, which is seen operation by operation."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from tpcalc.engine.device.devices import load_torch

Tensor = Any
MASKED = -1e3  # what is lower stands for -oo


def scores(see: Callable[[Tensor], None]) -> AbstractContextManager[Any]:
    """Tell what softmaxes read meanwhile; what a mask hides is 0 where it was added."""

    def dispatch(mode: Any, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name, named = function._schema.name.removeprefix("aten::"), kwargs or {}
        if name in ("_softmax", "_safe_softmax"):
            see(args[0].masked_fill(args[0] < MASKED, 0))
        elif name.startswith("_scaled_dot_product"):
            see(_products(args[0], args[1], named.get("scale")))
        return function(*args, **named)

    kind = load_torch().utils._python_dispatch.TorchDispatchMode
    found: AbstractContextManager[Any] = type("Scores", (kind,), {"__torch_dispatch__": dispatch})()
    return found


def _products(queries: Tensor, keys: Tensor, scale: float | None) -> Tensor:
    groups = queries.shape[-3] // keys.shape[-3]  # heads that share a key
    products = queries @ keys.repeat_interleave(groups, -3).mT
    return products * (queries.shape[-1] ** -0.5 if scale is None else scale)
