"""The same evaluation on torch tensors, and against torch's own functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tpcalc.activations.entries import lookup
from tpcalc.engine.device.space import TorchSpace
from tpcalc.functions.fn import Fn
from tpcalc.functions.tape import evaluate, lower, run

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch
functional = torch.nn.functional


OWN = {
    "relu": functional.relu,
    "relu^2": lambda z: functional.relu(z) ** 2,
    "relu^3/2": lambda z: functional.relu(z) ** 1.5,
    "leaky_relu:0.2": lambda z: functional.leaky_relu(z, 0.2),
    "abs": torch.abs,
    "tanh": torch.tanh,
    "erf": torch.erf,
    "sin": torch.sin,
    "cos": torch.cos,
    "sigmoid": torch.sigmoid,
    "softplus": lambda z: functional.softplus(z, threshold=1e9),
    "gelu": functional.gelu,
    "elu": functional.elu,
    "elu:0.5": lambda z: functional.elu(z, 0.5),
    "selu": functional.selu,
    "swish": functional.silu,
    "exp": torch.exp,
    "normal_cdf": torch.special.ndtr,
    "identity": lambda z: z * 1,
    "square": torch.square,
    "poly:1,0,1/2": lambda z: 1 + z**2 / 2,
}
JUMPS = {"sign": torch.sign, "step": lambda z: torch.heaviside(z, torch.zeros_like(z))}
POSITIVE = {"log": torch.log, "sqrt": torch.sqrt}


def on_torch(fn: Fn, z: Any) -> Any:
    return run(lower(fn), TorchSpace(torch, z.dtype), [z])


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("text", [*OWN, *JUMPS, *POSITIVE])
def test_value_is_that_of_torch(text: str, dtype: Any) -> None:
    start = 0.1 if text in POSITIVE else -6.0
    z = torch.linspace(start, 6.0, 101, dtype=dtype)
    wanted = {**OWN, **JUMPS, **POSITIVE}[text](z)
    found = on_torch(lookup(text).fn, z)
    assert found.dtype == dtype
    tolerance = 1e-12 if dtype is torch.float64 else 3e-6
    torch.testing.assert_close(found, wanted, rtol=tolerance, atol=tolerance)
    here = lookup(text).evaluate(z.numpy().astype(np.float64))
    np.testing.assert_allclose(here, wanted.double().numpy(), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("text", OWN)
def test_slope_is_that_of_torch_at_kinks_too(text: str) -> None:
    z = (torch.arange(-24, 25, dtype=torch.float64) / 8).requires_grad_()
    (wanted,) = torch.autograd.grad(OWN[text](z).sum(), z)
    slope = lookup(text).fn.by(0)
    found = np.broadcast_to(evaluate(slope, [z.detach().numpy()]), z.shape)
    np.testing.assert_allclose(found, wanted.numpy(), rtol=1e-10, atol=1e-12)
    there = on_torch(slope, z.detach())
    np.testing.assert_allclose(np.broadcast_to(there, z.shape), found, rtol=1e-12, atol=1e-12)
