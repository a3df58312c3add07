"""A function of batches of inputs: its values, and its derivatives along directions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import sqrt
from typing import Any

import numpy as np

from tpcalc.arrays import Array
from tpcalc.errors import EvaluationError, UsageError
from tpcalc.results import Method

EPS = 2.0**-52
Pairs = Mapping[int, Sequence[int] | None]
OUTPUTS: Pairs = {-1: [0]}  # the outputs, the last layer, by the inputs, the first
STEPS = (1e-5, 0.05)  # the smallest and the largest step, in standard deviations of the input


class Function(ABC):
    """What is measured: inputs in rows to outputs in rows, and the rounding of its numbers."""

    method = Method.PARTICLES
    step: float = 0.0  # of differences, in standard deviations of the input; 0: they are none
    eps: float = EPS
    input_eps: float = EPS

    @abstractmethod
    def values(self, x: Array) -> Array:
        """The outputs at inputs."""

    @abstractmethod
    def jvp(self, x: Array, v: Array) -> list[Array]:
        """J(x) v for each layer, the outputs last."""

    def vjp(
        self, x: Array, ends: Pairs, above: Callable[[int, Any], Any]
    ) -> dict[tuple[int, int], Array]:
        """Products u J(x) for layers l by layers m (None: all), u by l and the layer itself."""
        raise UsageError("this function gives no products u J.", hint="Give one of torch tensors.")

    def apart(self, x: Array) -> Array:
        """The outputs of several batches, each seen by itself."""
        return self.values(x.reshape(-1, x.shape[2])).reshape(*x.shape[:2], -1)

    def slopes_apart(self, x: Array, v: Array) -> Array:
        """J(x) v of several batches, each seen by itself."""
        flat = (-1, x.shape[2])
        return self.jvp(x.reshape(flat), v.reshape(flat))[-1].reshape(*x.shape[:2], -1)

    def bends_apart(self, x: Array, v: Array, u: Array) -> Array:
        """The second derivative along v of u f of several batches.

        It is that off kinks: steps are so short that next to none is crossed.
        """
        step = self.step or sqrt(self.eps)
        ahead, back = (self.slopes_apart(x + side * step * v, v) for side in (1, -1))
        return np.asarray(np.sum(u * (ahead - back), axis=(1, 2)) / (2 * step))


@dataclass(frozen=True)
class Code(Function):
    """A function of d numbers as numpy code, with its Jacobian, its products J(x) v, or neither."""

    function: Callable[[Any], Any]
    dimension: int
    jacobian: Callable[[Any], Any] | None = None
    products: Callable[[Any, Any], Any] | None = None
    step: float = STEPS[0]
    eps: float = EPS

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise UsageError(
                f"the function is a {type(self.function).__name__}.",
                hint="Give a Python function of an array with one input in each row.",
            )
        if self.jacobian is not None and self.products is not None:
            raise UsageError("jacobian= and jvp= are both given.", hint="Give one of them.")
        if self.jacobian is not None or self.products is not None:
            object.__setattr__(self, "step", 0.0)

    def fitted(self, x: Array, v: Array) -> Code:
        """The same with its rounding, and a step that balances it against curvature."""
        with np.errstate(all="ignore"):
            found = np.asarray(self.function(x.copy()))
        eps = float(np.finfo(found.dtype).eps) if found.dtype.kind == "f" else EPS
        own = replace(self, eps=max(eps, EPS))
        if not self.step:
            return own
        return replace(own, step=float(np.clip(np.cbrt(own.noise(x, v)), *STEPS)))

    def noise(self, x: Array, v: Array) -> float:
        """The rounding of inputs and outputs, next to how far they vary."""
        y = self.values(x)
        spread = np.abs(y - y.mean(axis=0)).max()
        return max(EPS * _size(x, np.abs(v).max()), self.eps * _size(y, spread))

    def values(self, x: Array) -> Array:
        """The outputs at inputs, in rows."""
        return self._called("the function", self.function, x)

    def jvp(self, x: Array, v: Array) -> list[Array]:
        """The derivatives J(x) v."""
        if self.jacobian is not None:
            return [np.einsum("bij,bj->bi", self.matrices(x), v)]
        if self.products is not None:
            return [self._called("jvp", self.products, x, v)]
        return [self._difference(x, v)]

    def matrices(self, x: Array) -> Array:
        """The Jacobians at points, as ``jacobian`` gives them."""
        assert self.jacobian is not None
        with np.errstate(all="ignore"):
            found = _real(self.jacobian(x.copy()), "jacobian")
        if found.ndim == 2 and found.shape == (len(x), self.dimension):
            found = found[:, None, :]
        if found.ndim != 3 or found.shape[0] != len(x) or found.shape[2] != self.dimension:
            raise UsageError(
                f"jacobian gave shape {found.shape} for {len(x)} inputs of {self.dimension} "
                "numbers.",
                hint="It gives an array of inputs by outputs by coordinates.",
            )
        return _finite(found, x, "jacobian")

    def _called(self, name: str, function: Callable[..., Any], *arrays: Array) -> Array:
        """What some code gives in rows."""
        with np.errstate(all="ignore"):
            found = _real(function(*(array.copy() for array in arrays)), name)
        found = found[:, None] if found.ndim == 1 else found
        if found.ndim != 2 or len(found) != len(arrays[0]) or not found.size:
            raise UsageError(
                f"{name} gave shape {found.shape} for {len(arrays[0])} inputs.",
                hint="It takes inputs in rows and gives outputs in rows.",
            )
        return _finite(found, arrays[0], name)

    def _difference(self, x: Array, v: Array) -> Array:
        step = self.step
        try:
            return (self.values(x + step * v) - self.values(x - step * v)) / (2 * step)
        except EvaluationError as error:
            raise EvaluationError(
                f"differences over a step of {step:.1g} leave where the function is finite: "
                f"{error.message}",
                hint="Give jacobian= or jvp=.",
            ) from None


def _size(values: Array, spread: Any) -> float:
    largest = float(np.abs(values).max())
    return largest / float(spread) if spread > 0 else 1.0


def _real(value: Any, name: str) -> Array:
    try:
        found = np.asarray(value)
        if found.dtype.kind not in "biuf":
            raise TypeError
    except (TypeError, ValueError):
        raise UsageError(
            f"{name} gave a {type(value).__name__} without real numbers.",
            hint="It takes an array and gives an array of floats.",
        ) from None
    return found.astype(float)


def _finite(array: Array, x: Array, name: str) -> Array:
    if np.isfinite(array).all():
        return array
    row = int(np.argwhere(~np.isfinite(array))[0][0])
    shown = ", ".join(f"{value:.4g}" for value in x[row][:4])
    more = ", ..." if x.shape[1] > 4 else ""
    raise EvaluationError(
        f"{name} is not finite at the input ({shown}{more}).",
        hint="The coefficient needs finite outputs and derivatives under the whole law.",
    )
