"""PNLCD: how nonlinear a function has to be that gives each input its label."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np

from tpcalc import checks
from tpcalc.arrays import Array
from tpcalc.errors import EvaluationError, UsageError
from tpcalc.shown import Shown

MOST_PAIRS = 2**22
BLOCK = 2**12


@dataclass(frozen=True, eq=False)
class PairNonlinearity(Shown):
    """The distribution over pairs of how far apart their labels are, next to how far the inputs."""

    # sqrt(|y - y'|^2 Tr Cov_x / (|x - x'|^2 Tr Cov_y)) of pairs, ascending; infinite where
    # equal inputs have different labels
    values: Array
    skipped: int  # pairs with equal inputs and equal labels, of which it is no number
    sampled: bool  # whether pairs were drawn, because there were too many

    def quantile(self, share: float) -> float:
        """The smallest value that at least this share of pairs does not exceed."""
        part = checks.real(share, "share", least=0, most=1)
        index = int(np.ceil(float(part) * len(self.values))) - 1
        return float(self.values[max(index, 0)])

    @property
    def zero(self) -> float:
        """The share of pairs with the same label."""
        return float(np.mean(self.values == 0))


def pair_nlc(inputs: Any, labels: Any, *, seed: int = 0) -> PairNonlinearity:
    """PNLCD of a labelled dataset.

    Args:
        inputs: The inputs, a row each.
        labels: A class for each input (they become unit vectors), or rows of real targets.
        seed: Of the pairs that are drawn where there are more than four million.

    Returns:
        The quotients, sorted, and how many pairs were left out.

    Raises:
        UsageError: Labels that do not fit the inputs.
        EvaluationError: Inputs or labels that are all the same.

    Source: Schoenherr, The nonlinearity coefficient, section 4.5, metric 12.

    Example:
        >>> found = pair_nlc(np.eye(6), [0, 0, 1, 1, 2, 2])
        >>> round(found.zero, 6), round(found.quantile(1), 9)
        (0.2, 1.118033989)
    """
    x = checks.inputs(inputs, "inputs")
    y = _targets(labels, len(x))
    scales = [float(rows.var(axis=0, ddof=min(1, len(x) - 1)).sum()) for rows in (x, y)]
    if not all(scale > 0 for scale in scales):
        raise EvaluationError("all inputs or all labels are the same: there is nothing to compare.")
    left, right, sampled = _pairs(len(x), checks.seed(seed))
    values = []
    for start in range(0, len(left), BLOCK):
        i, j = left[start : start + BLOCK], right[start : start + BLOCK]
        over = np.sqrt(np.sum((y[i] - y[j]) ** 2, axis=1) / scales[1])
        under = np.sqrt(np.sum((x[i] - x[j]) ** 2, axis=1) / scales[0])
        with np.errstate(divide="ignore", invalid="ignore"):
            values.append(over / under)
    found = np.concatenate(values)
    same = np.isnan(found)
    if same.all():
        raise EvaluationError("the pairs that were drawn have equal inputs.")
    return PairNonlinearity(np.sort(found[~same]), int(same.sum()), sampled)


def elem_like_pairs(shares: Sequence[float]) -> tuple[float, float]:
    """PNLCD of inputs whose square means are all equal, and the co-means of pairs too.

    Args:
        shares: The share of each class; they sum to 1.

    Returns:
        The value of pairs with different labels, and how likely they are; else it is 0.

    Raises:
        UsageError: Shares that are no probabilities of two or more classes.

    Source: Schoenherr, The nonlinearity coefficient, Proposition 11.

    Example:
        >>> value, chance = elem_like_pairs([0.1] * 10)
        >>> round(value, 10), round(chance, 10)
        (1.0540925534, 0.9)
    """
    found = [float(checks.real(share, "a share")) for share in shares]
    if any(share < 0 for share in found) or abs(sum(found) - 1) > 1e-9:
        raise UsageError(f"the shares of classes are not negative and sum to 1, not {sum(found)}.")
    chance = sum(share * (1 - share) for share in found)
    if not chance > 0:
        raise UsageError("all inputs have one label.")
    return 1 / sqrt(chance), chance


def labels_of(labels: Any, count: int) -> Any:
    """A label for each input, as an array or a tensor."""
    try:
        given = (
            labels if hasattr(labels, "shape") else np.asarray(checks.sequence(labels, "labels"))
        )
    except ValueError:
        raise UsageError("labels have rows of different lengths.") from None
    if tuple(given.shape[:1]) != (count,):
        found = given.shape[0] if len(given.shape) else "no"
        raise UsageError(f"there are {found} labels for {count} inputs.")
    return given


def _targets(labels: Any, count: int) -> Array:
    given = np.asarray(labels_of(labels, count))
    if given.ndim == 1:
        if given.dtype.kind == "f" and not np.equal(np.mod(given, 1), 0).all():
            return checks.inputs(given[:, None], "labels")
        classes, index = np.unique(given, return_inverse=True)
        return np.eye(len(classes))[index]
    return checks.inputs(given, "labels")


def _pairs(count: int, seed: int) -> tuple[Any, Any, bool]:
    if count * (count - 1) // 2 <= MOST_PAIRS:
        return *np.triu_indices(count, 1), False
    rng = np.random.default_rng(seed)
    left = rng.integers(0, count, MOST_PAIRS // 4)
    # Another input than the first, each as likely.
    right = (left + rng.integers(1, count, len(left))) % count
    return left, right, True
