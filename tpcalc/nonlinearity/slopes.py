"""A function given as code, and its derivative along directions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tpcalc.arrays import Array
from tpcalc.errors import EvaluationError, UsageError

EPS = 2.0**-52
STEPS = (1e-5, 0.05)  # the smallest and the largest step, in standard deviations of the input


@dataclass(frozen=True)
class Slopes:
    """Derivatives J(x) v of a function at several points.

    Args:
        fine: They, or what differences over the smaller step give: points by outputs.
        coarse: What the doubled step gives; None where they are no differences.
    """

    fine: Array
    coarse: Array | None


@dataclass(frozen=True)
class Blackbox:
    """A function of d numbers as code, on a batch of inputs.

    Args:
        function: ``function(x)``: inputs in rows to outputs in rows (or one number each).
        dimension: d.
        jacobian: ``jacobian(x)``: an array of inputs by outputs by d.
        jvp: ``jvp(x, v)``: the products J(x) v, in rows.
        step: The step of differences where neither is given, in standard deviations of the input.

    Example:
        >>> square = Blackbox(lambda x: x**2, 1)
        >>> bool(abs(square.along(np.array([[3.0]]), np.array([[1.0]])).fine[0, 0] - 6) < 1e-8)
        True
    """

    function: Callable[[Any], Any]
    dimension: int
    jacobian: Callable[[Any], Any] | None = None
    jvp: Callable[[Any, Any], Any] | None = None
    step: float = STEPS[0]

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise UsageError(
                f"the function is a {type(self.function).__name__}.",
                hint="Give a Python function of an array with one input in each row.",
            )
        if self.jacobian is not None and self.jvp is not None:
            raise UsageError("jacobian= and jvp= are both given.", hint="Give one of them.")

    @property
    def by_differences(self) -> bool:
        """Whether derivatives are differences."""
        return self.jacobian is None and self.jvp is None

    def with_step(self, x: Array, v: Array) -> Blackbox:
        """The same with a step that balances rounding against curvature."""
        if not self.by_differences:
            return self
        return replace(self, step=float(np.clip(np.cbrt(self.noise(x, v)), *STEPS)))

    def noise(self, x: Array, v: Array) -> float:
        """The rounding of inputs and outputs, next to how far they vary."""
        y = self.values(x)
        spread = np.abs(y - y.mean(axis=0)).max()
        return EPS * max(_size(x, np.abs(v).max()), _size(y, spread))

    def values(self, x: Array) -> Array:
        """The outputs at inputs, in rows."""
        with np.errstate(all="ignore"):
            found = _real(self.function(x.copy()), "function")
        if found.ndim == 1:
            found = found[:, None]
        if found.ndim != 2 or len(found) != len(x) or not found.size:
            raise UsageError(
                f"the function gave shape {found.shape} for {len(x)} inputs.",
                hint="It takes inputs in rows and gives outputs in rows.",
            )
        return _finite(found, x, "the function")

    def along(self, x: Array, v: Array) -> Slopes:
        """The derivatives J(x) v."""
        if self.jacobian is not None:
            return Slopes(np.einsum("bij,bj->bi", self.matrices(x), v), None)
        if self.jvp is not None:
            with np.errstate(all="ignore"):
                found = _real(self.jvp(x.copy(), v.copy()), "jvp")
            found = found[:, None] if found.ndim == 1 else found
            if found.ndim != 2 or len(found) != len(x):
                raise UsageError(f"jvp gave shape {found.shape} for {len(x)} inputs.")
            return Slopes(_finite(found, x, "jvp"), None)
        fine, coarse = (self._difference(x, v, h) for h in (self.step, 2 * self.step))
        return Slopes(fine, coarse)

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

    def _difference(self, x: Array, v: Array, h: float) -> Array:
        try:
            ahead, behind = self.values(x + h * v), self.values(x - h * v)
        except EvaluationError as error:
            raise EvaluationError(
                f"differences over a step of {h:.1g} leave where the function is finite: "
                f"{error.message}",
                hint="Give jacobian= or jvp=.",
            ) from None
        return (ahead - behind) / (2 * h)


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
