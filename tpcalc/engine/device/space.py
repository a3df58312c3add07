"""The array namespace of torch, for running function tapes on tensors."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

Unary = Callable[[Any], Any]


def _erf(value: float) -> float:
    return math.erf(value)


class TorchSpace:
    """The functions that atoms are written with, on torch tensors of one number format.

    Tapes hold constants as Python floats, and torch is strict where numpy is lenient: its functions
    take no float, and ``where`` on two floats falls back to its global default format. So floats
    are taken everywhere here; a function of floats alone gives a float.
    """

    def __init__(self, torch: Any, dtype: Any, device: Any = "cpu") -> None:
        self._torch = torch
        self._dtype = dtype
        self._device = device
        self._constants: dict[float, Any] = {}
        self.exp = self._unary(torch.exp, np.exp)
        self.log = self._unary(torch.log, np.log)
        self.log1p = self._unary(torch.log1p, np.log1p)
        self.sqrt = self._unary(torch.sqrt, np.sqrt)
        self.tanh = self._unary(torch.tanh, np.tanh)
        self.sin = self._unary(torch.sin, np.sin)
        self.cos = self._unary(torch.cos, np.cos)
        self.erf = self._unary(torch.erf, _erf)
        self.abs = self._unary(torch.abs, np.abs)
        self.sign = self._unary(self._sign, np.sign)

    def maximum(self, left: Any, right: Any) -> Any:
        """The larger of two, coordinate by coordinate."""
        if isinstance(left, float | int) and isinstance(right, float | int):
            return float(np.maximum(left, right))
        return self._torch.maximum(self._tensor(left), self._tensor(right))

    def minimum(self, left: Any, right: Any) -> Any:
        """The smaller of two, coordinate by coordinate."""
        if isinstance(left, float | int) and isinstance(right, float | int):
            return float(np.minimum(left, right))
        return self._torch.minimum(self._tensor(left), self._tensor(right))

    def where(self, condition: Any, left: Any, right: Any) -> Any:
        """``left`` where the condition holds, else ``right``."""
        if isinstance(condition, bool | np.bool_):
            return left if condition else right
        return self._torch.where(condition, self._tensor(left), self._tensor(right))

    def _sign(self, value: Any) -> Any:
        # torch calls the sign of nan 0, which would hide it; extremes keep it, in a third of the
        # time of a comparison.
        lowest = self._torch.minimum(value, self._tensor(-math.inf))
        return self._torch.maximum(self._torch.sign(value), lowest)

    def _tensor(self, value: Any) -> Any:
        if not isinstance(value, float | int):
            return value
        key = float(value)
        if key not in self._constants:
            self._constants[key] = self._torch.tensor(key, dtype=self._dtype, device=self._device)
        return self._constants[key]

    def _unary(self, on_tensor: Unary, on_float: Unary) -> Unary:
        def apply(value: Any) -> Any:
            if isinstance(value, float | int):
                with np.errstate(all="ignore"):
                    return float(on_float(value))
            return on_tensor(value)

        return apply
