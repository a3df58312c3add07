"""From which width on a leading term stands out of what falls faster."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from tpcalc.arrays import Array

# Where what falls faster is this part of the leading term, a slope is off by less than 0.06.
PART = 3
# Standard errors by which a term is known not to be 0, and a fit is known to fail.
SURE = 3.0


def dominance(values: Mapping[int, Array], power: float) -> str:
    """How large a leading term is beside what falls faster, and the width it takes; "" if untold.

    With the power of n taken out, values are a leading term and one that is smaller by n^(-1/2):
    where signs differ the latter is scatter over seeds, else mean squares are A + B / n.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> found = {n: 0.1 + rng.normal(size=200) / n**0.5 for n in (16, 32, 64, 128)}
        >>> print(dominance(found, 0))
        at width 16 the leading term is 0.097, and 0.25 beside it falls faster by n^(-1/2): it \
takes roughly n >= 970 until that is a third of it
    """
    widths = np.array(sorted(values))
    first = float(widths[0])
    unit = float(np.max(np.abs(values[int(first)])))
    if len(widths) < 3 or not unit:
        return ""
    with np.errstate(all="ignore"):
        given = [np.asarray(values[n]) / unit * (n / first) ** -power for n in widths]
        signs = {sign for part in given for sign in np.sign(part)}
        found = (_scattered if len(signs) > 1 else _added)(widths / first, given)
    if found is None:
        return ""
    leading, beside = (unit * math.sqrt(part) for part in found)
    needed = _up(first * PART**2 * found[1] / found[0])
    return (
        f"at width {first:.0f} the leading term is {leading:.2g}, and {beside:.2g} beside it falls "
        f"faster by n^(-1/2): it takes roughly n >= {needed} until that is a third of it"
    )


def _scattered(widths: Array, values: list[Array]) -> tuple[float, float] | None:
    """Squares of the mean and of the scatter at the first width."""
    weights = np.concatenate([np.full(len(v), n) for n, v in zip(widths, values, strict=True)])
    every = np.concatenate(values)
    mean = float(np.sum(weights * every) / np.sum(weights))
    squares = weights * (every - mean) ** 2
    variance = float(np.sum(squares)) / (len(every) - 1)
    kurtosis = float(np.var(squares)) / variance**2
    ends = np.cumsum([len(v) for v in values])[:-1]
    for part in np.split(squares, ends):
        if not abs(np.mean(part) / variance - 1) <= SURE * math.sqrt(kurtosis / len(part)):
            return None
    known = abs(mean) > SURE * math.sqrt(variance / float(np.sum(weights)))
    return (mean**2, variance) if known else None


def _added(widths: Array, values: list[Array]) -> tuple[float, float] | None:
    """The terms A and B of mean squares A + B / n, n in units of the first width."""
    means = np.array([np.mean(v**2) for v in values])
    spreads = np.array([np.var(v**2, ddof=1) for v in values]) / means**2
    counts = np.array([len(v) for v in values])
    relative = np.sum(spreads * (counts - 1)) / np.sum(counts - 1)  # as slopes pool it
    errors = means * np.sqrt(relative / counts)
    if not (np.all(np.isfinite(errors)) and np.all(errors > 0)):
        return None
    columns = np.column_stack([np.ones(len(widths)), 1 / widths]) / errors[:, None]
    inverse = np.linalg.inv(columns.T @ columns)
    found = inverse @ columns.T @ (means / errors)
    freedom = len(widths) - 2
    off = float(np.sum((columns @ found - means / errors) ** 2)) - freedom
    known = found > SURE * np.sqrt(np.diagonal(inverse))
    if off > SURE * math.sqrt(2 * freedom) or not np.all(known):
        return None
    return float(found[0]), float(found[1])


def _up(width: float) -> int:
    """A width rounded up to two digits."""
    step: int = 10 ** max(math.floor(math.log10(width)) - 1, 0)
    return math.ceil(width / step) * step
