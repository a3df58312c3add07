"""Chains of fully connected layers and the Gram matrices of their inputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from tpcalc import checks
from tpcalc.arrays import Array
from tpcalc.errors import EvaluationError

Family = Literal["abrelu", "erf"]
LARGEST, LEAST = 1e140, 1e-140  # norms of inputs whose squares are safely within float64


@dataclass(frozen=True, eq=False)
class Gram:
    """Inputs and the scale of their Gram matrix, G = factor * inputs @ others.T.

    Args:
        inputs: Shape (N, d), float64.
        others: Shape (M, d); None: the inputs themselves.
        factor: For example 1 / d.
    """

    inputs: Array
    others: Array | None = None
    factor: float = 1.0

    def __post_init__(self) -> None:
        hint = "Use for example 1 / (number of coordinates)."
        checks.real(self.factor, "the factor of the Gram matrix", above=0, hint=hint)
        object.__setattr__(self, "inputs", _checked(self.inputs, "inputs"))
        if self.others is None:
            return
        object.__setattr__(self, "others", _checked(self.others, "others"))
        lengths = self.inputs.shape[1], self.others.shape[1]
        if lengths[0] != lengths[1]:
            raise EvaluationError(
                f"inputs have {lengths[0]} coordinates and others {lengths[1]}; inner products "
                "need the same number.",
                where="Gram",
                hint="Give both sets the same coordinates.",
            )


@dataclass(frozen=True)
class Chain:
    """A chain of equal dense layers.

    Args:
        family: ``"abrelu"``: phi(z) = a |z| + b z; ``"erf"``: phi(z) = a erf(b z).
        a: See ``family``. ReLU has a = b = 1/2.
        b: See ``family``.
        depth: How many times the activation is applied.
        weight_variance: Variance of the weights of hidden layers, times their fan-in.
        bias_variance: Variance of the biases of hidden layers.
        residual: None: a plain chain with a readout of weight variance 1 without bias; a number:
            every layer adds that multiple of its output to its input, and the readout is linear.
        first_weight: Weight variance of the first layer, of G.
        first_bias: Bias variance of the first layer.
    """

    family: Family
    a: float
    b: float
    depth: int
    weight_variance: float
    bias_variance: float
    residual: float | None
    first_weight: float
    first_bias: float

    def __post_init__(self) -> None:
        checks.one_of("family of activations", self.family, ("abrelu", "erf"))
        checks.whole(self.depth, "depth", least=1)
        names = ["a", "b", "weight_variance", "bias_variance", "first_weight", "first_bias"]
        if self.residual is not None:
            names.append("residual")
        for name in names:
            least = None if name in ("a", "b", "residual") else 0
            checks.real(getattr(self, name), name, least=least)
        if (self.a == 0 and self.b == 0) or (self.family == "erf" and 0 in (self.a, self.b)):
            raise EvaluationError(
                f"the activation is 0 for a = {self.a!r}, b = {self.b!r}.",
                where="Chain",
                hint="Use coefficients that are not 0.",
            )


def _checked(values: Any, name: str) -> Array:
    """Inputs as a float64 array that the loops can read, or an error that says what is wrong."""
    try:
        array = np.ascontiguousarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise EvaluationError(f"{name} are not numbers: {error}.", where="Gram") from error
    if np.ndim(values) != 2:
        raise EvaluationError(
            f"{name} have shape {np.shape(values)}; a set of inputs has shape (N, d).",
            where="Gram",
            hint="Flatten every input into one row.",
        )
    if array.size == 0:
        return array
    if not np.isfinite(array).all():
        row = int(np.argmin(np.isfinite(array).all(axis=1)))
        raise EvaluationError(
            f"row {row} of {name} has an entry that is infinite or not a number.",
            where="Gram",
            hint="Remove such inputs.",
        )
    sizes = np.maximum(array.max(axis=1), -array.min(axis=1))
    bad = (sizes > LARGEST) | ((sizes < LEAST) & (sizes > 0))
    if bad.any():
        row = int(np.argmax(bad))
        raise EvaluationError(
            f"row {row} of {name} has entries up to {sizes[row]:.1e}, whose squares leave the "
            "range of float64.",
            where="Gram",
            hint="Rescale the inputs.",
        )
    return array
