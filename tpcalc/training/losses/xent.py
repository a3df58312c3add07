"""Softmax cross-entropy, for one-hot targets (or probabilities).

log sum_k exp(f_k) is built from softplus, pair by pair: log(e^a + e^b) = a + softplus(b - a). No
exponential of an output is ever taken, so large outputs do not overflow; halving the list keeps the
expression small for many classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum

from tpcalc.activations.entries.exp import EXP
from tpcalc.activations.entries.softplus import SOFTPLUS
from tpcalc.errors import StudyError
from tpcalc.functions import Expr
from tpcalc.functions.expr import add
from tpcalc.results import Samples
from tpcalc.sources import Source
from tpcalc.training.loss import Loss

# Targets written with a few decimals (0.333) are probabilities too.
SUM_TOLERANCE = 1e-6


def log_sum_exp(outputs: Sequence[Expr]) -> Expr:
    """The expression log sum_k exp(f_k), stable for outputs of any size."""
    if len(outputs) == 1:
        return outputs[0]
    half = (len(outputs) + 1) // 2
    left, right = log_sum_exp(outputs[:half]), log_sum_exp(outputs[half:])
    return left + SOFTPLUS(right - left)


def value(outputs: Sequence[Expr], targets: Sequence[Expr]) -> Expr:
    """The loss log sum_j exp(f_j) - sum_k y_k f_k, for targets that sum to 1.

    Source: Bridle, section 2.
    """
    hits = add(y * f for f, y in zip(outputs, targets, strict=True))
    return log_sum_exp(outputs) - hits


def chi(outputs: Sequence[Expr], targets: Sequence[Expr]) -> tuple[Expr, ...]:
    """Its derivative softmax_k(f) - y_k for each output."""
    total = log_sum_exp(outputs)
    return tuple(EXP(f - total) - y for f, y in zip(outputs, targets, strict=True))


def check(samples: Samples) -> None:
    """Several outputs; each row of targets holds probabilities.

    Raises:
        StudyError: Anything else; the first such row is named.
    """
    if samples.outputs < 2:
        raise StudyError(
            "the loss xent takes one output for each class, two or more; the data have one.",
            where=samples.origin,
            hint="Take the loss logistic, with targets -1 and 1, or one-hot targets.",
        )
    for index, row in enumerate(samples.targets):
        if min(row) < 0 or abs(fsum(row) - 1) > SUM_TOLERANCE:
            shown = ", ".join(f"{entry:g}" for entry in row[:8])
            raise StudyError(
                f"target row {index} is ({shown}{', ...' if len(row) > 8 else ''}); the loss xent "
                "takes probabilities, which are not negative and sum to 1.",
                where=samples.origin,
                hint="Write each class as a one-hot row.",
            )


ENTRY = Loss(
    "xent",
    value,
    chi,
    text="softmax cross-entropy for one-hot targets",
    source=Source(
        "Bridle, Probabilistic interpretation of feedforward classification network outputs, with "
        "relationships to statistical pattern recognition"
    ),
    check=check,
    aliases=("cross-entropy", "softmax"),
)
