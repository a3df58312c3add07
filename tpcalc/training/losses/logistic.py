"""The logistic loss of one output, for targets -1 and 1."""

from __future__ import annotations

from collections.abc import Sequence

from tpcalc.activations.entries.sigmoid import SIGMOID
from tpcalc.activations.entries.softplus import SOFTPLUS
from tpcalc.errors import StudyError
from tpcalc.functions import Expr
from tpcalc.results import Samples
from tpcalc.sources import Source
from tpcalc.training.loss import Loss


def value(outputs: Sequence[Expr], targets: Sequence[Expr]) -> Expr:
    """The loss log(1 + exp(-y f)).

    Source: Bartlett, Jordan, McAuliffe, section 1.
    """
    (f,), (y,) = outputs, targets
    return SOFTPLUS(-y * f)


def chi(outputs: Sequence[Expr], targets: Sequence[Expr]) -> tuple[Expr, ...]:
    """Its derivative -y / (1 + exp(y f))."""
    (f,), (y,) = outputs, targets
    return (-y * SIGMOID(-y * f),)


def check(samples: Samples) -> None:
    """One output, targets -1 or 1.

    Raises:
        StudyError: Anything else; the first such row is named.
    """
    if samples.outputs != 1:
        raise StudyError(
            f"the logistic loss takes one output; the data have {samples.outputs}.",
            where=samples.origin,
            hint="Take the loss xent for several classes.",
        )
    for index, (target,) in enumerate(samples.targets):
        if target not in (-1.0, 1.0):
            raise StudyError(
                f"target row {index} is {target:g}; the logistic loss takes -1 and 1.",
                where=samples.origin,
                hint="Write classes 0 and 1 as -1 and 1 (y = 2 * class - 1).",
            )


ENTRY = Loss(
    "logistic",
    value,
    chi,
    text="log(1 + exp(-y f)) for y = -1 or 1, one output",
    source=Source("Bartlett, Jordan, McAuliffe, Convexity, classification, and risk bounds"),
    check=check,
)
