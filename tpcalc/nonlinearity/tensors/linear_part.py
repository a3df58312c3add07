"""The best linear fit of a function under its inputs, and what it leaves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np

from tpcalc.engine.device.devices import load_torch
from tpcalc.errors import EvaluationError, UsageError
from tpcalc.nonlinearity.tensors.batch_moments import batch_moments
from tpcalc.nonlinearity.tensors.shard import shard_of
from tpcalc.nonlinearity.tensors.spread import outputs
from tpcalc.nonlinearity.tensors.uncertainty import estimate
from tpcalc.results import Estimate
from tpcalc.shown import Shown

Tensor = Any
_GROUPS = 10


@dataclass(frozen=True)
class LinearPart(Shown):
    """Shares of E |f|^2; they add up to 1.

    Attributes:
        linear: LAR: of the linear component (x - mean) A.
        constant: CAR: of the constant component, the mean output.
        nonlinear: NAR: of what is left.
        slope: A, of shape (d_in, d_out).
        offset: b, so that x A + b is the fit.
    """

    linear: Estimate
    constant: Estimate
    nonlinear: Estimate
    slope: Tensor
    offset: Tensor

    def rest(self, f: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """The function without its linear fit."""
        return lambda x: outputs(f, x) - x.flatten(1) @ self.slope - self.offset


def linear_part(
    f: Callable[[Any], Any], x: Any, *, batch: int | None = None, seed: int = 0
) -> LinearPart:
    """Fit f by least squares over inputs.

    A fit to n inputs also follows chance: the residuals are divided by n - d_in - 1 and the
    constant loses its share of the spread, so that shares are unbiased up to 1 / n where residuals
    do not depend on the input. Errors come from leaving out a tenth of the inputs at a time.

    Args:
        f: A module or another function from a batch of inputs to one of outputs.
        x: The inputs; more than features by a good deal.
        batch: Inputs of a batch; None: 250, or all if there are fewer.
        seed: The seed.

    Returns:
        The shares with their errors, slope and offset as tensors.

    Raises:
        UsageError: Fewer inputs than a fit without a tenth of them needs, or inputs that do not
            span their space.
        EvaluationError: Outputs that are all 0 or not finite.

    Source: Schoenherr, The nonlinearity coefficient, section 4.4.7.

    Example:
        >>> from tpcalc.nonlinearity.tensors.surrogates import gaussian_inputs
        >>> found = linear_part(lambda x: x[:, :1] + 0.5, gaussian_inputs(900, 4))
        >>> round(found.nonlinear.value, 9), abs(found.constant.value - 0.2) < 0.1
        (0.0, True)
    """
    torch = load_torch()
    shard = shard_of(x, batch, seed)
    features = shard.features
    if len(shard) * (_GROUPS - 1) // _GROUPS <= features + 1:
        raise UsageError(
            f"{len(shard)} inputs cannot show a linear fit in {features} features.",
            hint=f"Give {2 * (features + 1)} or more.",
        )
    sums = [_Sums.zero(shard.rows, 0) for _ in range(_GROUPS)]
    with batch_moments(f), torch.no_grad():
        sizes = 0
        for part in shard.batches():
            rows, values = (part - shard.mean).flatten(1).double(), outputs(f, part).double()
            if not sizes:
                sizes = values.shape[1]
                sums = [_Sums.zero(rows, sizes) for _ in range(_GROUPS)]
            for group, own in enumerate(sums):
                own.add(rows[group::_GROUPS], values[group::_GROUPS])
        total = _joined(sums)
        slope, centre, shares = total.fit()
        left = np.array([_joined([s for s in sums if s is not own]).fit()[2] for own in sums])
    if not np.isfinite(shares).all():
        raise EvaluationError(
            "outputs are all 0 or not finite.", hint="There are no shares of nothing."
        )
    errors = sqrt((_GROUPS - 1) / _GROUPS) * np.sqrt(((left - left.mean(0)) ** 2).sum(0))
    linear, constant, nonlinear = (
        estimate(value, float(error), len(shard), seed)
        for value, error in zip(shares, errors, strict=True)
    )
    middle = shard.mean.flatten().double()
    dtype = shard.rows.dtype
    offset = centre - middle @ slope
    return LinearPart(linear, constant, nonlinear, slope.to(dtype), offset.to(dtype))


@dataclass
class _Sums:
    """Sums of products over some inputs, enough for a fit."""

    count: int
    x: Tensor
    y: Tensor
    xx: Tensor
    xy: Tensor
    yy: Tensor

    @staticmethod
    def zero(like: Tensor, size: int) -> _Sums:
        torch, features = load_torch(), like[0].numel()
        new = {"dtype": torch.float64, "device": like.device}
        x, y = torch.zeros(features, **new), torch.zeros(size, **new)
        return _Sums(0, x, y, torch.outer(x, x), torch.outer(x, y), torch.zeros(size, **new))

    def add(self, x: Tensor, y: Tensor) -> None:
        self.count += len(x)
        self.x += x.sum(0)
        self.y += y.sum(0)
        self.xx += x.T @ x
        self.xy += x.T @ y
        self.yy += (y * y).sum(0)

    def fit(self) -> tuple[Tensor, Tensor, tuple[float, float, float]]:
        """Slope, output at the point x = 0, and shares of the linear, constant and other parts."""
        torch, n = load_torch(), self.count
        x, y = self.x / n, self.y / n
        gram = self.xx - n * torch.outer(x, x)
        cross = self.xy - n * torch.outer(x, y)
        factor, failed = torch.linalg.cholesky_ex(gram)
        if int(failed):
            raise UsageError(
                "the inputs do not span their space, so that many linear fits are best.",
                hint="Drop features that others determine, or add inputs.",
            )
        slope = torch.cholesky_solve(cross, factor)
        whole = float((self.yy - n * y * y).sum()) / (n - 1)
        explained = float((slope * cross).sum())
        rest = float((self.yy - n * y * y).sum()) - explained
        nonlinear = max(rest, 0.0) / (n - len(x) - 1)
        constant = float((y * y).sum()) - whole / n
        power = constant + whole
        if not power > 0:
            return slope, y, (np.nan, np.nan, np.nan)
        shares = ((whole - nonlinear) / power, constant / power, nonlinear / power)
        return slope, y - x @ slope, shares


def _joined(parts: list[_Sums]) -> _Sums:
    found = _Sums.zero(parts[0].x[None], len(parts[0].y))
    for part in parts:
        found.count += part.count
        for name in ("x", "y", "xx", "xy", "yy"):
            setattr(found, name, getattr(found, name) + getattr(part, name))
    return found
